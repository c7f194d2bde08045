//! The locks of one map in one partition. Locks are reentrant, can have a lease, and do not require
//! an entry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use uuid::Uuid;

use crate::hash::stable_hash;
use crate::{Caller, LockState, Millis};

#[derive(Clone, Copy)]
pub(crate) struct Lock {
    pub(crate) owner: Caller,
    pub(crate) count: u32,
    /// [`Millis::MAX`] = until it is unlocked.
    pub(crate) lease_until: Millis,
    pub(crate) lock_reference: i64,
    pub(crate) unlock_reference: i64,
}

/// A completed unlock: an unlock that freed its key. The hash replaces the key, and is the same in
/// all replicas. That is enough to recognize a retry, because references are already unique for a
/// client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unlocked {
    pub(crate) hash: u64,
    pub(crate) caller: Caller,
    pub(crate) reference: i64,
}

/// The locks by key. They are sorted, so that operations on many locks have the same order in all
/// replicas.
#[derive(Default)]
pub(crate) struct Locks {
    held: BTreeMap<Arc<[u8]>, Lock>,
    leases: BTreeSet<(Millis, Arc<[u8]>)>,
    /// The latest completed unlocks. They identify retries.
    unlocked: VecDeque<Unlocked>,
    key_bytes: usize,
}

/// The result of an unlock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unlock {
    /// The key is now free.
    Freed,
    /// The caller still holds the lock, or the unlock is a retry.
    Done,
    NotOwner(Option<Caller>),
}

/// The bytes of a lock in addition to its key: the items of two trees, and the header of the key.
const LOCK_BYTES: usize = 160;

