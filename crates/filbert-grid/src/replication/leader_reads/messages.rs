//! The request of a read and the page that answers it, and their encoding.
//!
//! The types of fields are those of a log ([`Encoder`](filbert_store::Encoder)): little-endian
//! numbers, *flag* of 1 byte, and *bytes* with their length as *u32*. A list begins with its length
//! as *u32*. Both messages begin with their version, *u8*.
//!
//! A request:
//!
//! | field | content |
//! |---|---|
//! | map | *u32* |
//! | partitions | a list of *u32*; empty for keys |
//! | cursor | *u32*, the place in the first partition, or the number of the next key |
//! | order | *u64*, the order of entries that the cursor is of; any at the beginning of a partition |
//! | selection | *u8*: 0 all, 1 their number, 2 keys, 3 an index, 4 the number of locked keys; 128 more = with metadata |
//! | keys | of selection 2: a list of *bytes* |
//! | index | of selection 3: the kind, *u8*; the fields and the probe |
//! | fields | a list: the path, *bytes*, and the kinds of values, *u32* |
//! | probe | *u8*: 0 equal, 1 in, 2 range, 3 all; its keys, *bytes*, its bounds, and *flag* if it descends |
//! | bound | *u8*: 0 none, 1 included, 2 excluded; its key, *bytes* |
//!
//! A page:
//!
//! | field | content |
//! |---|---|
//! | content | *u8*: 0 entries, 1 keys, 2 moved, 3 dropped |
//! | by index | *flag* |
//! | count | *u64* |
//! | complete | *u32* |
//! | cursor | *u32* |
//! | order | *u64*, the order of entries at the leader |
//! | entries | key and value, *bytes* each, to the end; with metadata, a value begins with them, as in a command |

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use filbert_data::{Blob, FieldPath, Kinds, PartitionId};
use filbert_store::{CodecError, Cursor, IndexKind, MapId, Metadata, Probe, Reader, append_metadata, read_metadata};

use super::{EntrySelection, IndexSelection, PAGE_BYTES};

/// The version of requests and pages.
const VERSION: u8 = 1;
/// Added to the number of a selection: the entries come with their metadata.
const WITH_METADATA: u8 = 128;

/// Visits the key, the metadata and the value of an entry.
pub(crate) type RecordVisitor<'v> = dyn FnMut(&[u8], Metadata, &[u8]) + 'v;

/// A request for a page.
pub(super) struct Request {
    pub(super) map: MapId,
    pub(super) partitions: Vec<PartitionId>,
    pub(super) cursor: Cursor,
    pub(super) order: u64,
    pub(super) selection: Arc<EntrySelection>,
    /// Whether entries come with their metadata.
    pub(super) metadata: bool,
}

impl Request {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_u32(&mut out, self.map.0 as usize);
        put_u32(&mut out, self.partitions.len());
        self.partitions.iter().for_each(|partition| put_u32(&mut out, partition.0 as usize));
        put_u32(&mut out, self.cursor.0 as usize);
        out.extend_from_slice(&self.order.to_le_bytes());
        let number = match &*self.selection {
            EntrySelection::All => 0,
            EntrySelection::Count => 1,
            EntrySelection::Keys(_) => 2,
            EntrySelection::Index(_) => 3,
            EntrySelection::CountLocked => 4,
        };
        out.push(if self.metadata { number | WITH_METADATA } else { number });
        match &*self.selection {
            EntrySelection::All | EntrySelection::Count | EntrySelection::CountLocked => {}
            EntrySelection::Keys(keys) => put_list(&mut out, keys),
            EntrySelection::Index(index) => {
                out.push(match index.kind {
                    IndexKind::Sorted => 0,
                    IndexKind::Hash => 1,
                    IndexKind::Bitmap => 2,
                });
                put_u32(&mut out, index.fields.len());
                for (path, kinds) in &*index.fields {
                    put_bytes(&mut out, path.to_string().as_bytes());
                    put_u32(&mut out, kinds.bits() as usize);
                }
                put_probe(&mut out, &index.probe);
            }
        }
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Request, CodecError> {
        let mut reader = Reader::new(bytes, 0);
        check_version(&mut reader)?;
        let map = MapId(reader.u32("map")?);
        let partitions = list(&mut reader, |reader| reader.u32("partition").map(PartitionId))?;
        let cursor = Cursor(reader.u32("cursor")?);
        let order = reader.u64("order")?;
        let number = reader.u8("selection")?;
        let metadata = number >= WITH_METADATA;
        let selection = match number % WITH_METADATA {
            0 => EntrySelection::All,
            1 => EntrySelection::Count,
            2 => EntrySelection::Keys(list(&mut reader, |reader| reader.bytes("key").map(Blob::from))?),
            3 => EntrySelection::Index(index_selection(&mut reader)?),
            4 => EntrySelection::CountLocked,
            other => return Err(reader.unexpected("selection", other.into(), "0 to 4, or 128 more")),
        };
        reader.end("request")?;
        Ok(Request { map, partitions, cursor, order, selection: Arc::new(selection), metadata })
    }
}

