//! A member of a cluster, from its start to its end.
//!
//! Public asynchronous functions return a boxed future: a crate that awaits an `async fn` compiles
//! everything that the function awaits. Here this is consensus and all groups, two minutes for each
//! program.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use filbert_cluster::{
    BootRuntime, Epoch, Group, GroupId, GroupSettings, MemberId, Replicas, SharedHeartbeats, Transport, WallClock,
};
use filbert_grid::{Clock, Environment, Grid, GridConfig, MemberMemory, Millis, PartitionId};
use filbert_links::{Identity, LinkSettings, Links};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::administration::Administration;
use crate::departed::Departed;
use crate::ending::{Ending, EndingSender};
use crate::epoch::InEpoch;
use crate::errors::MemberError;
use crate::following::Followed;
use crate::forwarding::Forwarding;
use crate::joining::{self, Entry};
use crate::leader_reads::LeaderReads;
use crate::messages::Candidate;
use crate::pair::Pair;
use crate::partitions::{GridPartitions, GridSlot, PartitionGroup};
use crate::presence::Presence;
use crate::reading::Reading;
use crate::recovery::Recovery;
use crate::registry::{ClusterSettings, Command, MemberFacts, REGISTRY, Registry, RegistryState, Reply};
use crate::registry_client::RegistryClient;
use crate::releasing::{Releases, Releasing};
use crate::replicator::MemberReplicator;
use crate::service::{Answering, Joined, MemberService};
use crate::upkeep::Upkeep;
use crate::view::Views;

/// The protocol versions that this member speaks. A version covers the messages between members and
/// the contents of logs and snapshots.
pub(crate) const VERSIONS: RangeInclusive<u16> = 1..=1;

/// The pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(20);
/// The time for which a member stays that leaves together with all others: they learn from the
/// registry that all leave, and this member may be its leader. A leader's followers learn of an
/// entry within a heartbeat. A member that does not learn of it waits for the maximum time of an
/// orderly leave.
const FAREWELL: Duration = Duration::from_secs(1);
/// The time after which clients know of new leaders: the doors push them with a pause of 50 ms.
const LEADERS_KNOWN_AFTER: Duration = Duration::from_millis(300);
/// The time for which a member that leaves waits until no statement runs, and no request of a
/// client waits at another member.
const RUNNING_MAX: Duration = Duration::from_secs(2);
/// The time for which a member that leaves waits for statements that write. Their writes are
/// repeated for ten seconds.
const STATEMENTS_MAX: Duration = Duration::from_secs(12);
/// The number of checks between two lines in the log.
const CHECKS_PER_LOG_LINE: u32 = 250;
/// The number of checks between two questions to the other members whether the cluster has failed.
const CHECKS_PER_INQUIRY: u32 = 50;

/// The maximum number of maps that are listed by name.
const MAPS_LISTED_MAX: usize = 20;

/// The settings of a member of a cluster.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// The address on which this member listens for other members. Port 0 is any free port.
    pub listen: SocketAddr,
    /// The address at which other members reach this member, host and port. Default none: the
    /// address on which it listens.
    pub public_address: Option<String>,
    /// The addresses of members, host and port. One of these members founds the cluster once a
    /// majority of them answers. The same on all members that start together.
    pub addresses: Vec<String>,
    /// One of the addresses. Without an answer from it, no cluster is founded or joined. Default
    /// none.
    pub required: Option<String>,
    /// The host at which clients reach this member.
    pub client_host: String,
    /// The port at which clients reach this member.
    pub client_port: u16,
    /// Whether this member holds no data. Default false.
    pub is_lite: bool,
    /// The settings of the cluster, if this member founds it. A cluster with another number of
    /// partitions or groups is refused.
    pub cluster: ClusterSettings,
    /// The settings of groups. The numbers of groups and partitions come from the cluster.
    pub groups: GroupSettings,
    /// The settings of links.
    pub links: LinkSettings,
    /// A member that has not answered for this time is considered dead. Default 60 s.
    pub dead_after: Duration,
    /// Whether clients are accepted only after [`Member::serve`]. Until then, no leadership is
    /// handed to this member. Default false.
    pub serves_later: bool,
    /// Whether the survivor of two members with data continues alone after that time. Default
    /// false: it stops. If both are alive and cut off from each other, both continue, and the
    /// changes that one of them acknowledges are lost when they meet again.
    pub pair_continues: bool,
    /// The protocol versions that this member announces. Default: the versions that it speaks.
    /// Another range is for tests of upgrades, in which a member pretends to be a later version.
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

