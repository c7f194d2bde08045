//! Descriptions of Compact objects: type, fields, and JSON text.

use std::sync::Arc;

use super::object::{Items, Object, Shape, input, schema_id};
use super::schema::{FieldKind, FieldLocation, Schema};
use crate::items::broken;
use crate::json_text::JsonText;
use crate::{DataError, FieldType, SchemaSource, TypeId, Value};

/// The maximum nesting depth of an object that is shown. Deeper nesting is an error.
const DEPTH_MAX: usize = 256;

/// The schema of the object at the front of `payload`, which is a blob without its header: its
/// type's name and fields.
///
/// # Errors
///
/// The schema is unknown, or `payload` has fewer than 8 bytes.
pub fn schema_of(payload: &[u8], schemas: &dyn SchemaSource) -> Result<Arc<Schema>, DataError> {
    let id = schema_id(payload)?;
    schemas.schema(id).ok_or(DataError::UnknownSchema(id))
}

/// The number of bytes of the object at the front of `payload`. Other bytes may follow: lists do
/// not contain the lengths of their objects.
///
/// # Errors
///
/// The schema is unknown, or the object ends too early.
pub fn object_bytes(payload: &[u8], schemas: &dyn SchemaSource) -> Result<usize, DataError> {
    Ok(Object::open(payload, schema_of(payload, schemas)?.extent())?.bytes)
}

/// Names and types of the fields of the object at the front of `payload`, sorted by name.
///
/// # Errors
///
/// As [`schema_of`].
pub fn fields_of(payload: &[u8], schemas: &dyn SchemaSource) -> Result<Vec<(String, FieldType)>, DataError> {
    let schema = schema_of(payload, schemas)?;
    Ok(schema.fields().iter().map(|field| (field.name.clone(), field.kind.field_type())).collect())
}

/// The object at the front of `payload` as JSON text: decimals as numbers, dates and times as texts
/// in ISO 8601.
///
/// # Errors
///
/// A schema is unknown, or the object is broken.
pub fn to_json(payload: &[u8], schemas: &dyn SchemaSource) -> Result<String, DataError> {
    let mut json = JsonText::new(TypeId::COMPACT, payload.len());
    write_object(payload, schemas, DEPTH_MAX, &mut json)?;
    Ok(json.finish())
}

impl FieldKind {
    /// The SQL type of fields of this kind.
    pub fn field_type(self) -> FieldType {
        let array = |item: FieldKind| FieldType::Array(Box::new(item.field_type()));
        match self {
            FieldKind::Boolean | FieldKind::NullableBoolean => FieldType::Boolean,
            FieldKind::Int8 | FieldKind::NullableInt8 => FieldType::TinyInt,
            FieldKind::Int16 | FieldKind::NullableInt16 => FieldType::SmallInt,
            FieldKind::Int32 | FieldKind::NullableInt32 => FieldType::Integer,
            FieldKind::Int64 | FieldKind::NullableInt64 => FieldType::BigInt,
            FieldKind::Float32 | FieldKind::NullableFloat32 => FieldType::Real,
            FieldKind::Float64 | FieldKind::NullableFloat64 => FieldType::Double,
            FieldKind::Char => FieldType::Char,
            FieldKind::String => FieldType::Varchar,
            FieldKind::Decimal => FieldType::Decimal(None),
            FieldKind::Time => FieldType::Time,
            FieldKind::Date => FieldType::Date,
            FieldKind::Timestamp => FieldType::Timestamp,
            FieldKind::TimestampWithTimezone => FieldType::TimestampTz,
            FieldKind::NotAvailable | FieldKind::Compact | FieldKind::Portable => FieldType::Object,
            FieldKind::ArrayOfBoolean | FieldKind::ArrayOfNullableBoolean => array(FieldKind::Boolean),
            FieldKind::ArrayOfInt8 | FieldKind::ArrayOfNullableInt8 => array(FieldKind::Int8),
            FieldKind::ArrayOfInt16 | FieldKind::ArrayOfNullableInt16 => array(FieldKind::Int16),
            FieldKind::ArrayOfInt32 | FieldKind::ArrayOfNullableInt32 => array(FieldKind::Int32),
            FieldKind::ArrayOfInt64 | FieldKind::ArrayOfNullableInt64 => array(FieldKind::Int64),
            FieldKind::ArrayOfFloat32 | FieldKind::ArrayOfNullableFloat32 => array(FieldKind::Float32),
            FieldKind::ArrayOfFloat64 | FieldKind::ArrayOfNullableFloat64 => array(FieldKind::Float64),
            FieldKind::ArrayOfChar => array(FieldKind::Char),
            FieldKind::ArrayOfString => array(FieldKind::String),
            FieldKind::ArrayOfDecimal => array(FieldKind::Decimal),
            FieldKind::ArrayOfTime => array(FieldKind::Time),
            FieldKind::ArrayOfDate => array(FieldKind::Date),
            FieldKind::ArrayOfTimestamp => array(FieldKind::Timestamp),
            FieldKind::ArrayOfTimestampWithTimezone => array(FieldKind::TimestampWithTimezone),
            FieldKind::ArrayOfCompact | FieldKind::ArrayOfPortable => array(FieldKind::Compact),
        }
    }
}

fn write_object(
    payload: &[u8],
    schemas: &dyn SchemaSource,
    depth_left: usize,
    json: &mut JsonText,
) -> Result<(), DataError> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err(broken(&input(payload), "more than 256 nested objects", "fewer"));
    };
    json.charge(1)?;
    let schema = schema_of(payload, schemas)?;
    let object = Object::open(payload, schema.extent())?;
    let fields: Vec<_> = schema.fields().iter().zip(schema.locations()).collect();
    json.list(['{', '}'], fields.len(), |json, number| {
        let Some((field, location)) = fields.get(number) else { return Ok(()) };
        json.name(&field.name);
        let Some(bytes) = object.field(**location)? else { return json.value(&Value::Null) };
        match (Shape::of(field.kind), **location) {
            (_, FieldLocation::Bit(_, bit)) => {
                json.value(&Value::Boolean(bytes.first().is_some_and(|byte| byte >> bit & 1 == 1)))
            }
            (Shape::One(item_type), _) => json.value(&item_type.read(&mut input(bytes))?),
            (Shape::Object, _) => write_object(bytes, schemas, depth_left, json),
            (shape, _) => {
                let items = Items::open(shape, bytes)?;
                json.list(['[', ']'], items.len(), |json, number| match items.object(number)? {
                    Some(object) => write_object(object, schemas, depth_left, json),
                    None => json.value(&items.read(number, schemas)?),
                })
            }
        }
    })
}
