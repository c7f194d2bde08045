//! The handle of one map: reads, leases for reads, and listeners. Higher modules add changes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Cursor, EntryView, JournalEvent, LockState, MapStatistics, Millis};

use crate::cell::Cell;
use crate::clients::ConnectionId;
use crate::config::MapConfig;
use crate::errors::GridError;
use crate::groups::GroupId;
use crate::invalidation::InvalidationSink;
use crate::listeners::{EntrySink, ListenerId, ListenerSpec};
use crate::map_core::MapCore;
use crate::shared::Shared;

/// The number of locks that [`Map::get_many`] holds at once: as many as the memory accesses that a
/// processor can overlap, and few enough that other threads wait only briefly.
const READ_AHEAD: usize = 8;

/// The reason why a change was not applied. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another caller has locked the key; see [`Map::change_when_free`].
    #[error("the key is locked by someone else")]
    Locked {
        /// The end of the lock's lease, if it has one.
        free_at: Option<Millis>,
    },
    /// The change cannot be applied.
    #[error(transparent)]
    Error(#[from] GridError),
}

/// The result of a read of the event journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRead {
    /// The number of visited events.
    pub count: usize,
    /// The sequence with which to continue.
    pub next_sequence: i64,
}

/// A map of the member, for doors and the embedded API. Cheap to clone behind its `Arc`. A handle
/// stays valid after the map was destroyed, but then reads find nothing and changes are refused.
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

    /// The settings of the map, from its creation.
    pub fn config(&self) -> &MapConfig {
        &self.core.config
    }

    /// Whether the map was destroyed. A new handle creates it again.
    #[inline]
    pub fn is_destroyed(&self) -> bool {
        self.core.destroyed.load(Ordering::Acquire)
    }

    /// The partition of a key.
    #[inline]
    pub fn partition_of(&self, key: &[u8]) -> PartitionId {
        partition_of(key, self.shared.config.partition_count)
    }

    /// All cells, each with the timestamp for reads.
    fn cells(&self) -> impl Iterator<Item = (&Cell, Millis)> {
        self.shared.partitions().map(|(partition, cell)| (cell, self.shared.read_time(partition)))
    }

    /// As [`Map::cells`], for some partitions.
    fn cells_of(&self, partitions: &[PartitionId]) -> impl Iterator<Item = (&Cell, Millis)> {
        let timed = |id: &PartitionId| self.shared.cell(*id).map(|cell| (cell, self.shared.read_time(*id)));
        partitions.iter().filter_map(timed)
    }

    /// Whether changes go through logs.
    #[inline]
    pub fn is_replicated(&self) -> bool {
        self.shared.replication.is_some()
    }

    /// Reads one partition under its lease, so that the result may be sent to a client.
    ///
    /// # Errors
    /// This member has no lease for the partition: the result may be stale.
    #[inline]
    pub fn answering<R>(&self, partition: PartitionId, read: impl FnOnce() -> R) -> Result<R, GridError> {
        match &self.shared.replication {
            None => Ok(read()),
            Some(replication) => Ok(replication.answering(partition, read)?),
        }
    }

    /// Reads all partitions under their leases, so that the result may be sent to a client.
    ///
    /// # Errors
    /// As [`Map::answering`], for any of the partitions.
    #[inline]
    pub fn answering_all<R>(&self, read: impl FnOnce() -> R) -> Result<R, GridError> {
        match &self.shared.replication {
            None => Ok(read()),
            Some(replication) => Ok(replication.answering_all(read)?),
        }
    }

    /// Reads some partitions under their leases, so that the result may be sent to a client.
    ///
    /// # Errors
    /// As [`Map::answering`], for any of these partitions.
    pub fn answering_these<R>(&self, partitions: &[PartitionId], read: impl FnOnce() -> R) -> Result<R, GridError> {
        let Some(replication) = &self.shared.replication else { return Ok(read()) };
        let mut groups: Vec<GroupId> = partitions.iter().map(|partition| replication.group_of(*partition)).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(replication.answering_groups(&groups, read)?)
    }

    /// Reads the value of a key: calls `read` under the partition's lock and returns its result.
    /// Counts as a read of the entry.
    #[inline]
    pub fn get<R>(&self, partition: PartitionId, key: &[u8], read: impl FnOnce(Option<&[u8]>) -> R) -> R {
        let now = self.shared.read_time(partition);
        read(self.shared.cell_of(partition, key).lock().partition.get(self.core.id, key, now))
    }

    /// Reads the values of many keys, in order: calls `read` with a key's index and its value,
    /// under the partition's lock, until it returns `false`. Returns the number of keys read. Each
    /// counts as a read of the entry.
    ///
    /// A lookup waits for memory several times. A processor can overlap the waits of several
    /// lookups if there is no barrier between them, such as the acquisition of a lock. So this
    /// function acquires a few locks first, then looks up all their keys, then reads the values. It
    /// waits only for the first lock of a group. If another lock is not available at once, the
    /// group ends before it, so that two such readers cannot deadlock.
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

    /// Whether the entry exists. Counts as a read of the entry.
    pub fn contains_key(&self, partition: PartitionId, key: &[u8]) -> bool {
        let now = self.shared.read_time(partition);
        self.shared.cell_of(partition, key).lock().partition.contains_key(self.core.id, key, now)
    }

    /// Reads an entry with its metadata. Does not count as a read of the entry.
    pub fn entry_view<R>(
        &self,
        partition: PartitionId,
        key: &[u8],
        read: impl FnOnce(Option<&EntryView<'_>>) -> R,
    ) -> R {
        let now = self.shared.read_time(partition);
        read(self.shared.cell_of(partition, key).lock().partition.entry_view(self.core.id, key, now).as_ref())
    }

    /// The number of entries over all partitions. Each partition is counted at a different time.
    pub fn size(&self) -> usize {
        self.cells().map(|(cell, now)| cell.lock().partition.len(self.core.id, now)).sum()
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.cells().all(|(cell, now)| cell.lock().partition.len(self.core.id, now) == 0)
    }

    /// Whether any entry has this value, byte for byte. Scans all entries.
    pub fn contains_value(&self, value: &[u8]) -> bool {
        self.cells().any(|(cell, now)| cell.lock().partition.contains_value(self.core.id, value, now))
    }

    /// The number of entries of some partitions. Each partition is counted at a different time.
    pub fn size_of(&self, partitions: &[PartitionId]) -> usize {
        self.cells_of(partitions).map(|(cell, now)| cell.lock().partition.len(self.core.id, now)).sum()
    }

    /// As [`Map::contains_value`], in some partitions.
    pub fn contains_value_in(&self, partitions: &[PartitionId], value: &[u8]) -> bool {
        self.cells_of(partitions).any(|(cell, now)| cell.lock().partition.contains_value(self.core.id, value, now))
    }

    /// Whether the key is locked.
    pub fn is_locked(&self, partition: PartitionId, key: &[u8]) -> bool {
        self.lock_state(partition, key).is_some()
    }

    /// The state of the key's lock: its owner, its count and its lease; `None` if it is free.
    pub fn lock_state(&self, partition: PartitionId, key: &[u8]) -> Option<LockState> {
        let now = self.shared.read_time(partition);
        self.shared.cell_of(partition, key).lock().partition.lock_state(self.core.id, key, now)
    }

    /// The number of locked keys of one partition.
    pub(crate) fn locked_keys_of(&self, partition: PartitionId) -> usize {
        let cell = self.shared.cell(partition);
        cell.map_or(0, |cell| cell.lock().partition.statistics(self.core.id).locked_keys)
    }

    /// Visits the key and the value of every entry, one partition after the other, each under its
    /// lock.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (cell, now) in self.cells() {
            cell.lock().partition.for_each(self.core.id, now, visit);
        }
    }

    /// The number of partitions.
    pub fn partition_count(&self) -> u32 {
        self.shared.config.partition_count
    }

    /// Visits the key and the value of every entry of one partition, as one snapshot. Does not
    /// count as reads of the entries.
    pub fn scan_rows(&self, partition: PartitionId, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let now = self.shared.read_time(partition);
        if let Some(cell) = self.shared.cell(partition) {
            cell.lock().partition.for_each(self.core.id, now, visit);
        }
    }

    /// Visits entries of one partition from `cursor` on, until at least `at_least` were visited.
    /// Returns the next cursor; `None` at the end, or if there is no such partition. An entry that
    /// exists during the whole iteration is visited exactly once, however the map changes.
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
    /// The map has no journal, or there is no such partition.
    pub fn journal_subscribe(&self, partition: PartitionId) -> Result<(i64, i64), GridError> {
        let cell = self.shared.cell(partition).ok_or_else(|| no_partition(partition))?.lock();
        let journal = cell.partition.journal(self.core.id).ok_or_else(|| self.no_journal())?;
        Ok((journal.oldest_sequence(), journal.newest_sequence()))
    }

    /// Visits at most `max` events of a partition's journal, starting at sequence `from`.
    ///
    /// # Errors
    /// The map has no journal, the sequence is not in it any more or not yet, or there is no such
    /// partition.
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

    /// Adds a listener.
    ///
    /// # Errors
    /// The number of listeners has reached the limit of the settings, or the map was destroyed.
    pub fn add_listener(&self, spec: ListenerSpec, sink: Arc<dyn EntrySink>) -> Result<ListenerId, GridError> {
        self.listen(spec, sink, false)
    }

    /// As [`Map::add_listener`], for a listener that follows this member's replicas of the
    /// partitions. It receives every change that is applied to them on this member, once and in the
    /// order of the log, whichever member leads and notifies other listeners. It receives no
    /// changes of partitions without a replica on this member. When a snapshot replaces a
    /// partition, it is notified ([`EntrySink::partition_replaced`]).
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

    /// Removes a listener of entries or of invalidations. Returns whether there was one.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        let removed = self.core.listeners.remove(id) || self.core.near_caches.remove(id);
        if removed {
            self.shared.listeners.fetch_sub(1, Ordering::AcqRel);
        }
        removed
    }

    /// Adds a listener for the invalidations of the map, for a near cache.
    ///
    /// # Errors
    /// The number of listeners has reached the limit of the settings, or the map was destroyed.
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

    /// Removes a new listener if the map was destroyed meanwhile. Destroying a map marks it first,
    /// then removes its listeners, so a late registration must remove itself.
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
