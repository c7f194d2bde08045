//! Schemas of the Compact format, their ids, and where a schema puts each of its fields.

use std::fmt;

use crate::DataError;

/// The id under which a schema travels: its 64-bit Rabin fingerprint, the same whichever client computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub i64);

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A type of the Compact format: its name and its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    type_name: String,
    fields: Vec<FieldDescriptor>,
    /// Where each of the fields is, in the same order.
    places: Vec<Place>,
    extent: Extent,
}

/// Where a field is within an object's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// From this byte of the data on.
    At(usize),
    /// This bit of this byte of the data.
    Bit(usize, u8),
    /// Where the position of this number says.
    Position(usize),
}

/// What of an object's size follows from its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    /// Bytes of all fields of fixed size, booleans' bits included.
    pub(super) fixed_bytes: usize,
    /// Fields of variable size.
    pub(super) positions: usize,
}

/// One field of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldDescriptor {
    /// The field's name, unique within its schema.
    pub name: String,
    /// What the field holds.
    pub kind: FieldKind,
}

impl Schema {
    /// A schema of these fields. Their order does not matter: they are sorted by name, and of two with the same name
    /// the last counts, as in the stock clients.
    pub fn new(type_name: impl Into<String>, fields: impl IntoIterator<Item = FieldDescriptor>) -> Self {
        let mut fields: Vec<FieldDescriptor> = fields.into_iter().collect();
        // Reversed and then sorted stably, the last of equal names comes first, and that is the one dedup keeps.
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|a, b| a.name == b.name);
        let (places, extent) = lay_out(&fields);
        Self { type_name: type_name.into(), fields, places, extent }
    }

    /// The field of this name: what it holds and where it is.
    pub(super) fn find(&self, name: &str) -> Option<(FieldKind, Place)> {
        let at = self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        Some((self.fields.get(at)?.kind, *self.places.get(at)?))
    }

    /// Where each of the fields is, in the order of [`Schema::fields`].
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// What of an object's size follows from the schema.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// The type's name.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The fields, sorted by name.
    pub fn fields(&self) -> &[FieldDescriptor] {
        &self.fields
    }

    /// The schema's id.
    pub fn fingerprint(&self) -> SchemaId {
        let mut rabin = Rabin(EMPTY);
        rabin.text(&self.type_name);
        rabin.count(self.fields.len());
        for field in &self.fields {
            rabin.text(&field.name);
            rabin.number(field.kind as i32);
        }
        SchemaId(rabin.0.cast_signed())
    }
}

/// Where fields that are sorted by name are.
fn lay_out(fields: &[FieldDescriptor]) -> (Vec<Place>, Extent) {
    let mut places = vec![Place::Position(0); fields.len()];
    let mut positions = 0;
    for (place, field) in places.iter_mut().zip(fields) {
        if field.kind != FieldKind::Boolean && field.kind.fixed_bytes().is_none() {
            *place = Place::Position(positions);
            positions += 1;
        }
    }
    let mut fixed_bytes = 0;
    for bytes in [8, 4, 2, 1] {
        for (place, field) in places.iter_mut().zip(fields) {
            if field.kind.fixed_bytes() == Some(bytes) {
                *place = Place::At(fixed_bytes);
                fixed_bytes += bytes;
            }
        }
    }
    let mut bit = 0;
    for (place, field) in places.iter_mut().zip(fields) {
        if field.kind == FieldKind::Boolean {
            *place = Place::Bit(fixed_bytes, bit);
            bit = (bit + 1) % 8;
            fixed_bytes += usize::from(bit == 0);
        }
    }
    fixed_bytes += usize::from(bit != 0);
    (places, Extent { fixed_bytes, positions })
}

impl FieldKind {
    /// Bytes of a field or an item of this kind, if they are always the same; a boolean is a bit and not among them.
    pub(super) fn fixed_bytes(self) -> Option<usize> {
        Some(match self {
            FieldKind::Int8 => 1,
            FieldKind::Int16 => 2,
            FieldKind::Int32 | FieldKind::Float32 => 4,
            FieldKind::Int64 | FieldKind::Float64 => 8,
            _ => return None,
        })
    }
}

macro_rules! field_kinds {
    ($($kind:ident = $number:literal,)*) => {
        /// What a field of the Compact format holds. The numbers are part of the schema's fingerprint.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum FieldKind {
            $($kind = $number,)*
        }

        impl TryFrom<i32> for FieldKind {
            type Error = DataError;

            fn try_from(number: i32) -> Result<Self, DataError> {
                match number {
                    $($number => Ok(FieldKind::$kind),)*
                    _ => Err(DataError::UnknownFieldKind(number)),
                }
            }
        }
    };
}

field_kinds! {
    NotAvailable = 0,
    Boolean = 1,
    ArrayOfBoolean = 2,
    Int8 = 3,
    ArrayOfInt8 = 4,
    Char = 5,
    ArrayOfChar = 6,
    Int16 = 7,
    ArrayOfInt16 = 8,
    Int32 = 9,
    ArrayOfInt32 = 10,
    Int64 = 11,
    ArrayOfInt64 = 12,
    Float32 = 13,
    ArrayOfFloat32 = 14,
    Float64 = 15,
    ArrayOfFloat64 = 16,
    String = 17,
    ArrayOfString = 18,
    Decimal = 19,
    ArrayOfDecimal = 20,
    Time = 21,
    ArrayOfTime = 22,
    Date = 23,
    ArrayOfDate = 24,
    Timestamp = 25,
    ArrayOfTimestamp = 26,
    TimestampWithTimezone = 27,
    ArrayOfTimestampWithTimezone = 28,
    Compact = 29,
    ArrayOfCompact = 30,
    Portable = 31,
    ArrayOfPortable = 32,
    NullableBoolean = 33,
    ArrayOfNullableBoolean = 34,
    NullableInt8 = 35,
    ArrayOfNullableInt8 = 36,
    NullableInt16 = 37,
    ArrayOfNullableInt16 = 38,
    NullableInt32 = 39,
    ArrayOfNullableInt32 = 40,
    NullableInt64 = 41,
    ArrayOfNullableInt64 = 42,
    NullableFloat32 = 43,
    ArrayOfNullableFloat32 = 44,
    NullableFloat64 = 45,
    ArrayOfNullableFloat64 = 46,
}

/// The fingerprint of no bytes, and the polynomial: CRC-64-AVRO.
const EMPTY: u64 = 0xc15d_213a_a4d7_a795;

/// A fingerprint in the making.
struct Rabin(u64);

impl Rabin {
    fn byte(&mut self, byte: u8) {
        let mut low = (self.0 ^ u64::from(byte)) & 0xff;
        for _ in 0..8 {
            low = low >> 1 ^ EMPTY & (low & 1).wrapping_neg();
        }
        self.0 = self.0 >> 8 ^ low;
    }

    /// Little-endian, unlike the numbers in blobs.
    fn number(&mut self, number: i32) {
        number.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }

    /// Counts are hashed as 32-bit numbers; no schema comes near the limit.
    fn count(&mut self, count: usize) {
        self.number(i32::try_from(count).unwrap_or(i32::MAX));
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        text.bytes().for_each(|byte| self.byte(byte));
    }
}
