//! Derives random schemas, classes, values and paths from the bytes of the input.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use filbert_data::compact::{self, Schema, SchemaId, SchemaSource};
use filbert_data::portable::{self, ClassDefinition, FieldDefinition};
use filbert_data::{FieldType, Path, Step, TypeId, Value};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// The bytes that are left of the input.
pub type Draw<'a> = Unstructured<'a>;

const FIELDS_MAX: usize = 8;
const DEPTH_MAX: usize = 3;

/// The schemas of the objects of one input.
#[derive(Clone, Default)]
pub struct Schemas(Arc<Mutex<HashMap<SchemaId, Arc<Schema>>>>);

impl Schemas {
    /// Adds a schema.
    pub fn announce(&self, schema: &Schema) {
        self.0.lock().expect("nobody panics with the lock").insert(schema.fingerprint(), Arc::new(schema.clone()));
    }
}

impl SchemaSource for Schemas {
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>> {
        self.0.lock().expect("nobody panics with the lock").get(&id).cloned()
    }
}

/// A blob of this type.
pub fn blob(type_id: TypeId, payload: &[u8]) -> Vec<u8> {
    [&[0; 4], &type_id.0.to_be_bytes(), payload].concat()
}

/// All bytes that are left.
pub fn rest<'a>(input: &mut Draw<'a>) -> &'a [u8] {
    input.bytes(input.len()).unwrap_or_default()
}

/// All bytes that are left, as text.
pub fn text(input: &mut Draw<'_>) -> String {
    String::from_utf8_lossy(rest(input)).into_owned()
}

/// A type id that is known, or any.
pub fn type_id(input: &mut Draw<'_>) -> Result<TypeId> {
    Ok(TypeId(match input.int_in_range(0..=63u8)? {
        number @ 0..=55 => -i32::from(number),
        56 => -100,
        57 => -120,
        58..=61 => -130,
        _ => input.arbitrary()?,
    }))
}

/// A number that is close to a limit, or any.
pub fn number(input: &mut Draw<'_>) -> Result<i32> {
    Ok(match input.int_in_range(0..=7u8)? {
        0..=2 => i32::from(input.arbitrary::<i8>()?),
        3 => i32::MAX,
        4 => i32::MIN,
        5 => 0xffff,
        6 => i32::from(input.arbitrary::<i16>()?),
        _ => input.arbitrary()?,
    })
}

fn name(input: &mut Draw<'_>) -> Result<String> {
    let known = ["a", "b", "c", "d", "this", "__key", "x.y", "ä€", "any", "[0]", ""];
    Ok(match input.int_in_range(0..=15usize)? {
        at @ 0..=10 => known[at].to_owned(),
        _ => input.bytes(1)?.iter().map(|byte| char::from(*byte)).collect(),
    })
}

/// Distinct names, each with a drawn value.
fn named<T>(input: &mut Draw<'_>, draw: impl Fn(&mut Draw<'_>) -> Result<T>) -> Result<Vec<(String, T)>> {
    let mut fields: Vec<(String, T)> = Vec::new();
    for _ in 0..input.int_in_range(0..=FIELDS_MAX)? {
        let (name, of) = (name(input)?, draw(input)?);
        if fields.iter().all(|(other, _)| *other != name) {
            fields.push((name, of));
        }
    }
    Ok(fields)
}

/// The fields of a Compact class.
pub fn compact_kinds(input: &mut Draw<'_>) -> Result<Vec<(String, compact::FieldKind)>> {
    named(input, |input| {
        let kind = compact::FieldKind::try_from(input.int_in_range(0..=46)?);
        Ok(kind.unwrap_or(compact::FieldKind::Compact))
    })
}

/// A Portable class.
pub fn portable_class(input: &mut Draw<'_>) -> Result<ClassDefinition> {
    let fields = named(input, |input| {
        let kind = portable::FieldKind::of(input.int_in_range(0..=29)?);
        Ok(kind.unwrap_or(portable::FieldKind::Portable))
    })?;
    // Names in this format consist of bytes.
    let fields = fields.into_iter().filter(|(name, _)| name.is_ascii());
    let fields = fields.map(|(name, kind)| FieldDefinition { name, kind, nested: (0, 0) });
    Ok(ClassDefinition { factory_id: 1, class_id: 2, version: number(input)?, fields: fields.collect() })
}

/// Names and types of fields.
pub fn fields(input: &mut Draw<'_>) -> Result<Vec<(String, FieldType)>> {
    named(input, |input| field_type(input, DEPTH_MAX))
}

fn field_type(input: &mut Draw<'_>, depth_left: usize) -> Result<FieldType> {
    let scalars = values_types();
    Ok(match (input.int_in_range(0..=2u8)?, depth_left.checked_sub(1)) {
        (0, Some(depth_left)) => FieldType::Array(Box::new(field_type(input, depth_left)?)),
        _ => input.choose(&scalars)?.clone(),
    })
}

/// All types but arrays.
pub fn values_types() -> Vec<FieldType> {
    vec![
        FieldType::Boolean,
        FieldType::TinyInt,
        FieldType::SmallInt,
        FieldType::Integer,
        FieldType::BigInt,
        FieldType::Decimal(None),
        FieldType::Decimal(Some((20, 3))),
        FieldType::Real,
        FieldType::Double,
        FieldType::Varchar,
        FieldType::Char,
        FieldType::Date,
        FieldType::Time,
        FieldType::Timestamp,
        FieldType::TimestampTz,
        FieldType::Uuid,
        FieldType::Json,
        FieldType::Object,
        FieldType::Binary,
        FieldType::Interval,
    ]
}

