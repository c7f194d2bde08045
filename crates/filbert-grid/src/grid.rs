//! The member: its parts, its identity, the handles of existing maps, its statistics, and its
//! shutdown. Higher modules add the creation and destruction of maps, background work, and the
//! logs.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use filbert_data::PartitionId;
use filbert_store::{Declarations, Millis, Partition, PartitionSettings};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::budget::MemoryBudget;
use crate::cell::Cell;
use crate::clients::Clients;
use crate::clock::Clock;
use crate::config::GridConfig;
use crate::errors::GridError;
use crate::invalidation::{InvalidationMetadata, sequence_of};
use crate::layouts::LayoutChanges;
use crate::listeners::ListenerId;
use crate::map::Map;
use crate::member_memory::MemberMemory;
use crate::metrics::{Metered, Metrics};
use crate::objects::Objects;
use crate::pending_requests::PendingRequests;
use crate::query::QueryEngine;
use crate::random::{SplitMix, UuidSource};
use crate::replicator::{Replication, Replicator};
use crate::schemas::Schemas;
use crate::shared::{MapTable, Shared};
use crate::statistics::GridStatistics;

/// The dependencies of a member on its environment. Tests replace them.
#[derive(Clone)]
pub struct Environment {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The seed of UUIDs, hash seeds and the random choices of eviction. Use the operating system's
    /// randomness: a client that knows the seed can construct colliding keys.
    pub random_seed: u64,
}

/// One member. Cheap to share; all methods can be called from any thread.
pub struct Grid {
    pub(crate) shared: Arc<Shared>,
    cluster_id: Uuid,
    objects: Objects,
    schemas: Arc<Schemas>,
    queries: OnceLock<Arc<dyn QueryEngine>>,
    metrics: Arc<Metrics>,
    budget: MemoryBudget,
    kept_budget: MemoryBudget,
}

impl fmt::Debug for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grid").field("member", &self.shared.member).finish_non_exhaustive()
    }
}

