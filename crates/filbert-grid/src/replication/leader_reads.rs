//! Reads of partitions that this member does not hold: their leader sends the entries, page by
//! page.
//!
//! ```text
//!  here: LeaderRead ── Replicator::read(group, request) ──► leader: Grid::answer_read
//!            ▲                                                   │ under its lease
//!            └────────── EntryPage: entries, and the place ◄─────┘
//!                        from which the next page begins
//! ```
//!
//! A page sees all changes that were acknowledged before it was requested. Pages of one partition
//! are read at different times: an entry that exists during the whole read is read once.
//!
//! A request and a page are encoded as the commands of a log
//! ([`Encoder`](filbert_store::Encoder)): little-endian numbers, and byte sequences with their
//! length as 4 bytes. A request, after the version (1 byte):
//!
//! | field | content |
//! |---|---|
//! | map, group size | *u32* each; the partitions follow, *u32* each |
//! | cursor | *u32*, the place in the first partition, or in the list of keys |
//! | leader | a UUID; nil at the beginning of a partition |
//! | selection | 1 byte: 0 all, 1 their number, 2 keys, 3 index, 4 the number of locked keys |
//! | keys | their number, *u32*; each one as *bytes* |
//! | index | kind, 1 byte; attributes: their number, *u32*, each a path as *bytes* and the kinds of values, *u32*; the probe |
//! | probe | 1 byte: 0 equal, 1 in, 2 range, 3 all; keys, bounds (1 byte: 0 none, 1 included, 2 excluded; *bytes*), descending as *flag* |
//!
//! A page, after the version: moved, *flag*; by index, *flag*; keys alone, *flag*; the number of
//! entries, *u64*; the number of partitions that are complete, *u32*; the cursor, *u32*; the
//! leader's UUID; the entries, keys and values as *bytes*.
//!
//! A partition is read in ranges of hashes, of up to some dozens of entries. If the entries of a
//! range are too large for one page, the page has their keys alone, and the reader requests the
//! values by key.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use filbert_data::{Blob, FieldPath, Kinds, PartitionId};
use filbert_store::{CodecError, Cursor, IndexKind, MapId, Probe, Reader};
use uuid::Uuid;

use crate::cluster::{Done, ReadView};
use crate::errors::GridError;
use crate::grid::Grid;
use crate::groups::{GroupId, SubmitError};
use crate::map::Map;

/// The version of requests and pages.
const VERSION: u8 = 1;
/// The size from which on a page is sent: large enough that a request costs little beside it.
const PAGE_BYTES: usize = 256 << 10;
/// The maximum size of a range of entries on a page: far below the longest message between members.
const RANGE_BYTES_MAX: usize = 4 << 20;
/// The interval between two checks whether a blocking read is still wanted.
const CHECKED_EVERY: Duration = Duration::from_millis(20);
/// The maximum number of entries between two checks of a page's size.
const ENTRIES_AT_ONCE: usize = 1_024;

/// The entries that a read selects.
#[derive(Clone, Debug)]
pub enum EntrySelection {
    /// All entries.
    All,
    /// The number of all entries, without the entries.
    Count,
    /// The number of keys that clients have locked, without the entries.
    CountLocked,
    /// The entries with these keys.
    Keys(Vec<Blob>),
    /// The entries that an index finds, if the leader has it; otherwise all entries.
    Index(IndexSelection),
}

/// The entries that an index finds. Members number their indexes differently, so the index is
/// described.
#[derive(Clone, Debug)]
pub struct IndexSelection {
    /// The kind of the index.
    pub kind: IndexKind,
    /// The indexed fields. For those that the probe uses: the kinds of values for which it finds
    /// all entries. With a value of another kind in the field, the index is not used.
    pub fields: Vec<(FieldPath, Kinds)>,
    /// The keys.
    pub probe: Probe,
}

