//! A member of a cluster, from its start to its end.
//!
//! What others await is a future of no known type: a crate that awaits an `async fn` compiles all that is awaited in it,
//! which is consensus and all groups here, two minutes for each program.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use filbert_cluster::{
    BootRuntime, Epoch, Group, GroupId, GroupSettings, MemberId, Replicas, SharedHeartbeats, Transport, WallClock,
};
use filbert_grid::{Clock, Environment, Grid, GridConfig, Millis, PartitionId};
use filbert_links::{Identity, LinkSettings, Links};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::administration::{Administration, Ending, EndingSender};
use crate::asking::Asking;
use crate::departed::Departed;
use crate::epoch::InEpoch;
use crate::errors::MemberError;
use crate::following::Followed;
use crate::forwarding::Forwarding;
use crate::greeting::Candidate;
use crate::joining::{self, Entry};
use crate::pair::Pair;
use crate::partitions::{GridPartitions, GridSlot};
use crate::presence::Presence;
use crate::reading::Reading;
use crate::recovery::Recovery;
use crate::registry::{ClusterSettings, Command, MemberFacts, REGISTRY, Registry, RegistryState, Reply};
use crate::replicator::{MemberReplicator, PartitionGroup};
use crate::service::{Answering, Joined, MemberService};
use crate::upkeep::Upkeep;
use crate::view::Views;

/// Versions of what members send each other, and of what logs and snapshots hold, that this one speaks.
pub(crate) const VERSIONS: RangeInclusive<u16> = 1..=1;

/// Between two looks at something that is awaited.
const PAUSE: Duration = Duration::from_millis(20);
/// Looks between two lines in the log.
const LOOKS_TOLD: u32 = 250;
/// Looks between two questions to the others whether anything comes of the cluster.
const LOOKS_ASKED: u32 = 50;

/// Maps that are told by name.
const MAPS_TOLD_MAX: usize = 20;

/// What can be set of a member of a cluster.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// Where this member listens for others. Port 0 is any free one.
    pub listen: SocketAddr,
    /// Where others reach it, host and port. Default none: where it listens.
    pub public_address: Option<String>,
    /// Addresses of members, host and port; one of them founds the cluster when most of them are there. The same on all that start together.
    pub addresses: Vec<String>,
    /// One of them, without which no cluster is founded or joined. Default none.
    pub required: Option<String>,
    /// Host at which clients reach this member.
    pub client_host: String,
    /// The port there.
    pub client_port: u16,
    /// Whether it holds no data. Default false.
    pub is_lite: bool,
    /// What the cluster is founded with, if this member founds it; another cluster's count of partitions or groups is refused.
    pub cluster: ClusterSettings,
    /// Groups. The counts of groups and partitions are the cluster's.
    pub groups: GroupSettings,
    /// Links.
    pub links: LinkSettings,
    /// After so long without an answer a member is taken for dead. Default 60 s.
    pub dead_after: Duration,
    /// Whether clients are let in only from [`Member::serve`] on: until then, the member is handed no leadership. Default false.
    pub serves_later: bool,
    /// Whether the one that is left of two members with data goes on alone after that time. Default false: it stops. Both go on if both are alive
    /// and cut off from each other, and what one of them acknowledges is lost when they meet again.
    pub pair_continues: bool,
    /// Versions of what members send each other that this one says to speak. Default those that it does speak: another range is for tests of
    /// upgrades, in which a member pretends to be a later one.
    #[doc(hidden)]
    pub versions: RangeInclusive<u16>,
}

impl Default for MemberSettings {
    fn default() -> Self {
        MemberSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            public_address: None,
            addresses: Vec::new(),
            required: None,
            client_host: "127.0.0.1".to_owned(),
            client_port: 5_701,
            is_lite: false,
            cluster: ClusterSettings::default(),
            groups: GroupSettings::default(),
            links: LinkSettings::default(),
            dead_after: Duration::from_secs(60),
            serves_later: false,
            pair_continues: false,
            versions: VERSIONS,
        }
    }
}

