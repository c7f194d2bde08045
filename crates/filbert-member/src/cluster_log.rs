//! Log messages for operators about other members: joins, departures, members without an
//! announcement. Each event is logged once.
//!
//! Knows the state of the members at each check, and neither the clock nor the links.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use filbert_cluster::MemberId;

use crate::leading::FRESH;
use crate::registry::{MemberFacts, RegistryState};

/// A larger difference between two clocks is logged: a message takes far less time.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(5);

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeMessage {
    /// The members at the first check.
    Members {
        members: String,
    },
    Joined {
        member: String,
        members: usize,
    },
    Leaves {
        member: String,
    },
    Gone {
        member: String,
        members: usize,
    },
    Silent {
        member: String,
    },
    Answers {
        member: String,
    },
    /// Groups that had leaders have none any more.
    Lost {
        lost: usize,
        groups: usize,
    },
    /// All groups have leaders again.
    Regained,
    /// A member's clock differs from the clock of this member.
    Clock {
        member: String,
        ahead_ms: i64,
    },
    /// Two members hold data.
    Pair {
        continues: bool,
    },
}

/// The state of the groups at a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// The number of groups without a known leader.
    pub(crate) without_leader: usize,
    pub(crate) all: usize,
    /// Whether one of two members continues alone, by this member's settings.
    pub(crate) pair_continues: bool,
}

fn counted(members: usize) -> String {
    format!("the cluster has {members} member{}", if members == 1 { "" } else { "s" })
}

impl fmt::Display for ChangeMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeMessage::Members { members } => write!(f, "the cluster's members: {members}"),
            ChangeMessage::Joined { member, members } => write!(f, "{member} has joined, {}", counted(*members)),
            ChangeMessage::Leaves { member } => write!(f, "{member} leaves: it hands over the partitions that it holds"),
            ChangeMessage::Gone { member, members } => write!(f, "{member} is no member any more, {}", counted(*members)),
            ChangeMessage::Silent { member } => {
                write!(f, "{member} has not been heard of for {} s: it is down or cut off", FRESH.as_secs())
            }
            ChangeMessage::Answers { member } => write!(f, "{member} is heard of again"),
            ChangeMessage::Lost { lost, groups } => write!(
                f,
                "{lost} of {groups} groups have no leader, and this member serves neither reads nor writes of their partitions: most of the \
                 members that hold them are not there. If they are dead for good, `filbert cluster recover` tells what can be done"
            ),
            ChangeMessage::Regained => f.write_str("all groups have leaders again"),
            ChangeMessage::Clock { member, ahead_ms } => write!(
                f,
                "the clock of {member} is {} s {} this one's: entries with a time to live, and leases of locks, end earlier or later by as much when the \
                 partition's leader changes. Have the clocks of all members set alike (NTP)",
                ahead_ms.unsigned_abs().div_ceil(1_000),
                if *ahead_ms > 0 { "ahead of" } else { "behind" }
            ),
            ChangeMessage::Pair { continues: false } => f.write_str(
                "two members hold data, and neither goes on without the other one: when one dies, the other one stops. A third member is recommended",
            ),
            ChangeMessage::Pair { continues: true } => f.write_str(
                "two members hold data, and when one is not heard of for a while, the other one goes on alone (filbert.cluster.pair: continue). If \
                 both are alive and cut off from each other, both go on, and what one of them acknowledges is lost. A third member is recommended",
            ),
        }
    }
}

impl ChangeMessage {
    /// Writes the message to the log.
    fn log(&self) {
        match self {
            ChangeMessage::Lost { .. } => tracing::error!("{self}"),
            ChangeMessage::Gone { .. }
            | ChangeMessage::Silent { .. }
            | ChangeMessage::Pair { .. }
            | ChangeMessage::Clock { .. } => {
                tracing::warn!("{self}");
            }
            _ => tracing::info!("{self}"),
        }
    }
}

/// The state of the other members at the last check.
#[derive(Debug, Default)]
pub(crate) struct ClusterLog {
    /// The names of all members, by id. Empty before the first check.
    members: BTreeMap<MemberId, String>,
    leaving: BTreeSet<MemberId>,
    silent: BTreeSet<MemberId>,
    /// The members with clock differences that were logged.
    differ: BTreeSet<MemberId>,
    /// Whether all groups had leaders at some check.
    were_led: bool,
    /// The number of groups without a leader that was logged last. Groups lose their leaders one
    /// after the other.
    lost: usize,
    /// Whether two members held data.
    were_two: bool,
}

