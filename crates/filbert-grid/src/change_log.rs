//! A count of changes, with the subjects of the latest ones. Whatever was derived from some
//! subjects stays valid while no later change concerns them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The number of changes whose subjects are known.
const LATEST_MAX: usize = 1_024;

/// Counts the changes of a member that have a subject of type `S`.
///
/// Clones share the count.
#[derive(Debug)]
pub struct ChangeLog<S>(Arc<Log<S>>);

#[derive(Debug)]
struct Log<S> {
    count: AtomicU64,
    /// The subjects of the latest changes, the last one at the end.
    latest: Mutex<VecDeque<S>>,
}

impl<S> Clone for ChangeLog<S> {
    fn clone(&self) -> Self {
        ChangeLog(self.0.clone())
    }
}

impl<S> Default for ChangeLog<S> {
    fn default() -> Self {
        ChangeLog(Arc::new(Log { count: AtomicU64::new(0), latest: Mutex::default() }))
    }
}

impl<S> ChangeLog<S> {
    /// The number of changes.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Counts a change. Returns its number; the first change has the number 1.
    pub fn note(&self, subject: S) -> u64 {
        let mut latest = self.0.latest.lock();
        if latest.len() == LATEST_MAX {
            latest.pop_front();
        }
        latest.push_back(subject);
        self.0.count.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The number of changes, if none after the change `number` concerns the caller. `None` if one
    /// does, or if too many changes came after it.
    pub fn unconcerned_since(&self, number: u64, mut concerns: impl FnMut(&S) -> bool) -> Option<u64> {
        if self.count() == number {
            return Some(number);
        }
        let latest = self.0.latest.lock();
        let count = self.count();
        let later = usize::try_from(count.checked_sub(number)?).ok().filter(|later| *later <= latest.len())?;
        (!latest.iter().rev().take(later).any(&mut concerns)).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_change_concerns_only_its_subject() {
        let log = ChangeLog::default();
        assert_eq!((log.count(), log.note("a"), log.note("b")), (0, 1, 2));
        let since = |number, subject| log.unconcerned_since(number, |changed| *changed == subject);
        assert_eq!((since(0, "a"), since(0, "b"), since(0, "c")), (None, None, Some(2)));
        assert_eq!((since(1, "a"), since(1, "b"), since(2, "b")), (Some(2), None, Some(2)));
        assert_eq!(since(3, "c"), None, "a number that no change has");
    }

    #[test]
    fn changes_that_are_forgotten_may_concern_anyone() {
        let log = ChangeLog::default();
        let first = log.note(0);
        for number in 1..=LATEST_MAX {
            assert_eq!(log.unconcerned_since(first, |_| false), Some(number as u64));
            log.note(number);
        }
        assert_eq!(log.unconcerned_since(first, |_| false), Some(LATEST_MAX as u64 + 1));
        log.note(0);
        assert_eq!(log.unconcerned_since(first, |_| false), None);
        assert_eq!(log.unconcerned_since(first + 1, |_| false), Some(LATEST_MAX as u64 + 2));
    }
}
