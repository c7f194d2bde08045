//! Writes Portable objects as the stock clients write them.

use super::cut::paste;
use super::kind::{FieldKind, Shape};
use super::object::{ClassId, Object, Span, TABLE_AT};
use super::read::name_bytes;
use crate::items::{Unfit, write_count};
use crate::{BLOB_HEADER_BYTES, Blob, DataError, FieldType, TypeId, Value, type_id};

/// A class: its ids and its fields, in the order of writing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassDefinition {
    /// The factory's id.
    pub factory_id: i32,
    /// The class's id within the factory; clients reject 0.
    pub class_id: i32,
    /// The version of the class.
    pub version: i32,
    /// The fields.
    pub fields: Vec<FieldDefinition>,
}

/// One field of a [`ClassDefinition`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldDefinition {
    /// The field's name.
    pub name: String,
    /// The kind of the field.
    pub kind: FieldKind,
    /// Factory and class of the objects in the field; ignored for other kinds.
    pub nested: (i32, i32),
}

impl FieldKind {
    /// The kind of field for values of a type, as in Hazelcast's SQL. UUIDs, JSON documents and
    /// intervals are texts, because the format has no kind for them. An array of arrays becomes an
    /// array of objects, which accepts no such value.
    pub fn of_type(field_type: &FieldType) -> FieldKind {
        match field_type {
            FieldType::Boolean => FieldKind::Boolean,
            FieldType::TinyInt => FieldKind::Byte,
            FieldType::SmallInt => FieldKind::Short,
            FieldType::Integer => FieldKind::Int,
            FieldType::BigInt => FieldKind::Long,
            FieldType::Decimal(_) => FieldKind::Decimal,
            FieldType::Real => FieldKind::Float,
            FieldType::Double => FieldKind::Double,
            FieldType::Varchar | FieldType::Uuid | FieldType::Json | FieldType::Interval => FieldKind::String,
            FieldType::Binary => FieldKind::ArrayOfByte,
            FieldType::Char => FieldKind::Char,
            FieldType::Date => FieldKind::Date,
            FieldType::Time => FieldKind::Time,
            FieldType::Timestamp => FieldKind::Timestamp,
            FieldType::TimestampTz => FieldKind::TimestampWithTimezone,
            FieldType::Object => FieldKind::Portable,
            FieldType::Array(item) => match FieldKind::of_type(item) {
                FieldKind::Boolean => FieldKind::ArrayOfBoolean,
                FieldKind::Byte => FieldKind::ArrayOfByte,
                FieldKind::Short => FieldKind::ArrayOfShort,
                FieldKind::Int => FieldKind::ArrayOfInt,
                FieldKind::Long => FieldKind::ArrayOfLong,
                FieldKind::Decimal => FieldKind::ArrayOfDecimal,
                FieldKind::Float => FieldKind::ArrayOfFloat,
                FieldKind::Double => FieldKind::ArrayOfDouble,
                FieldKind::String => FieldKind::ArrayOfString,
                FieldKind::Char => FieldKind::ArrayOfChar,
                FieldKind::Date => FieldKind::ArrayOfDate,
                FieldKind::Time => FieldKind::ArrayOfTime,
                FieldKind::Timestamp => FieldKind::ArrayOfTimestamp,
                FieldKind::TimestampWithTimezone => FieldKind::ArrayOfTimestampWithTimezone,
                _ => FieldKind::ArrayOfPortable,
            },
        }
    }
}

impl ClassDefinition {
    /// A class of these fields, with the kinds of [`FieldKind::of_type`].
    pub fn of_types(class: ClassId, fields: Vec<(String, FieldType)>) -> ClassDefinition {
        let fields = fields.into_iter().map(|(name, field_type)| FieldDefinition {
            name,
            kind: FieldKind::of_type(&field_type),
            nested: (0, 0),
        });
        let ClassId { factory_id, class_id, version } = class;
        ClassDefinition { factory_id, class_id, version, fields: fields.collect() }
    }
}

/// Writes objects of one class.
pub struct Writer {
    class: ClassDefinition,
    /// The bytes before each field's value: length of the name, name, type.
    heads: Vec<Vec<u8>>,
}

impl Writer {
    /// A writer of objects of a class.
    ///
    /// # Errors
    ///
    /// A name has more than 32,767 UTF-16 units, the limit of the format.
    pub fn new(class: ClassDefinition) -> Result<Writer, DataError> {
        let head = |field: &FieldDefinition| {
            let name = name_bytes(&field.name);
            let length = i16::try_from(name.len())
                .map_err(|_| DataError::TooLong { type_id: TypeId::PORTABLE, length: name.len() })?;
            Ok([&length.to_be_bytes(), &*name, &[field.kind as u8]].concat())
        };
        let heads = class.fields.iter().map(head).collect::<Result<_, DataError>>()?;
        Ok(Writer { class, heads })
    }

    /// The class of the objects.
    pub fn class(&self) -> &ClassDefinition {
        &self.class
    }