/// The time of day of a grid, as groups ask for it.
struct Wall(Arc<dyn Clock>);

impl WallClock for Wall {
    fn now(&self) -> Millis {
        self.0.now()
    }
}

/// A member whose links are there, and which is in no cluster yet.
pub struct Starting {
    settings: MemberSettings,
    config: GridConfig,
    environment: Environment,
    links: Arc<Links>,
    service: Arc<MemberService>,
    facts: MemberFacts,
}

/// A member of a cluster. Dropping it ends nothing: see [`Member::stop`].
pub struct Member {
    id: MemberId,
    grid: Arc<Grid>,
    links: Arc<Links>,
    asking: Arc<Asking>,
    groups: Vec<PartitionGroup>,
    views: Arc<Views>,
    ending: Arc<EndingSender>,
    serves: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Starting {
    /// Listens for other members. The runtime that this is called in carries the groups; nothing that waits for this member's changes may
    /// run in it.
    ///
    /// # Errors
    /// The address cannot be listened on, or a setting cannot be used.
    pub async fn listen(
        settings: MemberSettings,
        config: GridConfig,
        environment: Environment,
        uuid: Uuid,
    ) -> Result<Starting, MemberError> {
        let failed = |error: std::io::Error| MemberError::Listen {
            address: settings.listen.to_string(),
            why: error.to_string(),
        };
        let listener = TcpListener::bind(settings.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let starting = Starting::behind(settings, address, config, environment, uuid)?;
        starting.links.serve(listener);
        Ok(starting)
    }

    /// As [`Starting::listen`], where somebody else listens at `address` and gives members' connections to the [`Starting::links`].
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn behind(
        settings: MemberSettings,
        address: SocketAddr,
        config: GridConfig,
        environment: Environment,
        uuid: Uuid,
    ) -> Result<Starting, MemberError> {
        config.validate()?;
        let facts = MemberFacts {
            uuid,
            address: settings.public_address.clone().unwrap_or_else(|| address.to_string()),
            client_host: settings.client_host.clone(),
            client_port: settings.client_port,
            is_lite: settings.is_lite,
            joined_ms: 0,
            version: *settings.versions.end(),
        };
        let cluster = ClusterSettings { partitions: config.partition_count, ..settings.cluster };
        let settings = MemberSettings { cluster, ..settings };
        let wanted = settings.addresses.iter().cloned().collect();
        let here = Candidate { uuid, wanted, is_lite: settings.is_lite };
        let service = Arc::new(MemberService { here: here.into(), choice: Mutex::default(), joined: OnceLock::new() });
        let identity = Identity {
            cluster: config.cluster_name.clone(),
            incarnation: uuid,
            partitions: cluster.partitions,
            groups: cluster.groups,
            versions: settings.versions.clone(),
        };
        let links = Links::start(settings.links.clone(), identity, Arc::new(Answering(service.clone())))?;
        Ok(Starting { settings, config, environment, links: Arc::new(links), service, facts })
    }

    /// Where other members reach this one.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.facts.address
    }

    /// The connections to other members, and theirs.
    #[must_use]
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// Says at which addresses members are, where that was not known before this one listened.
    pub fn set_addresses(&mut self, addresses: Vec<String>) {
        self.service.here.write().wanted = addresses.iter().cloned().collect();
        self.settings.addresses = addresses;
    }

    /// Comes into a cluster, and waits until this member holds what it is to hold.
    ///
    /// # Errors
    /// The cluster refuses this member, or a group cannot be started.
    pub fn join(self) -> BoxFuture<'static, Result<Member, MemberError>> {
        Box::pin(self.come_in())
    }

