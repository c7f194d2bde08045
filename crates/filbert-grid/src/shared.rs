//! The state that the grid and its map handles share: the cells, the clock, the memory accounts,
//! and the tables of maps. This module must not know how a partition is changed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Caller, Declarations, EventKind, MapId, Millis, Reply};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::cell::Cell;
use crate::clients::Clients;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::GridConfig;
use crate::errors::GridError;
use crate::groups::GroupId;
use crate::layouts::LayoutChanges;
use crate::listeners::EntryEvent;
use crate::map_core::MapCore;
use crate::member_memory::MemberMemory;
use crate::pending_requests::PendingRequests;
use crate::random::UuidSource;
use crate::replicator::{Replication, RetryCommand};
use crate::waiters::Waiter;

/// The maps of a member, by name and by id.
#[derive(Default)]
pub(crate) struct MapTable {
    pub(crate) by_name: HashMap<String, Arc<MapCore>>,
    pub(crate) by_id: HashMap<MapId, Arc<MapCore>>,
    pub(crate) next_id: u32,
    /// The maps that other maps have replaced on all members of a cluster.
    pub(crate) replaced: BTreeSet<MapId>,
    /// The maps that have a size limit and evict.
    pub(crate) evicting: Vec<Arc<MapCore>>,
}

/// Called when an event becomes due before the next sweep that was announced.
pub(crate) type DueCallback = Box<dyn Fn(Millis) + Send + Sync>;

/// The state of the member, without its services.
pub(crate) struct Shared {
    pub(crate) config: GridConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) member: Uuid,
    pub(crate) cells: Box<[Cell]>,
    /// Never held while waiting for a partition's lock: a thread that holds a partition's lock may
    /// lock this table.
    pub(crate) maps: RwLock<MapTable>,
    /// Held while a map is created or destroyed. Serializes these operations, so that the
    /// partitions and the announcements of a map follow the same order.
    pub(crate) map_lifecycle: Mutex<()>,
    pub(crate) clients: Clients,
    pub(crate) uuids: UuidSource,
    pub(crate) active: AtomicBool,
    /// Whether this member leaves its cluster, and statements change nothing any more.
    pub(crate) leaves: AtomicBool,
    pub(crate) pending_requests: PendingRequests,
    /// The member's memory. Partitions, parked changes, commands in flight, and the map data
    /// outside the partitions count as maps.
    pub(crate) memory: Arc<MemberMemory>,
    pub(crate) waiters: AtomicUsize,
    /// The next number of a statement. It distinguishes the claims of statements.
    pub(crate) statements: AtomicI64,
    /// The numbers of the statements that run and may have claims. Empty without replication.
    pub(crate) running: Mutex<HashSet<i64>>,
    pub(crate) listeners: AtomicUsize,
    /// The time of the next sweep, as announced.
    pub(crate) next_sweep_ms: AtomicI64,
    pub(crate) on_due: RwLock<Option<DueCallback>>,
    /// The counter of changes of indexes and columns.
    pub(crate) layout_changes: LayoutChanges,
    /// The declarations of maps. Partitions share them until a partition has entries of the map.
    pub(crate) declarations: Arc<Declarations>,
    /// The hash seed of all partitions.
    pub(crate) hash_seed: u64,
    /// The seed of the key hashes in index summaries.
    pub(crate) signature_seed: u64,
    /// The time of the next upkeep of index summaries by the sweep.
    pub(crate) next_upkeep_ms: AtomicI64,
    /// The logs of the member; `None` = changes are applied directly.
    pub(crate) replication: Option<Replication>,
    /// The cluster of the member, if it is in one.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    /// Commands that the sweep proposes again.
    pub(crate) retries: Mutex<Vec<RetryCommand>>,
}

impl Shared {
    #[inline]
    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The timestamp of a read in a partition.
    #[inline]
    pub(crate) fn read_time(&self, partition: PartitionId) -> Millis {
        match &self.replication {
            None => self.now(),
            Some(replication) => replication.read_time(partition),
        }
    }