/// The clock of a grid as the wall clock of groups.
struct Wall(Arc<dyn Clock>);

impl WallClock for Wall {
    fn now(&self) -> Millis {
        self.0.now()
    }
}

/// A member with links that has not joined a cluster yet.
pub struct Starting {
    settings: MemberSettings,
    config: GridConfig,
    environment: Environment,
    links: Arc<Links>,
    service: Arc<MemberService>,
    facts: MemberFacts,
}

/// A member of a cluster. Dropping it does not stop it: see [`Member::stop`].
pub struct Member {
    id: MemberId,
    grid: Arc<Grid>,
    links: Arc<Links>,
    registry_client: Arc<RegistryClient>,
    groups: Vec<PartitionGroup>,
    views: Arc<Views>,
    ending: Arc<EndingSender>,
    serves: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Starting {
    /// Listens for other members. The groups run in the runtime of the caller. Nothing that waits
    /// for changes of this member may run in that runtime.
    ///
    /// # Errors
    /// The member cannot listen on the address, or a setting is invalid.
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

    /// Like [`Starting::listen`], for a caller that listens at `address` itself and passes the
    /// connections of members to [`Starting::links`].
    ///
    /// # Errors
    /// A setting is invalid.
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
        let memory = Arc::new(MemberMemory::new(config.memory_bytes_max));
        let (choice, joined) = (Mutex::default(), OnceLock::new());
        let service = Arc::new(MemberService { here: here.into(), choice, joined, memory: memory.clone() });
        let identity = Identity {
            cluster: config.cluster_name.clone(),
            incarnation: uuid,
            partitions: cluster.partitions,
            groups: cluster.groups,
            versions: settings.versions.clone(),
        };
        let of_links = with_links_within(&memory, settings.links.clone());
        let links = Links::start(of_links, identity, Arc::new(Answering(service.clone())))?;
        Ok(Starting { settings, config, environment, links: Arc::new(links), service, facts })
    }

