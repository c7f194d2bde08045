//! The bytes of one Compact object and of one array within it.

use super::read::blob;
use super::schema::{Extent, FieldKind, Place, SchemaId};
use crate::parts::{Part, Year, broken};
use crate::{DataError, Input, SchemaSource, TypeId, Value};

/// How a field's bytes are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One item.
    One(Part),
    /// A nested object.
    Object,
    /// Booleans: their number, then bits.
    Bits,
    /// Items of one size: their number, then one after the other.
    Row(Part),
    /// Items of any size, nulls among them: data length, number, items, positions.
    Scattered(Part),
    /// Nested objects, laid out as scattered items.
    Objects,
    /// A kind that has a number and no layout.
    Unsupported(FieldKind),
}

impl Shape {
    pub(super) fn of(kind: FieldKind) -> Shape {
        match kind {
            FieldKind::Boolean | FieldKind::NullableBoolean => Shape::One(Part::Boolean),
            FieldKind::Int8 | FieldKind::NullableInt8 => Shape::One(Part::Int8),
            FieldKind::Int16 | FieldKind::NullableInt16 => Shape::One(Part::Int16),
            FieldKind::Int32 | FieldKind::NullableInt32 => Shape::One(Part::Int32),
            FieldKind::Int64 | FieldKind::NullableInt64 => Shape::One(Part::Int64),
            FieldKind::Float32 | FieldKind::NullableFloat32 => Shape::One(Part::Float32),
            FieldKind::Float64 | FieldKind::NullableFloat64 => Shape::One(Part::Float64),
            FieldKind::String => Shape::One(Part::Text),
            FieldKind::Decimal => Shape::One(Part::Decimal),
            FieldKind::Time => Shape::One(Part::Time),
            FieldKind::Date => Shape::One(Part::Date(Year::Int)),
            FieldKind::Timestamp => Shape::One(Part::Timestamp(Year::Int)),
            FieldKind::TimestampWithTimezone => Shape::One(Part::TimestampTz(Year::Int)),
            FieldKind::Compact => Shape::Object,
            FieldKind::ArrayOfBoolean => Shape::Bits,
            FieldKind::ArrayOfInt8 => Shape::Row(Part::Int8),
            FieldKind::ArrayOfInt16 => Shape::Row(Part::Int16),
            FieldKind::ArrayOfInt32 => Shape::Row(Part::Int32),
            FieldKind::ArrayOfInt64 => Shape::Row(Part::Int64),
            FieldKind::ArrayOfFloat32 => Shape::Row(Part::Float32),
            FieldKind::ArrayOfFloat64 => Shape::Row(Part::Float64),
            FieldKind::ArrayOfNullableBoolean => Shape::Scattered(Part::Boolean),
            FieldKind::ArrayOfNullableInt8 => Shape::Scattered(Part::Int8),
            FieldKind::ArrayOfNullableInt16 => Shape::Scattered(Part::Int16),
            FieldKind::ArrayOfNullableInt32 => Shape::Scattered(Part::Int32),
            FieldKind::ArrayOfNullableInt64 => Shape::Scattered(Part::Int64),
            FieldKind::ArrayOfNullableFloat32 => Shape::Scattered(Part::Float32),
            FieldKind::ArrayOfNullableFloat64 => Shape::Scattered(Part::Float64),
            FieldKind::ArrayOfString => Shape::Scattered(Part::Text),
            FieldKind::ArrayOfDecimal => Shape::Scattered(Part::Decimal),
            FieldKind::ArrayOfTime => Shape::Scattered(Part::Time),
            FieldKind::ArrayOfDate => Shape::Scattered(Part::Date(Year::Int)),
            FieldKind::ArrayOfTimestamp => Shape::Scattered(Part::Timestamp(Year::Int)),
            FieldKind::ArrayOfTimestampWithTimezone => Shape::Scattered(Part::TimestampTz(Year::Int)),
            FieldKind::ArrayOfCompact => Shape::Objects,
            FieldKind::NotAvailable
            | FieldKind::Char
            | FieldKind::ArrayOfChar
            | FieldKind::Portable
            | FieldKind::ArrayOfPortable => Shape::Unsupported(kind),
        }
    }
}

/// The front of `bytes`, to be read.
#[inline]
pub(super) fn input(bytes: &[u8]) -> Input<'_> {
    Input::new(TypeId::COMPACT, bytes)
}

/// The id of the schema of the object at the front of `payload`.
///
/// # Errors
///
/// Fewer than 8 bytes are there.
#[inline]
pub(super) fn schema_id(payload: &[u8]) -> Result<SchemaId, DataError> {
    Ok(SchemaId(i64::from_be_bytes(input(payload).array()?)))
}

/// The object at the front of `payload` as a blob of its own.
///
/// # Errors
///
/// Its schema is unknown, or it ends too early.
pub(super) fn whole(payload: &[u8], schemas: &dyn SchemaSource) -> Result<Value<'static>, DataError> {
    let id = schema_id(payload)?;
    let schema = schemas.schema(id).ok_or(DataError::UnknownSchema(id))?;
    let bytes = Object::open(payload, schema.extent())?.bytes;
    Ok(blob(payload.get(..bytes).unwrap_or_default()))
}