impl ClusterLog {
    /// Logs the changes since the last check. `here`, this member, is not mentioned.
    pub(crate) fn log_changes(
        &mut self,
        here: MemberId,
        state: &RegistryState,
        groups: Groups,
        clocks_ahead: &BTreeMap<MemberId, i64>,
        silent_for: impl Fn(MemberId) -> Duration,
    ) {
        self.member_changes(here, state, silent_for).iter().for_each(ChangeMessage::log);
        self.group_changes(state, groups).iter().for_each(ChangeMessage::log);
        self.clock_changes(clocks_ahead).iter().for_each(ChangeMessage::log);
    }

    fn clock_changes(&mut self, clocks_ahead: &BTreeMap<MemberId, i64>) -> Vec<ChangeMessage> {
        let mut messages = Vec::new();
        for (id, ahead_ms) in clocks_ahead {
            let differs = ahead_ms.unsigned_abs() > CLOCKS_DIFFER_MAX.as_millis() as u64;
            if differs && self.differ.insert(*id) {
                let member = self.members.get(id).cloned().unwrap_or_else(|| format!("member {id}"));
                messages.push(ChangeMessage::Clock { member, ahead_ms: *ahead_ms });
            } else if !differs {
                self.differ.remove(id);
            }
        }
        self.differ.retain(|id| clocks_ahead.contains_key(id));
        messages
    }

    fn group_changes(&mut self, state: &RegistryState, groups: Groups) -> Vec<ChangeMessage> {
        let mut messages = Vec::new();
        if groups.without_leader == 0 {
            messages.extend((std::mem::take(&mut self.lost) > 0).then_some(ChangeMessage::Regained));
            self.were_led = true;
        } else if self.were_led && groups.without_leader > self.lost {
            self.lost = groups.without_leader;
            messages.push(ChangeMessage::Lost { lost: groups.without_leader, groups: groups.all });
        }
        let are_two = state.is_complete() && state.members().filter(|(_, facts)| !facts.is_lite).count() == 2;
        if are_two && !self.were_two {
            messages.push(ChangeMessage::Pair { continues: groups.pair_continues });
        }
        self.were_two = are_two;
        messages
    }

