//! The state that a map keeps for the snapshot in progress: copies of locks, claims and other small
//! state at the barrier, and the old state of entries that change ahead of the walk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Map;
use crate::claims::Claim;
use crate::journal::Journal;
use crate::locks::{Lock, Unlocked};
use crate::record::Record;
use crate::table::RecordPlace;
use crate::{MapId, MapSettings};

/// The state of a key at the barrier.
pub(crate) enum Kept {
    Record(Record),
    /// No entry.
    Absent(Box<[u8]>),
}

impl Kept {
    fn key(&self) -> &[u8] {
        match self {
            Kept::Record(record) => record.key(),
            Kept::Absent(key) => key,
        }
    }

    fn bytes(&self) -> usize {
        let own = match self {
            Kept::Record(record) => record.allocated_bytes(),
            Kept::Absent(key) => key.len(),
        };
        own + KEPT_BYTES
    }
}

/// The bytes of an item in `side` in addition to the record or the key: its parts of the tree and
/// the list.
const KEPT_BYTES: usize = 80;
/// The maximum number of hashes in `side` that the walk processes together.
const SIDE_AT_ONCE: usize = 64;

/// The part of a snapshot that describes a map, before its content.
pub(crate) struct Head {
    pub(crate) map: MapId,
    pub(crate) settings: MapSettings,
    pub(crate) sequence: u64,
    pub(crate) next_number: u64,
    pub(crate) layout: Option<u64>,
    /// The sequence of the journal's next event, and the number of its events.
    pub(crate) journal: Option<(i64, u64)>,
}

impl Head {
    /// Describes the current state of a map.
    pub(crate) fn of(id: MapId, map: &Map) -> Head {
        let journal = map.log.journal.as_ref().map(|journal| {
            let next = journal.newest_sequence() + 1;
            (next, (next - journal.oldest_sequence()) as u64)
        });
        let (sequence, next_number) = (map.log.sequence, map.schedule.next_number());
        Head { map: id, settings: map.settings.clone(), sequence, next_number, layout: map.layout, journal }
    }
}

/// The export of a map into a snapshot.
pub(crate) struct MapExport {
    /// The description of the map at the barrier, until it is written.
    pub(crate) head: Option<Head>,
    pub(crate) locks: VecDeque<(Arc<[u8]>, Lock)>,
    pub(crate) unlocked: VecDeque<Unlocked>,
    pub(crate) claims: VecDeque<Claim>,
    /// The position of the walk: smaller hashes are written. `None` = all hashes are written.
    position: Option<u64>,
    /// The old state of changed entries, by hash.
    side: BTreeMap<u64, Vec<Kept>>,
    side_bytes: usize,
    fixed_bytes: usize,
    /// The journal, if the map has given it up since the barrier.
    journal: Option<Journal>,
    /// The number of records written.
    pub(crate) records: u64,
}

impl MapExport {
    /// Sets the barrier: the snapshot will contain the current state of the map.
    fn begin(map: &mut Map, head: Head) -> MapExport {
        if let Some(journal) = &mut map.log.journal {
            journal.begin_export();
        }
        let locks: VecDeque<_> = map.locks.all().map(|(key, lock)| (Arc::clone(key), *lock)).collect();
        let unlocked: VecDeque<_> = map.locks.unlocked().copied().collect();
        let claims: VecDeque<_> = map.claims.all().iter().cloned().collect();
        let fixed_bytes = size_of::<Head>()
            + locks.len() * size_of::<(Arc<[u8]>, Lock)>()
            + unlocked.len() * size_of::<Unlocked>()
            + claims.len() * size_of::<Claim>();
        let (side, side_bytes) = (BTreeMap::new(), 0);
        let (position, head) = (Some(0), Some(head));
        MapExport { head, locks, unlocked, claims, position, side, side_bytes, fixed_bytes, journal: None, records: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.fixed_bytes + self.side_bytes + self.journal.as_ref().map_or(0, Journal::bytes)
    }

    /// Whether the walk has not yet reached a key, and no old state of it is kept.
    fn needs(&self, hash: u64, key: &[u8]) -> bool {
        self.position.is_some_and(|position| hash >= position) && !self.has(hash, key)
    }

    fn has(&self, hash: u64, key: &[u8]) -> bool {
        !self.side.is_empty() && self.side.get(&hash).is_some_and(|kept| kept.iter().any(|kept| kept.key() == key))
    }

    fn keep(&mut self, hash: u64, kept: Kept) {
        self.side_bytes += kept.bytes();
        self.side.entry(hash).or_default().push(kept);
    }

    /// Moves the walk to a position, and drops the old state before it, which is written.
    fn advance(&mut self, position: Option<u64>) {
        self.position = position;
        let ahead = position.map_or_else(BTreeMap::new, |position| self.side.split_off(&position));
        let passed = std::mem::replace(&mut self.side, ahead);
        self.side_bytes -= passed.values().flatten().map(Kept::bytes).sum::<usize>();
    }
}

impl Map {
    /// Sets the barrier: the snapshot will contain the current state of the map.
    pub(crate) fn begin_export(&mut self, id: MapId) {
        let head = Head::of(id, self);
        self.export = Some(Box::new(MapExport::begin(self, head)));
    }

