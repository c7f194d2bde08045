//! The handle of one map: reads and changes in place, waiting for locked keys, and the map as a whole.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{
    Caller, Change, Command, Cursor, EntryView, EventKind, JournalEvent, LockState, MapStatistics, Millis, OwnedChange,
    Reply,
};
use parking_lot::MutexGuard;

use crate::cell::{Cell, CellState};
use crate::config::MapConfig;
use crate::errors::GridError;
use crate::invalidation::InvalidationSink;
use crate::listeners::{EntrySink, ListenerId, ListenerSpec};
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::waiters::{ParkedReply, Waiter};
use crate::{ConnectionId, eviction};

/// Locks that [`Map::get_many`] holds at once: as many lookups as a processor keeps in flight, and few enough that nobody
/// else waits for long.
const READ_AHEAD: usize = 8;

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

    /// All cells, each with the time at which a read of it happens.
    fn cells(&self) -> impl Iterator<Item = (&Cell, Millis)> {
        self.shared.partitions().map(|(partition, cell)| (cell, self.shared.read_time(partition)))
    }

    /// As [`Map::cells`], of some partitions.
    fn cells_of(&self, partitions: &[PartitionId]) -> impl Iterator<Item = (&Cell, Millis)> {
        let timed = |id: &PartitionId| self.shared.cell(*id).map(|cell| (cell, self.shared.read_time(*id)));
        partitions.iter().filter_map(timed)
    }

    /// Reads the value of a key: calls `read` under the partition's lock and returns what it returns. Counts as a read.
    #[inline]
    pub fn get<R>(&self, partition: PartitionId, key: &[u8], read: impl FnOnce(Option<&[u8]>) -> R) -> R {
        let now = self.shared.read_time(partition);
        read(self.shared.cell_of(partition, key).lock().partition.get(self.core.id, key, now))
    }

    /// Reads the values of many keys, in order: calls `read` with a key's index and its value, under the partition's
    /// lock, until it answers `false`. Returns how many keys were read. Each counts as a read.
    ///
    /// A lookup waits for memory several times over, and a processor can wait for several lookups at once, as long as
    /// nothing comes between them that it must not reorder, such as taking a lock. So a few locks are taken first, then
    /// all their keys are looked up, then read. Only the first lock is waited for; one that cannot be had at once ends
    /// the run, so that two such readers cannot wait for each other.
    pub fn get_many(&self, keys: &[(PartitionId, &[u8])], mut read: impl FnMut(usize, Option<&[u8]>) -> bool) -> usize {
        let (shared, map, now) = (&*self.shared, self.core.id, self.shared.now());
        let time = |partition| if self.is_replicated() { shared.read_time(partition) } else { now };
        let mut done = 0;
        while let Some(rest) = keys.get(done..).filter(|rest| !rest.is_empty()) {
            let mut held = [const { None }; READ_AHEAD];
            for (index, (place, (partition, key))) in held.iter_mut().zip(rest).enumerate() {
                let cell = shared.cell_of(*partition, key);
                *place = if index == 0 { Some(cell.lock()) } else { cell.try_lock() };
                if place.is_none() {
                    break;
                }
            }
            let mut located = [None; READ_AHEAD];
            for ((place, state), (_, key)) in located.iter_mut().zip(held.iter().flatten()).zip(rest) {
                *place = Some(state.partition.locate(map, key));
            }
            for ((state, place), (partition, _)) in
                held.iter_mut().flatten().zip(located.into_iter().flatten()).zip(rest)
            {
                let goes_on = read(done, state.partition.get_located(map, place, time(*partition)));
                done += 1;
                if !goes_on {
                    return done;
                }
            }
        }
        done
    }

    /// Whether there is an entry. Counts as a read.
    pub fn contains_key(&self, partition: PartitionId, key: &[u8]) -> bool {
        let now = self.shared.read_time(partition);
        self.shared.cell_of(partition, key).lock().partition.contains_key(self.core.id, key, now)
    }

    /// Reads all that is known of an entry; does not count as a read.
    pub fn entry_view<R>(
        &self,
        partition: PartitionId,
        key: &[u8],
        read: impl FnOnce(Option<&EntryView<'_>>) -> R,
    ) -> R {
        let now = self.shared.read_time(partition);
        read(self.shared.cell_of(partition, key).lock().partition.entry_view(self.core.id, key, now).as_ref())
    }

    /// Entries over all partitions, each counted at one moment of its own.
    pub fn size(&self) -> usize {
        self.cells().map(|(cell, now)| cell.lock().partition.len(self.core.id, now)).sum()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.cells().all(|(cell, now)| cell.lock().partition.len(self.core.id, now) == 0)
    }

    /// Whether any entry has this value, byte for byte. Looks at all entries.
    pub fn contains_value(&self, value: &[u8]) -> bool {
        self.cells().any(|(cell, now)| cell.lock().partition.contains_value(self.core.id, value, now))
    }

    /// Entries of some partitions, each counted at one moment of its own.
    pub fn size_of(&self, partitions: &[PartitionId]) -> usize {
        self.cells_of(partitions).map(|(cell, now)| cell.lock().partition.len(self.core.id, now)).sum()
    }

    /// As [`Map::contains_value`], in some partitions.
    pub fn contains_value_in(&self, partitions: &[PartitionId], value: &[u8]) -> bool {
        self.cells_of(partitions).any(|(cell, now)| cell.lock().partition.contains_value(self.core.id, value, now))
    }

    /// Whether anybody holds the key's lock.
    pub fn is_locked(&self, partition: PartitionId, key: &[u8]) -> bool {
        self.lock_state(partition, key).is_some()
    }

    /// Who holds the key's lock, how often, and how long.
    pub fn lock_state(&self, partition: PartitionId, key: &[u8]) -> Option<LockState> {
        let now = self.shared.read_time(partition);
        self.shared.cell_of(partition, key).lock().partition.lock_state(self.core.id, key, now)
    }

    /// Visits key and value of every entry, partition by partition, each under its lock.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (cell, now) in self.cells() {
            cell.lock().partition.for_each(self.core.id, now, visit);
        }
    }

    /// Number of partitions.
    pub fn partition_count(&self) -> u32 {
        self.shared.config.partition_count
    }

    /// Visits key and value of every entry of one partition, at one instant. Does not count as reads.
    pub fn scan_rows(&self, partition: PartitionId, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let now = self.shared.read_time(partition);
        if let Some(cell) = self.shared.cell(partition) {
            cell.lock().partition.for_each(self.core.id, now, visit);
        }
    }

    /// Visits entries of one partition from `cursor` on until at least `at_least` were visited. Returns where to go on;
    /// `None` at the end, or if there is no such partition. An entry that is there throughout is visited exactly once, however the map changes.
    pub fn fetch(
        &self,
        partition: PartitionId,
        cursor: Cursor,
        at_least: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Option<Cursor> {
        let now = self.shared.read_time(partition);
        self.shared.cell(partition)?.lock().partition.fetch(self.core.id, cursor, at_least, now, visit)
    }

    /// The oldest and the newest sequence of a partition's event journal.
    ///
    /// # Errors
    /// The map keeps no journal, or there is no such partition.
    pub fn journal_subscribe(&self, partition: PartitionId) -> Result<(i64, i64), GridError> {
        let cell = self.shared.cell(partition).ok_or_else(|| no_partition(partition))?.lock();
        let journal = cell.partition.journal(self.core.id).ok_or_else(|| self.no_journal())?;
        Ok((journal.oldest_sequence(), journal.newest_sequence()))
    }

    /// Visits at most `max` events of a partition's journal from a sequence on.
    ///
    /// # Errors
    /// The map keeps no journal, the sequence is not in it any more or not yet, or there is no such partition.
    pub fn journal_read(
        &self,
        partition: PartitionId,
        from: i64,
        max: usize,
        visit: &mut dyn FnMut(&JournalEvent),
    ) -> Result<JournalRead, GridError> {
        let cell = self.shared.cell(partition).ok_or_else(|| no_partition(partition))?.lock();
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

    /// Makes a change of one key in place: calls `reply` under the partition's lock and returns what it returns. Where changes go
    /// through a log, it waits for the answer, and calls `reply` then; who must not wait calls [`Map::submit`].
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
        if let Some(replication) = &shared.replication {
            return self.change_by_log(replication, partition, caller, change, reply);
        }
        let cell = shared.cell_of(partition, change.key().unwrap_or_default());
        let mut state = cell.lock();
        let result = self.change_in(cell, &mut state, caller, change, reply);
        if self.core.evicts && result.is_ok() && eviction::may_grow(&change) {
            self.make_room(partition, state, cell, change.key());
        }
        result
    }

    fn make_room(&self, partition: PartitionId, state: MutexGuard<'_, CellState>, cell: &Cell, spared: Option<&[u8]>) {
        let (shared, core, mut state) = (&*self.shared, &*self.core, state);
        let made = eviction::make_room_here(shared, core, cell, &mut state, spared);
        drop(state);
        if !made {
            eviction::make_room_elsewhere(shared, core, partition, spared);
        }
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
        core.check_held()?;
        let Some(key) = change.key() else {
            return Err(GridError::IllegalArgument("a change of a whole map is not one of a key".to_owned()).into());
        };
        let command = Command { map: core.id, now: shared.now(), caller, change };
        if !state.waiters.is_empty() {
            self.let_waiters_go_first(cell, state, key, command.now);
        }
        core.check_memory(shared, &state.partition, &command)?;
        let result = shared.apply(cell, state, core, &command, |answer| match answer {
            Reply::Locked { free_at } => Err(Refused::Locked { free_at }),
            Reply::Refused(error) => Err(Refused::Error(core.refusal(error))),
            answer => Ok(reply(answer)),
        })?;
        core.note_locks(shared, &change, caller);
        core.note_deadlines(shared, cell, &change, command.now);
        Ok(result)
    }

    /// A lease may have ended without the sweep having come by: those who wait for the key were here first.
    #[cold]
    fn let_waiters_go_first(&self, cell: &Cell, state: &mut CellState, key: &[u8], now: Millis) {
        let map = self.core.id;
        if state.waiters.any_for(map, key) && !state.partition.is_locked(map, key, now) {
            self.shared.run_freed(cell, state, vec![(map, Some(key.into()))]);
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
        if let Some(replication) = &shared.replication {
            return self.change_by_log_when_free(replication, partition, caller, &change, deadline, reply);
        }
        let cell = shared.cell_of(partition, change.key().unwrap_or_default());
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
                shared.park(&self.core, cell, &mut state, Waiter { caller, change, deadline, reply }, free_at);
                drop(state);
                if !shared.active.load(Ordering::Acquire) {
                    // The member was shut down meanwhile, and may not have seen this waiter.
                    shared.dismiss_all();
                }
            }
            (Err(Refused::Error(error)), Some(reply)) => reply(Err(error)),
            _ => {
                if self.core.evicts && eviction::may_grow(&change.borrow()) {
                    self.make_room(partition, state, cell, change.key());
                }
            }
        }
    }

    /// As [`Map::change_when_free`], giving up `wait_ms` milliseconds from now.
    pub fn change_within(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: OwnedChange,
        wait_ms: i64,
        reply: ParkedReply,
    ) {
        let deadline = self.shared.now().plus(wait_ms);
        self.change_when_free(partition, caller, change, Some(deadline), reply);
    }

    /// Takes out all entries but those of locked keys; returns how many. Listeners hear of it once.
    ///
    /// # Errors
    /// The member is shutting down, or the map was destroyed.
    pub fn clear(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, EventKind::Cleared)
    }

    /// As [`Map::clear`], told as an eviction.
    ///
    /// # Errors
    /// The member is shutting down, or the map was destroyed.
    pub fn evict_all(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, EventKind::EvictedAll)
    }

    pub(crate) fn empty(&self, caller: Caller, kind: EventKind) -> Result<usize, GridError> {
        let shared = &*self.shared;
        if self.is_replicated() {
            return self.emptied_by_log(caller, kind);
        }
        let change = if kind == EventKind::Cleared { Change::Clear } else { Change::EvictAll };
        shared.check_active()?;
        if self.is_destroyed() {
            return Err(self.core.destroyed_error());
        }
        let mut affected = 0;
        for (partition, cell) in shared.partitions() {
            let mut state = cell.lock();
            self.core.check_held()?;
            let command = Command { map: self.core.id, now: shared.now(), caller, change };
            affected += shared.apply(cell, &mut state, &self.core, &command, |reply| match reply {
                Reply::Count(count) => count,
                _ => 0,
            });
            if self.core.listeners.any() {
                self.core.listeners.partition_emptied(kind, partition, true);
            }
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
        self.listen(spec, sink, false)
    }

    /// As [`Map::add_listener`], for who follows this member's copies of the partitions: it hears of every change that is made to them here,
    /// once and in the order of the log, whoever leads and tells other listeners. Changes of partitions that this member does not hold, it does
    /// not hear of; when one has come as a whole, it is told so ([`EntrySink::partition_replaced`]).
    ///
    /// # Errors
    /// As [`Map::add_listener`].
    pub fn follow_copies(&self, spec: ListenerSpec, sink: Arc<dyn EntrySink>) -> Result<ListenerId, GridError> {
        self.listen(spec, sink, true)
    }

    fn listen(&self, spec: ListenerSpec, sink: Arc<dyn EntrySink>, follows: bool) -> Result<ListenerId, GridError> {
        self.shared.reserve_listener()?;
        let id = ListenerId(self.shared.uuids.next());
        self.core.listeners.add(id, spec, sink, follows);
        self.keep_unless_destroyed(id)
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
    /// There are as many listeners as the settings allow, or the map was destroyed.
    pub fn add_invalidation_listener(
        &self,
        connection: Option<ConnectionId>,
        sink: Arc<dyn InvalidationSink>,
    ) -> Result<ListenerId, GridError> {
        self.shared.reserve_listener()?;
        let id = ListenerId(self.shared.uuids.next());
        self.core.near_caches.add(id, connection, sink);
        self.keep_unless_destroyed(id)
    }

    /// Who destroys a map marks it, then removes its listeners; a registration that came too late removes itself.
    fn keep_unless_destroyed(&self, id: ListenerId) -> Result<ListenerId, GridError> {
        if self.is_destroyed() {
            self.remove_listener(id);
            return Err(self.core.destroyed_error());
        }
        Ok(id)
    }

    /// Counters and sizes over all partitions.
    pub fn statistics(&self) -> MapStatistics {
        let mut sum = MapStatistics::default();
        for cell in &self.shared.cells {
            sum.add(&cell.lock().partition.statistics(self.core.id));
        }
        let signature_bytes = self.core.layouts.signatures.bytes();
        sum.index_bytes += signature_bytes;
        sum.bytes_owned += signature_bytes + self.core.own_bytes();
        sum
    }
}

fn no_partition(partition: PartitionId) -> GridError {
    GridError::IllegalArgument(format!("there is no partition {partition}"))
}
