//! IdentifiedDataSerializable: objects with custom serialization, which contain no names or types
//! of fields. With a declared layout of the class, fields can be read and objects can be written.
//!
//! # The layout
//!
//! ```text
//! ┌──────────┬─────────────┬───────────┬──────────────────┬────────────────────────────────┐
//! │ flags u8 │ factory i32 │ class i32 │ version, 2 bytes,│ fields one after the other, as │
//! │ bit 0: 1 │             │           │ if flags' bit 1  │ Java's ObjectDataOutput has it │
//! └──────────┴─────────────┴───────────┴──────────────────┴────────────────────────────────┘
//! ```
//!
//! | declared type | written by | bytes |
//! |---|---|---|
//! | `BOOLEAN`, `TINYINT` | `writeBoolean`, `writeByte` | 1 |
//! | `SMALLINT`, `CHAR` | `writeShort`, `writeChar` | 2 |
//! | `INTEGER`, `REAL` | `writeInt`, `writeFloat` | 4 |
//! | `BIGINT`, `DOUBLE` | `writeLong`, `writeDouble` | 8 |
//! | `VARCHAR` | `writeString` | length `i32`, UTF-8; -1 is null |
//! | an array of these | `writeIntArray` and so on | number `i32`, the items; -1 is null |
//! | all others | `writeObject` | type id `i32`, 0 for null; the payload of this type |
//!
//! All numbers are big-endian. The source of the format is Hazelcast's Java code.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compact::SchemaSource;
use crate::items::{ItemType, broken, write_count};
use crate::plain::Items;
use crate::within::in_value;
use crate::{BLOB_HEADER_BYTES, DataError, FieldType, Path, Step, ToBlob, TypeId, Value};

/// The layout of an IdentifiedDataSerializable class: its fields, in the order of writing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdsLayout {
    /// The factory's id.
    pub factory_id: i32,
    /// The class's id within the factory.
    pub class_id: i32,
    /// Name and type of each field, in the order of writing.
    pub fields: Vec<(String, FieldType)>,
}

/// The flag of an object with numbers for its factory and its class, instead of a class name.
const IDENTIFIED: u8 = 1;
/// The flag of an object with a version after its class.
const VERSIONED: u8 = 2;

/// The encoding of a field.
#[derive(Clone, Copy)]
enum FieldEncoding {
    One(ItemType),
    Row(ItemType),
    Object,
}

impl FieldEncoding {
    fn of(field_type: &FieldType) -> FieldEncoding {
        if let FieldType::Array(item) = field_type {
            return item_type(item).map_or(FieldEncoding::Object, FieldEncoding::Row);
        }
        item_type(field_type).map_or(FieldEncoding::Object, FieldEncoding::One)
    }
}

fn item_type(field_type: &FieldType) -> Option<ItemType> {
    Some(match field_type {
        FieldType::Boolean => ItemType::Boolean,
        FieldType::TinyInt => ItemType::Int8,
        FieldType::SmallInt => ItemType::Int16,
        FieldType::Integer => ItemType::Int32,
        FieldType::BigInt => ItemType::Int64,
        FieldType::Real => ItemType::Float32,
        FieldType::Double => ItemType::Float64,
        FieldType::Varchar => ItemType::Text,
        FieldType::Char => ItemType::Char,
        _ => return None,
    })
}

/// Reads a fixed set of fields from objects of one layout.
pub(crate) struct Reader {
    factory_id: i32,
    class_id: i32,
    /// The fields of the layout up to the last requested field.
    fields: Vec<Field>,
    /// Whether the last of these fields is the last field of the layout.
    to_end: bool,
    /// The numbers of the paths to fields that are not in the layout.
    absent: Vec<usize>,
    first: Option<usize>,
    schemas: Arc<dyn SchemaSource>,
}

struct Field {
    kind: FieldEncoding,
    /// The paths that begin with this field: their numbers and remaining steps.
    requested: Vec<(usize, Box<[Step]>)>,
}

impl Reader {
    /// A reader of these paths. Each path has a number, which is passed to `visit` with the value.
    pub(crate) fn new(layout: &IdsLayout, paths: &[(usize, Path)], schemas: Arc<dyn SchemaSource>) -> Reader {
        let mut fields: Vec<Field> =
            layout.fields.iter().map(|(_, of)| Field { kind: FieldEncoding::of(of), requested: Vec::new() }).collect();
        let mut absent = Vec::new();
        let mut needed = 0;
        for (number, path) in paths {
            let found = match path.steps().split_first() {
                Some((Step::Field(name), rest)) => {
                    layout.fields.iter().position(|(of, _)| **of == **name).map(|at| (at, rest))
                }
                _ => None,
            };
            match found.and_then(|(at, rest)| Some((at, rest, fields.get_mut(at)?))) {
                Some((at, rest, field)) => {
                    needed = needed.max(at + 1);
                    field.requested.push((*number, rest.into()));
                }
                None => absent.push(*number),
            }
        }
        let to_end = needed == fields.len();
        fields.truncate(needed);
        let first = paths.first().map(|(number, _)| *number);
        Reader { factory_id: layout.factory_id, class_id: layout.class_id, fields, to_end, absent, first, schemas }
    }

