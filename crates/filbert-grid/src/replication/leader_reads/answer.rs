//! The leader's side of reads of other members.

use filbert_data::{Blob, PartitionId};
use filbert_store::{Cursor, entry_order};

use super::messages::{Content, EntryPage, Request};
use super::{EntrySelection, IndexSelection, PAGE_BYTES};
use crate::errors::GridError;
use crate::grid::Grid;
use crate::layouts::IndexInfo;
use crate::map::Map;

/// The maximum size of a range of entries on a page: far below the longest message between members.
const RANGE_BYTES_MAX: usize = 4 << 20;
/// The maximum number of entries between two checks of a page's size.
const ENTRIES_AT_ONCE: usize = 1_024;

impl Grid {
    /// Answers a read of another member ([`Replicator::read`](super::super::Replicator::read)).
    ///
    /// # Errors
    /// This member does not lead the partitions, or the request cannot be decoded.
    pub fn answer_read(&self, request: &[u8]) -> Result<Vec<u8>, GridError> {
        let request = Request::read(request).map_err(|error| GridError::IllegalArgument(error.to_string()))?;
        let mut page = EntryPage::empty(entry_order(self.shared.hash_seed));
        let Some(core) = self.shared.map_by_id(request.map) else {
            // The reader may not know of it yet: without entries, its result would be incomplete.
            page.content = Content::Dropped;
            return Ok(page.write());
        };
        let map = Map { core, shared: self.shared.clone() };
        match &*request.selection {
            EntrySelection::Keys(keys) => {
                let partitions: Vec<PartitionId> = keys.iter().map(|key| map.partition_of(key)).collect();
                map.answering_these(&partitions, || read_keys(&map, keys, request.cursor, &mut page))?;
            }
            _ if request.cursor != Cursor::START && request.order != page.order => page.content = Content::Moved,
            _ => map.answering_these(&request.partitions, || read_partitions(&map, &request, &mut page))?,
        }
        if request.metadata {
            page = page.with_metadata(&|key| map.metadata(key));
        }
        Ok(page.write())
    }
}

/// Reads the entries of keys. The cursor is the number of the next key.
fn read_keys(map: &Map, keys: &[Blob], from: Cursor, page: &mut EntryPage) {
    for (index, key) in (0..).zip(keys).skip(from.0 as usize) {
        if page.is_full() {
            page.cursor = Cursor(index);
            return;
        }
        map.entry_view(map.partition_of(key), key, |view| {
            if let Some(view) = view {
                page.push(view.key, view.value);
            }
        });
    }
}

fn read_partitions(map: &Map, request: &Request, page: &mut EntryPage) {
    let mut cursor = request.cursor;
    for &partition in &request.partitions {
        if page.is_full() {
            return;
        }
        let is_read = match &*request.selection {
            EntrySelection::Count => page.count_more(map.size_of(&[partition])),
            EntrySelection::CountLocked => page.count_more(map.locked_keys_of(partition)),
            EntrySelection::Index(index) if cursor == Cursor::START => read_by_index(map, partition, index, page),
            _ => false,
        };
        if !is_read && !read_from(map, partition, cursor, page) {
            return;
        }
        page.complete += 1;
        cursor = Cursor::START;
        if page.content == Content::Keys {
            return;
        }
    }
}

/// Reads a partition from a place on, until the page is full. Returns whether the partition is
/// complete; otherwise the page has the place of the rest.
fn read_from(map: &Map, partition: PartitionId, mut cursor: Cursor, page: &mut EntryPage) -> bool {
    page.by_index = false;
    loop {
        if page.is_full() || page.content == Content::Keys {
            page.cursor = cursor;
            return false;
        }
        match read_range(map, partition, cursor, page) {
            Some(Some(next)) => cursor = next,
            Some(None) => return true,
            None => {
                page.cursor = cursor;
                return false;
            }
        }
    }
}

/// Reads the next range of a partition. Returns the place of the range after it; `None` if the page
/// has no room for it. A range that is too large for any page comes with its keys alone.
fn read_range(map: &Map, partition: PartitionId, from: Cursor, page: &mut EntryPage) -> Option<Option<Cursor>> {
    for at_least in [room(page), 1] {
        let before = page.mark();
        let mut is_too_large = false;
        let next = map.fetch(partition, from, at_least, &mut |key, value| {
            is_too_large |= page.bytes_since(before) + key.len() + value.len() > RANGE_BYTES_MAX;
            if !is_too_large {
                page.push(key, value);
            }
        });
        if !is_too_large {
            return Some(next);
        }
        page.cut_to(before);
    }
    if page.has_entries() {
        return None;
    }
    page.content = Content::Keys;
    Some(map.fetch(partition, from, 1, &mut |key, _| page.push(key, &[])))
}

/// The number of entries to read before the next check of the page's size: as many as fit if they
/// are as long as the ones before.
fn room(page: &EntryPage) -> usize {
    let left = PAGE_BYTES.saturating_sub(page.bytes());
    page.mean_bytes().map_or(1, |mean| (left / mean.max(1)).clamp(1, ENTRIES_AT_ONCE))
}

/// Reads the entries that an index finds in a partition. Returns `false` and reads nothing if there
/// is no such index, or if it finds more than a page.
fn read_by_index(map: &Map, partition: PartitionId, wanted: &IndexSelection, page: &mut EntryPage) -> bool {
    let layout = map.layout();
    let is_wanted = |index: &&IndexInfo| {
        index.ready
            && index.kind == wanted.kind
            && index.fields.len() == wanted.fields.len()
            && index
                .fields
                .iter()
                .zip(&*wanted.fields)
                .enumerate()
                .all(|(at, (field, (path, kinds)))| field == path && index.seen.of(at).are_within(*kinds))
    };
    let Some(index) = layout.indexes.iter().find(is_wanted) else { return false };
    let before = page.mark();
    let by_index = map.probe(partition, index.id, &wanted.probe, &mut |key, value| {
        page.push(key, value);
        page.bytes_since(before) <= PAGE_BYTES
    });
    let fits = by_index && page.bytes_since(before) <= PAGE_BYTES;
    if !fits {
        page.cut_to(before);
    }
    fits
}
