//! Values that stand for themselves: numbers, texts, dates, and arrays and lists of them. What has fields of its own has
//! a format and a reader of its own.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use uuid::Uuid;

use crate::parts::{Part, Year, broken};
use crate::{BLOB_HEADER_BYTES, DataError, Input, Path, SchemaSource, TypeId, Value, compact, portable};

/// Lists within each other, at most, that are read.
const DEPTH_MAX: usize = 64;

/// Java's `HashSet`, laid out as a list.
const HASH_SET: TypeId = TypeId(-37);
/// Java's `LinkedHashSet`, laid out as a list.
const LINKED_HASH_SET: TypeId = TypeId(-39);

/// What the items of an array are; none if it is not an array of items of one type.
fn item(type_id: TypeId) -> Option<Part> {
    Some(match type_id {
        TypeId::BYTE_ARRAY => Part::Int8,
        TypeId::BOOLEAN_ARRAY => Part::Boolean,
        TypeId::CHAR_ARRAY => Part::Char,
        TypeId::SHORT_ARRAY => Part::Int16,
        TypeId::INT_ARRAY => Part::Int32,
        TypeId::LONG_ARRAY => Part::Int64,
        TypeId::FLOAT_ARRAY => Part::Float32,
        TypeId::DOUBLE_ARRAY => Part::Float64,
        TypeId::STRING_ARRAY => Part::Text,
        _ => return None,
    })
}

/// Whether a value of the type is its length, then items with a type id each.
fn is_list(type_id: TypeId) -> bool {
    matches!(type_id, TypeId::ARRAY_LIST | TypeId::LINKED_LIST | TypeId::OBJECT_ARRAY | HASH_SET | LINKED_HASH_SET)
}

/// Whether a path can go on into items of the value.
#[inline]
pub(crate) fn has_items(type_id: TypeId) -> bool {
    is_list(type_id) || item(type_id).is_some()
}

/// Reads the payload of a value that is neither an array nor a list; none if the type is not one of these.
///
/// # Errors
///
/// The payload is broken.
#[inline]
pub(crate) fn read_payload<'a>(input: &mut Input<'a>) -> Result<Option<Value<'a>>, DataError> {
    let part = match input.type_id() {
        TypeId::INT => Part::Int32,
        TypeId::LONG => Part::Int64,
        TypeId::STRING => Part::Text,
        TypeId::DOUBLE => Part::Float64,
        TypeId::BOOLEAN => Part::Boolean,
        TypeId::BYTE => Part::Int8,
        TypeId::CHAR => Part::Char,
        TypeId::SHORT => Part::Int16,
        TypeId::FLOAT => Part::Float32,
        TypeId::BIG_DECIMAL => Part::Decimal,
        TypeId::LOCAL_DATE => Part::Date(Year::Int),
        TypeId::LOCAL_TIME => Part::Time,
        TypeId::LOCAL_DATE_TIME => Part::Timestamp(Year::Int),
        TypeId::OFFSET_DATE_TIME => Part::TimestampTz(Year::Int),
        TypeId::NULL => return Ok(Some(Value::Null)),
        TypeId::JSON => {
            let text = input.text()?;
            return Ok(Some(text.map_or(Value::Null, |text| Value::Json(Cow::Borrowed(text)))));
        }
        TypeId::UUID => return Ok(Some(Value::Uuid(Uuid::from_bytes(input.array()?)))),
        TypeId::BIG_INTEGER => {
            let Some(length) = input.length(1)? else { return Ok(Some(Value::Null)) };
            let number = BigInt::from_signed_bytes_be(input.take(length)?);
            return Ok(Some(Value::Decimal(BigDecimal::new(number, 0))));
        }
        _ => return Ok(None),
    };
    part.read(input).map(Some)
}

/// Reads a whole blob, its arrays and lists item by item; a blob of another type is an object, and so is a list with
/// items whose end cannot be known.
///
/// # Errors
///
/// The payload is broken.
pub(crate) fn read_blob<'a>(
    type_id: TypeId,
    blob: &'a [u8],
    schemas: Option<&dyn SchemaSource>,
) -> Result<Value<'a>, DataError> {
    let mut items = Items::of(type_id, blob, schemas);
    Ok(items.value(DEPTH_MAX)?.unwrap_or(Value::Object(Cow::Borrowed(blob))))
}

