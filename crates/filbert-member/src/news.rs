//! What an operator is told of the other members: who comes, who goes, who is not heard of. Each once.
//!
//! Knows how members stand at each look, and neither the clock nor the links.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use filbert_cluster::MemberId;

use crate::leading::FRESH;
use crate::registry::RegistryState;

/// Clocks that differ by more are told: a message takes far less.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(5);

/// One sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// The members that are there at the first look.
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
    HeardAgain {
        member: String,
    },
    /// Groups that were led have no leader any more.
    Lost {
        lost: usize,
        groups: usize,
    },
    /// All groups have leaders again.
    Regained,
    /// A member's clock is another one than this one's.
    Clock {
        member: String,
        ahead_ms: i64,
    },
    /// Two members hold data.
    Pair {
        continues: bool,
    },
}

/// How the groups stand at a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Those that have no leader, as far as is known.
    pub(crate) without_leader: usize,
    pub(crate) all: usize,
    /// Whether one of two members goes on alone, by this member's settings.
    pub(crate) pair_continues: bool,
}

fn counted(members: usize) -> String {
    format!("the cluster has {members} member{}", if members == 1 { "" } else { "s" })
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sentence::Members { members } => write!(f, "the cluster's members: {members}"),
            Sentence::Joined { member, members } => write!(f, "{member} has joined, {}", counted(*members)),
            Sentence::Leaves { member } => write!(f, "{member} leaves: it hands over the partitions that it holds"),
            Sentence::Gone { member, members } => write!(f, "{member} is no member any more, {}", counted(*members)),
            Sentence::Silent { member } => {
                write!(f, "{member} has not been heard of for {} s: it is down or cut off", FRESH.as_secs())
            }
            Sentence::HeardAgain { member } => write!(f, "{member} is heard of again"),
            Sentence::Lost { lost, groups } => write!(
                f,
                "{lost} of {groups} groups have no leader, and this member serves neither reads nor writes of their partitions: most of the \
                 members that hold them are not there. If they are dead for good, `filbert cluster recover` tells what can be done"
            ),
            Sentence::Regained => f.write_str("all groups have leaders again"),
            Sentence::Clock { member, ahead_ms } => write!(
                f,
                "the clock of {member} is {} s {} this one's: entries with a time to live, and leases of locks, end earlier or later by as much when the \
                 partition's leader changes. Have the clocks of all members set alike (NTP)",
                ahead_ms.unsigned_abs().div_ceil(1_000),
                if *ahead_ms > 0 { "ahead of" } else { "behind" }
            ),
            Sentence::Pair { continues: false } => f.write_str(
                "two members hold data, and neither goes on without the other one: when one dies, the other one stops. A third member is recommended",
            ),
            Sentence::Pair { continues: true } => f.write_str(
                "two members hold data, and when one is not heard of for a while, the other one goes on alone (filbert.cluster.pair: continue). If \
                 both are alive and cut off from each other, both go on, and what one of them acknowledges is lost. A third member is recommended",
            ),
        }
    }
}

impl Sentence {
    /// Writes it to the log.
    fn log(&self) {
        match self {
            Sentence::Lost { .. } => tracing::error!("{self}"),
            Sentence::Gone { .. } | Sentence::Silent { .. } | Sentence::Pair { .. } | Sentence::Clock { .. } => {
                tracing::warn!("{self}");
            }
            _ => tracing::info!("{self}"),
        }
    }
}

/// How the other members stood at the last look.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Names of all members, by id; empty before the first look.
    members: BTreeMap<MemberId, String>,
    leaving: BTreeSet<MemberId>,
    silent: BTreeSet<MemberId>,
    /// Members whose clocks differ, as was told.
    differ: BTreeSet<MemberId>,
    /// Whether all groups had leaders.
    were_led: bool,
    /// So many have none any more, as was told last: leaders are missed one after the other.
    lost: usize,
    /// Whether two members held data.
    were_two: bool,
}