    fn member_changes(
        &mut self,
        here: MemberId,
        state: &RegistryState,
        silent_for: impl Fn(MemberId) -> Duration,
    ) -> Vec<ChangeMessage> {
        let name = |(id, facts): (MemberId, &MemberFacts)| (id, format!("member {id} at {}", facts.address));
        let now: BTreeMap<MemberId, String> = state.members().map(name).collect();
        let count = now.len();
        let mut messages = Vec::new();
        if self.members.is_empty() && count > 0 {
            messages.push(ChangeMessage::Members { members: now.values().cloned().collect::<Vec<_>>().join(", ") });
        } else {
            for (id, member) in self.members.iter().filter(|(id, _)| !now.contains_key(id)) {
                if *id != here {
                    messages.push(ChangeMessage::Gone { member: member.clone(), members: count });
                }
            }
            for (_, member) in now.iter().filter(|(id, _)| !self.members.contains_key(id)) {
                messages.push(ChangeMessage::Joined { member: member.clone(), members: count });
            }
        }
        let mut silent = BTreeSet::new();
        for (id, member) in now.iter().filter(|(id, _)| **id != here) {
            if state.is_leaving(*id) && self.leaving.insert(*id) {
                messages.push(ChangeMessage::Leaves { member: member.clone() });
            }
            let was_silent = self.silent.contains(id);
            if silent_for(*id) >= FRESH {
                silent.insert(*id);
            }
            match (was_silent, silent.contains(id)) {
                (false, true) => messages.push(ChangeMessage::Silent { member: member.clone() }),
                (true, false) => messages.push(ChangeMessage::Answers { member: member.clone() }),
                _ => {}
            }
        }
        self.leaving.retain(|id| now.contains_key(id));
        (self.members, self.silent) = (now, silent);
        messages
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::registry::{ClusterSettings, Command, Reply};

    const HERE: MemberId = MemberId(1);

    fn facts(n: u16) -> MemberFacts {
        MemberFacts {
            uuid: Uuid::from_u128(n.into()),
            address: format!("db{n}:5701"),
            client_host: "db".to_owned(),
            client_port: 5_701,
            is_lite: false,
            joined_ms: 0,
            version: 1,
        }
    }

    fn texts(cluster_log: &mut ClusterLog, state: &RegistryState, silent: &[u64]) -> Vec<String> {
        let silent_for = |id: MemberId| if silent.contains(&id.0) { FRESH } else { Duration::ZERO };
        cluster_log.member_changes(HERE, state, silent_for).iter().map(ChangeMessage::to_string).collect()
    }

    #[test]
    fn each_change_is_logged_once() {
        let (mut cluster_log, mut state) = (ClusterLog::default(), RegistryState::default());
        assert_eq!(texts(&mut cluster_log, &state, &[]), [""; 0]);
        let members = [(1, facts(1))].into();
        let found = Command::Found {
            cluster: Uuid::from_u128(99),
            settings: ClusterSettings::default(),
            members,
            members_needed: 1,
        };
        assert_eq!(state.apply(found), Reply::Done);
        assert_eq!(texts(&mut cluster_log, &state, &[]), ["the cluster's members: member 1 at db1:5701"]);
        assert_eq!(state.apply(Command::Join { facts: facts(2) }), Reply::Member(2));
        let joined = "member 2 at db2:5701 has joined, the cluster has 2 members";
        assert_eq!(texts(&mut cluster_log, &state, &[]), [joined]);
        let silent = "member 2 at db2:5701 has not been heard of for 3 s: it is down or cut off";
        assert_eq!(texts(&mut cluster_log, &state, &[1, 2]), [silent]);
        assert_eq!(texts(&mut cluster_log, &state, &[2]), [""; 0]);
        assert_eq!(texts(&mut cluster_log, &state, &[]), ["member 2 at db2:5701 is heard of again"]);
        assert_eq!(state.apply(Command::Leave { member: 2 }), Reply::Done);
        let leaves = "member 2 at db2:5701 leaves: it hands over the partitions that it holds";
        assert_eq!(texts(&mut cluster_log, &state, &[]), [leaves]);
        assert_eq!(texts(&mut cluster_log, &state, &[]), [""; 0]);
        assert_eq!(state.apply(Command::Remove { member: 2 }), Reply::Done);
        let gone = "member 2 at db2:5701 is no member any more, the cluster has 1 member";
        assert_eq!(texts(&mut cluster_log, &state, &[]), [gone]);
        assert_eq!(texts(&mut cluster_log, &state, &[]), [""; 0]);
    }

    #[test]
    fn a_clock_that_differs_is_logged_once() {
        let mut cluster_log = ClusterLog::default();
        let mut texts = |ahead_ms: i64| {
            let messages = cluster_log.clock_changes(&[(MemberId(2), ahead_ms)].into());
            messages.iter().map(ChangeMessage::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(4_000), [""; 0]);
        let messages = texts(3_600_000);
        assert!(messages[0].starts_with("the clock of member 2 is 3600 s ahead of this one's"), "{messages:?}");
        assert_eq!(texts(3_600_100), [""; 0]);
        assert_eq!(texts(0), [""; 0]);
        assert!(texts(-60_000)[0].starts_with("the clock of member 2 is 60 s behind this one's"));
    }

    #[test]
    fn a_lost_majority_and_a_pair_are_logged_once() {
        let (mut cluster_log, mut state) = (ClusterLog::default(), RegistryState::default());
        let mut check = |state: &RegistryState, without_leader, pair_continues| {
            cluster_log.group_changes(state, Groups { without_leader, all: 25, pair_continues })
        };
        // Groups that never had a leader belong to a cluster that is starting.
        assert_eq!(check(&state, 25, false), []);
        assert_eq!(check(&state, 0, false), []);
        assert_eq!(check(&state, 12, false), [ChangeMessage::Lost { lost: 12, groups: 25 }]);
        assert_eq!(check(&state, 25, false), [ChangeMessage::Lost { lost: 25, groups: 25 }]);
        assert_eq!(check(&state, 3, false), []);
        assert_eq!(check(&state, 0, false), [ChangeMessage::Regained]);
        let members = [(1, facts(1)), (2, facts(2))].into();
        let cluster = Uuid::from_u128(99);
        let settings = ClusterSettings::default();
        assert_eq!(state.apply(Command::Found { cluster, settings, members, members_needed: 1 }), Reply::Done);
        assert_eq!(check(&state, 0, false), [ChangeMessage::Pair { continues: false }]);
        assert_eq!(check(&state, 0, false), []);
        assert_eq!(state.apply(Command::Join { facts: facts(3) }), Reply::Member(3));
        assert_eq!(check(&state, 0, false), []);
        assert_eq!(state.apply(Command::Remove { member: 3 }), Reply::Done);
        assert_eq!(check(&state, 0, true), [ChangeMessage::Pair { continues: true }]);
    }
}