/// A payload with values in it that is read from the front: a list, an array.
pub(crate) struct Items<'a, 's> {
    payload: &'a [u8],
    pub(crate) input: Input<'a>,
    schemas: Option<&'s dyn SchemaSource>,
}

impl<'a, 's> Items<'a, 's> {
    pub(crate) fn of(type_id: TypeId, blob: &'a [u8], schemas: Option<&'s dyn SchemaSource>) -> Items<'a, 's> {
        Items::of_payload(type_id, blob.get(BLOB_HEADER_BYTES..).unwrap_or_default(), schemas)
    }

    pub(crate) fn of_payload(
        type_id: TypeId,
        payload: &'a [u8],
        schemas: Option<&'s dyn SchemaSource>,
    ) -> Items<'a, 's> {
        Items { payload, input: Input::new(type_id, payload), schemas }
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.payload.get(self.payload.len() - self.input.remaining()..).unwrap_or_default()
    }

    /// The value that follows, its type id first; none if its end cannot be known. Leaves the input at the value's type.
    ///
    /// # Errors
    ///
    /// The value is broken, or of a Compact schema that is unknown.
    pub(crate) fn object(&mut self) -> Result<Option<Value<'a>>, DataError> {
        self.nested(DEPTH_MAX)
    }

    /// Visits the items one by one, as long as `visit` returns true. Whether there are items at all: not if the list is
    /// null.
    ///
    /// # Errors
    ///
    /// An item is broken, of a type whose end cannot be known, or as `visit` says.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(Value<'a>) -> Result<bool, DataError>,
    ) -> Result<bool, DataError> {
        let part = item(self.input.type_id());
        let bytes_min = part.map_or(4, Part::bytes_min);
        let Some(length) = self.input.length(bytes_min)? else { return Ok(false) };
        for _ in 0..length {
            let value = match part {
                Some(part) => part.read(&mut self.input)?,
                None => match self.object()? {
                    Some(value) => value,
                    None => {
                        let found = format!("an item of {}", self.input.type_id());
                        return Err(broken(&self.input, found, "an item that tells where it ends"));
                    }
                },
            };
            if !visit(value)? {
                break;
            }
        }
        Ok(true)
    }

    /// The value that follows, of the type that the input says; none if its end cannot be known.
    fn value(&mut self, depth_left: usize) -> Result<Option<Value<'a>>, DataError> {
        let type_id = self.input.type_id();
        if let Some(value) = read_payload(&mut self.input)? {
            return Ok(Some(value));
        }
        if let Some(part) = item(type_id) {
            return part.read_array(&mut self.input).map(Some);
        }
        if !is_list(type_id) {
            return Ok(None);
        }
        let Some(depth_left) = depth_left.checked_sub(1) else { return Ok(None) };
        let Some(length) = self.input.length(size_of::<i32>())? else { return Ok(Some(Value::Null)) };
        // Not `with_capacity`: a value is far larger than the 4 bytes that an item has here at least.
        let mut items = Vec::new();
        for _ in 0..length {
            match self.nested(depth_left)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
            self.input.enter(type_id);
        }
        Ok(Some(Value::Array(items)))
    }

    fn nested(&mut self, depth_left: usize) -> Result<Option<Value<'a>>, DataError> {
        let type_id = TypeId(self.input.i32()?);
        self.input.enter(type_id);
        let at = self.payload.len() - self.input.remaining();
        match type_id {
            TypeId::PORTABLE => {
                let (blob, bytes) = portable::cut_out(self.payload, at)?;
                self.input.take(bytes)?;
                Ok(Some(blob.into()))
            }
            TypeId::COMPACT => {
                let Some(schemas) = self.schemas else { return Ok(None) };
                let rest = self.payload.get(at..).unwrap_or_default();
                let mut found = Value::Null;
                compact::read_fields(rest, schemas, &[(0, &Path::ITSELF)], &mut |_, value| found = value)?;
                if let Value::Object(blob) = &found {
                    self.input.take(blob.len().saturating_sub(BLOB_HEADER_BYTES))?;
                }
                Ok(Some(found))
            }
            _ => self.value(depth_left),
        }
    }
}
