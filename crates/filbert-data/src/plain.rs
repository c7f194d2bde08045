//! Plain values: numbers, texts, dates, and arrays and lists of them. Objects with fields have
//! formats and readers of their own.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use uuid::Uuid;

use crate::items::{ItemType, Year, broken};
use crate::{BLOB_HEADER_BYTES, DataError, Input, Path, SchemaSource, TypeId, Value, compact, portable};

/// The maximum nesting depth of lists that are read.
const DEPTH_MAX: usize = 64;

/// Java's `HashSet`, laid out as a list.
const HASH_SET: TypeId = TypeId(-37);
/// Java's `LinkedHashSet`, laid out as a list.
const LINKED_HASH_SET: TypeId = TypeId(-39);

/// The type of the items of an array; `None` if the type is not an array of items of one type.
fn item(type_id: TypeId) -> Option<ItemType> {
    Some(match type_id {
        TypeId::BYTE_ARRAY => ItemType::Int8,
        TypeId::BOOLEAN_ARRAY => ItemType::Boolean,
        TypeId::CHAR_ARRAY => ItemType::Char,
        TypeId::SHORT_ARRAY => ItemType::Int16,
        TypeId::INT_ARRAY => ItemType::Int32,
        TypeId::LONG_ARRAY => ItemType::Int64,
        TypeId::FLOAT_ARRAY => ItemType::Float32,
        TypeId::DOUBLE_ARRAY => ItemType::Float64,
        TypeId::STRING_ARRAY => ItemType::Text,
        _ => return None,
    })
}

/// Whether a value of the type is a list: its length, then its items, each with a type id.
fn is_list(type_id: TypeId) -> bool {
    matches!(type_id, TypeId::ARRAY_LIST | TypeId::LINKED_LIST | TypeId::OBJECT_ARRAY | HASH_SET | LINKED_HASH_SET)
}

/// Whether a path can continue into items of a value of the type.
#[inline]
pub(crate) fn has_items(type_id: TypeId) -> bool {
    is_list(type_id) || item(type_id).is_some()
}

/// Reads the payload of a plain value that is neither an array nor a list; `None` for all other
/// types.
///
/// # Errors
///
/// The payload is broken.
#[inline]
pub(crate) fn read_payload<'a>(input: &mut Input<'a>) -> Result<Option<Value<'a>>, DataError> {
    let item_type = match input.type_id() {
        TypeId::INT => ItemType::Int32,
        TypeId::LONG => ItemType::Int64,
        TypeId::STRING => ItemType::Text,
        TypeId::DOUBLE => ItemType::Float64,
        TypeId::BOOLEAN => ItemType::Boolean,
        TypeId::BYTE => ItemType::Int8,
        TypeId::CHAR => ItemType::Char,
        TypeId::SHORT => ItemType::Int16,
        TypeId::FLOAT => ItemType::Float32,
        TypeId::BIG_DECIMAL => ItemType::Decimal,
        TypeId::LOCAL_DATE => ItemType::Date(Year::Int),
        TypeId::LOCAL_TIME => ItemType::Time,
        TypeId::LOCAL_DATE_TIME => ItemType::Timestamp(Year::Int),
        TypeId::OFFSET_DATE_TIME => ItemType::TimestampTz(Year::Int),
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
    item_type.read(input).map(Some)
}

/// Reads a whole blob. Arrays and lists are read item by item. A blob of any other type is returned
/// as an object, and so is a list with an item of unknown length.
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

/// A payload with a sequence of values, read from the front: the items of a list or an array, or
/// the fields of an object.
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

    /// The unread bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.payload.get(self.payload.len() - self.input.remaining()..).unwrap_or_default()
    }

    /// Reads the next value: its type id, then its payload; `None` if the length of the value is
    /// unknown. Afterwards the input has the type of the value.
    ///
    /// # Errors
    ///
    /// The value is broken, or its Compact schema is unknown.
    pub(crate) fn object(&mut self) -> Result<Option<Value<'a>>, DataError> {
        self.nested(DEPTH_MAX)
    }

    /// Visits the items one by one, as long as `visit` returns true. Returns false if the array or
    /// list is null.
    ///
    /// # Errors
    ///
    /// An item is broken or of unknown length, or `visit` returns an error.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(Value<'a>) -> Result<bool, DataError>,
    ) -> Result<bool, DataError> {
        let item_type = item(self.input.type_id());
        let bytes_min = item_type.map_or(4, ItemType::bytes_min);
        let Some(length) = self.input.length(bytes_min)? else { return Ok(false) };
        for _ in 0..length {
            let value = match item_type {
                Some(item_type) => item_type.read(&mut self.input)?,
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

    /// Reads the next value, which has the type of the input; `None` if its length is unknown.
    fn value(&mut self, depth_left: usize) -> Result<Option<Value<'a>>, DataError> {
        let type_id = self.input.type_id();
        if let Some(value) = read_payload(&mut self.input)? {
            return Ok(Some(value));
        }
        if let Some(item_type) = item(type_id) {
            return item_type.read_array(&mut self.input).map(Some);
        }
        if !is_list(type_id) {
            return Ok(None);
        }
        let Some(depth_left) = depth_left.checked_sub(1) else { return Ok(None) };
        let Some(length) = self.input.length(size_of::<i32>())? else { return Ok(Some(Value::Null)) };
        // Not `with_capacity`: a value in memory is far larger than the minimum of 4 bytes of a
        // serialized item.
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
