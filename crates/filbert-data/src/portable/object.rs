//! The bytes of one Portable object and of one array within it.

use super::kind::{FieldKind, Shape};
use crate::parts::{Part, broken};
use crate::{BLOB_HEADER_BYTES, DataError, Input, TypeId, Value};

/// Bytes from an object's version to its first position.
pub(super) const TABLE_AT: usize = 12;

/// The front of `bytes`, to be read.
#[inline]
pub(super) fn input(bytes: &[u8]) -> Input<'_> {
    Input::new(TypeId::PORTABLE, bytes)
}

/// Bytes of a blob up to the end of what is being read in it. Places count from the payload, positions in the bytes from
/// the blob's header on.
#[derive(Clone, Copy)]
pub(super) struct Span<'a>(&'a [u8]);

impl<'a> Span<'a> {
    /// The payload of a blob.
    #[inline]
    pub(super) fn new(payload: &'a [u8]) -> Span<'a> {
        Span(payload)
    }

    /// Input from this place on; behind the end there is none.
    #[inline]
    pub(super) fn input(&self, at: usize) -> Input<'a> {
        input(self.0.get(at..).unwrap_or_default())
    }

    /// Bytes up to the end.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes between two places.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a [u8] {
        self.0.get(from..to).unwrap_or_default()
    }

    /// The same up to an earlier end.
    #[inline]
    fn until(&self, end: usize) -> Span<'a> {
        Span(self.0.get(..end).unwrap_or(self.0))
    }

    /// The place that the position at `at` stands for; none if nothing was written, which leaves a 0.
    ///
    /// # Errors
    ///
    /// It is before `from` or behind the end.
    #[inline]
    pub(super) fn place(&self, at: usize, from: usize) -> Result<Option<usize>, DataError> {
        let position = self.input(at).i32()?;
        let place = usize::try_from(position).ok().and_then(|position| position.checked_sub(BLOB_HEADER_BYTES));
        match place {
            Some(place) if place >= from && place <= self.len() => Ok(Some(place)),
            _ if position == 0 => Ok(None),
            _ => Err(misplaced(position, from, self.len())),
        }
    }
}

#[cold]
fn misplaced(position: i32, from: usize, to: usize) -> DataError {
    let range =
        format!("the position {position} in a part of {} to {}", from + BLOB_HEADER_BYTES, to + BLOB_HEADER_BYTES);
    broken(&input(&[]), range, "a position within the part")
}

/// Whose class an object is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId {
    /// The factory's id.
    pub factory_id: i32,
    /// The class's id within the factory.
    pub class_id: i32,
    /// The version of the class.
    pub version: i32,
}

/// One object, its parts found but not read.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    /// What it is within, up to its own end.
    pub(super) span: Span<'a>,
    /// Where its version is.
    pub(super) from: usize,
    pub(super) class: ClassId,
    /// Fields it has.
    pub(super) count: usize,
}

/// A field that was found.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// Up to the end of its object.
    pub(super) span: Span<'a>,
    /// Where its value is.
    pub(super) at: usize,
    pub(super) kind: FieldKind,
}

impl<'a> Object<'a> {
    /// The object that begins at this place with its factory.
    ///
    /// # Errors
    ///
    /// It ends too early, or claims more fields than can be.
    #[inline]
    pub(super) fn open(span: Span<'a>, at: usize) -> Result<Object<'a>, DataError> {
        let mut input = span.input(at);
        let (factory_id, class_id) = (input.i32()?, input.i32()?);
        Object::open_nested(span, at + 8, factory_id, class_id)
    }

    /// The object whose version is at this place.
    ///
    /// # Errors
    ///
    /// As [`Object::open`].
    #[inline]
    pub(super) fn open_nested(span: Span<'a>, from: usize, factory_id: i32, class_id: i32) -> Result<Self, DataError> {
        let mut input = span.input(from);
        let version = input.i32()?;
        input.i32()?;
        let count = input.length(4)?.ok_or(DataError::BrokenLength { type_id: TypeId::PORTABLE, length: -1 })?;
        // One position more than fields: of raw data.
        input.take((count + 1).saturating_mul(4))?;
        let least = span.len() - input.remaining();
        let end = span.place(from + 4, least)?.ok_or_else(|| misplaced(0, least, span.len()))?;
        Ok(Object { span: span.until(end), from, class: ClassId { factory_id, class_id, version }, count })
    }

    /// Where the fields may begin.
    #[inline]
    pub(super) fn fields_from(&self) -> usize {
        self.from + TABLE_AT + (self.count + 1) * 4
    }

    /// The name of the field of this number as its bytes, and the place behind it; none if it was not written.
    ///
    /// # Errors
    ///
    /// Its position is outside of the object, or its name ends too early.
    #[inline]
    pub(super) fn name(&self, number: usize) -> Result<Option<(&'a [u8], usize)>, DataError> {
        let Some(place) = self.span.place(self.from + TABLE_AT + number * 4, self.fields_from())? else {
            return Ok(None);
        };
        let mut input = self.span.input(place);
        let length = u16::from_be_bytes(input.array()?).into();
        Ok(Some((input.take(length)?, place + 2 + length)))
    }

    /// The field whose kind is at this place.
    ///
    /// # Errors
    ///
    /// There is no such kind.
    #[inline]
    pub(super) fn field(&self, at: usize) -> Result<Field<'a>, DataError> {
        let mut input = self.span.input(at);
        let [number] = input.array()?;
        let kind = FieldKind::of(number)
            .ok_or_else(|| broken(&input, format!("a field of the type {number}"), "a type of 0 to 29"))?;
        Ok(Field { span: self.span, at: at + 1, kind })
    }

