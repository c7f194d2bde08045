//! An index of one map in one partition: keys built from fields, and for each key the slots of the
//! entries that have it.
//!
//! ```text
//! entry --> keys (ordered bytes) --> hash table or tree --> postings (one slot, list or bitmap)
//! ```

mod keys;
mod postings;
mod probe;
mod signature;

use std::collections::btree_map::Range;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use filbert_data::PartitionId;
use foldhash::quality::FixedState;
use roaring::RoaringBitmap;
use smallvec::SmallVec;

use crate::layout::{IndexKind, IndexLayout};

pub(crate) use keys::EntryKeys;
use postings::Postings;
pub use probe::Probe;
pub use signature::{PartitionSet, SIGNATURE_PARTITIONS_MAX, Signature};

/// The bytes of a key. Keys of numbers, dates and short texts are stored in the table itself.
type IndexKey = SmallVec<[u8; 16]>;

/// The statistics of an index, in one partition or summed over several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// The number of entries, counted once for each of their keys, including expired entries that
    /// are not yet freed.
    pub entries: usize,
    /// The number of distinct keys. The sum over partitions is too high if partitions have equal
    /// keys.
    pub distinct: usize,
    /// The number of entries whose first field is null.
    pub nulls: usize,
    /// The least key whose first field is not null, of sorted indexes.
    pub min: Option<Vec<u8>>,
    /// The greatest key whose first field is not null, of sorted indexes.
    pub max: Option<Vec<u8>>,
    /// The number of entries with an unreadable field. They are not included in the other numbers.
    /// Every probe of entries finds them; probes of keys do not.
    pub unread: usize,
    /// The bytes of the index.
    pub bytes: usize,
}

impl IndexStatistics {
    /// Adds the statistics of another partition to these.
    pub fn add(&mut self, other: IndexStatistics) {
        self.entries += other.entries;
        self.distinct += other.distinct;
        self.nulls += other.nulls;
        self.unread += other.unread;
        self.bytes += other.bytes;
        self.min = match (self.min.take(), other.min) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.max = self.max.take().max(other.max);
    }
}

enum Entries {
    Hashed(HashMap<IndexKey, Postings, FixedState>),
    Sorted(BTreeMap<IndexKey, Postings>),
}

/// The bytes of an item of a tree, including the unused space in its nodes (filled to about 7 of
/// 11).
const TREE_ITEM_BYTES: usize = size_of::<(IndexKey, Postings)>() * 11 / 7;

/// One index of one map in one partition.
pub(crate) struct Index {
    layout: IndexLayout,
    entries: Entries,
    entry_count: usize,
    null_count: usize,
    /// The bytes of keys and postings outside of `entries`.
    heap_bytes: usize,
    /// The summary over all partitions, and the id of this partition in it.
    signature: Option<(Arc<Signature>, PartitionId)>,
    /// The entries with an unreadable field. Their keys are not known, so every probe finds them.
    unread: RoaringBitmap,
    /// The number of keys that the summary has not yet counted.
    uncounted: usize,
}

/// The number of new keys that the summary counts together. All partitions update the same counter,
/// so it must not be updated for each key.
const COUNTED_TOGETHER: usize = 16;

impl Index {
    pub(crate) fn new(layout: IndexLayout, hash_seed: u64) -> Self {
        let entries = match layout.kind {
            IndexKind::Sorted => Entries::Sorted(BTreeMap::new()),
            IndexKind::Hash | IndexKind::Bitmap => {
                Entries::Hashed(HashMap::with_hasher(FixedState::with_seed(hash_seed)))
            }
        };
        Index {
            layout,
            entries,
            entry_count: 0,
            null_count: 0,
            heap_bytes: 0,
            signature: None,
            unread: RoaringBitmap::new(),
            uncounted: 0,
        }
    }

    pub(crate) fn layout(&self) -> &IndexLayout {
        &self.layout
    }

    /// The same index with the field numbers of another layout.
    pub(crate) fn with_layout(self, layout: IndexLayout) -> Index {
        Index { layout, ..self }
    }

    /// Adds an entry under each of its keys, or to `unread` if it has an unreadable field.
    pub(crate) fn insert_entry(&mut self, keys: &mut EntryKeys, slot: u32) {
        if keys.lack(&self.layout.fields) {
            if let Some((signature, partition)) = &self.signature {
                signature.insert_unread(*partition);
            }
            self.unread.insert(slot);
            return;
        }
        // The fields are moved out, because the rest of the index changes in the meantime.
        let fields = std::mem::take(&mut self.layout.fields);
        for (position, field) in fields.iter().enumerate() {
            self.layout.seen.note(position, keys.kinds(*field));
        }
        keys.for_each(&fields, &mut |key| self.insert(key, slot));
        self.layout.fields = fields;
    }