fn index_selection(reader: &mut Reader<'_>) -> Result<IndexSelection, CodecError> {
    let kind = match reader.u8("kind of index")? {
        0 => IndexKind::Sorted,
        1 => IndexKind::Hash,
        2 => IndexKind::Bitmap,
        other => return Err(reader.unexpected("kind of index", other.into(), "0 to 2")),
    };
    let fields: Vec<_> = list(reader, |reader| {
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
    Ok(IndexSelection { kind, fields: fields.into(), probe })
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

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Entries,
    /// The keys of entries that are too large for one page: they are requested by key.
    Keys,
    /// None: the cursor is of another order of entries.
    Moved,
    /// None: the leader does not have the map any more.
    Dropped,
}

/// A part of the entries that a [`LeaderRead`](super::LeaderRead) selects.
#[derive(Clone, PartialEq, Eq)]
pub struct EntryPage {
    pub(super) content: Content,
    /// Whether an index has found all entries.
    pub(super) by_index: bool,
    /// The number of entries, of keys, or of counted objects.
    count: u64,
    /// The number of requested partitions that are complete with this page.
    pub(super) complete: usize,
    /// The place from which the next page begins: in the first partition that is not complete, or
    /// the number of a key. At the end of keys, and at the beginning of a partition: the start.
    pub(super) cursor: Cursor,
    /// The order of entries at the leader, see [`filbert_store::entry_order`].
    pub(super) order: u64,
    /// The encoded entries. They were checked when the page was decoded.
    entries: Vec<u8>,
}

/// The state of a page before some entries were added.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    count: u64,
    bytes: usize,
}

impl fmt::Debug for EntryPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntryPage { content, count, complete, cursor, order, .. } = self;
        write!(f, "EntryPage {{ {count} {content:?}, {complete} partitions, {cursor:?} in order {order:x} }}")
    }
}

impl EntryPage {
    pub(super) fn empty(order: u64) -> EntryPage {
        let (content, cursor, entries) = (Content::Entries, Cursor::START, Vec::new());
        EntryPage { content, by_index: true, count: 0, complete: 0, cursor, order, entries }
    }

    /// The number of entries: selected ones, or counted ones.
    #[must_use]
    pub fn count(&self) -> usize {
        match self.content {
            Content::Entries => usize::try_from(self.count).unwrap_or(usize::MAX),
            Content::Keys | Content::Moved | Content::Dropped => 0,
        }
    }

    /// Whether all entries of the page were found by the selected index.
    #[must_use]
    pub fn is_by_index(&self) -> bool {
        self.by_index
    }