/// A read of partitions of one group at their leader.
#[derive(Clone, Debug)]
pub struct LeaderRead {
    group: GroupId,
    selection: Arc<EntrySelection>,
    /// The partitions that are not complete, the next one first.
    partitions: Vec<PartitionId>,
    cursor: Cursor,
    /// The leader that has sent a part of the first partition.
    leader: Option<Uuid>,
    /// Keys of which the values are read next, before the partitions.
    keys: Vec<Blob>,
    /// The number of these keys that were read.
    keys_read: Cursor,
}

impl LeaderRead {
    /// The reads of the partitions that a view does not have here, of those that `is_wanted`
    /// accepts: one for each group, or several for many keys.
    pub fn beside(
        map: &Map,
        view: &ReadView,
        selection: &Arc<EntrySelection>,
        is_wanted: &dyn Fn(PartitionId) -> bool,
    ) -> Vec<LeaderRead> {
        let mut reads: Vec<LeaderRead> = Vec::new();
        if view.is_complete() {
            return reads;
        }
        let elsewhere = |partition: &PartitionId| !view.is_here(*partition) && is_wanted(*partition);
        for partition in (0..map.partition_count()).map(PartitionId).filter(elsewhere) {
            let group = map.shared.group_of(partition);
            match reads.iter_mut().find(|read| read.group == group) {
                Some(read) => read.partitions.push(partition),
                None => reads.push(LeaderRead {
                    group,
                    selection: selection.clone(),
                    partitions: vec![partition],
                    cursor: Cursor::START,
                    leader: None,
                    keys: Vec::new(),
                    keys_read: Cursor::START,
                }),
            }
        }
        match &**selection {
            EntrySelection::Keys(keys) => reads.iter().flat_map(|read| read.of_keys(map, keys)).collect(),
            _ => reads,
        }
    }

    /// This read of the keys that are in its partitions, in requests of a limited size.
    fn of_keys(&self, map: &Map, keys: &[Blob]) -> Vec<LeaderRead> {
        let of_read = keys.iter().filter(|key| self.partitions.contains(&map.partition_of(key)));
        let mut parts: Vec<(usize, Vec<Blob>)> = Vec::new();
        for key in of_read {
            match parts.last_mut().filter(|(bytes, _)| *bytes < PAGE_BYTES) {
                Some((bytes, part)) => {
                    *bytes += key.len();
                    part.push(key.clone());
                }
                None => parts.push((key.len(), vec![key.clone()])),
            }
        }
        let of_part = |(_, part)| LeaderRead { selection: Arc::new(EntrySelection::Keys(part)), ..self.clone() };
        parts.into_iter().map(of_part).collect()
    }

    /// Moves behind a page. Returns whether more entries follow.
    ///
    /// # Errors
    /// The partition has another leader, and a part of its entries was read: the read must begin
    /// anew.
    pub fn advance(&mut self, page: &EntryPage) -> Result<bool, GridError> {
        if page.moved {
            let hint = "its leader changed while its entries were read, they can be read again".to_owned();
            return Err(SubmitError::NotLeader { group: self.group, hint }.into());
        }
        if !self.keys.is_empty() {
            self.keys_read = page.cursor;
            if page.complete > 0 {
                self.keys.clear();
            }
            return Ok(!self.keys.is_empty() || !self.partitions.is_empty());
        }
        self.partitions.drain(..page.complete.min(self.partitions.len()));
        self.cursor = page.cursor;
        self.leader = (page.cursor != Cursor::START).then_some(page.leader);
        if page.keys_alone {
            page.for_each_pair(&mut |key, _| self.keys.push(Blob::from(key)));
            self.keys_read = Cursor::START;
        }
        Ok(!self.keys.is_empty() || !self.partitions.is_empty())
    }

