//! The traits between Rust values and blobs, and nulls.

use crate::{BLOB_HEADER_BYTES, Blob, DataError, Input, TypeId, type_id};

/// A value that can be written as a blob, byte for byte as the stock clients write it.
pub trait ToBlob {
    /// The type id that goes into the header.
    fn type_id(&self) -> TypeId;

    /// Appends the payload to `out`.
    ///
    /// # Errors
    ///
    /// The format has no place for the value; `out` may then hold a part of it.
    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError>;

    /// Bytes that the payload will have, near enough to allocate by.
    fn payload_bytes(&self) -> usize {
        8
    }

    /// Appends the whole blob to `out`: a partition hash of 0, the type id, the payload.
    ///
    /// # Errors
    ///
    /// The format has no place for the value; `out` may then hold a part of it.
    fn write_blob(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.reserve(BLOB_HEADER_BYTES + self.payload_bytes());
        out.extend_from_slice(&[0; 4]);
        self.write_object(out)
    }

    /// Appends the value as an item of a list: type id and payload.
    ///
    /// # Errors
    ///
    /// The format has no place for the value; `out` may then hold a part of it.
    fn write_object(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.extend_from_slice(&self.type_id().0.to_be_bytes());
        self.write_payload(out)
    }

    /// The value as a blob of its own.
    ///
    /// # Errors
    ///
    /// The format has no place for the value, such as a text of more than 2 GiB.
    fn to_blob(&self) -> Result<Blob, DataError> {
        let mut out = Vec::new();
        self.write_blob(&mut out)?;
        Ok(Blob::from(out))
    }
}

/// A value that can be read from a blob. Types are not converted into each other: a blob that holds an int is not a
/// long. Bytes behind the value are ignored, as the stock clients do.
pub trait FromBlob: Sized {
    /// Reads the payload of a value of the type `input.type_id()`.
    ///
    /// # Errors
    ///
    /// The type is another one, or the payload is broken.
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError>;

    /// Reads an item of a list: type id and payload.
    ///
    /// # Errors
    ///
    /// The type is another one, or the payload is broken.
    fn read_object(input: &mut Input<'_>) -> Result<Self, DataError> {
        let item = TypeId(input.i32()?);
        let outer = input.enter(item);
        let value = Self::read_payload(input)?;
        input.enter(outer);
        Ok(value)
    }

    /// Reads a whole blob.
    ///
    /// # Errors
    ///
    /// The blob has no header, holds another type, or its payload is broken.
    fn from_blob(blob: &[u8]) -> Result<Self, DataError> {
        let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
        Self::read_payload(&mut Input::new(type_id(blob)?, payload))
    }
}

/// Fails unless the type being read is `expected`.
#[inline]
pub(crate) fn expect_type(input: &Input<'_>, expected: TypeId) -> Result<(), DataError> {
    let found = input.type_id();
    if found == expected { Ok(()) } else { Err(DataError::WrongType { expected, found }) }
}

/// A length as the formats write it.
pub(crate) fn write_length(type_id: TypeId, length: usize, out: &mut Vec<u8>) -> Result<(), DataError> {
    let written = i32::try_from(length).map_err(|_| DataError::TooLong { type_id, length })?;
    out.extend_from_slice(&written.to_be_bytes());
    Ok(())
}

impl<T: ToBlob + ?Sized> ToBlob for &T {
    fn type_id(&self) -> TypeId {
        (**self).type_id()
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        (**self).write_payload(out)
    }

    fn payload_bytes(&self) -> usize {
        (**self).payload_bytes()
    }
}

/// `None` is the null type without a payload.
impl<T: ToBlob> ToBlob for Option<T> {
    fn type_id(&self) -> TypeId {
        self.as_ref().map_or(TypeId::NULL, ToBlob::type_id)
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        self.as_ref().map_or(Ok(()), |value| value.write_payload(out))
    }

    fn payload_bytes(&self) -> usize {
        self.as_ref().map_or(0, ToBlob::payload_bytes)
    }
}

/// The null type is `None`; so is a text, an array or a list that is null itself.
impl<T: FromBlob> FromBlob for Option<T> {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        if input.type_id() == TypeId::NULL {
            return Ok(None);
        }
        let has_length = matches!(input.type_id().0, -20..=-11 | -30..=-28 | -130);
        if has_length && input.clone().i32() == Ok(-1) {
            input.i32()?;
            return Ok(None);
        }
        T::read_payload(input).map(Some)
    }
}

/// A blob is written as it is, partition hash included, so that maps of blobs carry values of types unknown here. As
/// an item of a list it keeps type and payload.
impl ToBlob for Blob {
    fn type_id(&self) -> TypeId {
        type_id(self).unwrap_or(TypeId::NULL)
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let payload = self.get(BLOB_HEADER_BYTES..).ok_or(DataError::NoHeader { bytes: self.len() })?;
        out.extend_from_slice(payload);
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        self.len().saturating_sub(BLOB_HEADER_BYTES)
    }

    fn write_blob(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn to_blob(&self) -> Result<Blob, DataError> {
        Ok(self.clone())
    }
}

/// Any bytes are read as they are, partition hash included. Where an item of a list is to be read, a blob takes all
/// that follows, since the length of a value of unknown type is unknown.
impl FromBlob for Blob {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        let mut bytes = Vec::with_capacity(BLOB_HEADER_BYTES + input.remaining());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&input.type_id().0.to_be_bytes());
        bytes.extend_from_slice(input.take(input.remaining())?);
        Ok(Blob::from(bytes))
    }

    fn from_blob(blob: &[u8]) -> Result<Self, DataError> {
        Ok(Blob::from(blob))
    }
}