    /// The address at which other members reach this member.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.facts.address
    }

    /// The connections between this member and other members, in both directions.
    #[must_use]
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// Sets the addresses of members, if they were not known before this member listened.
    pub fn set_addresses(&mut self, addresses: Vec<String>) {
        self.service.here.write().wanted = addresses.iter().cloned().collect();
        self.settings.addresses = addresses;
    }

    /// Joins or founds a cluster, and waits until this member holds its groups.
    ///
    /// # Errors
    /// The cluster refuses this member, or a group cannot be started.
    pub fn join(self) -> BoxFuture<'static, Result<Member, MemberError>> {
        Box::pin(self.enter_cluster())
    }

    async fn enter_cluster(self) -> Result<Member, MemberError> {
        let Starting { settings, mut config, environment, links, service, mut facts } = self;
        facts.joined_ms = environment.clock.now().0;
        let entry = joining::enter(&links, &service, &facts, settings.required.as_deref()).await?;
        let (id, cluster, of_cluster) = match &entry {
            Entry::Founds(_) => (MemberId(1), Uuid::new_v4(), founded(settings.cluster)),
            Entry::Joins(welcome) => (MemberId(welcome.id), welcome.cluster, welcome.settings),
        };
        links.become_member(id, cluster)?;
        let replicas = Arc::new(Replicas::new(id));
        if let Entry::Joins(welcome) = &entry {
            replicas.epoch().enter(Epoch(welcome.epoch));
        }
        let in_epoch = InEpoch { transport: links.clone(), epoch: replicas.epoch().clone() };
        (config.cluster_uuid, config.member_uuid) = (Some(cluster), Some(facts.uuid));
        config.hash_seed = Some(of_cluster.hash_seed);
        let memory = service.memory.clone();
        let groups = GroupSettings {
            groups: of_cluster.groups,
            partitions: of_cluster.partitions,
            ..with_logs_within(&memory, of_cluster.groups, settings.groups)
        };
        let transport: Arc<dyn Transport> = Arc::new(SharedHeartbeats::<BootRuntime>::new(Arc::new(in_epoch), &groups));
        let wall: Arc<dyn WallClock> = Arc::new(Wall(environment.clock.clone()));
        let (registry, slot) = (Arc::new(Registry::new(memory.clone())), GridSlot::default());
        // All members wait for changes of the registry.
        let hurried = GroupSettings { commit_hold_ms: 0, ..groups.clone() };
        let of_registry =
            Group::start(id, REGISTRY, hurried, transport.clone(), wall.clone(), registry.clone()).await?;
        replicas.add(REGISTRY, of_registry.clone());
        let mut of_partitions: Vec<PartitionGroup> = Vec::new();
        for group in (0..groups.groups).map(GroupId) {
            let numbers = (groups.groups, groups.partitions);
            let partitions = GridPartitions::new(group, numbers, slot.clone(), registry.clone(), memory.clone());
            let (transport, wall) = (transport.clone(), wall.clone());
            let started = Group::start(id, group, groups.clone(), transport, wall, Arc::new(partitions)).await?;
            replicas.add(group, started.clone());
            of_partitions.push(started);
        }
        let registry_client = Arc::new(RegistryClient::new(of_registry, links.clone()));
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
        let leader_reads = Arc::new(LeaderReads { to: forwarding.clone() });
        let replicator =
            MemberReplicator::new(leader_reads.clone(), registry_client.clone(), maps_max, Handle::current());
        let grid = Grid::replicated(config, environment, memory, Arc::new(replicator))?;
        slot.set(&grid);
        let ending = Arc::new(EndingSender::new(None));
        let recovery = Arc::new(Recovery {
            member: id,
            registry_client: registry_client.clone(),
            groups: of_partitions.clone(),
            links: links.clone(),
            epoch: replicas.epoch().clone(),
            ending: ending.clone(),
            running: tokio::sync::Mutex::new(()),
        });
        let administration = Administration {
            member: id,
            views: views.clone(),
            registry_client: registry_client.clone(),
            groups: Arc::new(of_partitions.clone()),
            links: links.clone(),
            ending: ending.clone(),
            recovery: recovery.clone(),
            lease: Duration::from_millis(groups.lease_ms),
            runtime: Handle::current(),
        };
        let releases = Arc::<Releases>::default();
        let reading =
            Arc::new(Reading { registry_client: registry_client.clone(), to: forwarding, releases: releases.clone() });
        grid.join_cluster(Arc::new(Presence {
            member: id,
            views: views.clone(),
            registry_client: registry_client.clone(),
            reading: reading.clone(),
            followed: followed.clone(),
            administration,
            runtime: Handle::current(),
        }));
        let (announced_views, epoch) = (views.clone(), replicas.epoch().clone());
        let joined = Joined {
            replicas,
            registry_client: registry_client.clone(),
            on_announcement: Arc::new(move |member, announcement| {
                announced_views.record_announcement(member, epoch.get(), announcement)
            }),
            ending: ending.clone(),
            reading,
            leader_reads,
            recovery: recovery.clone(),
        };
        // The slot is empty: a member is started once.
        let _first = service.joined.set(joined);
        let serves = Arc::new(AtomicBool::new(!settings.serves_later));
        let mut member = Member {
            id,
            grid,
            links: links.clone(),
            registry_client,
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
            registry_client: member.registry_client.clone(),
            links: links.clone(),
            views: member.views.clone(),
            grid: Arc::downgrade(&member.grid),
        };
        member.tasks.push(tokio::spawn(departed.run()));
        let releasing = Releasing {
            member: id,
            groups: member.groups.clone(),
            registry_client: member.registry_client.clone(),
            views: member.views.clone(),
            releases,
        };
        member.tasks.push(tokio::spawn(releasing.run()));
        let upkeep = Upkeep {
            member: id,
            groups: member.groups.clone(),
            registry_client: member.registry_client.clone(),
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
        // From the operating system's randomness: the UUIDs that clients see must not reveal the
        // seed.
        0 => ClusterSettings { hash_seed: Uuid::new_v4().as_u64_pair().1 | 1, ..settings },
        _ => settings,
    }
}

