//! Reads numbers and bytes out of a buffer, and tells where it stopped.

use uuid::Uuid;

use super::{CodecError, Problem};
use crate::{Caller, Millis};

/// A position in a buffer of what [`Encoder`](crate::Encoder) and others write: little-endian numbers, and bytes behind their length.
///
/// Each method reads what it is named after and goes on behind it; `what` names it in errors. Nothing is copied, and no memory is taken
/// by what the bytes claim.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    /// Where that began which was read last.
    last: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `rest`, which begins at `offset` of what errors count from.
    #[must_use]
    pub fn new(rest: &'a [u8], offset: usize) -> Self {
        Reader { rest, offset, last: offset }
    }

    /// Where it is, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error for what was read last, if it stands for nothing.
    #[must_use]
    pub fn unexpected(&self, what: &'static str, found: u64, expected: &'static str) -> CodecError {
        CodecError { what, offset: self.last, problem: Problem::Unexpected { found, expected } }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// There are bytes left.
    pub fn end(&self, what: &'static str) -> Result<(), CodecError> {
        if self.is_at_end() {
            return Ok(());
        }
        let problem = Problem::Unexpected { found: self.rest.len() as u64, expected: "no more bytes" };
        Err(CodecError { what, offset: self.offset, problem })
    }

    /// Checks the version that a written form begins with: all have 1 so far.
    ///
    /// # Errors
    /// The buffer has ended, or the version is another one.
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

    /// A number of things in memory, 8 bytes: where it is larger than memory can be, as many as there can be.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn size(&mut self, what: &'static str) -> Result<usize, CodecError> {
        Ok(usize::try_from(self.u64(what)?).unwrap_or(usize::MAX))
    }

    /// 1 byte: whether something is so.
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

    /// 16 bytes of client, and 8 of thread.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn caller(&mut self, what: &'static str) -> Result<Caller, CodecError> {
        Ok(Caller { client: self.uuid(what)?, thread: self.i64(what)? })
    }

    /// So many bytes.
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

    /// Bytes behind their length, 4 bytes.
    ///
    /// # Errors
    /// The buffer has ended.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], CodecError> {
        let len = self.u32(what)?;
        self.slice(what, len as usize)
    }
}
