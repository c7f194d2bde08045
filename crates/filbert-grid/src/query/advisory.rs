//! Advisory locks: numbers that sessions lock by agreement, beside any data.
//!
//! A lock is shared or exclusive, and its session may take it several times. It lasts until the
//! session, its transaction or its statement ends, or until it is given back. Waiters are parked
//! here, in the order of their arrival; whoever ends a wait wakes the waiter. A wait that would
//! never end, because sessions wait for each other, is rejected when it begins.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::error::{SqlError, SqlErrorCode};

/// The limit of locks that the sessions of a member hold or wait for together. A lock takes some
/// hundred bytes.
const LOCKS_MAX: usize = 100_000;

/// The number that is locked: one of 64 bits, or two of 32 bits. They do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AdvisoryKey {
    /// One number.
    One(i64),
    /// Two numbers.
    Two(i32, i32),
}

/// What ends an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LockEnd {
    /// The session ends, or gives the lock back.
    Session,
    /// The transaction ends.
    Transaction,
    /// The statement ends, outside of a transaction.
    Statement,
}

type SessionId = u64;

/// Called when a wait has ended.
type Wake = Box<dyn FnOnce() + Send>;

/// How often a session has taken a lock in one mode, by what ends it.
struct Holder {
    session: SessionId,
    is_shared: bool,
    counts: [u32; 3],
}

struct Waiter {
    session: SessionId,
    is_shared: bool,
    end: LockEnd,
    wake: Wake,
}

#[derive(Default)]
struct Lock {
    holders: Vec<Holder>,
    waiters: VecDeque<Waiter>,
}

impl Lock {
    fn is_held_by(&self, session: SessionId) -> bool {
        self.holders.iter().any(|holder| holder.session == session)
    }

    /// The other sessions that must give the lock back first: holders, and the first `before`
    /// waiters.
    fn blockers(&self, session: SessionId, is_shared: bool, before: usize) -> impl Iterator<Item = SessionId> {
        let holders = self.holders.iter().map(|holder| (holder.session, holder.is_shared));
        // A session that has the lock does not wait behind those that wait for it.
        let before = if self.is_held_by(session) { 0 } else { before };
        let waiters = self.waiters.iter().take(before).map(|waiter| (waiter.session, waiter.is_shared));
        let all = holders.chain(waiters);
        all.filter(move |(other, shares)| *other != session && !(is_shared && *shares)).map(|(other, _)| other)
    }

    fn grant(&mut self, session: SessionId, is_shared: bool, end: LockEnd) {
        let is_it = |holder: &&mut Holder| holder.session == session && holder.is_shared == is_shared;
        let counts = match self.holders.iter_mut().find(is_it) {
            Some(holder) => &mut holder.counts,
            None => {
                self.holders.push(Holder { session, is_shared, counts: [0; 3] });
                let Some(holder) = self.holders.last_mut() else { return };
                &mut holder.counts
            }
        };
        let [session, transaction, statement] = counts;
        let count = match end {
            LockEnd::Session => session,
            LockEnd::Transaction => transaction,
            LockEnd::Statement => statement,
        };
        *count = count.saturating_add(1);
    }
}

#[derive(Default)]
struct Table {
    locks: HashMap<AdvisoryKey, Lock>,
    /// The locks of each session.
    held: HashMap<SessionId, BTreeSet<AdvisoryKey>>,
    /// What sessions wait for: the lock, and whether it is shared.
    waits: HashMap<SessionId, (AdvisoryKey, bool)>,
    last_session: SessionId,
}

impl Table {
    fn grant(&mut self, key: AdvisoryKey, session: SessionId, is_shared: bool, end: LockEnd) {
        self.locks.entry(key).or_default().grant(session, is_shared, end);
        self.held.entry(session).or_default().insert(key);
    }