    fn write(&self, map: MapId) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_u32(&mut out, map.0 as usize);
        let of_group = [PartitionId(self.group.0)];
        let (partitions, cursor) = match self.keys.is_empty() {
            true => (self.partitions.as_slice(), self.cursor),
            // The number of the first partition of a group is the group's.
            false => (of_group.as_slice(), self.keys_read),
        };
        put_u32(&mut out, partitions.len());
        partitions.iter().for_each(|partition| put_u32(&mut out, partition.0 as usize));
        put_u32(&mut out, cursor.0 as usize);
        out.extend_from_slice(self.leader.unwrap_or_default().as_bytes());
        if !self.keys.is_empty() {
            out.push(2);
            put_list(&mut out, &self.keys);
            return out;
        }
        match &*self.selection {
            EntrySelection::All => out.push(0),
            EntrySelection::Count => out.push(1),
            EntrySelection::CountLocked => out.push(4),
            EntrySelection::Keys(keys) => {
                out.push(2);
                put_list(&mut out, keys);
            }
            EntrySelection::Index(index) => {
                out.push(3);
                out.push(match index.kind {
                    IndexKind::Sorted => 0,
                    IndexKind::Hash => 1,
                    IndexKind::Bitmap => 2,
                });
                put_u32(&mut out, index.fields.len());
                for (path, kinds) in &index.fields {
                    put_bytes(&mut out, path.to_string().as_bytes());
                    put_u32(&mut out, kinds.bits() as usize);
                }
                put_probe(&mut out, &index.probe);
            }
        }
        out
    }
}

/// The decoded request of a [`LeaderRead`].
struct Request {
    map: MapId,
    partitions: Vec<PartitionId>,
    cursor: Cursor,
    leader: Uuid,
    selection: EntrySelection,
}

impl Request {
    fn read(bytes: &[u8]) -> Result<Request, CodecError> {
        let mut reader = Reader::new(bytes, 0);
        check_version(&mut reader)?;
        let map = MapId(reader.u32("map")?);
        let partitions = list(&mut reader, |reader| reader.u32("partition").map(PartitionId))?;
        let cursor = Cursor(reader.u32("cursor")?);
        let leader = reader.uuid("leader")?;
        let selection = match reader.u8("selection")? {
            0 => EntrySelection::All,
            1 => EntrySelection::Count,
            4 => EntrySelection::CountLocked,
            2 => EntrySelection::Keys(list(&mut reader, |reader| reader.bytes("key").map(Blob::from))?),
            3 => EntrySelection::Index(index_selection(&mut reader)?),
            other => return Err(reader.unexpected("selection", other.into(), "0 to 4")),
        };
        reader.end("request")?;
        Ok(Request { map, partitions, cursor, leader, selection })
    }
}

fn index_selection(reader: &mut Reader<'_>) -> Result<IndexSelection, CodecError> {
    let kind = match reader.u8("kind of index")? {
        0 => IndexKind::Sorted,
        1 => IndexKind::Hash,
        2 => IndexKind::Bitmap,
        other => return Err(reader.unexpected("kind of index", other.into(), "0 to 2")),
    };
    let fields = list(reader, |reader| {
        let path = reader.bytes("attribute")?;
        let path = std::str::from_utf8(path).ok().and_then(|path| FieldPath::parse(path).ok());
        let path = path.ok_or_else(|| reader.unexpected("attribute", 0, "a path"))?;
        Ok((path, Kinds::from_bits(reader.u32("kinds")?)))
    })?;
    let probe = match reader.u8("probe")? {
        0 => Probe::Equal(reader.bytes("key")?.to_vec()),
        1 => Probe::In(list(reader, |reader| reader.bytes("key").map(<[u8]>::to_vec))?),
        2 => Probe::Range { from: bound(reader)?, to: bound(reader)?, descending: reader.flag("descending")? },
        3 => Probe::All { descending: reader.flag("descending")? },
        other => return Err(reader.unexpected("probe", other.into(), "0 to 3")),
    };
    Ok(IndexSelection { kind, fields, probe })
}

fn bound(reader: &mut Reader<'_>) -> Result<Bound<Vec<u8>>, CodecError> {
    Ok(match reader.u8("bound")? {
        0 => Bound::Unbounded,
        1 => Bound::Included(reader.bytes("key")?.to_vec()),
        2 => Bound::Excluded(reader.bytes("key")?.to_vec()),
        other => return Err(reader.unexpected("bound", other.into(), "0 to 2")),
    })
}

