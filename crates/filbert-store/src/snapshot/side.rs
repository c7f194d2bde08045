//! What a map sets aside for the snapshot that is being made: small things as they were at the barrier, and the old state
//! of what changes ahead of the walk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::claims::Claim;
use crate::journal::{Journal, JournalEvent};
use crate::locks::{Lock, Unlocked};
use crate::map::Map;
use crate::record::Record;
use crate::table::Place;

/// What there was of a key at the barrier.
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

/// Bytes of an item on the side beside the record or the key: those of the tree and the list.
const KEPT_BYTES: usize = 80;
/// Hashes on the side that the walk looks at together.
const SIDE_AT_ONCE: usize = 64;

/// A map on its way into a snapshot.
pub(crate) struct MapExport {
    /// The map's item, as it was.
    pub(super) head: Vec<u8>,
    pub(super) locks: VecDeque<(Arc<[u8]>, Lock)>,
    pub(super) unlocked: VecDeque<Unlocked>,
    pub(super) claims: VecDeque<Claim>,
    /// Where the walk is: what has a lower hash is written. `None` = all is.
    position: Option<u64>,
    /// By hash.
    side: BTreeMap<u64, Vec<Kept>>,
    side_bytes: usize,
    fixed_bytes: usize,
    /// The journal, if the map has given it up since.
    journal: Option<Journal>,
    /// Records written.
    pub(super) records: u64,
}

impl MapExport {
    /// Sets a barrier: what the map is now will be written.
    pub(super) fn begin(map: &mut Map, head: Vec<u8>) -> MapExport {
        if let Some(journal) = &mut map.log.journal {
            journal.begin_export();
        }
        let locks: VecDeque<_> = map.locks.all().map(|(key, lock)| (Arc::clone(key), *lock)).collect();
        let unlocked: VecDeque<_> = map.locks.unlocked().copied().collect();
        let claims: VecDeque<_> = map.claims.all().iter().cloned().collect();
        let fixed_bytes = head.len()
            + locks.len() * size_of::<(Arc<[u8]>, Lock)>()
            + unlocked.len() * size_of::<Unlocked>()
            + claims.len() * size_of::<Claim>();
        let (side, side_bytes) = (BTreeMap::new(), 0);
        let position = Some(0);
        MapExport { head, locks, unlocked, claims, position, side, side_bytes, fixed_bytes, journal: None, records: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.fixed_bytes + self.side_bytes + self.journal.as_ref().map_or(0, Journal::bytes)
    }

    /// Whether the walk has still to come by a key of which nothing is kept.
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

    /// Goes on to a position: what is kept below it is written.
    fn advance(&mut self, position: Option<u64>) {
        self.position = position;
        let ahead = position.map_or_else(BTreeMap::new, |position| self.side.split_off(&position));
        let passed = std::mem::replace(&mut self.side, ahead);
        self.side_bytes -= passed.values().flatten().map(Kept::bytes).sum::<usize>();
    }
}

impl Map {
    /// Visits records as they were at the barrier, in order of hash, from where the walk is until `visit` says that it is
    /// enough; whether all have been visited.
    pub(super) fn walk_for_export(&mut self, visit: &mut dyn FnMut(&Record) -> bool) -> bool {
        let Map { export: Some(export), table, .. } = self else { return true };
        while let Some(position) = export.position {
            let range = table.range_at(position);
            // A table that was emptied is one range, and what it had is on the side.
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

    /// The journal as the snapshot has to have it.
    pub(super) fn journal_for_export(&mut self) -> Option<&mut Journal> {
        let left = self.export.as_mut().and_then(|export| export.journal.as_mut());
        left.or(self.log.journal.as_mut())
    }

    /// Keeps a record that is about to change.
    #[inline]
    pub(crate) fn keep_for_export(&mut self, hash: u64, place: Place) {
        if self.export.is_some() {
            self.keep_record(hash, place);
        }
    }

    #[cold]
    fn keep_record(&mut self, hash: u64, place: Place) {
        let (Some(export), Some(record)) = (&mut self.export, self.table.at(place)) else { return };
        // Refused are only lengths that no record can have.
        if export.needs(hash, record.key())
            && let Ok(copy) = record.with_slot(None)
        {
            export.keep(hash, Kept::Record(copy));
        }
    }

    /// Notes that there is no entry of a key which is about to get one.
    #[inline]
    pub(crate) fn note_absence_for_export(&mut self, hash: u64, key: &[u8]) {
        if let Some(export) = &mut self.export
            && export.needs(hash, key)
        {
            export.keep(hash, Kept::Absent(key.into()));
        }
    }

    /// Leaves records to the snapshot that were taken out together.
    pub(crate) fn leave_all_for_export(&mut self, records: impl Iterator<Item = Record>) {
        let Some(export) = &mut self.export else { return };
        for record in records {
            let hash = self.table.hash(record.key());
            if export.needs(hash, record.key()) {
                export.keep(hash, Kept::Record(record));
            }
        }
    }

    /// Leaves the journal to the snapshot if the map is about to have none.
    pub(crate) fn leave_journal_for_export(&mut self) {
        if let Some(export) = &mut self.export
            && export.journal.is_none()
            && self.log.journal.as_ref().is_some_and(Journal::is_exported)
        {
            export.journal = self.log.journal.take();
        }
    }
}

/// A journal on its way into a snapshot.
#[derive(Debug)]
pub(crate) struct JournalExport {
    /// The events still to be written.
    pub(crate) next: i64,
    pub(crate) end: i64,
    /// Those among them that the journal has given up.
    pub(crate) side: VecDeque<JournalEvent>,
}
