//! Imports a partition from a snapshot, page by page. Arbitrary pages cause neither panics nor
//! allocations of claimed sizes. The import checks everything on which a partition relies.

use super::items;
use super::page::{self, FRAME_BYTES};
use crate::claims::Claim;
use crate::codec::{CodecError, Reader};
use crate::log::LayoutSource;
use crate::map::{Head, Map};
use crate::record::Record;
use crate::share::Share;
use crate::{MapId, Millis, Partition, PartitionSettings, StoreError};

/// The maximum of counters in a snapshot. Counters only grow, so they must have room to grow.
const COUNTED_MAX: u64 = 1 << 62;

/// The reason why a page of a snapshot, or the whole snapshot, cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// Bytes that are not a page or not an item. If the frame of the page could not be read, the
    /// right page may still be passed. Otherwise the import has failed.
    #[error("page of a snapshot: {0}")]
    Unreadable(#[from] CodecError),
    /// The page has changed since it was written. The right page may still be passed.
    #[error("page {page} of a snapshot has the checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The number of the page.
        page: u64,
        /// The checksum of its bytes.
        found: u32,
        /// The checksum in its frame.
        expected: u32,
    },
    /// Another page was expected. The right page may still be passed.
    #[error("page {found} of a snapshot came, expected page {expected}")]
    OutOfOrder {
        /// The number of the page.
        found: u64,
        /// The number of the expected page.
        expected: u64,
    },
    /// The snapshot belongs to another partition. The import has failed.
    #[error("a snapshot of partition {found} came, expected one of partition {expected}")]
    OtherPartition {
        /// The partition of the snapshot.
        found: u32,
        /// The partition of the import.
        expected: u32,
    },
    /// The items are inconsistent. The import has failed.
    #[error("page {page} of a snapshot at byte {offset}: {what}")]
    Inconsistent {
        /// The number of the page.
        page: u64,
        /// The beginning of the item, in bytes from the beginning of the page.
        offset: usize,
        /// The inconsistency, and the expected state.
        what: &'static str,
    },
    /// An invalid record. The import has failed.
    #[error("page {page} of a snapshot at byte {offset}: {error}")]
    Record {
        /// The number of the page.
        page: u64,
        /// The beginning of the item, in bytes from the beginning of the page.
        offset: usize,
        /// The error of the record.
        error: StoreError,
    },
    /// The last page is missing.
    #[error("the snapshot is not complete, expected page {next_page}")]
    Incomplete {
        /// The number of the expected page.
        next_page: u64,
    },
    /// A previous page could not be imported.
    #[error("the import has failed before, expected a new one")]
    Failed,
    /// The last page was already imported.
    #[error("the snapshot is complete, expected no more pages")]
    Complete,
}

enum State {
    /// Before the first item.
    Begun,
    /// Between maps.
    Maps,
    /// Within the last map.
    Map,
    Complete,
    Failed,
}

/// The import of a partition. The partition is not accessible before [`Import::finish`].
pub struct Import {
    partition: Partition,
    state: State,
    next_page: u64,
    maps_left: u32,
    /// The expected events of the last map's journal: the sequence of the next one, and the end.
    events: (i64, i64),
}

/// The reason why an item cannot be imported. The caller adds the page and the offset.
enum ItemError {
    Unreadable(CodecError),
    OtherPartition(u32),
    Inconsistent(&'static str),
    Record(StoreError),
}

impl From<CodecError> for ItemError {
    fn from(error: CodecError) -> Self {
        ItemError::Unreadable(error)
    }
}

impl From<StoreError> for ItemError {
    fn from(error: StoreError) -> Self {
        ItemError::Record(error)
    }
}

fn check(fits: bool, what: &'static str) -> Result<(), ItemError> {
    if fits { Ok(()) } else { Err(ItemError::Inconsistent(what)) }
}

impl Import {
    /// Begins the import of a partition with these settings.
    #[must_use]
    pub fn new(settings: PartitionSettings) -> Import {
        let partition = Partition::new(settings);
        Import { partition, state: State::Begun, next_page: 0, maps_left: 0, events: (0, 0) }
    }

