//! Who leads which group, as far as this member knows: from its own groups, and from what others say of theirs.
//!
//! A member says what it leads to all others, when that changes and once a second. What is known of a group is the latest term; so the sum of
//! all terms grows with each change of leaders, and is no less on a member that knows more.

use std::collections::{BTreeMap, BTreeSet};

use filbert_cluster::{GroupId, MemberId};
use serde::{Deserialize, Serialize};

/// A group that a member leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Led {
    pub(crate) group: u32,
    pub(crate) term: u64,
    /// Its voters. A member that was taken out of them is told by nobody else.
    pub(crate) voters: BTreeSet<u64>,
}

/// The groups that a member leads, the registry's among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leading {
    pub(crate) groups: Vec<Led>,
}

/// The leaders of all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaders {
    /// By group: the latest term that is known, its leader, and the voters.
    known: BTreeMap<u32, (u64, MemberId, BTreeSet<u64>)>,
}

impl Leaders {
    /// Takes note of what a member says of groups that there are; whether a leader is new.
    pub(crate) fn hear(&mut self, member: MemberId, leading: &Leading, is_group: impl Fn(GroupId) -> bool) -> bool {
        let mut news = false;
        for Led { group, term, voters } in leading.groups.iter().filter(|led| is_group(GroupId(led.group))) {
            let known = self.known.entry(*group).or_insert((0, member, BTreeSet::new()));
            if known.0 < *term {
                news = true;
                *known = (*term, member, voters.clone());
            } else if known.0 == *term {
                known.2.clone_from(voters);
            }
        }
        news
    }

    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.known.get(&group.0).map(|(_, member, _)| *member)
    }

    /// Whether a member votes in any group, as the leaders have said last.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.known.values().any(|(_, _, voters)| voters.contains(&member.0))
    }

    /// Grows with each change of leaders.
    pub(crate) fn version(&self) -> i32 {
        let terms = self.known.values().map(|(term, ..)| *term).fold(0, u64::saturating_add);
        i32::try_from(terms).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_term_counts_in_whatever_order_it_is_heard_of() {
        let of = |groups: &[(u32, u64, u64)]| Leading {
            groups: groups
                .iter()
                .map(|(group, term, voter)| Led { group: *group, term: *term, voters: [*voter].into() })
                .collect(),
        };
        let two = |group: GroupId| group.0 < 2;
        let mut leaders = Leaders::default();
        assert!(leaders.hear(MemberId(1), &of(&[(0, 3, 1), (1, 1, 1)]), two));
        assert!(!leaders.hear(MemberId(1), &of(&[(0, 3, 8), (1, 1, 8)]), two));
        assert!(!leaders.hear(MemberId(2), &of(&[(0, 2, 9)]), two));
        assert_eq!((leaders.leader(GroupId(0)), leaders.version()), (Some(MemberId(1)), 4));
        assert_eq!([1, 8, 9].map(|id| leaders.votes(MemberId(id))), [false, true, false]);
        assert!(leaders.hear(MemberId(2), &of(&[(0, 4, 1), (7, 9, 1)]), two));
        assert_eq!((leaders.leader(GroupId(0)), leaders.leader(GroupId(7))), (Some(MemberId(2)), None));
        assert_eq!(leaders.version(), 5);
    }
}
