//! What a member does for the groups that it leads, and tells others of them.
//!
//! The registry says who is to hold a group. Its leader brings that about, one step at a time: a member that lacks the group follows it
//! first, without a vote; when all that are wanted have caught up, one joint change makes them the voters. A group is never left with
//! fewer voters than it should have because a member died: only one that leaves in order makes it smaller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_cluster::{BootRuntime, Group, GroupId, GroupStatus, MemberId, MembershipError, StateMachine};
use filbert_grid::{Grid, replication};
use filbert_links::{Channel, Links};

use crate::asking::Asking;
use crate::copies::Copies;
use crate::leading::{Figures, Leading, Led, Said, Standing, figures};
use crate::news::News;
use crate::recovery::Recovery;
use crate::registry::{Command, REGISTRY, RegistryState, Reply, redefine};
use crate::replicator::PartitionGroup;
use crate::service::{Request, read};
use crate::view::Views;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at which groups this member leads: a part of each failover.
const LEADING_PAUSE: Duration = Duration::from_millis(20);
/// Others are told of what this member leads so often, even without a change.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// A member that has caught up within so many entries is close enough to vote: it has the rest before the change is made.
const LAG_MAX: u64 = 64;
/// How long a step of one group may take while the others wait.
const STEP_MAX: Duration = Duration::from_secs(1);
/// Whoever has not answered for so long is handed no leadership: a group whose leader hands over to a dead member has none until it elects.
const SILENT_MAX: Duration = Duration::from_millis(500);
/// Between two looks for Compact schemas that clients have sent.
const ANNOUNCED_EVERY: Duration = Duration::from_millis(500);
/// Between two times that leadership is handed over by this member.
const HANDED_EVERY: Duration = Duration::from_millis(300);

/// What upkeep works on.
pub(crate) struct Upkeep {
    pub(crate) member: MemberId,
    pub(crate) groups: Vec<PartitionGroup>,
    pub(crate) asking: Arc<Asking>,
    pub(crate) links: Arc<Links>,
    pub(crate) views: Arc<Views>,
    pub(crate) grid: Weak<Grid>,
    /// Whether clients are let in here.
    pub(crate) serves: Arc<AtomicBool>,
    pub(crate) recovery: Arc<Recovery>,
    pub(crate) copies: Arc<Copies>,
    /// After so long without an answer a member is taken for dead.
    pub(crate) dead_after: Duration,
}

/// What the next step towards the wanted voters is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member is to follow.
    Learn(MemberId),
    /// These are to vote.
    Vote(BTreeSet<MemberId>),
    /// A member need not follow any more.
    Forget(MemberId),
    /// Another member is to lead.
    Hand(MemberId),
}

/// How a voter that is not wanted goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    /// It is a member, and other members are wanted.
    Stays,
    /// It leaves in order, and is not dead.
    Leaves,
    /// It is no member any more.
    TakenOut,
}

