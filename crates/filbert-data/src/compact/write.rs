//! Writes Compact objects as the stock clients write them.

use super::object::{Positions, Shape};
use super::schema::{FieldDescriptor, FieldKind, FieldLocation, Schema};
use crate::items::ItemType;
use crate::items::{Unfit, write_count};
use crate::{BLOB_HEADER_BYTES, Blob, DataError, FieldType, TypeId, Value, type_id};

/// Writes objects of one type.
pub struct Writer {
    schema: Schema,
    id: i64,
    /// The fields in the order of writing: sorted by name.
    fields: Vec<Field>,
    /// The number of values that [`Writer::write`] takes.
    values: usize,
}

struct Field {
    name: String,
    kind: FieldKind,
    shape: Shape,
    location: FieldLocation,
    /// The index of the field's value.
    value: usize,
}

impl FieldKind {
    /// The kind of field for values of a type: the nullable kind, as in Hazelcast's SQL. UUIDs,
    /// JSON documents, intervals and characters are texts, because the format has no usable kind
    /// for them. An array of arrays becomes an array of objects, which accepts no such value.
    pub fn of_type(field_type: &FieldType) -> FieldKind {
        match field_type {
            FieldType::Boolean => FieldKind::NullableBoolean,
            FieldType::TinyInt => FieldKind::NullableInt8,
            FieldType::SmallInt => FieldKind::NullableInt16,
            FieldType::Integer => FieldKind::NullableInt32,
            FieldType::BigInt => FieldKind::NullableInt64,
            FieldType::Decimal(_) => FieldKind::Decimal,
            FieldType::Real => FieldKind::NullableFloat32,
            FieldType::Double => FieldKind::NullableFloat64,
            FieldType::Varchar | FieldType::Char | FieldType::Uuid | FieldType::Json | FieldType::Interval => {
                FieldKind::String
            }
            FieldType::Binary => FieldKind::ArrayOfInt8,
            FieldType::Date => FieldKind::Date,
            FieldType::Time => FieldKind::Time,
            FieldType::Timestamp => FieldKind::Timestamp,
            FieldType::TimestampTz => FieldKind::TimestampWithTimezone,
            FieldType::Object => FieldKind::Compact,
            FieldType::Array(item) => match FieldKind::of_type(item) {
                FieldKind::NullableBoolean => FieldKind::ArrayOfNullableBoolean,
                FieldKind::NullableInt8 => FieldKind::ArrayOfNullableInt8,
                FieldKind::NullableInt16 => FieldKind::ArrayOfNullableInt16,
                FieldKind::NullableInt32 => FieldKind::ArrayOfNullableInt32,
                FieldKind::NullableInt64 => FieldKind::ArrayOfNullableInt64,
                FieldKind::NullableFloat32 => FieldKind::ArrayOfNullableFloat32,
                FieldKind::NullableFloat64 => FieldKind::ArrayOfNullableFloat64,
                FieldKind::String => FieldKind::ArrayOfString,
                FieldKind::Decimal => FieldKind::ArrayOfDecimal,
                FieldKind::Date => FieldKind::ArrayOfDate,
                FieldKind::Time => FieldKind::ArrayOfTime,
                FieldKind::Timestamp => FieldKind::ArrayOfTimestamp,
                FieldKind::TimestampWithTimezone => FieldKind::ArrayOfTimestampWithTimezone,
                _ => FieldKind::ArrayOfCompact,
            },
        }
    }
}

impl Writer {
    /// A writer of objects of these fields, with the kinds of [`FieldKind::of_type`].
    pub fn new(type_name: impl Into<String>, fields: Vec<(String, FieldType)>) -> Writer {
        let fields = fields.into_iter().map(|(name, field_type)| (name, FieldKind::of_type(&field_type)));
        Writer::of_kinds(type_name, fields.collect())
    }

    /// A writer of objects of these fields. If several fields have the same name, the last field is
    /// used.
    pub fn of_kinds(type_name: impl Into<String>, fields: Vec<(String, FieldKind)>) -> Writer {
        let values = fields.len();
        let descriptors = fields.iter().map(|(name, kind)| FieldDescriptor { name: name.clone(), kind: *kind });
        let schema = Schema::new(type_name, descriptors);
        let written = schema.fields().iter().zip(schema.locations()).map(|(field, location)| Field {
            name: field.name.clone(),
            kind: field.kind,
            shape: Shape::of(field.kind),
            location: *location,
            value: fields.iter().rposition(|(name, _)| *name == field.name).unwrap_or(values),
        });
        Writer { fields: written.collect(), id: schema.fingerprint().0, schema, values }
    }