/// Settings with which all logs together are purged at the size that the member's memory leaves to
/// them. Each log keeps four entries of the usual maximum size.
fn with_logs_within(memory: &MemberMemory, groups: u32, settings: GroupSettings) -> GroupSettings {
    let of_one = memory.logs_bytes_max() / groups.max(1) as usize;
    let log_bytes_kept = of_one.max(settings.entry_bytes_max.saturating_mul(4)).min(settings.log_bytes_kept);
    let log_bytes_max = settings.log_bytes_max.min(log_bytes_kept.saturating_mul(4));
    GroupSettings { log_bytes_kept, log_bytes_max, ..settings }
}

/// Settings with which connections hold no more than the member's memory leaves to them.
fn with_links_within(memory: &MemberMemory, settings: LinkSettings) -> LinkSettings {
    let queue_bytes_max = memory.link_bytes_max(settings.queue_bytes_max);
    let answering_bytes_max = memory.link_bytes_max(settings.answering_bytes_max);
    LinkSettings { queue_bytes_max, answering_bytes_max, ..settings }
}

impl Member {
    /// Forms the groups with this member as the only voter. Other members join them later.
    async fn found(
        &self,
        cluster: Uuid,
        settings: ClusterSettings,
        facts: MemberFacts,
        members_needed: u64,
    ) -> Result<(), MemberError> {
        let alone: BTreeSet<MemberId> = [self.id].into();
        self.registry_client.group().form(&alone).await?;
        let members: BTreeMap<u64, MemberFacts> = [(self.id.0, facts)].into();
        match self.registry_client.execute(Command::Found { cluster, settings, members, members_needed }).await? {
            Reply::Done => {}
            reply => return Err(MemberError::Refused(format!("founding a cluster was answered by {reply:?}"))),
        }
        for group in &self.groups {
            group.form(&alone).await?;
        }
        Ok(())
    }

