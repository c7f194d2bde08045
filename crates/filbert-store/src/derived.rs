//! The indexes and columns of one map in one partition, and how each change of an entry updates
//! them.

use std::sync::Arc;

use filbert_data::Value;

use crate::columns::ColumnSet;
use crate::indexes::{EntryKeys, Index};
use crate::layout::{IndexId, Layout};
use crate::record::Record;
use crate::slots::Slots;

/// The indexes and columns of one map in one partition, and the slots of its entries, which they
/// refer to.
pub(crate) struct Derived {
    layout: Arc<Layout>,
    slots: Slots,
    indexes: Vec<Index>,
    columns: ColumnSet,
    hash_seed: u64,
    /// Buffers in which the keys of an entry are built.
    keys: EntryKeys,
    old_keys: EntryKeys,
}

impl Derived {
    /// Indexes and columns without entries.
    pub(crate) fn new(layout: Arc<Layout>, hash_seed: u64) -> Self {
        let indexes = layout.indexes().iter().map(|index| Index::new(index.clone(), hash_seed)).collect();
        let columns = ColumnSet::new(layout.columns());
        let (slots, keys, old_keys) = (Slots::default(), EntryKeys::default(), EntryKeys::default());
        Derived { layout, slots, indexes, columns, hash_seed, keys, old_keys }
    }

    /// Changes the layout: drops the indexes and columns that it does not contain, builds new ones
    /// from `records`, and keeps the others.
    pub(crate) fn change_layout<'r>(&mut self, layout: Arc<Layout>, records: impl Iterator<Item = &'r Record>) {
        let rebuilds_all = layout.epoch() != self.layout.epoch();
        let mut kept = if rebuilds_all { Vec::new() } else { std::mem::take(&mut self.indexes) };
        let mut is_new = Vec::new();
        self.indexes = (layout.indexes().iter())
            .map(|wanted| {
                let same = |index: &Index| index.layout().id == wanted.id && index.layout().kind == wanted.kind;
                let found = kept.iter().position(same).map(|at| kept.swap_remove(at));
                is_new.push(found.is_none());
                match found {
                    Some(index) => index.with_layout(wanted.clone()),
                    None => Index::new(wanted.clone(), self.hash_seed),
                }
            })
            .collect();
        // Columns are few and filled together, so any difference rebuilds all of them.
        let columns_are_new = rebuilds_all || !self.columns.are(layout.columns());
        if columns_are_new {
            self.columns = ColumnSet::new(layout.columns());
        }
        self.layout = layout;
        if !columns_are_new && !is_new.contains(&true) {
            return;
        }
        for record in records {
            let Some(slot) = record.slot() else { continue };
            self.read(slot, record.key(), record.value(), columns_are_new);
            let Derived { indexes, keys, .. } = self;
            for (index, _) in indexes.iter_mut().zip(&is_new).filter(|(_, is_new)| **is_new) {
                index.insert_entry(keys, slot);
            }
        }
    }

    /// Allocates a slot for a new entry, and adds the entry.
    pub(crate) fn add(&mut self, hash: u64, key: &[u8], value: &[u8]) -> u32 {
        let slot = self.slots.take(hash);
        self.add_at(slot, key, value);
        slot
    }

    /// Adds an entry that already has a slot.
    fn add_at(&mut self, slot: u32, key: &[u8], value: &[u8]) {
        self.read(slot, key, value, true);
        let Derived { indexes, keys, .. } = self;
        for index in indexes {
            index.insert_entry(keys, slot);
        }
    }

    /// Updates an entry whose value changes.
    pub(crate) fn replace(&mut self, slot: u32, key: &[u8], old: &[u8], new: &[u8]) {
        if old == new {
            return;
        }
        if !self.indexes.is_empty() {
            self.read_keys(key, old);
            std::mem::swap(&mut self.keys, &mut self.old_keys);
        }
        self.read(slot, key, new, true);
        let Derived { indexes, keys, old_keys, .. } = self;
        for index in indexes {
            if !keys.are_same(old_keys, &index.layout().fields) {
                index.remove_entry(old_keys, slot);
                index.insert_entry(keys, slot);
            }
        }
    }

    /// Removes an entry and frees its slot.
    pub(crate) fn remove(&mut self, slot: u32, key: &[u8], value: &[u8]) {
        if !self.indexes.is_empty() {
            self.read_keys(key, value);
            let Derived { indexes, keys, .. } = self;
            for index in indexes {
                index.remove_entry(keys, slot);
            }
        }
        self.columns.remove(slot);
        self.slots.free(slot);
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.slots = Slots::default();
        self.indexes.iter_mut().for_each(Index::clear);
        self.columns.clear();
    }

    /// Reads the fields of an entry: the keys of indexed fields and, if `into_columns`, all
    /// columns.
    fn read(&mut self, slot: u32, key: &[u8], value: &[u8], into_columns: bool) {
        let Derived { layout, columns, keys, .. } = self;
        let layout = &**layout;
        let fields = layout.fields();
        keys.clear(fields.len());
        let mut row = into_columns.then(|| columns.begin(slot)).flatten();
        let read = layout.reader().read(key, value, &mut |number: usize, value: Value<'_>| {
            let Some(field) = fields.get(number) else { return };
            if field.is_indexed {
                keys.set(number, &value, field.finds_many);
            }
            if let Some(row) = &mut row {
                match field.columns.as_slice() {
                    [] => {}
                    [only] => row.set(*only, value),
                    several => several.iter().for_each(|column| row.set(*column, value.clone())),
                }
            }
        });
        // Errors are ignored: an index keeps entries with unread fields separately, and a column
        // marks such fields as broken.
        let _ = read;
        if let Some(row) = row {
            row.finish();
        }
    }

    /// Reads only the keys of an entry.
    fn read_keys(&mut self, key: &[u8], value: &[u8]) {
        let Derived { layout, keys, .. } = self;
        let fields = layout.fields();
        keys.clear(fields.len());
        let read = layout.key_reader().read(key, value, &mut |number: usize, value: Value<'_>| {
            if let Some(field) = fields.get(number).filter(|field| field.is_indexed) {
                keys.set(number, &value, field.finds_many);
            }
        });
        // Errors are ignored, as in `read`.
        let _ = read;
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(crate) fn index(&self, id: IndexId) -> Option<&Index> {
        self.indexes.iter().find(|index| index.layout().id == id)
    }

    pub(crate) fn index_mut(&mut self, id: IndexId) -> Option<&mut Index> {
        self.indexes.iter_mut().find(|index| index.layout().id == id)
    }

    /// Whether an index may find an entry by several keys.
    pub(crate) fn finds_many(&self, index: &Index) -> bool {
        let fields = self.layout.fields();
        index.layout().fields.iter().any(|field| fields.get(*field).is_some_and(|field| field.finds_many))
    }

    pub(crate) fn columns(&self) -> &ColumnSet {
        &self.columns
    }

    /// The bytes of the indexes, and of the slots, which they need.
    pub(crate) fn index_bytes(&self) -> usize {
        self.slots.bytes() + self.indexes.iter().map(Index::bytes).sum::<usize>()
    }

    /// The bytes of indexes, columns and slots.
    pub(crate) fn bytes(&self) -> usize {
        let own = size_of::<Derived>() + self.indexes.capacity() * size_of::<Index>();
        own + self.index_bytes() + self.column_bytes()
    }

    pub(crate) fn column_bytes(&self) -> usize {
        self.columns.bytes()
    }
}
