//! The maintenance of the groups that this member leads, and its announcements to other members.
//!
//! The registry decides which members are to hold a group. The leader of the group carries this
//! out, one step at a time: a member that lacks the group first follows it as a learner, without a
//! vote. When all wanted members have caught up, one joint change makes them the voters. The death
//! of a member never leaves a group with fewer voters than it should have: only a member that
//! leaves in order makes it smaller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_cluster::{BootRuntime, Group, GroupId, GroupStatus, MemberId, MembershipError, StateMachine};
use filbert_grid::Grid;
use filbert_links::{Channel, Links};

use crate::cluster_log::ClusterLog;
use crate::leading::{Announcement, Figures, Leading, Led, Standing, figures};
use crate::messages::{Request, read};
use crate::partitions::PartitionGroup;
use crate::recovery::Recovery;
use crate::registry::{Command, REGISTRY, RegistryState, Reply, redefine};
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// The interval between two checks.
const PAUSE: Duration = Duration::from_millis(100);
/// The interval between two checks for changes of the led groups. It is a part of each failover.
const LEADING_PAUSE: Duration = Duration::from_millis(20);
/// The interval between two announcements of the led groups without a change.
const ANNOUNCED_EVERY: Duration = Duration::from_secs(1);
/// A member within this number of entries of the commit index has caught up enough to vote: it
/// receives the rest before the change of voters completes.
const LAG_MAX: u64 = 64;
/// The maximum time for a step of one group while the other groups wait.
const STEP_MAX: Duration = Duration::from_secs(1);
/// A member that has not answered for this time is handed no leadership: a group that is handed to
/// a dead member has no leader until an election.
const SILENT_MAX: Duration = Duration::from_millis(500);
/// The interval between two checks for Compact schemas that clients have sent.
const SCHEMAS_CHECKED_EVERY: Duration = Duration::from_millis(500);
/// The minimum interval between two hand-overs of leadership by this member.
const HANDED_EVERY: Duration = Duration::from_millis(300);

/// The background maintenance of a member.
pub(crate) struct Upkeep {
    pub(crate) member: MemberId,
    pub(crate) groups: Vec<PartitionGroup>,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) links: Arc<Links>,
    pub(crate) views: Arc<Views>,
    pub(crate) grid: Weak<Grid>,
    /// Whether clients are accepted on this member.
    pub(crate) serves: Arc<AtomicBool>,
    pub(crate) recovery: Arc<Recovery>,
    /// A member that has not answered for this time is considered dead.
    pub(crate) dead_after: Duration,
}

/// The next step towards the wanted voters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Add a member as a learner.
    Learn(MemberId),
    /// Make these members the voters.
    Vote(BTreeSet<MemberId>),
    /// Remove a learner.
    Forget(MemberId),
    /// Hand the leadership to another member.
    Hand(MemberId),
}

/// The way in which an unwanted voter departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    /// It is a member, and other members are wanted.
    None,
    /// It leaves in order, and is alive.
    Orderly,
    /// It has been removed from the cluster.
    Removed,
}