    /// Visits each path once. A field that is not in the layout is null. `payload` is the blob
    /// without its header.
    ///
    /// # Errors
    ///
    /// The object is of another class, or up to the last requested field the bytes are broken or a
    /// field has an unknown length.
    pub(crate) fn read<'a>(&self, payload: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for number in &self.absent {
            visit(*number, Value::Null);
        }
        let mut items = Items::of_payload(TypeId::IDENTIFIED, payload, Some(&*self.schemas));
        self.open(&mut items)?;
        for (at, field) in self.fields.iter().enumerate() {
            let last = self.to_end && at + 1 == self.fields.len();
            let value = field.kind.read(&mut items, last)?;
            if let Some(((number, steps), others)) = field.requested.split_last() {
                for (number, steps) in others {
                    visit(*number, in_value(value.clone(), steps, &*self.schemas)?);
                }
                visit(*number, in_value(value, steps, &*self.schemas)?);
            }
        }
        Ok(())
    }

    /// Reads only the first path; null if there is no path.
    ///
    /// # Errors
    ///
    /// As [`Reader::read`].
    pub(crate) fn read_first<'a>(&self, payload: &'a [u8]) -> Result<Value<'a>, DataError> {
        let mut first = Value::Null;
        self.read(payload, &mut |number, value| {
            if Some(number) == self.first {
                first = value;
            }
        })?;
        Ok(first)
    }

    /// Reads the bytes before the fields: flags, factory, class and version.
    fn open(&self, items: &mut Items<'_, '_>) -> Result<(), DataError> {
        let [flags] = items.input.array()?;
        if flags & IDENTIFIED == 0 {
            return Err(broken(&items.input, "a class by its name", "a factory and a class by their numbers"));
        }
        let (factory_id, class_id) = (items.input.i32()?, items.input.i32()?);
        if (factory_id, class_id) != (self.factory_id, self.class_id) {
            return Err(DataError::WrongClass {
                found: (factory_id, class_id),
                expected: (self.factory_id, self.class_id),
            });
        }
        if flags & VERSIONED != 0 {
            items.input.take(2)?;
        }
        Ok(())
    }
}

impl FieldEncoding {
    /// Reads the next field. The `last` field of an object may be of a type of unknown length.
    fn read<'a>(self, items: &mut Items<'a, '_>, last: bool) -> Result<Value<'a>, DataError> {
        match self {
            FieldEncoding::One(item_type) => item_type.read(&mut items.input),
            FieldEncoding::Row(item_type) => item_type.read_array(&mut items.input),
            FieldEncoding::Object => {
                let rest = items.rest();
                let found = items.object()?;
                let type_id = items.input.enter(TypeId::IDENTIFIED);
                match found {
                    Some(value) => Ok(value),
                    None if last => Ok(Value::Object(Cow::Owned([&[0; 4], rest].concat()))),
                    None => {
                        Err(broken(&items.input, format!("a field of {type_id}"), "a field that tells where it ends"))
                    }
                }
            }
        }
    }
}

/// Appends an object of this layout to `out`, as a blob with its header. The values are in the
/// order of the layout's fields, and are converted to the declared types.
///
/// # Errors
///
/// The number of values differs from the number of fields, a value cannot be converted, or a value
/// is null and its type does not allow null; `out` may then contain a part of the object.
pub fn write(layout: &IdsLayout, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), DataError> {
    if values.len() != layout.fields.len() {
        return Err(DataError::WrongCount { values: values.len(), fields: layout.fields.len() });
    }
    if !out.is_empty() {
        // The positions of nested Portables count from the start of the blob.
        let mut blob = Vec::new();
        write(layout, values, &mut blob)?;
        out.extend_from_slice(&blob);
        return Ok(());
    }
    out.reserve(BLOB_HEADER_BYTES + 9);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&TypeId::IDENTIFIED.0.to_be_bytes());
    out.push(IDENTIFIED);
    out.extend_from_slice(&layout.factory_id.to_be_bytes());
    out.extend_from_slice(&layout.class_id.to_be_bytes());
    for ((name, field_type), value) in layout.fields.iter().zip(values) {
        let converted = value.clone().convert(field_type)?;
        let written = match (FieldEncoding::of(field_type), &converted) {
            (FieldEncoding::Object, value) => {
                value.write_object(out)?;
                Ok(())
            }
            (FieldEncoding::One(item_type), value) => item_type.write(value, out),
            (FieldEncoding::Row(_), Value::Null) => {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                Ok(())
            }
            (FieldEncoding::Row(item_type), Value::Array(items)) => write_count(items.len(), out)
                .and_then(|()| items.iter().try_for_each(|item| item_type.write(item, out))),
            (FieldEncoding::Row(_), _) => Err(crate::items::Unfit),
        };
        written.map_err(|unfit| unfit.of(name, value, field_type))?;
    }
    Ok(())
}
