//! Finds fields in Compact objects by path, and remembers the locations of the fields in each
//! schema.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::object::{Items, Object, Shape, schema_id, whole};
use super::schema::{Extent, FieldKind, FieldLocation, Schema};
use crate::type_id::SchemaId;
use crate::{DataError, Path, SchemaSource, Step, Value};

/// The maximum number of schemas that one field of a [`Reader`] remembers. A type has one schema
/// for each of its versions in the map. Further schemas are looked up for each object, which is
/// slower but has no other effect.
const REMEMBERED_MAX: usize = 16;

/// Reads a fixed set of fields from Compact objects. It remembers the location of each field in
/// each schema: after the first object of a schema, a field needs no lookup by name and no lock.
pub struct Reader {
    paths: Vec<RememberedPath>,
    schemas: Arc<dyn SchemaSource>,
}

struct RememberedPath {
    number: usize,
    path: Path,
    /// The remembered locations, one item for each step.
    locations: Box<[Remembered]>,
}

impl Reader {
    /// A reader of these paths. Each path has a number, which is passed to `visit` with the value.
    pub fn new(paths: Vec<(usize, Path)>, schemas: Arc<dyn SchemaSource>) -> Reader {
        let paths = paths.into_iter().map(|(number, path)| {
            let locations = path.steps().iter().map(|_| Remembered::default()).collect();
            RememberedPath { number, path, locations }
        });
        Reader { paths: paths.collect(), schemas }
    }

    /// Visits each path once. A field that is not in the object's schema is null. `[any]` finds an
    /// array; several `[any]` steps find one flat array. `payload` is the blob without its header.
    ///
    /// # Errors
    ///
    /// A schema of an object on the path is unknown, or the bytes are broken where they are read.
    pub fn read<'a>(&self, payload: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for RememberedPath { number, path, locations } in &self.paths {
            visit(*number, Search { schemas: &*self.schemas }.find(payload, path.steps(), locations)?);
        }
        Ok(())
    }

    /// Reads only the first path; null if there is no path.
    ///
    /// # Errors
    ///
    /// As [`Reader::read`].
    #[inline]
    pub fn read_first<'a>(&self, payload: &'a [u8]) -> Result<Value<'a>, DataError> {
        let Some(RememberedPath { path, locations, .. }) = self.paths.first() else { return Ok(Value::Null) };
        Search { schemas: &*self.schemas }.find(payload, path.steps(), locations)
    }
}

/// As [`Reader::read`], for one object, without remembering locations.
///
/// # Errors
///
/// As [`Reader::read`].
pub fn read_fields<'a>(
    payload: &'a [u8],
    schemas: &dyn SchemaSource,
    paths: &[(usize, &Path)],
    visit: &mut dyn FnMut(usize, Value<'a>),
) -> Result<(), DataError> {
    for (number, path) in paths {
        visit(*number, Search { schemas }.find(payload, path.steps(), &[])?);
    }
    Ok(())
}

/// The location of a field in the objects of one schema.
#[derive(Clone, Copy)]
struct Found {
    extent: Extent,
    field: Option<(Shape, FieldLocation)>,
}

impl Found {
    fn of(schema: &Schema, name: &str) -> Found {
        let field = schema.find(name).map(|(kind, location): (FieldKind, FieldLocation)| (Shape::of(kind), location));
        Found { extent: schema.extent(), field }
    }
}

/// The locations of one field in the objects of the schemas seen so far: a list that only grows and
/// is read without a lock.
#[derive(Default)]
struct Remembered(OnceLock<Box<Entry>>);

struct Entry {
    schema: SchemaId,
    found: Found,
    next: Remembered,
}

struct Search<'s> {
    schemas: &'s dyn SchemaSource,
}

