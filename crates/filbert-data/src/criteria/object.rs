//! Reads and writes values of any type within predicates.

use std::borrow::Cow;

use crate::convert::write_length;
use crate::items::broken;
use crate::plain::Items;
use crate::{BLOB_HEADER_BYTES, Blob, DataError, Input, ToBlob, TypeId, Value};

/// The maximum nesting depth of predicates. It is far above the depth of real predicates, and far
/// below the limit of a stack of 2 MB.
pub(super) const DEPTH_MAX: usize = 200;

/// A payload that is read from the front, with the remaining nesting depth.
pub(super) struct Source<'a> {
    payload: &'a [u8],
    items: Items<'a, 'static>,
    depth_left: usize,
}

impl<'a> Source<'a> {
    /// The payload of this blob.
    ///
    /// # Errors
    ///
    /// The blob has no header.
    pub(super) fn of(blob: &'a [u8]) -> Result<Source<'a>, DataError> {
        let type_id = crate::type_id(blob)?;
        let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
        Ok(Source { payload, items: Items::of_payload(type_id, payload, None), depth_left: DEPTH_MAX })
    }

    /// The unread bytes.
    pub(super) fn input(&mut self) -> &mut Input<'a> {
        &mut self.items.input
    }

    /// Reads a nested object: its type id, then its payload by `read`.
    ///
    /// # Errors
    ///
    /// The object is nested too deep, or `read` returns an error.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Source<'a>) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        let Some(left) = self.depth_left.checked_sub(1) else {
            return Err(broken(self.input(), format!("more than {DEPTH_MAX} levels"), "fewer"));
        };
        self.depth_left = left;
        let type_id = TypeId(self.input().i32()?);
        let outer = self.input().enter(type_id);
        let result = read(self);
        self.input().enter(outer);
        self.depth_left = left + 1;
        result
    }

    /// Reads a value: its type id, then its payload. The `last` value of the payload may have any
    /// type. Other values must have a type of known length.
    ///
    /// # Errors
    ///
    /// The value is broken, nested too deep, or of unknown length.
    pub(super) fn value(&mut self, last: bool) -> Result<Value<'static>, DataError> {
        self.object(last).map(|(value, _)| value)
    }

    /// Reads a nested value as a separate blob.
    ///
    /// # Errors
    ///
    /// As [`Source::value`].
    pub(super) fn blob(&mut self) -> Result<Blob, DataError> {
        match self.object(false)? {
            (Value::Object(blob), _) => Ok(Blob::from(blob.into_owned())),
            (_, bytes) => Ok(Blob::from([&[0; 4], bytes].concat())),
        }
    }

    /// Reads a value. Also returns the bytes of the value, including the type id.
    fn object(&mut self, last: bool) -> Result<(Value<'static>, &'a [u8]), DataError> {
        let from = self.payload.len() - self.input().remaining();
        let outer = self.input().type_id();
        let found = self.items.object()?;
        let type_id = self.input().enter(outer);
        let read = self.payload.get(from..).unwrap_or_default();
        if let Some(value) = found {
            let bytes = read.len() - self.input().remaining();
            return Ok((value.into_owned(), read.get(..bytes).unwrap_or_default()));
        }
        if !last {
            let expected = "a type that tells where it ends: a number, a text, a date, a list of these, a Portable,";
            return Err(broken(&Input::new(type_id, &[]), "a place within a predicate", expected));
        }
        let rest = self.input().remaining();
        self.input().take(rest)?;
        Ok((Value::Object(Cow::Owned([&[0; 4], read].concat())), read))
    }
}

/// Appends the type id and the payload of a value, as the stock clients write a nested object.
///
/// # Errors
///
/// The format cannot represent the value, or the value is a Portable: its positions would have to
/// be adjusted.
pub(super) fn write_value(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), DataError> {
    match value {
        Value::Array(items) => {
            out.extend_from_slice(&TypeId::ARRAY_LIST.0.to_be_bytes());
            write_length(TypeId::ARRAY_LIST, items.len(), out)?;
            items.iter().try_for_each(|item| write_value(item, out))
        }
        Value::Object(blob) if crate::type_id(blob)? == TypeId::PORTABLE => {
            let input = Input::new(TypeId::PORTABLE, blob);
            Err(broken(&input, "a place within a predicate or a list", "a place of its own"))
        }
        _ => value.write_object(out),
    }
}
