//! One map as the member keeps it: its settings, listeners and accounts, and what each change means for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_data::{PartitionId, SchemaSource};
use filbert_store::{
    Caller, Change, Command, Event, EventKind, Expiry, MapId, MapSettings, Millis, Partition, PutMode, StoreError,
};

use crate::cell::Cell;
use crate::config::MapConfig;
use crate::errors::GridError;
use crate::eviction;
use crate::invalidation::InvalidationListeners;
use crate::layouts::Layouts;
use crate::listeners::Listeners;
use crate::objects::MAP_SERVICE;
use crate::shared::Shared;

/// Bytes that a record costs beside key and value, as the memory limit counts before it is made.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 64;

/// One map of the member, without the member.
pub(crate) struct MapCore {
    pub(crate) id: MapId,
    pub(crate) name: String,
    pub(crate) config: MapConfig,
    pub(crate) layouts: Layouts,
    pub(crate) listeners: Listeners,
    pub(crate) near_caches: InvalidationListeners,
    /// Entries over all partitions; counted for maps that evict only.
    pub(crate) entries: AtomicUsize,
    /// Bytes over all partitions; kept for maps that evict by bytes only.
    pub(crate) bytes: AtomicUsize,
    pub(crate) destroyed: AtomicBool,
    /// Whether another map is about to take its place, see `succession.rs`: changes are refused.
    pub(crate) held: AtomicBool,
    /// Statements that change several keys together and are not done: each looks at `held` once it is counted here.
    pub(crate) claiming: AtomicUsize,
    /// Changes that are on their way through a log: each looks at `held` once it is counted here.
    pub(crate) in_flight: AtomicUsize,
    /// Entries, or bytes of them, that are on their way out through a log.
    pub(crate) evicting: AtomicUsize,
    /// What partitions make the map with.
    pub(crate) settings: MapSettings,
    /// By partition, whether the log has made the map there.
    pub(crate) made: Box<[AtomicBool]>,
    /// Whether the member's account has what the member keeps of the map beside its partitions.
    is_counted: AtomicBool,
    /// Whether the map has a limit that eviction keeps.
    pub(crate) evicts: bool,
    counts_bytes: bool,
}