    /// The schema of the objects. It must be announced before the objects can be read.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Writes an object of these values, in the order of the fields given to the constructor, as a
    /// blob.
    ///
    /// # Errors
    ///
    /// The number of values differs from the number of fields, or a value does not fit into its
    /// field.
    pub fn write(&self, values: &[Value<'_>]) -> Result<Blob, DataError> {
        if values.len() != self.values {
            return Err(DataError::WrongCount { values: values.len(), fields: self.values });
        }
        let mut out = Vec::new();
        self.write_into(|field| values.get(field).unwrap_or(&Value::Null), &mut out)?;
        Ok(Blob::from(out))
    }

    /// Writes an object as a blob into a buffer, and replaces the buffer's content. `value` returns
    /// the value of the field with a number, which is its index in the list given to the
    /// constructor.
    ///
    /// # Errors
    ///
    /// A value does not fit into its field. The buffer then does not contain a valid blob.
    pub fn write_into<'v>(&self, value: impl Fn(usize) -> &'v Value<'v>, out: &mut Vec<u8>) -> Result<(), DataError> {
        let extent = self.schema.extent();
        let has_positions = extent.positions > 0;
        out.clear();
        out.reserve(BLOB_HEADER_BYTES + 12 + extent.fixed_bytes + extent.positions * 16);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&TypeId::COMPACT.0.to_be_bytes());
        out.extend_from_slice(&self.id.to_be_bytes());
        let length_at = out.len();
        let start = length_at + if has_positions { 4 } else { 0 };
        out.resize(start + extent.fixed_bytes, 0);
        let mut positions = Vec::with_capacity(extent.positions);
        for field in &self.fields {
            let value = value(field.value);
            if let FieldLocation::Position(_) = field.location {
                positions.push((!value.is_null()).then(|| out.len() - start));
                if value.is_null() {
                    continue;
                }
            }
            write_field(field, start, value, out).map_err(|unfit| unfit.of(&field.name, value, field.kind))?;
        }
        if has_positions {
            let length = out.len();
            end_positions(length_at, start, &positions, out)
                .map_err(|_| DataError::TooLong { type_id: TypeId::COMPACT, length })?;
        }
        Ok(())
    }
}

fn write_field(field: &Field, start: usize, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    match (field.location, field.shape) {
        (FieldLocation::Bit(at, bit), _) => {
            let Value::Boolean(value) = value else { return Err(Unfit) };
            if let Some(byte) = out.get_mut(start + at) {
                *byte |= u8::from(*value) << bit;
            }
            Ok(())
        }
        (FieldLocation::At(at), Shape::One(item_type)) => {
            let mut bytes = Vec::with_capacity(8);
            item_type.write(value, &mut bytes)?;
            if let Some(location) = out.get_mut(start + at..start + at + bytes.len()) {
                location.copy_from_slice(&bytes);
            }
            Ok(())
        }
        (_, Shape::One(item_type)) => item_type.write(value, out),
        (_, Shape::Object) => write_object(value, out),
        (_, shape) => match (shape, value) {
            (Shape::Row(ItemType::Int8), Value::Bytes(bytes)) => {
                write_count(bytes.len(), out)?;
                out.extend_from_slice(bytes);
                Ok(())
            }
            (_, Value::Array(items)) => write_array(shape, items, out),
            _ => Err(Unfit),
        },
    }
}

fn write_object(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let Value::Object(blob) = value else { return Err(Unfit) };
    match (type_id(blob), blob.get(BLOB_HEADER_BYTES..)) {
        (Ok(TypeId::COMPACT), Some(payload)) if payload.len() >= 8 => out.extend_from_slice(payload),
        _ => return Err(Unfit),
    }
    Ok(())
}

fn write_array(shape: Shape, items: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), Unfit> {
    match shape {
        Shape::Bits => {
            write_count(items.len(), out)?;
            for eight in items.chunks(8) {
                let mut byte = 0;
                for (bit, item) in eight.iter().enumerate() {
                    let Value::Boolean(item) = item else { return Err(Unfit) };
                    byte |= u8::from(*item) << bit;
                }
                out.push(byte);
            }
            Ok(())
        }
        Shape::Row(item_type) => {
            write_count(items.len(), out)?;
            items.iter().try_for_each(|item| item_type.write(item, out))
        }
        Shape::Scattered(item_type) => write_scattered(items, out, |item, out| item_type.write(item, out)),
        Shape::Objects => write_scattered(items, out, write_object),
        Shape::One(_) | Shape::Object | Shape::Unsupported(_) => Err(Unfit),
    }
}

fn write_scattered(
    items: &[Value<'_>],
    out: &mut Vec<u8>,
    write: impl Fn(&Value<'_>, &mut Vec<u8>) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    write_count(items.len(), out)?;
    let start = out.len();
    let mut positions = Vec::with_capacity(items.len());
    for item in items {
        positions.push((!item.is_null()).then(|| out.len() - start));
        if !item.is_null() {
            write(item, out)?;
        }
    }
    end_positions(length_at, start, &positions, out)
}

/// Writes the length of the data, which begins at `start`, at `length_at`, and appends the
/// positions.
fn end_positions(length_at: usize, start: usize, positions: &[Option<usize>], out: &mut Vec<u8>) -> Result<(), Unfit> {
    let data_bytes = out.len() - start;
    let length = i32::try_from(data_bytes).map_err(|_| Unfit)?;
    if let Some(location) = out.get_mut(length_at..length_at + 4) {
        location.copy_from_slice(&length.to_be_bytes());
    }
    Positions::write(data_bytes, positions, out);
    Ok(())
}