    /// Visits records as they were at the barrier, in the order of hashes, from the position of the
    /// walk until `visit` returns `true`. Returns whether all records have been visited.
    pub(crate) fn walk_for_export(&mut self, visit: &mut dyn FnMut(&Record) -> bool) -> bool {
        let Map { export: Some(export), table, .. } = self else { return true };
        while let Some(position) = export.position {
            let range = table.range_at(position);
            // An emptied table is a single range, and all its old records are in `side`. The limit
            // splits this range.
            let many = export.side.range(position..=range.last).nth(SIDE_AT_ONCE);
            let last = many.map_or(range.last, |(hash, _)| *hash);
            let of_table = table.records_at(position).map(|record| (table.hash(record.key()), record));
            let of_table =
                of_table.filter(|(hash, record)| (position..=last).contains(hash) && !export.has(*hash, record.key()));
            let of_side = export.side.range(position..=last).flat_map(|(hash, kept)| {
                kept.iter().filter_map(|kept| match kept {
                    Kept::Record(record) => Some((*hash, record)),
                    Kept::Absent(_) => None,
                })
            });
            let mut records: Vec<(u64, &Record)> = of_table.chain(of_side).collect();
            records.sort_unstable_by_key(|(hash, _)| *hash);
            let mut count = 0;
            let mut stopped = None;
            for same in records.chunk_by(|a, b| a.0 == b.0) {
                let mut enough = false;
                for (_, record) in same {
                    enough |= visit(record);
                    count += 1;
                }
                if let Some((hash, _)) = same.first().filter(|_| enough) {
                    stopped = Some(hash.checked_add(1));
                    break;
                }
            }
            drop(records);
            export.records += count;
            export.advance(stopped.unwrap_or(last.checked_add(1)));
            if stopped.is_some() {
                return export.position.is_none();
            }
        }
        true
    }

    /// The journal that the snapshot must contain.
    pub(crate) fn journal_for_export(&mut self) -> Option<&mut Journal> {
        let left = self.export.as_mut().and_then(|export| export.journal.as_mut());
        left.or(self.log.journal.as_mut())
    }

    /// Keeps the old state of a record that is about to be changed or removed.
    #[inline]
    pub(crate) fn keep_for_export(&mut self, hash: u64, place: RecordPlace) {
        if self.export.is_some() {
            self.keep_record(hash, place);
        }
    }

    #[cold]
    fn keep_record(&mut self, hash: u64, place: RecordPlace) {
        let (Some(export), Some(record)) = (&mut self.export, self.table.at(place)) else { return };
        // Copying fails only for lengths that no record can have.
        if export.needs(hash, record.key())
            && let Ok(copy) = record.with_slot(None)
        {
            export.keep(hash, Kept::Record(copy));
        }
    }

    /// Notes that a key, which is about to get an entry, has none.
    #[inline]
    pub(crate) fn note_absence_for_export(&mut self, hash: u64, key: &[u8]) {
        if let Some(export) = &mut self.export
            && export.needs(hash, key)
        {
            export.keep(hash, Kept::Absent(key.into()));
        }
    }

    /// Passes records that were removed together to the snapshot.
    pub(crate) fn leave_all_for_export(&mut self, records: impl Iterator<Item = Record>) {
        let Some(export) = &mut self.export else { return };
        for record in records {
            let hash = self.table.hash(record.key());
            if export.needs(hash, record.key()) {
                export.keep(hash, Kept::Record(record));
            }
        }
    }

    /// Passes the journal to the snapshot if the map is about to lose it.
    pub(crate) fn leave_journal_for_export(&mut self) {
        if let Some(export) = &mut self.export
            && export.journal.is_none()
            && self.log.journal.as_ref().is_some_and(Journal::is_exported)
        {
            export.journal = self.log.journal.take();
        }
    }
}
