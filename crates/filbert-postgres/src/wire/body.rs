//! Reads the body of a message field by field.

/// The reason why bytes are not a message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// The body ends too early.
    #[error("message {tag:?} ends before its {field}")]
    Short {
        /// The type byte of the message.
        tag: char,
        /// The missing field.
        field: &'static str,
    },
    /// The body continues after its last field.
    #[error("message {tag:?} has {bytes} bytes behind its last field")]
    Long {
        /// The type byte of the message.
        tag: char,
        /// The number of bytes after the last field.
        bytes: usize,
    },
    /// A field has an invalid value.
    #[error("message {tag:?} has a false {field}: {found}")]
    False {
        /// The type byte of the message.
        tag: char,
        /// The field.
        field: &'static str,
        /// The value.
        found: String,
    },
    /// A text is not UTF-8.
    #[error("the {field} of message {tag:?} is not UTF-8")]
    NotUtf8 {
        /// The type byte of the message.
        tag: char,
        /// The field.
        field: &'static str,
    },
    /// The length is less than the size of the length field itself, or beyond the limit.
    #[error("message {tag:?} claims {length} bytes, expected 4 to {max}")]
    Length {
        /// The type byte of the message.
        tag: char,
        /// The claimed length.
        length: i64,
        /// The maximum length.
        max: usize,
    },
    /// The type byte is unknown.
    #[error("unknown message {0:?}")]
    Unknown(char),
}

/// The unread rest of a message's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    tag: char,
    bytes: &'a [u8],
}

impl<'a> Body<'a> {
    pub(crate) fn new(tag: u8, bytes: &'a [u8]) -> Self {
        Body { tag: char::from(tag), bytes }
    }

    fn short(&self, field: &'static str) -> Violation {
        Violation::Short { tag: self.tag, field }
    }

    pub(crate) fn is_false(&self, field: &'static str, found: impl ToString) -> Violation {
        Violation::False { tag: self.tag, field, found: found.to_string() }
    }

    pub(crate) fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Violation> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| self.short(field))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Violation> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(|| self.short(field))?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Violation> {
        self.array(field).map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Violation> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, Violation> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// Reads a text that ends with a zero byte.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, Violation> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(|| self.short(field))?;
        let text = self.take(end, field)?;
        self.take(1, field)?;
        std::str::from_utf8(text).map_err(|_| Violation::NotUtf8 { tag: self.tag, field })
    }

    /// Returns all remaining bytes.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Checks that no bytes remain.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Violation::Long { tag: self.tag, bytes: self.bytes.len() }) }
    }
}