/// Reads a list with its length. Memory follows the bytes that are there.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, CodecError>,
) -> Result<Vec<T>, CodecError> {
    let count = reader.u32("length")?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Ok(items)
}

fn check_version(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    match reader.u8("version")? {
        VERSION => Ok(()),
        other => Err(reader.unexpected("version", other.into(), "1")),
    }
}

/// Lengths and numbers here are below 4 GiB: the messages between members are.
fn put_u32(out: &mut Vec<u8>, number: usize) {
    debug_assert!(u32::try_from(number).is_ok(), "a message between members is below 4 GiB");
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_list<T: AsRef<[u8]>>(out: &mut Vec<u8>, items: &[T]) {
    put_u32(out, items.len());
    items.iter().for_each(|item| put_bytes(out, item.as_ref()));
}

fn put_probe(out: &mut Vec<u8>, probe: &Probe) {
    let put_bound = |out: &mut Vec<u8>, bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => out.push(0),
        Bound::Included(key) => {
            out.push(1);
            put_bytes(out, key);
        }
        Bound::Excluded(key) => {
            out.push(2);
            put_bytes(out, key);
        }
    };
    match probe {
        Probe::Equal(key) => {
            out.push(0);
            put_bytes(out, key);
        }
        Probe::In(keys) => {
            out.push(1);
            put_list(out, keys);
        }
        Probe::Range { from, to, descending } => {
            out.push(2);
            put_bound(out, from);
            put_bound(out, to);
            out.push(u8::from(*descending));
        }
        Probe::All { descending } => out.extend_from_slice(&[3, u8::from(*descending)]),
    }
}

/// A part of the entries that a [`LeaderRead`] selects.
#[derive(Clone, PartialEq, Eq)]
pub struct EntryPage {
    moved: bool,
    by_index: bool,
    keys_alone: bool,
    count: u64,
    complete: usize,
    cursor: Cursor,
    leader: Uuid,
    /// The encoded entries. They were checked when the page was decoded.
    entries: Vec<u8>,
}

impl fmt::Debug for EntryPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntryPage { count, complete, cursor, leader, .. } = self;
        write!(f, "EntryPage {{ {count} entries, {complete} partitions, {cursor:?} at {leader} }}")
    }
}

impl EntryPage {
    fn empty(leader: Uuid, by_index: bool) -> EntryPage {
        EntryPage {
            moved: false,
            by_index,
            keys_alone: false,
            count: 0,
            complete: 0,
            cursor: Cursor::START,
            leader,
            entries: Vec::new(),
        }
    }

    /// The number of entries: selected ones, or counted ones.
    #[must_use]
    pub fn count(&self) -> usize {
        if self.keys_alone { 0 } else { usize::try_from(self.count).unwrap_or(usize::MAX) }
    }

    /// Whether all entries of the page were found by the selected index.
    #[must_use]
    pub fn is_by_index(&self) -> bool {
        self.by_index
    }