/// Returns the next step of a group, if there is one. `wanted` are the wanted voters, the wanted
/// leader first. `learners` are the members that may follow without a vote. `replicas` is the
/// wanted number of voters. `departure` is called for unwanted voters. `serves` is called for
/// possible leaders: requests to a leader that does not accept clients yet would wait.
fn next_step(
    status: &GroupStatus,
    leader: MemberId,
    wanted: &[MemberId],
    learners: &BTreeSet<MemberId>,
    replicas: usize,
    departure: impl Fn(MemberId) -> Departure,
    serves: impl Fn(MemberId) -> bool,
) -> Option<Step> {
    if wanted.is_empty() {
        return None;
    }
    let follows = |id: &MemberId| status.voters.contains(id) || status.learners.contains(id);
    let target: BTreeSet<MemberId> = wanted.iter().copied().collect();
    let is_smaller = target.len() < status.voters.len().min(replicas);
    // A voter that leaves in order takes along voters that have died before.
    let gone = || status.voters.difference(&target).map(|id| departure(*id));
    let in_order = gone().any(|it| it == Departure::Orderly) && gone().all(|it| it != Departure::None);
    if status.is_joint {
        // The leader that began this change has lost its leadership, or has timed out: no other
        // member completes it. `status.voters` contains the members of both sets here.
        let ends_in_target = target.is_subset(&status.voters) && (!is_smaller || in_order);
        let voters = if ends_in_target { target } else { status.voters.clone() };
        return Some(Step::Vote(voters.into_iter().chain([leader]).collect()));
    }
    if let Some(missing) = target.iter().chain(learners).find(|id| !follows(id)) {
        return Some(Step::Learn(*missing));
    }
    let committed = status.committed.unwrap_or(0);
    let has_caught_up = |id: &MemberId| {
        *id == leader || status.matched.get(id).is_some_and(|upto| upto.saturating_add(LAG_MAX) >= committed)
    };
    let is_there = |id: &MemberId| status.since_answer.get(id).is_some_and(|ago| *ago < SILENT_MAX);
    if target != status.voters {
        // A leader does not remove its own vote: it hands over first.
        let led_by_wanted = target.contains(&leader);
        if !led_by_wanted {
            let may_lead = |id: &&MemberId| status.voters.contains(*id) && has_caught_up(id) && is_there(id);
            let heirs = || target.iter().filter(may_lead);
            if let Some(heir) = heirs().find(|id| serves(**id)).or_else(|| heirs().next()) {
                return Some(Step::Hand(*heir));
            }
            // No current voter is wanted: the leader first makes the wanted members voters together
            // with itself, and hands over later.
            let is_moved = status.voters.is_disjoint(&target) && target.iter().all(has_caught_up);
            return is_moved.then(|| Step::Vote(target.iter().copied().chain([leader]).collect()));
        }
        if target.iter().all(has_caught_up) && (!is_smaller || in_order) {
            return Some(Step::Vote(target));
        }
        return None;
    }
    if let Some(gone) = status.learners.iter().find(|id| !target.contains(id) && !learners.contains(id)) {
        return Some(Step::Forget(*gone));
    }
    let first = *wanted.first()?;
    (first != leader && is_there(&first) && serves(first) && has_caught_up(&first)).then_some(Step::Hand(first))
}

/// Returns the announcement of a group, if this member leads it.
fn led<S: StateMachine>(id: GroupId, group: &Group<BootRuntime, S>) -> Option<Led> {
    let term = group.has_lease()?;
    Some(Led { group: id.0, term, voters: group.status().voters.iter().map(|voter| voter.0).collect() })
}