    /// Waits until this member is in the registry, a leader of each group is known, and this member
    /// holds its groups.
    async fn settle(
        &self,
        service: &MemberService,
        facts: &MemberFacts,
        entry: &Entry,
        cluster: Uuid,
    ) -> Result<(), MemberError> {
        let here = service.here.read().clone();
        for check in 1_u32.. {
            let Some(missing) = self.missing() else { break };
            match *self.ending.borrow() {
                Some(Ending::TakenOut) => return Err(MemberError::TakenOut(self.id)),
                // The other members have continued without this member, and it has not served a
                // client yet: it starts again as a new member and joins them.
                Some(Ending::LeftBehind) => return Err(MemberError::FoundingFailed),
                Some(Ending::LeaveRequested) | None => {}
            }
            if check.is_multiple_of(CHECKS_PER_LOG_LINE) {
                tracing::info!("member {} does not serve yet: {missing}", self.id);
            }
            if check.is_multiple_of(CHECKS_PER_INQUIRY) {
                let is_bound = match entry {
                    Entry::Founds(_) => self.registry().is_complete(),
                    Entry::Joins(_) => self.votes(),
                };
                let has_failed = joining::has_founding_failed(&self.links, &here, facts, entry, cluster);
                // If a member cannot be asked, the result is unknown: keep waiting.
                if !is_bound && has_failed.await.unwrap_or(false) {
                    return Err(MemberError::FoundingFailed);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Whether this member has a vote in any group, according to its own logs.
    fn votes(&self) -> bool {
        let in_registry = self.registry_client.group().status().voters.contains(&self.id);
        in_registry || self.groups.iter().any(|group| group.status().voters.contains(&self.id))
    }

    /// Returns the condition that this member waits for before it serves.
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
            // Data that only the founder holds would be lost with it.
            let (found, expected) = (self.views.voters(id), needed.min(places));
            if found < expected {
                let group =
                    if id == REGISTRY { "the registry".to_owned() } else { format!("group {id} of the partitions") };
                return Some(format!("{group} is held by {found} members, expected {expected} at first"));
            }
        }
        for (id, group) in (0..).map(GroupId).zip(&self.groups) {
            if self.views.leader_and_term(id).is_none() {
                return Some(format!("no leader of group {id} of the partitions is known"));
            }
            // While the voters change, a majority of the old voters is needed as well. A caller
            // that waits for this member to serve, and then stops another member, could stop the
            // last voter of that majority.
            let status = group.status();
            let is_held = status.voters.contains(&self.id) && !status.is_joint;
            if state.places(id).contains(&self.id) && !is_held {
                return Some(format!("it does not hold group {id} of the partitions yet"));
            }
        }
        None
    }

    /// The id of this member in the cluster. It is never reused.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// The grid, over groups that are replicated to other members.
    #[must_use]
    pub fn grid(&self) -> &Arc<Grid> {
        &self.grid
    }

    /// The connections to other members.
    #[must_use]
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// The state that all members agree on beside the data, as far as this member knows it.
    #[must_use]
    pub fn registry(&self) -> Arc<RegistryState> {
        self.registry_client.registry().state()
    }

    /// The status of this member in each group of partitions, by group number.
    #[must_use]
    pub fn groups(&self) -> Vec<filbert_cluster::GroupStatus> {
        self.groups.iter().map(Group::status).collect()
    }

    /// The index of the last entry that a group has applied on this member, and the logged state of
    /// the group. For tests and for debugging.
    #[must_use]
    pub fn group_state(&self, group: u32) -> Option<(Option<u64>, Vec<u8>)> {
        Some(self.groups.get(usize::try_from(group).ok()?)?.state())
    }

    /// Declares that clients are accepted here: from now on leadership may be handed to this
    /// member.
    pub fn serve(&self) {
        self.serves.store(true, Ordering::SeqCst);
    }

    /// Removes a dead member. It is never accepted again under its id.
    ///
    /// # Errors
    /// The registry has no leader.
    pub fn remove(&self, member: MemberId) -> BoxFuture<'_, Result<(), MemberError>> {
        Box::pin(async move {
            if self.registry().member(member).is_none() {
                return Err(MemberError::NoMember(member));
            }
            self.registry_client.execute(Command::Remove { member: member.0 }).await.map(|_| ())
        })
    }

    /// The reason why this member should end, once there is one. The owner of the member has to end
    /// it.
    #[must_use]
    pub fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.ending.subscribe()
    }

    /// A summary of the entries that this member holds, by map. For the log before the member is
    /// dropped.
    #[must_use]
    pub fn holdings(&self) -> String {
        let state = self.registry();
        let entries = |name: &str| self.grid.map(name).map_or(0, |map| map.statistics().entries);
        let by_map: Vec<(&str, usize)> = state.maps().map(|(_, map)| (map.name.as_str(), entries(&map.name))).collect();
        let all: usize = by_map.iter().map(|(_, entries)| entries).sum();
        let mut largest: Vec<&(&str, usize)> = by_map.iter().filter(|(_, entries)| *entries > 0).collect();
        largest.sort_by_key(|(name, entries)| (std::cmp::Reverse(*entries), *name));
        let listed = largest.iter().take(MAPS_LISTED_MAX).map(|(name, entries)| format!("{entries} of {name:?}"));
        let listed: Vec<String> = listed.collect();
        let more = if largest.len() > MAPS_LISTED_MAX { ", .." } else { "" };
        let of_maps = if listed.is_empty() { String::new() } else { format!(": {}{more}", listed.join(", ")) };
        format!("{all} entries of {} maps{of_maps}", by_map.len())
    }

