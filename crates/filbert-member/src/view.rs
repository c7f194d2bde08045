//! The cluster as doors tell clients and operators of it, made of the registry and of what is known of leaders.

use std::collections::{BTreeMap, BTreeSet};
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

use crate::leading::{FRESH, Figures, Leaders, Leading, Said, Standing};
use crate::news::Groups;
use crate::registry::{Loss, MemberFacts, REGISTRY, Registry, RegistryState};

/// What a member has said of statements counts for so long: one that is dead is brought nothing.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// What this member knows of the cluster.
pub(crate) struct Views {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    /// Whether one of two members goes on alone, by this member's settings.
    pair_continues: bool,
    leaders: Mutex<Leaders>,
    /// When each member was heard of last, or since when it is known if it never was.
    heard: Mutex<BTreeMap<MemberId, Heard>>,
    view: RwLock<Arc<ClusterView>>,
    changed: Mutex<Vec<ViewCallback>>,
}

#[derive(Clone, Copy)]
struct Heard {
    at: Instant,
    /// Whether it was heard of at all.
    ever: bool,
    /// Whether clients are let in there, as it has said last.
    serves: bool,
    /// Whether it is asked statements, and whether it is to be brought all groups for them.
    is_asked: bool,
    follows: bool,
    /// By how much its clock was ahead then, in milliseconds.
    ahead_ms: i64,
}

