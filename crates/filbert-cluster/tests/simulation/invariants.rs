//! The invariants of all members at all times. `main.rs` lists them.

use std::collections::{BTreeMap, BTreeSet};

use filbert_cluster::{Group, GroupStatus, MemberId};
use filbert_data::PartitionId;

use crate::cluster::{Cluster, Member, PARTITIONS};
use crate::runtime::{self, Sim};

/// The observations so far.
#[derive(Default)]
pub struct Seen {
    /// The leader, by group and term.
    leaders: BTreeMap<(u32, u64), MemberId>,
    marks: BTreeMap<(MemberId, u32), Mark>,
    /// The replicas that their members have tried to give up.
    begin_anew: BTreeSet<(MemberId, u32)>,
    /// The term of an applied entry, by group and index.
    applied: BTreeMap<(u32, u64), u64>,
    /// The term of the previous entry, by group, index and term.
    before: BTreeMap<(u32, u64, u64), u64>,
    /// The state of a group, by group and number of entries.
    states: BTreeMap<(u32, u64), Vec<u8>>,
    /// The sets of voters of an applied entry, by group and index.
    voters: BTreeMap<(u32, u64), Vec<BTreeSet<MemberId>>>,
    /// The entries that re-formed a group without a majority, by group and index. Their voters do
    /// not follow from earlier voters.
    reformed: BTreeSet<(u32, u64)>,
    /// The first entry that a holder of a lease has not committed, and the true time at which it
    /// was first seen in its log, by group and member.
    in_flight: BTreeMap<(u32, MemberId), (u64, u64)>,
    /// The longest time for which a holder of a lease has not committed an entry of its log.
    in_flight_ms_max: u64,
}

impl Seen {
    /// Records that a member tries to give up its replica of a group.
    pub fn may_begin_anew(&mut self, id: MemberId, group: u32) {
        self.begin_anew.insert((id, group));
    }

    /// The longest time for which an entry was in flight, in milliseconds. The time of reads stands
    /// still meanwhile.
    pub fn in_flight_ms_max(&self) -> u64 {
        self.in_flight_ms_max
    }

    /// Records whether the next entry of a holder of a lease is in flight.
    fn note_in_flight(&mut self, group: u32, member: MemberId, committed: Option<u64>, last: Option<u64>) {
        let next = committed.map_or(0, |index| index + 1);
        if last.is_none_or(|last| last < next) {
            self.in_flight.remove(&(group, member));
            return;
        }
        let now_ms = runtime::now_ns() / 1_000_000;
        let first = self.in_flight.entry((group, member)).or_insert((next, now_ms));
        if first.0 != next {
            *first = (next, now_ms);
        }
        self.in_flight_ms_max = self.in_flight_ms_max.max(now_ms - first.1);
    }

    /// Whether a group was re-formed, and may have lost entries of other members.
    pub fn has_reformed(&self) -> bool {
        !self.reformed.is_empty()
    }
}

/// The progress of a member in a group.
#[derive(Clone, Copy)]
struct Mark {
    /// The number of applied entries.
    applied: u64,
    committed: Option<u64>,
    term: u64,
    /// The time of the partition that is behind all others.
    time: i64,
}

/// The maximum number of states that are kept for comparisons. The earliest states are dropped.
const STATES_MAX: usize = 400;

impl Cluster {
    /// Prepares for a group that is re-formed from a copy that ends at index `last`: later entries
    /// are lost, and the voters change.
    pub fn forget_lost(&self, group: u32, last: u64) {
        let mut seen = self.0.invariants.lock().unwrap();
        let is_kept = |of: u32, index: u64| of != group || index <= last;
        seen.applied.retain(|(of, index), _| is_kept(*of, *index));
        // The keys are numbers of entries.
        seen.states.retain(|(of, count), _| is_kept(*of, count.saturating_sub(1)));
        seen.voters.retain(|(of, index), _| is_kept(*of, *index));
        seen.reformed.insert((group, last + 1));
    }

    pub fn check_invariants(&self) {
        let mut seen = self.0.invariants.lock().unwrap();
        let seen = &mut *seen;
        let members = self.0.members.lock().unwrap();
        for group in 0..self.0.settings.groups {
            let mut holders = Vec::new();
            let of_group = |member: &Member| member.groups[group as usize].clone();
            let all: Vec<_> = members.iter().map(|(id, member)| (id, member, of_group(member))).collect();
            for (id, status) in all.iter().map(|(id, _, of)| (id, of.status())).filter(|(_, status)| status.leads) {
                let first = seen.leaders.entry((group, status.term)).or_insert(**id);
                assert_eq!(first, *id, "one leader in term {}", status.term);
            }
            for (id, member, of) in &all {
                let status = of.status();
                assert_eq!(status.failure, None, "a group does not stop by itself: member {id}");
                self.check_progress(seen, **id, group, of, &status);
                self.check_log(seen, **id, group, of, &status);
                if let Some(term) = runtime::on(member.node, || of.has_lease()) {
                    holders.push(**id);
                    seen.note_in_flight(group, **id, status.committed, of.log_ids().last().map(|(index, _)| *index));
                    assert_eq!(status.serves, Some(term), "whoever has a lease knows that it leads: member {id}");
                }
            }
            assert!(holders.len() <= 1, "one holder of a lease of group {group}: {holders:?}");
        }
        while seen.states.len() > STATES_MAX {
            seen.states.pop_first();
        }
    }

