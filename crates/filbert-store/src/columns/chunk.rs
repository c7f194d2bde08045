//! A chunk: the columns of up to 4,096 slots, in buffers from which Arrow's arrays can be created
//! without copying.

use super::bits;
use super::data::{Data, Stored};
use super::texts;
use crate::ColumnType;
use crate::layout::ColumnLayout;

use filbert_data::{FieldType, Value};

/// The maximum number of slots of a chunk. Copying a chunk that a scan still reads takes some tens
/// of microseconds.
pub(crate) const CHUNK_SLOTS: usize = 4_096;
/// The minimum number of slots of a chunk.
const CHUNK_SLOTS_MIN: usize = 64;

/// The columns of a range of slots. Immutable while it is shared.
#[derive(Clone, Default)]
pub struct Chunk {
    /// The number of slots up to the last one that was ever used.
    slots: usize,
    /// The number of slots for which there is room, a multiple of 64.
    capacity: usize,
    live: Vec<u64>,
    live_count: usize,
    columns: Vec<Column>,
}

#[derive(Clone)]
struct Column {
    field_type: FieldType,
    data: Data,
    valid: Vec<u64>,
    /// The number of live slots without a value, including broken ones.
    null_count: usize,
    /// Empty as long as no value is broken.
    broken: Vec<u64>,
    broken_count: usize,
}