    async fn come_in(self) -> Result<Member, MemberError> {
        let Starting { settings, mut config, environment, links, service, mut facts } = self;
        facts.joined_ms = environment.clock.now().0;
        let entry = joining::enter(&links, &service, &facts, settings.required.as_deref()).await?;
        let (id, cluster, of_cluster) = match &entry {
            Entry::Founds(_) => (MemberId(1), Uuid::new_v4(), founded(settings.cluster)),
            Entry::Joins(welcome) => (MemberId(welcome.id), welcome.cluster, welcome.settings),
        };
        links.become_member(id)?;
        let replicas = Arc::new(Replicas::new(id));
        if let Entry::Joins(welcome) = &entry {
            replicas.epoch().enter(Epoch(welcome.epoch));
        }
        let in_epoch = InEpoch { transport: links.clone(), epoch: replicas.epoch().clone() };
        (config.cluster_uuid, config.member_uuid) = (Some(cluster), Some(facts.uuid));
        config.hash_seed = Some(of_cluster.hash_seed);
        let groups = GroupSettings { groups: of_cluster.groups, partitions: of_cluster.partitions, ..settings.groups };
        let transport: Arc<dyn Transport> = Arc::new(SharedHeartbeats::<BootRuntime>::new(Arc::new(in_epoch), &groups));
        let wall: Arc<dyn WallClock> = Arc::new(Wall(environment.clock.clone()));
        let (registry, slot) = (Arc::new(Registry::new()), GridSlot::default());
        // All members wait for what is new in the registry.
        let hurried = GroupSettings { commit_hold_ms: 0, ..groups.clone() };
        let of_registry =
            Group::start(id, REGISTRY, hurried, transport.clone(), wall.clone(), registry.clone()).await?;
        replicas.add(REGISTRY, of_registry.clone());
        let mut of_partitions: Vec<PartitionGroup> = Vec::new();
        for group in (0..groups.groups).map(GroupId) {
            let partitions =
                GridPartitions::new(group, groups.groups, groups.partitions, slot.clone(), registry.clone());
            let (transport, wall) = (transport.clone(), wall.clone());
            let started = Group::start(id, group, groups.clone(), transport, wall, Arc::new(partitions)).await?;
            replicas.add(group, started.clone());
            of_partitions.push(started);
        }
        let asking = Arc::new(Asking::new(of_registry, links.clone()));
        let maps_max = config.objects_max;
        let views = Arc::new(Views::new(registry.clone(), environment.clock.clone(), settings.pair_continues));
        let followed = Arc::new(Followed::new());
        let forwarding = Arc::new(Forwarding {
            member: id,
            groups: of_partitions.clone(),
            links: links.clone(),
            views: views.clone(),
            followed: followed.clone(),
            grid: slot.clone(),
        });
        let replicator = MemberReplicator::new(forwarding.clone(), asking.clone(), maps_max, Handle::current());
        let grid = Grid::replicated(config, environment, Arc::new(replicator))?;
        slot.set(&grid);
        let ending = Arc::new(EndingSender::new(None));
        let recovery = Arc::new(Recovery {
            member: id,
            asking: asking.clone(),
            groups: of_partitions.clone(),
            links: links.clone(),
            epoch: replicas.epoch().clone(),
            ending: ending.clone(),
            running: tokio::sync::Mutex::new(()),
        });
        let administration = Administration {
            member: id,
            views: views.clone(),
            asking: asking.clone(),
            groups: Arc::new(of_partitions.clone()),
            links: links.clone(),
            ending: ending.clone(),
            recovery: recovery.clone(),
            lease: Duration::from_millis(groups.lease_ms),
            runtime: Handle::current(),
        };
        let reading = Arc::new(Reading { asking: asking.clone(), to: forwarding });
        grid.join_cluster(Arc::new(Presence {
            member: id,
            views: views.clone(),
            asking: asking.clone(),
            reading: reading.clone(),
            followed: followed.clone(),
            administration,
            runtime: Handle::current(),
        }));
        let (heard, epoch) = (views.clone(), replicas.epoch().clone());
        let joined = Joined {
            replicas,
            asking: asking.clone(),
            heard: Arc::new(move |member, said| heard.hear_said(member, epoch.get(), said)),
            ending: ending.clone(),
            reading,
            recovery: recovery.clone(),
        };
        // Nobody else starts this member.
        let _first = service.joined.set(joined);
        let serves = Arc::new(AtomicBool::new(!settings.serves_later));
        let mut member = Member {
            id,
            grid,
            links: links.clone(),
            asking,
            groups: of_partitions,
            views,
            ending,
            serves: serves.clone(),
            tasks: Vec::new(),
        };
        member.tasks.push(tokio::spawn(follow_registry(registry, followed, Arc::downgrade(&member.grid))));
        if let Entry::Founds(members_needed) = entry {
            member.found(cluster, of_cluster, facts.clone(), members_needed).await?;
        }
        let departed = Departed {
            member: id,
            asking: member.asking.clone(),
            links: links.clone(),
            views: member.views.clone(),
            grid: Arc::downgrade(&member.grid),
        };
        member.tasks.push(tokio::spawn(departed.run()));
        let upkeep = Upkeep {
            member: id,
            groups: member.groups.clone(),
            asking: member.asking.clone(),
            links,
            views: member.views.clone(),
            grid: Arc::downgrade(&member.grid),
            serves,
            recovery: recovery.clone(),
            dead_after: settings.dead_after,
        };
        member.tasks.push(tokio::spawn(Arc::new(upkeep).run()));
        if settings.pair_continues {
            let pair = Pair { views: member.views.clone(), recovery, dead_after: settings.dead_after };
            member.tasks.push(tokio::spawn(pair.run()));
        }
        if let Err(error) = member.settle(&service, &facts, &entry, cluster).await {
            member.stop().await;
            return Err(error);
        }
        tracing::info!("member {id} is in the cluster {cluster}");
        Ok(member)
    }
}

