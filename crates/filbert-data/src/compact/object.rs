//! The bytes of one Compact object and of one array within it.

use super::read::blob;
use super::schema::{Extent, FieldKind, FieldLocation};
use crate::items::{ItemType, Year, broken};
use crate::type_id::SchemaId;
use crate::{DataError, Input, SchemaSource, TypeId, Value};

/// The layout of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One item.
    One(ItemType),
    /// A nested object.
    Object,
    /// Booleans: the number of booleans, then their bits.
    Bits,
    /// Items of one size: the number of items, then the items one after the other.
    Row(ItemType),
    /// Items of any size, possibly null: data length, number of items, items, positions.
    Scattered(ItemType),
    /// Nested objects, with the layout of scattered items.
    Objects,
    /// A kind with a number but without a layout.
    Unsupported(FieldKind),
}

impl Shape {
    pub(super) fn of(kind: FieldKind) -> Shape {
        match kind {
            FieldKind::Boolean | FieldKind::NullableBoolean => Shape::One(ItemType::Boolean),
            FieldKind::Int8 | FieldKind::NullableInt8 => Shape::One(ItemType::Int8),
            FieldKind::Int16 | FieldKind::NullableInt16 => Shape::One(ItemType::Int16),
            FieldKind::Int32 | FieldKind::NullableInt32 => Shape::One(ItemType::Int32),
            FieldKind::Int64 | FieldKind::NullableInt64 => Shape::One(ItemType::Int64),
            FieldKind::Float32 | FieldKind::NullableFloat32 => Shape::One(ItemType::Float32),
            FieldKind::Float64 | FieldKind::NullableFloat64 => Shape::One(ItemType::Float64),
            FieldKind::String => Shape::One(ItemType::Text),
            FieldKind::Decimal => Shape::One(ItemType::Decimal),
            FieldKind::Time => Shape::One(ItemType::Time),
            FieldKind::Date => Shape::One(ItemType::Date(Year::Int)),
            FieldKind::Timestamp => Shape::One(ItemType::Timestamp(Year::Int)),
            FieldKind::TimestampWithTimezone => Shape::One(ItemType::TimestampTz(Year::Int)),
            FieldKind::Compact => Shape::Object,
            FieldKind::ArrayOfBoolean => Shape::Bits,
            FieldKind::ArrayOfInt8 => Shape::Row(ItemType::Int8),
            FieldKind::ArrayOfInt16 => Shape::Row(ItemType::Int16),
            FieldKind::ArrayOfInt32 => Shape::Row(ItemType::Int32),
            FieldKind::ArrayOfInt64 => Shape::Row(ItemType::Int64),
            FieldKind::ArrayOfFloat32 => Shape::Row(ItemType::Float32),
            FieldKind::ArrayOfFloat64 => Shape::Row(ItemType::Float64),
            FieldKind::ArrayOfNullableBoolean => Shape::Scattered(ItemType::Boolean),
            FieldKind::ArrayOfNullableInt8 => Shape::Scattered(ItemType::Int8),
            FieldKind::ArrayOfNullableInt16 => Shape::Scattered(ItemType::Int16),
            FieldKind::ArrayOfNullableInt32 => Shape::Scattered(ItemType::Int32),
            FieldKind::ArrayOfNullableInt64 => Shape::Scattered(ItemType::Int64),
            FieldKind::ArrayOfNullableFloat32 => Shape::Scattered(ItemType::Float32),
            FieldKind::ArrayOfNullableFloat64 => Shape::Scattered(ItemType::Float64),
            FieldKind::ArrayOfString => Shape::Scattered(ItemType::Text),
            FieldKind::ArrayOfDecimal => Shape::Scattered(ItemType::Decimal),
            FieldKind::ArrayOfTime => Shape::Scattered(ItemType::Time),
            FieldKind::ArrayOfDate => Shape::Scattered(ItemType::Date(Year::Int)),
            FieldKind::ArrayOfTimestamp => Shape::Scattered(ItemType::Timestamp(Year::Int)),
            FieldKind::ArrayOfTimestampWithTimezone => Shape::Scattered(ItemType::TimestampTz(Year::Int)),
            FieldKind::ArrayOfCompact => Shape::Objects,
            FieldKind::NotAvailable
            | FieldKind::Char
            | FieldKind::ArrayOfChar
            | FieldKind::Portable
            | FieldKind::ArrayOfPortable => Shape::Unsupported(kind),
        }
    }
}

