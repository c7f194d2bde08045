//! The owned serialized value, and the type id in its header.

use std::{borrow::Borrow, fmt, ops::Deref};

use crate::{BLOB_HEADER_BYTES, DataError, TypeId};

/// The maximum number of payload bytes that `Debug` shows: enough to distinguish blobs, few enough
/// for a log line.
const DEBUG_BYTES_MAX: usize = 16;

/// A serialized value as clients send it: 4 bytes of partition hash (big-endian; 0 means that the
/// hash of the payload is used), 4 bytes of type id (big-endian), payload.
///
/// Owned and opaque: any bytes can be a blob. Errors in the bytes are found when the value is read.
/// Blobs compare, order and hash like their bytes, so a map with blobs as keys supports lookups by
/// `&[u8]`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Blob(Box<[u8]>);

impl Blob {
    /// All bytes, header included.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, without copying them.
    #[inline]
    pub fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl Deref for Blob {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Blob {
    #[inline]
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Blob {
    #[inline]
    fn from(bytes: Vec<u8>) -> Self {
        Blob(bytes.into_boxed_slice())
    }
}

impl From<Box<[u8]>> for Blob {
    #[inline]
    fn from(bytes: Box<[u8]>) -> Self {
        Blob(bytes)
    }
}

impl From<&[u8]> for Blob {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Blob(bytes.into())
    }
}

impl From<Blob> for Vec<u8> {
    #[inline]
    fn from(blob: Blob) -> Self {
        blob.into_vec()
    }
}

/// Type, length and the first bytes of the payload in hexadecimal.
impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(type_id) = type_id(&self.0) else { return write!(f, "Blob({} bytes, no header)", self.0.len()) };
        let payload = self.0.get(BLOB_HEADER_BYTES..).unwrap_or_default();
        write!(f, "Blob({type_id}, {} bytes", self.0.len())?;
        if !payload.is_empty() {
            f.write_str(", ")?;
        }
        for byte in payload.iter().take(DEBUG_BYTES_MAX) {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(if payload.len() > DEBUG_BYTES_MAX { "...)" } else { ")" })
    }
}

/// The type id in the blob's header.
///
/// # Errors
///
/// The blob is shorter than its header.
#[inline]
pub fn type_id(blob: &[u8]) -> Result<TypeId, DataError> {
    match blob.first_chunk::<BLOB_HEADER_BYTES>() {
        Some(&[_, _, _, _, a, b, c, d]) => Ok(TypeId(i32::from_be_bytes([a, b, c, d]))),
        None => Err(DataError::NoHeader { bytes: blob.len() }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::ToBlob;

    #[test]
    fn a_map_of_blobs_is_searched_by_bytes() {
        let blob = 7i32.to_blob().unwrap();
        let map = HashMap::from([(blob.clone(), 1)]);
        assert_eq!(map.get(blob.as_bytes()), Some(&1));
    }

    #[test]
    fn debug_shows_type_length_and_the_first_bytes() {
        assert_eq!(format!("{:?}", 7i32.to_blob().unwrap()), "Blob(int (-7), 12 bytes, 00000007)");
        let long = "x".repeat(100).to_blob().unwrap();
        assert_eq!(format!("{long:?}"), "Blob(text (-11), 112 bytes, 00000064787878787878787878787878...)");
        assert_eq!(format!("{:?}", Blob::from(vec![1, 2])), "Blob(2 bytes, no header)");
    }
}
