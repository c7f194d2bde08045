//! Reading numbers, texts and arrays from a payload.

use crate::{DataError, TypeId};

/// The unread rest of a payload, read from the front. It stores the type that is being read, which
/// every error names.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    type_id: TypeId,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// An input of `payload`, the payload of a value of the type `type_id`.
    #[inline]
    pub fn new(type_id: TypeId, payload: &'a [u8]) -> Self {
        Self { type_id, rest: payload }
    }

    /// The type being read.
    #[inline]
    pub fn type_id(&self) -> TypeId {
        self.type_id
    }

    /// The number of unread bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Switches to a nested value of another type. Returns the outer type; a second call restores
    /// it.
    #[inline]
    pub fn enter(&mut self, type_id: TypeId) -> TypeId {
        std::mem::replace(&mut self.type_id, type_id)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    ///
    /// Fewer than `count` bytes are left.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DataError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(DataError::Truncated { type_id: self.type_id, missing: count - self.rest.len() });
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// Fewer than `N` bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DataError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(DataError::Truncated { type_id: self.type_id, missing: N - self.rest.len() });
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// The next big-endian 32-bit number.
    ///
    /// # Errors
    ///
    /// Fewer than 4 bytes are left.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DataError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// The length of a text, an array or a list; `None` for null.
    ///
    /// # Errors
    ///
    /// Fewer than 4 bytes are left, the length is below -1, or the unread bytes are too few for
    /// that many items of at least `item_bytes_min` bytes each.
    #[inline]
    pub fn length(&mut self, item_bytes_min: usize) -> Result<Option<usize>, DataError> {
        let claimed = self.i32()?;
        if claimed == -1 {
            return Ok(None);
        }
        let length =
            usize::try_from(claimed).map_err(|_| DataError::BrokenLength { type_id: self.type_id, length: claimed })?;
        let needed = length.saturating_mul(item_bytes_min);
        if needed > self.rest.len() {
            return Err(DataError::Truncated { type_id: self.type_id, missing: needed - self.rest.len() });
        }
        Ok(Some(length))
    }

    /// The next text; `None` for null.
    ///
    /// # Errors
    ///
    /// The text ends too early, or is not UTF-8.
    #[inline]
    pub fn text(&mut self) -> Result<Option<&'a str>, DataError> {
        let Some(length) = self.length(1)? else { return Ok(None) };
        let type_id = self.type_id;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(Some).map_err(|error| DataError::NotUtf8 { type_id, at: error.valid_up_to() })
    }

    /// The error for a null where a value is required.
    #[inline]
    pub fn null(&self) -> DataError {
        DataError::Null { type_id: self.type_id }
    }
}
