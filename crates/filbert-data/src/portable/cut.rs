//! Copies nested Portable objects out of blobs and into blobs. Positions are adjusted, because they
//! count from the start of the blob.

use std::borrow::Cow;

use super::kind::Shape;
use super::object::{Object, Span, TABLE_AT};
use crate::items::broken;
use crate::{BLOB_HEADER_BYTES, Blob, DataError, TypeId, Value};

/// The maximum nesting depth of an object that is copied. Deeper nesting is an error.
const DEPTH_MAX: usize = 256;

/// Copies a nested object into a separate blob. The object begins with its factory at byte `at` of
/// `payload`, which is a blob without its header. Also returns the number of bytes of the object in
/// `payload`. Lists contain nested Portables.
///
/// # Errors
///
/// The object is broken, or nests objects more than 256 deep.
pub fn cut_out(payload: &[u8], at: usize) -> Result<(Blob, usize), DataError> {
    let object = Object::open(Span::new(payload), at)?;
    Ok((Blob::from(cut(&object)?), object.span.len() - at))
}

/// Appends the Portable of `blob` to another blob: factory, class and object, without a type id.
/// `out` must begin with the first byte of the other blob.
///
/// # Errors
///
/// The object is broken, or nests objects more than 256 deep; `out` may then hold a part of it.
pub(crate) fn put_in(blob: &[u8], out: &mut Vec<u8>) -> Result<(), DataError> {
    let object = Object::open(Span::new(blob.get(BLOB_HEADER_BYTES..).unwrap_or_default()), 0)?;
    out.extend_from_slice(&object.class.factory_id.to_be_bytes());
    out.extend_from_slice(&object.class.class_id.to_be_bytes());
    paste(&object, out)
}

/// The object as a value: a separate blob.
pub(super) fn whole(object: &Object<'_>) -> Result<Value<'static>, DataError> {
    cut(object).map(|bytes| Value::Object(Cow::Owned(bytes)))
}

fn cut(object: &Object<'_>) -> Result<Vec<u8>, DataError> {
    let mut out = Vec::with_capacity(BLOB_HEADER_BYTES + 8 + object.span.len() - object.from);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&TypeId::PORTABLE.0.to_be_bytes());
    out.extend_from_slice(&object.class.factory_id.to_be_bytes());
    out.extend_from_slice(&object.class.class_id.to_be_bytes());
    paste(object, &mut out)?;
    Ok(out)
}

/// Appends the object, from its version on, to a blob, and adjusts its positions.
///
/// # Errors
///
/// The object is broken, or nests objects more than 256 deep; `out` may then hold a part of it.
pub(super) fn paste(object: &Object<'_>, out: &mut Vec<u8>) -> Result<(), DataError> {
    let body = object.span.between(object.from, object.span.len());
    let start = out.len();
    out.extend_from_slice(body);
    // Each field has a position of four bytes. If there are more fields than positions fit into the
    // body, a field was visited twice.
    Mover { out, start, origin: object.from, fields_left: body.len() / 4 }.object(object, DEPTH_MAX)
}

struct Mover<'o> {
    out: &'o mut Vec<u8>,
    /// The place of the outermost object's version in `out`.
    start: usize,
    /// The place of the same version in the source payload.
    origin: usize,
    fields_left: usize,
}

impl Mover<'_> {
    /// Adjusts the positions of one object and its nested objects.
    fn object(&mut self, object: &Object<'_>, depth_left: usize) -> Result<(), DataError> {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(broken(&object.span.input(0), "more than 256 nested objects", "fewer"));
        };
        self.position(object, object.from + 4);
        for number in 0..object.count {
            self.fields_left = self.fields_left.checked_sub(1).ok_or_else(|| {
                broken(&object.span.input(0), "fields that share bytes", "fields one after the other")
            })?;
            if let Some((_, at)) = object.name(number)? {
                self.position(object, object.from + TABLE_AT + number * 4);
                let field = object.field(at)?;
                if let Some(nested) = field.object()? {
                    self.object(&nested, depth_left)?;
                }
                let (Shape::Scattered(_) | Shape::Objects) = field.kind.shape() else { continue };
                let Some(items) = field.items()? else { continue };
                for item in 0..items.len() {
                    self.position(object, items.at + item * 4);
                    if let Some(nested) = items.object(item)? {
                        self.object(&nested, depth_left)?;
                    }
                }
            }
        }
        self.position(object, object.from + TABLE_AT + object.count * 4);
        Ok(())
    }

    /// Adjusts the position at this place of the payload. A position of 0 is unchanged: it means
    /// that the field was not written.
    fn position(&mut self, object: &Object<'_>, at: usize) {
        let Ok(position @ 1..) = object.span.input(at).i32() else { return };
        let Some(place) = (at + self.start).checked_sub(self.origin) else { return };
        let moved = i64::from(position) - (self.origin + BLOB_HEADER_BYTES) as i64 + self.start as i64;
        let Ok(moved) = i32::try_from(moved) else { return };
        if let Some(bytes) = self.out.get_mut(place..place + 4) {
            bytes.copy_from_slice(&moved.to_be_bytes());
        }
    }
}
