//! Reading fields of entries: what queries, columns and indexes look at, from the stored bytes and without objects.
//!
//! A [`FieldReader`] is made once per query, column set or index, and then reads entry after entry. It goes through
//! each half of an entry once, whatever the number of its fields:
//!
//! ```text
//! key, value --> format by type id --> json | portable | compact | ids | lists | scalars --> visit(field, value)
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compact::{Schema, SchemaId};
use crate::plain::{self, Items};
use crate::{
    BLOB_HEADER_BYTES, DataError, FieldPath, FieldType, Input, Path, Side, Step, TypeId, Value, compact, ids, json,
    portable, type_id,
};

/// Where Compact schemas are found.
pub trait SchemaSource: Send + Sync {
    /// The schema of an id, if it was announced.
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>>;
}

/// The layout of a class that writes itself as IdentifiedDataSerializable: what it writes, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdsLayout {
    /// The factory's id.
    pub factory_id: i32,
    /// The class's id within the factory.
    pub class_id: i32,
    /// Name and type of each item, in the order of writing.
    pub fields: Vec<(String, FieldType)>,
}

/// What a reader has to know besides the bytes.
#[derive(Clone)]
pub struct Formats {
    /// The Compact schemas.
    pub schemas: Arc<dyn SchemaSource>,
    /// How keys that are IdentifiedDataSerializable are laid out.
    pub key_layout: Option<Arc<IdsLayout>>,
    /// How values that are IdentifiedDataSerializable are laid out.
    pub value_layout: Option<Arc<IdsLayout>>,
}

/// Reads a fixed set of fields from entries. It is made to be shared: reading needs neither a lock nor, for numbers and
/// texts, an allocation.
///
/// A field that is not there is null, whether the object lacks it, the value is of a type without fields, or an array ends
/// before. The value itself is read as [`Value::from_blob`] does, with one difference: arrays and lists stay the blobs that
/// they are, so that clients get back what they put; `[any]` finds their items.
pub struct FieldReader {
    fields: Vec<FieldPath>,
    key: Half,
    value: Half,
}

impl FieldReader {
    /// A reader of these fields, which keep their places in the list as their numbers.
    pub fn new(fields: Vec<FieldPath>, formats: Formats) -> FieldReader {
        let of = |side| {
            let of_side = fields.iter().enumerate().filter(move |(_, field)| field.side == side);
            of_side.map(|(number, field)| (number, field.path.clone())).collect::<Vec<_>>()
        };
        let key = Half::new(of(Side::Key), &formats.schemas, formats.key_layout);
        let value = Half::new(of(Side::Value), &formats.schemas, formats.value_layout);
        FieldReader { fields, key, value }
    }

    /// The fields.
    pub fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    /// Visits every field exactly once with its number, in any order. `key` and `value` are blobs; one that no field is
    /// asked of is not looked at and may be empty.
    ///
    /// # Errors
    ///
    /// A blob is broken where it had to be read, or has a field asked of it without what is needed to read it: a
    /// Compact schema, the layout of a class. Some fields may have been visited then.
    #[inline]
    pub fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        visit: &mut dyn FnMut(usize, Value<'a>),
    ) -> Result<(), DataError> {
        self.key.read(key, visit)?;
        self.value.read(value, visit)
    }

    /// The first field alone; null if there is no field.
    ///
    /// # Errors
    ///
    /// As [`FieldReader::read`].
    #[inline]
    pub fn read_one<'a>(&self, key: &'a [u8], value: &'a [u8]) -> Result<Value<'a>, DataError> {
        match self.fields.first() {
            Some(FieldPath { side: Side::Key, .. }) => self.key.read_first(key),
            Some(FieldPath { side: Side::Value, .. }) => self.value.read_first(value),
            None => Ok(Value::Null),
        }
    }
}

/// The fields of keys or those of values.
struct Half {
    /// Whether the first field of this half is the value itself.
    first_is_itself: bool,
    /// Numbers of the fields that are the value itself.
    itself: Box<[usize]>,
    /// The other fields.
    paths: Box<[(usize, Path)]>,
    schemas: Arc<dyn SchemaSource>,
    portable: portable::Reader,
    compact: compact::Reader,
    json: json::Reader,
    ids: Option<ids::Reader>,
}

impl Half {
    fn new(fields: Vec<(usize, Path)>, schemas: &Arc<dyn SchemaSource>, layout: Option<Arc<IdsLayout>>) -> Half {
        let first_is_itself = fields.first().is_some_and(|(_, path)| path.is_itself());
        let itself = fields.iter().filter(|(_, path)| path.is_itself()).map(|(number, _)| *number).collect();
        let paths: Vec<_> = fields.into_iter().filter(|(_, path)| !path.is_itself()).collect();
        Half {
            first_is_itself,
            itself,
            schemas: Arc::clone(schemas),
            portable: portable::Reader::new(paths.clone()),
            compact: compact::Reader::new(paths.clone(), Arc::clone(schemas)),
            json: json::Reader::new(&paths),
            ids: layout.map(|layout| ids::Reader::new(&layout, &paths, Arc::clone(schemas))),
            paths: paths.into(),
        }
    }