/// The values of a column, one for each slot of the chunk. The values of free slots and of slots
/// without a value are undefined.
#[derive(Clone, Copy, Debug)]
pub enum ColumnView<'c> {
    /// Bits, the least significant bit of each word first.
    Boolean(&'c [u64]),
    /// 8-bit integers.
    Int8(&'c [i8]),
    /// 16-bit integers.
    Int16(&'c [i16]),
    /// 32-bit integers.
    Int32(&'c [i32]),
    /// 64-bit integers.
    Int64(&'c [i64]),
    /// 32-bit floating-point numbers.
    Float32(&'c [f32]),
    /// 64-bit floating-point numbers.
    Float64(&'c [f64]),
    /// Integers in units of `10^-scale`.
    Decimal(&'c [i128]),
    /// Days since 1970-01-01.
    Date(&'c [i32]),
    /// Nanoseconds since midnight.
    Time(&'c [i64]),
    /// Microseconds since 1970-01-01, without a time zone.
    Timestamp(&'c [i64]),
    /// Microseconds since 1970-01-01 in UTC.
    TimestampTz(&'c [i64]),
    /// Arrow's string views, and the single buffer of long texts.
    Text(&'c [u128], &'c [u8]),
}

/// The bounds of the values of a column. No value is outside of them, but they may be wider than
/// the current values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnRange {
    /// The bounds of integers, days, nanoseconds or microseconds, in the unit of the column.
    Whole(i64, i64),
    /// The bounds of floating-point numbers.
    Float(f64, f64),
    /// The bounds of decimals, as integers in units of `10^-scale`.
    Decimal(i128, i128),
}

impl Chunk {
    pub(crate) fn new(columns: &[ColumnLayout]) -> Chunk {
        let column = |layout: &ColumnLayout| Column {
            field_type: layout.field_type.clone(),
            // Grids reject types without columns. A column of such a type would have no values.
            data: Data::new(ColumnType::of(&layout.field_type).unwrap_or(ColumnType::Boolean)),
            valid: Vec::new(),
            null_count: 0,
            broken: Vec::new(),
            broken_count: 0,
        };
        Chunk { columns: columns.iter().map(column).collect(), ..Chunk::default() }
    }

    /// The number of slots in the chunk, including free ones: the length of every column.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The slots with an entry: one bit for each slot, the least significant bit of each word
    /// first.
    #[must_use]
    pub fn live(&self) -> &[u64] {
        self.live.get(..bits::words(self.slots)).unwrap_or_default()
    }

    /// The number of slots with an entry.
    #[must_use]
    #[inline]
    pub fn live_count(&self) -> usize {
        self.live_count
    }

    /// The values of the column at a position.
    #[must_use]
    pub fn column(&self, position: usize) -> Option<ColumnView<'_>> {
        let slots = self.slots;
        fn cut<T>(values: &[T], slots: usize) -> &[T] {
            values.get(..slots).unwrap_or_default()
        }
        Some(match &self.columns.get(position)?.data {
            Data::Boolean(bits) => ColumnView::Boolean(cut(bits, bits::words(slots))),
            Data::Int8(numbers) => ColumnView::Int8(cut(&numbers.values, slots)),
            Data::Int16(numbers) => ColumnView::Int16(cut(&numbers.values, slots)),
            Data::Int32(numbers) => ColumnView::Int32(cut(&numbers.values, slots)),
            Data::Int64(numbers) => ColumnView::Int64(cut(&numbers.values, slots)),
            Data::Float32(numbers) => ColumnView::Float32(cut(&numbers.values, slots)),
            Data::Float64(numbers) => ColumnView::Float64(cut(&numbers.values, slots)),
            Data::Decimal(numbers, _) => ColumnView::Decimal(cut(&numbers.values, slots)),
            Data::Date(numbers) => ColumnView::Date(cut(&numbers.values, slots)),
            Data::Time(numbers) => ColumnView::Time(cut(&numbers.values, slots)),
            Data::Timestamp(numbers) => ColumnView::Timestamp(cut(&numbers.values, slots)),
            Data::TimestampTz(numbers) => ColumnView::TimestampTz(cut(&numbers.values, slots)),
            Data::Text(texts) => ColumnView::Text(cut(&texts.views, slots), &texts.heap),
        })
    }

    /// The same values as bytes in the machine's byte order, aligned for their type. Empty if the
    /// column does not exist.
    #[must_use]
    pub fn bytes_of(&self, position: usize) -> &[u8] {
        match self.column(position) {
            None => &[],
            Some(ColumnView::Boolean(words)) => bytemuck::cast_slice(words),
            Some(ColumnView::Int8(values)) => bytemuck::cast_slice(values),
            Some(ColumnView::Int16(values)) => bytemuck::cast_slice(values),
            Some(ColumnView::Int32(values) | ColumnView::Date(values)) => bytemuck::cast_slice(values),
            Some(
                ColumnView::Int64(values)
                | ColumnView::Time(values)
                | ColumnView::Timestamp(values)
                | ColumnView::TimestampTz(values),
            ) => bytemuck::cast_slice(values),
            Some(ColumnView::Float32(values)) => bytemuck::cast_slice(values),
            Some(ColumnView::Float64(values)) => bytemuck::cast_slice(values),
            Some(ColumnView::Decimal(values)) => bytemuck::cast_slice(values),
            Some(ColumnView::Text(views, _)) => bytemuck::cast_slice(views),
        }
    }

    /// The buffer of the long texts of a text column. Empty for other columns.
    #[must_use]
    pub fn heap_of(&self, position: usize) -> &[u8] {
        match self.column(position) {
            Some(ColumnView::Text(_, heap)) => heap,
            _ => &[],
        }
    }

    /// The slots with a value in a column, in the format of [`Chunk::live`]; `None` if all entries
    /// have a value.
    #[must_use]
    pub fn validity(&self, position: usize) -> Option<&[u64]> {
        let column = self.columns.get(position).filter(|column| column.null_count > 0)?;
        column.valid.get(..bits::words(self.slots))
    }

    /// Same as [`Chunk::validity`], in bytes.
    #[must_use]
    pub fn validity_bytes(&self, position: usize) -> Option<&[u8]> {
        self.validity(position).map(bytemuck::cast_slice)
    }

    /// Same as [`Chunk::live`], in bytes.
    #[must_use]
    pub fn live_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.live())
    }

    /// The number of entries without a value in a column, including those with a broken value.
    #[must_use]
    pub fn null_count(&self, position: usize) -> usize {
        self.columns.get(position).map_or(0, |column| column.null_count)
    }

    /// The slots of entries with a broken value: one that could not be read, or not converted to
    /// the type of the column. Empty if there are none.
    #[must_use]
    pub fn broken(&self, position: usize) -> &[u64] {
        let column = self.columns.get(position).filter(|column| column.broken_count > 0);
        column.and_then(|column| column.broken.get(..bits::words(self.slots))).unwrap_or_default()
    }

    /// The number of entries with a broken value in a column.
    #[must_use]
    pub fn broken_count(&self, position: usize) -> usize {
        self.columns.get(position).map_or(0, |column| column.broken_count)
    }

    /// The bounds of a column's values; `None` if there are no values, or no known bounds.
    #[must_use]
    pub fn range(&self, position: usize) -> Option<ColumnRange> {
        fn whole<T: Into<i64>>(range: Option<(T, T)>) -> Option<ColumnRange> {
            range.map(|(min, max)| ColumnRange::Whole(min.into(), max.into()))
        }
        let float = |(min, max): (f64, f64)| (min <= max).then_some(ColumnRange::Float(min, max));
        match &self.columns.get(position)?.data {
            Data::Boolean(_) | Data::Text(_) => None,
            Data::Int8(numbers) => whole(numbers.range),
            Data::Int16(numbers) => whole(numbers.range),
            Data::Int32(numbers) | Data::Date(numbers) => whole(numbers.range),
            Data::Int64(numbers) | Data::Time(numbers) | Data::Timestamp(numbers) | Data::TimestampTz(numbers) => {
                whole(numbers.range)
            }
            Data::Float32(numbers) => numbers.range.and_then(|(min, max)| float((f64::from(min), f64::from(max)))),
            Data::Float64(numbers) => numbers.range.and_then(float),
            Data::Decimal(numbers, _) => numbers.range.map(|(min, max)| ColumnRange::Decimal(min, max)),
        }
    }

    /// The text in a slot of a text column.
    #[must_use]
    pub fn text(&self, position: usize, slot: usize) -> Option<&[u8]> {
        match self.column(position)? {
            ColumnView::Text(views, heap) => views.get(slot).map(|view| texts::text_of(view, heap)),
            _ => None,
        }
    }

    /// Whether a slot has an entry.
    #[must_use]
    pub fn is_live(&self, slot: usize) -> bool {
        bits::get(&self.live, slot)
    }

    /// Whether there is room for a slot.
    pub(crate) fn has_room(&self, at: usize) -> bool {
        at < self.capacity
    }

    /// Marks a slot as used by a new or existing entry.
    pub(crate) fn begin(&mut self, at: usize) {
        if at >= self.capacity {
            self.grow(at);
        }
        self.slots = self.slots.max(at + 1);
        if !bits::get(&self.live, at) {
            bits::set(&mut self.live, at, true);
            self.live_count += 1;
            // The entry has no value until one is set.
            self.columns.iter_mut().for_each(|column| column.null_count += 1);
        }
    }

    fn grow(&mut self, at: usize) {
        let capacity = (at + 1).next_power_of_two().clamp(CHUNK_SLOTS_MIN, CHUNK_SLOTS);
        self.capacity = capacity;
        let words = bits::words(capacity);
        let grow_words = |bits: &mut Vec<u64>| {
            bits.reserve_exact(words.saturating_sub(bits.len()));
            bits.resize(words, 0);
        };
        grow_words(&mut self.live);
        for column in &mut self.columns {
            grow_words(&mut column.valid);
            if !column.broken.is_empty() {
                grow_words(&mut column.broken);
            }
            column.data.grow(capacity);
        }
    }

    /// Stores a value of the entry in a slot; `None` = the value could not be read.
    #[inline]
    pub(crate) fn set(&mut self, position: usize, at: usize, value: Option<Value<'_>>) {
        let Some(column) = self.columns.get_mut(position) else { return };
        let stored = match value {
            Some(value) => column.data.set(at, value, &column.field_type),
            None => {
                column.data.clear(at);
                Stored::Broken
            }
        };
        column.mark(at, stored);
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, at: usize) {
        if !bits::get(&self.live, at) {
            return;
        }
        for column in &mut self.columns {
            column.data.clear(at);
            column.mark(at, Stored::Null);
            column.null_count -= 1;
        }
        bits::set(&mut self.live, at, false);
        self.live_count -= 1;
    }

    pub(crate) fn bytes(&self) -> usize {
        let of_column = |column: &Column| {
            size_of::<Column>()
                + column.data.bytes()
                + (column.valid.capacity() + column.broken.capacity()) * size_of::<u64>()
        };
        let of_columns: usize = self.columns.iter().map(of_column).sum();
        size_of::<Chunk>() + self.live.capacity() * size_of::<u64>() + of_columns
    }
}

impl Column {
    /// Updates the bits and counters of a slot after its value was stored.
    #[inline]
    fn mark(&mut self, at: usize, stored: Stored) {
        let (was_valid, is_valid) = (bits::get(&self.valid, at), stored == Stored::Value);
        if was_valid != is_valid {
            bits::set(&mut self.valid, at, is_valid);
            if is_valid { self.null_count -= 1 } else { self.null_count += 1 }
        }
        let (was_broken, is_broken) = (bits::get(&self.broken, at), stored == Stored::Broken);
        if was_broken != is_broken {
            if self.broken.is_empty() {
                self.broken = vec![0; self.valid.len()];
            }
            bits::set(&mut self.broken, at, is_broken);
            if is_broken { self.broken_count += 1 } else { self.broken_count -= 1 }
        }
    }
}
