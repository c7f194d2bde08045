//! Reads numbers and bytes out of a shared buffer, without copying.

use bytes::Bytes;
use filbert_store::{Caller, CodecError, Problem};
use uuid::Uuid;

/// A place in a buffer.
pub(crate) struct Reader {
    bytes: Bytes,
    length: usize,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Reader { length: bytes.len(), bytes }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn unexpected(&self, what: &'static str, found: u64, expected: &'static str) -> CodecError {
        let problem = Problem::Unexpected { found, expected };
        CodecError { what, offset: self.length - self.bytes.len(), problem }
    }

    pub(crate) fn take(&mut self, what: &'static str, needed: usize) -> Result<Bytes, CodecError> {
        let left = self.bytes.len();
        if left < needed {
            let problem = Problem::TooShort { left, needed };
            return Err(CodecError { what, offset: self.length - left, problem });
        }
        Ok(self.bytes.split_to(needed))
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CodecError> {
        let taken = self.take(what, N)?;
        let mut array = [0; N];
        array.iter_mut().zip(taken.iter()).for_each(|(place, byte)| *place = *byte);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, CodecError> {
        self.array::<1>(what).map(|[byte]| byte)
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

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, CodecError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(self.unexpected(what, u64::from(found), "0 or 1")),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Bytes, CodecError> {
        let length = self.u32(what)?;
        self.take(what, usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(crate) fn caller(&mut self, what: &'static str) -> Result<Caller, CodecError> {
        Ok(Caller { client: Uuid::from_bytes(self.array(what)?), thread: self.i64(what)? })
    }

    /// Checks the version that a written form begins with.
    pub(crate) fn version(&mut self, what: &'static str) -> Result<(), CodecError> {
        match self.u8(what)? {
            1 => Ok(()),
            found => Err(self.unexpected(what, u64::from(found), "1")),
        }
    }

    /// All that is left.
    pub(crate) fn rest(self) -> Bytes {
        self.bytes
    }

    pub(crate) fn end(&self, what: &'static str) -> Result<(), CodecError> {
        if self.is_at_end() { Ok(()) } else { Err(self.unexpected(what, self.bytes.len() as u64, "no more bytes")) }
    }
}

/// Bytes with their length. Whoever writes keeps them below 4 GiB: batches, pages and messages have lower limits.
pub(crate) fn append_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= u32::MAX as usize, "limits keep what is written below 4 GiB");
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
