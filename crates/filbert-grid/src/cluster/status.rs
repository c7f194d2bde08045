//! What an operator is told of a cluster: its members, its groups of partitions, and what somebody should look at. Made by whoever
//! knows ([`Cluster::status`](super::Cluster::status)); nothing here asks anybody.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use uuid::Uuid;

/// The cluster as one member knows it: what it is told by others is a second old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster's id.
    pub cluster: Uuid,
    /// The number of the member that says so.
    pub member: u64,
    /// How often it went on without a majority: 0 = never, and nothing is lost.
    pub recoveries: u64,
    /// Whether one of two members goes on alone when the other one is not there, by a setting of the member that says so.
    pub pair_continues: bool,
    /// Members that hold each group, as it was founded with.
    pub replicas_wanted: u32,
    /// The members, the one that is there for longest first.
    pub members: Vec<MemberStatus>,
    /// The registry, then groups of partitions by number.
    pub groups: Vec<GroupStatus>,
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberState {
    /// It was let in and has not been heard of yet.
    Joining,
    /// It answers.
    Active,
    /// It is about to go: others take over what it holds.
    Leaving,
    /// It has not been heard of for a few seconds.
    Unreachable,
}

impl MemberState {
    /// One word.
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

/// A member, as an operator is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its number, which no other member ever has.
    pub id: u64,
    /// By which clients know it.
    pub uuid: Uuid,
    /// Where other members reach it.
    pub address: String,
    /// Where clients reach it.
    pub client_address: String,
    /// Where it stands.
    pub state: MemberState,
    /// Whether it holds no data.
    pub is_lite: bool,
    /// When it was let in, Unix milliseconds.
    pub joined_ms: i64,
    /// How long it has not been heard of. Nothing of the member that says so, and of one that was never heard of.
    pub silent_for: Option<Duration>,
}

/// A group of partitions that several members hold alike, or the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its number; `None` is the registry.
    pub number: Option<u32>,
    /// The latest term that is known.
    pub term: u64,
    /// Who leads, with a majority. `None`: nobody does, as far as is known.
    pub leader: Option<u64>,
    /// Who votes, and how many entries of the log each has still to get; `None` where that is not known.
    pub voters: BTreeMap<u64, Option<u64>>,
    /// Who follows without a vote, likewise.
    pub learners: BTreeMap<u64, Option<u64>>,
    /// Who is to vote; the first is to lead.
    pub wanted: Vec<u64>,
    /// Entries decided since the group was made.
    pub committed: u64,
    /// Entries of the log that its leader keeps.
    pub log_entries: u64,
    /// Bytes of them.
    pub log_bytes: u64,
    /// Whether the voters are being changed.
    pub is_changing: bool,
}

impl GroupStatus {
    /// Its number, or `registry`.
    #[must_use]
    pub fn name(&self) -> String {
        self.number.map_or_else(|| "registry".to_owned(), |number| number.to_string())
    }

    /// Voters that are needed to agree.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }
}

/// What this member's part of the cluster has done since it started, and what it holds for it now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterCounters {
    /// Groups that this member leads, the registry among them.
    pub leads: usize,
    /// Groups that it votes in.
    pub votes: usize,
    /// Entries of logs that it keeps.
    pub log_entries: u64,
    /// Bytes of them.
    pub log_bytes: u64,
    /// Bytes of submissions that wait for an entry.
    pub waiting_bytes: u64,
    /// Entries that are decided and not applied here yet, in all groups.
    pub behind_entries: u64,
    /// Entries that it has put into logs as their leader.
    pub proposals: u64,
    /// Times that it became leader of a group.
    pub elections_won: u64,
    /// Bytes of snapshots that it has sent to others.
    pub snapshot_bytes_sent: u64,
    /// Bytes of snapshots that others have sent to it.
    pub snapshot_bytes_received: u64,
    /// Connections to other members and theirs to this one, by what they carry.
    pub links: Vec<LinkCounters>,
}

/// Connections of one kind between this member and all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// What they carry.
    pub kind: &'static str,
    /// Connections that exist now, made by either side.
    pub connections: u64,
    /// Tries to connect that failed.
    pub failures: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// What somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterWarning {
    /// Whether operations fail now.
    pub is_critical: bool,
    /// What is so.
    pub title: String,
    /// What follows from it, and what to do.
    pub text: String,
}

impl ClusterStatus {
    /// A member.
    #[must_use]
    pub fn member(&self, id: u64) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.id == id)
    }

    fn answers(&self, id: u64) -> bool {
        let answers = |member: &MemberStatus| matches!(member.state, MemberState::Active | MemberState::Leaving);
        id == self.member || self.member(id).is_some_and(answers)
    }

    /// Voters of a group that answer.
    #[must_use]
    pub fn voters_there(&self, group: &GroupStatus) -> usize {
        group.voters.keys().filter(|id| self.answers(**id)).count()
    }

    /// The number of members that hold every group and answer.
    #[must_use]
    pub fn replicas_held(&self) -> usize {
        self.groups.iter().map(|group| self.voters_there(group)).min().unwrap_or(0)
    }

    /// Groups that nobody leads with a majority.
    pub fn lost_groups(&self) -> impl Iterator<Item = &GroupStatus> {
        self.groups.iter().filter(|group| group.leader.is_none())
    }

    /// What somebody should look at, the gravest first.
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

/// Names, as far as a person reads on.
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
    fn a_lost_majority_is_told_first() {
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
    fn two_members_are_told_that_they_need_a_third() {
        let status = status(&[MemberState::Active; 2], Some(1));
        let warnings = status.warnings();
        assert_eq!((status.replicas_held(), warnings.len()), (2, 1));
        assert!(warnings[0].text.contains("no majority without each other"));
        assert!(warnings[0].text.contains("start more"));
        let status = ClusterStatus { pair_continues: true, ..status };
        assert!(status.warnings()[0].text.contains("both go on, and what one of them acknowledges is lost"));
    }
}
