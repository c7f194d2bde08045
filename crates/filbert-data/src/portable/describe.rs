//! Descriptions of Portable objects: class, fields, and JSON text.

use super::kind::{FieldKind, Shape};
use super::object::{ClassId, Object, Span};
use crate::items::broken;
use crate::json_text::JsonText;
use crate::{DataError, FieldType, TypeId, Value};

/// The maximum nesting depth of an object that is shown. Deeper nesting is an error.
const DEPTH_MAX: usize = 256;

/// The class of an object; `payload` is a blob without its header.
///
/// # Errors
///
/// The object ends too early.
pub fn class_of(payload: &[u8]) -> Result<ClassId, DataError> {
    Ok(Object::open(Span::new(payload), 0)?.class)
}

/// Names and types of an object's fields, in the order of the class; `payload` is a blob without
/// its header.
///
/// # Errors
///
/// The object is broken.
pub fn fields_of(payload: &[u8]) -> Result<Vec<(String, FieldType)>, DataError> {
    let fields = definition_of(payload)?.fields.into_iter();
    Ok(fields.map(|field| (field.name, field.kind.field_type())).collect())
}

/// The class of an object with its fields, for writing objects of the same class; `payload` is a
/// blob without its header.
///
/// # Errors
///
/// The object is broken.
pub fn definition_of(payload: &[u8]) -> Result<super::ClassDefinition, DataError> {
    let object = Object::open(Span::new(payload), 0)?;
    let ClassId { factory_id, class_id, version } = object.class;
    let mut fields = Vec::with_capacity(object.count);
    let mut name_bytes_left = payload.len();
    for number in 0..object.count {
        let Some((name, at)) = object.name(number)? else { continue };
        name_bytes_left = name_bytes_left
            .checked_sub(name.len())
            .ok_or_else(|| broken(&object.span.input(0), "names that share bytes", "names one after the other"))?;
        let field = object.field(at)?;
        // A null object and an empty array also contain both ids.
        let behind = if field.kind == FieldKind::Portable { 1 } else { 4 };
        let mut nested = (0, 0);
        if matches!(field.kind, FieldKind::Portable | FieldKind::ArrayOfPortable) {
            let mut input = field.span.input(field.at + behind);
            nested = (input.i32()?, input.i32()?);
        }
        fields.push(super::FieldDefinition { name: name_text(name), kind: field.kind, nested });
    }
    Ok(super::ClassDefinition { factory_id, class_id, version, fields })
}

/// An object as JSON text: decimals as numbers, dates and times as texts in ISO 8601. Raw data is
/// left out. `payload` is a blob without its header.
///
/// # Errors
///
/// The object is broken.
pub fn to_json(payload: &[u8]) -> Result<String, DataError> {
    let mut json = JsonText::new(TypeId::PORTABLE, payload.len());
    write_object(&Object::open(Span::new(payload), 0)?, DEPTH_MAX, &mut json)?;
    Ok(json.finish())
}

/// The text of a name from its bytes in an object.
fn name_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

impl FieldKind {
    /// The SQL type of fields of this kind.
    pub fn field_type(self) -> FieldType {
        let array = |item: FieldKind| FieldType::Array(Box::new(item.field_type()));
        match self {
            FieldKind::Portable => FieldType::Object,
            FieldKind::Byte => FieldType::TinyInt,
            FieldKind::Boolean => FieldType::Boolean,
            FieldKind::Char => FieldType::Char,
            FieldKind::Short => FieldType::SmallInt,
            FieldKind::Int => FieldType::Integer,
            FieldKind::Long => FieldType::BigInt,
            FieldKind::Float => FieldType::Real,
            FieldKind::Double => FieldType::Double,
            FieldKind::String => FieldType::Varchar,
            FieldKind::Decimal => FieldType::Decimal(None),
            FieldKind::Time => FieldType::Time,
            FieldKind::Date => FieldType::Date,
            FieldKind::Timestamp => FieldType::Timestamp,
            FieldKind::TimestampWithTimezone => FieldType::TimestampTz,
            FieldKind::ArrayOfPortable => array(FieldKind::Portable),
            FieldKind::ArrayOfByte => array(FieldKind::Byte),
            FieldKind::ArrayOfBoolean => array(FieldKind::Boolean),
            FieldKind::ArrayOfChar => array(FieldKind::Char),
            FieldKind::ArrayOfShort => array(FieldKind::Short),
            FieldKind::ArrayOfInt => array(FieldKind::Int),
            FieldKind::ArrayOfLong => array(FieldKind::Long),
            FieldKind::ArrayOfFloat => array(FieldKind::Float),
            FieldKind::ArrayOfDouble => array(FieldKind::Double),
            FieldKind::ArrayOfString => array(FieldKind::String),
            FieldKind::ArrayOfDecimal => array(FieldKind::Decimal),
            FieldKind::ArrayOfTime => array(FieldKind::Time),
            FieldKind::ArrayOfDate => array(FieldKind::Date),
            FieldKind::ArrayOfTimestamp => array(FieldKind::Timestamp),
            FieldKind::ArrayOfTimestampWithTimezone => array(FieldKind::TimestampWithTimezone),
        }
    }
}

fn write_object(object: &Object<'_>, depth_left: usize, json: &mut JsonText) -> Result<(), DataError> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err(broken(&object.span.input(0), "more than 256 nested objects", "fewer"));
    };
    json.charge(1)?;
    // A field of the class that the object did not write has no name.
    let named = (0..object.count).filter_map(|number| object.name(number).transpose());
    let named = named.collect::<Result<Vec<_>, _>>()?;
    json.list(['{', '}'], named.len(), |json, number| {
        let Some((name, at)) = named.get(number).copied() else { return Ok(()) };
        json.charge(name.len())?;
        json.name(&name_text(name));
        let field = object.field(at)?;
        let value = match field.kind.shape() {
            Shape::One(item_type) => item_type.read(&mut field.span.input(field.at))?,
            Shape::Nullable(item_type) => {
                let mut input = field.span.input(field.at);
                if input.array()? == [0] { item_type.read(&mut input)? } else { Value::Null }
            }
            Shape::Object => match field.object()? {
                Some(object) => return write_object(&object, depth_left, json),
                None => Value::Null,
            },
            Shape::Row(_) => match field.items()? {
                Some(items) => items.read_all()?,
                None => Value::Null,
            },
            Shape::Scattered(_) | Shape::Objects => match field.items()? {
                Some(items) => {
                    return json.list(['[', ']'], items.len(), |json, number| match items.object(number)? {
                        Some(object) => write_object(&object, depth_left, json),
                        None => json.value(&items.read(number)?),
                    });
                }
                None => Value::Null,
            },
        };
        json.value(&value)
    })
}
