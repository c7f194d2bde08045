//! The waiters of the entries that this member has proposed, stored beside the log. They are found
//! by the ticket of the entry's batch, which exists only on this member.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::Instant;
use parking_lot::Mutex;

/// The waiters of the submissions of an entry, by position, and the time of the proposal.
struct ProposedEntry<A, T> {
    proposed: T,
    awaiting: Vec<A>,
}

/// The waiters of this member's entries in flight. `A` is a waiter of a submission, `T` an instant.
pub(crate) struct Awaiting<A, T> {
    next: AtomicU64,
    entries: Mutex<BTreeMap<u64, ProposedEntry<A, T>>>,
}

impl<A, T> Default for Awaiting<A, T> {
    fn default() -> Self {
        // 0 is the ticket of entries from other members.
        Awaiting { next: AtomicU64::new(1), entries: Mutex::default() }
    }
}

impl<A, T: Instant> Awaiting<A, T> {
    /// Stores the waiters of an entry, and returns their ticket.
    pub(crate) fn add(&self, awaiting: Vec<A>, proposed: T) -> u64 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        self.entries.lock().insert(ticket, ProposedEntry { proposed, awaiting });
        ticket
    }

    /// Takes the waiters of an entry. Empty if they were taken already.
    pub(crate) fn take(&self, ticket: u64) -> Vec<A> {
        if ticket == 0 {
            return Vec::new();
        }
        self.entries.lock().remove(&ticket).map_or_else(Vec::new, |entry| entry.awaiting)
    }

    /// Takes the waiters that have waited for longer than a limit.
    pub(crate) fn take_older(&self, now: T, limit: Duration) -> Vec<A> {
        let mut entries = self.entries.lock();
        let is_late = |entry: &ProposedEntry<A, T>| now.saturating_duration_since(entry.proposed) > limit;
        let late: Vec<u64> = entries.iter().filter(|(_, entry)| is_late(entry)).map(|(at, _)| *at).collect();
        late.iter().filter_map(|ticket| entries.remove(ticket)).flat_map(|entry| entry.awaiting).collect()
    }

    /// Takes all waiters.
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
