//! An index of one map in one partition: keys made of fields, and the slots of the entries that have them.
//!
//! ```text
//! entry --> keys (order-preserving bytes) --> hash table or tree --> postings (one slot | list | bitmap)
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

/// A key's bytes: those of numbers, dates and short texts lie in the table itself.
type IndexKey = SmallVec<[u8; 16]>;

/// What is known of an index, in one partition or summed over several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Entries, each counted once for every key that it has; expired ones not yet freed included.
    pub entries: usize,
    /// Different keys. Summed over partitions it is too high, as each counts its own.
    pub distinct: usize,
    /// Entries whose first field is null.
    pub nulls: usize,
    /// The least key whose first field is not null, of sorted indexes.
    pub min: Option<Vec<u8>>,
    /// The greatest key whose first field is not null, of sorted indexes.
    pub max: Option<Vec<u8>>,
    /// Entries with a field that could not be read, which are not among the others: every probe of entries finds them, and no
    /// probe of keys.
    pub unread: usize,
    /// Bytes that it takes.
    pub bytes: usize,
}

impl IndexStatistics {
    /// Adds another partition's figures to these.
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

/// Bytes of an item of a tree, with the slack of its nodes (filled to about 7 of 11).
const TREE_ITEM_BYTES: usize = size_of::<(IndexKey, Postings)>() * 11 / 7;

/// One index of one map in one partition.
pub(crate) struct Index {
    layout: IndexLayout,
    entries: Entries,
    entry_count: usize,
    null_count: usize,
    /// Bytes of keys and postings that lie elsewhere.
    heap_bytes: usize,
    /// The summary over all partitions, and the number of this one in it.
    signature: Option<(Arc<Signature>, PartitionId)>,
    /// Entries with a field that could not be read: nobody knows their keys, so every probe finds them.
    unread: RoaringBitmap,
    /// Keys that the summary has not counted yet.
    uncounted: usize,
}

/// Keys that are counted together in a summary, which other partitions count in, too.
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

    /// The same index as another layout numbers its fields.
    pub(crate) fn with_layout(self, layout: IndexLayout) -> Index {
        Index { layout, ..self }
    }

    /// Puts an entry under each of its keys, or, if it has a field that could not be read, apart.
    pub(crate) fn insert_entry(&mut self, keys: &mut EntryKeys, slot: u32) {
        if keys.lack(&self.layout.fields) {
            if let Some((signature, partition)) = &self.signature {
                signature.insert_unread(*partition);
            }
            self.unread.insert(slot);
            return;
        }
        // The fields are set aside, as the rest of the index changes meanwhile.
        let fields = std::mem::take(&mut self.layout.fields);
        for (position, field) in fields.iter().enumerate() {
            self.layout.seen.note(position, keys.kinds(*field));
        }
        keys.for_each(&fields, &mut |key| self.insert(key, slot));
        self.layout.fields = fields;
    }

    /// Takes an entry from under each of its keys.
    pub(crate) fn remove_entry(&mut self, keys: &mut EntryKeys, slot: u32) {
        if self.unread.remove(slot) {
            return;
        }
        let fields = std::mem::take(&mut self.layout.fields);
        let (mut asked, mut removed) = (BTreeSet::new(), !keys.lack(&fields));
        let several = keys.have_several(&fields);
        keys.for_each(&fields, &mut |key| {
            // The same item may stand in an array twice.
            if !several || asked.insert(key.to_vec()) {
                removed &= self.remove(key, slot);
            }
        });
        self.layout.fields = fields;
        if !removed {
            self.purge(slot);
        }
    }

    /// Takes an entry out wherever it is: it reads otherwise than when it came, as it does when the schema of its value
    /// was announced only after it was put.
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

    /// Puts an entry under a key; one that is there already changes nothing.
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

    /// Takes an entry from under a key; whether it was there.
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

    /// Takes part in another summary, which is told of all keys that are there.
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
                // A table is filled to 7/8, and has a byte beside each item.
                Entries::Hashed(table) => table.capacity() * 8 / 7 * (size_of::<(IndexKey, Postings)>() + 1),
                Entries::Sorted(tree) => tree.len() * TREE_ITEM_BYTES,
            }
    }

    /// Visits the keys that a probe asks for and their postings, in the probe's order, until `visit` answers `false`; whether it never did.
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
            // Not for hashed indexes; but an answer too many does no harm, and none is missed.
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

    /// The slots that a probe finds, in one set.
    pub(crate) fn slots(&self, probe: &Probe) -> RoaringBitmap {
        let mut slots = RoaringBitmap::new();
        self.probe(probe, &mut |_, postings| {
            postings.add_to(&mut slots);
            true
        });
        slots |= &self.unread;
        slots
    }

    /// The entries that every probe must find, as their keys are not known.
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