    /// Removes an entry from each of its keys.
    pub(crate) fn remove_entry(&mut self, keys: &mut EntryKeys, slot: u32) {
        if self.unread.remove(slot) {
            return;
        }
        let fields = std::mem::take(&mut self.layout.fields);
        let (mut seen, mut removed) = (BTreeSet::new(), !keys.lack(&fields));
        let several = keys.have_several(&fields);
        keys.for_each(&fields, &mut |key| {
            // An array may contain the same item twice.
            if !several || seen.insert(key.to_vec()) {
                removed &= self.remove(key, slot);
            }
        });
        self.layout.fields = fields;
        if !removed {
            self.purge(slot);
        }
    }

    /// Removes an entry from all keys that have it. The entry reads differently than when it was
    /// added, for example because the schema of its value was announced after it was put.
    #[cold]
    fn purge(&mut self, slot: u32) {
        let mut keys: Vec<IndexKey> = Vec::new();
        let mut note = |key: &IndexKey, postings: &Postings| {
            if postings.contains(slot) {
                keys.push(key.clone());
            }
        };
        match &self.entries {
            Entries::Hashed(table) => table.iter().for_each(|(key, postings)| note(key, postings)),
            Entries::Sorted(tree) => tree.iter().for_each(|(key, postings)| note(key, postings)),
        }
        for key in keys {
            self.remove(&key, slot);
        }
    }

    /// Adds an entry under a key. Does nothing if it is already there.
    pub(crate) fn insert(&mut self, key: &[u8], slot: u32) {
        let existing = match &mut self.entries {
            Entries::Hashed(table) => table.get_mut(key),
            Entries::Sorted(tree) => tree.get_mut(key),
        };
        let added = match existing {
            Some(postings) => {
                let before = postings.heap_bytes();
                let added = postings.insert(slot);
                self.heap_bytes = self.heap_bytes + postings.heap_bytes() - before;
                added
            }
            None => {
                if let Some((signature, partition)) = &self.signature {
                    signature.insert(*partition, key);
                    self.uncounted += 1;
                    if self.uncounted >= COUNTED_TOGETHER {
                        signature.count(std::mem::take(&mut self.uncounted));
                    }
                }
                let (key, postings) = (IndexKey::from_slice(key), Postings::One(slot));
                self.heap_bytes += heap_bytes(&key);
                match &mut self.entries {
                    Entries::Hashed(table) => table.insert(key, postings),
                    Entries::Sorted(tree) => tree.insert(key, postings),
                };
                true
            }
        };
        self.entry_count += usize::from(added);
        self.null_count += usize::from(added && is_null(key));
    }

    /// Removes an entry from a key. Returns whether it was there.
    pub(crate) fn remove(&mut self, key: &[u8], slot: u32) -> bool {
        let existing = match &mut self.entries {
            Entries::Hashed(table) => table.get_mut(key),
            Entries::Sorted(tree) => tree.get_mut(key),
        };
        let Some(postings) = existing else { return false };
        let before = postings.heap_bytes();
        if !postings.remove(slot) {
            return false;
        }
        self.heap_bytes = self.heap_bytes + postings.heap_bytes() - before;
        self.entry_count -= 1;
        self.null_count -= usize::from(is_null(key));
        if matches!(postings, Postings::One(only) if *only == slot) {
            self.forget(key);
        }
        true
    }

    fn forget(&mut self, key: &[u8]) {
        let removed = match &mut self.entries {
            Entries::Hashed(table) => {
                let removed = table.remove_entry(key);
                if table.len() * 4 < table.capacity() {
                    table.shrink_to(table.len() * 2);
                }
                removed
            }
            Entries::Sorted(tree) => tree.remove_entry(key),
        };
        if let Some((key, _)) = removed {
            self.heap_bytes -= heap_bytes(&key);
        }
    }

    /// Replaces the summary, and adds all existing keys to it; `None` removes it.
    pub(crate) fn set_signature(&mut self, signature: Option<Arc<Signature>>, partition: PartitionId) {
        if let Some(signature) = &signature {
            match &self.entries {
                Entries::Hashed(table) => table.keys().for_each(|key| signature.insert(partition, key)),
                Entries::Sorted(tree) => tree.keys().for_each(|key| signature.insert(partition, key)),
            }
            signature.count(self.distinct());
            if !self.unread.is_empty() {
                signature.insert_unread(partition);
            }
        }
        self.signature = signature.map(|signature| (signature, partition));
        self.uncounted = 0;
    }