    /// Checks that nothing goes back, and that applied entries are the same on all members.
    fn check_progress(&self, seen: &mut Seen, id: MemberId, group: u32, of: &Group<Sim>, status: &GroupStatus) {
        let (applied, state) = of.state();
        let applied = applied.map_or(0, |index| index + 1);
        let partitions = (0..PARTITIONS).filter(|id| id % self.0.settings.groups == group);
        let times = partitions.filter_map(|id| of.inspect(PartitionId(id), |partition| partition.time().0));
        let time = times.min().unwrap_or(i64::MIN);
        let now = Mark { applied, committed: status.committed, term: status.term, time };
        if let Some(before) = seen.marks.insert((id, group), now) {
            assert!(now.term >= before.term, "terms of a member do not go back");
            // A member that has given up its replica begins anew, and remembers the term.
            let begins_anew = applied == 0 && seen.begin_anew.contains(&(id, group));
            assert!(
                applied >= before.applied || begins_anew,
                "applied does not go back: member {id}, {} to {applied}",
                before.applied
            );
            assert!(now.committed >= before.committed || begins_anew, "what is committed does not go back");
            assert!(time >= before.time || begins_anew, "time does not go back");
        }
        assert!(status.applied <= status.committed, "only what is committed is applied");
        if !self.0.faults.snapshots_forget_locks {
            let same = seen.states.entry((group, applied)).or_insert_with(|| state.clone());
            assert!(*same == state, "replicas of group {group} differ at entry {applied}: member {id}");
        }
    }

    fn check_log(&self, seen: &mut Seen, id: MemberId, group: u32, of: &Group<Sim>, status: &GroupStatus) {
        let log = of.log_ids();
        let applied = status.applied.map_or(0, |index| index + 1);
        for (at, (index, term)) in log.iter().enumerate() {
            if *index < applied {
                let first = seen.applied.entry((group, *index)).or_insert(*term);
                assert_eq!(first, term, "what is applied stays: entry {index} of member {id}");
            }
            if at > 0 {
                let before = seen.before.entry((group, *index, *term)).or_insert(log[at - 1].1);
                assert_eq!(*before, log[at - 1].1, "logs that have an entry alike are alike before it: member {id}");
            }
        }
        let latest = seen.leaders.range((group, 0)..=(group, u64::MAX)).next_back();
        if let (true, Some((first, _))) = (status.leads && latest.is_some_and(|(_, leader)| *leader == id), log.first())
        {
            let has = |index: u64| log.get((index - first) as usize).map(|(_, term)| *term);
            let committed = seen.applied.range((group, *first)..=(group, u64::MAX));
            // A leader of a later term may exist already, and may not be observed yet.
            for ((_, index), term) in committed.filter(|(_, term)| **term <= status.term) {
                assert_eq!(has(*index), Some(*term), "a leader has what was committed: entry {index}, member {id}");
            }
        }
        for (index, voters) in of.voters_in_log().into_iter().filter(|(index, _)| *index < applied) {
            self.check_voters(seen, group, index, voters);
        }
        let settings = &self.0.settings;
        assert!(status.purged.is_none_or(|purged| purged < applied), "only what is applied is purged");
        assert!(status.log_bytes <= 2 * settings.log_bytes_max, "a log keeps to its limit");
        assert!(status.waiting_bytes <= settings.waiting_bytes_max, "what waits keeps to its limit");
        for (what, is_so) in [("joint", status.is_joint), ("purge", status.purged.is_some())] {
            if is_so {
                self.saw(what);
            }
        }
    }

    /// Majorities of consecutive configurations have a member in common: a configuration begins
    /// with the set that the previous one ends with.
    fn check_voters(&self, seen: &mut Seen, group: u32, index: u64, voters: Vec<BTreeSet<MemberId>>) {
        if seen.voters.contains_key(&(group, index)) {
            return;
        }
        let least = self.0.voters_min.load(std::sync::atomic::Ordering::SeqCst);
        assert!(voters.iter().all(|set| set.len() >= least), "never fewer voters than configured: {voters:?}");
        let follows = !seen.reformed.contains(&(group, index));
        if let (true, Some((_, before))) = (follows, seen.voters.range((group, 0)..(group, index)).next_back()) {
            assert!(before.last() == voters.first() || before == &voters, "{before:?} is followed by {voters:?}");
        }
        seen.voters.insert((group, index), voters);
    }
}
