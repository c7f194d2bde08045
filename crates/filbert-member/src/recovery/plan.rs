//! The plan of a recovery without missing members, and the possible losses: computed from the
//! states of the copies on the members that answer.
//!
//! A pure function: asks no member, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use filbert_cluster::{Epoch, GroupCopy, GroupId, MemberId, Position};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::registry::{REGISTRY, RegistryState};

/// The number of terms that are skipped: the missing members may have held elections meanwhile.
const TERMS_SKIPPED: u64 = 1_000;
/// The maximum number of groups that are listed one by one.
const GROUPS_LISTED_MAX: usize = 40;

/// The state of a member's copy of a group, as the member reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyReport {
    pub(crate) group: u32,
    /// The term and the index of the last entry.
    pub(crate) last: Option<(u64, u64)>,
    pub(crate) term: u64,
    pub(crate) voters: Vec<BTreeSet<u64>>,
    pub(crate) leads: bool,
}

impl CopyReport {
    pub(crate) fn of(group: GroupId, copy: &GroupCopy) -> Self {
        let ids = |voters: &BTreeSet<MemberId>| voters.iter().map(|id| id.0).collect();
        CopyReport {
            group: group.0,
            last: copy.last.map(|last| (last.term, last.index)),
            term: copy.term,
            voters: copy.voters.iter().map(ids).collect(),
            leads: copy.leads,
        }
    }

    fn position(&self) -> Option<Position> {
        self.last.map(|(term, index)| Position { term, index })
    }
}

/// The report of a member about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberReport {
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    /// The epoch of the member.
    pub(crate) epoch: u64,
    /// The epoch that the member's registry has recorded.
    pub(crate) decided: u64,
    pub(crate) copies: Vec<CopyReport>,
}

/// The reason why a recovery is impossible or unnecessary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(
        "all {groups} groups have a majority of their voters among the members that answer ({there}): there is nothing to recover{}",
        if *.leaderless > 0 { "; those that have no leader at this moment elect one by themselves" } else { "" }
    )]
    NothingLost { groups: usize, there: String, leaderless: usize },
    #[error("member {member} is in epoch {found}, which this member has not heard of: give the order there")]
    LaterEpoch { member: MemberId, found: Epoch },
    #[error("member {member} answers, and is of another cluster")]
    OtherCluster { member: MemberId },
    #[error("no member that answers holds data")]
    NoData,
    #[error("the cluster has not begun to serve: nothing is lost if all members are started anew")]
    NotBegun,
}

/// A group that has lost its majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) group: GroupId,
    pub(crate) voters: BTreeSet<MemberId>,
    /// The voters that answer.
    pub(crate) there: BTreeSet<MemberId>,
    /// The member with the most advanced copy. Any member with data if there is no copy.
    pub(crate) kept_by: MemberId,
    pub(crate) copy: Option<Position>,
    /// The term of the entry that re-forms the group.
    pub(crate) term: u64,
}

/// The plan of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) epoch: Epoch,
    pub(crate) there: BTreeSet<MemberId>,
    /// The members, and the voters of groups, that do not answer, with their addresses.
    pub(crate) missing: BTreeMap<MemberId, String>,
    pub(crate) groups: usize,
    pub(crate) lost: Vec<Lost>,
}

