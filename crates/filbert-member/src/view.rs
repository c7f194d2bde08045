//! The view of the cluster for clients and operators, computed from the registry and from the known
//! leaders. Doors publish it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_cluster::{Epoch, GroupId, MemberId};
use filbert_data::PartitionId;
use filbert_grid::{
    Clock, ClusterStatus, ClusterView, GroupStatus, MemberState, MemberStatus, MemberView, PartitionLoss, ViewCallback,
};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::cluster_log::Groups;
use crate::leading::{Announcement, FRESH, Figures, Leaders, Leading, Standing};
use crate::registry::{Loss, MemberFacts, REGISTRY, Registry, RegistryState};

/// This member's knowledge of the cluster.
pub(crate) struct Views {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    /// Whether one of two members continues alone, by this member's settings.
    pair_continues: bool,
    leaders: Mutex<Leaders>,
    /// The last announcement of each member. For a member without one: the time since which it is
    /// known.
    last_announcements: Mutex<BTreeMap<MemberId, LastAnnouncement>>,
    view: RwLock<Arc<ClusterView>>,
    changed: Mutex<Vec<ViewCallback>>,
}

#[derive(Clone, Copy)]
struct LastAnnouncement {
    at: Instant,
    /// Whether the member has sent any announcement.
    ever: bool,
    /// Whether the member accepts clients, according to its last announcement.
    serves: bool,
    /// The lead of its clock over this member's clock at that time, in milliseconds.
    ahead_ms: i64,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.read().fmt(f)
    }
}

impl Views {
    pub(crate) fn new(registry: Arc<Registry>, clock: Arc<dyn Clock>, pair_continues: bool) -> Self {
        Views {
            registry,
            clock,
            pair_continues,
            leaders: Mutex::default(),
            last_announcements: Mutex::default(),
            view: RwLock::default(),
            changed: Mutex::default(),
        }
    }

    /// Records the groups that a member leads.
    pub(crate) fn record_leading(&self, member: MemberId, leading: &Leading) {
        let groups = self.registry.state().settings.groups;
        let is_group = |group: GroupId| group.0 < groups || group == REGISTRY;
        if self.leaders.lock().record_leading(member, leading, is_group) {
            self.renew();
        }
    }

    /// The version of the registry that this member knows.
    pub(crate) fn registry_version(&self) -> u64 {
        self.registry.state().version
    }

    /// Records the announcement of another member, if it is a member in the same epoch. `here` is
    /// the current epoch of this member. Returns the standing of the sender.
    pub(crate) fn record_announcement(&self, member: MemberId, here: Epoch, announcement: Announcement) -> Standing {
        let state = self.registry.state();
        let standing = standing(&state, here, announcement.cluster, member, Epoch(announcement.epoch));
        if standing != Standing::Member || Epoch(announcement.epoch) != here {
            return standing;
        }
        if state.member(member).is_some() {
            let ahead_ms = announcement.now_ms.map_or(0, |theirs| theirs.saturating_sub(self.now_ms()));
            let received = LastAnnouncement { at: Instant::now(), ever: true, serves: announcement.serves, ahead_ms };
            self.last_announcements.lock().insert(member, received);
        }
        self.record_leading(member, &announcement.leading);
        self.record_figures(member, announcement.figures);
        Standing::Member
    }

    pub(crate) fn record_figures(&self, member: MemberId, figures: Vec<Figures>) {
        self.leaders.lock().record_figures(member, figures);
    }

    /// The leader of a group and its term, according to the last announcement.
    pub(crate) fn leader_and_term(&self, group: GroupId) -> Option<(MemberId, u64)> {
        self.leaders.lock().of(group).map(|known| (known.leader, known.term))
    }

    /// The number of voters of a group, according to the last announcement of its leader.
    pub(crate) fn voters(&self, group: GroupId) -> usize {
        self.leaders.lock().of(group).map_or(0, |known| known.voters.len())
    }