    /// Whether a wait would close a circle of sessions that wait for each other.
    fn is_circle(&self, session: SessionId, key: AdvisoryKey, is_shared: bool) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![(session, key, is_shared)];
        while let Some((waiting, key, is_shared)) = open.pop() {
            let Some(lock) = self.locks.get(&key) else { continue };
            let place = lock.waiters.iter().position(|waiter| waiter.session == waiting);
            for other in lock.blockers(waiting, is_shared, place.unwrap_or(lock.waiters.len())) {
                if other == session {
                    return true;
                }
                if let Some((key, is_shared)) = self.waits.get(&other).filter(|_| seen.insert(other)) {
                    open.push((other, *key, *is_shared));
                }
            }
        }
        false
    }

    /// Gives locks back: `change` changes how often a session has a lock in a mode. Grants the lock
    /// to waiters then, and returns whom to wake.
    fn give_back(&mut self, session: SessionId, key: AdvisoryKey, mut change: impl FnMut(&mut Holder)) -> Vec<Wake> {
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.holders.iter_mut().filter(|holder| holder.session == session).for_each(&mut change);
            lock.holders.retain(|holder| holder.counts.iter().any(|count| *count > 0));
            if !lock.is_held_by(session)
                && let Some(held) = self.held.get_mut(&session)
            {
                held.remove(&key);
                if held.is_empty() {
                    self.held.remove(&session);
                }
            }
        }
        self.serve(key)
    }

    /// Grants a lock to the waiters that have nobody before them.
    fn serve(&mut self, key: AdvisoryKey) -> Vec<Wake> {
        let mut woken = Vec::new();
        let mut at = 0;
        while let Some(lock) = self.locks.get_mut(&key) {
            let Some(waiter) = lock.waiters.get(at) else { break };
            if lock.blockers(waiter.session, waiter.is_shared, at).next().is_some() {
                at += 1;
                continue;
            }
            let Some(waiter) = lock.waiters.remove(at) else { break };
            self.waits.remove(&waiter.session);
            self.grant(key, waiter.session, waiter.is_shared, waiter.end);
            woken.push(waiter.wake);
        }
        if self.locks.get(&key).is_some_and(|lock| lock.holders.is_empty() && lock.waiters.is_empty()) {
            self.locks.remove(&key);
        }
        woken
    }
}

/// The advisory locks of a member.
#[derive(Default)]
pub struct AdvisoryLocks(Mutex<Table>);

impl fmt::Debug for AdvisoryLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdvisoryLocks").field("locks", &self.0.lock().locks.len()).finish()
    }
}

fn wake(all: Vec<Wake>) {
    // Outside of the lock of the table.
    all.into_iter().for_each(|wake| wake());
}

/// A place among the waiters of a lock. A dropped one gives the place back, and the lock if it was
/// granted meanwhile.
#[derive(Debug)]
pub struct AdvisoryWait {
    locks: Arc<AdvisoryLocks>,
    session: SessionId,
    key: AdvisoryKey,
    is_shared: bool,
    end: LockEnd,
    is_taken: bool,
}

impl AdvisoryWait {
    /// Takes the lock that was granted.
    pub fn take(mut self) {
        self.is_taken = true;
    }
}

impl Drop for AdvisoryWait {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let AdvisoryWait { session, key, is_shared, end, .. } = *self;
        let mut table = self.locks.0.lock();
        let woken = match table.waits.remove(&session) {
            Some(_) => {
                if let Some(lock) = table.locks.get_mut(&key) {
                    lock.waiters.retain(|waiter| waiter.session != session);
                }
                table.serve(key)
            }
            None => table.give_back(session, key, |holder| {
                if holder.is_shared == is_shared
                    && let Some(count) = holder.counts.get_mut(end as usize)
                {
                    *count = count.saturating_sub(1);
                }
            }),
        };
        drop(table);
        wake(woken);
    }
}

/// The advisory locks of a session. They end with it.
#[derive(Debug)]
pub(super) struct SessionLocks {
    locks: Arc<AdvisoryLocks>,
    session: SessionId,
}

