//! What can be wrong with a value on its way into a blob or out of one.

use crate::{TypeId, compact::SchemaId};

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
    /// A Compact schema that was not announced.
    #[error("the Compact schema {0} is not known; a client has to announce it before it stores values of it")]
    UnknownSchema(SchemaId),
    /// A part of a value that cannot be.
    #[error("a serialized {type_id} has {found}; {expected} is expected")]
    Broken {
        /// The type being read.
        type_id: TypeId,
        /// What is there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A value that a field of an object cannot hold.
    #[error("{value} does not fit into the field {field:?}, which holds {expected}")]
    Unfit {
        /// The field's name.
        field: Box<str>,
        /// The value, or the beginning of it.
        value: Box<str>,
        /// What the field holds.
        expected: Box<str>,
    },
    /// Not as many values as an object has fields.
    #[error("{values} values for an object of {fields} fields")]
    WrongCount {
        /// Values that are there.
        values: usize,
        /// Fields to be written.
        fields: usize,
    },
    /// A value that has no place in another type.
    #[error("the {found} {value} cannot be a {to}; {expected} is expected")]
    NotConvertible {
        /// The value, or its beginning.
        value: String,
        /// The value's type.
        found: &'static str,
        /// The type asked for.
        to: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A value beyond what its serialized form can hold: a leap second, a scale of more than 32 bits, two gigabytes.
    #[error("a {type_id} that is beyond what clients can read")]
    Unwritable {
        /// The type being written.
        type_id: TypeId,
    },
    /// Text that is no JSON.
    #[error("JSON is broken at byte {at}; {expected} is expected")]
    BrokenJson {
        /// Bytes of the document before the offence.
        at: usize,
        /// What would be right.
        expected: &'static str,
    },
    /// A field is asked of an IdentifiedDataSerializable, and nobody said what it writes.
    #[error(
        "an IdentifiedDataSerializable has no names in it; to read its fields the mapping has to declare its layout"
    )]
    NoLayout,
    /// An object that is not of the class that its layout is for.
    #[error("an object of factory {} and class {}; the mapping declares the layout of factory {} and class {}",
        found.0, found.1, expected.0, expected.1)]
    WrongClass {
        /// Factory and class of the object.
        found: (i32, i32),
        /// Factory and class of the layout.
        expected: (i32, i32),
    },
    /// A path that leads nowhere.
    #[error("{path:?} is not a path such as address.city, tags[0] or tags[any]: {reason}")]
    BrokenPath {
        /// The path as written.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The text of a predicate's condition that cannot be read.
    #[error("the condition has {found} at character {character}; {expected} is expected")]
    BrokenCondition {
        /// Characters up to the offence, and that one.
        character: usize,
        /// What is there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
}