/// An input of `bytes`.
#[inline]
pub(super) fn input(bytes: &[u8]) -> Input<'_> {
    Input::new(TypeId::COMPACT, bytes)
}

/// The id of the schema of the object at the front of `payload`.
///
/// # Errors
///
/// `payload` has fewer than 8 bytes.
#[inline]
pub(super) fn schema_id(payload: &[u8]) -> Result<SchemaId, DataError> {
    Ok(SchemaId(i64::from_be_bytes(input(payload).array()?)))
}

/// The object at the front of `payload` as a separate blob.
///
/// # Errors
///
/// The schema is unknown, or the object ends too early.
pub(super) fn whole(payload: &[u8], schemas: &dyn SchemaSource) -> Result<Value<'static>, DataError> {
    let id = schema_id(payload)?;
    let schema = schemas.schema(id).ok_or(DataError::UnknownSchema(id))?;
    let bytes = Object::open(payload, schema.extent())?.bytes;
    Ok(blob(payload.get(..bytes).unwrap_or_default()))
}

/// The positions of items within the data. They are stored after the data.
#[derive(Clone, Copy)]
pub(super) struct Positions<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Positions<'a> {
    /// The number of bytes of each position for this number of bytes of data. The narrow widths end
    /// one value earlier, because all bits set means null.
    #[inline]
    fn width(data_bytes: usize) -> usize {
        match data_bytes {
            0..255 => 1,
            255..65_535 => 2,
            _ => 4,
        }
    }

    /// Appends positions in the encoding that [`Positions::get`] reads.
    pub(super) fn write(data_bytes: usize, positions: &[Option<usize>], out: &mut Vec<u8>) {
        let width = Self::width(data_bytes);
        for position in positions {
            let bytes = position.and_then(|at| u32::try_from(at).ok()).unwrap_or(u32::MAX).to_be_bytes();
            out.extend_from_slice(bytes.get(4 - width..).unwrap_or_default());
        }
    }

    fn take(input: &mut Input<'a>, data_bytes: usize, count: usize) -> Result<Positions<'a>, DataError> {
        let width = Self::width(data_bytes);
        Ok(Positions { bytes: input.take(count.saturating_mul(width))?, width })
    }

    /// The position with this number; `None` for null, and beyond the last position.
    #[inline]
    fn get(&self, number: usize) -> Option<usize> {
        let from = number.checked_mul(self.width)?;
        let bytes = self.bytes.get(from..from.checked_add(self.width)?)?;
        match *bytes {
            [0xff] | [0xff, 0xff] | [0xff, 0xff, 0xff, 0xff] => None,
            [a] => Some(a.into()),
            [a, b] => Some(u16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => usize::try_from(u32::from_be_bytes([a, b, c, d])).ok(),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.width
    }
}

/// One object. Its parts are located, but not read.
pub(super) struct Object<'a> {
    data: &'a [u8],
    positions: Positions<'a>,
    /// The number of bytes of the whole object, including the schema id.
    pub(super) bytes: usize,
}

impl<'a> Object<'a> {
    /// Opens the object at the front of `payload`, which has this extent.
    ///
    /// # Errors
    ///
    /// The object ends too early, or has a negative length.
    #[inline]
    pub(super) fn open(payload: &'a [u8], extent: Extent) -> Result<Object<'a>, DataError> {
        let mut input = input(payload);
        input.array::<8>()?;
        let (data, positions) = match extent.positions {
            0 => (input.take(extent.fixed_bytes)?, Positions { bytes: &[], width: 1 }),
            count => {
                let length = data_length(&mut input)?;
                let data = input.take(length)?;
                (data, Positions::take(&mut input, length, count)?)
            }
        };
        Ok(Object { data, positions, bytes: payload.len() - input.remaining() })
    }

    /// The data from the start of a field on; `None` if the field is null. For a bit, the data from
    /// its byte on.
    ///
    /// # Errors
    ///
    /// The field's position is beyond the data.
    #[inline]
    pub(super) fn field(&self, location: FieldLocation) -> Result<Option<&'a [u8]>, DataError> {
        let at = match location {
            FieldLocation::At(at) | FieldLocation::Bit(at, _) => at,
            FieldLocation::Position(number) => match self.positions.get(number) {
                Some(at) => at,
                None => return Ok(None),
            },
        };
        match self.data.get(at..) {
            Some(bytes) if !bytes.is_empty() => Ok(Some(bytes)),
            _ => Err(beyond(at, self.data)),
        }
    }
}

#[cold]
fn beyond(at: usize, data: &[u8]) -> DataError {
    broken(&input(data), format!("a field or an item at byte {at} of {}", data.len()), "a place within its data")
}

/// A length that cannot be null.
#[inline]
fn data_length(input: &mut Input<'_>) -> Result<usize, DataError> {
    input.length(1)?.ok_or(DataError::BrokenLength { type_id: TypeId::COMPACT, length: -1 })
}

/// One array. Its parts are located, but not read.
pub(super) struct Items<'a> {
    shape: Shape,
    length: usize,
    data: &'a [u8],
    positions: Positions<'a>,
}

