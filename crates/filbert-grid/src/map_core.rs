//! The state of one map on the member: its settings, layout, listeners and memory accounts. This
//! module must not know the member.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_data::PartitionId;
use filbert_store::{Event, EventKind, MapId, MapSettings, StoreError};

use crate::config::MapConfig;
use crate::errors::GridError;
use crate::invalidation::InvalidationListeners;
use crate::layouts::Layouts;
use crate::listeners::Listeners;
use crate::names::MAP_SERVICE;

/// The memory overhead of a record beside its key and value, in bytes. The memory limit check adds
/// it before the record is created.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 64;

/// One map of the member.
pub(crate) struct MapCore {
    pub(crate) id: MapId,
    pub(crate) name: String,
    pub(crate) config: MapConfig,
    pub(crate) layouts: Layouts,
    pub(crate) listeners: Listeners,
    pub(crate) near_caches: InvalidationListeners,
    /// The number of entries over all partitions. Counted only for maps that evict.
    pub(crate) entries: AtomicUsize,
    /// The bytes over all partitions. Counted only for maps that evict by bytes.
    pub(crate) bytes: AtomicUsize,
    pub(crate) destroyed: AtomicBool,
    /// Whether another map has replaced this one on all members of a cluster. It is destroyed then.
    pub(crate) is_replaced: AtomicBool,
    /// Whether the map has replaced another one on all members of a cluster, or is about to.
    pub(crate) is_replacement: AtomicBool,
    /// Whether another map is about to replace this one, see [`MapCore::hold`]. Changes are refused
    /// meanwhile.
    pub(crate) held: AtomicBool,
    /// The number of running statements that change several keys together. A statement checks
    /// `held` after it is counted here.
    pub(crate) claiming: AtomicUsize,
    /// The number of changes in flight through a log. A change checks `held` after it is counted
    /// here.
    pub(crate) in_flight: AtomicUsize,
    /// The entries, or their bytes, with an eviction in flight through a log.
    pub(crate) evicting: AtomicUsize,
    /// The settings with which partitions create the map.
    pub(crate) settings: MapSettings,
    /// By partition, whether the log has created the map there.
    pub(crate) created: Box<[AtomicBool]>,
    /// Whether the member's memory account includes the map's bytes outside the partitions.
    pub(crate) is_counted: AtomicBool,
    /// Whether the map has a limit that eviction enforces.
    pub(crate) evicts: bool,
    counts_bytes: bool,
}

impl MapCore {
    pub(crate) fn new(
        id: MapId,
        name: String,
        (config, settings): (MapConfig, MapSettings),
        partitions: u32,
        layouts: Layouts,
    ) -> Self {
        let evicts = config.eviction.applies();
        let counts_bytes = evicts && config.eviction.max_size_policy.counts_bytes();
        MapCore {
            id,
            name,
            config,
            evicts,
            counts_bytes,
            layouts,
            listeners: Listeners::default(),
            near_caches: InvalidationListeners::default(),
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            destroyed: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
            is_replacement: AtomicBool::new(false),
            held: AtomicBool::new(false),
            claiming: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            evicting: AtomicUsize::new(0),
            is_counted: AtomicBool::new(false),
            settings,
            created: (0..partitions).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The map's bytes outside its partitions, as long as it exists.
    pub(crate) fn own_bytes(&self) -> usize {
        // The name is also the key of a table, and the name of a distributed object.
        size_of::<MapCore>() + self.name.len() * 3 + self.created.len()
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.listeners.any() || self.near_caches.any()
    }

    /// Whether the log has created the map in a partition.
    pub(crate) fn is_created_in(&self, partition: PartitionId) -> bool {
        self.created.get(partition.0 as usize).is_none_or(|created| created.load(Ordering::Acquire))
    }

    pub(crate) fn set_created(&self, partition: PartitionId, is_created: bool) {
        if let Some(created) = self.created.get(partition.0 as usize) {
            created.store(is_created, Ordering::Release);
        }
    }

    /// Updates the number of entries of a map that evicts.
    #[inline]
    pub(crate) fn count_entry(&self, event: &Event<'_>) {
        if !self.evicts {
            return;
        }
        let (come, gone) = match event.kind {
            EventKind::Added => (1, 0),
            EventKind::Loaded => (usize::from(event.old_value.is_none()), 0),
            EventKind::Removed | EventKind::Evicted | EventKind::Expired => (0, 1),
            EventKind::Cleared | EventKind::EvictedAll => (0, event.count),
            EventKind::Updated | EventKind::LockReleased | EventKind::Unclaimed => (0, 0),
        };
        if come > gone {
            self.entries.fetch_add(come - gone, Ordering::AcqRel);
        } else if gone > come {
            self.entries.fetch_sub(gone - come, Ordering::AcqRel);
        }
    }

    /// Updates the bytes of a map that evicts by bytes.
    #[inline]
    pub(crate) fn account(&self, before: usize, after: usize) {
        if self.counts_bytes {
            self.bytes.fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
        }
    }

    /// The error of a change of a destroyed map. If another map has replaced it, the change is to
    /// be sent again; also if only another member knows yet that the map is gone, but not why.
    pub(crate) fn destroyed_error(&self) -> GridError {
        if self.is_replaced.load(Ordering::Acquire) || !self.destroyed.load(Ordering::Acquire) {
            return self.held_error();
        }
        GridError::Destroyed { service: MAP_SERVICE.to_owned(), name: self.name.clone() }
    }

    /// Translates an error of the store for a caller.
    pub(crate) fn refusal(&self, error: StoreError) -> GridError {
        match error {
            StoreError::NoSuchMap(_) => self.destroyed_error(),
            error => GridError::IllegalArgument(error.to_string()),
        }
    }

    /// Refuses changes from now on, because another map is about to replace this one.
    pub(crate) fn hold(&self) -> Result<(), GridError> {
        match self.held.swap(true, Ordering::SeqCst) {
            true => Err(self.held_error()),
            false => Ok(()),
        }
    }

    /// Accepts changes again.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Release);
    }

    pub(crate) fn held_error(&self) -> GridError {
        GridError::BeingReplaced { map: self.name.clone() }
    }

    /// Refuses a change while another map is about to replace this one.
    #[inline]
    pub(crate) fn check_held(&self) -> Result<(), GridError> {
        if self.held.load(Ordering::SeqCst) { Err(self.held_error()) } else { Ok(()) }
    }
}