impl Locks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether no key is locked, and no unlock is remembered.
    pub(crate) fn is_as_new(&self) -> bool {
        self.held.is_empty() && self.unlocked.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// The owners of locks, once for each lock.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Uuid> {
        self.held.values().map(|lock| lock.owner.client)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.held.len() * LOCK_BYTES + self.key_bytes + self.unlocked.capacity() * size_of::<Unlocked>()
    }

    /// The lock of a key. `None` if its lease has ended.
    pub(crate) fn state(&self, key: &[u8], now: Millis) -> Option<LockState> {
        let lock = self.held.get(key).filter(|lock| lock.lease_until > now)?;
        Some(LockState {
            owner: lock.owner,
            count: lock.count,
            lease_until: (lock.lease_until != Millis::MAX).then_some(lock.lease_until),
        })
    }

    /// Whether other callers have locked any key.
    pub(crate) fn any_of_others(&self, caller: Caller, now: Millis) -> bool {
        self.held.values().any(|lock| lock.owner != caller && lock.lease_until > now)
    }

    pub(crate) fn is_locked(&self, key: &[u8], now: Millis) -> bool {
        !self.held.is_empty() && self.state(key, now).is_some()
    }

    /// Whether the key has a lock whose lease has ended. Such a lock must be freed with
    /// [`Locks::free`].
    pub(crate) fn has_ended(&self, key: &[u8], now: Millis) -> bool {
        self.held.get(key).is_some_and(|lock| lock.lease_until <= now)
    }

    /// Locks a key that is free or locked by the caller. A `lease_until` of [`Millis::MAX`] means
    /// no lease.
    pub(crate) fn lock(&mut self, key: &[u8], caller: Caller, lease_until: Millis, reference: i64) {
        if let Some((shared, lock)) = self.held.get_key_value(key) {
            if reference != 0 && lock.lock_reference == reference {
                return;
            }
            let item = (lock.lease_until, Arc::clone(shared));
            self.leases.remove(&item);
            let shared = item.1;
            if lease_until != Millis::MAX {
                self.leases.insert((lease_until, shared));
            }
            if let Some(lock) = self.held.get_mut(key) {
                lock.count = lock.count.saturating_add(1);
                lock.lease_until = lease_until;
                lock.lock_reference = reference;
            }
            return;
        }
        let shared: Arc<[u8]> = Arc::from(key);
        if lease_until != Millis::MAX {
            self.leases.insert((lease_until, Arc::clone(&shared)));
        }
        self.key_bytes += key.len();
        let lock = Lock { owner: caller, count: 1, lease_until, lock_reference: reference, unlock_reference: 0 };
        self.held.insert(shared, lock);
    }

    /// Releases one hold. Locks whose lease has ended must be freed before.
    pub(crate) fn unlock(&mut self, key: &[u8], caller: Caller, reference: i64, memory_max: usize) -> Unlock {
        let unlocked = Unlocked { hash: stable_hash(key), caller, reference };
        let Some(lock) = self.held.get_mut(key).filter(|lock| lock.owner == caller) else {
            if reference != 0 && self.unlocked.contains(&unlocked) {
                return Unlock::Done;
            }
            return Unlock::NotOwner(self.held.get(key).map(|lock| lock.owner));
        };
        if reference != 0 && (lock.unlock_reference == reference || self.unlocked.contains(&unlocked)) {
            return Unlock::Done;
        }
        lock.unlock_reference = reference;
        lock.count -= 1;
        if lock.count > 0 {
            return Unlock::Done;
        }
        self.free(key);
        if reference != 0 && memory_max > 0 {
            self.unlocked.truncate(memory_max - 1);
            self.unlocked.push_front(unlocked);
        }
        Unlock::Freed
    }

    /// Frees a key, regardless of the owner. Returns whether it was locked.
    pub(crate) fn free(&mut self, key: &[u8]) -> bool {
        let Some((shared, lock)) = self.held.remove_entry(key) else { return false };
        self.key_bytes -= shared.len();
        self.leases.remove(&(lock.lease_until, shared));
        true
    }

    /// All locks, sorted by key.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Arc<[u8]>, &Lock)> {
        self.held.iter()
    }

    /// The latest completed unlocks, the last one first.
    pub(crate) fn unlocked(&self) -> impl Iterator<Item = &Unlocked> {
        self.unlocked.iter()
    }

    /// Restores a lock from another replica. Returns `false` if the key already has one.
    pub(crate) fn restore(&mut self, key: &[u8], lock: Lock) -> bool {
        let shared: Arc<[u8]> = Arc::from(key);
        if self.held.contains_key(key) {
            return false;
        }
        if lock.lease_until != Millis::MAX {
            self.leases.insert((lock.lease_until, Arc::clone(&shared)));
        }
        self.key_bytes += key.len();
        self.held.insert(shared, lock);
        true
    }

    /// Restores a completed unlock from another replica, after the existing ones.
    pub(crate) fn restore_unlocked(&mut self, unlocked: Unlocked) {
        self.unlocked.push_back(unlocked);
    }

    /// The keys that a client has locked.
    pub(crate) fn keys_of(&self, client: Uuid) -> Vec<Arc<[u8]>> {
        self.held.iter().filter(|(_, lock)| lock.owner.client == client).map(|(key, _)| Arc::clone(key)).collect()
    }

    /// The earliest end of a lease, and its key.
    pub(crate) fn first_lease(&self) -> Option<&(Millis, Arc<[u8]>)> {
        self.leases.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(thread: i64) -> Caller {
        Caller { client: Uuid::from_u128(1), thread }
    }

    #[test]
    fn a_lock_is_free_after_as_many_unlocks_as_locks() {
        let mut locks = Locks::default();
        locks.lock(b"k", caller(1), Millis::MAX, 1);
        locks.lock(b"k", caller(1), Millis::MAX, 2);
        assert_eq!(locks.unlock(b"k", caller(1), 3, 4), Unlock::Done);
        assert_eq!(locks.unlock(b"k", caller(2), 4, 4), Unlock::NotOwner(Some(caller(1))));
        assert_eq!(locks.unlock(b"k", caller(1), 5, 4), Unlock::Freed);
        assert_eq!(locks.unlock(b"k", caller(1), 6, 4), Unlock::NotOwner(None));
        assert_eq!(locks.len(), 0);
        assert_eq!(locks.key_bytes, 0);
    }

    #[test]
    fn repeated_references_count_once() {
        let mut locks = Locks::default();
        locks.lock(b"k", caller(1), Millis::MAX, 1);
        locks.lock(b"k", caller(1), Millis::MAX, 1);
        assert_eq!(locks.state(b"k", Millis(0)).unwrap().count, 1);
        locks.lock(b"k", caller(1), Millis::MAX, 2);
        assert_eq!(locks.unlock(b"k", caller(1), 3, 4), Unlock::Done);
        assert_eq!(locks.unlock(b"k", caller(1), 3, 4), Unlock::Done);
        assert_eq!(locks.state(b"k", Millis(0)).unwrap().count, 1);
        assert_eq!(locks.unlock(b"k", caller(1), 4, 4), Unlock::Freed);
        assert_eq!(locks.unlock(b"k", caller(1), 4, 4), Unlock::Done);
    }

    #[test]
    fn a_retried_unlock_does_not_free_the_next_hold() {
        let mut locks = Locks::default();
        locks.lock(b"k", caller(1), Millis::MAX, 1);
        assert_eq!(locks.unlock(b"k", caller(1), 2, 4), Unlock::Freed);
        locks.lock(b"k", caller(1), Millis::MAX, 3);
        assert_eq!(locks.unlock(b"k", caller(1), 2, 4), Unlock::Done);
        assert!(locks.is_locked(b"k", Millis(0)));
    }

    #[test]
    fn the_memory_of_unlocks_is_bounded() {
        let mut locks = Locks::default();
        for reference in 1..100 {
            locks.lock(b"k", caller(1), Millis::MAX, -reference);
            assert_eq!(locks.unlock(b"k", caller(1), reference, 4), Unlock::Freed);
        }
        assert_eq!(locks.unlocked.len(), 4);
        assert_eq!(locks.unlock(b"k", caller(1), 96, 4), Unlock::Done);
        assert_eq!(locks.unlock(b"k", caller(1), 95, 4), Unlock::NotOwner(None));
    }

    #[test]
    fn the_lease_of_the_latest_call_counts() {
        let mut locks = Locks::default();
        locks.lock(b"k", caller(1), Millis(100), 1);
        locks.lock(b"k", caller(1), Millis(50), 2);
        assert_eq!(locks.first_lease().map(|(lease_until, _)| *lease_until), Some(Millis(50)));
        assert_eq!(locks.leases.len(), 1);
        assert!(locks.is_locked(b"k", Millis(49)));
        assert!(!locks.is_locked(b"k", Millis(50)) && locks.has_ended(b"k", Millis(50)));
        assert!(locks.free(b"k"));
        assert_eq!(locks.first_lease(), None);
    }
}