impl News {
    /// Logs how the members stand otherwise than at the last look. `here` is not spoken of.
    pub(crate) fn tell(
        &mut self,
        here: MemberId,
        state: &RegistryState,
        groups: Groups,
        clocks_ahead: &BTreeMap<MemberId, i64>,
        silent_for: impl Fn(MemberId) -> Duration,
    ) {
        self.look(here, state, silent_for).iter().for_each(Sentence::log);
        self.look_at_groups(state, groups).iter().for_each(Sentence::log);
        self.look_at_clocks(clocks_ahead).iter().for_each(Sentence::log);
    }

    fn look_at_clocks(&mut self, clocks_ahead: &BTreeMap<MemberId, i64>) -> Vec<Sentence> {
        let mut told = Vec::new();
        for (id, ahead_ms) in clocks_ahead {
            let differs = ahead_ms.unsigned_abs() > CLOCKS_DIFFER_MAX.as_millis() as u64;
            if differs && self.differ.insert(*id) {
                let member = self.members.get(id).cloned().unwrap_or_else(|| format!("member {id}"));
                told.push(Sentence::Clock { member, ahead_ms: *ahead_ms });
            } else if !differs {
                self.differ.remove(id);
            }
        }
        self.differ.retain(|id| clocks_ahead.contains_key(id));
        told
    }

    fn look_at_groups(&mut self, state: &RegistryState, groups: Groups) -> Vec<Sentence> {
        let mut told = Vec::new();
        if groups.without_leader == 0 {
            told.extend((std::mem::take(&mut self.lost) > 0).then_some(Sentence::Regained));
            self.were_led = true;
        } else if self.were_led && groups.without_leader > self.lost {
            self.lost = groups.without_leader;
            told.push(Sentence::Lost { lost: groups.without_leader, groups: groups.all });
        }
        let are_two = state.is_complete() && state.members().filter(|(_, facts)| !facts.is_lite).count() == 2;
        if are_two && !self.were_two {
            told.push(Sentence::Pair { continues: groups.pair_continues });
        }
        self.were_two = are_two;
        told
    }