    /// The number of the next expected page.
    #[must_use]
    pub fn next_page(&self) -> u64 {
        self.next_page
    }

    /// Whether the last page was imported.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// The number of bytes of the partition so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.partition.bytes
    }

    /// Imports the next page.
    ///
    /// # Errors
    /// See [`ImportError`]: each variant states whether the import can continue.
    pub fn page(&mut self, page: &[u8]) -> Result<(), ImportError> {
        match self.state {
            State::Failed => return Err(ImportError::Failed),
            State::Complete => return Err(ImportError::Complete),
            _ => {}
        }
        let page = page::read(page)?;
        if page.number != self.next_page {
            return Err(ImportError::OutOfOrder { found: page.number, expected: self.next_page });
        }
        let mut reader = Reader::new(page.items, FRAME_BYTES);
        while !reader.is_at_end() {
            let offset = reader.offset();
            if let Err(wrong) = self.item(&mut reader) {
                self.state = State::Failed;
                return Err(match wrong {
                    ItemError::Unreadable(error) => error.into(),
                    ItemError::OtherPartition(found) => {
                        ImportError::OtherPartition { found, expected: self.partition.settings.id.0 }
                    }
                    ItemError::Inconsistent(what) => ImportError::Inconsistent { page: page.number, offset, what },
                    ItemError::Record(error) => ImportError::Record { page: page.number, offset, error },
                });
            }
        }
        if page.is_last != self.is_complete() {
            self.state = State::Failed;
            let what = "the last page must end the snapshot, and no other page may";
            return Err(ImportError::Inconsistent { page: page.number, offset: reader.offset(), what });
        }
        self.next_page += 1;
        Ok(())
    }

    /// Returns the partition, with this member's layouts of the numbers in its log. Takes time for
    /// every entry of maps with a layout.
    ///
    /// # Errors
    /// A page is missing, or the import has failed.
    pub fn finish(self, layouts: &dyn LayoutSource) -> Result<Partition, ImportError> {
        match self.state {
            State::Complete => {}
            State::Failed => return Err(ImportError::Failed),
            _ => return Err(ImportError::Incomplete { next_page: self.next_page }),
        }
        let mut partition = self.partition;
        let number = |share: &Share| match share {
            Share::Held { map, .. } => map.layout,
            Share::Declared { declaration, .. } => declaration.layout_number,
        };
        let named: Vec<(MapId, Option<u64>)> = partition.maps.iter().map(|share| (share.id(), number(share))).collect();
        for (id, layout) in named.into_iter().filter(|(_, layout)| layout.is_some()) {
            partition.follow_layout(id, layout, layouts);
        }
        Ok(partition)
    }

    fn item(&mut self, reader: &mut Reader<'_>) -> Result<(), ItemError> {
        let tag = reader.u8("the kind of an item")?;
        match (&self.state, tag) {
            (State::Begun, items::PARTITION) => self.begin(reader),
            (State::Maps, items::MAP) => self.begin_map(reader),
            (State::Maps, items::END) => {
                check(self.maps_left == 0, "the snapshot ends, expected another map")?;
                self.state = State::Complete;
                Ok(())
            }
            (State::Map, items::LOCK..=items::END_OF_MAP) => {
                let Some(map) = self.partition.maps.last_mut().and_then(Share::map_mut) else { return Ok(()) };
                let before = map.bytes();
                let ended = map_item(map, &mut self.events, reader, tag)?;
                self.partition.bytes = self.partition.bytes + map.bytes() - before;
                if ended {
                    self.partition.declare_if_as_new(self.partition.maps.len() - 1);
                    self.state = State::Maps;
                }
                Ok(())
            }
            (State::Begun, _) => Err(reader.unexpected("an item", u64::from(tag), "1, the partition").into()),
            (State::Maps, _) => Err(reader.unexpected("an item", u64::from(tag), "2, a map, or 9, the end").into()),
            _ => Err(reader.unexpected("an item", u64::from(tag), "3 to 8, of a map").into()),
        }
    }

