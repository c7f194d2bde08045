//! Schemas of the Compact format, their ids, the source of schemas, and the locations of fields in
//! objects.

use std::sync::Arc;

use crate::DataError;
use crate::type_id::SchemaId;

/// The source of Compact schemas.
pub trait SchemaSource: Send + Sync {
    /// The schema with this id; `None` if it was not announced.
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>>;
}

/// A type of the Compact format: its name and its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    type_name: String,
    fields: Vec<FieldDescriptor>,
    /// The location of each field, in the same order.
    locations: Vec<FieldLocation>,
    extent: Extent,
}

/// The location of a field in an object's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FieldLocation {
    /// From this byte of the data on.
    At(usize),
    /// This bit of this byte of the data.
    Bit(usize, u8),
    /// At the position with this number.
    Position(usize),
}

/// The parts of an object's size that are determined by its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    /// The number of bytes of all fields of fixed size, including the bits of booleans.
    pub(super) fixed_bytes: usize,
    /// The number of fields of variable size.
    pub(super) positions: usize,
}

/// One field of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldDescriptor {
    /// The field's name, unique within its schema.
    pub name: String,
    /// The kind of the field.
    pub kind: FieldKind,
}

impl Schema {
    /// A schema of these fields. Their order does not matter: they are sorted by name. If several
    /// fields have the same name, the last field is used, as in the stock clients.
    pub fn new(type_name: impl Into<String>, fields: impl IntoIterator<Item = FieldDescriptor>) -> Self {
        let mut fields: Vec<FieldDescriptor> = fields.into_iter().collect();
        // After the reversal and the stable sort, the last of several fields with equal names comes
        // first, and `dedup_by` keeps the first.
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|a, b| a.name == b.name);
        let (locations, extent) = lay_out(&fields);
        Self { type_name: type_name.into(), fields, locations, extent }
    }

    /// The kind and the location of the field with this name.
    pub(super) fn find(&self, name: &str) -> Option<(FieldKind, FieldLocation)> {
        let at = self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        Some((self.fields.get(at)?.kind, *self.locations.get(at)?))
    }

    /// The locations of the fields, in the order of [`Schema::fields`].
    pub(super) fn locations(&self) -> &[FieldLocation] {
        &self.locations
    }

    /// The parts of an object's size that are determined by the schema.
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

    /// The schema's id: the fingerprint of the type's name and its fields.
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

/// The locations of fields that are sorted by name, and the extent of an object.
fn lay_out(fields: &[FieldDescriptor]) -> (Vec<FieldLocation>, Extent) {
    let mut locations = vec![FieldLocation::Position(0); fields.len()];
    let mut positions = 0;
    for (location, field) in locations.iter_mut().zip(fields) {
        if field.kind != FieldKind::Boolean && field.kind.fixed_bytes().is_none() {
            *location = FieldLocation::Position(positions);
            positions += 1;
        }
    }
    let mut fixed_bytes = 0;
    for bytes in [8, 4, 2, 1] {
        for (location, field) in locations.iter_mut().zip(fields) {
            if field.kind.fixed_bytes() == Some(bytes) {
                *location = FieldLocation::At(fixed_bytes);
                fixed_bytes += bytes;
            }
        }
    }
    let mut bit = 0;
    for (location, field) in locations.iter_mut().zip(fields) {
        if field.kind == FieldKind::Boolean {
            *location = FieldLocation::Bit(fixed_bytes, bit);
            bit = (bit + 1) % 8;
            fixed_bytes += usize::from(bit == 0);
        }
    }
    fixed_bytes += usize::from(bit != 0);
    (locations, Extent { fixed_bytes, positions })
}

impl FieldKind {
    /// The number of bytes of a field of this kind if it is fixed. `None` for kinds of variable
    /// size, and for a boolean, which is a bit.
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
        /// The kind of a Compact field. The numbers are part of the schema's fingerprint.
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

/// The fingerprint of an empty input, and the polynomial: CRC-64-AVRO.
const EMPTY: u64 = 0xc15d_213a_a4d7_a795;

/// The state of the computation of a fingerprint.
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
