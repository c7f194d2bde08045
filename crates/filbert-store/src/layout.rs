//! The layout of a map: the fields that are read from an entry, and the indexes and columns built
//! from them.
//!
//! The declarer of indexes and columns creates a [`Layout`] and sets it in every partition. A
//! layout is immutable. When another layout replaces it, indexes and columns that are in both are
//! kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use filbert_data::{DataError, FieldReader, FieldType, Kinds, Value};

/// Reads the fields of a layout from an entry.
pub trait EntryReader: Send + Sync {
    /// Visits the fields by their number in the layout, in any order, each at most once. A field
    /// that is not visited counts as unreadable.
    ///
    /// # Errors
    ///
    /// The bytes are invalid. The entry is kept nevertheless.
    fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        visit: &mut dyn FnMut(usize, Value<'a>),
    ) -> Result<(), DataError>;
}

/// The id of an index of a map, the same in all partitions. It is never reused for another index of
/// the same map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

/// The kind of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IndexKind {
    /// Sorted: equality, ranges, sorted results.
    #[default]
    Sorted,
    /// Hashed: equality only.
    Hash,
    /// Equality only, for few distinct values. All kinds use bitmaps for keys that many entries
    /// share, so this is the same as [`IndexKind::Hash`].
    Bitmap,
}

/// The layout of an index.
#[derive(Clone, Debug)]
pub struct IndexLayout {
    /// The id.
    pub id: IndexId,
    /// The kind.
    pub kind: IndexKind,
    /// The numbers of the fields, in the order of the key.
    pub fields: Vec<usize>,
    /// The kinds of values that the fields have had, in all partitions.
    pub seen: Arc<SeenKinds>,
}

impl IndexLayout {
    /// An index that has had no values.
    #[must_use]
    pub fn new(id: IndexId, kind: IndexKind, fields: Vec<usize>) -> Self {
        let seen = Arc::new(SeenKinds::new(fields.len()));
        IndexLayout { id, kind, fields, seen }
    }
}

/// The kinds of values that each field of an index has ever had: at least the kinds of its current
/// values.
#[derive(Debug)]
pub struct SeenKinds(Box<[AtomicU32]>);

impl SeenKinds {
    /// For an index with `field_count` fields, which have had no values.
    #[must_use]
    pub fn new(field_count: usize) -> Self {
        SeenKinds((0..field_count).map(|_| AtomicU32::new(Kinds::NONE.bits())).collect())
    }

    /// Adds kinds of values to a field. Called under the partition's lock, before the change is
    /// acknowledged.
    #[inline]
    pub(crate) fn note(&self, position: usize, kinds: Kinds) {
        if let Some(seen) = self.0.get(position)
            && !kinds.are_within(Kinds::from_bits(seen.load(Ordering::Relaxed)))
        {
            seen.fetch_or(kinds.bits(), Ordering::Release);
        }
    }

    /// The kinds of values that a field has had. `position` is its position in the index.
    #[must_use]
    pub fn of(&self, position: usize) -> Kinds {
        self.0.get(position).map_or(Kinds::NONE, |seen| Kinds::from_bits(seen.load(Ordering::Acquire)))
    }
}

/// The id of a column of a map, the same in all partitions. It is never reused for another column
/// of the same map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// The layout of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// The id.
    pub id: ColumnId,
    /// The number of the field.
    pub field: usize,
    /// The type to which values are converted. It must be a type that has columns, see
    /// [`ColumnType::of`](crate::ColumnType::of).
    pub field_type: FieldType,
}

/// The indexes and columns of a map, and the readers of their fields.
pub struct Layout {
    reader: Arc<dyn EntryReader>,
    key_reader: Arc<dyn EntryReader>,
    epoch: u64,
    fields: Vec<Field>,
    indexes: Vec<IndexLayout>,
    columns: Vec<ColumnLayout>,
}

/// The use of one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    /// Whether each item of an array is indexed, instead of the array.
    pub(crate) finds_many: bool,
    pub(crate) is_indexed: bool,
    /// The positions of its columns.
    pub(crate) columns: Vec<usize>,
}

impl Layout {
    /// Creates a layout. `finds_many` has an item for each field that `reader` reads: whether its
    /// path contains an `[any]`, so that each item of an array finds the entry. `epoch` identifies
    /// everything else on which the reader depends: another epoch rebuilds all indexes and columns.
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

    /// The same layout with a reader that reads only the indexed fields, under the same numbers. It
    /// reads the old values of entries that change.
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
