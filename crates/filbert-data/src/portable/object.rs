//! The bytes of one Portable object and of one array within it.

use super::kind::{FieldKind, Shape};
use crate::items::{ItemType, broken};
use crate::{BLOB_HEADER_BYTES, DataError, Input, TypeId, Value};

/// The number of bytes from an object's version to its first position.
pub(super) const TABLE_AT: usize = 12;

/// An input of `bytes`.
#[inline]
pub(super) fn input(bytes: &[u8]) -> Input<'_> {
    Input::new(TypeId::PORTABLE, bytes)
}

/// The payload of a blob, up to the end of the part that is being read. Places count from the start
/// of the payload. Positions in the bytes count from the start of the blob's header.
#[derive(Clone, Copy)]
pub(super) struct Span<'a>(&'a [u8]);

impl<'a> Span<'a> {
    /// The payload of a blob.
    #[inline]
    pub(super) fn new(payload: &'a [u8]) -> Span<'a> {
        Span(payload)
    }

    /// The input from this place on; empty beyond the end.
    #[inline]
    pub(super) fn input(&self, at: usize) -> Input<'a> {
        input(self.0.get(at..).unwrap_or_default())
    }

    /// The number of bytes up to the end.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes between two places.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a [u8] {
        self.0.get(from..to).unwrap_or_default()
    }

    /// The same span with an earlier end.
    #[inline]
    fn until(&self, end: usize) -> Span<'a> {
        Span(self.0.get(..end).unwrap_or(self.0))
    }

    /// The place that the position at `at` refers to; `None` if the position is 0: nothing was
    /// written.
    ///
    /// # Errors
    ///
    /// The place is before `from` or beyond the end.
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

/// The ids and the version of an object's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId {
    /// The factory's id.
    pub factory_id: i32,
    /// The class's id within the factory.
    pub class_id: i32,
    /// The version of the class.
    pub version: i32,
}

/// One object. Its parts are located, but not read.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    /// The enclosing span, up to the end of the object.
    pub(super) span: Span<'a>,
    /// The place of its version.
    pub(super) from: usize,
    pub(super) class: ClassId,
    /// The number of fields.
    pub(super) count: usize,
}

/// A located field.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// The span up to the end of its object.
    pub(super) span: Span<'a>,
    /// The place of its value.
    pub(super) at: usize,
    pub(super) kind: FieldKind,
}

impl<'a> Object<'a> {
    /// Opens the object that begins at this place with its factory.
    ///
    /// # Errors
    ///
    /// The object ends too early, or claims more fields than its bytes can contain.
    #[inline]
    pub(super) fn open(span: Span<'a>, at: usize) -> Result<Object<'a>, DataError> {
        let mut input = span.input(at);
        let (factory_id, class_id) = (input.i32()?, input.i32()?);
        Object::open_nested(span, at + 8, factory_id, class_id)
    }

    /// Opens the object with its version at this place.
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
        // There is one position more than fields: the position of the raw data.
        input.take((count + 1).saturating_mul(4))?;
        let least = span.len() - input.remaining();
        let end = span.place(from + 4, least)?.ok_or_else(|| misplaced(0, least, span.len()))?;
        Ok(Object { span: span.until(end), from, class: ClassId { factory_id, class_id, version }, count })
    }

    /// The first place where fields may begin.
    #[inline]
    pub(super) fn fields_from(&self) -> usize {
        self.from + TABLE_AT + (self.count + 1) * 4
    }

    /// The bytes of the name of the field with this number, and the place after the name; `None` if
    /// the field was not written.
    ///
    /// # Errors
    ///
    /// The position of the field is outside of the object, or the name ends too early.
    #[inline]
    pub(super) fn name(&self, number: usize) -> Result<Option<(&'a [u8], usize)>, DataError> {
        let Some(place) = self.span.place(self.from + TABLE_AT + number * 4, self.fields_from())? else {
            return Ok(None);
        };
        let mut input = self.span.input(place);
        let length = u16::from_be_bytes(input.array()?).into();
        Ok(Some((input.take(length)?, place + 2 + length)))
    }

    /// The field with its kind at this place.
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

    /// The number of the field with this name, and the place of its kind; `None` if there is no
    /// such field.
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
    /// The nested object; `None` if the field is null or not an object.
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

    /// The array; `None` if the field is null or not an array.
    ///
    /// # Errors
    ///
    /// The bytes are too few for that many items.
    pub(super) fn items(&self) -> Result<Option<Items<'a>>, DataError> {
        let mut input = self.span.input(self.at);
        let item_bytes_min = match self.kind.shape() {
            Shape::One(_) | Shape::Nullable(_) | Shape::Object => return Ok(None),
            Shape::Row(item_type) => item_type.bytes_min(),
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

/// One array. Its parts are located, but not read.
pub(super) struct Items<'a> {
    field: Field<'a>,
    length: usize,
    /// The place where the items or their positions begin.
    pub(super) at: usize,
    factory_id: i32,
    class_id: i32,
}

impl<'a> Items<'a> {
    /// The number of items.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The place of the scattered item with this number, and a span that ends where the next item
    /// begins.
    pub(super) fn scattered(&self, number: usize) -> Result<Option<(Span<'a>, usize)>, DataError> {
        let behind_positions = self.at + self.length.saturating_mul(4);
        let Some(place) = self.field.span.place(self.at + number * 4, behind_positions)? else { return Ok(None) };
        let end = match number + 1 < self.length {
            true => self.field.span.place(self.at + (number + 1) * 4, place)?.unwrap_or(self.field.span.len()),
            false => self.field.span.len(),
        };
        Ok(Some((self.field.span.until(end), place)))
    }

    /// The object with this number; `None` if there is no such object.
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

    /// Reads the item with this number; null if there is no such item.
    ///
    /// # Errors
    ///
    /// The item is broken.
    pub(super) fn read(&self, number: usize) -> Result<Value<'a>, DataError> {
        if number >= self.length {
            return Ok(Value::Null);
        }
        match self.field.kind.shape() {
            Shape::Row(ItemType::Text) => {
                let mut input = self.field.span.input(self.at);
                for _ in 0..number {
                    if let Some(length) = input.length(1)? {
                        input.take(length)?;
                    }
                }
                ItemType::Text.read(&mut input)
            }
            Shape::Row(item_type) => {
                item_type.read(&mut self.field.span.input(self.at + number * item_type.bytes_min()))
            }
            Shape::Scattered(item_type) => match self.scattered(number)? {
                Some((span, at)) => item_type.read(&mut span.input(at)),
                None => Ok(Value::Null),
            },
            _ => match self.object(number)? {
                Some(object) => super::cut::whole(&object),
                None => Ok(Value::Null),
            },
        }
    }

    /// Reads all items.
    ///
    /// # Errors
    ///
    /// An item is broken.
    pub(super) fn read_all(&self) -> Result<Value<'a>, DataError> {
        if let Shape::Row(item_type) = self.field.kind.shape() {
            return item_type.read_array(&mut self.field.span.input(self.field.at));
        }
        (0..self.length).map(|number| self.read(number)).collect::<Result<_, _>>().map(Value::Array)
    }
}
