//! What a map keeps beside its records: which fields are read of an entry, which indexes and columns are made of them.
//!
//! A [`Layout`] is made by whoever declares indexes and columns, and given to every partition; it never changes. Another
//! one takes its place, and what is the same in both is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use filbert_data::{DataError, FieldReader, FieldType, Kinds, Value};

/// Reads the fields of a layout from an entry.
pub trait EntryReader: Send + Sync {
    /// Visits the fields by their number in the layout, in any order, each at most once. A field that was not visited when
    /// this returns counts as one that cannot be read.
    ///
    /// # Errors
    ///
    /// The bytes are not what they say. The entry is kept all the same.
    fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        visit: &mut dyn FnMut(usize, Value<'a>),
    ) -> Result<(), DataError>;
}

/// An index of a map, the same in all partitions. Never used again for another index of the same map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IndexKind {
    /// By order: equality, ranges, sorted results.
    #[default]
    Sorted,
    /// By equality.
    Hash,
    /// By equality, for few distinct values. All kinds keep what many entries share as bitmaps, so this is the same as
    /// [`IndexKind::Hash`].
    Bitmap,
}

/// One index.
#[derive(Clone, Debug)]
pub struct IndexLayout {
    /// Which one it is.
    pub id: IndexId,
    /// What it is for.
    pub kind: IndexKind,
    /// The numbers of its fields, in order.
    pub fields: Vec<usize>,
    /// What its fields have had in them, in any partition.
    pub seen: Arc<SeenKinds>,
}

impl IndexLayout {
    /// An index that has seen nothing yet.
    #[must_use]
    pub fn new(id: IndexId, kind: IndexKind, fields: Vec<usize>) -> Self {
        let seen = Arc::new(SeenKinds::new(fields.len()));
        IndexLayout { id, kind, fields, seen }
    }
}

/// The kinds of values that each field of an index has ever had: never fewer than there are.
#[derive(Debug)]
pub struct SeenKinds(Box<[AtomicU32]>);

impl SeenKinds {
    /// For an index over so many fields, which have had nothing.
    #[must_use]
    pub fn new(field_count: usize) -> Self {
        SeenKinds((0..field_count).map(|_| AtomicU32::new(Kinds::NONE.bits())).collect())
    }

    /// Notes what a field has. Called under the partition's lock, before the change is acknowledged.
    #[inline]
    pub(crate) fn note(&self, position: usize, kinds: Kinds) {
        if let Some(seen) = self.0.get(position)
            && !kinds.are_within(Kinds::from_bits(seen.load(Ordering::Relaxed)))
        {
            seen.fetch_or(kinds.bits(), Ordering::Release);
        }
    }

    /// What a field, counted by its place in the index, has had.
    #[must_use]
    pub fn of(&self, position: usize) -> Kinds {
        self.0.get(position).map_or(Kinds::NONE, |seen| Kinds::from_bits(seen.load(Ordering::Acquire)))
    }
}

/// A column of a map, the same in all partitions. Never used again for another column of the same map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Which one it is.
    pub id: ColumnId,
    /// The number of its field.
    pub field: usize,
    /// What values become before they are kept; one of those that a column can be made for, see
    /// [`ColumnType::of`](crate::ColumnType::of).
    pub field_type: FieldType,
}

/// What a map keeps beside its records.
pub struct Layout {
    reader: Arc<dyn EntryReader>,
    key_reader: Arc<dyn EntryReader>,
    epoch: u64,
    fields: Vec<Field>,
    indexes: Vec<IndexLayout>,
    columns: Vec<ColumnLayout>,
}

/// What is made of one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    /// Whether each item of an array is indexed, and not the array.
    pub(crate) finds_many: bool,
    pub(crate) is_indexed: bool,
    /// The columns made of it.
    pub(crate) columns: Vec<usize>,
}

impl Layout {
    /// A layout. `finds_many` has an item for each field that `reader` reads: whether its path has an `[any]`, so that
    /// entries are found by each item. `epoch` tells what the reader goes by besides its fields: under another
    /// epoch everything is made anew.
    #[must_use]
    pub fn new(
        reader: Arc<dyn EntryReader>,
        finds_many: &[bool],
        indexes: Vec<IndexLayout>,
        columns: Vec<ColumnLayout>,
        epoch: u64,
    ) -> Layout {
        let field = |(number, finds_many): (usize, &bool)| Field {
            finds_many: *finds_many,
            is_indexed: indexes.iter().any(|index| index.fields.contains(&number)),
            columns: (0..).zip(&columns).filter(|(_, column)| column.field == number).map(|(at, _)| at).collect(),
        };
        let fields = finds_many.iter().enumerate().map(field).collect();
        Layout { key_reader: reader.clone(), reader, epoch, fields, indexes, columns }
    }

    /// The same layout with a reader that reads no more than indexed fields, under the same numbers: it reads the old values
    /// of entries that change.
    #[must_use]
    pub fn with_key_reader(self, key_reader: Arc<dyn EntryReader>) -> Layout {
        Layout { key_reader, ..self }
    }

    /// The indexes.
    #[must_use]
    pub fn indexes(&self) -> &[IndexLayout] {
        &self.indexes
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> &[ColumnLayout] {
        &self.columns
    }

    pub(crate) fn reader(&self) -> &dyn EntryReader {
        &*self.reader
    }

    pub(crate) fn key_reader(&self) -> &dyn EntryReader {
        &*self.key_reader
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }
}

impl EntryReader for FieldReader {
    fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        visit: &mut dyn FnMut(usize, Value<'a>),
    ) -> Result<(), DataError> {
        FieldReader::read(self, key, value, visit)
    }
}
