//! Errors of reading and writing values.

use crate::type_id::{BLOB_HEADER_BYTES, SchemaId, TypeId};

/// An error of writing a value as a blob, or of reading a blob as a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The blob is shorter than its header.
    #[error("a serialized value of {bytes} bytes; its header alone has {}", BLOB_HEADER_BYTES)]
    NoHeader {
        /// The number of bytes of the blob.
        bytes: usize,
    },
    /// The blob holds a value of another type.
    #[error("a serialized {found} where {expected} is expected")]
    WrongType {
        /// The expected type.
        expected: TypeId,
        /// The type in the blob's header, or the type of the list's item.
        found: TypeId,
    },
    /// The payload ends before the value is complete.
    #[error("a serialized {type_id} ends {missing} bytes too early")]
    Truncated {
        /// The type being read.
        type_id: TypeId,
        /// The number of missing bytes.
        missing: usize,
    },
    /// A length below -1 (null), or a null length where a length is required.
    #[error("a serialized {type_id} claims the length {length}; -1 for null or more is expected")]
    BrokenLength {
        /// The type being read.
        type_id: TypeId,
        /// The length in the payload.
        length: i32,
    },
    /// A null where the Rust type cannot represent null.
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
        /// The number of bytes of valid text before the error.
        at: usize,
    },
    /// A character outside the basic multilingual plane, or half of a surrogate pair. The format
    /// holds one UTF-16 unit.
    #[error("U+{code:04X} is not one UTF-16 unit and one character; write it as text instead")]
    NotOneUnit {
        /// The code point, or the lone surrogate.
        code: u32,
    },
    /// The value has more bytes or items than the format's 32-bit lengths allow.
    #[error("a {type_id} of {length} bytes or items; the format holds at most {}", i32::MAX)]
    TooLong {
        /// The type being written.
        type_id: TypeId,
        /// The length of the value in bytes or items.
        length: usize,
    },
    /// A number that is not a field kind of the Compact format.
    #[error("{0} is not a field kind of the Compact format; 0 to 46 are expected")]
    UnknownFieldKind(i32),
    /// A Compact schema that was not announced.
    #[error("the Compact schema {0} is not known; a client has to announce it before it stores values of it")]
    UnknownSchema(SchemaId),
    /// An invalid part of a value.
    #[error("a serialized {type_id} has {found}; {expected} is expected")]
    Broken {
        /// The type being read.
        type_id: TypeId,
        /// The invalid part.
        found: String,
        /// The valid values of this part.
        expected: &'static str,
    },
    /// A value that a field of an object cannot hold.
    #[error("{value} does not fit into the field {field:?}, which holds {expected}")]
    Unfit {
        /// The field's name.
        field: Box<str>,
        /// The value, possibly shortened.
        value: Box<str>,
        /// The kind of the field.
        expected: Box<str>,
    },
    /// The number of values differs from the number of the object's fields.
    #[error("{values} values for an object of {fields} fields")]
    WrongCount {
        /// The number of values.
        values: usize,
        /// The number of fields.
        fields: usize,
    },
    /// A value that cannot be converted to another type.
    #[error("the {found} {value} cannot be a {to}; {expected} is expected")]
    NotConvertible {
        /// The value, possibly shortened.
        value: String,
        /// The value's type.
        found: &'static str,
        /// The requested type.
        to: String,
        /// The values that can be converted.
        expected: &'static str,
    },
    /// A value beyond the limits of its serialized form: a leap second, a scale of more than 32
    /// bits, a length of 2 GiB or more.
    #[error("a {type_id} that is beyond what clients can read")]
    Unwritable {
        /// The type being written.
        type_id: TypeId,
    },
    /// Text that is not valid JSON.
    #[error("JSON is broken at byte {at}; {expected} is expected")]
    BrokenJson {
        /// The number of bytes of the document before the error.
        at: usize,
        /// The expected syntax.
        expected: &'static str,
    },
    /// A read of a field of an IdentifiedDataSerializable without a declared layout.
    #[error(
        "an IdentifiedDataSerializable has no names in it; to read its fields the mapping has to declare its layout"
    )]
    NoLayout,
    /// An object of another class than the class of the layout.
    #[error("an object of factory {} and class {}; the mapping declares the layout of factory {} and class {}",
        found.0, found.1, expected.0, expected.1)]
    WrongClass {
        /// Factory and class of the object.
        found: (i32, i32),
        /// Factory and class of the layout.
        expected: (i32, i32),
    },
    /// An invalid path.
    #[error("{path:?} is not a path such as address.city, tags[0] or tags[any]: {reason}")]
    BrokenPath {
        /// The text of the path.
        path: String,
        /// The reason why the path is invalid.
        reason: String,
    },
    /// A syntax error in the text of a predicate's condition.
    #[error("the condition has {found} at character {character}; {expected} is expected")]
    BrokenCondition {
        /// The position of the error in characters, counted from 1.
        character: usize,
        /// The unexpected token.
        found: String,
        /// The expected token.
        expected: &'static str,
    },
}
