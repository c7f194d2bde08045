//! The member: its identity, its maps, and what runs beside requests (expiry, the end of clients, the end of itself).

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use filbert_data::PartitionId;
use filbert_store::{
    Change, Declarations, JournalSettings, LogCommand, MapId, MapSettings, Millis, Partition, PartitionSettings,
};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::budget::MemoryBudget;
use crate::cell::Cell;
use crate::clients::{ClientConnection, ClientInfo, Clients};
use crate::clock::Clock;
use crate::config::{GridConfig, MapConfig};
use crate::errors::GridError;
use crate::eviction;
use crate::invalidation::{Invalidation, InvalidationListeners, InvalidationMetadata};
use crate::map::Map;
use crate::map_core::MapCore;
use crate::metrics::{Metered, Metrics};
use crate::objects::{MAP_SERVICE, Objects, check_name};
use crate::query::QueryEngine;
use crate::random::{SplitMix, UuidSource};
use crate::replication::{Awaited, Replication, Replicator, Submissions, propose_evictions_by_sweep};
use crate::schemas::Schemas;
use crate::shared::{MapTable, Shared};
use crate::statistics::GridStatistics;

/// How often the sweep looks whether summaries of indexes must be made anew.
const UPKEEP_INTERVAL_MS: i64 = 500;

/// What a member takes from the world around it, so that tests can give it another one.
#[derive(Clone)]
pub struct Environment {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What UUIDs, hash seeds and eviction's choices are made from. Take it from the system's randomness: who knows it
    /// can make keys that collide.
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
}

impl fmt::Debug for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grid").field("member", &self.shared.member).finish_non_exhaustive()
    }
}

