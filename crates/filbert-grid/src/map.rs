//! The handle of one map: reads and changes in place, waiting for locked keys, and the map as a whole.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_data::{PartitionId, partition_of};
use filbert_store::{
    Caller, Change, Command, Cursor, EntryView, Event, EventKind, Expiry, JournalEvent, LockState, MapId,
    MapStatistics, Millis, OwnedChange, Partition, PutMode, Reply,
};

use crate::cell::{Cell, CellState};
use crate::config::MapConfig;
use crate::errors::GridError;
use crate::invalidation::{InvalidationListeners, InvalidationSink};
use crate::listeners::{EntrySink, ListenerId, ListenerSpec, Listeners};
use crate::objects::MAP_SERVICE;
use crate::shared::Shared;
use crate::waiters::{ParkedReply, Waiter};
use crate::{ConnectionId, eviction};

/// Bytes that a record costs beside key and value, as the memory limit counts before it is made.
const RECORD_OVERHEAD_BYTES: usize = 64;

/// Why a change was not made; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Someone else has locked the key; see [`Map::change_when_free`].
    #[error("the key is locked by someone else")]
    Locked {
        /// When the lock's lease ends, if it does.
        free_at: Option<Millis>,
    },
    /// It cannot be made at all.
    #[error(transparent)]
    Error(#[from] GridError),
}

/// What a read of the event journal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRead {
    /// Events visited.
    pub count: usize,
    /// The sequence to go on from.
    pub next_sequence: i64,
}

/// One map of the member, without the member.
pub(crate) struct MapCore {
    pub(crate) id: MapId,
    pub(crate) name: String,
    pub(crate) config: MapConfig,
    pub(crate) listeners: Listeners,
    pub(crate) near_caches: InvalidationListeners,
    /// Entries over all partitions; counted for maps that evict only.
    pub(crate) entries: AtomicUsize,
    /// Bytes over all partitions; kept for maps that evict by bytes only.
    pub(crate) bytes: AtomicUsize,
    pub(crate) destroyed: AtomicBool,
}