impl SessionLocks {
    pub(super) fn of(locks: &Arc<AdvisoryLocks>) -> SessionLocks {
        let mut table = locks.0.lock();
        table.last_session += 1;
        SessionLocks { session: table.last_session, locks: locks.clone() }
    }

    /// Takes a lock if nobody has it; `false` if others do.
    pub(super) fn try_lock(&self, key: AdvisoryKey, is_shared: bool, end: LockEnd) -> Result<bool, SqlError> {
        let mut table = self.locks.0.lock();
        if table.locks.len() >= LOCKS_MAX && !table.locks.contains_key(&key) {
            let text = format!("too many advisory locks, expected at most {LOCKS_MAX}");
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("53200"));
        }
        if let Some(lock) = table.locks.get(&key)
            && lock.blockers(self.session, is_shared, lock.waiters.len()).next().is_some()
        {
            return Ok(false);
        }
        table.grant(key, self.session, is_shared, end);
        Ok(true)
    }

    /// Takes a lock, or a place among its waiters: `wake` is called when the lock is granted.
    pub(super) fn lock(
        &self,
        key: AdvisoryKey,
        is_shared: bool,
        end: LockEnd,
        wake: Wake,
    ) -> Result<Option<AdvisoryWait>, SqlError> {
        if self.try_lock(key, is_shared, end)? {
            return Ok(None);
        }
        let session = self.session;
        let mut table = self.locks.0.lock();
        let refused = |text: &str, sqlstate| Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate(sqlstate));
        if table.waits.contains_key(&session) {
            return refused("a session waits for one advisory lock at a time", "55000");
        }
        if table.is_circle(session, key, is_shared) {
            return refused("deadlock detected", "40P01");
        }
        table.waits.insert(session, (key, is_shared));
        table.locks.entry(key).or_default().waiters.push_back(Waiter { session, is_shared, end, wake });
        // The lock may have been given back since.
        let woken = table.serve(key);
        drop(table);
        self::wake(woken);
        Ok(Some(AdvisoryWait { locks: self.locks.clone(), session, key, is_shared, end, is_taken: false }))
    }

    /// Gives a lock of the session back once; `false` if the session does not have it.
    pub(super) fn unlock(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        let mut is_held = false;
        let mut table = self.locks.0.lock();
        let woken = table.give_back(self.session, key, |holder| {
            let [count, ..] = &mut holder.counts;
            if holder.is_shared == is_shared && *count > 0 {
                *count -= 1;
                is_held = true;
            }
        });
        drop(table);
        wake(woken);
        is_held
    }

    /// Gives all locks back that end with this.
    pub(super) fn end(&self, end: LockEnd) {
        self.end_all(|counts| {
            if let Some(count) = counts.get_mut(end as usize) {
                *count = 0;
            }
        });
    }

    fn end_all(&self, change: impl Fn(&mut [u32; 3])) {
        let mut table = self.locks.0.lock();
        let keys: Vec<AdvisoryKey> = table.held.get(&self.session).into_iter().flatten().copied().collect();
        let mut woken = Vec::new();
        for key in keys {
            woken.extend(table.give_back(self.session, key, |holder| change(&mut holder.counts)));
        }
        drop(table);
        wake(woken);
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.end_all(|counts| *counts = [0; 3]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const KEY: AdvisoryKey = AdvisoryKey::One(1);
    const OTHER: AdvisoryKey = AdvisoryKey::Two(0, 1);

    fn sessions() -> (Arc<AdvisoryLocks>, [SessionLocks; 3]) {
        let locks = Arc::new(AdvisoryLocks::default());
        let sessions = [(), (), ()].map(|()| SessionLocks::of(&locks));
        (locks, sessions)
    }

    fn counted(count: &Arc<AtomicUsize>) -> Wake {
        let count = count.clone();
        Box::new(move || _ = count.fetch_add(1, Ordering::Relaxed))
    }

    fn is_empty(locks: &AdvisoryLocks) -> bool {
        let table = locks.0.lock();
        table.locks.is_empty() && table.held.is_empty() && table.waits.is_empty()
    }

    #[test]
    fn a_lock_is_given_back_as_often_as_it_was_taken() {
        let (locks, [one, two, _]) = sessions();
        for _ in 0..2 {
            assert_eq!(one.try_lock(KEY, false, LockEnd::Session), Ok(true));
        }
        assert_eq!(two.try_lock(KEY, true, LockEnd::Session), Ok(false));
        assert!(one.unlock(KEY, false) && !one.unlock(KEY, true) && !two.unlock(KEY, false));
        assert_eq!(two.try_lock(KEY, false, LockEnd::Session), Ok(false));
        assert!(one.unlock(KEY, false) && !one.unlock(KEY, false));
        assert!(is_empty(&locks));
    }

    #[test]
    fn locks_end_with_what_they_belong_to() {
        let (locks, [one, two, _]) = sessions();
        for end in [LockEnd::Session, LockEnd::Transaction, LockEnd::Statement] {
            assert_eq!(one.try_lock(KEY, false, end), Ok(true));
        }
        for end in [LockEnd::Statement, LockEnd::Transaction] {
            one.end(end);
            assert_eq!(two.try_lock(KEY, false, LockEnd::Session), Ok(false));
        }
        assert_eq!(one.try_lock(OTHER, false, LockEnd::Transaction), Ok(true));
        one.end(LockEnd::Session);
        assert_eq!(two.try_lock(KEY, false, LockEnd::Session), Ok(true));
        assert_eq!(two.try_lock(OTHER, false, LockEnd::Session), Ok(false));
        drop(one);
        assert_eq!(two.try_lock(OTHER, false, LockEnd::Session), Ok(true));
        drop(two);
        assert!(is_empty(&locks));
    }

    #[test]
    fn waiters_are_served_in_order_and_shared_ones_together() {
        let (locks, [one, two, three]) = sessions();
        let count = Arc::new(AtomicUsize::new(0));
        assert_eq!(one.try_lock(KEY, false, LockEnd::Session), Ok(true));
        let second = two.lock(KEY, true, LockEnd::Session, counted(&count)).unwrap().unwrap();
        let third = three.lock(KEY, true, LockEnd::Session, counted(&count)).unwrap().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 0);
        assert!(one.unlock(KEY, false));
        assert_eq!(count.load(Ordering::Relaxed), 2);
        second.take();
        assert_eq!(one.try_lock(KEY, false, LockEnd::Session), Ok(false));
        // A wait that is given up gives back what it was granted.
        drop(third);
        assert!(!three.unlock(KEY, true) && two.unlock(KEY, true));
        assert!(is_empty(&locks));
    }

    #[test]
    fn a_wait_that_is_given_up_lets_those_behind_it_go_on() {
        let (locks, [one, two, three]) = sessions();
        let count = Arc::new(AtomicUsize::new(0));
        assert_eq!(one.try_lock(KEY, true, LockEnd::Session), Ok(true));
        let second = two.lock(KEY, false, LockEnd::Session, counted(&count)).unwrap();
        let third = three.lock(KEY, true, LockEnd::Session, counted(&count)).unwrap().unwrap();
        drop(second);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        third.take();
        drop((one, three));
        assert!(is_empty(&locks));
    }

    #[test]
    fn sessions_that_wait_for_each_other_are_told() {
        let (_, [one, two, three]) = sessions();
        let count = Arc::new(AtomicUsize::new(0));
        for (session, key) in [(&one, KEY), (&two, OTHER), (&three, AdvisoryKey::One(3))] {
            assert_eq!(session.try_lock(key, false, LockEnd::Session), Ok(true));
        }
        let first = one.lock(OTHER, false, LockEnd::Session, counted(&count)).unwrap();
        let second = two.lock(AdvisoryKey::One(3), false, LockEnd::Session, counted(&count)).unwrap();
        let refused = three.lock(KEY, true, LockEnd::Session, counted(&count));
        assert_eq!(refused.map(drop).map_err(|error| error.sqlstate()), Err("40P01"));
        drop((first, second));
    }
}
