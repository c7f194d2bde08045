//! The status of a cluster for operators: its members, its groups of partitions, and warnings. The
//! provider of the cluster computes it ([`Cluster::status`](super::Cluster::status)). This module
//! makes no requests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use uuid::Uuid;

/// The cluster as seen from one member. Information from other members is up to a second old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster's id.
    pub cluster: Uuid,
    /// The number of the member that reports this status.
    pub member: u64,
    /// How often the cluster continued without a majority. 0 = never, so no data is lost.
    pub recoveries: u64,
    /// Whether one of two members continues alone if the other one fails. A setting of the
    /// reporting member.
    pub pair_continues: bool,
    /// The number of replicas of each group, as configured when the cluster was founded.
    pub replicas_wanted: u32,
    /// The members, in the order in which they joined.
    pub members: Vec<MemberStatus>,
    /// The registry, then groups of partitions by number.
    pub groups: Vec<GroupStatus>,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberState {
    /// It was admitted. It has not sent an announcement, or does not vote in its groups yet.
    Joining,
    /// It responds.
    Active,
    /// It is about to leave: other members take over its replicas.
    Leaving,
    /// It has not sent an announcement for a few seconds.
    Unreachable,
}

impl MemberState {
    /// The name of the state, one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MemberState::Joining => "joining",
            MemberState::Active => "active",
            MemberState::Leaving => "leaving",
            MemberState::Unreachable => "unreachable",
        }
    }
}

/// A member, as reported to an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its number. No other member ever has it.
    pub id: u64,
    /// Its UUID in the protocol of clients.
    pub uuid: Uuid,
    /// The address for other members.
    pub address: String,
    /// The address for clients.
    pub client_address: String,
    /// Its state.
    pub state: MemberState,
    /// Whether it holds no data (a lite member).
    pub is_lite: bool,
    /// The time at which it was admitted, in Unix milliseconds.
    pub joined_ms: i64,
    /// The time since its last announcement, or since it became known if it has sent none. `None`
    /// for the reporting member.
    pub silent_for: Option<Duration>,
}

/// A group of partitions with the same replicas, or the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its number; `None` is the registry.
    pub number: Option<u32>,
    /// The latest known term.
    pub term: u64,
    /// The leader, which has a majority; `None` if no leader is known.
    pub leader: Option<u64>,
    /// The voters, each with the number of log entries that it lacks; `None` if that is not known.
    pub voters: BTreeMap<u64, Option<u64>>,
    /// The learners (replicas without a vote), each with the number of log entries that it lacks.
    pub learners: BTreeMap<u64, Option<u64>>,
    /// The planned voters. The first one is the planned leader.
    pub wanted: Vec<u64>,
    /// The number of entries committed since the group was created.
    pub committed: u64,
    /// The number of log entries that the leader stores.
    pub log_entries: u64,
    /// The size of these entries in bytes.
    pub log_bytes: u64,
    /// Whether a change of the voters is in progress.
    pub is_changing: bool,
}

impl GroupStatus {
    /// The group's number, or `registry`.
    #[must_use]
    pub fn name(&self) -> String {
        self.number.map_or_else(|| "registry".to_owned(), |number| number.to_string())
    }

    /// The number of voters that form a majority.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }
}

/// The counters of this member's part of the cluster since it started, and its current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterCounters {
    /// The number of groups that this member leads, including the registry.
    pub leads: usize,
    /// The number of groups in which it votes.
    pub votes: usize,
    /// The number of log entries that it stores.
    pub log_entries: u64,
    /// The size of these entries in bytes.
    pub log_bytes: u64,
    /// Bytes of submissions that wait to be put into an entry.
    pub waiting_bytes: u64,
    /// The number of entries that are committed and not yet applied on this member, in all groups.
    pub behind_entries: u64,
    /// The number of entries that it has proposed as a leader.
    pub proposals: u64,
    /// The number of elections that it has won.
    pub elections_won: u64,
    /// Bytes of snapshots that it has sent to other members.
    pub snapshot_bytes_sent: u64,
    /// Bytes of snapshots that it has received from other members.
    pub snapshot_bytes_received: u64,
    /// The connections between this member and the others, by kind.
    pub links: Vec<LinkCounters>,
}

/// Connections of one kind between this member and all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// The kind of traffic.
    pub kind: &'static str,
    /// The number of open connections, initiated by either side.
    pub connections: u64,
    /// The number of failed connection attempts.
    pub failures: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// A warning for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterWarning {
    /// Whether operations fail now.
    pub is_critical: bool,
    /// The condition.
    pub title: String,
    /// The consequences, and the recommended action.
    pub text: String,
}

