//! A cell: one partition behind its lock, the changes that wait in it, and when it next needs attention.

use std::sync::atomic::{AtomicI64, Ordering};

use filbert_store::{KeyList, MapId, Millis, Partition};
use parking_lot::{Mutex, MutexGuard, RwLock};
use uuid::Uuid;

use crate::random::SplitMix;
use crate::waiters::Waiters;

/// What the lock of a cell protects.
pub(crate) struct CellState {
    pub(crate) partition: Partition,
    pub(crate) waiters: Waiters,
    /// By which entries to evict are picked.
    pub(crate) random: SplitMix,
    /// The keys to evict that were picked last: their memory is used again.
    pub(crate) victims: KeyList,
    /// Maps of which entries are on their way out through a log.
    pub(crate) evicting: Vec<MapId>,
}

/// One partition of the member. Aligned so that two cells never share a cache line.
#[repr(align(128))]
pub(crate) struct Cell {
    state: Mutex<CellState>,
    /// The earliest moment at which the sweep may find something here; `i64::MAX` = nothing is due.
    due_ms: AtomicI64,
    /// By which near caches know that the partition's counting began anew. Looked at where a near cache is told, and changed hardly ever.
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

    /// The lock, if nobody holds it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, CellState>> {
        self.state.try_lock()
    }

    pub(crate) fn uuid(&self) -> Uuid {
        *self.uuid.read()
    }

    /// Has near caches forget what they know of the partition.
    pub(crate) fn set_uuid(&self, uuid: Uuid) {
        *self.uuid.write() = uuid;
    }

    pub(crate) fn due(&self) -> Millis {
        Millis(self.due_ms.load(Ordering::Acquire))
    }

    /// Notes a moment at which the sweep must come, if it is earlier than those known.
    pub(crate) fn due_by(&self, moment: Millis) {
        self.due_ms.fetch_min(moment.0, Ordering::AcqRel);
    }

    /// Forgets what was due. Called with the lock held, before looking at what is due now: later notes count again.
    pub(crate) fn nothing_due(&self) {
        self.due_ms.store(i64::MAX, Ordering::Release);
    }
}
