//! Reads numbers and bytes out of a buffer, and tells where it stopped.

use uuid::Uuid;

use super::{CodecError, Problem};
use crate::{Caller, Millis};

/// A position in a buffer. Each method reads what it is named after and names `what` that is in errors.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `rest`, which begins at `offset` of what errors count from.
    pub(crate) fn new(rest: &'a [u8], offset: usize) -> Self {
        Reader { rest, offset }
    }

    /// Where it is.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error for what began at `offset`.
    pub(crate) fn unexpected(what: &'static str, offset: usize, found: u64, expected: &'static str) -> CodecError {
        CodecError { what, offset, problem: Problem::Unexpected { found, expected } }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CodecError> {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            let problem = Problem::TooShort { left: self.rest.len(), needed: N };
            return Err(CodecError { what, offset: self.offset, problem });
        };
        self.rest = rest;
        self.offset += N;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, CodecError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, CodecError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, CodecError> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self, what: &'static str) -> Result<i64, CodecError> {
        self.array(what).map(i64::from_le_bytes)
    }

    pub(crate) fn millis(&mut self, what: &'static str) -> Result<Millis, CodecError> {
        self.i64(what).map(Millis)
    }

    /// A number of things in memory: where it is larger than memory can be, as many as there can be.
    pub(crate) fn size(&mut self, what: &'static str) -> Result<usize, CodecError> {
        Ok(usize::try_from(self.u64(what)?).unwrap_or(usize::MAX))
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, CodecError> {
        let offset = self.offset;
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(Self::unexpected(what, offset, u64::from(found), "0 or 1")),
        }
    }

    pub(crate) fn uuid(&mut self, what: &'static str) -> Result<Uuid, CodecError> {
        self.array(what).map(Uuid::from_bytes)
    }

    pub(crate) fn caller(&mut self, what: &'static str) -> Result<Caller, CodecError> {
        Ok(Caller { client: self.uuid(what)?, thread: self.i64(what)? })
    }

    /// `len` bytes.
    pub(crate) fn slice(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], CodecError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            let problem = Problem::TooShort { left: self.rest.len(), needed: len };
            return Err(CodecError { what, offset: self.offset, problem });
        };
        self.rest = rest;
        self.offset += len;
        Ok(bytes)
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], CodecError> {
        let len = self.u32(what)?;
        self.slice(what, len as usize)
    }
}
