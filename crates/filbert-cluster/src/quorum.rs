//! Since when a majority of voters is known to follow this member: the moments at which what they have acknowledged was sent.
//!
//! Each acknowledgement is of the very request that was answered. The library's own account may take an answer for one of a later request that
//! has no entries and ends at the same place in the log, where several are on their way at once: a lease by that account would be too long.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use crate::MemberId;

/// Acknowledgements of one term, in nanoseconds of the group's clock.
#[derive(Debug, Default)]
pub(crate) struct Quorum(Mutex<(u64, BTreeMap<MemberId, u64>)>);

impl Quorum {
    /// Takes note that a member has accepted a request of the leader of a term, which was sent no earlier than at that moment.
    pub(crate) fn acknowledged(&self, term: u64, member: MemberId, sent_ns: u64) {
        let mut known = self.0.lock();
        if known.0 < term {
            *known = (term, BTreeMap::new());
        }
        if known.0 == term {
            let latest = known.1.entry(member).or_insert(sent_ns);
            *latest = sent_ns.max(*latest);
        }
    }

    /// The latest moment such that majorities of all these sets of voters have acknowledged something that was sent then or later; the leader
    /// itself does at any time.
    pub(crate) fn since(&self, term: u64, leader: MemberId, voters: &[BTreeSet<MemberId>]) -> Option<u64> {
        let known = self.0.lock();
        let of_member = |member: &MemberId| match &*known {
            _ if *member == leader => Some(u64::MAX),
            (of, moments) if *of == term => moments.get(member).copied(),
            _ => None,
        };
        let by_majority = |set: &BTreeSet<MemberId>| {
            let mut moments: Vec<Option<u64>> = set.iter().map(of_member).collect();
            moments.sort_unstable_by(|one, other| other.cmp(one));
            moments.get(moments.len() / 2).copied().flatten()
        };
        voters.iter().map(by_majority).min().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters(ids: &[u64]) -> BTreeSet<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    #[test]
    fn a_majority_counts_with_the_leader_and_of_its_term() {
        let (quorum, five) = (Quorum::default(), [voters(&[1, 2, 3, 4, 5])]);
        let since = |quorum: &Quorum, term| quorum.since(term, MemberId(1), &five);
        quorum.acknowledged(7, MemberId(2), 100);
        assert_eq!(since(&quorum, 7), None);
        quorum.acknowledged(7, MemberId(3), 50);
        assert_eq!(since(&quorum, 7), Some(50));
        quorum.acknowledged(7, MemberId(3), 40);
        quorum.acknowledged(7, MemberId(4), 80);
        assert_eq!(since(&quorum, 7), Some(80));
        assert_eq!(since(&quorum, 8), None);
        quorum.acknowledged(6, MemberId(5), 500);
        assert_eq!(since(&quorum, 7), Some(80));
        quorum.acknowledged(8, MemberId(5), 500);
        assert_eq!((since(&quorum, 7), since(&quorum, 8)), (None, None));
    }

    #[test]
    fn each_of_two_sets_of_voters_counts() {
        let quorum = Quorum::default();
        let joint = [voters(&[1, 2, 3]), voters(&[4, 5, 6])];
        for (member, sent) in [(2, 90), (4, 70), (5, 60)] {
            quorum.acknowledged(1, MemberId(member), sent);
        }
        // A leader that does not vote needs two of the second set.
        assert_eq!(quorum.since(1, MemberId(1), &joint), Some(60));
        assert_eq!(quorum.since(1, MemberId(1), &joint[..1]), Some(90));
        assert_eq!(quorum.since(1, MemberId(1), &[voters(&[1])]), Some(u64::MAX));
        assert_eq!(quorum.since(1, MemberId(1), &[]), None);
    }
}