impl MapCore {
    pub(crate) fn new(
        id: MapId,
        name: String,
        (config, settings): (MapConfig, MapSettings),
        partitions: u32,
        schemas: Arc<dyn SchemaSource>,
    ) -> Self {
        let evicts = eviction::applies(&config);
        let layouts = Layouts::of_config(&name, &config, schemas);
        let counts_bytes = evicts && eviction::counts_bytes(config.eviction.max_size_policy);
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
            held: AtomicBool::new(false),
            claiming: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            evicting: AtomicUsize::new(0),
            is_counted: AtomicBool::new(false),
            settings,
            made: (0..partitions).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Bytes that the member keeps of the map beside its partitions, as long as it is there.
    pub(crate) fn own_bytes(&self) -> usize {
        // The name is the key of a table as well, and that of an object.
        size_of::<MapCore>() + self.name.len() * 3 + self.made.len()
    }

    /// Takes what the member keeps of the map beside its partitions into the account, or out of it, once however often the map ends.
    pub(crate) fn count_own(&self, shared: &Shared, is_there: bool) {
        if self.is_counted.swap(is_there, Ordering::AcqRel) != is_there {
            let (before, after) = if is_there { (0, self.own_bytes()) } else { (self.own_bytes(), 0) };
            shared.account(before, after);
            self.account(before, after);
        }
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.listeners.any() || self.near_caches.any()
    }

    /// Whether the log has made the map in a partition.
    pub(crate) fn is_made_in(&self, partition: PartitionId) -> bool {
        self.made.get(partition.0 as usize).is_none_or(|made| made.load(Ordering::Acquire))
    }

    pub(crate) fn note_made(&self, partition: PartitionId, is_made: bool) {
        if let Some(made) = self.made.get(partition.0 as usize) {
            made.store(is_made, Ordering::Release);
        }
    }

    /// Keeps the number of entries of a map that evicts.
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

    /// Keeps the bytes of a map that evicts by them.
    #[inline]
    pub(crate) fn account(&self, before: usize, after: usize) {
        if self.counts_bytes {
            self.bytes.fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
        }
    }

    /// Refuses a change that would take the member beyond its memory limit.
    #[inline]
    pub(crate) fn check_memory(
        &self,
        shared: &Shared,
        partition: &Partition,
        command: &Command<'_>,
    ) -> Result<(), GridError> {
        let Some(max) = shared.config.memory_bytes_max else { return Ok(()) };
        let (key, value) = match command.change {
            Change::Put { key, value, .. } | Change::ReplaceIfSame { key, value, .. } => (key, value),
            Change::Lock { key, .. } => (key, [].as_slice()),
            _ => return Ok(()),
        };
        let used = shared.memory_bytes.load(Ordering::Relaxed);
        let wanted = key.len().saturating_add(value.len()).saturating_add(RECORD_OVERHEAD_BYTES);
        if used.saturating_add(wanted) <= max {
            return Ok(());
        }
        // Near the limit it pays to look: an update needs only what the value grows by.
        let existing = partition.entry_view(self.id, key, command.now);
        match command.change {
            // They write nothing then.
            Change::Put { mode: PutMode::IfAbsent, .. } if existing.is_some() => return Ok(()),
            Change::Put { mode: PutMode::Replace, .. } | Change::ReplaceIfSame { .. } if existing.is_none() => {
                return Ok(());
            }
            _ => {}
        }
        let needed = wanted.saturating_sub(existing.map_or(0, |view| view.key.len() + view.value.len()));
        let needed = if existing.is_some() { needed.saturating_sub(RECORD_OVERHEAD_BYTES) } else { needed };
        if needed == 0 || used.saturating_add(needed) <= max {
            return Ok(());
        }
        Err(GridError::OutOfMemory { needed, used, max })
    }

    pub(crate) fn destroyed_error(&self) -> GridError {
        GridError::Destroyed { service: MAP_SERVICE.to_owned(), name: self.name.clone() }
    }

    /// What the store's refusal means to a caller.
    pub(crate) fn refusal(&self, error: StoreError) -> GridError {
        match error {
            StoreError::NoSuchMap(_) => self.destroyed_error(),
            error => GridError::IllegalArgument(error.to_string()),
        }
    }

    /// Remembers that a client may hold locks, so that they are released when it goes.
    #[inline]
    pub(crate) fn note_locks(&self, shared: &Shared, change: &Change<'_>, caller: Caller) {
        if matches!(change, Change::Lock { .. }) {
            shared.clients.may_leave_traces(caller.client);
        }
    }

    /// Notes when the sweep must come, if the change may have set a deadline.
    #[inline]
    pub(crate) fn note_deadlines(&self, shared: &Shared, cell: &Cell, change: &Change<'_>, now: Millis) {
        let config = &self.config;
        let of = |given_ms: i64, default_seconds: u32| match given_ms {
            0 => i64::MAX,
            ms if ms > 0 => ms,
            _ if default_seconds > 0 => i64::from(default_seconds) * 1_000,
            _ => i64::MAX,
        };
        let of_expiry =
            |expiry: Expiry| of(expiry.ttl_ms, config.ttl_seconds).min(of(expiry.max_idle_ms, config.max_idle_seconds));
        let after_ms = match change {
            Change::Put { mode: PutMode::Metadata(metadata), .. } => {
                of_expiry(metadata.expiry).min(metadata.expires_ms.saturating_sub(now.0).max(0))
            }
            Change::Put { expiry, .. } => of_expiry(*expiry),
            Change::WriteBatch { .. } => of_expiry(Expiry::DEFAULT),
            Change::SetTtl { ttl_ms, .. } => of(*ttl_ms, config.ttl_seconds),
            Change::Lock { lease_ms: Some(lease_ms), .. } => *lease_ms,
            _ => i64::MAX,
        };
        let journal_ms = config.event_journal.map_or(0, |journal| i64::from(journal.ttl_seconds) * 1_000);
        let after_ms = if journal_ms > 0 { after_ms.min(journal_ms) } else { after_ms };
        if after_ms != i64::MAX {
            shared.due_by(cell, now.plus(after_ms));
        }
    }
}