    /// The memory of the page, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.capacity()
    }

    /// Visits the keys and values of the entries.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if !self.keys_alone {
            self.for_each_pair(visit);
        }
    }

    fn for_each_pair(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let mut reader = Reader::new(&self.entries, 0);
        while let (Ok(key), Ok(value)) = (reader.bytes("key"), reader.bytes("value")) {
            visit(key, value);
        }
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        put_bytes(&mut self.entries, key);
        put_bytes(&mut self.entries, value);
        self.count += 1;
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= PAGE_BYTES
    }

    /// The number of entries to read before the next check of the page's size: as many as fit if
    /// they are as long as the ones before.
    fn room(&self) -> usize {
        let left = PAGE_BYTES.saturating_sub(self.entries.len());
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let mean = self.entries.len().div_ceil(count.max(1));
        if count == 0 { 1 } else { (left / mean.max(1)).clamp(1, ENTRIES_AT_ONCE) }
    }

    fn write(&self) -> Vec<u8> {
        let mut out = vec![VERSION, u8::from(self.moved), u8::from(self.by_index), u8::from(self.keys_alone)];
        out.reserve(48 + self.entries.len());
        out.extend_from_slice(&self.count.to_le_bytes());
        put_u32(&mut out, self.complete);
        put_u32(&mut out, self.cursor.0 as usize);
        out.extend_from_slice(self.leader.as_bytes());
        out.extend_from_slice(&self.entries);
        out
    }

    fn read(bytes: &[u8]) -> Result<EntryPage, CodecError> {
        let mut reader = Reader::new(bytes, 0);
        check_version(&mut reader)?;
        let (moved, by_index) = (reader.flag("moved")?, reader.flag("by index")?);
        let keys_alone = reader.flag("keys alone")?;
        let count = reader.u64("number of entries")?;
        let complete = reader.u32("number of partitions")? as usize;
        let cursor = Cursor(reader.u32("cursor")?);
        let leader = reader.uuid("leader")?;
        let entries = bytes.get(reader.offset()..).unwrap_or_default().to_vec();
        while !reader.is_at_end() {
            reader.bytes("key")?;
            reader.bytes("value")?;
        }
        Ok(EntryPage { moved, by_index, keys_alone, count, complete, cursor, leader, entries })
    }
}

impl Map {
    /// Requests the next page of a read from the leader. `done` is called once, on another thread.
    /// The request is repeated while the partitions have no leader.
    pub fn read_at_leader(&self, read: &LeaderRead, done: Done<EntryPage>) {
        let Some(replication) = &self.shared.replication else {
            return done(Err(GridError::Internal("a read at a leader, without a cluster".to_owned())));
        };
        let decoded = |bytes: Vec<u8>| {
            let page = EntryPage::read(&bytes);
            page.map_err(|error| GridError::Internal(format!("a page of entries cannot be decoded: {error}")))
        };
        let done = Box::new(move |answer: Result<Vec<u8>, SubmitError>| {
            done(answer.map_err(GridError::from).and_then(decoded));
        });
        replication.replicator.read(read.group, read.write(self.core.id), done);
    }
}

