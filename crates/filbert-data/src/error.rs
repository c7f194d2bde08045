//! What can be wrong with a value on its way into a blob or out of one.

use crate::TypeId;

/// Why a value cannot be written as a blob, or a blob not read as a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The blob is shorter than its header.
    #[error("a serialized value of {bytes} bytes; its header alone has {}", crate::BLOB_HEADER_BYTES)]
    NoHeader {
        /// Bytes that are there.
        bytes: usize,
    },
    /// The blob holds a value of another type.
    #[error("a serialized {found} where {expected} is expected")]
    WrongType {
        /// The type asked for.
        expected: TypeId,
        /// The type in the blob's header, or of the list's item.
        found: TypeId,
    },
    /// The payload ends before the value does.
    #[error("a serialized {type_id} ends {missing} bytes too early")]
    Truncated {
        /// The type being read.
        type_id: TypeId,
        /// Bytes that would have to follow.
        missing: usize,
    },
    /// A length that is neither -1 (null) nor a count.
    #[error("a serialized {type_id} claims the length {length}; -1 for null or more is expected")]
    BrokenLength {
        /// The type being read.
        type_id: TypeId,
        /// The length as written.
        length: i32,
    },
    /// A null where the Rust type has no place for one.
    #[error("a serialized {type_id} is null where a value is required; read it as an Option to allow that")]
    Null {
        /// The type being read.
        type_id: TypeId,
    },
    /// Text that is not UTF-8.
    #[error("a serialized {type_id} is not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The type being read.
        type_id: TypeId,
        /// Bytes of valid text before the offence.
        at: usize,
    },
    /// A character outside the basic multilingual plane, or half of one: the format holds one UTF-16 unit.
    #[error("U+{code:04X} is not one UTF-16 unit and one character; write it as text instead")]
    NotOneUnit {
        /// The code point, or the lone surrogate.
        code: u32,
    },
    /// The value needs more bytes or items than the format's 32-bit lengths can tell.
    #[error("a {type_id} of {length} bytes or items; the format holds at most {}", i32::MAX)]
    TooLong {
        /// The type being written.
        type_id: TypeId,
        /// Its length.
        length: usize,
    },
    /// A number that names no field kind of a Compact schema.
    #[error("{0} is not a field kind of the Compact format; 0 to 46 are expected")]
    UnknownFieldKind(i32),
}