impl Grid {
    /// Makes a member with empty partitions.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn new(config: GridConfig, environment: Environment) -> Result<Arc<Grid>, GridError> {
        Grid::make(config, environment, None)
    }

    /// As [`Grid::new`], for a member whose changes go through logs: who has these gives their entries to
    /// [`Grid::apply_batch`].
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn replicated(
        config: GridConfig,
        environment: Environment,
        replicator: Arc<dyn Replicator>,
    ) -> Result<Arc<Grid>, GridError> {
        Grid::make(config, environment, Some(Replication::new(replicator)))
    }

    fn make(
        config: GridConfig,
        environment: Environment,
        replication: Option<Replication>,
    ) -> Result<Arc<Grid>, GridError> {
        config.validate()?;
        let mut random = SplitMix::new(environment.random_seed);
        let cluster_id = random.next_uuid();
        let cluster_id = config.cluster_uuid.unwrap_or(cluster_id);
        // Near caches compare them across members.
        let (high, low) = cluster_id.as_u64_pair();
        let mut partition_uuids = SplitMix::new(high ^ low);
        let member = config.member_uuid.unwrap_or_else(|| random.next_uuid());
        let hash_seed = config.hash_seed.unwrap_or_else(|| random.next_u64());
        let declarations = Arc::new(Declarations::default());
        let cells = (0..config.partition_count)
            .map(|id| {
                let (id, reads_before_commands) = (PartitionId(id), replication.is_some());
                let settings = PartitionSettings { id, hash_seed, reads_before_commands };
                let mut partition = Partition::new(settings);
                partition.share_declarations(&declarations);
                Cell::new(partition, random.next_u64(), partition_uuids.next_uuid())
            })
            .collect();
        let objects = Objects::new(config.objects_max, config.listeners_max);
        let schemas = Arc::new(Schemas::new(config.schemas_max, config.schema_fields_max));
        let clients = Clients::new(config.client_statistics_bytes_max);
        let budget = MemoryBudget::new(config.buffers_bytes(), "buffers_bytes_max");
        let shared = Arc::new(Shared {
            clock: environment.clock,
            member,
            cells,
            maps: RwLock::new(MapTable::default()),
            making: Mutex::new(()),
            clients,
            declarations,
            hash_seed,
            signature_seed: random.next_u64(),
            next_upkeep_ms: AtomicI64::new(0),
            uuids: UuidSource::new(random),
            active: AtomicBool::new(true),
            memory_bytes: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            statements: AtomicI64::new(1),
            listeners: AtomicUsize::new(0),
            next_sweep_ms: AtomicI64::new(i64::MAX),
            on_due: RwLock::new(None),
            replication,
            again: Mutex::default(),
            cluster: OnceLock::new(),
            config,
        });
        let (queries, metrics) = Default::default();
        Ok(Arc::new(Grid { shared, cluster_id, objects, schemas, queries, metrics, budget }))
    }

    /// The budget that all buffers draw from which follow what clients send and ask for.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The name that clients must know.
    pub fn cluster_name(&self) -> &str {
        &self.shared.config.cluster_name
    }

    /// The cluster's UUID, which its members have in common; of a member alone another one after each start: clients see by it that their
    /// state here is gone.
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

    /// The time by the member's clock.
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    /// Distributed objects: their names, and who wants to hear of them.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Compact schemas.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// The engine that answers queries, once the composition has brought one.
    #[inline]
    pub fn queries(&self) -> Option<&Arc<dyn QueryEngine>> {
        self.queries.get()
    }

    /// Brings the engine that answers queries. The first one stays; whether this was it.
    pub fn serve_queries(&self, engine: Arc<dyn QueryEngine>) -> bool {
        self.queries.set(Arc::new(Metered::new(engine, self.metrics.clone()))).is_ok()
    }

    /// What the member counts beside its maps' own figures.
    #[inline]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Connected clients.
    pub fn clients(&self) -> &Clients {
        &self.shared.clients
    }

    /// Registers a connection of a client. What belongs to it goes when it is dropped.
    pub fn connect(self: &Arc<Self>, info: ClientInfo) -> ClientConnection {
        let id = self.shared.clients.add(info.clone());
        ClientConnection::new(self.clone(), id, info.uuid)
    }

    /// A handle of a map, which is made, and announced as a distributed object, on first use.
    ///
    /// # Errors
    /// The member is shutting down, has as many objects as the settings allow, two patterns of the configuration fit
    /// the name equally well, or the name is longer than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX).
    pub fn map(&self, name: &str) -> Result<Arc<Map>, GridError> {
        self.shared.check_active()?;
        let handle = |core: &Arc<MapCore>| Arc::new(Map { core: core.clone(), shared: self.shared.clone() });
        if let Some(core) = self.shared.maps.read().by_name.get(name) {
            return Ok(handle(core));
        }
        check_name("map", name)?;
        let config = self.shared.config.maps.find(name)?.clone();
        let id = match &self.shared.replication {
            None => None,
            Some(replication) => Some(replication.replicator.make_map(Some(name), self.map_settings(&config))?),
        };
        let map = self.name_map(name, config, id)?;
        self.shared.make_where_leading(&map.core, true);
        Ok(map)
    }

    /// A map that all members know is there from now on, as [`Replicator::make_map`] was told by whichever of them. One that is there
    /// already stays.
    ///
    /// # Errors
    /// As [`Grid::map`].
    pub fn map_made(&self, id: MapId, name: &str, settings: MapSettings) -> Result<Arc<Map>, GridError> {
        let config = self.shared.config.maps.find(name)?.clone();
        let map = self.name_map(name, config, Some((id, settings)))?;
        self.shared.make_where_leading(&map.core, false);
        Ok(map)
    }

    fn name_map(&self, name: &str, config: MapConfig, id: Option<(MapId, MapSettings)>) -> Result<Arc<Map>, GridError> {
        let handle = |core: &Arc<MapCore>| Arc::new(Map { core: core.clone(), shared: self.shared.clone() });
        let _making = self.shared.making.lock();
        if let Some(core) = self.shared.maps.read().by_name.get(name) {
            return Ok(handle(core));
        }
        self.objects.reserve(MAP_SERVICE, name)?;
        let core = self.build_map(name, config, id);
        let mut maps = self.shared.maps.write();
        if core.evicts {
            maps.evicting.push(core.clone());
        }
        maps.by_name.insert(name.to_owned(), core.clone());
        drop(maps);
        tracing::debug!(map = name, "map made");
        self.objects.announce_created(MAP_SERVICE, name, self.shared.member);
        Ok(handle(&core))
    }

    /// A map that has no name yet; with the id that logs know it by, if there are logs.
    pub(crate) fn build_map(&self, name: &str, config: MapConfig, known: Option<(MapId, MapSettings)>) -> Arc<MapCore> {
        let is_here = known.is_none();
        let (id, settings) = known.unwrap_or_else(|| {
            let mut maps = self.shared.maps.write();
            maps.next_id += 1;
            (MapId(maps.next_id - 1), self.map_settings(&config))
        });
        let partitions = self.shared.config.partition_count;
        let about = (config, settings.clone());
        let core = Arc::new(MapCore::new(id, name.to_owned(), about, partitions, self.schemas.clone()));
        if is_here {
            let layout = core.layouts.compiled();
            for cell in &self.shared.cells {
                let mut state = cell.lock();
                let before = state.partition.bytes();
                state.partition.create_map(id, settings.clone());
                state.partition.set_layout(id, layout.clone());
                let after = state.partition.bytes();
                self.shared.account(before, after);
                core.account(before, after);
            }
        }
        core.count_own(&self.shared, true);
        self.shared.add_signatures(&core, &core.layouts.current());
        self.shared.maps.write().by_id.insert(id, core.clone());
        if !is_here {
            self.shared.cells.iter().for_each(|cell| core.meet(&self.shared, &mut cell.lock().partition));
        }
        core
    }

    pub(crate) fn map_settings(&self, config: &MapConfig) -> MapSettings {
        let partitions = self.shared.config.partition_count.max(1);
        MapSettings {
            ttl_default_ms: i64::from(config.ttl_seconds) * 1_000,
            max_idle_default_ms: i64::from(config.max_idle_seconds) * 1_000,
            journal: config.event_journal.map(|journal| JournalSettings {
                capacity: (journal.capacity / partitions).max(1) as usize,
                ttl_ms: i64::from(journal.ttl_seconds) * 1_000,
            }),
            ..MapSettings::default()
        }
    }

    /// A handle of a map if it is there: unlike [`Grid::map`], looking does not make it.
    pub fn existing_map(&self, name: &str) -> Option<Arc<Map>> {
        let core = self.shared.maps.read().by_name.get(name)?.clone();
        Some(Arc::new(Map { core, shared: self.shared.clone() }))
    }

    /// The names of the maps, in order.
    pub fn map_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.shared.maps.read().by_name.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Drops a map with all that belongs to it, on all members; whether there was one. Handles of it refuse changes from now on.
    ///
    /// # Errors
    /// The other members of a cluster could not be asked: the map may be there as before, or be dropped later.
    pub fn destroy_map(&self, name: &str) -> Result<bool, GridError> {
        self.unlink_map(name).map(|unlinked| unlinked.is_some())
    }

    /// Does the quick part of [`Grid::destroy_map`]: the name stands for nothing any more, and handles of the map refuse changes.
    /// What the map has is freed when the result is dropped.
    ///
    /// # Errors
    /// As [`Grid::destroy_map`].
    pub fn unlink_map(&self, name: &str) -> Result<Option<Unlinked<'_>>, GridError> {
        if let Some(replication) = &self.shared.replication {
            let Some(core) = self.shared.maps.read().by_name.get(name).cloned() else { return Ok(None) };
            replication.replicator.drop_map(core.id)?;
            self.shared.undefine_map(name)?;
            // Whoever follows what all members know may have come first.
            let unlinked =
                self.unlink(|maps| maps.by_name.get(name)?.id.eq(&core.id).then(|| maps.by_name.remove(name))?);
            return Ok(Some(unlinked.unwrap_or(Unlinked { grid: self, core })));
        }
        Ok(self.unlink(|maps| maps.by_name.remove(name)))
    }

    /// A map is known to no member any more, as [`Replicator::drop_map`] was told by whichever of them.
    pub fn map_dropped(&self, id: MapId) {
        drop(self.unlink(|maps| {
            let name = maps.by_id.get(&id)?.name.clone();
            maps.by_name.remove(&name)
        }));
    }

    fn unlink(&self, take: impl FnOnce(&mut MapTable) -> Option<Arc<MapCore>>) -> Option<Unlinked<'_>> {
        let _making = self.shared.making.lock();
        let core = {
            let mut maps = self.shared.maps.write();
            let core = take(&mut maps)?;
            maps.by_id.remove(&core.id);
            maps.evicting.retain(|other| other.id != core.id);
            core
        };
        core.destroyed.store(true, Ordering::Release);
        crate::layouts::note_destroyed();
        self.objects.destroy(MAP_SERVICE, &core.name, self.shared.member);
        tracing::info!(map = core.name, "map destroyed");
        Some(Unlinked { grid: self, core })
    }

    /// Frees what a map has that is marked as destroyed, and tells near caches to forget it.
    pub(crate) fn end_map(&self, core: &Arc<MapCore>, near_caches: &InvalidationListeners) {
        crate::layouts::note_destroyed();
        let mut to = Submissions::new(&self.shared);
        for (partition, cell) in self.shared.partitions() {
            let mut state = cell.lock();
            let before = state.partition.bytes();
            let sequence = state.partition.sequence(core.id).saturating_add(1);
            if self.shared.replication.is_some() {
                to.push_own(partition, &LogCommand::DestroyMap { map: core.id }, Awaited::Nothing, &mut state);
            } else {
                state.partition.destroy_map(core.id);
            }
            self.shared.account(before, state.partition.bytes());
            for (_, waiter) in state.waiters.take_map(core.id) {
                self.shared.answer(waiter, Err(core.destroyed_error()));
            }
            near_caches.deliver(&Invalidation {
                partition,
                key: None,
                source: self.shared.member,
                partition_uuid: cell.uuid(),
                sequence: i64::try_from(sequence).unwrap_or(i64::MAX),
            });
        }
        to.send();
        self.shared.clear_signatures(core);
        core.count_own(&self.shared, false);
    }

    /// Removes the listeners of a map.
    pub(crate) fn forget_listeners(&self, core: &MapCore) {
        let listeners = core.listeners.clear() + core.near_caches.clear();
        self.shared.listeners.fetch_sub(listeners, Ordering::AcqRel);
    }

    /// Creates a distributed object by its service, as a client's proxy does.
    ///
    /// # Errors
    /// As [`Grid::map`]; and objects of other services are not served.
    pub fn create_object(&self, service: &str, name: &str) -> Result<(), GridError> {
        if service == MAP_SERVICE {
            return self.map(name).map(|_| ());
        }
        // Both stand in the error.
        check_name("service", service)?;
        check_name("object", name)?;
        Err(GridError::UnsupportedOperation(format!(
            "objects of the service {service:?} are not supported, expected {MAP_SERVICE:?} (object {name:?})"
        )))
    }

    /// Destroys a distributed object; whether there was one.
    ///
    /// # Errors
    /// As [`Grid::destroy_map`].
    pub fn destroy_object(&self, service: &str, name: &str) -> Result<bool, GridError> {
        if service == MAP_SERVICE { self.destroy_map(name) } else { Ok(false) }
    }

    /// Gives partitions other UUIDs, the same on all members for the same epoch: what members acknowledged last may be lost there, so that near caches
    /// have to forget what they know.
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

    /// Where near caches of these maps should stand. Maps that do not exist are left out.
    pub fn invalidation_metadata<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> InvalidationMetadata {
        let partition_uuids = self.shared.partitions().map(|(id, cell)| (id, cell.uuid())).collect();
        let mut sequences = Vec::new();
        for name in names {
            let Some(core) = self.shared.maps.read().by_name.get(name).cloned() else { continue };
            let of_partition = |(id, cell): (PartitionId, &Cell)| {
                let sequence = cell.lock().partition.sequence(core.id);
                (sequence > 0).then(|| (id, i64::try_from(sequence).unwrap_or(i64::MAX)))
            };
            sequences.push((name.to_owned(), self.shared.partitions().filter_map(of_partition).collect()));
        }
        InvalidationMetadata { sequences, partition_uuids }
    }

    /// Removes a listener of any map; whether there was one.
    pub fn remove_map_listener(&self, map: &str, id: crate::ListenerId) -> bool {
        let core = self.shared.maps.read().by_name.get(map).cloned();
        core.is_some_and(|core| Map { core, shared: self.shared.clone() }.remove_listener(id))
    }

    /// One sweep: frees what has expired, ends leases, answers those who waited too long. Returns when to come next.
    pub fn run_expiry(&self) -> Millis {
        let shared = &*self.shared;
        let now = shared.now();
        let config = &shared.config;
        shared.next_sweep_ms.store(now.plus(config.expiry_interval_ms_max).0, Ordering::Release);
        for (partition, cell) in shared.partitions() {
            if cell.due() <= now {
                match &shared.replication {
                    None => self.sweep(cell, now),
                    Some(replication) => self.sweep_by_log(replication, partition, cell, now),
                }
            }
        }
        let evicting = shared.maps.read().evicting.clone();
        for map in evicting {
            match shared.replication {
                None => eviction::make_room_by_sweep(shared, &map),
                Some(_) => propose_evictions_by_sweep(&self.shared, &map),
            }
        }
        self.shared.propose_again();
        if shared.next_upkeep_ms.load(Ordering::Relaxed) <= now.0 {
            shared.next_upkeep_ms.store(now.plus(UPKEEP_INTERVAL_MS).0, Ordering::Relaxed);
            let maps: Vec<_> = shared.maps.read().by_id.values().cloned().collect();
            maps.iter().for_each(|map| shared.renew_signatures(map));
        }
        let next = shared.cells.iter().map(Cell::due).min().unwrap_or(Millis::MAX);
        let earliest = now.plus(config.expiry_interval_ms_min);
        let next = next.max(earliest).min(now.plus(config.expiry_interval_ms_max));
        // What became due while the sweep ran was noted and called for by those who noted it.
        shared.next_sweep_ms.fetch_min(next.0, Ordering::AcqRel);
        next
    }

    fn sweep(&self, cell: &Cell, now: Millis) {
        let shared = &*self.shared;
        let limit = shared.config.expire_batch_max;
        loop {
            let mut state = cell.lock();
            cell.nothing_due();
            shared.apply_to_all(cell, &mut state, now, Change::Expire { limit });
            shared.answer_late(&mut state, now);
            let expiry = state.partition.next_expiry();
            let deadline = state.waiters.first_deadline();
            cell.due_by(expiry.into_iter().chain(deadline).min().unwrap_or(Millis::MAX));
            if expiry.is_none_or(|expiry| expiry > now) {
                return;
            }
            // More has expired than one batch may free: others get at the partition in between.
        }
    }

    /// Has `callback` called, with the moment, when something falls due before the time that the last
    /// [`Grid::run_expiry`] returned. It must not block nor call back into the grid.
    pub fn on_due(&self, callback: impl Fn(Millis) + Send + Sync + 'static) {
        *self.shared.on_due.write() = Some(Box::new(callback));
    }

    /// Figures of the whole member.
    pub fn statistics(&self) -> GridStatistics {
        GridStatistics {
            memory_bytes: self.shared.memory_bytes.load(Ordering::Relaxed),
            memory_bytes_max: self.shared.config.memory_bytes_max,
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

    /// Whether the member takes operations.
    pub fn is_active(&self) -> bool {
        self.shared.active.load(Ordering::Acquire)
    }

    /// Takes no more operations from now on, and answers those that wait.
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

/// A map that was destroyed, and what of it is still to be freed.
#[must_use = "dropping it frees the map"]
pub struct Unlinked<'g> {
    grid: &'g Grid,
    core: Arc<MapCore>,
}

impl fmt::Debug for Unlinked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unlinked").field("map", &self.core.name).finish_non_exhaustive()
    }
}

impl Drop for Unlinked<'_> {
    fn drop(&mut self) {
        self.grid.end_map(&self.core, &self.core.near_caches);
        self.grid.forget_listeners(&self.core);
    }
}

/// Who waits for a key gets an answer even when nobody shuts the member down.
impl Drop for Grid {
    fn drop(&mut self) {
        self.shutdown();
    }
}
