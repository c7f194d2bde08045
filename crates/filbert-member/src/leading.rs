//! Who leads which group, as far as this member knows: from its own groups, and from what others say of theirs.
//!
//! A member says what it leads to all others, when that changes and once a second. What is known of a group is the latest term; so the sum of
//! all terms grows with each change of leaders, and is no less on a member that knows more. With it come figures of the groups, for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use filbert_cluster::{BootRuntime, Group, GroupId, GroupStatus, MemberId, StateMachine};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What was said so long ago does not count as known any more: three times between two times that it is said.
pub(crate) const FRESH: Duration = Duration::from_secs(3);

/// A group that a member leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Led {
    pub(crate) group: u32,
    pub(crate) term: u64,
    /// Its voters. A member that was taken out of them is told by nobody else.
    pub(crate) voters: BTreeSet<u64>,
    /// Those that follow without a vote.
    #[serde(default)]
    pub(crate) followers: BTreeSet<u64>,
}

/// The groups that a member leads, the registry's among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leading {
    pub(crate) groups: Vec<Led>,
}

/// Figures of a group that a member leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) group: u32,
    pub(crate) committed: u64,
    /// By voter, the entries that it has still to get, where that is known.
    pub(crate) voters: BTreeMap<u64, Option<u64>>,
    pub(crate) learners: BTreeMap<u64, Option<u64>>,
    pub(crate) log_entries: u64,
    pub(crate) log_bytes: u64,
    pub(crate) is_joint: bool,
    /// Bytes of its partitions.
    #[serde(default)]
    pub(crate) data_bytes: u64,
}

/// What a member says to all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// The cluster that it is in.
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    /// The epoch that it is in.
    #[serde(default)]
    pub(crate) epoch: u64,
    /// Its time of day, in Unix milliseconds.
    #[serde(default)]
    pub(crate) now_ms: Option<i64>,
    pub(crate) leading: Leading,
    pub(crate) figures: Vec<Figures>,
    /// Whether clients are let in at it. A member that does not say so does.
    #[serde(default = "yes")]
    pub(crate) serves: bool,
    /// Whether it was asked statements lately.
    #[serde(default)]
    pub(crate) is_asked: bool,
    /// Whether it is to be brought all groups, for statements.
    #[serde(default)]
    pub(crate) follows: bool,
}

fn yes() -> bool {
    true
}

/// What whoever says it is to the member that hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// A member, or one that is not known of yet.
    Member,
    /// It was a member, and was taken out.
    TakenOut,
    /// It is of another cluster.
    Stranger,
    /// The cluster has gone on without it, in this epoch.
    LeftBehind(u64),
    /// The cluster has gone on with it, in this epoch, which it has not heard of.
    Behind(u64),
}

/// The figures of a group, if this member leads it.
pub(crate) fn figures<S: StateMachine>(id: GroupId, group: &Group<BootRuntime, S>, data_bytes: u64) -> Option<Figures> {
    group.has_lease()?;
    Some(figures_of(id, group.member(), &group.status(), data_bytes))
}

fn figures_of(id: GroupId, leader: MemberId, status: &GroupStatus, data_bytes: u64) -> Figures {
    let committed = status.committed.unwrap_or(0);
    let lag = |id: &MemberId| {
        let matched = if *id == leader { Some(committed) } else { status.matched.get(id).copied() };
        (id.0, matched.map(|matched| committed.saturating_sub(matched)))
    };
    Figures {
        group: id.0,
        committed,
        voters: status.voters.iter().map(lag).collect(),
        learners: status.learners.iter().map(lag).collect(),
        log_entries: status.log_entries as u64,
        log_bytes: status.log_bytes as u64,
        is_joint: status.is_joint,
        data_bytes,
    }
}

/// What is known of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) term: u64,
    pub(crate) leader: MemberId,
    pub(crate) voters: BTreeSet<u64>,
    pub(crate) followers: BTreeSet<u64>,
    /// When its leader said so last.
    pub(crate) said: Instant,
    pub(crate) figures: Figures,
}

impl Known {
    /// Who leads, if that was said a moment ago.
    pub(crate) fn leader_now(&self) -> Option<MemberId> {
        (self.said.elapsed() < FRESH).then_some(self.leader)
    }
}

/// The leaders of all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaders {
    /// By group: the latest term that is known.
    known: BTreeMap<u32, Known>,
}

impl Leaders {
    /// Takes note of what a member says of groups that there are; whether a leader is new.
    pub(crate) fn hear(&mut self, member: MemberId, leading: &Leading, is_group: impl Fn(GroupId) -> bool) -> bool {
        let (mut news, said) = (false, Instant::now());
        for Led { group, term, voters, followers } in leading.groups.iter().filter(|led| is_group(GroupId(led.group))) {
            let (voters, followers) = (voters.clone(), followers.clone());
            match self.known.get_mut(group) {
                Some(known) if known.term > *term => {}
                Some(known) if known.term == *term => {
                    (known.voters, known.followers, known.said) = (voters, followers, said);
                }
                before => {
                    news = true;
                    // As large as it was, until its leader says so.
                    let data_bytes = before.map_or(0, |known| known.figures.data_bytes);
                    let figures = Figures { data_bytes, ..Figures::default() };
                    let known = Known { term: *term, leader: member, voters, followers, said, figures };
                    self.known.insert(*group, known);
                }
            }
        }
        news
    }

    /// Takes note of the figures of groups that a member leads.
    pub(crate) fn hear_figures(&mut self, member: MemberId, figures: Vec<Figures>) {
        for figures in figures {
            if let Some(known) = self.known.get_mut(&figures.group).filter(|known| known.leader == member) {
                known.figures = figures;
            }
        }
    }

    /// What is known of a group.
    pub(crate) fn of(&self, group: GroupId) -> Option<&Known> {
        self.known.get(&group.0)
    }

    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.of(group).map(|known| known.leader)
    }

    /// Whether a member votes in any group, as the leaders have said last.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.known.values().any(|known| known.voters.contains(&member.0))
    }

    /// Bytes of all groups' partitions, as their leaders have said last.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.known.values().map(|known| known.figures.data_bytes).fold(0, u64::saturating_add)
    }

    /// Grows with each change of leaders.
    pub(crate) fn version(&self) -> i32 {
        let terms = self.known.values().map(|known| known.term).fold(0, u64::saturating_add);
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
                .map(|(group, term, voter)| Led {
                    group: *group,
                    term: *term,
                    voters: [*voter].into(),
                    followers: BTreeSet::new(),
                })
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

    #[test]
    fn figures_count_from_the_leader_alone() {
        let mut leaders = Leaders::default();
        let led = Led { group: 0, term: 1, voters: [1, 2].into(), followers: BTreeSet::new() };
        let led = Leading { groups: vec![led] };
        assert!(leaders.hear(MemberId(1), &led, |_| true));
        let figures = |committed| Figures { committed, ..Figures::default() };
        leaders.hear_figures(MemberId(1), vec![figures(7), Figures { group: 5, ..figures(8) }]);
        leaders.hear_figures(MemberId(2), vec![figures(9)]);
        assert_eq!(leaders.of(GroupId(0)).map(|known| known.figures.committed), Some(7));
        assert!(leaders.of(GroupId(5)).is_none());
    }
}
