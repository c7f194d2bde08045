//! Reads fields of entries for queries, columns and indexes, directly from the stored bytes,
//! without creating objects.
//!
//! A [`FieldReader`] is created once per query, column set or index, and then reads many entries.
//! The type id of the key or the value selects the format:
//!
//! ```text
//! key, value --> type id --> json | portable | compact | ids | lists | scalars
//!            --> visit(field, value)
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use crate::compact::SchemaSource;
use crate::ids::IdsLayout;
use crate::within::in_items;
use crate::{
    BLOB_HEADER_BYTES, DataError, FieldPath, Input, Path, Side, TypeId, Value, compact, ids, json, plain, portable,
    type_id,
};

/// The information that a reader needs besides the bytes.
#[derive(Clone)]
pub struct Formats {
    /// The Compact schemas.
    pub schemas: Arc<dyn SchemaSource>,
    /// The layout of keys that are IdentifiedDataSerializable.
    pub key_layout: Option<Arc<IdsLayout>>,
    /// The layout of values that are IdentifiedDataSerializable.
    pub value_layout: Option<Arc<IdsLayout>>,
}

/// Reads a fixed set of fields from entries. A reader can be shared between threads: reading takes
/// no lock, and numbers and texts need no allocation.
///
/// A missing field is null: the object has no such field, the type of the value has no fields, or
/// the array is too short. The value itself is read as by [`Value::from_blob`], with one
/// difference: arrays and lists remain blobs, so that clients get the type that they stored.
/// `[any]` finds their items.
pub struct FieldReader {
    fields: Vec<FieldPath>,
    key: Half,
    value: Half,
}

impl FieldReader {
    /// A reader of these fields. The number of a field is its index in the list.
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

    /// Visits every field exactly once with its number, in any order. `key` and `value` are blobs.
    /// A blob without requested fields is not read and may be empty.
    ///
    /// # Errors
    ///
    /// A blob is broken where it is read, or a Compact schema or the layout of a class is missing.
    /// Some fields may already have been visited.
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

    /// Reads only the first field; null if there is no field.
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

/// The fields of keys, or the fields of values.
struct Half {
    /// Whether the first field of this half is the key or the value itself.
    first_is_itself: bool,
    /// The numbers of the fields that are the key or the value itself.
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

/// The value of a blob as a whole. Objects, arrays and lists remain blobs.
#[inline]
fn itself(blob: &[u8]) -> Result<Value<'_>, DataError> {
    let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
    let value = plain::read_payload(&mut Input::new(type_id(blob)?, payload))?;
    Ok(value.unwrap_or(Value::Object(Cow::Borrowed(blob))))
}
