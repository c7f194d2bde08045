//! The clock of a group. It never goes back, whichever member leads and whatever the wall clocks of
//! members are.
//!
//! Commands happen at the stamp of their leader, which is in the log. Reads use the leader's clock
//! for expiry, and leave nothing in the log: a new leader with a wall clock that is behind would
//! return entries that the old leader had already found expired. Therefore a leader reads only at
//! times that it has announced to a majority before:
//!
//! ```text
//!  leader: promise = wall clock + reserve ──► every request ──► member: seen = max(seen, promise)
//!          granted = promise that a majority has seen ◄── every answer ◄── max(promise, seen)
//!          read time = min(granted, max(seen, wall clock), stamps of entries in flight),
//!                      but at least the latest stamp applied
//!
//!  candidate: seen = max(seen, seen of all its voters): not earlier than any read before
//! ```
//!
//! A member that votes for a new leader acknowledges nothing of the old leader afterwards: an
//! answer that rejects the old leader's term does not count. So each later leader has a voter that
//! has seen the granted time. The same holds during changes of members, because the requests with
//! membership entries carry the promise as well.
//!
//! An entry in flight already has its stamp. A read at a later time would find keys expired that
//! the entry still finds alive, and would not see the values that the entry writes: the two would
//! have no order. So reads stay at the stamp until the entry is applied. An entry is appended in
//! the term of its stamp or not at all, because another leader may have continued since.
//!
//! While answers are late, reads stay at the granted time. A new leader is ahead of the old
//! leader's time by the reserve at most, and stays there until its own wall clock has reached that
//! time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use filbert_store::Millis;
use parking_lot::Mutex;

use crate::MemberId;
use crate::acknowledged::Acknowledged;

/// A wall clock, in milliseconds since the Unix epoch. It may jump: groups never go back.
pub trait WallClock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Millis;
}

/// The clock of a group on one member.
pub(crate) struct GroupClock {
    wall: Arc<dyn WallClock>,
    reserve_ms: i64,
    /// The latest time that this member knows: from stamps, from promises of other leaders, and
    /// from its own reads.
    seen: AtomicI64,
    /// The latest time that this member has announced to other members: its own reads may reach it.
    promised: AtomicI64,
    /// The latest time that every later leader will know of.
    granted: AtomicI64,
    /// The latest stamp of an entry that is applied here, or is being applied. A read is never
    /// earlier, so that it does not contradict replies and reports of the entry.
    applied: AtomicI64,
    /// The latest read point that this member has reached. If it does not lead, it reads at this
    /// time.
    reached: AtomicI64,
    /// The stamp of the oldest entry in flight. While a stamp is being assigned: the time seen
    /// before it. The greatest time if no entry is in flight.
    oldest_in_flight: AtomicI64,
    /// Terms and stamps of this member's entries in flight. Held while a stamp is assigned.
    in_flight: Mutex<Vec<(u64, Millis)>>,
    /// The times that members have seen, from their answers in a term.
    acknowledged: Acknowledged<Millis>,
}

impl GroupClock {
    pub(crate) fn new(wall: Arc<dyn WallClock>, reserve_ms: i64) -> Self {
        let beginning = || AtomicI64::new(i64::MIN);
        GroupClock {
            wall,
            reserve_ms,
            seen: beginning(),
            promised: beginning(),
            granted: beginning(),
            applied: beginning(),
            reached: beginning(),
            oldest_in_flight: AtomicI64::new(i64::MAX),
            in_flight: Mutex::default(),
            acknowledged: Acknowledged::default(),
        }
    }

    /// Records a time that another member knows.
    pub(crate) fn learn(&self, time: Millis) {
        self.seen.fetch_max(time.0, Ordering::SeqCst);
    }

    /// Records the stamp of an entry that is applied: every later leader has applied it, too.
    pub(crate) fn applied(&self, stamp: Millis) {
        self.learn(stamp);
        self.granted.fetch_max(stamp.0, Ordering::SeqCst);
        self.applied.fetch_max(stamp.0, Ordering::SeqCst);
    }

    /// Records the time of a read point that this member has reached: every later leader knows of
    /// it.
    pub(crate) fn reached(&self, time: Millis) {
        self.learn(time);
        self.granted.fetch_max(time.0, Ordering::SeqCst);
        self.reached.fetch_max(time.0, Ordering::SeqCst);
    }

    /// The latest time of a read point that this member has reached.
    pub(crate) fn latest_reached(&self) -> Option<Millis> {
        Some(self.reached.load(Ordering::SeqCst)).filter(|time| *time != i64::MIN).map(Millis)
    }

    fn now(&self) -> Millis {
        let wall = self.wall.now().0;
        Millis(self.seen.fetch_max(wall, Ordering::SeqCst).max(wall))
    }