impl Grid {
    /// Creates a member with empty partitions.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(config: GridConfig, environment: Environment) -> Result<Arc<Grid>, GridError> {
        let memory = Arc::new(MemberMemory::new(config.memory_bytes_max));
        Grid::make(config, environment, memory, None)
    }

    /// As [`Grid::new`], for a member that sends its changes through logs. The owner of the logs
    /// passes their entries to [`Grid::apply_batch`], and counts them in `memory`.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn replicated(
        config: GridConfig,
        environment: Environment,
        memory: Arc<MemberMemory>,
        replicator: Arc<dyn Replicator>,
    ) -> Result<Arc<Grid>, GridError> {
        Grid::make(config, environment, memory, Some(Replication::new(replicator)))
    }

    fn make(
        config: GridConfig,
        environment: Environment,
        memory: Arc<MemberMemory>,
        replication: Option<Replication>,
    ) -> Result<Arc<Grid>, GridError> {
        config.validate()?;
        let mut random = SplitMix::new(environment.random_seed);
        let cluster_id = random.next_uuid();
        let cluster_id = config.cluster_uuid.unwrap_or(cluster_id);
        // The UUIDs of partitions are derived from the cluster's UUID, because near caches compare
        // them across members.
        let (high, low) = cluster_id.as_u64_pair();
        let mut partition_uuids = SplitMix::new(high ^ low);
        let member = config.member_uuid.unwrap_or_else(|| random.next_uuid());
        let hash_seed = config.hash_seed.unwrap_or_else(|| random.next_u64());
        let declarations = Arc::new(Declarations::default());
        let cells = (0..config.partition_count)
            .map(|id| {
                let (id, exact_read_times) = (PartitionId(id), replication.is_some());
                let settings = PartitionSettings { id, hash_seed, exact_read_times };
                let mut partition = Partition::new(settings);
                partition.share_declarations(&declarations);
                Cell::new(partition, random.next_u64(), partition_uuids.next_uuid())
            })
            .collect();
        let objects = Objects::new(config.objects_max, config.listeners_max);
        let schemas = Arc::new(Schemas::new(config.schemas_max, config.schema_fields_max));
        let clients = Clients::new(config.client_statistics_bytes_max);
        let budget = MemoryBudget::of_member(memory.clone(), config.buffers_bytes(), "buffers_bytes_max");
        let kept_bytes_max = budget.bytes_max() / 4 * 3;
        let kept_budget = budget.share(kept_bytes_max, "buffers_bytes_max, of which clients may keep three quarters");
        let shared = Arc::new(Shared {
            clock: environment.clock,
            member,
            cells,
            maps: RwLock::new(MapTable::default()),
            map_lifecycle: Mutex::new(()),
            clients,
            layout_changes: LayoutChanges::default(),
            declarations,
            hash_seed,
            signature_seed: random.next_u64(),
            next_upkeep_ms: AtomicI64::new(0),
            uuids: UuidSource::new(random),
            active: AtomicBool::new(true),
            leaves: AtomicBool::new(false),
            pending_requests: PendingRequests::default(),
            memory,
            waiters: AtomicUsize::new(0),
            statements: AtomicI64::new(1),
            running: Mutex::default(),
            listeners: AtomicUsize::new(0),
            next_sweep_ms: AtomicI64::new(i64::MAX),
            on_due: RwLock::new(None),
            replication,
            retries: Mutex::default(),
            cluster: OnceLock::new(),
            config,
        });
        let (queries, metrics) = Default::default();
        Ok(Arc::new(Grid { shared, cluster_id, objects, schemas, queries, metrics, budget, kept_budget }))
    }

    /// The account of the member's memory: maps, logs, buffers and statements.
    pub fn memory(&self) -> &Arc<MemberMemory> {
        &self.shared.memory
    }

    /// The budget of all buffers that grow with client requests and responses.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The share of that budget for all that clients keep: open cursors and portals with their
    /// unread rows, prepared statements, settings, listeners. The rest is left for requests that
    /// are in progress, however much clients keep.
    pub fn kept_budget(&self) -> &MemoryBudget {
        &self.kept_budget
    }

    /// The cluster name that clients must send.
    pub fn cluster_name(&self) -> &str {
        &self.shared.config.cluster_name
    }

    /// The cluster's UUID, the same on all its members. A member without a cluster has a new one
    /// after each start, so that clients detect that their state on the member is lost.
    pub fn cluster_id(&self) -> Uuid {
        self.cluster_id
    }

    /// The member's UUID.
    pub fn member_uuid(&self) -> Uuid {
        self.shared.member
    }

    /// Number of partitions.
    #[inline]
    pub fn partition_count(&self) -> u32 {
        self.shared.config.partition_count
    }

    /// The settings.
    pub fn config(&self) -> &GridConfig {
        &self.shared.config
    }

    /// The current time of the member's clock.
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    /// Distributed objects: their names and their listeners.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Compact schemas.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// The counter of changes of indexes and columns of this member's maps.
    pub fn layout_changes(&self) -> &LayoutChanges {
        &self.shared.layout_changes
    }

    /// The query engine, if one was set.
    #[inline]
    pub fn queries(&self) -> Option<&Arc<dyn QueryEngine>> {
        self.queries.get()
    }

    /// Sets the query engine. The first one stays. Returns whether this was the first one.
    pub fn serve_queries(&self, engine: Arc<dyn QueryEngine>) -> bool {
        self.queries.set(Arc::new(Metered::new(engine, self.metrics.clone()))).is_ok()
    }

    /// The member's metrics, without the statistics of its maps.
    #[inline]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Connected clients.
    pub fn clients(&self) -> &Clients {
        &self.shared.clients
    }

    /// A handle of an existing map. Unlike [`Grid::map`], it does not create the map.
    pub fn existing_map(&self, name: &str) -> Option<Arc<Map>> {
        let core = self.shared.maps.read().by_name.get(name)?.clone();
        Some(Arc::new(Map { core, shared: self.shared.clone() }))
    }

    /// The names of the maps, sorted.
    pub fn map_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.shared.maps.read().by_name.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Gives partitions new UUIDs, the same on all members for the same epoch. Called when the last
    /// acknowledged changes of the partitions may be lost, so that near caches discard their
    /// entries of them.
    pub fn renew_partitions(&self, partitions: impl IntoIterator<Item = PartitionId>, epoch: u64) {
        let (high, low) = self.cluster_id.as_u64_pair();
        for id in partitions {
            let of_partition = SplitMix::new(u64::from(id.0)).next_u64();
            let mut uuids = SplitMix::new(high ^ low ^ of_partition ^ epoch.rotate_left(32));
            if let Some(cell) = self.shared.cells.get(id.0 as usize) {
                cell.set_uuid(uuids.next_uuid());
            }
        }
    }

    /// The current sequences and partition UUIDs, which near caches of these maps compare with
    /// their own. Maps that do not exist are omitted.
    pub fn invalidation_metadata<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> InvalidationMetadata {
        let partition_uuids = self.shared.partitions().map(|(id, cell)| (id, cell.uuid())).collect();
        let mut sequences = Vec::new();
        for name in names {
            let Some(core) = self.shared.maps.read().by_name.get(name).cloned() else { continue };
            let of_partition = |(id, cell): (PartitionId, &Cell)| {
                let changes = cell.lock().partition.sequence(core.id);
                (id, sequence_of(core.id, changes))
            };
            sequences.push((name.to_owned(), self.shared.partitions().map(of_partition).collect()));
        }
        InvalidationMetadata { sequences, partition_uuids }
    }

    /// Removes a listener of a map. Returns whether there was one.
    pub fn remove_map_listener(&self, map: &str, id: ListenerId) -> bool {
        let core = self.shared.maps.read().by_name.get(map).cloned();
        core.is_some_and(|core| Map { core, shared: self.shared.clone() }.remove_listener(id))
    }

    /// Statistics of the whole member.
    pub fn statistics(&self) -> GridStatistics {
        GridStatistics {
            memory_bytes: self.shared.memory.maps(),
            memory_bytes_max: self.shared.config.memory_bytes_max,
            statement_bytes: self.shared.memory.statements() + self.shared.memory.plans(),
            buffer_bytes: self.budget.used(),
            buffer_bytes_max: self.budget.bytes_max(),
            buffers_refused: self.budget.refusals(),
            maps: self.shared.maps.read().by_name.len(),
            objects: self.objects.len(),
            clients: self.shared.clients.client_count(),
            connections: self.shared.clients.connection_count(),
            parked_changes: self.shared.waiters.load(Ordering::Relaxed),
            listeners: self.shared.listeners.load(Ordering::Relaxed) + self.objects.listener_count(),
            schemas: self.schemas.len(),
        }
    }

    /// Whether the member accepts operations.
    pub fn is_active(&self) -> bool {
        self.shared.active.load(Ordering::Acquire)
    }

    /// Refuses further changes by statements of this member: their claims end when the others have
    /// removed it.
    pub fn refuse_statements(&self) {
        self.shared.leaves.store(true, Ordering::SeqCst);
    }

    /// The requests of clients that this member has passed on or parked. Doors count them.
    pub fn pending_requests(&self) -> &PendingRequests {
        &self.shared.pending_requests
    }

    /// The number of statements of this member that may have claims.
    pub fn claiming_statements(&self) -> usize {
        self.shared.maps.read().by_id.values().map(|map| map.claiming.load(Ordering::SeqCst)).sum()
    }

    /// Stops accepting operations, and answers all waiters.
    pub fn shutdown(&self) {
        if self.shared.active.swap(false, Ordering::AcqRel) {
            tracing::info!(member = %self.shared.member, "the grid takes no more operations");
        }
        self.shared.dismiss_all();
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// Waiters get an answer even if the member is dropped without a shutdown.
impl Drop for Grid {
    fn drop(&mut self) {
        self.shutdown();
    }
}