    /// Writes an object of these values, in the order of the class's fields, as a blob. Numbers,
    /// booleans and characters cannot be null. In arrays, only texts can be null.
    ///
    /// # Errors
    ///
    /// The number of values differs from the number of fields, or a value does not fit into its
    /// field.
    pub fn write(&self, values: &[Value<'_>]) -> Result<Blob, DataError> {
        let ClassDefinition { factory_id, class_id, version, fields } = &self.class;
        if values.len() != fields.len() {
            return Err(DataError::WrongCount { values: values.len(), fields: fields.len() });
        }
        let too_long = |out: &[u8]| DataError::TooLong { type_id: TypeId::PORTABLE, length: out.len() };
        let mut out = Vec::with_capacity(64 + fields.len() * 32);
        for number in [0, TypeId::PORTABLE.0, *factory_id, *class_id, *version, 0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        let table_at = BLOB_HEADER_BYTES + 8 + TABLE_AT;
        write_count(fields.len(), &mut out).map_err(|Unfit| too_long(&out))?;
        out.resize(table_at + (fields.len() + 1) * 4, 0);
        for (number, ((field, head), value)) in fields.iter().zip(&self.heads).zip(values).enumerate() {
            put_position(table_at + number * 4, &mut out).map_err(|Unfit| too_long(&out))?;
            out.extend_from_slice(head);
            write_field(field, value, &mut out).map_err(|unfit| unfit.of(&field.name, value, field.kind))?;
        }
        put_position(table_at - 8, &mut out).map_err(|Unfit| too_long(&out))?;
        Ok(Blob::from(out))
    }
}

/// Writes the current end of the blob as the position at `at`.
fn put_position(at: usize, out: &mut [u8]) -> Result<(), Unfit> {
    let position = i32::try_from(out.len()).map_err(|_| Unfit)?;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&position.to_be_bytes());
    }
    Ok(())
}

fn write_field(field: &FieldDefinition, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let (factory_id, class_id) = field.nested;
    match (field.kind.shape(), value) {
        (Shape::One(item_type), value) => return item_type.write(value, out),
        (Shape::Nullable(_), Value::Null) => out.push(1),
        (Shape::Nullable(item_type), value) => {
            out.push(0);
            return item_type.write(value, out);
        }
        (Shape::Object, Value::Null) => {
            out.push(1);
            out.extend_from_slice(&factory_id.to_be_bytes());
            out.extend_from_slice(&class_id.to_be_bytes());
        }
        (Shape::Object, value) => {
            let object = nested(value)?;
            out.push(0);
            out.extend_from_slice(&object.class.factory_id.to_be_bytes());
            out.extend_from_slice(&object.class.class_id.to_be_bytes());
            return paste(&object, out).map_err(|_| Unfit);
        }
        (Shape::Row(item_type), Value::Array(items)) => {
            write_count(items.len(), out)?;
            return items.iter().try_for_each(|item| item_type.write(item, out));
        }
        (Shape::Scattered(item_type), Value::Array(items)) => {
            write_count(items.len(), out)?;
            return write_scattered(items, out, |item, out| item_type.write(item, out));
        }
        (Shape::Objects, Value::Array(items)) => {
            let objects = items.iter().map(nested).collect::<Result<Vec<_>, _>>()?;
            let class = |object: &Object<'_>| (object.class.factory_id, object.class.class_id);
            // All objects of an array must have the same class.
            let (factory_id, class_id) = objects.first().map_or(field.nested, class);
            if objects.iter().any(|object| class(object) != (factory_id, class_id)) {
                return Err(Unfit);
            }
            write_count(items.len(), out)?;
            out.extend_from_slice(&factory_id.to_be_bytes());
            out.extend_from_slice(&class_id.to_be_bytes());
            return write_scattered(&objects, out, |object, out| paste(object, out).map_err(|_| Unfit));
        }
        (Shape::Objects, Value::Null) => {
            for number in [-1, factory_id, class_id] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        (Shape::Row(_) | Shape::Scattered(_), Value::Null) => out.extend_from_slice(&(-1i32).to_be_bytes()),
        (Shape::Row(_) | Shape::Scattered(_) | Shape::Objects, _) => return Err(Unfit),
    }
    Ok(())
}

fn write_scattered<T>(
    items: &[T],
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let positions_at = out.len();
    out.resize(positions_at + items.len() * 4, 0);
    for (number, item) in items.iter().enumerate() {
        put_position(positions_at + number * 4, out)?;
        write(item, out)?;
    }
    Ok(())
}

/// The object of a value, which must be a Portable.
fn nested<'a>(value: &'a Value<'_>) -> Result<Object<'a>, Unfit> {
    let Value::Object(blob) = value else { return Err(Unfit) };
    match (type_id(blob), blob.get(BLOB_HEADER_BYTES..)) {
        (Ok(TypeId::PORTABLE), Some(payload)) => Object::open(Span::new(payload), 0).map_err(|_| Unfit),
        _ => Err(Unfit),
    }
}