    /// The cell of a partition; `None` if there is no such partition.
    #[inline]
    pub(crate) fn cell(&self, partition: PartitionId) -> Option<&Cell> {
        self.cells.get(partition.0 as usize)
    }

    /// The cell of a partition that the caller has computed for a key. If there is no such
    /// partition, the cell of the key.
    #[inline]
    pub(crate) fn cell_of(&self, partition: PartitionId, key: &[u8]) -> &Cell {
        self.cell(partition).unwrap_or_else(|| self.cell_of_key(key))
    }

    #[cold]
    #[allow(clippy::indexing_slicing, reason = "there are as many cells as partitions, and there is at least one")]
    fn cell_of_key(&self, key: &[u8]) -> &Cell {
        &self.cells[partition_of(key, self.config.partition_count).0 as usize]
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = (PartitionId, &Cell)> {
        (0u32..).map(PartitionId).zip(self.cells.iter())
    }

    /// The log group of a partition. Without logs, all partitions are in group 0.
    pub(crate) fn group_of(&self, partition: PartitionId) -> GroupId {
        self.replication.as_ref().map_or(GroupId(0), |replication| replication.group_of(partition))
    }

    #[inline]
    pub(crate) fn check_active(&self) -> Result<(), GridError> {
        if self.active.load(Ordering::Acquire) { Ok(()) } else { Err(GridError::NotActive) }
    }

    pub(crate) fn map_by_id(&self, id: MapId) -> Option<Arc<MapCore>> {
        self.maps.read().by_id.get(&id).cloned()
    }

    /// Reserves a place for one more listener.
    pub(crate) fn reserve_listener(&self) -> Result<(), GridError> {
        reserve(&self.listeners, self.config.listeners_max, "listeners", "listeners_max")
    }

    /// Updates the member's memory account after a partition has changed.
    #[inline]
    pub(crate) fn account(&self, before: usize, after: usize) {
        // Wraps around for a shrinking partition, as the atomic counter does.
        self.memory.maps.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Records that a cell needs a sweep at `time`. Announces it if that is before the next sweep.
    pub(crate) fn due_by(&self, cell: &Cell, time: Millis) {
        cell.due_by(time);
        if time.0 < self.next_sweep_ms.fetch_min(time.0, Ordering::AcqRel)
            && let Some(callback) = &*self.on_due.read()
        {
            callback(time);
        }
    }

    /// The caller of operations that the member itself starts.
    pub(crate) fn own_caller(&self) -> Caller {
        Caller { client: self.member, thread: 0 }
    }

    /// A new owner of claims.
    pub(crate) fn new_owner(&self) -> Caller {
        Caller { client: self.member, thread: self.statements.fetch_add(1, Ordering::Relaxed) }
    }

    /// Answers a parked change that was not applied, and releases its resources.
    pub(crate) fn answer(&self, waiter: Waiter, answer: Result<Reply<'_>, GridError>) {
        self.release_waiter(&waiter);
        (waiter.reply)(answer);
    }

    /// Releases the place and the memory of a waiter.
    pub(crate) fn release_waiter(&self, waiter: &Waiter) {
        self.waiters.fetch_sub(1, Ordering::AcqRel);
        self.memory.maps.fetch_sub(waiter.bytes(), Ordering::Relaxed);
    }

    /// Notifies the listeners of a map once about a change of the whole map.
    pub(crate) fn notify_whole_map(&self, map: &MapCore, kind: EventKind, affected: usize) {
        let event = EntryEvent {
            kind,
            partition: None,
            key: None,
            value: None,
            old_value: None,
            member: self.member,
            affected,
        };
        map.listeners.deliver(&event, true);
    }
}

/// Reserves one of `limit` places. `what` and `setting` are for the error text.
pub(crate) fn reserve(
    count: &AtomicUsize,
    limit: usize,
    what: &'static str,
    setting: &'static str,
) -> Result<(), GridError> {
    let grow = |count: usize| (count < limit).then_some(count + 1);
    match count.fetch_update(Ordering::AcqRel, Ordering::Acquire, grow) {
        Ok(_) => Ok(()),
        Err(_) => Err(GridError::LimitReached { what, setting, limit }),
    }
}