impl Heard {
    fn not_yet() -> Heard {
        Heard { at: Instant::now(), ever: false, serves: false, is_asked: false, follows: false, ahead_ms: 0 }
    }
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
            heard: Mutex::default(),
            view: RwLock::default(),
            changed: Mutex::default(),
        }
    }

    /// Takes note of what a member says that it leads.
    pub(crate) fn hear(&self, member: MemberId, leading: &Leading) {
        let groups = self.registry.state().settings.groups;
        let is_group = |group: GroupId| group.0 < groups || group == REGISTRY;
        if self.leaders.lock().hear(member, leading, is_group) {
            self.renew();
        }
    }

    /// The version of the registry that this member knows.
    pub(crate) fn registry_version(&self) -> u64 {
        self.registry.state().version
    }

    /// Takes note of what another member says, if it is one. `here` is the epoch that this member is in.
    pub(crate) fn hear_said(&self, member: MemberId, here: Epoch, said: Said) -> Standing {
        let state = self.registry.state();
        let standing = standing(&state, here, said.cluster, member, Epoch(said.epoch));
        if standing != Standing::Member || Epoch(said.epoch) != here {
            return standing;
        }
        if state.member(member).is_some() {
            let ahead_ms = said.now_ms.map_or(0, |theirs| theirs.saturating_sub(self.now_ms()));
            let Said { serves, is_asked, follows, .. } = said;
            let heard = Heard { at: Instant::now(), ever: true, serves, is_asked, follows, ahead_ms };
            self.heard.lock().insert(member, heard);
        }
        self.hear(member, &said.leading);
        self.hear_figures(member, said.figures);
        Standing::Member
    }

    pub(crate) fn hear_figures(&self, member: MemberId, figures: Vec<Figures>) {
        self.leaders.lock().hear_figures(member, figures);
    }

    /// Who leads a group, as far as is known.
    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.leaders.lock().leader(group)
    }

    /// How many members vote in a group, as its leader has said last.
    pub(crate) fn voters(&self, group: GroupId) -> usize {
        self.leaders.lock().of(group).map_or(0, |known| known.voters.len())
    }

    /// Whether the leader of a group has said after that moment, in that term or a later one, that a member neither votes in it nor follows.
    pub(crate) fn is_without(&self, group: GroupId, member: MemberId, term: u64, since: Instant) -> bool {
        let leaders = self.leaders.lock();
        let known = leaders.of(group).filter(|known| known.term >= term && known.said > since);
        known.is_some_and(|known| !known.voters.contains(&member.0) && !known.followers.contains(&member.0))
    }

    /// Whether a member votes in any group, as the leaders have said last.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.leaders.lock().votes(member)
    }

    /// The time of day here, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().0
    }

    /// By how much the clocks of other members were ahead of this one's when they were heard of last, in milliseconds; less than 0: behind.
    pub(crate) fn clocks_ahead(&self) -> BTreeMap<MemberId, i64> {
        self.heard.lock().iter().map(|(id, heard)| (*id, heard.ahead_ms)).collect()
    }

    /// How long another member has not been heard of.
    pub(crate) fn silent_for(&self, member: MemberId) -> Duration {
        self.heard.lock().get(&member).map(|heard| heard.at.elapsed()).unwrap_or_default()
    }

    /// Whether clients are let in at another member, as far as is known.
    pub(crate) fn serves(&self, member: MemberId) -> bool {
        self.heard.lock().get(&member).is_some_and(|heard| heard.serves)
    }

    /// Whether another member says that it is asked statements.
    pub(crate) fn is_asked_elsewhere(&self) -> bool {
        self.heard.lock().values().any(|heard| heard.is_asked && heard.at.elapsed() < SILENT_MAX)
    }

    /// The other members that are to be brought all groups.
    pub(crate) fn followers(&self) -> BTreeSet<MemberId> {
        let heard = self.heard.lock();
        heard.iter().filter(|(_, heard)| heard.follows && heard.at.elapsed() < SILENT_MAX).map(|(id, _)| *id).collect()
    }

    /// Bytes of all data, as the leaders of groups have said last.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.leaders.lock().data_bytes()
    }

    /// Makes the view anew, and tells of it if it is another one.
    pub(crate) fn renew(&self) {
        let state = self.registry.state();
        {
            let mut heard = self.heard.lock();
            heard.retain(|id, _| state.member(*id).is_some());
            for (id, _) in state.members() {
                heard.entry(id).or_insert_with(Heard::not_yet);
            }
        }
        {
            // Held throughout, so that no older view comes after a newer one.
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

    /// How the groups stand.
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

    /// The cluster as an operator sees it from this member.
    pub(crate) fn status(&self, here: MemberId) -> ClusterStatus {
        let (state, heard) = (self.registry.state(), self.heard.lock().clone());
        let leaders = self.leaders.lock();
        let numbers = (0..state.settings.groups).map(Some);
        let groups: Vec<GroupStatus> = [None].into_iter().chain(numbers).map(|n| group(&state, &leaders, n)).collect();
        let members = state.members().map(|(id, facts)| {
            let heard = if id == here { None } else { heard.get(&id).copied() };
            member(&state, &groups, (id, facts), heard)
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

/// What a member of a cluster is here, which says that it is in an epoch.
pub(crate) fn standing(state: &RegistryState, here: Epoch, cluster: Uuid, member: MemberId, epoch: Epoch) -> Standing {
    if cluster != state.cluster && !state.cluster.is_nil() {
        return Standing::Stranger;
    }
    // While the cluster is about to go on in a later epoch, it is not known without whom.
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

/// `heard` is nothing of the member that looks.
fn member(
    state: &RegistryState,
    groups: &[GroupStatus],
    (id, facts): (MemberId, &MemberFacts),
    heard: Option<Heard>,
) -> MemberStatus {
    let is_wanted = groups.iter().any(|group| group.wanted.contains(&id.0));
    let votes = groups.iter().any(|group| group.voters.contains_key(&id.0));
    let silent_for = heard.map(|heard| heard.at.elapsed());
    let member_state = if silent_for.is_some_and(|silent| silent >= FRESH) {
        MemberState::Unreachable
    } else if state.is_leaving(id) {
        MemberState::Leaving
    } else if heard.is_some_and(|heard| !heard.ever) || (is_wanted && !votes) {
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
        // Clients ask other members statements from now on.
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
        // A leader that is no member any more is not told: that is a change as well.
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
