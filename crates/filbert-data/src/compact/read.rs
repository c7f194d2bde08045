//! Finding fields in Compact objects by path, and remembering where a schema has them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::object::{Items, Object, Shape, schema_id, whole};
use super::schema::{Extent, FieldKind, Place, Schema, SchemaId};
use crate::{DataError, Path, SchemaSource, Step, Value};

/// Schemas that one field of a [`Reader`] remembers. A type has as many as it has versions in the map; more are looked
/// up again for each object, which is slower and nothing else.
const REMEMBERED_MAX: usize = 16;

/// Reads a fixed set of fields from Compact objects. It remembers where each schema has its fields, so that a field
/// costs no lookup by name and no lock after the first object of a schema.
pub struct Reader {
    paths: Vec<RememberedPath>,
    schemas: Arc<dyn SchemaSource>,
}

struct RememberedPath {
    number: usize,
    path: Path,
    /// One for each step.
    places: Box<[Remembered]>,
}

impl Reader {
    /// A reader of these paths; each carries the number that its values are visited with.
    pub fn new(paths: Vec<(usize, Path)>, schemas: Arc<dyn SchemaSource>) -> Reader {
        let paths = paths.into_iter().map(|(number, path)| {
            let places = path.steps().iter().map(|_| Remembered::default()).collect();
            RememberedPath { number, path, places }
        });
        Reader { paths: paths.collect(), schemas }
    }

    /// Visits each path once. A field that the object's schema does not have is null; `[any]` finds an array, and
    /// several of them one flat array. `payload` is the blob without its header.
    ///
    /// # Errors
    ///
    /// A schema on the way is unknown, or the bytes are broken where they had to be read.
    pub fn read<'a>(&self, payload: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for RememberedPath { number, path, places } in &self.paths {
            visit(*number, Search { schemas: &*self.schemas }.find(payload, path.steps(), places)?);
        }
        Ok(())
    }

    /// The value of the first path alone; null if there is no path.
    ///
    /// # Errors
    ///
    /// As [`Reader::read`].
    #[inline]
    pub fn read_first<'a>(&self, payload: &'a [u8]) -> Result<Value<'a>, DataError> {
        let Some(RememberedPath { path, places, .. }) = self.paths.first() else { return Ok(Value::Null) };
        Search { schemas: &*self.schemas }.find(payload, path.steps(), places)
    }
}

/// As [`Reader::read`], for one object and without remembering anything.
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

/// Where a field is in the objects of one schema.
#[derive(Clone, Copy)]
struct Found {
    extent: Extent,
    field: Option<(Shape, Place)>,
}

impl Found {
    fn of(schema: &Schema, name: &str) -> Found {
        let field = schema.find(name).map(|(kind, place): (FieldKind, Place)| (Shape::of(kind), place));
        Found { extent: schema.extent(), field }
    }
}

/// Where one field is in the objects of the schemas seen so far: a list that only grows, read without a lock.
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
    /// What `steps` lead to from the object at the front of `payload`. `remembered` has an item for each step, or none.
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
        let Some((shape, place)) = found.field else { return Ok(Value::Null) };
        let object = Object::open(payload, found.extent)?;
        let Some(bytes) = object.field(place)? else { return Ok(Value::Null) };
        if let Place::Bit(_, bit) = place {
            let set = bytes.first().is_some_and(|byte| byte >> bit & 1 == 1);
            return Ok(if rest.is_empty() { Value::Boolean(set) } else { Value::Null });
        }
        self.follow(shape, bytes, rest, remembered.get(1..).unwrap_or_default())
    }

    /// What `steps` lead to from a field's bytes.
    #[inline]
    fn follow<'a>(
        &self,
        shape: Shape,
        bytes: &'a [u8],
        steps: &[Step],
        remembered: &[Remembered],
    ) -> Result<Value<'a>, DataError> {
        match (shape, steps.split_first()) {
            (Shape::One(part), None) => part.read(&mut super::object::input(bytes)),
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

    /// What `steps` lead to from the item at this place of an array.
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
                    // Whoever was faster has remembered something as true; the next object asks again.
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

/// A nested object as a blob of its own.
pub(super) fn blob(payload: &[u8]) -> Value<'static> {
    let mut blob = Vec::with_capacity(crate::BLOB_HEADER_BYTES + payload.len());
    blob.extend_from_slice(&[0; 4]);
    blob.extend_from_slice(&crate::TypeId::COMPACT.0.to_be_bytes());
    blob.extend_from_slice(payload);
    Value::Object(Cow::Owned(blob))
}