impl Plan {
    /// Computes the plan of `here` from its registry and from the reports of the members that
    /// answer, `here` among them.
    pub(crate) fn of(
        here: MemberId,
        state: &RegistryState,
        reports: &BTreeMap<MemberId, MemberReport>,
    ) -> Result<Plan, PlanError> {
        if !state.is_complete() {
            return Err(PlanError::NotBegun);
        }
        if let Some((member, _)) = reports.iter().find(|(_, report)| report.cluster != state.cluster) {
            return Err(PlanError::OtherCluster { member: *member });
        }
        let decided = state.recoveries().epoch();
        if let Some((member, later)) = reports.iter().find(|(_, report)| Epoch(report.decided) > decided) {
            return Err(PlanError::LaterEpoch { member: *member, found: Epoch(later.decided) });
        }
        let there: BTreeSet<MemberId> = reports.keys().copied().collect();
        let all = (0..state.settings.groups).map(GroupId).chain([REGISTRY]);
        let (mut lost, mut missing, mut leaderless) = (Vec::new(), BTreeMap::new(), 0);
        for group in all.clone() {
            let found = inspect_group(group, state, reports)?;
            missing.extend(found.voters.difference(&there).map(|id| (*id, String::new())));
            leaderless += usize::from(!found.is_led);
            if found.is_lost {
                let there = found.voters.intersection(&there).copied().collect();
                let Found { voters, kept_by, copy, term, .. } = found;
                lost.push(Lost { group, voters, there, kept_by, copy, term: term.saturating_add(TERMS_SKIPPED) });
            }
        }
        let members = state.members().filter(|(id, _)| !there.contains(id));
        missing.extend(members.map(|(id, facts)| (id, facts.address.clone())));
        let latest = reports.values().map(|report| report.epoch).max().unwrap_or(0);
        // An earlier order was not completed: members in different epochs ignore each other's
        // messages.
        let is_unfinished = reports.values().any(|report| report.epoch != decided.0);
        if lost.is_empty() && !is_unfinished {
            let there = there.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ");
            return Err(PlanError::NothingLost { groups: all.count(), there, leaderless });
        }
        Ok(Plan { epoch: Epoch(latest).next(here), there, missing, groups: all.count(), lost })
    }

    /// The registry, if it has lost its majority.
    pub(crate) fn registry(&self) -> Option<&Lost> {
        self.lost.iter().find(|lost| lost.group == REGISTRY)
    }

    /// The possible losses, as sentences.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let missing: Vec<String> = self
            .missing
            .iter()
            .map(|(id, address)| if address.is_empty() { id.to_string() } else { format!("{id} at {address}") })
            .collect();
        let _ = match missing.as_slice() {
            [] => write!(text, "All members answer. "),
            missing => write!(text, "These members do not answer: {}. ", missing.join(", ")),
        };
        let _ = writeln!(
            text,
            "{} of {} groups have lost their majority. What only the missing members had acknowledged in them is lost; nobody who is left \
             knows what it was. The missing members can come back as new members, without what they hold.",
            self.lost.len(),
            self.groups
        );
        for lost in self.lost.iter().take(GROUPS_LISTED_MAX) {
            let _ = writeln!(text, "{}", lost.text());
        }
        if self.lost.len() > GROUPS_LISTED_MAX {
            let _ = writeln!(text, "and {} groups more.", self.lost.len() - GROUPS_LISTED_MAX);
        }
        text
    }
}

impl Lost {
    fn text(&self) -> String {
        let name = if self.group == REGISTRY { "The registry".to_owned() } else { format!("Group {}", self.group) };
        let ids = |ids: &BTreeSet<MemberId>| ids.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ");
        let (voters, kept_by) = (ids(&self.voters), self.kept_by);
        match self.copy {
            Some(Position { term, index }) => format!(
                "{name}: of the voters {voters}, there are {} left; it goes on with the copy of member {kept_by}, which ends at entry {index} of term {term}.",
                self.there.len()
            ),
            None => {
                format!("{name}: of the voters {voters}, none is left; it begins empty, and all that it held is lost.")
            }
        }
    }
}

struct Found {
    voters: BTreeSet<MemberId>,
    kept_by: MemberId,
    copy: Option<Position>,
    term: u64,
    is_led: bool,
    is_lost: bool,
}

