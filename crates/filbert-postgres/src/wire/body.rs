//! Reading the body of a message piece by piece.

/// Why bytes are no message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// A body that ends too early.
    #[error("message {tag:?} ends before its {field}")]
    Short {
        /// The message's name.
        tag: char,
        /// What should have come.
        field: &'static str,
    },
    /// A body that goes on behind its last field.
    #[error("message {tag:?} has {bytes} bytes behind its last field")]
    Long {
        /// The message's name.
        tag: char,
        /// How many.
        bytes: usize,
    },
    /// A field that cannot be.
    #[error("message {tag:?} has a false {field}: {found}")]
    False {
        /// The message's name.
        tag: char,
        /// Which one.
        field: &'static str,
        /// What is there.
        found: String,
    },
    /// A text that is not UTF-8.
    #[error("the {field} of message {tag:?} is not UTF-8")]
    NotUtf8 {
        /// The message's name.
        tag: char,
        /// Which one.
        field: &'static str,
    },
    /// A length below that of its own field, or beyond the limit.
    #[error("message {tag:?} claims {length} bytes, expected 4 to {max}")]
    Length {
        /// The message's name.
        tag: char,
        /// What it claims.
        length: i64,
        /// The most that is taken.
        max: usize,
    },
    /// A name that no message has.
    #[error("unknown message {0:?}")]
    Unknown(char),
}

/// What is left of a message's body.
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

    /// A text that ends with a zero byte.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, Violation> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(|| self.short(field))?;
        let text = self.take(end, field)?;
        self.take(1, field)?;
        std::str::from_utf8(text).map_err(|_| Violation::NotUtf8 { tag: self.tag, field })
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Violation::Long { tag: self.tag, bytes: self.bytes.len() }) }
    }
}