    /// Stamps an entry of a term in which this member leads.
    pub(crate) fn stamp(self: &Arc<Self>, term: u64) -> Stamp {
        let mut in_flight = self.in_flight.lock();
        if in_flight.is_empty() {
            // A read that finds no entry in flight has recorded its time in `seen` before: the
            // stamp is no earlier.
            self.oldest_in_flight.store(self.seen.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        let time = self.now();
        in_flight.push((term, time));
        self.follow_oldest(&in_flight);
        Stamp { clock: Arc::clone(self), term, time }
    }

    fn follow_oldest(&self, in_flight: &[(u64, Millis)]) {
        let oldest = in_flight.iter().map(|(_, time)| time.0).min();
        self.oldest_in_flight.store(oldest.unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Discards stamps of earlier terms: their entries are applied, or will never be appended.
    pub(crate) fn begin_term(&self, term: u64) {
        let mut in_flight = self.in_flight.lock();
        in_flight.retain(|(of, _)| *of >= term);
        self.follow_oldest(&in_flight);
    }

    /// The time of a read, for a member with a lease.
    pub(crate) fn read(&self) -> Millis {
        let now = self.now().0;
        let in_flight = self.oldest_in_flight.load(Ordering::SeqCst);
        let by_promise = now.min(in_flight).min(self.granted.load(Ordering::SeqCst));
        Millis(by_promise.max(self.applied.load(Ordering::SeqCst)))
    }

    /// Promises that reads are not later than a time, which the leader's next request carries.
    /// Returns the latest known or promised time.
    pub(crate) fn promise(&self) -> Millis {
        let promise = self.wall.now().plus(self.reserve_ms).0;
        self.promised.fetch_max(promise, Ordering::SeqCst);
        self.known_time()
    }

    /// The latest known or promised time. Each message to another member carries it.
    pub(crate) fn known_time(&self) -> Millis {
        Millis(self.promised.load(Ordering::SeqCst).max(self.seen.load(Ordering::SeqCst)))
    }

    /// Records that a member has accepted a request of the leader of a term, and has seen a time.
    pub(crate) fn acknowledged(&self, term: u64, member: MemberId, time: Millis) {
        self.acknowledged.note(term, member, time);
    }

    /// Advances the read time to the time that majorities of all these sets of voters have
    /// acknowledged in a term. Returns `false` if there is no such time yet, and no read may be
    /// served.
    pub(crate) fn grant(&self, term: u64, leader: MemberId, voters: &[BTreeSet<MemberId>]) -> bool {
        let granted = self.acknowledged.by_majorities(term, leader, self.known_time(), voters);
        let Some(granted) = granted else { return false };
        self.granted.fetch_max(granted.0, Ordering::SeqCst);
        true
    }
}

/// The stamp of an entry in flight. Dropped when the entry is applied, or is known not to be in
/// flight.
pub(crate) struct Stamp {
    clock: Arc<GroupClock>,
    term: u64,
    pub(crate) time: Millis,
}

impl Drop for Stamp {
    fn drop(&mut self) {
        let mut in_flight = self.clock.in_flight.lock();
        if let Some(place) = in_flight.iter().position(|entry| *entry == (self.term, self.time)) {
            in_flight.swap_remove(place);
        }
        self.clock.follow_oldest(&in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wall(AtomicI64);

    impl WallClock for Wall {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::SeqCst))
        }
    }

    fn clock(now: i64) -> (Arc<Wall>, Arc<GroupClock>) {
        let wall = Arc::new(Wall(AtomicI64::new(now)));
        (Arc::clone(&wall), Arc::new(GroupClock::new(wall, 200)))
    }

    fn voters(ids: &[u64]) -> BTreeSet<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    #[test]
    fn reads_stay_at_what_a_majority_has_seen() {
        let (wall, leader) = clock(1_000);
        let three = [voters(&[1, 2, 3])];
        assert!(!leader.grant(7, MemberId(1), &three), "nobody has answered");
        assert_eq!(leader.promise(), Millis(1_200));
        leader.acknowledged(7, MemberId(2), Millis(1_200));
        assert!(leader.grant(7, MemberId(1), &three));
        assert_eq!(leader.read(), Millis(1_000));
        wall.0.store(5_000, Ordering::SeqCst);
        assert_eq!((leader.read(), leader.stamp(7).time), (Millis(1_200), Millis(5_000)));
        // Answers of an earlier term do not count in this one.
        assert!(!leader.grant(8, MemberId(1), &three));
        leader.acknowledged(7, MemberId(3), Millis(9_000));
        assert!(!leader.grant(8, MemberId(1), &three));
    }

    #[test]
    fn reads_stay_at_the_stamps_of_entries_in_flight() {
        let (wall, leader) = clock(1_000);
        leader.promise();
        assert!(leader.grant(1, MemberId(1), &[voters(&[1])]));
        let first = leader.stamp(1);
        wall.0.store(1_100, Ordering::SeqCst);
        let second = leader.stamp(1);
        assert_eq!((first.time, second.time, leader.read()), (Millis(1_000), Millis(1_100), Millis(1_000)));
        drop(first);
        assert_eq!(leader.read(), Millis(1_100));
        wall.0.store(1_150, Ordering::SeqCst);
        drop(second);
        assert_eq!(leader.read(), Millis(1_150));
        let lost = leader.stamp(1);
        wall.0.store(1_160, Ordering::SeqCst);
        leader.begin_term(2);
        assert_eq!(leader.read(), Millis(1_160), "it was not applied in its term");
        drop(lost);
    }

    #[test]
    fn both_sets_of_voters_must_have_seen_it() {
        let (_, leader) = clock(1_000);
        let joint = [voters(&[1, 2, 3]), voters(&[1, 4, 5])];
        leader.promise();
        leader.acknowledged(1, MemberId(2), Millis(1_200));
        assert!(!leader.grant(1, MemberId(1), &joint));
        leader.acknowledged(1, MemberId(5), Millis(900));
        assert!(leader.grant(1, MemberId(1), &joint));
        assert_eq!(leader.read(), Millis(900));
    }

    #[test]
    fn a_new_leader_does_not_go_back_however_late_its_time_of_day_is() {
        let (_, behind) = clock(300);
        behind.learn(Millis(1_200));
        assert_eq!((behind.stamp(2).time, behind.promise()), (Millis(1_200), Millis(1_200)));
        assert!(behind.grant(2, MemberId(1), &[voters(&[1])]));
        assert_eq!(behind.read(), Millis(1_200));
        behind.applied(Millis(4_000));
        assert_eq!(behind.read(), Millis(4_000));
    }
}