    /// Whether the last announcement of a group's leader, in the term `term` or a later one, has
    /// voters without a member.
    pub(crate) fn is_without(&self, group: GroupId, member: MemberId, term: u64) -> bool {
        let leaders = self.leaders.lock();
        let known = leaders.of(group).filter(|known| known.term >= term);
        known.is_some_and(|known| !known.voters.contains(&member.0))
    }

    /// Whether a member votes in any group, according to the last announcements of the leaders.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.leaders.lock().votes(member)
    }

    /// The current time of this member, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().0
    }

    /// The leads of other members' clocks over this member's clock at their last announcements, in
    /// milliseconds. Negative = behind.
    pub(crate) fn clocks_ahead(&self) -> BTreeMap<MemberId, i64> {
        self.last_announcements.lock().iter().map(|(id, last)| (*id, last.ahead_ms)).collect()
    }

    /// The time since the last announcement of another member.
    pub(crate) fn silent_for(&self, member: MemberId) -> Duration {
        self.last_announcements.lock().get(&member).map(|last| last.at.elapsed()).unwrap_or_default()
    }

    /// Whether another member accepts clients, as far as it is known.
    pub(crate) fn serves(&self, member: MemberId) -> bool {
        self.last_announcements.lock().get(&member).is_some_and(|last| last.serves)
    }

    /// Recomputes the view, and calls the callbacks if it has changed.
    pub(crate) fn renew(&self) {
        let state = self.registry.state();
        {
            let mut announcements = self.last_announcements.lock();
            announcements.retain(|id, _| state.member(*id).is_some());
            for (id, _) in state.members() {
                let none_yet = LastAnnouncement { at: Instant::now(), ever: false, serves: false, ahead_ms: 0 };
                announcements.entry(id).or_insert(none_yet);
            }
        }
        {
            // Held throughout, so that an older view never replaces a newer one.
            let leaders = self.leaders.lock();
            let view = view(&state, &leaders);
            let mut published = self.view.write();
            if **published == view {
                return;
            }
            *published = Arc::new(view);
        }
        self.changed.lock().iter().for_each(|changed| changed());
    }

    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.view.read().clone()
    }

    pub(crate) fn on_change(&self, changed: ViewCallback) {
        self.changed.lock().push(changed);
    }

    /// The numbers of groups with and without leaders.
    pub(crate) fn groups(&self) -> Groups {
        let (state, leaders) = (self.registry.state(), self.leaders.lock());
        let all = (0..state.settings.groups).map(GroupId).chain([REGISTRY]);
        let is_led = |group: GroupId| leaders.of(group).is_some_and(|known| known.leader_now().is_some());
        Groups {
            without_leader: all.clone().filter(|group| !is_led(*group)).count(),
            all: all.count(),
            pair_continues: self.pair_continues,
        }
    }

    /// The status of the cluster for an operator, as seen from this member.
    pub(crate) fn status(&self, here: MemberId) -> ClusterStatus {
        let (state, announcements) = (self.registry.state(), self.last_announcements.lock().clone());
        let leaders = self.leaders.lock();
        let numbers = (0..state.settings.groups).map(Some);
        let groups: Vec<GroupStatus> = [None].into_iter().chain(numbers).map(|n| group(&state, &leaders, n)).collect();
        let members = state.members().map(|(id, facts)| {
            let last = if id == here { None } else { announcements.get(&id).copied() };
            member(&state, &groups, (id, facts), last)
        });
        ClusterStatus {
            cluster: state.cluster,
            member: here.0,
            recoveries: state.recoveries().epoch().number(),
            pair_continues: self.pair_continues,
            replicas_wanted: state.settings.replicas,
            members: members.collect(),
            groups,
        }
    }
}

/// The standing of a member that announces a cluster and an epoch. `here` is the current epoch of
/// this member.
pub(crate) fn standing(state: &RegistryState, here: Epoch, cluster: Uuid, member: MemberId, epoch: Epoch) -> Standing {
    if cluster != state.cluster && !state.cluster.is_nil() {
        return Standing::Stranger;
    }
    // The registry does not list the left-behind members until the recovery is decided.
    let is_decided = state.recoveries().epoch() == here;
    let is_member = state.member(member).is_some();
    match (epoch < here && is_decided, is_member) {
        (true, true) => Standing::Behind(here.0),
        (true, false) => Standing::LeftBehind(here.0),
        (false, _) if epoch == here && state.was_taken_out(member) => Standing::TakenOut,
        _ => Standing::Member,
    }
}

