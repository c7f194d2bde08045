//! IdentifiedDataSerializable: objects that write themselves, without names or types. Who knows what the class writes
//! can say so in a layout, and then its fields are read, and objects written.
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

use crate::fields::in_value;
use crate::parts::{Part, broken, write_count};
use crate::plain::Items;
use crate::{BLOB_HEADER_BYTES, DataError, FieldType, IdsLayout, Path, SchemaSource, Step, ToBlob, TypeId, Value};

/// The flag that an object says its factory and class by numbers.
const IDENTIFIED: u8 = 1;
/// The flag that a version follows the class.
const VERSIONED: u8 = 2;

/// How a field is written.
#[derive(Clone, Copy)]
enum Kind {
    One(Part),
    Row(Part),
    Object,
}

impl Kind {
    fn of(field_type: &FieldType) -> Kind {
        if let FieldType::Array(item) = field_type {
            return part(item).map_or(Kind::Object, Kind::Row);
        }
        part(field_type).map_or(Kind::Object, Kind::One)
    }
}

fn part(field_type: &FieldType) -> Option<Part> {
    Some(match field_type {
        FieldType::Boolean => Part::Boolean,
        FieldType::TinyInt => Part::Int8,
        FieldType::SmallInt => Part::Int16,
        FieldType::Integer => Part::Int32,
        FieldType::BigInt => Part::Int64,
        FieldType::Real => Part::Float32,
        FieldType::Double => Part::Float64,
        FieldType::Varchar => Part::Text,
        FieldType::Char => Part::Char,
        _ => return None,
    })
}

/// Reads a fixed set of fields from objects of one layout.
pub(crate) struct Reader {
    factory_id: i32,
    class_id: i32,
    /// The fields up to the last that is asked for.
    fields: Vec<Field>,
    /// Whether the last of them is the last of the layout.
    to_end: bool,
    /// Numbers of the paths that the layout does not have.
    absent: Vec<usize>,
    first: Option<usize>,
    schemas: Arc<dyn SchemaSource>,
}

struct Field {
    kind: Kind,
    /// The paths that begin here: their numbers, and how they go on.
    asked: Vec<(usize, Box<[Step]>)>,
}

impl Reader {
    /// A reader of these paths; each carries the number that its values are visited with.
    pub(crate) fn new(layout: &IdsLayout, paths: &[(usize, Path)], schemas: Arc<dyn SchemaSource>) -> Reader {
        let mut fields: Vec<Field> =
            layout.fields.iter().map(|(_, of)| Field { kind: Kind::of(of), asked: Vec::new() }).collect();
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
                    field.asked.push((*number, rest.into()));
                }
                None => absent.push(*number),
            }
        }
        let to_end = needed == fields.len();
        fields.truncate(needed);
        let first = paths.first().map(|(number, _)| *number);
        Reader { factory_id: layout.factory_id, class_id: layout.class_id, fields, to_end, absent, first, schemas }
    }

    /// Visits each path once; one that the layout does not have is null. `payload` is the blob without its header.
    ///
    /// # Errors
    ///
    /// The object is of another class, or the bytes are broken or cannot be told apart up to the last field asked for.
    pub(crate) fn read<'a>(&self, payload: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for number in &self.absent {
            visit(*number, Value::Null);
        }
        let mut items = Items::of_payload(TypeId::IDENTIFIED, payload, Some(&*self.schemas));
        self.open(&mut items)?;
        for (at, field) in self.fields.iter().enumerate() {
            let last = self.to_end && at + 1 == self.fields.len();
            let value = field.kind.read(&mut items, last)?;
            if let Some(((number, steps), others)) = field.asked.split_last() {
                for (number, steps) in others {
                    visit(*number, in_value(value.clone(), steps, &*self.schemas)?);
                }
                visit(*number, in_value(value, steps, &*self.schemas)?);
            }
        }
        Ok(())
    }

    /// The value of the first path alone; null if there is no path.
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

    /// Reads what stands before the fields.
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

impl Kind {
    /// Reads the field that is next; if it is the `last` of its object, it may be of a type that does not tell its end.
    fn read<'a>(self, items: &mut Items<'a, '_>, last: bool) -> Result<Value<'a>, DataError> {
        match self {
            Kind::One(part) => part.read(&mut items.input),
            Kind::Row(part) => part.read_array(&mut items.input),
            Kind::Object => {
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

/// Appends an object of this layout to `out`, as a blob with its header. The values are those of the layout's fields, in
/// their order; they are converted to the declared types.
///
/// # Errors
///
/// There are more or fewer values than fields, a value cannot be converted, or is null where the type has no null;
/// `out` may then hold a part of the object.
pub fn write(layout: &IdsLayout, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), DataError> {
    if values.len() != layout.fields.len() {
        return Err(DataError::WrongCount { values: values.len(), fields: layout.fields.len() });
    }
    if !out.is_empty() {
        // Portables within count their positions from the start of the blob.
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
        let written = match (Kind::of(field_type), &converted) {
            (Kind::Object, value) => {
                value.write_object(out)?;
                Ok(())
            }
            (Kind::One(part), value) => part.write(value, out),
            (Kind::Row(_), Value::Null) => {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                Ok(())
            }
            (Kind::Row(part), Value::Array(items)) => {
                write_count(items.len(), out).and_then(|()| items.iter().try_for_each(|item| part.write(item, out)))
            }
            (Kind::Row(_), _) => Err(crate::parts::Unfit),
        };
        written.map_err(|unfit| unfit.of(name, value, field_type))?;
    }
    Ok(())
}