    /// The memory of the entries, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.len()
    }

    /// Visits the keys and values of the entries.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if self.content == Content::Entries {
            self.for_each_pair(visit);
        }
    }

    /// Visits the keys, metadata and values of the entries of a page with metadata.
    pub(crate) fn for_each_record(&self, visit: &mut RecordVisitor<'_>) {
        self.for_each(&mut |key, value| {
            let mut reader = Reader::new(value, 0);
            if let Ok(metadata) = read_metadata(&mut reader) {
                visit(key, metadata, value.get(reader.offset()..).unwrap_or_default());
            }
        });
    }

    /// The page with the metadata of its entries. Entries without metadata are gone.
    pub(super) fn with_metadata(&self, metadata_of: &dyn Fn(&[u8]) -> Option<Metadata>) -> EntryPage {
        if self.content != Content::Entries {
            return self.clone();
        }
        let mut page = EntryPage { count: 0, entries: Vec::with_capacity(self.entries.len()), ..self.clone() };
        let mut record = Vec::new();
        self.for_each(&mut |key, value| {
            if let Some(metadata) = metadata_of(key) {
                record.clear();
                append_metadata(&mut record, &metadata);
                record.extend_from_slice(value);
                page.push(key, &record);
            }
        });
        page
    }

    /// The keys, if the page has them alone.
    pub(super) fn keys_alone(&self) -> Option<Vec<Blob>> {
        let mut keys = Vec::new();
        (self.content == Content::Keys).then(|| {
            self.for_each_pair(&mut |key, _| keys.push(Blob::from(key)));
            keys
        })
    }

    fn for_each_pair(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let mut reader = Reader::new(&self.entries, 0);
        while let (Ok(key), Ok(value)) = (reader.bytes("key"), reader.bytes("value")) {
            visit(key, value);
        }
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        put_bytes(&mut self.entries, key);
        put_bytes(&mut self.entries, value);
        self.count += 1;
    }

    /// Counts more entries. Always true.
    pub(super) fn count_more(&mut self, count: usize) -> bool {
        self.count = self.count.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= PAGE_BYTES
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The mean size of the entries; `None` without entries.
    pub(super) fn mean_bytes(&self) -> Option<usize> {
        usize::try_from(self.count).ok().filter(|count| *count > 0).map(|count| self.entries.len() / count)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { count: self.count, bytes: self.entries.len() }
    }

    /// The bytes that were added since.
    pub(super) fn bytes_since(&self, before: Mark) -> usize {
        self.entries.len().saturating_sub(before.bytes)
    }

    /// Removes the entries that were added since.
    pub(super) fn cut_to(&mut self, before: Mark) {
        self.count = before.count;
        self.entries.truncate(before.bytes);
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let content = match self.content {
            Content::Entries => 0,
            Content::Keys => 1,
            Content::Moved => 2,
            Content::Dropped => 3,
        };
        let mut out = Vec::with_capacity(64 + self.entries.len());
        out.extend_from_slice(&[VERSION, content, u8::from(self.by_index)]);
        out.extend_from_slice(&self.count.to_le_bytes());
        put_u32(&mut out, self.complete);
        put_u32(&mut out, self.cursor.0 as usize);
        out.extend_from_slice(&self.order.to_le_bytes());
        out.extend_from_slice(&self.entries);
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Result<EntryPage, CodecError> {
        let mut reader = Reader::new(bytes, 0);
        check_version(&mut reader)?;
        let content = match reader.u8("content")? {
            0 => Content::Entries,
            1 => Content::Keys,
            2 => Content::Moved,
            3 => Content::Dropped,
            other => return Err(reader.unexpected("content", other.into(), "0 to 3")),
        };
        let by_index = reader.flag("by index")?;
        let count = reader.u64("number of entries")?;
        let complete = reader.u32("number of partitions")? as usize;
        let cursor = Cursor(reader.u32("cursor")?);
        let order = reader.u64("order")?;
        let entries = bytes.get(reader.offset()..).unwrap_or_default().to_vec();
        while !reader.is_at_end() {
            reader.bytes("key")?;
            reader.bytes("value")?;
        }
        Ok(EntryPage { content, by_index, count, complete, cursor, order, entries })
    }
}

#[cfg(test)]
mod tests {
    use filbert_store::Expiry;

    use super::*;

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
        let fields = [(FieldPath::parse("a.b[any]").unwrap(), Kinds::NUMBERS), (FieldPath::KEY, Kinds::NONE)];
        let by_index = |probe| {
            EntrySelection::Index(IndexSelection { kind: IndexKind::Hash, fields: fields.clone().into(), probe })
        };
        let keys = EntrySelection::Keys(vec![Blob::from(b"k".as_slice()), Blob::from(b"".as_slice())]);
        [EntrySelection::All, EntrySelection::Count, EntrySelection::CountLocked, keys]
            .into_iter()
            .chain(probes.map(by_index))
            .collect()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for selection in selections() {
            let (map, partitions, cursor) = (MapId(3), vec![PartitionId(1), PartitionId(25)], Cursor(9));
            let (order, metadata) = (7, matches!(selection, EntrySelection::All));
            let written = Request { map, partitions, cursor, order, selection: Arc::new(selection.clone()), metadata };
            let bytes = written.write();
            let request = Request::read(&bytes).unwrap();
            assert_eq!((request.map, request.cursor, request.order), (map, cursor, order));
            assert_eq!(request.metadata, metadata);
            assert_eq!(request.partitions, written.partitions);
            assert_eq!(format!("{:?}", request.selection), format!("{selection:?}"));
            for end in 0..bytes.len() {
                assert!(Request::read(&bytes[..end]).is_err(), "{selection:?} cut at {end}");
            }
        }
    }

    #[test]
    fn a_page_with_metadata_is_read_as_it_was_written() {
        let metadata = Metadata {
            created_ms: 1,
            updated_ms: 2,
            accessed_ms: 3,
            expires_ms: i64::MAX,
            hits: 4,
            version: u64::MAX,
            expiry: Expiry { ttl_ms: -1, max_idle_ms: 5 },
        };
        let mut page = EntryPage::empty(7);
        page.push(b"key", b"value");
        page.push(b"gone", b"value");
        let page = page.with_metadata(&|key| (key == b"key").then_some(metadata));
        let read = EntryPage::read(&page.write()).unwrap();
        let mut records = Vec::new();
        read.for_each_record(&mut |key, metadata, value| records.push((key.to_vec(), metadata, value.to_vec())));
        assert_eq!(records, [(b"key".to_vec(), metadata, b"value".to_vec())]);
        assert_eq!(read.count(), 1);
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        for content in [Content::Entries, Content::Keys, Content::Moved, Content::Dropped] {
            let mut page = EntryPage::empty(7);
            page.content = content;
            page.push(b"key", b"value");
            page.push(b"", b"");
            (page.complete, page.cursor) = (2, Cursor(4));
            let bytes = page.write();
            assert_eq!(EntryPage::read(&bytes).as_ref(), Ok(&page));
            let mut entries = Vec::new();
            page.for_each_pair(&mut |key, value| entries.push((key.to_vec(), value.to_vec())));
            assert_eq!(entries, [(b"key".to_vec(), b"value".to_vec()), (Vec::new(), Vec::new())]);
            // Cut within an entry, or before the first one.
            for end in (0..bytes.len()).filter(|end| !matches!(bytes.len() - end, 8 | 24)) {
                assert!(EntryPage::read(&bytes[..end]).is_err(), "cut at {end}");
            }
        }
    }
}