impl<'a> Items<'a> {
    /// Opens the array of this shape at the front of `bytes`.
    ///
    /// # Errors
    ///
    /// The array ends too early or has an invalid length, or the shape is not an array.
    pub(super) fn open(shape: Shape, bytes: &'a [u8]) -> Result<Items<'a>, DataError> {
        let mut input = input(bytes);
        let none = Positions { bytes: &[], width: 1 };
        Ok(match shape {
            Shape::Bits => {
                let length = input.length(0)?.unwrap_or_default();
                Items { shape, length, data: input.take(length.div_ceil(8))?, positions: none }
            }
            Shape::Row(item_type) => {
                let length = input.length(item_type.bytes_min())?.unwrap_or_default();
                Items {
                    shape,
                    length,
                    data: input.take(length.saturating_mul(item_type.bytes_min()))?,
                    positions: none,
                }
            }
            Shape::Scattered(_) | Shape::Objects => {
                let data_bytes = data_length(&mut input)?;
                // The position of every item has at least one byte.
                let length = data_length(&mut input)?;
                let data = input.take(data_bytes)?;
                Items { shape, length, data, positions: Positions::take(&mut input, data_bytes, length)? }
            }
            Shape::One(_) | Shape::Object | Shape::Unsupported(_) => {
                return Err(broken(&input, format!("a field of the shape {shape:?}"), "a kind of the Compact format"));
            }
        })
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Reads the item at this index; null if the item is null or the index is beyond the end.
    ///
    /// # Errors
    ///
    /// The item is broken, or the schema of an object is unknown.
    pub(super) fn read(&self, at: usize, schemas: &dyn SchemaSource) -> Result<Value<'a>, DataError> {
        if at >= self.length {
            return Ok(Value::Null);
        }
        match self.shape {
            Shape::Bits => {
                let byte = self.data.get(at / 8).copied().unwrap_or_default();
                Ok(Value::Boolean(byte >> (at % 8) & 1 == 1))
            }
            Shape::Row(item_type) => {
                item_type.read(&mut input(self.data.get(at * item_type.bytes_min()..).unwrap_or_default()))
            }
            Shape::Scattered(item_type) => {
                self.item(at)?.map_or(Ok(Value::Null), |bytes| item_type.read(&mut input(bytes)))
            }
            Shape::Objects => self.item(at)?.map_or(Ok(Value::Null), |bytes| whole(bytes, schemas)),
            Shape::One(_) | Shape::Object | Shape::Unsupported(_) => Ok(Value::Null),
        }
    }

    /// Reads all items.
    ///
    /// # Errors
    ///
    /// As [`Items::read`].
    pub(super) fn read_all(&self, schemas: &dyn SchemaSource) -> Result<Value<'a>, DataError> {
        if let Shape::Row(item_type) = self.shape {
            let mut input = input(self.data);
            return (0..self.length).map(|_| item_type.read(&mut input)).collect::<Result<_, _>>().map(Value::Array);
        }
        (0..self.length).map(|at| self.read(at, schemas)).collect::<Result<_, _>>().map(Value::Array)
    }

    /// The bytes of the object at this index; `None` if the item is null or not an object, or the
    /// index is beyond the end.
    ///
    /// # Errors
    ///
    /// The position of the object is beyond the data.
    pub(super) fn object(&self, at: usize) -> Result<Option<&'a [u8]>, DataError> {
        if self.shape == Shape::Objects { self.item(at) } else { Ok(None) }
    }

    /// The bytes of a scattered item, up to the next item, so that all items together are never
    /// larger than the data.
    fn item(&self, at: usize) -> Result<Option<&'a [u8]>, DataError> {
        let Some(from) = self.positions.get(at) else { return Ok(None) };
        let next = (at + 1..self.positions.len()).find_map(|next| self.positions.get(next));
        match self.data.get(from..next.unwrap_or(self.data.len())) {
            Some(bytes) if !bytes.is_empty() => Ok(Some(bytes)),
            _ => Err(beyond(from, self.data)),
        }
    }
}