impl ClusterStatus {
    /// The member with this number.
    #[must_use]
    pub fn member(&self, id: u64) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.id == id)
    }

    fn answers(&self, id: u64) -> bool {
        let answers = |member: &MemberStatus| matches!(member.state, MemberState::Active | MemberState::Leaving);
        id == self.member || self.member(id).is_some_and(answers)
    }

    /// The number of voters of a group that respond.
    #[must_use]
    pub fn voters_there(&self, group: &GroupStatus) -> usize {
        group.voters.keys().filter(|id| self.answers(**id)).count()
    }

    /// The number of responding voters of the group with the fewest.
    #[must_use]
    pub fn replicas_held(&self) -> usize {
        self.groups.iter().map(|group| self.voters_there(group)).min().unwrap_or(0)
    }

    /// The groups without a leader.
    pub fn lost_groups(&self) -> impl Iterator<Item = &GroupStatus> {
        self.groups.iter().filter(|group| group.leader.is_none())
    }

    /// The warnings, the most severe first.
    #[must_use]
    pub fn warnings(&self) -> Vec<ClusterWarning> {
        let mut warnings = Vec::new();
        let lost: Vec<&GroupStatus> = self.lost_groups().collect();
        if let Some(first) = lost.first() {
            let names: Vec<String> = lost.iter().map(|group| group.name()).collect();
            let text = format!(
                "Neither reads nor writes of their partitions are served. Group {} has {} of {} voters there, and needs {}. \
                 Should the missing members be dead for good, `filbert cluster recover` tells what is lost with them.",
                first.name(),
                self.voters_there(first),
                first.voters.len(),
                first.majority()
            );
            let title = format!("{} of {} groups have no leader: {}", lost.len(), self.groups.len(), list(&names));
            warnings.push(ClusterWarning { is_critical: true, title, text });
        }
        for member in self.members.iter().filter(|member| member.state == MemberState::Unreachable) {
            let seconds = member.silent_for.unwrap_or_default().as_secs();
            let title = format!("Member {} at {} has not been heard of for {seconds} s", member.id, member.address);
            let text = format!(
                "It is taken out after a while if most members are there, or at once by `filbert cluster remove {}`.",
                member.id
            );
            warnings.push(ClusterWarning { is_critical: false, title, text });
        }
        let with_data = self.members.iter().filter(|member| !member.is_lite).count();
        let few = |group: &&GroupStatus| self.voters_there(group) < self.replicas_wanted as usize;
        let few: Vec<String> = self.groups.iter().filter(few).map(GroupStatus::name).collect();
        if !few.is_empty() {
            let title = format!(
                "{} of {} groups are held by fewer than {} members that answer",
                few.len(),
                self.groups.len(),
                self.replicas_wanted
            );
            let mut text = match with_data {
                0 | 1 => "What this member holds is lost with it. ".to_owned(),
                2 if self.pair_continues => "When one of two members dies, the other one goes on alone after a while. Should both be alive and cut \
                                             off from each other, both go on, and what one of them acknowledges is lost. "
                    .to_owned(),
                2 => "Two members have no majority without each other: when one dies, the other stops. ".to_owned(),
                _ => "Groups survive fewer losses than asked for. ".to_owned(),
            };
            if (with_data as u64) < u64::from(self.replicas_wanted) {
                let _ = write!(text, "There are {with_data} members with data: start more.");
            } else {
                text.push_str(
                    "Others take over once the missing member is taken out, or a member is brought what it lacks.",
                );
            }
            warnings.push(ClusterWarning { is_critical: false, title, text });
        }
        warnings
    }
}

/// A list of at most eight names.
fn list(names: &[String]) -> String {
    const NAMES_MAX: usize = 8;
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_MAX { format!("{shown}, ..") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, state: MemberState) -> MemberStatus {
        MemberStatus {
            id,
            uuid: Uuid::from_u128(u128::from(id)),
            address: format!("10.0.0.{id}:5801"),
            client_address: format!("10.0.0.{id}:5701"),
            state,
            is_lite: false,
            joined_ms: 0,
            silent_for: Some(Duration::from_secs(9)),
        }
    }

    fn status(states: &[MemberState], leader: Option<u64>) -> ClusterStatus {
        let members: Vec<_> = (1..).zip(states).map(|(id, state)| member(id, *state)).collect();
        let voters: BTreeMap<_, _> = members.iter().map(|member| (member.id, Some(0))).collect();
        let group = GroupStatus { number: Some(0), leader, voters, ..GroupStatus::default() };
        ClusterStatus { member: 1, replicas_wanted: 3, members, groups: vec![group], ..ClusterStatus::default() }
    }

    #[test]
    fn a_whole_cluster_has_no_warnings() {
        let status = status(&[MemberState::Active; 3], Some(2));
        assert_eq!((status.replicas_held(), status.warnings()), (3, Vec::new()));
    }

    #[test]
    fn a_lost_majority_is_reported_first() {
        use MemberState::{Active, Unreachable};
        let status = status(&[Active, Unreachable, Unreachable], None);
        let warnings = status.warnings();
        assert!(warnings[0].is_critical);
        assert_eq!(warnings[0].title, "1 of 1 groups have no leader: 0");
        assert!(warnings[0].text.contains("Group 0 has 1 of 3 voters there, and needs 2."), "{}", warnings[0].text);
        assert!(warnings[0].text.contains("filbert cluster recover"), "{}", warnings[0].text);
        assert_eq!(warnings.iter().filter(|warning| warning.title.contains("not been heard of for 9 s")).count(), 2);
    }

    #[test]
    fn two_members_are_warned_that_they_need_a_third() {
        let status = status(&[MemberState::Active; 2], Some(1));
        let warnings = status.warnings();
        assert_eq!((status.replicas_held(), warnings.len()), (2, 1));
        assert!(warnings[0].text.contains("no majority without each other"));
        assert!(warnings[0].text.contains("start more"));
        let status = ClusterStatus { pair_continues: true, ..status };
        assert!(status.warnings()[0].text.contains("both go on, and what one of them acknowledges is lost"));
    }
}
