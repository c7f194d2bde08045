//! Errors of reading bytes from elsewhere.

/// Bytes that cannot be read: the name of the field, its position, the bytes found, and the
/// expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {what} at byte {offset}: {problem}")]
pub struct CodecError {
    /// The name of the field.
    pub what: &'static str,
    /// The beginning of the field, or the place from which its content is broken, in bytes from the
    /// beginning of the buffer.
    pub offset: usize,
    /// The problem.
    pub problem: Problem,
}

/// The problem of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The buffer ends within the field.
    #[error("{left} bytes are left, expected {needed}")]
    TooShort {
        /// The number of bytes to the end of the buffer.
        left: usize,
        /// The number of bytes required.
        needed: usize,
    },
    /// An invalid number, or bytes after the expected end.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The number, or the number of bytes after the end.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
    /// The content of the field is broken from the offset on.
    #[error("its parts do not fit its length, expected {expected}")]
    Broken {
        /// The valid content.
        expected: &'static str,
    },
}
