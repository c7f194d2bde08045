//! The values that members have acknowledged to the leader of a term, and the value that majorities
//! of them have acknowledged.
//!
//! A leader has two such records: the times that its requests carried (`clock.rs`), and the times
//! at which the requests were sent, from which its lease counts. openraft has a record of the
//! latter as well. But with several requests in flight, openraft may take an answer for the answer
//! to a later request without entries that ends at the same position in the log: a lease from that
//! record would be too long. Here, each acknowledgement belongs to exactly the request that was
//! answered.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use crate::MemberId;

/// The greatest value that each member has acknowledged, in the latest acknowledged term.
#[derive(Debug)]
pub(crate) struct Acknowledged<T>(Mutex<(u64, BTreeMap<MemberId, T>)>);

impl<T> Default for Acknowledged<T> {
    fn default() -> Self {
        Acknowledged(Mutex::default())
    }
}

impl<T: Copy + Ord> Acknowledged<T> {
    /// Records that a member has accepted a request of the leader of a term. Acknowledgements of
    /// earlier terms are ignored.
    pub(crate) fn note(&self, term: u64, member: MemberId, value: T) {
        let mut known = self.0.lock();
        if known.0 < term {
            *known = (term, BTreeMap::new());
        }
        if known.0 == term {
            let greatest = known.1.entry(member).or_insert(value);
            *greatest = value.max(*greatest);
        }
    }

    /// Returns the greatest value such that a majority of each set of voters has acknowledged it,
    /// or a greater one, in a term. The leader itself has acknowledged `own`. `None` if too few
    /// members have acknowledged a value.
    pub(crate) fn by_majorities(
        &self,
        term: u64,
        leader: MemberId,
        own: T,
        voters: &[BTreeSet<MemberId>],
    ) -> Option<T> {
        let known = self.0.lock();
        let of_member = |member: &MemberId| match &*known {
            _ if *member == leader => Some(own),
            (of, values) if *of == term => values.get(member).copied(),
            _ => None,
        };
        let by_majority = |set: &BTreeSet<MemberId>| {
            let mut values: Vec<Option<T>> = set.iter().map(of_member).collect();
            values.sort_unstable_by(|one, other| other.cmp(one));
            values.get(values.len() / 2).copied().flatten()
        };
        voters.iter().map(by_majority).min().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEADER: MemberId = MemberId(1);

    fn voters(ids: &[u64]) -> BTreeSet<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    #[test]
    fn acknowledgements_count_in_their_term_alone() {
        let (known, three) = (Acknowledged::default(), [voters(&[1, 2, 3])]);
        let by = |term| known.by_majorities(term, LEADER, u64::MAX, &three);
        known.note(7, MemberId(2), 100);
        known.note(7, MemberId(2), 90);
        assert_eq!((by(6), by(7), by(8)), (None, Some(100), None));
        known.note(6, MemberId(3), 500);
        assert_eq!(by(7), Some(100));
        known.note(8, MemberId(3), 50);
        assert_eq!((by(7), by(8)), (None, Some(50)));
    }

    #[test]
    fn a_leader_alone_is_its_own_majority_and_nobody_is_none() {
        let known = Acknowledged::default();
        assert_eq!(known.by_majorities(1, LEADER, 9, &[voters(&[1])]), Some(9));
        assert_eq!(known.by_majorities(1, LEADER, 9, &[voters(&[2])]), None);
        assert_eq!(known.by_majorities(1, LEADER, 9, &[]), None);
    }

    proptest! {
        /// Checks by counting: more than half of each set has acknowledged the value, and there is
        /// no greater such value.
        #[test]
        fn the_value_is_the_greatest_that_more_than_half_of_each_set_have_reached(
            notes in prop::collection::vec((1_u64..8, 0_u64..20), 0..12),
            sets in prop::collection::vec(prop::collection::btree_set(1_u64..8, 1..6), 1..3),
            own in 0_u64..20,
        ) {
            let known = Acknowledged::default();
            let mut reached = BTreeMap::new();
            for (member, value) in notes {
                known.note(3, MemberId(member), value);
                let greatest = reached.entry(MemberId(member)).or_insert(value);
                *greatest = value.max(*greatest);
            }
            reached.insert(LEADER, own);
            let sets: Vec<BTreeSet<MemberId>> = sets.iter().map(|set| set.iter().copied().map(MemberId).collect()).collect();
            let has_majorities = |value: u64| {
                sets.iter().all(|set| {
                    let count = set.iter().filter(|member| reached.get(member).is_some_and(|it| *it >= value)).count();
                    count * 2 > set.len()
                })
            };
            let expected = (0..20).rev().find(|value| has_majorities(*value));
            prop_assert_eq!(known.by_majorities(3, LEADER, own, &sets), expected);
        }
    }
}