    fn look(
        &mut self,
        here: MemberId,
        state: &RegistryState,
        silent_for: impl Fn(MemberId) -> Duration,
    ) -> Vec<Sentence> {
        let name = |(id, facts): (MemberId, &crate::MemberFacts)| (id, format!("member {id} at {}", facts.address));
        let now: BTreeMap<MemberId, String> = state.members().map(name).collect();
        let count = now.len();
        let mut told = Vec::new();
        if self.members.is_empty() && count > 0 {
            told.push(Sentence::Members { members: now.values().cloned().collect::<Vec<_>>().join(", ") });
        } else {
            for (id, member) in self.members.iter().filter(|(id, _)| !now.contains_key(id)) {
                if *id != here {
                    told.push(Sentence::Gone { member: member.clone(), members: count });
                }
            }
            for (_, member) in now.iter().filter(|(id, _)| !self.members.contains_key(id)) {
                told.push(Sentence::Joined { member: member.clone(), members: count });
            }
        }
        let mut silent = BTreeSet::new();
        for (id, member) in now.iter().filter(|(id, _)| **id != here) {
            if state.is_leaving(*id) && self.leaving.insert(*id) {
                told.push(Sentence::Leaves { member: member.clone() });
            }
            let was_silent = self.silent.contains(id);
            if silent_for(*id) >= FRESH {
                silent.insert(*id);
            }
            match (was_silent, silent.contains(id)) {
                (false, true) => told.push(Sentence::Silent { member: member.clone() }),
                (true, false) => told.push(Sentence::HeardAgain { member: member.clone() }),
                _ => {}
            }
        }
        self.leaving.retain(|id| now.contains_key(id));
        (self.members, self.silent) = (now, silent);
        told
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::MemberFacts;
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

    fn texts(news: &mut News, state: &RegistryState, silent: &[u64]) -> Vec<String> {
        let silent_for = |id: MemberId| if silent.contains(&id.0) { FRESH } else { Duration::ZERO };
        news.look(HERE, state, silent_for).iter().map(Sentence::to_string).collect()
    }

    #[test]
    fn each_change_is_told_once() {
        let (mut news, mut state) = (News::default(), RegistryState::default());
        assert_eq!(texts(&mut news, &state, &[]), [""; 0]);
        let members = [(1, facts(1))].into();
        let found = Command::Found {
            cluster: Uuid::from_u128(99),
            settings: ClusterSettings::default(),
            members,
            members_needed: 1,
        };
        assert_eq!(state.apply(found), Reply::Done);
        assert_eq!(texts(&mut news, &state, &[]), ["the cluster's members: member 1 at db1:5701"]);
        assert_eq!(state.apply(Command::Join { facts: facts(2) }), Reply::Member(2));
        let joined = "member 2 at db2:5701 has joined, the cluster has 2 members";
        assert_eq!(texts(&mut news, &state, &[]), [joined]);
        let silent = "member 2 at db2:5701 has not been heard of for 3 s: it is down or cut off";
        assert_eq!(texts(&mut news, &state, &[1, 2]), [silent]);
        assert_eq!(texts(&mut news, &state, &[2]), [""; 0]);
        assert_eq!(texts(&mut news, &state, &[]), ["member 2 at db2:5701 is heard of again"]);
        assert_eq!(state.apply(Command::Leave { member: 2 }), Reply::Done);
        let leaves = "member 2 at db2:5701 leaves: it hands over the partitions that it holds";
        assert_eq!(texts(&mut news, &state, &[]), [leaves]);
        assert_eq!(texts(&mut news, &state, &[]), [""; 0]);
        assert_eq!(state.apply(Command::Remove { member: 2 }), Reply::Done);
        let gone = "member 2 at db2:5701 is no member any more, the cluster has 1 member";
        assert_eq!(texts(&mut news, &state, &[]), [gone]);
        assert_eq!(texts(&mut news, &state, &[]), [""; 0]);
    }

    #[test]
    fn a_clock_that_is_off_is_told_once() {
        let mut news = News::default();
        let mut texts = |ahead_ms: i64| {
            let told = news.look_at_clocks(&[(MemberId(2), ahead_ms)].into());
            told.iter().map(Sentence::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(4_000), [""; 0]);
        let told = texts(3_600_000);
        assert!(told[0].starts_with("the clock of member 2 is 3600 s ahead of this one's"), "{told:?}");
        assert_eq!(texts(3_600_100), [""; 0]);
        assert_eq!(texts(0), [""; 0]);
        assert!(texts(-60_000)[0].starts_with("the clock of member 2 is 60 s behind this one's"));
    }

    #[test]
    fn a_lost_majority_and_a_pair_are_told_once() {
        let (mut news, mut state) = (News::default(), RegistryState::default());
        let mut look = |state: &RegistryState, without_leader, pair_continues| {
            news.look_at_groups(state, Groups { without_leader, all: 25, pair_continues })
        };
        // As long as there never was a leader, the cluster begins.
        assert_eq!(look(&state, 25, false), []);
        assert_eq!(look(&state, 0, false), []);
        assert_eq!(look(&state, 12, false), [Sentence::Lost { lost: 12, groups: 25 }]);
        assert_eq!(look(&state, 25, false), [Sentence::Lost { lost: 25, groups: 25 }]);
        assert_eq!(look(&state, 3, false), []);
        assert_eq!(look(&state, 0, false), [Sentence::Regained]);
        let members = [(1, facts(1)), (2, facts(2))].into();
        let cluster = Uuid::from_u128(99);
        let settings = ClusterSettings::default();
        assert_eq!(state.apply(Command::Found { cluster, settings, members, members_needed: 1 }), Reply::Done);
        assert_eq!(look(&state, 0, false), [Sentence::Pair { continues: false }]);
        assert_eq!(look(&state, 0, false), []);
        assert_eq!(state.apply(Command::Join { facts: facts(3) }), Reply::Member(3));
        assert_eq!(look(&state, 0, false), []);
        assert_eq!(state.apply(Command::Remove { member: 3 }), Reply::Done);
        assert_eq!(look(&state, 0, true), [Sentence::Pair { continues: true }]);
    }
}
