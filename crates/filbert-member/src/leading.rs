//! The leader of each group as far as this member knows: from its own groups, and from the
//! announcements of other members.
//!
//! A member announces the groups that it leads to all other members, at each change and once a
//! second. For each group the latest known term counts. So the sum of all terms grows with each
//! change of leaders, and a member that knows more has no lower sum. An announcement also carries
//! figures of the groups, for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use filbert_cluster::{BootRuntime, Group, GroupId, GroupStatus, MemberId, StateMachine};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The time after which an announcement is out of date: three intervals between announcements.
pub(crate) const FRESH: Duration = Duration::from_secs(3);

/// A group that a member leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Led {
    pub(crate) group: u32,
    pub(crate) term: u64,
    /// The voters of the group. A member that was removed from them learns it only from here.
    pub(crate) voters: BTreeSet<u64>,
}

/// The groups that a member leads, the registry among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leading {
    pub(crate) groups: Vec<Led>,
}

/// The figures of a group, as its leader announces them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) group: u32,
    pub(crate) committed: u64,
    /// The number of entries that each voter still lacks, by voter. `None` = unknown.
    pub(crate) voters: BTreeMap<u64, Option<u64>>,
    pub(crate) learners: BTreeMap<u64, Option<u64>>,
    pub(crate) log_entries: u64,
    pub(crate) log_bytes: u64,
    pub(crate) is_joint: bool,
}

/// The announcement that a member sends to all other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// The cluster of the sender.
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    /// The epoch of the sender.
    #[serde(default)]
    pub(crate) epoch: u64,
    /// The clock of the sender, in Unix milliseconds.
    #[serde(default)]
    pub(crate) now_ms: Option<i64>,
    pub(crate) leading: Leading,
    pub(crate) figures: Vec<Figures>,
    /// Whether the sender accepts clients. True if the field is missing.
    #[serde(default = "yes")]
    pub(crate) serves: bool,
}

fn yes() -> bool {
    true
}

/// The standing of the sender of an announcement, in the view of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// A member, or a member that the receiver does not know yet.
    Member,
    /// A former member, which was removed.
    TakenOut,
    /// A member of another cluster.
    Stranger,
    /// A member that the cluster has left behind when it entered this epoch.
    LeftBehind(u64),
    /// A member that is still in the cluster, but has not entered this epoch yet.
    Behind(u64),
}

/// Returns the figures of a group, if this member leads it.
pub(crate) fn figures<S: StateMachine>(id: GroupId, group: &Group<BootRuntime, S>) -> Option<Figures> {
    group.has_lease()?;
    Some(figures_of(id, group.member(), &group.status()))
}

fn figures_of(id: GroupId, leader: MemberId, status: &GroupStatus) -> Figures {
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
    }
}

/// The knowledge about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) term: u64,
    pub(crate) leader: MemberId,
    pub(crate) voters: BTreeSet<u64>,
    /// The time of the leader's last announcement.
    pub(crate) announced_at: Instant,
    pub(crate) figures: Figures,
}

impl Known {
    /// Returns the leader, if its last announcement is not out of date.
    pub(crate) fn leader_now(&self) -> Option<MemberId> {
        (self.announced_at.elapsed() < FRESH).then_some(self.leader)
    }
}

/// The leaders of all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaders {
    /// The knowledge about each group, from its latest known term.
    known: BTreeMap<u32, Known>,
}

impl Leaders {
    /// Records the announcement of a member for existing groups. Returns whether a group has a new
    /// leader.
    pub(crate) fn record_leading(
        &mut self,
        member: MemberId,
        leading: &Leading,
        is_group: impl Fn(GroupId) -> bool,
    ) -> bool {
        let (mut has_changed, announced_at) = (false, Instant::now());
        for Led { group, term, voters } in leading.groups.iter().filter(|led| is_group(GroupId(led.group))) {
            let voters = voters.clone();
            match self.known.get_mut(group) {
                Some(known) if known.term > *term => {}
                Some(known) if known.term == *term => (known.voters, known.announced_at) = (voters, announced_at),
                _ => {
                    has_changed = true;
                    let figures = Figures::default();
                    self.known.insert(*group, Known { term: *term, leader: member, voters, announced_at, figures });
                }
            }
        }
        has_changed
    }

    /// Records the figures of groups that a member leads.
    pub(crate) fn record_figures(&mut self, member: MemberId, figures: Vec<Figures>) {
        for figures in figures {
            if let Some(known) = self.known.get_mut(&figures.group).filter(|known| known.leader == member) {
                known.figures = figures;
            }
        }
    }

    /// Returns the knowledge about a group.
    pub(crate) fn of(&self, group: GroupId) -> Option<&Known> {
        self.known.get(&group.0)
    }

    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.of(group).map(|known| known.leader)
    }

    /// Whether a member votes in any group, according to the last announcements of the leaders.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.known.values().any(|known| known.voters.contains(&member.0))
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
    fn the_latest_term_counts_in_whatever_order_announcements_arrive() {
        let of = |groups: &[(u32, u64, u64)]| Leading {
            groups: groups
                .iter()
                .map(|(group, term, voter)| Led { group: *group, term: *term, voters: [*voter].into() })
                .collect(),
        };
        let two = |group: GroupId| group.0 < 2;
        let mut leaders = Leaders::default();
        assert!(leaders.record_leading(MemberId(1), &of(&[(0, 3, 1), (1, 1, 1)]), two));
        assert!(!leaders.record_leading(MemberId(1), &of(&[(0, 3, 8), (1, 1, 8)]), two));
        assert!(!leaders.record_leading(MemberId(2), &of(&[(0, 2, 9)]), two));
        assert_eq!((leaders.leader(GroupId(0)), leaders.version()), (Some(MemberId(1)), 4));
        assert_eq!([1, 8, 9].map(|id| leaders.votes(MemberId(id))), [false, true, false]);
        assert!(leaders.record_leading(MemberId(2), &of(&[(0, 4, 1), (7, 9, 1)]), two));
        assert_eq!((leaders.leader(GroupId(0)), leaders.leader(GroupId(7))), (Some(MemberId(2)), None));
        assert_eq!(leaders.version(), 5);
    }

    #[test]
    fn figures_count_from_the_leader_alone() {
        let mut leaders = Leaders::default();
        let led = Leading { groups: vec![Led { group: 0, term: 1, voters: [1, 2].into() }] };
        assert!(leaders.record_leading(MemberId(1), &led, |_| true));
        let figures = |committed| Figures { committed, ..Figures::default() };
        leaders.record_figures(MemberId(1), vec![figures(7), Figures { group: 5, ..figures(8) }]);
        leaders.record_figures(MemberId(2), vec![figures(9)]);
        assert_eq!(leaders.of(GroupId(0)).map(|known| known.figures.committed), Some(7));
        assert!(leaders.of(GroupId(5)).is_none());
    }
}