/// Returns the state of a group.
fn inspect_group(
    group: GroupId,
    state: &RegistryState,
    reports: &BTreeMap<MemberId, MemberReport>,
) -> Result<Found, PlanError> {
    let of_member = |report: &MemberReport| report.copies.iter().find(|copy| copy.group == group.0).cloned();
    let copies: BTreeMap<MemberId, CopyReport> =
        reports.iter().filter_map(|(id, report)| Some((*id, of_member(report)?))).collect();
    let places = if group == REGISTRY { state.registry_places() } else { state.places(group) };
    let rank = |id: &MemberId| places.iter().position(|place| place == id).unwrap_or(usize::MAX);
    // Of equal copies, the copy of the member that is to lead.
    let best = copies.iter().max_by_key(|(id, copy)| (copy.position(), std::cmp::Reverse((rank(id), **id))));
    let term = copies.values().map(|copy| copy.term).max().unwrap_or(0);
    let is_led = copies.values().any(|copy| copy.leads);
    if let Some((kept_by, copy)) = best.filter(|(_, copy)| copy.last.is_some()) {
        let has_majority = |voters: &BTreeSet<u64>| {
            voters.iter().filter(|id| reports.contains_key(&MemberId(**id))).count() > voters.len() / 2
        };
        let is_lost = !is_led && !copy.voters.iter().all(has_majority);
        let voters = copy.voters.iter().flatten().map(|id| MemberId(*id)).collect();
        return Ok(Found { voters, kept_by: *kept_by, copy: copy.position(), term, is_led, is_lost });
    }
    // No member that answers has ever had an entry of the group.
    let holds = |id: &MemberId| reports.contains_key(id) && state.member(*id).is_some_and(|facts| !facts.is_lite);
    let any = || state.members().map(|(id, _)| id).find(holds);
    let kept_by = places.iter().copied().find(holds).or_else(any).ok_or(PlanError::NoData)?;
    let voters = places.into_iter().filter(|id| !reports.contains_key(id)).collect();
    Ok(Found { voters, kept_by, copy: None, term, is_led, is_lost: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberFacts;
    use crate::registry::{ClusterSettings, Command, Loss};

    const CLUSTER: Uuid = Uuid::from_u128(99);
    const HERE: MemberId = MemberId(1);

    fn state(members: u64) -> RegistryState {
        let facts = |id: u64| MemberFacts {
            uuid: Uuid::from_u128(id.into()),
            address: format!("db{id}:1"),
            client_host: String::new(),
            client_port: 1,
            is_lite: false,
            joined_ms: 0,
            version: 1,
        };
        let settings = ClusterSettings { groups: 1, ..ClusterSettings::default() };
        let members = (1..=members).map(|id| (id, facts(id))).collect();
        let mut state = RegistryState::default();
        state.apply(Command::Found { cluster: CLUSTER, settings, members, members_needed: 1 });
        state
    }

    /// The report of a member with copies of the registry and of group 0, and the voters of both.
    fn report(registry: Option<(u64, u64)>, group: Option<(u64, u64)>, voters: &[&[u64]]) -> MemberReport {
        let voters: Vec<BTreeSet<u64>> = voters.iter().map(|set| set.iter().copied().collect()).collect();
        let copy = |group: GroupId, last: Option<(u64, u64)>| CopyReport {
            group: group.0,
            last,
            term: last.map_or(0, |last| last.0),
            voters: if last.is_some() { voters.clone() } else { Vec::new() },
            leads: false,
        };
        let copies = vec![copy(GroupId(0), group), copy(REGISTRY, registry)];
        MemberReport { cluster: CLUSTER, copies, ..MemberReport::default() }
    }

    fn plan(state: &RegistryState, reports: &[(u64, MemberReport)]) -> Result<Plan, PlanError> {
        Plan::of(HERE, state, &reports.iter().map(|(id, report)| (MemberId(*id), report.clone())).collect())
    }

    #[test]
    fn the_copy_with_the_latest_term_and_then_the_longest_one_is_kept() {
        let voters: &[&[u64]] = &[&[1, 2, 3, 4, 5]];
        let check = |first: (u64, u64), second: (u64, u64), expected: u64| {
            let reports =
                [(1, report(Some((9, 9)), Some(first), voters)), (2, report(Some((9, 9)), Some(second), voters))];
            let plan = plan(&state(5), &reports).unwrap();
            assert_eq!(plan.lost.len(), 2);
            assert_eq!(plan.lost[0].kept_by, MemberId(expected), "{first:?} {second:?}");
            assert!(plan.lost[0].term > first.0.max(second.0));
        };
        check((3, 10), (3, 11), 2);
        check((3, 10), (2, 99), 1);
        check((3, 10), (4, 1), 2);
        check((3, 10), (3, 10), 1);
    }

    #[test]
    fn where_a_majority_of_each_set_of_voters_is_there_nothing_is_recovered() {
        let there = |voters: &[&[u64]]| {
            let alike = report(Some((1, 5)), Some((1, 5)), voters);
            plan(&state(3), &[(1, alike.clone()), (2, alike)])
        };
        assert!(matches!(there(&[&[1, 2, 3]]), Err(PlanError::NothingLost { groups: 2, leaderless: 2, .. })));
        // A change of voters is in progress, and the majority of one set is missing.
        let plan = there(&[&[1, 2, 3], &[1, 4, 5]]).unwrap();
        assert_eq!(plan.lost.iter().map(|lost| lost.group).collect::<Vec<_>>(), [GroupId(0), REGISTRY]);
        assert_eq!(plan.missing.keys().map(|id| id.0).collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn groups_that_have_their_majority_are_left_alone() {
        let mut one = report(Some((1, 5)), Some((1, 5)), &[&[1, 2, 3]]);
        one.copies[0].voters = vec![[1, 4, 5].into()];
        let two = report(Some((1, 5)), None, &[&[1, 2, 3]]);
        let plan = plan(&state(5), &[(1, one), (2, two)]).unwrap();
        assert_eq!(plan.lost.iter().map(|lost| lost.group).collect::<Vec<_>>(), [GroupId(0)]);
        assert!(plan.registry().is_none());
        let text = plan.text();
        assert!(text.contains("1 of 2 groups have lost their majority"), "{text}");
        assert!(text.contains("3 at db3:1, 4 at db4:1, 5 at db5:1"), "{text}");
        assert!(
            text.contains("Group 0: of the voters 1, 4, 5, there are 1 left; it goes on with the copy of member 1"),
            "{text}"
        );
    }

    #[test]
    fn a_group_without_any_copy_begins_empty_and_says_so() {
        let alone = report(Some((1, 5)), None, &[&[1, 2, 3]]);
        let plan = plan(&state(3), &[(1, alone)]).unwrap();
        assert_eq!((plan.lost[0].kept_by, plan.lost[0].copy), (HERE, None));
        assert!(plan.text().contains("Group 0: of the voters 2, 3, none is left; it begins empty"), "{}", plan.text());
    }

    #[test]
    fn an_order_that_was_not_carried_out_to_its_end_is_given_again() {
        let voters: &[&[u64]] = &[&[1, 2, 3]];
        let alike = report(Some((1, 5)), Some((1, 5)), voters);
        let fenced = MemberReport { epoch: Epoch(0).next(HERE).0, ..alike.clone() };
        let plan = plan(&state(3), &[(1, alike), (2, fenced.clone())]).unwrap();
        assert!(plan.lost.is_empty() && plan.epoch > Epoch(fenced.epoch));
    }

    #[test]
    fn others_that_have_gone_on_are_asked_and_not_ordered() {
        let alike = report(Some((1, 5)), Some((1, 5)), &[&[1, 2, 3]]);
        let later = Epoch(0).next(MemberId(2));
        let ahead = MemberReport { epoch: later.0, decided: later.0, ..alike.clone() };
        let refused = plan(&state(3), &[(1, alike.clone()), (2, ahead.clone())]);
        assert_eq!(refused, Err(PlanError::LaterEpoch { member: MemberId(2), found: later }));
        let other = MemberReport { cluster: Uuid::from_u128(1), ..alike.clone() };
        let refused = plan(&state(3), &[(1, alike), (2, other)]);
        assert_eq!(refused, Err(PlanError::OtherCluster { member: MemberId(2) }));
        // Once this member has recorded the epoch as well, it can continue from there.
        let mut state = state(3);
        let loss = Loss { epoch: later.0, kept_by: Uuid::from_u128(2), copies_lost: 1 };
        let without = [3].into();
        state.apply(Command::Recover { epoch: later.0, without, losses: [(0, loss)].into(), registry_too: false });
        assert_eq!(plan(&state, &[(2, ahead)]).unwrap().epoch.number(), 2);
    }
}
