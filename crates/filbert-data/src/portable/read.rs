//! Finds fields in Portable objects by path, and remembers the numbers of the fields in each class.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cut::whole;
use super::kind::Shape;
use super::object::{ClassId, Field, Items, Object, Span};
use crate::{DataError, Path, Step, Value};

/// The maximum number of classes and versions that one field of a [`Reader`] remembers. In objects
/// of further classes the field is searched by name, which is slower but has no other effect.
const REMEMBERED_MAX: usize = 16;

/// Reads a fixed set of fields from Portable objects. It remembers the number of each field in each
/// class. The name of the field with that number is compared each time, in order to distinguish
/// classes with the same ids.
pub struct Reader {
    paths: Vec<NamedPath>,
}

struct NamedPath {
    number: usize,
    steps: Box<[NamedStep]>,
}

/// A step, its name as objects write it, and the remembered numbers of the field.
struct NamedStep {
    step: Step,
    name: Box<[u8]>,
    remembered: Remembered,
}

impl Reader {
    /// A reader of these paths. Each path has a number, which is passed to `visit` with the value.
    pub fn new(paths: Vec<(usize, Path)>) -> Reader {
        let paths = paths.iter().map(|(number, path)| NamedPath::new(*number, path));
        Reader { paths: paths.collect() }
    }

    /// Visits each path once. A missing field is null. `[any]` finds an array; several `[any]`
    /// steps find one flat array. `payload` is the blob without its header.
    ///
    /// # Errors
    ///
    /// The bytes are broken where they are read.
    pub fn read<'a>(&self, payload: &'a [u8], visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        for path in &self.paths {
            visit(path.number, path.find(payload)?);
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
        self.paths.first().map_or(Ok(Value::Null), |path| path.find(payload))
    }
}

/// As [`Reader::read`], for one object.
///
/// # Errors
///
/// As [`Reader::read`].
pub fn read_fields<'a>(
    payload: &'a [u8],
    paths: &[(usize, &Path)],
    visit: &mut dyn FnMut(usize, Value<'a>),
) -> Result<(), DataError> {
    for (number, path) in paths {
        visit(*number, NamedPath::new(*number, path).find(payload)?);
    }
    Ok(())
}

/// The bytes of a name as objects write them: the lower byte of each UTF-16 unit, as in Java.
pub(super) fn name_bytes(name: &str) -> Vec<u8> {
    name.encode_utf16().map(|unit| unit.to_be_bytes()[1]).collect()
}

impl NamedPath {
    fn new(number: usize, path: &Path) -> NamedPath {
        let steps = path.steps().iter().map(|step| {
            let name = if let Step::Field(name) = step { name_bytes(name) } else { Vec::new() };
            NamedStep { step: step.clone(), name: name.into(), remembered: Remembered::default() }
        });
        NamedPath { number, steps: steps.collect() }
    }

    #[inline]
    fn find<'a>(&self, payload: &'a [u8]) -> Result<Value<'a>, DataError> {
        self.in_object(&Object::open(Span::new(payload), 0)?, &self.steps)
    }

    /// The value that `steps` find in an object.
    fn in_object<'a>(&self, object: &Object<'a>, steps: &[NamedStep]) -> Result<Value<'a>, DataError> {
        let Some((step, rest)) = steps.split_first() else { return whole(object) };
        let Step::Field(_) = step.step else { return Ok(Value::Null) };
        match step.find(object)? {
            Some(field) => self.in_field(&field, rest),
            None => Ok(Value::Null),
        }
    }

    #[inline]
    fn in_field<'a>(&self, field: &Field<'a>, steps: &[NamedStep]) -> Result<Value<'a>, DataError> {
        match (field.kind.shape(), steps.split_first()) {
            (Shape::One(item_type), None) => item_type.read(&mut field.span.input(field.at)),
            (Shape::Nullable(item_type), None) => {
                let mut input = field.span.input(field.at);
                if input.array()? == [0] { item_type.read(&mut input) } else { Ok(Value::Null) }
            }
            (Shape::One(_) | Shape::Nullable(_), Some(_)) => Ok(Value::Null),
            (Shape::Object, _) => match field.object()? {
                Some(object) => self.in_object(&object, steps),
                None => Ok(Value::Null),
            },
            (_, step) => match field.items()? {
                Some(items) => self.in_items(&items, step),
                None => Ok(Value::Null),
            },
        }
    }

    fn in_items<'a>(
        &self,
        items: &Items<'a>,
        step: Option<(&NamedStep, &[NamedStep])>,
    ) -> Result<Value<'a>, DataError> {
        let Some((NamedStep { step, .. }, rest)) = step else { return items.read_all() };
        match step {
            Step::Field(_) => Ok(Value::Null),
            Step::Index(number) => self.in_item(items, *number, rest),
            Step::Any if rest.is_empty() => items.read_all(),
            Step::Any => {
                let flat = rest.iter().any(|step| step.step == Step::Any);
                let mut all = Vec::with_capacity(items.len());
                for number in 0..items.len() {
                    match self.in_item(items, number, rest)? {
                        Value::Array(found) if flat => all.extend(found),
                        found => all.push(found),
                    }
                }
                Ok(Value::Array(all))
            }
        }
    }

    fn in_item<'a>(&self, items: &Items<'a>, number: usize, steps: &[NamedStep]) -> Result<Value<'a>, DataError> {
        if steps.is_empty() {
            return items.read(number);
        }
        match items.object(number)? {
            Some(object) => self.in_object(&object, steps),
            None => Ok(Value::Null),
        }
    }
}

/// The numbers of one field in objects of the classes seen so far: a list that only grows and is
/// read without a lock.
#[derive(Default)]
struct Remembered(OnceLock<Box<Entry>>);

struct Entry {
    class: ClassId,
    number: AtomicUsize,
    next: Remembered,
}

impl NamedStep {
    /// The field with this step's name; `None` if the object does not have it.
    #[inline]
    fn find<'a>(&self, object: &Object<'a>) -> Result<Option<Field<'a>>, DataError> {
        let mut list = &self.remembered;
        for _ in 0..REMEMBERED_MAX {
            match list.0.get() {
                Some(entry) if entry.class == object.class => {
                    let number = entry.number.load(Ordering::Relaxed);
                    if number < object.count
                        && let Some((name, at)) = object.name(number)?
                        && name == &*self.name
                    {
                        return object.field(at).map(Some);
                    }
                    let found = object.find(&self.name)?;
                    if let Some((number, _)) = found {
                        entry.number.store(number, Ordering::Relaxed);
                    }
                    return found.map(|(_, at)| object.field(at)).transpose();
                }
                Some(entry) => list = &entry.next,
                None => {
                    let found = object.find(&self.name)?;
                    let number = AtomicUsize::new(found.map_or(usize::MAX, |(number, _)| number));
                    // If another thread has set the entry first, its entry is also correct. The
                    // next object tries again.
                    let _ = list.0.set(Box::new(Entry { class: object.class, number, next: Remembered::default() }));
                    return found.map(|(_, at)| object.field(at)).transpose();
                }
            }
        }
        object.find(&self.name)?.map(|(_, at)| object.field(at)).transpose()
    }
}
