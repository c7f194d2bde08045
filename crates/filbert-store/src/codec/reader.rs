//! Reads numbers and bytes from a buffer, and knows its position for errors.

use uuid::Uuid;

use super::{CodecError, Problem};
use crate::{Caller, Millis};

/// A position in a buffer. [`Encoder`](crate::Encoder) and other formats use the same encoding:
/// little-endian numbers, and bytes after their length.
///
/// Each method reads the type that it is named after, and advances; `what` names the field in
/// errors. Nothing is copied, and no memory is allocated for sizes that the bytes only claim.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    /// The offset of the field that was read last.
    last: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `rest`. `offset` is the offset of `rest` in the buffer, for
    /// errors.
    #[must_use]
    pub fn new(rest: &'a [u8], offset: usize) -> Self {
        Reader { rest, offset, last: offset }
    }

    /// The current offset in the buffer, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether all bytes were read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error for an invalid value of the field that was read last.
    #[must_use]
    pub fn unexpected(&self, what: &'static str, found: u64, expected: &'static str) -> CodecError {
        CodecError { what, offset: self.last, problem: Problem::Unexpected { found, expected } }
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// There are more bytes.
    pub fn end(&self, what: &'static str) -> Result<(), CodecError> {
        if self.is_at_end() {
            return Ok(());
        }
        let problem = Problem::Unexpected { found: self.rest.len() as u64, expected: "no more bytes" };
        Err(CodecError { what, offset: self.offset, problem })
    }

    /// Reads and checks the version at the beginning of a format. All formats have version 1.
    ///
    /// # Errors
    /// The buffer has ended, or the version is different.
    pub fn version(&mut self, what: &'static str) -> Result<(), CodecError> {
        match self.u8(what)? {
            1 => Ok(()),
            found => Err(self.unexpected(what, u64::from(found), "1")),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CodecError> {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.too_short(what, N));
        };
        self.go_on(rest, N);
        Ok(*array)
    }

    fn too_short(&self, what: &'static str, needed: usize) -> CodecError {
        CodecError { what, offset: self.offset, problem: Problem::TooShort { left: self.rest.len(), needed } }
    }

    fn go_on(&mut self, rest: &'a [u8], read: usize) {
        (self.rest, self.last) = (rest, self.offset);
        self.offset += read;
    }

    /// # Errors
    /// The buffer has ended.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, CodecError> {
        self.array(what).map(u8::from_le_bytes)
    }

    /// # Errors
    /// The buffer has ended.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, CodecError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// # Errors
    /// The buffer has ended.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, CodecError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// # Errors
    /// The buffer has ended.
    pub fn i64(&mut self, what: &'static str) -> Result<i64, CodecError> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// # Errors
    /// The buffer has ended.
    pub fn millis(&mut self, what: &'static str) -> Result<Millis, CodecError> {
        self.i64(what).map(Millis)
    }

    /// Reads a size in memory, 8 bytes. A value larger than `usize::MAX` becomes `usize::MAX`.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn size(&mut self, what: &'static str) -> Result<usize, CodecError> {
        Ok(usize::try_from(self.u64(what)?).unwrap_or(usize::MAX))
    }

    /// Reads a boolean, 1 byte.
    ///
    /// # Errors
    /// The buffer has ended, or the byte is neither 0 nor 1.
    pub fn flag(&mut self, what: &'static str) -> Result<bool, CodecError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(self.unexpected(what, u64::from(found), "0 or 1")),
        }
    }

    /// # Errors
    /// The buffer has ended.
    pub fn uuid(&mut self, what: &'static str) -> Result<Uuid, CodecError> {
        self.array(what).map(Uuid::from_bytes)
    }

    /// Reads a caller: 16 bytes of client and 8 bytes of thread.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn caller(&mut self, what: &'static str) -> Result<Caller, CodecError> {
        Ok(Caller { client: self.uuid(what)?, thread: self.i64(what)? })
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn slice(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], CodecError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.too_short(what, len));
        };
        self.go_on(rest, len);
        Ok(bytes)
    }

    /// Reads a length of 4 bytes, and as many bytes after it.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], CodecError> {
        let len = self.u32(what)?;
        self.slice(what, len as usize)
    }
}