impl MapCore {
    pub(crate) fn new(id: MapId, name: String, config: MapConfig) -> Self {
        MapCore {
            id,
            name,
            config,
            listeners: Listeners::default(),
            near_caches: InvalidationListeners::default(),
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            destroyed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.listeners.any() || self.near_caches.any()
    }

    /// Keeps the number of entries of a map that evicts.
    #[inline]
    pub(crate) fn count_entry(&self, event: &Event<'_>) {
        if !eviction::applies(&self.config) {
            return;
        }
        let (come, gone) = match event.kind {
            EventKind::Added => (1, 0),
            EventKind::Loaded => (usize::from(event.old_value.is_none()), 0),
            EventKind::Removed | EventKind::Evicted | EventKind::Expired => (0, 1),
            EventKind::Cleared | EventKind::EvictedAll => (0, event.count),
            EventKind::Updated | EventKind::LockReleased => (0, 0),
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
        if eviction::applies(&self.config) && eviction::counts_bytes(self.config.eviction.max_size_policy) {
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
        let needed = wanted.saturating_sub(existing.map_or(0, |view| view.key.len() + view.value.len()));
        let needed = if existing.is_some() { needed.saturating_sub(RECORD_OVERHEAD_BYTES) } else { needed };
        if needed == 0 || used.saturating_add(needed) <= max {
            return Ok(());
        }
        Err(GridError::OutOfMemory { needed, used, max })
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

/// A map of the member: what doors and the embedded API hold. Cheap to clone behind its `Arc`; stays valid after the map
/// was destroyed, but then reads find nothing and changes are refused.
pub struct Map {
    pub(crate) core: Arc<MapCore>,
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("name", &self.core.name).finish_non_exhaustive()
    }
}

impl Map {
    /// The map's name.
    #[inline]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The settings that the map was made with.
    pub fn config(&self) -> &MapConfig {
        &self.core.config
    }

    /// Whether the map was destroyed; a new handle makes it anew.
    #[inline]
    pub fn is_destroyed(&self) -> bool {
        self.core.destroyed.load(Ordering::Acquire)
    }

    /// The partition of a key.
    #[inline]
    pub fn partition_of(&self, key: &[u8]) -> PartitionId {
        partition_of(key, self.shared.config.partition_count)
    }

    /// Reads the value of a key: calls `read` under the partition's lock and returns what it returns. Counts as a read.
    #[inline]
    pub fn get<R>(&self, partition: PartitionId, key: &[u8], read: impl FnOnce(Option<&[u8]>) -> R) -> R {
        let now = self.shared.now();
        read(self.shared.cell(partition).lock().partition.get(self.core.id, key, now))
    }

    /// Whether there is an entry. Counts as a read.
    pub fn contains_key(&self, partition: PartitionId, key: &[u8]) -> bool {
        let now = self.shared.now();
        self.shared.cell(partition).lock().partition.contains_key(self.core.id, key, now)
    }

    /// Reads all that is known of an entry; does not count as a read.
    pub fn entry_view<R>(
        &self,
        partition: PartitionId,
        key: &[u8],
        read: impl FnOnce(Option<&EntryView<'_>>) -> R,
    ) -> R {
        let now = self.shared.now();
        read(self.shared.cell(partition).lock().partition.entry_view(self.core.id, key, now).as_ref())
    }

    /// Entries over all partitions, each counted at one moment of its own.
    pub fn size(&self) -> usize {
        let now = self.shared.now();
        self.shared.cells.iter().map(|cell| cell.lock().partition.len(self.core.id, now)).sum()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        let now = self.shared.now();
        self.shared.cells.iter().all(|cell| cell.lock().partition.len(self.core.id, now) == 0)
    }

    /// Whether any entry has this value, byte for byte. Looks at all entries.
    pub fn contains_value(&self, value: &[u8]) -> bool {
        let now = self.shared.now();
        self.shared.cells.iter().any(|cell| cell.lock().partition.contains_value(self.core.id, value, now))
    }

    /// Whether anybody holds the key's lock.
    pub fn is_locked(&self, partition: PartitionId, key: &[u8]) -> bool {
        self.lock_state(partition, key).is_some()
    }

    /// Who holds the key's lock, how often, and how long.
    pub fn lock_state(&self, partition: PartitionId, key: &[u8]) -> Option<LockState> {
        let now = self.shared.now();
        self.shared.cell(partition).lock().partition.lock_state(self.core.id, key, now)
    }

    /// Visits key and value of every entry, partition by partition, each under its lock.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let now = self.shared.now();
        for cell in &self.shared.cells {
            cell.lock().partition.for_each(self.core.id, now, visit);
        }
    }

    /// Visits entries of one partition from `cursor` on until at least `at_least` were visited. Returns where to go on;
    /// `None` at the end. An entry that is there throughout is visited exactly once, however the map changes.
    pub fn fetch(
        &self,
        partition: PartitionId,
        cursor: Cursor,
        at_least: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Option<Cursor> {
        let now = self.shared.now();
        self.shared.cell(partition).lock().partition.fetch(self.core.id, cursor, at_least, now, visit)
    }

    /// The oldest and the newest sequence of a partition's event journal.
    ///
    /// # Errors
    /// The map keeps no journal.
    pub fn journal_subscribe(&self, partition: PartitionId) -> Result<(i64, i64), GridError> {
        let cell = self.shared.cell(partition).lock();
        let journal = cell.partition.journal(self.core.id).ok_or_else(|| self.no_journal())?;
        Ok((journal.oldest_sequence(), journal.newest_sequence()))
    }

    /// Visits at most `max` events of a partition's journal from a sequence on.
    ///
    /// # Errors
    /// The map keeps no journal, or the sequence is not in it any more or not yet.
    pub fn journal_read(
        &self,
        partition: PartitionId,
        from: i64,
        max: usize,
        visit: &mut dyn FnMut(&JournalEvent),
    ) -> Result<JournalRead, GridError> {
        let cell = self.shared.cell(partition).lock();
        let journal = cell.partition.journal(self.core.id).ok_or_else(|| self.no_journal())?;
        let (oldest, newest) = (journal.oldest_sequence(), journal.newest_sequence());
        let stale = GridError::StaleSequence { requested: from, oldest, newest };
        if from > newest.saturating_add(1) {
            return Err(stale);
        }
        let events = journal.read(from, max).map_err(|_| stale)?;
        let mut count = 0;
        for event in events {
            visit(event);
            count += 1;
        }
        Ok(JournalRead { count, next_sequence: from.saturating_add(i64::try_from(count).unwrap_or(i64::MAX)) })
    }

    fn no_journal(&self) -> GridError {
        GridError::UnsupportedOperation(format!(
            "map {:?} keeps no event journal, expected event-journal to be enabled in its configuration",
            self.core.name
        ))
    }

    /// Makes a change of one key in place: calls `reply` under the partition's lock and returns what it returns.
    ///
    /// # Errors
    /// [`Refused::Locked`] when someone else has locked the key; other refusals say why. Nothing was changed then.
    #[inline]
    pub fn change<R>(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        let shared = &*self.shared;
        let cell = shared.cell(partition);
        let result = {
            let mut state = cell.lock();
            self.change_in(cell, &mut state, caller, change, reply)
        };
        if result.is_ok() && eviction::applies(&self.core.config) {
            eviction::make_room(shared, &self.core, partition, change.key());
        }
        result
    }

    /// The change under the cell's lock.
    #[inline]
    fn change_in<R>(
        &self,
        cell: &Cell,
        state: &mut CellState,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        let (shared, core) = (&*self.shared, &*self.core);
        shared.check_active()?;
        let command = Command { map: core.id, now: shared.now(), caller, change };
        core.check_memory(shared, &state.partition, &command)?;
        let result = shared.apply(cell, state, core, &command, |answer| match answer {
            Reply::Locked { free_at } => Err(Refused::Locked { free_at }),
            Reply::Refused(error) => Err(Refused::Error(self.refusal(error))),
            answer => Ok(reply(answer)),
        })?;
        core.note_locks(shared, &change, caller);
        core.note_deadlines(shared, cell, &change, command.now);
        Ok(result)
    }

    fn refusal(&self, error: filbert_store::StoreError) -> GridError {
        match error {
            filbert_store::StoreError::NoSuchMap(_) => {
                GridError::Destroyed { service: MAP_SERVICE.to_owned(), name: self.core.name.clone() }
            }
            error => GridError::IllegalArgument(error.to_string()),
        }
    }

    /// Makes a change of one key as soon as no one else holds its lock, or gives up at `deadline`. `reply` is called
    /// exactly once: at once if the key is free, else by whoever frees it.
    pub fn change_when_free(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: OwnedChange,
        deadline: Option<Millis>,
        reply: ParkedReply,
    ) {
        let shared = &*self.shared;
        let cell = shared.cell(partition);
        let mut reply = Some(reply);
        let mut state = cell.lock();
        let made = self.change_in(cell, &mut state, caller, change.borrow(), |answer| {
            if let Some(reply) = reply.take() {
                reply(Ok(answer));
            }
        });
        match (made, reply) {
            (Err(Refused::Locked { free_at }), Some(reply)) => {
                let deadline = deadline.unwrap_or(Millis::MAX);
                self.park(cell, &mut state, Waiter { caller, change, deadline, reply }, free_at);
                drop(state);
                if !shared.active.load(Ordering::Acquire) {
                    // The member was shut down meanwhile, and may not have seen this waiter.
                    shared.dismiss_all();
                }
            }
            (Err(Refused::Error(error)), Some(reply)) => reply(Err(error)),
            _ => {
                drop(state);
                if eviction::applies(&self.core.config) {
                    eviction::make_room(shared, &self.core, partition, change.key());
                }
            }
        }
    }

    fn park(&self, cell: &Cell, state: &mut CellState, waiter: Waiter, free_at: Option<Millis>) {
        let shared = &*self.shared;
        if let Err(error) = shared.reserve_waiter() {
            (waiter.reply)(Err(error));
            return;
        }
        shared.clients.may_leave_traces(waiter.caller.client);
        let due = waiter.deadline.min(free_at.unwrap_or(Millis::MAX));
        let key: Box<[u8]> = waiter.change.key().unwrap_or_default().into();
        state.waiters.push_back(self.core.id, &key, waiter);
        shared.due_by(cell, due);
    }

    /// Takes out all entries but those of locked keys; returns how many. Listeners hear of it once.
    ///
    /// # Errors
    /// The member is shutting down.
    pub fn clear(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, Change::Clear, EventKind::Cleared)
    }

    /// As [`Map::clear`], told as an eviction.
    ///
    /// # Errors
    /// The member is shutting down.
    pub fn evict_all(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, Change::EvictAll, EventKind::EvictedAll)
    }

    fn empty(&self, caller: Caller, change: Change<'_>, kind: EventKind) -> Result<usize, GridError> {
        let shared = &*self.shared;
        shared.check_active()?;
        let mut affected = 0;
        for cell in &shared.cells {
            let mut state = cell.lock();
            let command = Command { map: self.core.id, now: shared.now(), caller, change };
            affected += shared.apply(cell, &mut state, &self.core, &command, |reply| match reply {
                Reply::Count(count) => count,
                _ => 0,
            });
        }
        if self.core.listeners.any() {
            shared.tell_whole_map(&self.core, kind, affected);
        }
        Ok(affected)
    }

    /// Adds a listener.
    ///
    /// # Errors
    /// There are as many listeners as the settings allow, or the map was destroyed.
    pub fn add_listener(&self, spec: ListenerSpec, sink: Arc<dyn EntrySink>) -> Result<ListenerId, GridError> {
        self.shared.reserve_listener()?;
        let id = ListenerId(self.shared.uuids.next());
        self.core.listeners.add(id, spec, sink);
        Ok(id)
    }

    /// Removes a listener of entries or of invalidations; whether there was one.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        let removed = self.core.listeners.remove(id) || self.core.near_caches.remove(id);
        if removed {
            self.shared.listeners.fetch_sub(1, Ordering::AcqRel);
        }
        removed
    }

    /// Adds someone who keeps a near cache of the map.
    ///
    /// # Errors
    /// There are as many listeners as the settings allow.
    pub fn add_invalidation_listener(
        &self,
        connection: Option<ConnectionId>,
        sink: Arc<dyn InvalidationSink>,
    ) -> Result<ListenerId, GridError> {
        self.shared.reserve_listener()?;
        let id = ListenerId(self.shared.uuids.next());
        self.core.near_caches.add(id, connection, sink);
        Ok(id)
    }

    /// Counters and sizes over all partitions.
    pub fn statistics(&self) -> MapStatistics {
        let mut sum = MapStatistics::default();
        for cell in &self.shared.cells {
            sum.add(&cell.lock().partition.statistics(self.core.id));
        }
        sum
    }
}