/// Positions of items within data that they follow.
#[derive(Clone, Copy)]
pub(super) struct Positions<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Positions<'a> {
    /// Bytes of each position for so many bytes of data. The narrow widths stop one short, since all bits set is null.
    #[inline]
    fn width(data_bytes: usize) -> usize {
        match data_bytes {
            0..255 => 1,
            255..65_535 => 2,
            _ => 4,
        }
    }

    /// Appends positions as [`Positions::get`] reads them.
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

    /// The position of this number; none for null, and beyond the last.
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

/// One object, its parts found but not read.
pub(super) struct Object<'a> {
    data: &'a [u8],
    positions: Positions<'a>,
    /// Bytes of the whole object, schema id included.
    pub(super) bytes: usize,
}

impl<'a> Object<'a> {
    /// The object at the front of `payload`, which has this extent.
    ///
    /// # Errors
    ///
    /// It ends too early, or claims a length below zero.
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

    /// The data from the start of a field on; none if the field is null. Of a bit, the data from its byte on.
    ///
    /// # Errors
    ///
    /// The field's position is beyond the data.
    #[inline]
    pub(super) fn field(&self, place: Place) -> Result<Option<&'a [u8]>, DataError> {
        let at = match place {
            Place::At(at) | Place::Bit(at, _) => at,
            Place::Position(number) => match self.positions.get(number) {
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

/// One array, its parts found but not read.
pub(super) struct Items<'a> {
    shape: Shape,
    length: usize,
    data: &'a [u8],
    positions: Positions<'a>,
}

impl<'a> Items<'a> {
    /// The array of this shape at the front of `bytes`.
    ///
    /// # Errors
    ///
    /// It ends too early or claims a length below zero; or the shape is no array.
    pub(super) fn open(shape: Shape, bytes: &'a [u8]) -> Result<Items<'a>, DataError> {
        let mut input = input(bytes);
        let none = Positions { bytes: &[], width: 1 };
        Ok(match shape {
            Shape::Bits => {
                let length = input.length(0)?.unwrap_or_default();
                Items { shape, length, data: input.take(length.div_ceil(8))?, positions: none }
            }
            Shape::Row(part) => {
                let length = input.length(part.bytes_min())?.unwrap_or_default();
                Items { shape, length, data: input.take(length.saturating_mul(part.bytes_min()))?, positions: none }
            }
            Shape::Scattered(_) | Shape::Objects => {
                let data_bytes = data_length(&mut input)?;
                // Every item has a byte of its position at least.
                let length = data_length(&mut input)?;
                let data = input.take(data_bytes)?;
                Items { shape, length, data, positions: Positions::take(&mut input, data_bytes, length)? }
            }
            Shape::One(_) | Shape::Object | Shape::Unsupported(_) => {
                return Err(broken(&input, format!("a field of the shape {shape:?}"), "a kind of the Compact format"));
            }
        })
    }

    /// Items there are.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Reads the item at this place; null if it is null or beyond the end.
    ///
    /// # Errors
    ///
    /// The item is broken, or an object whose schema is unknown.
    pub(super) fn read(&self, at: usize, schemas: &dyn SchemaSource) -> Result<Value<'a>, DataError> {
        if at >= self.length {
            return Ok(Value::Null);
        }
        match self.shape {
            Shape::Bits => {
                let byte = self.data.get(at / 8).copied().unwrap_or_default();
                Ok(Value::Boolean(byte >> (at % 8) & 1 == 1))
            }
            Shape::Row(part) => part.read(&mut input(self.data.get(at * part.bytes_min()..).unwrap_or_default())),
            Shape::Scattered(part) => self.item(at)?.map_or(Ok(Value::Null), |bytes| part.read(&mut input(bytes))),
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
        if let Shape::Row(part) = self.shape {
            let mut input = input(self.data);
            return (0..self.length).map(|_| part.read(&mut input)).collect::<Result<_, _>>().map(Value::Array);
        }
        (0..self.length).map(|at| self.read(at, schemas)).collect::<Result<_, _>>().map(Value::Array)
    }

    /// The bytes of the object at this place; none if it is null, beyond the end, or no object.
    ///
    /// # Errors
    ///
    /// Its position is beyond the data.
    pub(super) fn object(&self, at: usize) -> Result<Option<&'a [u8]>, DataError> {
        if self.shape == Shape::Objects { self.item(at) } else { Ok(None) }
    }

    /// The bytes of a scattered item: up to the next one, so that all items together are never more than the data.
    fn item(&self, at: usize) -> Result<Option<&'a [u8]>, DataError> {
        let Some(from) = self.positions.get(at) else { return Ok(None) };
        let next = (at + 1..self.positions.len()).find_map(|next| self.positions.get(next));
        match self.data.get(from..next.unwrap_or(self.data.len())) {
            Some(bytes) if !bytes.is_empty() => Ok(Some(bytes)),
            _ => Err(beyond(from, self.data)),
        }
    }
}
