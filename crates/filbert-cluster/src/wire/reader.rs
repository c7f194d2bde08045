//! The store's reader over a shared buffer: byte sequences are slices of that buffer, without a
//! copy.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use filbert_store::CodecError;

/// A position in a shared buffer. Numbers are decoded by [`filbert_store::Reader`].
pub(crate) struct Reader<'a> {
    buffer: &'a Bytes,
    reader: filbert_store::Reader<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(buffer: &'a Bytes) -> Self {
        Reader { buffer, reader: filbert_store::Reader::new(buffer, 0) }
    }

    /// Reads bytes with their length.
    pub(crate) fn shared(&mut self, what: &'static str) -> Result<Bytes, CodecError> {
        self.reader.bytes(what).map(|bytes| self.buffer.slice_ref(bytes))
    }
}

impl<'a> Deref for Reader<'a> {
    type Target = filbert_store::Reader<'a>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.reader
    }
}

/// Appends bytes with their length. The caller keeps them below 4 GiB: batches, pages and messages
/// have lower limits.
pub(crate) fn append_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= u32::MAX as usize, "limits keep what is written below 4 GiB");
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