    fn begin(&mut self, reader: &mut Reader<'_>) -> Result<(), ItemError> {
        let found = reader.u32("a partition")?;
        self.partition.time = reader.millis("a partition's time")?;
        self.maps_left = reader.u32("a number of maps")?;
        if found != self.partition.settings.id.0 {
            return Err(ItemError::OtherPartition(found));
        }
        self.state = State::Maps;
        Ok(())
    }

    fn begin_map(&mut self, reader: &mut Reader<'_>) -> Result<(), ItemError> {
        let Head { map: id, settings, sequence, next_number, layout, journal } = items::read_head(reader)?;
        check(self.maps_left > 0, "a map too many")?;
        check(self.partition.maps.last().is_none_or(|last| last.id() < id), "maps out of order")?;
        check(sequence <= COUNTED_MAX && next_number <= COUNTED_MAX, "a count beyond 2^62")?;
        check(journal.is_some() == settings.journal.is_some(), "a journal against the map's settings")?;
        let mut map = Map::new(id, settings, self.partition.settings.hash_seed);
        map.log.sequence = sequence;
        map.schedule.number_from(next_number);
        map.layout = layout;
        self.events = (0, 0);
        if let (Some(journal), Some((next, count))) = (&mut map.log.journal, journal) {
            check((0..=COUNTED_MAX as i64).contains(&next), "a journal's sequence that is negative or beyond 2^62")?;
            check(count <= journal.capacity() as u64, "a journal with more events than it may keep")?;
            let first = i64::try_from(count).ok().and_then(|count| next.checked_sub(count)).filter(|first| *first >= 0);
            let Some(first) = first else {
                return Err(ItemError::Inconsistent("a journal with more events than it counted"));
            };
            journal.restore_from(first);
            self.events = (first, next);
        }
        self.maps_left -= 1;
        let share = Share::Held { id, map: Box::new(map) };
        self.partition.bytes += share.bytes();
        self.partition.maps.push(share);
        self.state = State::Map;
        Ok(())
    }
}

/// Imports an item of a map. Returns whether it was the end of the map.
fn map_item(map: &mut Map, events: &mut (i64, i64), reader: &mut Reader<'_>, tag: u8) -> Result<bool, ItemError> {
    match tag {
        items::LOCK => {
            let (key, lock) = items::read_lock(reader)?;
            crate::record::check_lengths(key, &[])?;
            check(map.locks.restore(key, lock), "a second lock of a key")?;
        }
        items::UNLOCKED => map.locks.restore_unlocked(items::read_unlocked(reader)?),
        items::CLAIM => {
            let claim: Claim = items::read_claim(reader)?;
            map.claims.restore(claim);
        }
        items::RECORD => restore_record(map, items::read_record(reader)?)?,
        items::EVENT => {
            let event = items::read_event(reader)?;
            check(events.0 < events.1, "an event too many")?;
            check(event.sequence == events.0, "an event out of order")?;
            events.0 += 1;
            if let Some(journal) = &mut map.log.journal {
                journal.restore(event);
            }
        }
        _ => {
            let records = reader.u64("a map's number of records")?;
            check(records == map.table.len() as u64, "another number of records than the map had")?;
            check(events.0 == events.1, "the map ends, expected another event of its journal")?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn restore_record(map: &mut Map, item: items::RecordItem<'_>) -> Result<(), ItemError> {
    let items::RecordItem { key, value, usage, lifetime } = item;
    let hash = map.table.hash(key);
    check(map.table.find(hash, key).is_none(), "a second record of a key")?;
    if let Some(lifetime) = &lifetime {
        let was_given = lifetime.scheduled == Millis::MAX || lifetime.number < map.schedule.next_number();
        check(was_given, "a number in the schedule that was never given out")?;
        check(!map.schedule.has(lifetime), "a second record in one place of the schedule")?;
    }
    let record = Record::new(key, value, usage, lifetime.as_ref(), None)?;
    if let Some(lifetime) = &lifetime {
        map.schedule.restore(hash, lifetime);
    }
    map.record_bytes += record.allocated_bytes();
    map.table.insert(hash, record);
    Ok(())
}