    #[inline]
    fn read<'a>(&self, blob: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for number in &self.itself {
            visit(*number, itself(blob)?);
        }
        if self.paths.is_empty() { Ok(()) } else { self.read_paths(blob, visit) }
    }

    fn read_paths<'a>(&self, blob: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        let type_id = type_id(blob)?;
        let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
        match type_id {
            TypeId::PORTABLE => self.portable.read(payload, visit),
            TypeId::COMPACT => self.compact.read(payload, visit),
            TypeId::JSON => match Input::new(type_id, payload).text()? {
                Some(text) => self.json.read(text, visit),
                None => self.visit_nulls(visit),
            },
            TypeId::IDENTIFIED => self.layout()?.read(payload, visit),
            _ if plain::has_items(type_id) => {
                for (number, path) in &self.paths {
                    visit(*number, in_items(type_id, blob, path.steps(), &*self.schemas)?);
                }
                Ok(())
            }
            _ => self.visit_nulls(visit),
        }
    }

    #[inline]
    fn read_first<'a>(&self, blob: &'a [u8]) -> Result<Value<'a>, DataError> {
        if self.first_is_itself {
            return itself(blob);
        }
        let type_id = type_id(blob)?;
        let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
        match type_id {
            TypeId::PORTABLE => self.portable.read_first(payload),
            TypeId::COMPACT => self.compact.read_first(payload),
            TypeId::JSON => match Input::new(type_id, payload).text()? {
                Some(text) => self.json.read_first(text),
                None => Ok(Value::Null),
            },
            TypeId::IDENTIFIED => self.layout()?.read_first(payload),
            _ => match self.paths.first() {
                Some((_, path)) if plain::has_items(type_id) => in_items(type_id, blob, path.steps(), &*self.schemas),
                _ => Ok(Value::Null),
            },
        }
    }

    fn layout(&self) -> Result<&ids::Reader, DataError> {
        self.ids.as_ref().ok_or(DataError::NoLayout)
    }

    fn visit_nulls<'a>(&self, visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for (number, _) in &self.paths {
            visit(*number, Value::Null);
        }
        Ok(())
    }
}

/// The value that a blob is as a whole. What is made of parts stays a blob.
#[inline]
fn itself(blob: &[u8]) -> Result<Value<'_>, DataError> {
    let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
    let value = plain::read_payload(&mut Input::new(type_id(blob)?, payload))?;
    Ok(value.unwrap_or(Value::Object(Cow::Borrowed(blob))))
}

/// What a path finds in an array or a list.
fn in_items<'a>(
    type_id: TypeId,
    blob: &'a [u8],
    steps: &[Step],
    schemas: &dyn SchemaSource,
) -> Result<Value<'a>, DataError> {
    let mut items = Items::of(type_id, blob, Some(schemas));
    match steps.split_first() {
        None => Ok(Value::Object(Cow::Borrowed(blob))),
        Some((Step::Field(_), _)) => Ok(Value::Null),
        Some((Step::Index(index), rest)) => {
            let (mut at, mut found) = (0, Value::Null);
            items.each(|value| {
                if at == *index {
                    found = in_value(value, rest, schemas)?;
                }
                at += 1;
                Ok(at <= *index)
            })?;
            Ok(found)
        }
        Some((Step::Any, rest)) => {
            let flat = rest.contains(&Step::Any);
            let mut all = Vec::new();
            let there = items.each(|value| {
                match in_value(value, rest, schemas)? {
                    Value::Array(found) if flat => all.extend(found),
                    found => all.push(found),
                }
                Ok(true)
            })?;
            Ok(if there { Value::Array(all) } else { Value::Null })
        }
    }
}

/// What a path finds in an item that was read before.
pub(crate) fn in_value<'a>(
    value: Value<'a>,
    steps: &[Step],
    schemas: &dyn SchemaSource,
) -> Result<Value<'a>, DataError> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value) };
    match value {
        Value::Array(items) => match step {
            Step::Field(_) => Ok(Value::Null),
            Step::Index(index) => match items.into_iter().nth(*index) {
                Some(item) => in_value(item, rest, schemas),
                None => Ok(Value::Null),
            },
            Step::Any => {
                let flat = rest.contains(&Step::Any);
                let mut all = Vec::new();
                for item in items {
                    match in_value(item, rest, schemas)? {
                        Value::Array(found) if flat => all.extend(found),
                        found => all.push(found),
                    }
                }
                Ok(Value::Array(all))
            }
        },
        Value::Json(text) => json::find(&text, steps).map(Value::into_owned),
        Value::Object(blob) => {
            let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
            let path = Path::of(steps.to_vec());
            let mut found = Value::Null;
            let visit = &mut |_, value: Value<'_>| found = value.into_owned();
            match type_id(&blob)? {
                TypeId::PORTABLE => portable::read_fields(payload, &[(0, &path)], visit)?,
                TypeId::COMPACT => compact::read_fields(payload, schemas, &[(0, &path)], visit)?,
                _ => {}
            }
            Ok(found)
        }
        _ => Ok(Value::Null),
    }
}
