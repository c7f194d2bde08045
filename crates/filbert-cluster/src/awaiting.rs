//! Who awaits the entries that this member has proposed, beside the log: found again by the ticket that an entry's batch has here, and
//! nowhere else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::Instant;
use parking_lot::Mutex;

/// Whoever awaits the submissions of an entry, by place, and when it was proposed.
struct OnWay<A, T> {
    proposed: T,
    awaiting: Vec<A>,
}

/// Entries of this member on their way. `A` awaits a submission, `T` is a moment.
pub(crate) struct Awaiting<A, T> {
    next: AtomicU64,
    entries: Mutex<BTreeMap<u64, OnWay<A, T>>>,
}

impl<A, T> Default for Awaiting<A, T> {
    fn default() -> Self {
        // 0 is the ticket of entries that others proposed.
        Awaiting { next: AtomicU64::new(1), entries: Mutex::default() }
    }
}

impl<A, T: Instant> Awaiting<A, T> {
    /// Keeps those who await an entry, and gives them a ticket.
    pub(crate) fn add(&self, awaiting: Vec<A>, proposed: T) -> u64 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        self.entries.lock().insert(ticket, OnWay { proposed, awaiting });
        ticket
    }

    /// Takes those who await an entry. Nobody, if they were told already.
    pub(crate) fn take(&self, ticket: u64) -> Vec<A> {
        if ticket == 0 {
            return Vec::new();
        }
        self.entries.lock().remove(&ticket).map_or_else(Vec::new, |entry| entry.awaiting)
    }

    /// Takes those who have waited for longer than a limit.
    pub(crate) fn take_older(&self, now: T, limit: Duration) -> Vec<A> {
        let mut entries = self.entries.lock();
        let is_late = |entry: &OnWay<A, T>| now.saturating_duration_since(entry.proposed) > limit;
        let late: Vec<u64> = entries.iter().filter(|(_, entry)| is_late(entry)).map(|(at, _)| *at).collect();
        late.iter().filter_map(|ticket| entries.remove(ticket)).flat_map(|entry| entry.awaiting).collect()
    }

    /// Takes all.
    pub(crate) fn take_all(&self) -> Vec<A> {
        std::mem::take(&mut *self.entries.lock()).into_values().flat_map(|entry| entry.awaiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BootInstant;

    #[test]
    fn each_is_taken_once_whoever_comes_first() {
        let awaiting: Awaiting<u8, BootInstant> = Awaiting::default();
        let begin = BootInstant::now();
        let later = begin + Duration::from_millis(10);
        let (first, second) = (awaiting.add(vec![1, 2], begin), awaiting.add(vec![3], later));
        assert_eq!(awaiting.take(0), Vec::<u8>::new());
        assert_eq!(awaiting.take_older(later, Duration::from_millis(9)), vec![1, 2]);
        assert_eq!(awaiting.take(first), Vec::<u8>::new());
        assert_eq!(awaiting.take(second), vec![3]);
        awaiting.add(vec![4], later);
        assert_eq!((awaiting.take_all(), awaiting.take_all()), (vec![4], vec![]));
    }
}