fn group(state: &RegistryState, leaders: &Leaders, number: Option<u32>) -> GroupStatus {
    let id = number.map_or(REGISTRY, GroupId);
    let wanted = if number.is_some() { state.places(id) } else { state.registry_places() };
    let mut group =
        GroupStatus { number, wanted: wanted.into_iter().map(|id| id.0).collect(), ..GroupStatus::default() };
    if let Some(known) = leaders.of(id) {
        let figures = &known.figures;
        group.term = known.term;
        group.leader = known.leader_now().map(|id| id.0);
        group.voters = known.voters.iter().map(|id| (*id, figures.voters.get(id).copied().flatten())).collect();
        group.learners.clone_from(&figures.learners);
        group.learners.retain(|id, _| !known.voters.contains(id));
        group.committed = figures.committed;
        (group.log_entries, group.log_bytes) = (figures.log_entries, figures.log_bytes);
        group.is_changing = figures.is_joint;
    }
    group
}

/// `last` is `None` for this member itself.
fn member(
    state: &RegistryState,
    groups: &[GroupStatus],
    (id, facts): (MemberId, &MemberFacts),
    last: Option<LastAnnouncement>,
) -> MemberStatus {
    let is_wanted = groups.iter().any(|group| group.wanted.contains(&id.0));
    let votes = groups.iter().any(|group| group.voters.contains_key(&id.0));
    let silent_for = last.map(|last| last.at.elapsed());
    let member_state = if silent_for.is_some_and(|silent| silent >= FRESH) {
        MemberState::Unreachable
    } else if state.is_leaving(id) {
        MemberState::Leaving
    } else if last.is_some_and(|last| !last.ever) || (is_wanted && !votes) {
        MemberState::Joining
    } else {
        MemberState::Active
    };
    MemberStatus {
        id: id.0,
        uuid: facts.uuid,
        address: facts.address.clone(),
        client_address: format!("{}:{}", facts.client_host, facts.client_port),
        state: member_state,
        is_lite: facts.is_lite,
        joined_ms: facts.joined_ms,
        silent_for,
    }
}

fn view(state: &RegistryState, leaders: &Leaders) -> ClusterView {
    let members = state.members().map(|(id, facts)| MemberView {
        uuid: facts.uuid,
        host: facts.client_host.clone(),
        port: facts.client_port,
        // Clients send no statements to lite members. A statement that is on its way to a member
        // when it is removed has no answer.
        is_lite: facts.is_lite || state.is_leaving(id),
    });
    let groups = state.settings.groups;
    let leader = |partition| {
        let group = GroupId::of(PartitionId(partition), groups);
        Some(state.member(leaders.leader(group)?)?.uuid)
    };
    ClusterView {
        members: members.collect(),
        members_version: state.members_version,
        leaders: (0..state.settings.partitions).map(leader).collect(),
        // A former member is not published as a leader. So a change of the members changes this
        // version too.
        leaders_version: leaders.version().saturating_add(state.members_version),
        losses: losses(state),
    }
}

fn losses(state: &RegistryState) -> Vec<Option<PartitionLoss>> {
    let by_group: BTreeMap<GroupId, PartitionLoss> = state
        .recoveries()
        .losses()
        .map(|(group, loss)| {
            let Loss { epoch, kept_by, copies_lost } = *loss;
            (group, PartitionLoss { epoch, kept_by, copies_lost })
        })
        .collect();
    if by_group.is_empty() {
        return Vec::new();
    }
    let groups = state.settings.groups;
    let of_partition = |partition| by_group.get(&GroupId::of(PartitionId(partition), groups)).copied();
    (0..state.settings.partitions).map(of_partition).collect()
}