impl Search<'_> {
    /// The value that `steps` find in the object at the front of `payload`. `remembered` has one
    /// item for each step, or is empty.
    fn find<'a>(&self, payload: &'a [u8], steps: &[Step], remembered: &[Remembered]) -> Result<Value<'a>, DataError> {
        let Some((step, rest)) = steps.split_first() else {
            return whole(payload, self.schemas);
        };
        let Step::Field(name) = step else { return Ok(Value::Null) };
        let id = schema_id(payload)?;
        let found = match remembered.first() {
            Some(remembered) => self.recall(id, name, remembered)?,
            None => Found::of(&*self.schema(id)?, name),
        };
        let Some((shape, location)) = found.field else { return Ok(Value::Null) };
        let object = Object::open(payload, found.extent)?;
        let Some(bytes) = object.field(location)? else { return Ok(Value::Null) };
        if let FieldLocation::Bit(_, bit) = location {
            let set = bytes.first().is_some_and(|byte| byte >> bit & 1 == 1);
            return Ok(if rest.is_empty() { Value::Boolean(set) } else { Value::Null });
        }
        self.follow(shape, bytes, rest, remembered.get(1..).unwrap_or_default())
    }

    /// The value that `steps` find in the bytes of a field.
    #[inline]
    fn follow<'a>(
        &self,
        shape: Shape,
        bytes: &'a [u8],
        steps: &[Step],
        remembered: &[Remembered],
    ) -> Result<Value<'a>, DataError> {
        match (shape, steps.split_first()) {
            (Shape::One(item_type), None) => item_type.read(&mut super::object::input(bytes)),
            (Shape::One(_), Some(_)) => Ok(Value::Null),
            (Shape::Object, _) => self.find(bytes, steps, remembered),
            (_, None) => Items::open(shape, bytes)?.read_all(self.schemas),
            (_, Some((Step::Field(_), _))) => Ok(Value::Null),
            (_, Some((Step::Index(at), rest))) => {
                let items = Items::open(shape, bytes)?;
                self.item(&items, *at, rest, remembered.get(1..).unwrap_or_default())
            }
            (_, Some((Step::Any, rest))) => {
                let items = Items::open(shape, bytes)?;
                if rest.is_empty() {
                    return items.read_all(self.schemas);
                }
                let flat = rest.contains(&Step::Any);
                let mut all = Vec::with_capacity(items.len());
                for at in 0..items.len() {
                    match self.item(&items, at, rest, remembered.get(1..).unwrap_or_default())? {
                        Value::Array(found) if flat => all.extend(found),
                        found => all.push(found),
                    }
                }
                Ok(Value::Array(all))
            }
        }
    }

    /// The value that `steps` find in the item at this index of an array.
    fn item<'a>(
        &self,
        items: &Items<'a>,
        at: usize,
        steps: &[Step],
        remembered: &[Remembered],
    ) -> Result<Value<'a>, DataError> {
        if steps.is_empty() {
            return items.read(at, self.schemas);
        }
        match items.object(at)? {
            Some(bytes) => self.find(bytes, steps, remembered),
            None => Ok(Value::Null),
        }
    }

    #[inline]
    fn recall(&self, id: SchemaId, name: &str, remembered: &Remembered) -> Result<Found, DataError> {
        let mut list = remembered;
        for _ in 0..REMEMBERED_MAX {
            match list.0.get() {
                Some(entry) if entry.schema == id => return Ok(entry.found),
                Some(entry) => list = &entry.next,
                None => {
                    let found = Found::of(&*self.schema(id)?, name);
                    // If another thread has set the entry first, its entry is also correct. The
                    // next object tries again.
                    let _ = list.0.set(Box::new(Entry { schema: id, found, next: Remembered::default() }));
                    return Ok(found);
                }
            }
        }
        Ok(Found::of(&*self.schema(id)?, name))
    }

    fn schema(&self, id: SchemaId) -> Result<Arc<Schema>, DataError> {
        self.schemas.schema(id).ok_or(DataError::UnknownSchema(id))
    }
}

/// A nested object as a separate blob.
pub(super) fn blob(payload: &[u8]) -> Value<'static> {
    let mut blob = Vec::with_capacity(crate::BLOB_HEADER_BYTES + payload.len());
    blob.extend_from_slice(&[0; 4]);
    blob.extend_from_slice(&crate::TypeId::COMPACT.0.to_be_bytes());
    blob.extend_from_slice(payload);
    Value::Object(Cow::Owned(blob))
}
