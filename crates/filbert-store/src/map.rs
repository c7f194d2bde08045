//! One map in one partition: its table, expiry, locks, journal and counters, and the reads of it.

mod old_state;

use filbert_data::PartitionId;
use foldhash::quality::FixedState;

use crate::claims::Claims;
use crate::derived::Derived;
use crate::expiry::{Due, Schedule};
use crate::journal::Journal;
use crate::locks::Locks;
use crate::record::{Lifetime, Record, Stamp};
use crate::table::{RecordPlace, Table};
use crate::{
    Caller, Cursor, EntryView, Event, EventKind, LockState, MapId, MapSettings, MapStatistics, Millis, Observer,
};

pub(crate) use old_state::{Head, MapExport};

/// A number of the order in which partitions with a hash seed hold their entries. A [`Cursor`] is
/// valid in all partitions with the same content and number, on any member: cursors are hashes.
#[must_use]
pub fn entry_order(hash_seed: u64) -> u64 {
    Table::new(FixedState::with_seed(hash_seed)).hash(b"order of entries")
}

/// The parameters of every change of a map.
pub(crate) struct Context<'c> {
    pub(crate) partition: PartitionId,
    pub(crate) now: Millis,
    pub(crate) caller: Caller,
    pub(crate) observer: &'c mut dyn Observer,
}

/// One map in one partition.
pub(crate) struct Map {
    pub(crate) settings: MapSettings,
    pub(crate) table: Table,
    pub(crate) schedule: Schedule,
    pub(crate) locks: Locks,
    pub(crate) claims: Claims,
    pub(crate) log: ChangeLog,
    pub(crate) counters: MapStatistics,
    pub(crate) record_bytes: usize,
    /// Indexes and columns. If there are any, every record has a slot.
    pub(crate) derived: Option<Box<Derived>>,
    /// The log's number of the current layout, see `log.rs`.
    pub(crate) layout: Option<u64>,
    pub(crate) hash_seed: u64,
    /// Whether a read may have extended the life of an entry without the log knowing it.
    pub(crate) reads_ahead: bool,
    /// The old state of the map that the snapshot in progress still needs.
    pub(crate) export: Option<Box<MapExport>>,
}

/// Announces changes: counts them, appends them to the journal, and reports them to the observer.
pub(crate) struct ChangeLog {
    map: MapId,
    pub(crate) sequence: u64,
    pub(crate) journal: Option<Journal>,
}

impl ChangeLog {
    /// The map of these changes.
    pub(crate) fn map(&self) -> MapId {
        self.map
    }

    /// Announces the change of one entry.
    #[inline]
    pub(crate) fn announce(
        &mut self,
        cx: &mut Context<'_>,
        kind: EventKind,
        key: &[u8],
        value: Option<&[u8]>,
        old_value: Option<&[u8]>,
    ) {
        if let Some(journal) = &mut self.journal {
            journal.append(kind, key, old_value, value, cx.now);
        }
        self.sequence += 1;
        self.notify(cx, kind, key, value, old_value, 1);
    }

    /// Announces the change of a whole map.
    pub(crate) fn announce_all(&mut self, cx: &mut Context<'_>, kind: EventKind, count: usize) {
        self.sequence += 1;
        self.notify(cx, kind, &[], None, None, count);
    }

    /// Reports that a key is unlocked, which changes no entry.
    pub(crate) fn announce_free(&mut self, cx: &mut Context<'_>, key: &[u8]) {
        self.notify(cx, EventKind::LockReleased, key, None, None, 0);
    }

    /// Reports that claims were released, which changes no entry.
    pub(crate) fn announce_unclaimed(&mut self, cx: &mut Context<'_>) {
        self.notify(cx, EventKind::Unclaimed, &[], None, None, 0);
    }

    fn notify(
        &mut self,
        cx: &mut Context<'_>,
        kind: EventKind,
        key: &[u8],
        value: Option<&[u8]>,
        old_value: Option<&[u8]>,
        count: usize,
    ) {
        cx.observer.observe(&Event {
            map: self.map,
            partition: cx.partition,
            kind,
            key,
            value,
            old_value,
            caller: cx.caller,
            sequence: self.sequence,
            count,
        });
    }
}