/// The settings of a cluster that this member founds.
fn founded(settings: ClusterSettings) -> ClusterSettings {
    match settings.hash_seed {
        // Of the operating system's randomness, as UUIDs that clients see must not tell the seed.
        0 => ClusterSettings { hash_seed: Uuid::new_v4().as_u64_pair().1 | 1, ..settings },
        _ => settings,
    }
}

impl Member {
    /// Makes the groups with this member alone; others join them.
    async fn found(
        &self,
        cluster: Uuid,
        settings: ClusterSettings,
        facts: MemberFacts,
        members_needed: u64,
    ) -> Result<(), MemberError> {
        let alone: BTreeSet<MemberId> = [self.id].into();
        self.asking.group().form(&alone).await?;
        let members: BTreeMap<u64, MemberFacts> = [(self.id.0, facts)].into();
        match self.asking.ask(Command::Found { cluster, settings, members, members_needed }).await? {
            Reply::Done => {}
            reply => return Err(MemberError::Refused(format!("founding a cluster was answered by {reply:?}"))),
        }
        for group in &self.groups {
            group.form(&alone).await?;
        }
        Ok(())
    }

    /// Waits until this member knows itself, a leader of each group is known, and it holds what it is to hold.
    async fn settle(
        &self,
        service: &MemberService,
        facts: &MemberFacts,
        entry: &Entry,
        cluster: Uuid,
    ) -> Result<(), MemberError> {
        let here = service.here.read().clone();
        for look in 1_u32.. {
            let Some(missing) = self.missing() else { break };
            match *self.ending.borrow() {
                Some(Ending::TakenOut) => return Err(MemberError::TakenOut(self.id)),
                // Others have gone on, and this one has served nobody: it starts anew, and joins those.
                Some(Ending::LeftBehind) => return Err(MemberError::InVain),
                Some(Ending::Asked) | None => {}
            }
            if look.is_multiple_of(LOOKS_TOLD) {
                tracing::info!("member {} does not serve yet: {missing}", self.id);
            }
            if look.is_multiple_of(LOOKS_ASKED) {
                let is_bound = match entry {
                    Entry::Founds(_) => self.registry().is_complete(),
                    Entry::Joins(_) => self.votes(),
                };
                let in_vain = joining::is_in_vain(&self.links, &here, facts, entry, cluster);
                // Where somebody cannot be asked, it is not known to be.
                if !is_bound && in_vain.await.unwrap_or(false) {
                    return Err(MemberError::InVain);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Whether this member has a vote in any group, as far as its own logs say.
    fn votes(&self) -> bool {
        let in_registry = self.asking.group().status().voters.contains(&self.id);
        in_registry || self.groups.iter().any(|group| group.status().voters.contains(&self.id))
    }

    /// What this member waits for before it serves.
    fn missing(&self) -> Option<String> {
        let state = self.registry();
        if state.member(self.id).is_none() {
            return Some(
                "the registry has not told it that it is a member, which takes most of the registry's voters"
                    .to_owned(),
            );
        }
        let needed = usize::try_from(state.members_needed()).unwrap_or(usize::MAX);
        if !state.is_complete() {
            let found = state.members().filter(|(_, facts)| !facts.is_lite).count();
            return Some(format!(
                "the cluster was founded, and {found} members have joined it, expected {needed} at first"
            ));
        }
        let of_partitions = (0..).map(GroupId).zip(&self.groups).map(|(id, _)| (id, state.places(id).len()));
        for (id, places) in of_partitions.chain([(REGISTRY, state.registry_places().len())]) {
            // What the member that founded the cluster holds alone would be lost with it.
            let (found, expected) = (self.views.voters(id), needed.min(places));
            if found < expected {
                let group =
                    if id == REGISTRY { "the registry".to_owned() } else { format!("group {id} of the partitions") };
                return Some(format!("{group} is held by {found} members, expected {expected} at first"));
            }
        }
        for (id, group) in (0..).map(GroupId).zip(&self.groups) {
            if self.views.leader(id).is_none() {
                return Some(format!("no leader of group {id} of the partitions is known"));
            }
            // While the voters are being changed, a majority of the old ones is needed as well: whoever waits for this member
            // to serve, and then has another one end, may end the last that matters.
            let status = group.status();
            let is_held = status.voters.contains(&self.id) && !status.is_joint;
            if state.places(id).contains(&self.id) && !is_held {
                return Some(format!("it does not hold group {id} of the partitions yet"));
            }
        }
        None
    }

    /// This member's id in the cluster. It is never given again.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// The grid, over groups that other members hold as well.
    #[must_use]
    pub fn grid(&self) -> &Arc<Grid> {
        &self.grid
    }

    /// Its connections.
    #[must_use]
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// What all members agree on beside the data, as far as this one knows.
    #[must_use]
    pub fn registry(&self) -> Arc<RegistryState> {
        self.asking.registry().state()
    }

    /// Where this member stands in each group of partitions, by number.
    #[must_use]
    pub fn groups(&self) -> Vec<filbert_cluster::GroupStatus> {
        self.groups.iter().map(Group::status).collect()
    }

    /// All that the log of a group has decided here: for tests, and for whoever looks for a defect.
    #[must_use]
    pub fn group_state(&self, group: u32) -> Option<(Option<u64>, Vec<u8>)> {
        Some(self.groups.get(usize::try_from(group).ok()?)?.state())
    }

    /// Says that clients are let in here: from now on this member may be handed leadership.
    pub fn serve(&self) {
        self.serves.store(true, Ordering::SeqCst);
    }

    /// Takes a member out that is dead: it is never let in again under its id.
    ///
    /// # Errors
    /// The registry has no leader.
    pub fn remove(&self, member: MemberId) -> BoxFuture<'_, Result<(), MemberError>> {
        Box::pin(async move {
            if self.registry().member(member).is_none() {
                return Err(MemberError::NoMember(member));
            }
            self.asking.ask(Command::Remove { member: member.0 }).await.map(|_| ())
        })
    }

    /// Why this member should end, once there is a reason; who runs it is to see to that.
    #[must_use]
    pub fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.ending.subscribe()
    }

    /// What this member holds, for whoever drops it: entries by map.
    #[must_use]
    pub fn holdings(&self) -> String {
        let state = self.registry();
        let entries = |name: &str| self.grid.map(name).map_or(0, |map| map.statistics().entries);
        let by_map: Vec<(&str, usize)> = state.maps().map(|(_, map)| (map.name.as_str(), entries(&map.name))).collect();
        let all: usize = by_map.iter().map(|(_, entries)| entries).sum();
        let mut largest: Vec<&(&str, usize)> = by_map.iter().filter(|(_, entries)| *entries > 0).collect();
        largest.sort_by_key(|(name, entries)| (std::cmp::Reverse(*entries), *name));
        let told = largest.iter().take(MAPS_TOLD_MAX).map(|(name, entries)| format!("{entries} of {name:?}"));
        let told: Vec<String> = told.collect();
        let more = if largest.len() > MAPS_TOLD_MAX { ", .." } else { "" };
        let of_maps = if told.is_empty() { String::new() } else { format!(": {}{more}", told.join(", ")) };
        format!("{all} entries of {} maps{of_maps}", by_map.len())
    }

    /// Leaves the cluster in order: others take over what this member leads and holds, as far as there are others, and only then it is taken
    /// out.
    ///
    /// # Errors
    /// The registry has no leader.
    pub fn leave(&self) -> BoxFuture<'_, Result<(), MemberError>> {
        Box::pin(self.go())
    }

    async fn go(&self) -> Result<(), MemberError> {
        if matches!(*self.ending.borrow(), Some(Ending::TakenOut | Ending::LeftBehind)) {
            return Ok(());
        }
        let registry = self.registry();
        let is_lite = registry.member(self.id).is_some_and(|facts| facts.is_lite);
        let is_last = registry.members().filter(|(_, facts)| !facts.is_lite).count() <= 1;
        if is_last && !is_lite {
            return Ok(());
        }
        self.asking.ask(Command::Leave { member: self.id.0 }).await?;
        while self.views.votes(self.id) {
            tokio::time::sleep(PAUSE).await;
        }
        self.asking.ask_to_go().await
    }

    /// Ends this member: at once, whatever it leads. See [`Member::leave`] for the other way.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            for task in &self.tasks {
                task.abort();
            }
            for group in &self.groups {
                group.stop().await;
            }
            self.asking.group().stop().await;
            self.links.stop().await;
            self.grid.shutdown();
        })
    }
}