/// A value of each type.
pub fn values(
    input: &mut Draw<'_>,
    types: impl Iterator<Item = FieldType>,
    schemas: &Schemas,
) -> Result<Vec<Value<'static>>> {
    types.map(|field_type| value(input, &field_type, schemas, DEPTH_MAX)).collect()
}

fn value(input: &mut Draw<'_>, of: &FieldType, schemas: &Schemas, depth_left: usize) -> Result<Value<'static>> {
    if input.ratio(1, 12)? {
        return Ok(Value::Null);
    }
    Ok(match of {
        FieldType::Boolean => Value::Boolean(input.arbitrary()?),
        FieldType::TinyInt => Value::Int8(input.arbitrary()?),
        FieldType::SmallInt => Value::Int16(input.arbitrary()?),
        FieldType::Integer => Value::Int32(number(input)?),
        FieldType::BigInt => Value::Int64(input.arbitrary()?),
        FieldType::Real => Value::Float32(input.arbitrary()?),
        FieldType::Double => Value::Float64(input.arbitrary()?),
        FieldType::Varchar | FieldType::Json => {
            Value::Text(String::from_utf8_lossy(few_bytes(input)?).into_owned().into())
        }
        FieldType::Interval => Value::Text(format!("{} days", number(input)?).into()),
        FieldType::Char => Value::Text(char::from(input.arbitrary::<u8>()?).to_string().into()),
        FieldType::Binary => Value::Bytes(few_bytes(input)?.to_vec().into()),
        FieldType::Decimal(_) => {
            let digits = few_bytes(input)?;
            let length = u32::try_from(digits.len()).unwrap_or_default().to_be_bytes();
            read(TypeId::BIG_DECIMAL, &[&length, digits, &number(input)?.to_be_bytes()].concat())
        }
        FieldType::Uuid => read(TypeId::UUID, &input.arbitrary::<[u8; 16]>()?),
        FieldType::Date => read(TypeId::LOCAL_DATE, &date(input)?),
        FieldType::Time => read(TypeId::LOCAL_TIME, &time(input)?),
        FieldType::Timestamp => read(TypeId::LOCAL_DATE_TIME, &[date(input)?, time(input)?].concat()),
        FieldType::TimestampTz => {
            let offset = input.int_in_range(-86_399..=86_399i32)?.to_be_bytes().to_vec();
            read(TypeId::OFFSET_DATE_TIME, &[date(input)?, time(input)?, offset].concat())
        }
        FieldType::Object => object(input, schemas, depth_left)?,
        FieldType::Array(item) => {
            let count = input.int_in_range(0..=4usize)?;
            let items = (0..count).map(|_| value(input, item, schemas, depth_left));
            Value::Array(items.collect::<Result<_>>()?)
        }
    })
}

fn few_bytes<'a>(input: &mut Draw<'a>) -> Result<&'a [u8]> {
    let count = input.int_in_range(0..=12usize)?.min(input.len());
    input.bytes(count)
}

fn read(type_id: TypeId, payload: &[u8]) -> Value<'static> {
    Value::from_blob(&blob(type_id, payload)).map_or(Value::Null, Value::into_owned)
}

fn date(input: &mut Draw<'_>) -> Result<Vec<u8>> {
    let year = match input.ratio(1, 2)? {
        true => input.int_in_range(1900..=2100i32)?,
        false => input.int_in_range(-262_143..=262_142i32)?,
    };
    let (month, day) = (input.int_in_range(1..=12u8)?, input.int_in_range(1..=31u8)?);
    Ok([&year.to_be_bytes()[..], &[month, day]].concat())
}

fn time(input: &mut Draw<'_>) -> Result<Vec<u8>> {
    let nanosecond = input.int_in_range(0..=999_999_999i32)?;
    let hour_minute_second =
        [input.int_in_range(0..=23u8)?, input.int_in_range(0..=59u8)?, input.int_in_range(0..=59u8)?];
    Ok([&hour_minute_second[..], &nanosecond.to_be_bytes()].concat())
}

/// An object of a class of its own, in one of the formats.
fn object(input: &mut Draw<'_>, schemas: &Schemas, depth_left: usize) -> Result<Value<'static>> {
    let Some(depth_left) = depth_left.checked_sub(1) else { return Ok(Value::Null) };
    let written = match input.arbitrary::<bool>()? {
        true => {
            let kinds = compact_kinds(input)?;
            let writer = compact::Writer::of_kinds("nested", kinds.clone());
            schemas.announce(writer.schema());
            let values = kinds.iter().map(|(_, kind)| value(input, &kind.field_type(), schemas, depth_left));
            writer.write(&values.collect::<Result<Vec<_>>>()?)
        }
        false => {
            let class = portable_class(input)?;
            let fields = class.fields.iter();
            let values = fields.map(|field| value(input, &field.kind.field_type(), schemas, depth_left));
            let values = values.collect::<Result<Vec<_>>>()?;
            portable::Writer::new(class).and_then(|writer| writer.write(&values))
        }
    };
    Ok(written.map_or(Value::Null, Value::from))
}

/// Paths of drawn steps.
pub fn paths(input: &mut Draw<'_>) -> Result<Vec<Path>> {
    let path = |input: &mut Draw<'_>| {
        let count = input.int_in_range(1..=3usize)?;
        let steps = (0..count).map(|_| {
            Ok(match input.int_in_range(0..=3u8)? {
                0 => Step::Index(input.int_in_range(0..=3)?),
                1 => Step::Any,
                _ => Step::Field(name(input)?.into()),
            })
        });
        steps.collect::<Result<_>>().map(Path::of)
    };
    let count = input.int_in_range(0..=4usize)?;
    (0..count).map(|_| path(input)).collect()
}