/// Counts a read of an entry and restarts its idle time, for reads only. Returns `false` if the
/// entry has expired.
#[inline]
fn note_read(record: &mut Record, now: Millis, reads_ahead: &mut bool) -> bool {
    if let Some(mut lifetime) = record.lifetime() {
        if now >= lifetime.deadline_of_reads() {
            return false;
        }
        if lifetime.can_idle() {
            // A clock that went back does not make the deadline earlier.
            lifetime.read_at = lifetime.read_at.max(now);
            record.set_lifetime(&lifetime);
            *reads_ahead = true;
        }
    }
    let usage = record.usage_mut();
    usage.hits = usage.hits.saturating_add(1);
    usage.accessed = usage.accessed.max(Stamp::at(now));
    true
}

impl Map {
    pub(crate) fn new(id: MapId, settings: MapSettings, hash_seed: u64) -> Self {
        let journal = settings.journal.map(Journal::new);
        Map {
            settings,
            table: Table::new(FixedState::with_seed(hash_seed)),
            schedule: Schedule::default(),
            locks: Locks::default(),
            claims: Claims::default(),
            log: ChangeLog { map: id, sequence: 0, journal },
            counters: MapStatistics::default(),
            record_bytes: 0,
            derived: None,
            layout: None,
            hash_seed,
            reads_ahead: false,
            export: None,
        }
    }

    /// Changes the settings. Existing entries keep their lifetimes.
    pub(crate) fn configure(&mut self, settings: MapSettings) {
        if settings.journal.is_none() {
            self.leave_journal_for_export();
        }
        match (&mut self.log.journal, settings.journal) {
            (Some(journal), Some(wanted)) => journal.configure(wanted),
            (journal, wanted) => *journal = wanted.map(Journal::new),
        }
        self.settings = settings;
    }

    #[inline]
    pub(crate) fn get(&mut self, key: &[u8], now: Millis) -> Option<&[u8]> {
        self.get_at(self.place_of(key), now)
    }

    /// The place of the entry of a key, expired or not. Valid until the next change.
    #[inline]
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<RecordPlace> {
        self.table.find(self.table.hash(key), key)
    }

    #[inline]
    pub(crate) fn get_at(&mut self, place: Option<RecordPlace>, now: Millis) -> Option<&[u8]> {
        self.counters.gets += 1;
        let record = self.table.at_mut(place?)?;
        if !note_read(record, now, &mut self.reads_ahead) {
            return None;
        }
        self.counters.hits += 1;
        self.counters.last_access_ms = now.0;
        Some(record.value())
    }

    pub(crate) fn contains_key(&mut self, key: &[u8], now: Millis) -> bool {
        let hash = self.table.hash(key);
        let place = self.table.find(hash, key);
        let record = place.and_then(|place| self.table.at_mut(place));
        record.is_some_and(|record| note_read(record, now, &mut self.reads_ahead))
    }