/// Has near caches forget what they know of partitions that have lost something.
fn renew_partitions(grid: &Grid, known: &RegistryState, state: &RegistryState) {
    let groups = state.settings.groups;
    for (group, loss) in state.recoveries().losses() {
        if !known.recoveries().losses().any(|of| of == (group, loss)) {
            let of_group = (0..state.settings.partitions).map(PartitionId);
            grid.renew_partitions(of_group.filter(|id| GroupId::of(*id, groups) == group), loss.epoch);
        }
    }
}

/// Has the grid know the maps that the registry knows, and whoever follows definitions those.
async fn follow_registry(registry: Arc<Registry>, followed: Arc<Followed>, grid: std::sync::Weak<Grid>) {
    let mut versions = registry.watch();
    let mut known: Arc<RegistryState> = Arc::default();
    loop {
        let state = registry.state();
        let Some(grid) = grid.upgrade() else { return };
        for (id, _) in known.maps().filter(|(id, _)| !state.knows_map(*id)) {
            grid.map_dropped(id);
        }
        for (id, facts) in state.maps().filter(|(id, _)| !known.knows_map(*id)) {
            if let Err(error) = grid.map_made(id, &facts.name, facts.settings()) {
                tracing::warn!(map = facts.name, "the map is not known here: {error}");
            }
        }
        for (_, facts) in known.members().filter(|(id, _)| state.member(*id).is_none()) {
            grid.member_gone(facts.uuid);
        }
        renew_partitions(&grid, &known, &state);
        drop(grid);
        // Building columns or indexes takes as long as there are rows: not in a thread that groups need.
        let (follows, new) = (followed.clone(), state.clone());
        if tokio::task::spawn_blocking(move || follows.follow(&new)).await.is_err() {
            tracing::error!("what the cluster has defined was not taken over: a follower panicked");
        }
        known = state;
        if versions.changed().await.is_err() {
            return;
        }
    }
}
