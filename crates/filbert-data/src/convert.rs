//! The traits that convert between Rust values and blobs, and the conversion of nulls and blobs.

use crate::{BLOB_HEADER_BYTES, Blob, DataError, Input, TypeId, type_id};

/// A value that can be written as a blob, with the same bytes as the stock clients write.
pub trait ToBlob {
    /// The type id for the header.
    fn type_id(&self) -> TypeId;

    /// Appends the payload to `out`.
    ///
    /// # Errors
    ///
    /// The format cannot represent the value; `out` may then contain a part of it.
    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError>;

    /// The approximate number of bytes of the payload, for the allocation.
    fn payload_bytes(&self) -> usize {
        8
    }

    /// Appends the whole blob to `out`: a partition hash of 0, the type id, the payload.
    ///
    /// # Errors
    ///
    /// The format cannot represent the value; `out` may then contain a part of it.
    fn write_blob(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.reserve(BLOB_HEADER_BYTES + self.payload_bytes());
        out.extend_from_slice(&[0; 4]);
        self.write_object(out)
    }

    /// Appends the value as an item of a list: type id and payload.
    ///
    /// # Errors
    ///
    /// The format cannot represent the value; `out` may then contain a part of it.
    fn write_object(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.extend_from_slice(&self.type_id().0.to_be_bytes());
        self.write_payload(out)
    }

    /// Returns the value as a blob.
    ///
    /// # Errors
    ///
    /// The format cannot represent the value, such as a text of more than 2 GiB.
    fn to_blob(&self) -> Result<Blob, DataError> {
        let mut out = Vec::new();
        self.write_blob(&mut out)?;
        Ok(Blob::from(out))
    }
}

/// A value that can be read from a blob. Types are not converted: a blob with an int cannot be read
/// as a long. Bytes after the value are ignored, as in the stock clients.
pub trait FromBlob: Sized {
    /// Reads the payload of a value of the type `input.type_id()`.
    ///
    /// # Errors
    ///
    /// The value has another type, or the payload is broken.
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError>;

    /// Reads an item of a list: type id and payload.
    ///
    /// # Errors
    ///
    /// The value has another type, or the payload is broken.
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

/// Appends a length as a big-endian `i32`.
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

/// `None` is written as the null type without a payload.
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

/// The null type is read as `None`, and so is a null text, array or list.
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

/// A blob is written unchanged, including the partition hash, so that maps of blobs can hold values
/// of types that are unknown here. As an item of a list it keeps its type and payload.
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

/// Any bytes are read unchanged, including the partition hash. As an item of a list, a blob takes
/// all remaining bytes, since the length of a value of unknown type is unknown.
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