    pub(crate) fn entry_view(&self, key: &[u8], now: Millis) -> Option<EntryView<'_>> {
        let record = self.table.get(self.table.hash(key), key).filter(|record| !record.is_expired_for_reads(now))?;
        let usage = record.usage();
        let lifetime = record.lifetime().unwrap_or_else(|| Lifetime::starting(i64::MAX, i64::MAX, now));
        Some(EntryView {
            key: record.key(),
            value: record.value(),
            cost: record.allocated_bytes() + size_of::<Record>(),
            created_ms: usage.created.to_ms(),
            updated_ms: usage.updated.to_ms(),
            accessed_ms: usage.accessed.to_ms(),
            stored_ms: 0,
            expires_ms: lifetime.deadline_of_reads().0,
            hits: u64::from(usage.hits),
            version: u64::from(usage.version),
            ttl_ms: lifetime.ttl_ms,
            max_idle_ms: lifetime.max_idle_ms,
        })
    }

    /// The number of entries that have not expired.
    pub(crate) fn len(&self, now: Millis) -> usize {
        let due = self.schedule.due(now).filter_map(|due| self.table.at(self.find_due(due)?));
        self.table.len() - due.filter(|record| record.is_expired_for_reads(now)).count()
    }

    /// The place of the entry of an item of the schedule.
    pub(crate) fn find_due(&self, due: Due) -> Option<RecordPlace> {
        self.table.find_hash(due.hash, |record| record.lifetime().is_some_and(|lifetime| due.is_of(&lifetime)))
    }

    pub(crate) fn contains_value(&self, value: &[u8], now: Millis) -> bool {
        self.table.records().any(|record| record.value() == value && !record.is_expired_for_reads(now))
    }

    pub(crate) fn for_each(&self, now: Millis, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for record in self.table.records().filter(|record| !record.is_expired_for_reads(now)) {
            visit(record.key(), record.value());
        }
    }

    pub(crate) fn fetch(
        &self,
        cursor: Cursor,
        at_least: usize,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Option<Cursor> {
        let count = std::cell::Cell::new(0usize);
        let visit_live = |record: &Record| {
            if !record.is_expired_for_reads(now) {
                count.set(count.get() + 1);
                visit(record.key(), record.value());
            }
        };
        let position = self.table.walk(u64::from(cursor.0) << 32, visit_live, || count.get() >= at_least)?;
        // The ends of ranges are multiples of 2^38, because at most 26 bits select a segment.
        Some(Cursor((position >> 32) as u32))
    }

    pub(crate) fn lock_state(&self, key: &[u8], now: Millis) -> Option<LockState> {
        self.locks.state(key, now)
    }

    pub(crate) fn statistics(&self) -> MapStatistics {
        MapStatistics {
            entries: self.table.len(),
            record_bytes: self.record_bytes,
            bytes_owned: 0,
            locked_keys: self.locks.len(),
            index_bytes: self.derived.as_ref().map_or(0, |derived| derived.index_bytes()),
            column_bytes: self.derived.as_ref().map_or(0, |derived| derived.column_bytes()),
            ..self.counters
        }
    }

    /// Whether the map is in its initial state, except for the number of reads, which found
    /// nothing.
    pub(crate) fn is_as_new(&self) -> bool {
        let counted = MapStatistics { gets: 0, ..self.counters };
        self.table.len() == 0
            && self.log.sequence == 0
            && self.schedule.is_as_new()
            && self.locks.is_as_new()
            && self.claims.is_empty()
            && self.log.journal.as_ref().is_none_or(|journal| journal.newest_sequence() < 0)
            && self.export.is_none()
            && counted == MapStatistics::default()
    }

    /// The bytes that the map owns in addition to its fixed size.
    pub(crate) fn bytes(&self) -> usize {
        let journal_bytes = self.log.journal.as_ref().map_or(0, Journal::bytes);
        let derived_bytes = self.derived.as_ref().map_or(0, |derived| derived.bytes());
        self.record_bytes
            + self.table.bytes()
            + self.schedule.bytes()
            + self.locks.bytes()
            + self.claims.bytes()
            + journal_bytes
            + derived_bytes
            + self.export.as_ref().map_or(0, |export| export.bytes())
    }

    /// The earliest time at which [`Map::expire`] may find something to free.
    pub(crate) fn next_expiry(&self) -> Option<Millis> {
        let lease = self.locks.first_lease().map(|(lease_until, _)| *lease_until);
        let journal = self.log.journal.as_ref().and_then(Journal::first_deadline);
        [self.schedule.first(), lease, journal].into_iter().flatten().min()
    }

    /// The place of the entry of a key, if it has not expired. Frees an expired entry.
    #[inline]
    pub(crate) fn find_live(&mut self, cx: &mut Context<'_>, hash: u64, key: &[u8]) -> Option<RecordPlace> {
        let place = self.table.find(hash, key)?;
        if self.table.at(place)?.is_expired(cx.now) {
            self.take(cx, hash, place, EventKind::Expired);
            return None;
        }
        Some(place)
    }

    /// Removes an entry and announces it.
    pub(crate) fn take(
        &mut self,
        cx: &mut Context<'_>,
        hash: u64,
        place: RecordPlace,
        kind: EventKind,
    ) -> Option<Record> {
        self.keep_for_export(hash, place);
        let record = self.table.remove(place)?;
        if self.table.len() == 0 {
            self.reads_ahead = false;
        }
        self.record_bytes -= record.allocated_bytes();
        if let (Some(derived), Some(slot)) = (&mut self.derived, record.slot()) {
            derived.remove(slot, record.key(), record.value());
        }
        if let Some(lifetime) = record.lifetime() {
            self.schedule.remove(&lifetime);
        }
        match kind {
            EventKind::Expired => self.counters.expirations += 1,
            EventKind::Evicted => self.counters.evictions += 1,
            _ => self.counters.last_update_ms = cx.now.0,
        }
        self.log.announce(cx, kind, record.key(), None, Some(record.value()));
        Some(record)
    }
}