    /// Leaves the cluster in order: other members take over the leadership and the data of this
    /// member, as far as there are other members that stay. Only then it is removed.
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
        self.registry_client.execute(Command::Leave { member: self.id.0 }).await?;
        while self.views.votes(self.id) {
            if !self.registry().any_stays() {
                tracing::warn!(
                    "all members of the cluster that hold data leave it: nobody takes over, and their data is dropped"
                );
                tokio::time::sleep(FAREWELL).await;
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        // Clients learn of the last new leaders first.
        tokio::time::sleep(LEADERS_KNOWN_AFTER).await;
        // Clients close their connections when it is removed. If they know other members, they send
        // it no new statements, and no requests for partitions.
        let running = || self.grid.queries().map_or(0, |engine| engine.figures().running);
        let until = tokio::time::Instant::now() + RUNNING_MAX;
        while running() + self.grid.pending_requests().count() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
        // Once it is removed, the others release the claims of its statements.
        self.grid.refuse_statements();
        let until = tokio::time::Instant::now() + STATEMENTS_MAX;
        while self.grid.claiming_statements() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
        self.registry_client.remove_self().await
    }

    /// Stops this member at once, even if it leads groups. See [`Member::leave`] for the orderly
    /// way.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            for task in &self.tasks {
                task.abort();
            }
            for group in &self.groups {
                group.stop().await;
            }
            self.registry_client.group().stop().await;
            self.links.stop().await;
            self.grid.shutdown();
        })
    }
}

/// Invalidates near caches for partitions that may have lost changes.
fn renew_partitions(grid: &Grid, known: &RegistryState, state: &RegistryState) {
    let groups = state.settings.groups;
    for (group, loss) in state.recoveries().losses() {
        if !known.recoveries().losses().any(|of| of == (group, loss)) {
            let of_group = (0..state.settings.partitions).map(PartitionId);
            grid.renew_partitions(of_group.filter(|id| GroupId::of(*id, groups) == group), loss.epoch);
        }
    }
}

/// Passes changes of the registry's maps to the grid.
fn follow_maps(grid: &Grid, known: &RegistryState, state: &RegistryState) {
    let was_hidden = |id| known.maps().any(|(known, facts)| known == id && facts.is_hidden());
    let is_new = |id| !known.knows_map(id);
    let mut failures = Vec::new();
    // A replaced map is not dropped: its listeners stay.
    for (id, facts) in state.maps().filter(|(id, _)| is_new(*id) || was_hidden(*id)) {
        if let Some(old) = facts.replaced() {
            failures
                .extend(grid.map_replaced(old, (id, &facts.name, facts.settings())).err().map(|error| (facts, error)));
        }
    }
    // A map may have the name of a dropped one.
    for (id, _) in known.maps().filter(|(id, _)| !state.knows_map(*id)) {
        grid.map_dropped(id);
    }
    for (id, facts) in state.maps().filter(|(id, facts)| is_new(*id) && facts.replaced().is_none()) {
        let made = match facts.is_hidden() {
            true => grid.hidden_map(id, &facts.name, facts.settings()),
            false => grid.map_created(id, &facts.name, facts.settings()),
        };
        failures.extend(made.err().map(|error| (facts, error)));
    }
    for (facts, error) in failures {
        tracing::warn!(map = facts.name, "the map is not known here: {error}");
    }
}

/// Passes the maps of the registry to the grid, and its definitions to their followers.
async fn follow_registry(registry: Arc<Registry>, followed: Arc<Followed>, grid: std::sync::Weak<Grid>) {
    let mut versions = registry.watch();
    let mut known: Arc<RegistryState> = Arc::default();
    loop {
        let state = registry.state();
        let Some(grid) = grid.upgrade() else { return };
        follow_maps(&grid, &known, &state);
        followed.follow_maps(&state);
        for (_, facts) in known.members().filter(|(id, _)| state.member(*id).is_none()) {
            grid.member_gone(facts.uuid);
        }
        renew_partitions(&grid, &known, &state);
        drop(grid);
        // Building columns or indexes takes time in proportion to the rows: not in a thread that
        // groups need.
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