/// The next step of a group, if there is one. `wanted` are its voters, the one that is to lead first; `learners` may follow without a vote;
/// `replicas` is how many there should be; `going` is asked of voters that are not wanted, `serves` of those that could lead: where no client
/// is let in yet, its requests would wait.
fn next_step(
    status: &GroupStatus,
    leader: MemberId,
    wanted: &[MemberId],
    learners: &BTreeSet<MemberId>,
    replicas: usize,
    going: impl Fn(MemberId) -> Going,
    serves: impl Fn(MemberId) -> bool,
) -> Option<Step> {
    if wanted.is_empty() {
        return None;
    }
    let follows = |id: &MemberId| status.voters.contains(id) || status.learners.contains(id);
    let target: BTreeSet<MemberId> = wanted.iter().copied().collect();
    let is_smaller = target.len() < status.voters.len().min(replicas);
    // Where one leaves in order, those that have died before it go with it.
    let gone = || status.voters.difference(&target).map(|id| going(*id));
    let in_order = gone().any(|it| it == Going::Leaves) && gone().all(|it| it != Going::Stays);
    if status.is_joint {
        // Whoever has begun this change has lost the lead, or its patience: nobody else ends it. All of both sets are voters here.
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
    let is_there = |id: &MemberId| status.heard.get(id).is_some_and(|ago| *ago < SILENT_MAX);
    if target != status.voters {
        // One that leads does not take its own vote away: it hands over first.
        let led_by_wanted = target.contains(&leader);
        if !led_by_wanted {
            let may_lead = |id: &&MemberId| status.voters.contains(*id) && has_caught_up(id) && is_there(id);
            let heirs = || target.iter().filter(may_lead);
            if let Some(heir) = heirs().find(|id| serves(**id)).or_else(|| heirs().next()) {
                return Some(Step::Hand(*heir));
            }
            // Nobody who votes is to stay: this one votes with the others first, and then hands over.
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

/// A group, if this member leads it.
fn led<S: StateMachine>(id: GroupId, group: &Group<BootRuntime, S>) -> Option<Led> {
    let term = group.has_lease()?;
    let status = group.status();
    let ids = |ids: &BTreeSet<MemberId>| ids.iter().map(|id| id.0).collect();
    Some(Led { group: id.0, term, voters: ids(&status.voters), followers: ids(&status.learners) })
}

impl Upkeep {
    /// Looks after the groups until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        tokio::join!(self.tell_others(), self.look_after(), self.announce(), self.recovery.remind());
    }

    /// Has the registry know the Compact schemas that clients send: they go to the members that are there, and not to those that join later.
    async fn announce(&self) {
        let mut announced = 0;
        loop {
            tokio::time::sleep(ANNOUNCED_EVERY).await;
            let Some(grid) = self.grid.upgrade() else { return };
            let count = grid.schemas().len();
            // A schema that is there stays.
            if count == announced {
                continue;
            }
            let missing = grid.schemas_to_announce();
            drop(grid);
            let mut all = true;
            for schema in missing {
                let name = schema.name.clone();
                match self.asking.ask(redefine(vec![schema])).await {
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

    async fn look_after(&self) {
        let mut handed = Instant::now();
        let registry = self.asking.registry().clone();
        let mut known: Arc<RegistryState> = Arc::default();
        let (mut news, mut spared) = (News::default(), 0);
        loop {
            let state = registry.state();
            if state.version != known.version {
                self.know_addresses(&known, &state);
                known = state.clone();
                self.views.renew();
            }
            news.tell(self.member, &state, self.views.groups(), &self.views.clocks_ahead(), |id| {
                self.views.silent_for(id)
            });
            let copies = self.followers(&state);
            for (id, group) in (0..).map(GroupId).zip(&self.groups) {
                self.step(group, &state, &state.places(id), &copies, &mut handed).await;
            }
            let followers: BTreeSet<MemberId> = state.members().map(|(id, _)| id).collect();
            self.step(self.asking.group(), &state, &state.registry_places(), &followers, &mut handed).await;
            self.bury(&state, &mut spared).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The members that are to be brought all groups, for statements.
    fn followers(&self, state: &RegistryState) -> BTreeSet<MemberId> {
        let here = self.copies.follows().then_some(self.member);
        self.views.followers().into_iter().chain(here).filter(|id| state.member(*id).is_some()).collect()
    }

    /// Tells others what this member leads. It waits for nothing else: until it is told, clients' requests wait.
    async fn tell_others(&self) {
        let mut told = (Leading::default(), (false, false, false), Instant::now());
        let mut looked = (Vec::new(), Instant::now());
        loop {
            let terms: Vec<Option<u64>> = self.groups.iter().map(Group::has_lease).collect();
            let is = (self.serves.load(Ordering::SeqCst), self.copies.is_asked(), self.copies.follows());
            if terms != looked.0 || is != told.1 || looked.1.elapsed() >= PAUSE {
                looked = (terms, Instant::now());
                let leading = self.leading();
                self.views.hear(self.member, &leading);
                if leading != told.0 || is != told.1 || told.2.elapsed() >= TOLD_EVERY {
                    self.tell(&self.asking.registry().state(), &leading);
                    told = (leading, is, Instant::now());
                }
            }
            tokio::time::sleep(LEADING_PAUSE).await;
        }
    }

    fn know_addresses(&self, known: &RegistryState, state: &RegistryState) {
        for (id, _) in known.members().filter(|(id, _)| state.member(*id).is_none()) {
            self.links.addresses().remove(id);
        }
        for (id, facts) in state.members().filter(|(id, _)| *id != self.member) {
            self.links.addresses().set(id, facts.address.as_str());
        }
    }

    /// The groups that this member leads, and may answer for.
    fn leading(&self) -> Leading {
        let of_partitions = (0..).map(GroupId).zip(&self.groups).filter_map(|(id, group)| led(id, group));
        Leading { groups: of_partitions.chain(led(REGISTRY, self.asking.group())).collect() }
    }

    fn figures(&self) -> Vec<Figures> {
        let grid = self.grid.upgrade();
        let bytes = |id: GroupId| grid.as_ref().map_or(0, |grid| grid.group_bytes(replication::GroupId(id.0)) as u64);
        let of_partitions = (0..).map(GroupId).zip(&self.groups);
        let led = of_partitions.filter(|(_, group)| group.has_lease().is_some());
        let of_partitions = led.filter_map(|(id, group)| figures(id, group, bytes(id)));
        of_partitions.chain(figures(REGISTRY, self.asking.group(), 0)).collect()
    }

    fn tell(&self, state: &RegistryState, leading: &Leading) {
        let figures = self.figures();
        self.views.hear_figures(self.member, figures.clone());
        let request = Request::Leading(self.said(state, leading, figures)).write();
        for (id, _) in state.members().filter(|(id, _)| *id != self.member) {
            // Whoever is not reached hears of it next time. The links have a limit for calls that are on their way.
            let call = self.links.call(id, Channel::Requests, request.clone());
            let recovery = self.recovery.clone();
            drop(tokio::spawn(async move {
                if let Some(standing) = call.await.ok().and_then(|answer| read::<Standing>(&answer).ok()) {
                    recovery.stand(standing);
                }
            }));
        }
    }

    fn said(&self, state: &RegistryState, leading: &Leading, figures: Vec<Figures>) -> Said {
        let serves = self.serves.load(Ordering::SeqCst);
        let (is_asked, follows) = (self.copies.is_asked(), self.copies.follows());
        let (cluster, epoch, leading) = (state.cluster, self.recovery.epoch.get().0, leading.clone());
        Said { cluster, epoch, now_ms: Some(self.views.now_ms()), leading, figures, serves, is_asked, follows }
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
        let going = |id| match id {
            id if state.is_leaving(id) => Going::Leaves,
            id if state.was_taken_out(id) => Going::TakenOut,
            _ => Going::Stays,
        };
        let replicas = state.settings.replicas as usize;
        let serves = |id| self.views.serves(id);
        let Some(step) = next_step(&status, self.member, wanted, learners, replicas, going, serves) else { return };
        if matches!(step, Step::Vote(_)) && !state.is_complete() {
            // Until as many are there as serve together, whoever has joined may go and found another cluster if the founder dies.
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
                Step::Vote(voters) if status.voters.difference(voters).any(|id| learners.contains(id)) => {
                    group.change_voters_and_keep(&status.voters, voters.clone()).await
                }
                Step::Vote(voters) => group.change_voters(&status.voters, voters.clone()).await,
                Step::Forget(id) => group.remove_learner(*id).await,
                Step::Hand(id) => group.transfer_leadership(*id).await.map_err(MembershipError::from),
            }
        };
        // A group that loses its majority meanwhile must not hold the others up.
        match tokio::time::timeout(STEP_MAX, take).await {
            Ok(Ok(())) => tracing::debug!(member = %self.member, ?step, "a group was changed"),
            // Somebody else has, or will: it is looked at again.
            Ok(Err(error)) => tracing::debug!(member = %self.member, ?step, "a group is not changed yet: {error}"),
            Err(_) => {
                tracing::warn!(member = %self.member, ?step, "a change of a group has no result after {STEP_MAX:?}")
            }
        }
    }

    /// Takes members out that have not answered for long, or never did, if this member leads the registry. `spared` is how many were not
    /// taken out at the last look, because the network is the suspect.
    async fn bury(&self, state: &RegistryState, spared: &mut usize) {
        let group = self.asking.group();
        if group.has_lease().is_none() {
            return;
        }
        let heard = group.status().heard;
        // Who has never followed the registry under this leader may be one that died before it could, or before this one led.
        let silent_for = |id: &MemberId| heard.get(id).copied().unwrap_or_else(|| self.views.silent_for(*id));
        let is_dead = |id: &MemberId| *id != self.member && silent_for(id) > self.dead_after;
        let dead: Vec<MemberId> = state.members().map(|(id, _)| id).filter(is_dead).collect();
        let members = state.members().count();
        let were_spared = std::mem::take(spared);
        if dead.is_empty() {
            return;
        }
        if dead.len() * 3 > members {
            *spared = dead.len();
            if *spared != were_spared {
                tracing::warn!(
                    "{spared} of {members} members do not answer: the network is the suspect, none of them is taken out"
                );
            }
            return;
        }
        for id in dead {
            tracing::warn!("member {id} has not answered for {:?}, and is taken out", self.dead_after);
            if let Err(error) = self.asking.ask(Command::Remove { member: id.0 }).await {
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
            heard: matched.iter().map(|(id, _)| (MemberId(*id), Duration::ZERO)).collect(),
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
        let going = |id: MemberId| match id.0 {
            id if leaving.contains(&id) => Going::Leaves,
            id if taken_out.contains(&id) => Going::TakenOut,
            _ => Going::Stays,
        };
        next_step(status, MemberId(1), &wanted, &BTreeSet::new(), 3, going, |id| id != CLOSED)
    }

    /// A member that lets no clients in yet.
    const CLOSED: MemberId = MemberId(9);

    #[test]
    fn a_member_leads_once_clients_are_let_in_there() {
        let led = status(&[1, 2, 9], &[], &[(2, 100), (9, 100)]);
        assert_eq!(step(&led, &[9, 1, 2], &[]), None);
        assert_eq!(step(&led, &[2, 1, 9], &[]), Some(Step::Hand(MemberId(2))));
        // Whoever leaves hands over to one that serves, or to any if none does.
        assert_eq!(step(&led, &[9, 2], &[1]), Some(Step::Hand(MemberId(2))));
        let led = status(&[1, 9], &[], &[(9, 100)]);
        assert_eq!(step(&led, &[9], &[1]), Some(Step::Hand(CLOSED)));
    }

    #[test]
    fn a_change_that_was_left_half_made_is_ended() {
        let mut half = status(&[1, 2, 3, 4], &[], &[(2, 100), (4, 100)]);
        half.is_joint = true;
        assert_eq!(step(&half, &[1, 2, 4], &[]), Some(Step::Vote(ids(&[1, 2, 4]))));
        // One that is wanted by now and does not follow yet comes in after it.
        assert_eq!(step(&half, &[1, 2, 5], &[]), Some(Step::Vote(ids(&[1, 2, 3, 4]))));
        // Whoever leads keeps its vote until it has handed over.
        assert_eq!(step(&half, &[2, 3, 4], &[]), Some(Step::Vote(ids(&[1, 2, 3, 4]))));
        // A death makes no group smaller.
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
        // The one that leads now has the fourth go, dead or alive.
        assert_eq!(step(&status(&[1, 2, 3, 4], &[], &caught_up), &[1, 2, 3], &[]), Some(Step::Vote(ids(&[1, 2, 3]))));
    }

    #[test]
    fn leadership_is_not_handed_to_a_member_that_does_not_answer() {
        let mut led = status(&[1, 2, 3], &[4], &[(2, 100), (3, 100), (4, 100)]);
        led.heard.insert(MemberId(2), Duration::from_secs(2));
        assert_eq!(step(&led, &[2, 3, 4], &[]), Some(Step::Hand(MemberId(3))));
        led.heard.remove(&MemberId(3));
        assert_eq!(step(&led, &[2, 3, 4], &[]), None);
        led.learners.clear();
        assert_eq!(step(&led, &[2, 1, 3], &[]), None);
    }
}
