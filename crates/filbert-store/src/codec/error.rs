//! What can be wrong with bytes that come from elsewhere.

/// Bytes that are not what they should be: what was read, where, what was found and what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {what} at byte {offset}: {problem}")]
pub struct CodecError {
    /// What was read.
    pub what: &'static str,
    /// Where it begins, or where it stops being what it should be, in bytes from the beginning of the buffer.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The buffer ends too early.
    #[error("{left} bytes are left, expected {needed}")]
    TooShort {
        /// Bytes up to the end of the buffer.
        left: usize,
        /// Bytes that it takes.
        needed: usize,
    },
    /// A number that stands for nothing.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The number.
        found: u64,
        /// What would have been right.
        expected: &'static str,
    },
    /// Bytes whose inner form is broken from the offset on.
    #[error("its parts do not fit its length, expected {expected}")]
    Broken {
        /// What would have been right.
        expected: &'static str,
    },
}