impl Upkeep {
    /// Maintains the groups until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        tokio::join!(self.announce_leadership(), self.maintain(), self.announce_schemas(), self.recovery.remind());
    }

    /// Adds the Compact schemas of clients to the registry. Clients send their schemas to the
    /// current members, and not to members that join later.
    async fn announce_schemas(&self) {
        let mut announced = 0;
        loop {
            tokio::time::sleep(SCHEMAS_CHECKED_EVERY).await;
            let Some(grid) = self.grid.upgrade() else { return };
            let count = grid.schemas().len();
            // Schemas are never removed.
            if count == announced {
                continue;
            }
            let missing = grid.schemas_to_announce();
            drop(grid);
            let mut all = true;
            for schema in missing {
                let name = schema.name.clone();
                match self.registry_client.execute(redefine(vec![schema])).await {
                    // Stale: another member was first.
                    Ok(Reply::Done | Reply::Stale) => {}
                    Ok(reply) => tracing::warn!("{name} is not known to members that join later: {reply:?}"),
                    Err(_) => all = false,
                }
            }
            if all {
                announced = count;
            }
        }
    }

    async fn maintain(&self) {
        let mut handed = Instant::now();
        let registry = self.registry_client.registry().clone();
        let mut known: Arc<RegistryState> = Arc::default();
        let (mut cluster_log, mut suspected) = (ClusterLog::default(), 0);
        loop {
            let state = registry.state();
            if state.version != known.version {
                self.update_addresses(&known, &state);
                known = state.clone();
                self.views.renew();
            }
            cluster_log.log_changes(self.member, &state, self.views.groups(), &self.views.clocks_ahead(), |id| {
                self.views.silent_for(id)
            });
            for (id, group) in (0..).map(GroupId).zip(&self.groups) {
                self.step(group, &state, &state.places(id), &BTreeSet::new(), &mut handed).await;
            }
            let followers: BTreeSet<MemberId> = state.members().map(|(id, _)| id).collect();
            self.step(self.registry_client.group(), &state, &state.registry_places(), &followers, &mut handed).await;
            self.remove_dead_members(&state, &mut suspected).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Announces the led groups to the other members. It waits for nothing else, because requests
    /// of clients wait for the announcement.
    async fn announce_leadership(&self) {
        let mut sent = (Leading::default(), false, Instant::now());
        let mut checked = (Vec::new(), Instant::now());
        loop {
            let terms: Vec<Option<u64>> = self.groups.iter().map(Group::has_lease).collect();
            if terms != checked.0 || checked.1.elapsed() >= PAUSE {
                checked = (terms, Instant::now());
                let leading = self.leading();
                self.views.record_leading(self.member, &leading);
                let serves = self.serves.load(Ordering::SeqCst);
                if leading != sent.0 || serves != sent.1 || sent.2.elapsed() >= ANNOUNCED_EVERY {
                    self.send_announcement(&self.registry_client.registry().state(), &leading);
                    sent = (leading, serves, Instant::now());
                }
            }
            tokio::time::sleep(LEADING_PAUSE).await;
        }
    }

    fn update_addresses(&self, known: &RegistryState, state: &RegistryState) {
        for (id, _) in known.members().filter(|(id, _)| state.member(*id).is_none()) {
            self.links.addresses().remove(id);
        }
        for (id, facts) in state.members().filter(|(id, _)| *id != self.member) {
            self.links.addresses().set(id, facts.address.as_str());
        }
    }

    /// The groups that this member leads with a valid lease.
    fn leading(&self) -> Leading {
        let of_partitions = (0..).map(GroupId).zip(&self.groups).filter_map(|(id, group)| led(id, group));
        Leading { groups: of_partitions.chain(led(REGISTRY, self.registry_client.group())).collect() }
    }

    fn figures(&self) -> Vec<Figures> {
        let of_partitions = (0..).map(GroupId).zip(&self.groups).filter_map(|(id, group)| figures(id, group));
        of_partitions.chain(figures(REGISTRY, self.registry_client.group())).collect()
    }

    fn send_announcement(&self, state: &RegistryState, leading: &Leading) {
        let figures = self.figures();
        self.views.record_figures(self.member, figures.clone());
        let request = Request::Leading(self.announcement(state, leading, figures)).write();
        for (id, _) in state.members().filter(|(id, _)| *id != self.member) {
            // A member that is not reached receives the next announcement. The links limit the
            // number of calls in flight.
            let call = self.links.call(id, Channel::Requests, request.clone());
            let recovery = self.recovery.clone();
            drop(tokio::spawn(async move {
                if let Some(standing) = call.await.ok().and_then(|answer| read::<Standing>(&answer).ok()) {
                    recovery.apply_standing(standing);
                }
            }));
        }
    }

    fn announcement(&self, state: &RegistryState, leading: &Leading, figures: Vec<Figures>) -> Announcement {
        let serves = self.serves.load(Ordering::SeqCst);
        let (cluster, epoch, leading) = (state.cluster, self.recovery.epoch.get().0, leading.clone());
        Announcement { cluster, epoch, now_ms: Some(self.views.now_ms()), leading, figures, serves }
    }

    async fn step<S: StateMachine>(
        &self,
        group: &Group<BootRuntime, S>,
        state: &RegistryState,
        wanted: &[MemberId],
        learners: &BTreeSet<MemberId>,
        handed: &mut Instant,
    ) {
        if group.has_lease().is_none() {
            return;
        }
        let status = group.status();
        let departure = |id| match id {
            id if state.is_leaving(id) => Departure::Orderly,
            id if state.was_taken_out(id) => Departure::Removed,
            _ => Departure::None,
        };
        let replicas = state.settings.replicas as usize;
        let serves = |id| self.views.serves(id);
        let Some(step) = next_step(&status, self.member, wanted, learners, replicas, departure, serves) else { return };
        if matches!(step, Step::Vote(_)) && !state.is_complete() {
            // Before enough members are present to serve, a member that has joined may leave and
            // found another cluster if the founder dies.
            return;
        }
        if matches!(step, Step::Hand(_)) {
            if handed.elapsed() < HANDED_EVERY {
                return;
            }
            *handed = Instant::now();
        }
        let take = async {
            match &step {
                Step::Learn(id) => group.add_learner(*id).await,
                Step::Vote(voters) => group.change_voters(&status.voters, voters.clone()).await,
                Step::Forget(id) => group.remove_learner(*id).await,
                Step::Hand(id) => group.transfer_leadership(*id).await.map_err(MembershipError::from),
            }
        };
        // A group that loses its majority meanwhile must not block the other groups.
        match tokio::time::timeout(STEP_MAX, take).await {
            Ok(Ok(())) => tracing::debug!(member = %self.member, ?step, "a group was changed"),
            // Another leader has made the change, or will: the next check decides again.
            Ok(Err(error)) => tracing::debug!(member = %self.member, ?step, "a group is not changed yet: {error}"),
            Err(_) => {
                tracing::warn!(member = %self.member, ?step, "a change of a group has no result after {STEP_MAX:?}")
            }
        }
    }

    /// Removes members that have not answered for a long time, or never did, if this member leads
    /// the registry. `suspected` is the number of silent members that were not removed at the last
    /// check, because a network failure is more likely.
    async fn remove_dead_members(&self, state: &RegistryState, suspected: &mut usize) {
        let group = self.registry_client.group();
        if group.has_lease().is_none() {
            return;
        }
        let since_answer = group.status().since_answer;
        // A member that has never followed the registry under this leader may have died before it
        // could, or before this leader was elected.
        let silent_for = |id: &MemberId| since_answer.get(id).copied().unwrap_or_else(|| self.views.silent_for(*id));
        let is_dead = |id: &MemberId| *id != self.member && silent_for(id) > self.dead_after;
        let dead: Vec<MemberId> = state.members().map(|(id, _)| id).filter(is_dead).collect();
        let members = state.members().count();
        let were_suspected = std::mem::take(suspected);
        if dead.is_empty() {
            return;
        }
        if dead.len() * 3 > members {
            *suspected = dead.len();
            if *suspected != were_suspected {
                tracing::warn!(
                    "{suspected} of {members} members do not answer: the network is the suspect, none of them is taken out"
                );
            }
            return;
        }
        for id in dead {
            tracing::warn!("member {id} has not answered for {:?}, and is taken out", self.dead_after);
            if let Err(error) = self.registry_client.execute(Command::Remove { member: id.0 }).await {
                tracing::warn!("member {id} is not taken out: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u64]) -> BTreeSet<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    fn status(voters: &[u64], learners: &[u64], matched: &[(u64, u64)]) -> GroupStatus {
        GroupStatus {
            term: 1,
            leads: true,
            serves: Some(1),
            leader: Some(MemberId(1)),
            committed: Some(100),
            applied: Some(100),
            purged: None,
            voters: ids(voters),
            learners: ids(learners),
            matched: matched.iter().map(|(id, upto)| (MemberId(*id), *upto)).collect(),
            since_answer: matched.iter().map(|(id, _)| (MemberId(*id), Duration::ZERO)).collect(),
            is_joint: false,
            log_bytes: 0,
            log_entries: 0,
            waiting_bytes: 0,
            failure: None,
        }
    }

    fn step(status: &GroupStatus, wanted: &[u64], leaving: &[u64]) -> Option<Step> {
        step_without(status, wanted, leaving, &[])
    }

    fn step_without(status: &GroupStatus, wanted: &[u64], leaving: &[u64], taken_out: &[u64]) -> Option<Step> {
        let wanted: Vec<MemberId> = wanted.iter().copied().map(MemberId).collect();
        let departure = |id: MemberId| match id.0 {
            id if leaving.contains(&id) => Departure::Orderly,
            id if taken_out.contains(&id) => Departure::Removed,
            _ => Departure::None,
        };
        next_step(status, MemberId(1), &wanted, &BTreeSet::new(), 3, departure, |id| id != CLOSED)
    }

    /// A member that does not accept clients yet.
    const CLOSED: MemberId = MemberId(9);

    #[test]
    fn a_member_leads_once_clients_are_let_in_there() {
        let led = status(&[1, 2, 9], &[], &[(2, 100), (9, 100)]);
        assert_eq!(step(&led, &[9, 1, 2], &[]), None);
        assert_eq!(step(&led, &[2, 1, 9], &[]), Some(Step::Hand(MemberId(2))));
        // A leaving leader hands over to a member that accepts clients, or to any member if there
        // is none.
        assert_eq!(step(&led, &[9, 2], &[1]), Some(Step::Hand(MemberId(2))));
        let led = status(&[1, 9], &[], &[(9, 100)]);
        assert_eq!(step(&led, &[9], &[1]), Some(Step::Hand(CLOSED)));
    }

    #[test]
    fn a_change_that_was_left_half_made_is_ended() {
        let mut half = status(&[1, 2, 3, 4], &[], &[(2, 100), (4, 100)]);
        half.is_joint = true;
        assert_eq!(step(&half, &[1, 2, 4], &[]), Some(Step::Vote(ids(&[1, 2, 4]))));
        // A wanted member that does not follow yet is added after the change.
        assert_eq!(step(&half, &[1, 2, 5], &[]), Some(Step::Vote(ids(&[1, 2, 3, 4]))));
        // A leader keeps its vote until it has handed over.
        assert_eq!(step(&half, &[2, 3, 4], &[]), Some(Step::Vote(ids(&[1, 2, 3, 4]))));
        // The death of a member never makes a group smaller.
        assert_eq!(step_without(&half, &[1, 2], &[], &[3, 4]), Some(Step::Vote(ids(&[1, 2, 3, 4]))));
    }

    #[test]
    fn who_leaves_takes_those_along_that_died_before() {
        let led = status(&[1, 2, 3], &[], &[(2, 100)]);
        assert_eq!(step_without(&led, &[1], &[2], &[3]), Some(Step::Vote(ids(&[1]))));
        assert_eq!(step_without(&led, &[1], &[], &[2, 3]), None);
        assert_eq!(step_without(&led, &[1], &[2], &[]), None);
    }

    #[test]
    fn a_member_follows_catches_up_votes_and_then_leads() {
        assert_eq!(step(&status(&[1], &[], &[]), &[2, 1], &[]), Some(Step::Learn(MemberId(2))));
        assert_eq!(step(&status(&[1], &[2], &[(2, 5)]), &[2, 1], &[]), None);
        assert_eq!(step(&status(&[1], &[2], &[(2, 90)]), &[2, 1], &[]), Some(Step::Vote(ids(&[1, 2]))));
        assert_eq!(step(&status(&[1, 2], &[], &[(2, 100)]), &[2, 1], &[]), Some(Step::Hand(MemberId(2))));
        assert_eq!(step(&status(&[1, 2], &[], &[(2, 100)]), &[1, 2], &[]), None);
        assert_eq!(step(&status(&[1, 2], &[3], &[(2, 100)]), &[1, 2], &[]), Some(Step::Forget(MemberId(3))));
    }

    #[test]
    fn dead_out_and_new_in_is_one_change_and_nothing_shrinks_by_death() {
        let dead = status(&[1, 2, 3], &[4], &[(2, 100), (4, 100)]);
        assert_eq!(step(&dead, &[1, 2, 4], &[]), Some(Step::Vote(ids(&[1, 2, 4]))));
        assert_eq!(step(&dead, &[1, 2], &[]), None);
        assert_eq!(step(&dead, &[1, 2], &[3]), Some(Step::Vote(ids(&[1, 2]))));
    }

    #[test]
    fn a_leader_that_goes_hands_over_before_its_vote_is_taken() {
        let led = status(&[1, 2, 3], &[], &[(2, 100), (3, 100)]);
        assert_eq!(step(&led, &[2, 3], &[1]), Some(Step::Hand(MemberId(2))));
    }

    #[test]
    fn a_group_moves_to_other_members_altogether() {
        let caught_up = [(2, 100), (3, 100), (4, 100)];
        assert_eq!(step(&status(&[1], &[2, 3, 4], &[(2, 100), (3, 1), (4, 100)]), &[2, 3, 4], &[]), None);
        let vote = Step::Vote(ids(&[1, 2, 3, 4]));
        assert_eq!(step(&status(&[1], &[2, 3, 4], &caught_up), &[2, 3, 4], &[]), Some(vote));
        let hand = Step::Hand(MemberId(2));
        assert_eq!(step(&status(&[1, 2, 3, 4], &[], &caught_up), &[2, 3, 4], &[]), Some(hand));
        // The new leader removes the fourth member, dead or alive.
        assert_eq!(step(&status(&[1, 2, 3, 4], &[], &caught_up), &[1, 2, 3], &[]), Some(Step::Vote(ids(&[1, 2, 3]))));
    }

    #[test]
    fn leadership_is_not_handed_to_a_member_that_does_not_answer() {
        let mut led = status(&[1, 2, 3], &[4], &[(2, 100), (3, 100), (4, 100)]);
        led.since_answer.insert(MemberId(2), Duration::from_secs(2));
        assert_eq!(step(&led, &[2, 3, 4], &[]), Some(Step::Hand(MemberId(3))));
        led.since_answer.remove(&MemberId(3));
        assert_eq!(step(&led, &[2, 3, 4], &[]), None);
        led.learners.clear();
        assert_eq!(step(&led, &[2, 1, 3], &[]), None);
    }
}