impl Map {
    /// Reads at leaders and visits the pages, until `visit` returns `false`. Blocks. Must not be
    /// called on a thread for which other threads wait.
    ///
    /// # Errors
    /// No leader was found, a partition was read in part when its leader changed, or `visit` or
    /// `check` has failed. `check` is called often while there is no answer.
    pub fn visit_at_leaders(
        &self,
        reads: Vec<LeaderRead>,
        check: &dyn Fn() -> Result<(), GridError>,
        visit: &mut dyn FnMut(&EntryPage) -> Result<bool, GridError>,
    ) -> Result<(), GridError> {
        for mut read in reads {
            let mut goes_on = true;
            while goes_on {
                let (sender, answer) = mpsc::sync_channel(1);
                // The reader may have gone.
                self.read_at_leader(&read, Box::new(move |page| _ = sender.send(page)));
                let page = loop {
                    match answer.recv_timeout(CHECKED_EVERY) {
                        Ok(page) => break page?,
                        Err(RecvTimeoutError::Timeout) => check()?,
                        Err(RecvTimeoutError::Disconnected) => return Err(GridError::NotActive),
                    }
                };
                goes_on = read.advance(&page)?;
                if !visit(&page)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The value of a key, read at the place that a view says. Does not count as a read of the
    /// entry. May block, see [`Map::visit_at_leaders`].
    ///
    /// # Errors
    /// The leader of the key's partition was not found.
    pub fn value_by(&self, view: &ReadView, key: &[u8]) -> Result<Option<Blob>, GridError> {
        let partition = self.partition_of(key);
        if view.is_here(partition) {
            return Ok(self.entry_view(partition, key, |view| view.map(|view| Blob::from(view.value))));
        }
        let selection = Arc::new(EntrySelection::Keys(vec![Blob::from(key)]));
        let reads = LeaderRead::beside(self, view, &selection, &|of| of == partition);
        let mut value = None;
        self.visit_at_leaders(reads, &|| Ok(()), &mut |page| {
            page.for_each(&mut |_, found| value = Some(Blob::from(found)));
            Ok(true)
        })?;
        Ok(value)
    }
}

impl Grid {
    /// Answers a read of another member ([`Replicator::read`](super::Replicator::read)).
    ///
    /// # Errors
    /// This member does not lead the partitions, or the request cannot be decoded.
    pub fn answer_read(&self, request: &[u8]) -> Result<Vec<u8>, GridError> {
        let request = Request::read(request).map_err(|error| GridError::IllegalArgument(error.to_string()))?;
        let mut page = EntryPage::empty(self.member_uuid(), true);
        let Some(core) = self.shared.map_by_id(request.map) else {
            // The map was dropped. The reader learns of it as well.
            page.complete = request.partitions.len();
            return Ok(page.write());
        };
        let map = Map { core, shared: self.shared.clone() };
        map.answering_these(&request.partitions, || match &request.selection {
            EntrySelection::Keys(keys) => read_keys(&map, keys, &request, &mut page),
            _ if request.cursor != Cursor::START && request.leader != page.leader => page.moved = true,
            _ => read_partitions(&map, &request, &mut page),
        })?;
        Ok(page.write())
    }
}

/// Reads the entries of keys. The cursor is the number of the next key.
fn read_keys(map: &Map, keys: &[Blob], request: &Request, page: &mut EntryPage) {
    let from = request.cursor.0 as usize;
    for (index, key) in keys.iter().enumerate().skip(from) {
        if page.is_full() {
            page.cursor = Cursor(u32::try_from(index).unwrap_or(u32::MAX));
            return;
        }
        map.entry_view(map.partition_of(key), key, |view| {
            if let Some(view) = view {
                page.push(view.key, view.value);
            }
        });
    }
    page.complete = request.partitions.len();
}

fn read_partitions(map: &Map, request: &Request, page: &mut EntryPage) {
    let mut cursor = request.cursor;
    for &partition in &request.partitions {
        if page.is_full() {
            return;
        }
        let is_complete = match &request.selection {
            EntrySelection::Count => {
                page.count += u64::try_from(map.size_of(&[partition])).unwrap_or(u64::MAX);
                true
            }
            EntrySelection::CountLocked => {
                page.count += u64::try_from(map.locked_keys_of(partition)).unwrap_or(u64::MAX);
                true
            }
            EntrySelection::Index(index) if cursor == Cursor::START => read_by_index(map, partition, index, page),
            _ => false,
        };
        if !is_complete {
            page.by_index = false;
            let mut next = Some(cursor);
            while let Some(from) = next {
                if page.is_full() {
                    page.cursor = from;
                    return;
                }
                next = match read_range(map, partition, from, page) {
                    Range::Read(next) => next,
                    Range::KeysAlone(next) => {
                        (page.cursor, page.complete) =
                            (next.unwrap_or_default(), page.complete + usize::from(next.is_none()));
                        return;
                    }
                    Range::OnNextPage => {
                        page.cursor = from;
                        return;
                    }
                };
            }
            cursor = Cursor::START;
        }
        page.complete += 1;
    }
}

/// The outcome of reading the next range of a partition, with the place of the one after it.
enum Range {
    Read(Option<Cursor>),
    /// The page has the keys of the range alone.
    KeysAlone(Option<Cursor>),
    /// The page has no room for it.
    OnNextPage,
}

fn read_range(map: &Map, partition: PartitionId, from: Cursor, page: &mut EntryPage) -> Range {
    for at_least in [page.room(), 1] {
        let mut bytes = 0;
        map.fetch(partition, from, at_least, &mut |key, value| bytes += key.len() + value.len());
        if bytes <= RANGE_BYTES_MAX {
            return Range::Read(map.fetch(partition, from, at_least, &mut |key, value| page.push(key, value)));
        }
    }
    if page.count > 0 {
        return Range::OnNextPage;
    }
    page.keys_alone = true;
    Range::KeysAlone(map.fetch(partition, from, 1, &mut |key, _| page.push(key, &[])))
}

/// Reads the entries that an index finds in a partition. Returns `false` and reads nothing if there
/// is no such index, or if it finds more than a page.
fn read_by_index(map: &Map, partition: PartitionId, wanted: &IndexSelection, page: &mut EntryPage) -> bool {
    let layout = map.layout();
    let is_wanted = |index: &&crate::layouts::IndexInfo| {
        index.ready
            && index.kind == wanted.kind
            && index.fields.len() == wanted.fields.len()
            && index
                .fields
                .iter()
                .zip(&wanted.fields)
                .enumerate()
                .all(|(at, (field, (path, kinds)))| field == path && index.seen.of(at).are_within(*kinds))
    };
    let Some(index) = layout.indexes.iter().find(is_wanted) else { return false };
    let (count, bytes) = (page.count, page.entries.len());
    let by_index = map.probe(partition, index.id, &wanted.probe, &mut |key, value| {
        page.push(key, value);
        page.entries.len() - bytes <= PAGE_BYTES
    });
    let fits = by_index && page.entries.len() - bytes <= PAGE_BYTES;
    if !fits {
        page.count = count;
        page.entries.truncate(bytes);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(selection: EntrySelection) -> LeaderRead {
        LeaderRead {
            group: GroupId(1),
            selection: Arc::new(selection),
            partitions: vec![PartitionId(1), PartitionId(25)],
            cursor: Cursor(9),
            leader: Some(Uuid::from_u128(7)),
            keys: Vec::new(),
            keys_read: Cursor::START,
        }
    }

    /// Every selection, with each kind of probe.
    fn selections() -> Vec<EntrySelection> {
        let key = |text: &str| text.as_bytes().to_vec();
        let probes = [
            Probe::Equal(key("a")),
            Probe::In(vec![key("a"), key("")]),
            Probe::Range { from: Bound::Included(key("a")), to: Bound::Excluded(key("b")), descending: true },
            Probe::Range { from: Bound::Unbounded, to: Bound::Unbounded, descending: false },
            Probe::All { descending: true },
        ];
        let fields = vec![(FieldPath::parse("a.b[any]").unwrap(), Kinds::NUMBERS), (FieldPath::KEY, Kinds::NONE)];
        let by_index =
            |probe| EntrySelection::Index(IndexSelection { kind: IndexKind::Hash, fields: fields.clone(), probe });
        let keys = EntrySelection::Keys(vec![Blob::from(b"k".as_slice()), Blob::from(b"".as_slice())]);
        [EntrySelection::All, EntrySelection::Count, EntrySelection::CountLocked, keys]
            .into_iter()
            .chain(probes.map(by_index))
            .collect()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for selection in selections() {
            let bytes = read(selection.clone()).write(MapId(3));
            let request = Request::read(&bytes).unwrap();
            assert_eq!((request.map, request.cursor, request.leader), (MapId(3), Cursor(9), Uuid::from_u128(7)));
            assert_eq!(request.partitions, [PartitionId(1), PartitionId(25)]);
            assert_eq!(format!("{:?}", request.selection), format!("{selection:?}"));
            for end in 0..bytes.len() {
                assert!(Request::read(&bytes[..end]).is_err(), "{selection:?} cut at {end}");
            }
        }
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let mut page = EntryPage::empty(Uuid::from_u128(7), true);
        page.push(b"key", b"value");
        page.push(b"", b"");
        (page.complete, page.cursor) = (2, Cursor(4));
        let bytes = page.write();
        assert_eq!(EntryPage::read(&bytes).as_ref(), Ok(&page));
        let mut entries = Vec::new();
        page.for_each(&mut |key, value| entries.push((key.to_vec(), value.to_vec())));
        assert_eq!(entries, [(b"key".to_vec(), b"value".to_vec()), (Vec::new(), Vec::new())]);
        // Cut within an entry, or before the first one.
        for end in (0..bytes.len()).filter(|end| !matches!(bytes.len() - end, 8 | 24)) {
            assert!(EntryPage::read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