    fn distinct(&self) -> usize {
        match &self.entries {
            Entries::Hashed(table) => table.len(),
            Entries::Sorted(tree) => tree.len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match &mut self.entries {
            Entries::Hashed(table) => {
                table.clear();
                table.shrink_to(0);
            }
            Entries::Sorted(tree) => *tree = BTreeMap::new(),
        }
        (self.entry_count, self.null_count, self.heap_bytes) = (0, 0, 0);
        self.unread = RoaringBitmap::new();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap_bytes
            + if self.unread.is_empty() { 0 } else { self.unread.serialized_size() }
            + match &self.entries {
                // A table is filled to 7/8, and has one byte in addition to each item.
                Entries::Hashed(table) => table.capacity() * 8 / 7 * (size_of::<(IndexKey, Postings)>() + 1),
                Entries::Sorted(tree) => tree.len() * TREE_ITEM_BYTES,
            }
    }

    /// Visits the keys that a probe finds and their postings, in the order of the probe, until
    /// `visit` returns `false`. Returns whether it never did.
    pub(crate) fn probe(&self, probe: &Probe, visit: &mut dyn FnMut(&[u8], &Postings) -> bool) -> bool {
        match (probe, &self.entries) {
            (Probe::Equal(key), _) => self.get(key).is_none_or(|postings| visit(key, postings)),
            (Probe::In(keys), _) => keys.iter().all(|key| self.get(key).is_none_or(|postings| visit(key, postings))),
            (Probe::Range { from, to, descending }, Entries::Sorted(tree)) => {
                let mut own = (None, None);
                let Some(bounds) = probe::bounds(from, to, &mut own) else { return true };
                walk(tree.range::<[u8], _>(bounds), *descending, visit)
            }
            (Probe::All { descending }, Entries::Sorted(tree)) => {
                walk(tree.range::<[u8], _>((Bound::Unbounded, Bound::Unbounded)), *descending, visit)
            }
            // Hashed indexes do not support these probes. They find all entries: additional
            // candidates are harmless, and no entry is missing.
            (Probe::Range { .. } | Probe::All { .. }, Entries::Hashed(table)) => {
                table.iter().all(|(key, postings)| visit(key, postings))
            }
        }
    }

    fn get(&self, key: &[u8]) -> Option<&Postings> {
        match &self.entries {
            Entries::Hashed(table) => table.get(key),
            Entries::Sorted(tree) => tree.get(key),
        }
    }

    /// The slots that a probe finds, as one set.
    pub(crate) fn slots(&self, probe: &Probe) -> RoaringBitmap {
        let mut slots = RoaringBitmap::new();
        self.probe(probe, &mut |_, postings| {
            postings.add_to(&mut slots);
            true
        });
        slots |= &self.unread;
        slots
    }

    /// The entries that every probe must find, because their keys are not known.
    pub(crate) fn unread(&self) -> &RoaringBitmap {
        &self.unread
    }

    pub(crate) fn statistics(&self) -> IndexStatistics {
        let (distinct, min, max) = match &self.entries {
            Entries::Hashed(table) => (table.len(), None, None),
            Entries::Sorted(tree) => {
                let not_null = (Bound::Included(&[1u8][..]), Bound::Unbounded);
                let mut keys = tree.range::<[u8], _>(not_null).map(|(key, _)| key.to_vec());
                let min = keys.next();
                let max = keys.next_back().or_else(|| min.clone());
                (tree.len(), min, max)
            }
        };
        let (entries, nulls) = (self.entry_count, self.null_count);
        let unread = usize::try_from(self.unread.len()).unwrap_or(usize::MAX);
        IndexStatistics { entries, distinct, nulls, min, max, unread, bytes: self.bytes() }
    }
}

fn walk(
    items: Range<'_, IndexKey, Postings>,
    descending: bool,
    visit: &mut dyn FnMut(&[u8], &Postings) -> bool,
) -> bool {
    let mut items = items;
    if descending {
        items.rev().all(|(key, postings)| visit(key, postings))
    } else {
        items.all(|(key, postings)| visit(key, postings))
    }
}

fn is_null(key: &[u8]) -> bool {
    key.first() == Some(&0)
}

fn heap_bytes(key: &IndexKey) -> usize {
    if key.spilled() { key.capacity() } else { 0 }
}

#[cfg(test)]
mod tests;
