//! The time of a group: goes forward whoever leads, whatever the members' times of day are.
//!
//! Commands happen at their leader's stamp, which is in the log. Reads see expiry by the leader's clock, and leave nothing in the log:
//! a new leader whose time of day is behind would show again what the old one had found expired. So a leader reads at no time that a
//! majority has not been told of before:
//!
//! ```text
//!  leader: promise = time of day + a reserve ──► every request ──► member: seen = max(seen, promise)
//!          granted = the promise that a majority has seen  ◄── every answer ◄── promise or seen, the later one
//!          a read happens at min(granted, max(seen, time of day), stamps of entries on their way), and at the latest stamp applied at least
//!
//!  candidate: seen = max(seen, that of all who vote for it): not earlier than any read before
//! ```
//!
//! Who votes for a new leader has not acknowledged anything of the old one since: an answer that refuses the old leader's term does not
//! count. What a majority has seen is known to some voter of every later leader. Changes of members keep to this as
//! entries do, since the requests that bring them carry the promise as well.
//!
//! An entry that is on its way has its stamp already. A read at a later time would see expired what the entry still finds, and not
//! what the entry writes: there is no order of the two. So reads stay at the stamp until the entry is applied. An entry is appended in
//! the term of its stamp or not at all: another leader may have gone on since.
//!
//! While answers are late, reads stay at the time that was granted; a new leader is ahead of the old one's time by the reserve at most, and stays
//! there until its own time of day has come so far.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use filbert_store::Millis;
use parking_lot::Mutex;

use crate::MemberId;
use crate::acknowledged::Acknowledged;
use crate::group::WallClock;

/// The time of a group on one member.
pub(crate) struct GroupClock {
    wall: Arc<dyn WallClock>,
    reserve_ms: i64,
    /// The latest time that this member knows of: of stamps, of other leaders' promises, of its own reads.
    seen: AtomicI64,
    /// The latest time that this member has told others: reads of its own may come up to it.
    promised: AtomicI64,
    /// The latest time that every later leader will know of.
    granted: AtomicI64,
    /// The latest stamp of an entry that is applied here, or is being applied: what is told of it is not undone by an earlier read.
    applied: AtomicI64,
    /// The latest time of a leader's reads that this member has come to: where it does not lead, it reads at this time.
    reached: AtomicI64,
    /// The stamp of the oldest entry on its way, and what was seen before it while it is being given; the greatest time if there is
    /// none.
    oldest_on_way: AtomicI64,
    /// Terms and stamps of this member's entries on their way. Held while a stamp is given.
    on_way: Mutex<Vec<(u64, Millis)>>,
    /// What members have seen, as their answers in a term have said.
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
            oldest_on_way: AtomicI64::new(i64::MAX),
            on_way: Mutex::default(),
            acknowledged: Acknowledged::default(),
        }
    }

    /// Takes note of a time that another member knows.
    pub(crate) fn learn(&self, time: Millis) {
        self.seen.fetch_max(time.0, Ordering::SeqCst);
    }

    /// Takes note of the stamp of an entry that is applied: every later leader has applied it, too.
    pub(crate) fn applied(&self, stamp: Millis) {
        self.learn(stamp);
        self.granted.fetch_max(stamp.0, Ordering::SeqCst);
        self.applied.fetch_max(stamp.0, Ordering::SeqCst);
    }

    /// Takes note of the time of a read point, to which this member has come: every later leader knows of it.
    pub(crate) fn reached(&self, time: Millis) {
        self.learn(time);
        self.granted.fetch_max(time.0, Ordering::SeqCst);
        self.reached.fetch_max(time.0, Ordering::SeqCst);
    }

    /// The latest time of a read point to which this member has come.
    pub(crate) fn latest_reached(&self) -> Option<Millis> {
        Some(self.reached.load(Ordering::SeqCst)).filter(|time| *time != i64::MIN).map(Millis)
    }

    fn now(&self) -> Millis {
        let wall = self.wall.now().0;
        Millis(self.seen.fetch_max(wall, Ordering::SeqCst).max(wall))
    }

    /// Stamps an entry of a term in which this member leads.
    pub(crate) fn stamp(self: &Arc<Self>, term: u64) -> Stamp {
        let mut on_way = self.on_way.lock();
        if on_way.is_empty() {
            // A read that finds nothing on its way has made its time seen before: the stamp is no earlier.
            self.oldest_on_way.store(self.seen.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        let time = self.now();
        on_way.push((term, time));
        self.follow_oldest(&on_way);
        Stamp { clock: Arc::clone(self), term, time }
    }

    fn follow_oldest(&self, on_way: &[(u64, Millis)]) {
        let oldest = on_way.iter().map(|(_, time)| time.0).min();
        self.oldest_on_way.store(oldest.unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Leaves stamps of earlier terms: their entries are applied, or will never be appended.
    pub(crate) fn begin_term(&self, term: u64) {
        let mut on_way = self.on_way.lock();
        on_way.retain(|(of, _)| *of >= term);
        self.follow_oldest(&on_way);
    }

    /// The time of a read, by whoever has a lease.
    pub(crate) fn read(&self) -> Millis {
        let now = self.now().0;
        let on_way = self.oldest_on_way.load(Ordering::SeqCst);
        let by_promise = now.min(on_way).min(self.granted.load(Ordering::SeqCst));
        Millis(by_promise.max(self.applied.load(Ordering::SeqCst)))
    }

    /// Promises that reads stay before a time, which the request of a leader carries.
    pub(crate) fn promise(&self) -> Millis {
        let promise = self.wall.now().plus(self.reserve_ms).0;
        self.promised.fetch_max(promise, Ordering::SeqCst);
        self.told()
    }

    /// The latest time of all: what a message to another member carries.
    pub(crate) fn told(&self) -> Millis {
        Millis(self.promised.load(Ordering::SeqCst).max(self.seen.load(Ordering::SeqCst)))
    }

    /// Takes note that a member has accepted a request of the leader of a term, and knows of a time.
    pub(crate) fn acknowledged(&self, term: u64, member: MemberId, time: Millis) {
        self.acknowledged.note(term, member, time);
    }

    /// Lets reads go on to what majorities of all these sets of voters have acknowledged in a term; `false` if there is no such time
    /// yet, and no read may be served.
    pub(crate) fn grant(&self, term: u64, leader: MemberId, voters: &[BTreeSet<MemberId>]) -> bool {
        let granted = self.acknowledged.by_majorities(term, leader, self.told(), voters);
        let Some(granted) = granted else { return false };
        self.granted.fetch_max(granted.0, Ordering::SeqCst);
        true
    }
}

/// The time of an entry. Dropped when the entry is applied, or is known not to be on its way.
pub(crate) struct Stamp {
    clock: Arc<GroupClock>,
    term: u64,
    pub(crate) time: Millis,
}

impl Drop for Stamp {
    fn drop(&mut self) {
        let mut on_way = self.clock.on_way.lock();
        if let Some(place) = on_way.iter().position(|entry| *entry == (self.term, self.time)) {
            on_way.swap_remove(place);
        }
        self.clock.follow_oldest(&on_way);
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
        // Answers of an earlier term say nothing in this one.
        assert!(!leader.grant(8, MemberId(1), &three));
        leader.acknowledged(7, MemberId(3), Millis(9_000));
        assert!(!leader.grant(8, MemberId(1), &three));
    }

    #[test]
    fn reads_stay_at_the_stamps_of_entries_on_their_way() {
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
