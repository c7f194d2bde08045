//! A cell: one partition with its lock, its waiting changes, and the time of its next sweep.

use std::sync::atomic::{AtomicI64, Ordering};

use filbert_store::{KeyList, MapId, Millis, Partition};
use parking_lot::{Mutex, MutexGuard, RwLock};
use uuid::Uuid;

use crate::random::SplitMix;
use crate::waiters::Waiters;

/// The state that the lock of a cell protects.
pub(crate) struct CellState {
    pub(crate) partition: Partition,
    pub(crate) waiters: Waiters,
    /// The random generator for eviction.
    pub(crate) random: SplitMix,
    /// The list of keys to evict. Stored to reuse its memory.
    pub(crate) victims: KeyList,
    /// The maps with an eviction of this partition in the log.
    pub(crate) evicting: Vec<MapId>,
}

/// One partition of the member. The alignment prevents that two cells share a cache line.
#[repr(align(128))]
pub(crate) struct Cell {
    state: Mutex<CellState>,
    /// The earliest time at which the sweep may have work here; `i64::MAX` = never.
    due_ms: AtomicI64,
    /// A changed UUID tells near caches that sequences restarted. Read for each invalidation, and
    /// rarely changed.
    uuid: RwLock<Uuid>,
}

impl Cell {
    pub(crate) fn new(partition: Partition, random_seed: u64, uuid: Uuid) -> Self {
        let random = SplitMix::new(random_seed);
        let (waiters, victims) = Default::default();
        let state = CellState { partition, waiters, random, victims, evicting: Vec::new() };
        Cell { state: Mutex::new(state), due_ms: AtomicI64::new(i64::MAX), uuid: RwLock::new(uuid) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, CellState> {
        self.state.lock()
    }

    /// The lock, if no other thread holds it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, CellState>> {
        self.state.try_lock()
    }

    pub(crate) fn uuid(&self) -> Uuid {
        *self.uuid.read()
    }

    /// Sets a new UUID, so that near caches discard their entries of the partition.
    pub(crate) fn set_uuid(&self, uuid: Uuid) {
        *self.uuid.write() = uuid;
    }

    pub(crate) fn due(&self) -> Millis {
        Millis(self.due_ms.load(Ordering::Acquire))
    }

    /// Records a time at which the sweep must come, if it is earlier than the recorded one.
    pub(crate) fn due_by(&self, time: Millis) {
        self.due_ms.fetch_min(time.0, Ordering::AcqRel);
    }

    /// Resets the recorded time. Called with the lock held, before the due work is computed: times
    /// that are recorded later count again.
    pub(crate) fn nothing_due(&self) {
        self.due_ms.store(i64::MAX, Ordering::Release);
    }
}