    /// The number of the field of this name, and the place of its kind.
    ///
    /// # Errors
    ///
    /// As [`Object::name`].
    pub(super) fn find(&self, name: &[u8]) -> Result<Option<(usize, usize)>, DataError> {
        for number in 0..self.count {
            if let Some((found, at)) = self.name(number)?
                && found == name
            {
                return Ok(Some((number, at)));
            }
        }
        Ok(None)
    }
}

impl<'a> Field<'a> {
    /// The nested object; none if the field is null or no object.
    ///
    /// # Errors
    ///
    /// The object is broken.
    #[inline]
    pub(super) fn object(&self) -> Result<Option<Object<'a>>, DataError> {
        if self.kind != FieldKind::Portable {
            return Ok(None);
        }
        let mut input = self.span.input(self.at);
        let [null] = input.array()?;
        let (factory_id, class_id) = (input.i32()?, input.i32()?);
        if null != 0 {
            return Ok(None);
        }
        Object::open_nested(self.span, self.at + 9, factory_id, class_id).map(Some)
    }

    /// The array; none if the field is null or no array.
    ///
    /// # Errors
    ///
    /// So many items cannot be.
    pub(super) fn items(&self) -> Result<Option<Items<'a>>, DataError> {
        let mut input = self.span.input(self.at);
        let item_bytes_min = match self.kind.shape() {
            Shape::One(_) | Shape::Nullable(_) | Shape::Object => return Ok(None),
            Shape::Row(part) => part.bytes_min(),
            Shape::Scattered(_) | Shape::Objects => 4,
        };
        let Some(length) = input.length(item_bytes_min)? else { return Ok(None) };
        let mut items = Items { field: *self, length, at: self.at + 4, factory_id: 0, class_id: 0 };
        if self.kind == FieldKind::ArrayOfPortable {
            (items.factory_id, items.class_id) = (input.i32()?, input.i32()?);
            items.at += 8;
        }
        Ok(Some(items))
    }
}

/// One array, its parts found but not read.
pub(super) struct Items<'a> {
    field: Field<'a>,
    length: usize,
    /// Where items or their positions begin.
    pub(super) at: usize,
    factory_id: i32,
    class_id: i32,
}

impl<'a> Items<'a> {
    /// Items there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Where the scattered item of this number is, and a span that ends where the next one begins.
    pub(super) fn scattered(&self, number: usize) -> Result<Option<(Span<'a>, usize)>, DataError> {
        let behind_positions = self.at + self.length.saturating_mul(4);
        let Some(place) = self.field.span.place(self.at + number * 4, behind_positions)? else { return Ok(None) };
        let end = match number + 1 < self.length {
            true => self.field.span.place(self.at + (number + 1) * 4, place)?.unwrap_or(self.field.span.len()),
            false => self.field.span.len(),
        };
        Ok(Some((self.field.span.until(end), place)))
    }

    /// The object of this number; none if there is none.
    ///
    /// # Errors
    ///
    /// The object is broken.
    pub(super) fn object(&self, number: usize) -> Result<Option<Object<'a>>, DataError> {
        if self.field.kind != FieldKind::ArrayOfPortable || number >= self.length {
            return Ok(None);
        }
        let Some((span, at)) = self.scattered(number)? else { return Ok(None) };
        Object::open_nested(span, at, self.factory_id, self.class_id).map(Some)
    }

    /// The item of this number; null if there is none.
    ///
    /// # Errors
    ///
    /// The item is broken.
    pub(super) fn read(&self, number: usize) -> Result<Value<'a>, DataError> {
        if number >= self.length {
            return Ok(Value::Null);
        }
        match self.field.kind.shape() {
            Shape::Row(Part::Text) => {
                let mut input = self.field.span.input(self.at);
                for _ in 0..number {
                    if let Some(length) = input.length(1)? {
                        input.take(length)?;
                    }
                }
                Part::Text.read(&mut input)
            }
            Shape::Row(part) => part.read(&mut self.field.span.input(self.at + number * part.bytes_min())),
            Shape::Scattered(part) => match self.scattered(number)? {
                Some((span, at)) => part.read(&mut span.input(at)),
                None => Ok(Value::Null),
            },
            _ => match self.object(number)? {
                Some(object) => super::cut::whole(&object),
                None => Ok(Value::Null),
            },
        }
    }

    /// All items.
    ///
    /// # Errors
    ///
    /// An item is broken.
    pub(super) fn read_all(&self) -> Result<Value<'a>, DataError> {
        if let Shape::Row(part) = self.field.kind.shape() {
            return part.read_array(&mut self.field.span.input(self.field.at));
        }
        (0..self.length).map(|number| self.read(number)).collect::<Result<_, _>>().map(Value::Array)
    }
}
