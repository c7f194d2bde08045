//! The header of a blob, the ids of types, and the ids of Compact schemas.

use std::fmt;

/// The size of a blob's header in bytes: partition hash and type id, four bytes each.
pub const BLOB_HEADER_BYTES: usize = 8;

/// The type of a blob's value: the second four bytes of its header. Any number is possible: custom
/// serializers use positive numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub i32);

macro_rules! type_ids {
    ($($constant:ident = $id:literal, $name:literal;)*) => {
        impl TypeId {
            $(
                #[doc = concat!("The type id of: ", $name, ".")]
                pub const $constant: TypeId = TypeId($id);
            )*

            /// The readable name of the type; `None` for a custom serializer or another unknown
            /// type.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($id => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

type_ids! {
    NULL = 0, "null";
    PORTABLE = -1, "Portable";
    IDENTIFIED = -2, "IdentifiedDataSerializable";
    BYTE = -3, "byte";
    BOOLEAN = -4, "boolean";
    CHAR = -5, "char";
    SHORT = -6, "short";
    INT = -7, "int";
    LONG = -8, "long";
    FLOAT = -9, "float";
    DOUBLE = -10, "double";
    STRING = -11, "text";
    BYTE_ARRAY = -12, "byte array";
    BOOLEAN_ARRAY = -13, "boolean array";
    CHAR_ARRAY = -14, "char array";
    SHORT_ARRAY = -15, "short array";
    INT_ARRAY = -16, "int array";
    LONG_ARRAY = -17, "long array";
    FLOAT_ARRAY = -18, "float array";
    DOUBLE_ARRAY = -19, "double array";
    STRING_ARRAY = -20, "text array";
    UUID = -21, "UUID";
    JAVA_CLASS = -24, "Java class";
    BIG_INTEGER = -26, "big integer";
    BIG_DECIMAL = -27, "big decimal";
    OBJECT_ARRAY = -28, "object array";
    ARRAY_LIST = -29, "list";
    LINKED_LIST = -30, "linked list";
    LOCAL_DATE = -51, "date";
    LOCAL_TIME = -52, "time";
    LOCAL_DATE_TIME = -53, "date and time";
    OFFSET_DATE_TIME = -54, "date and time with offset";
    COMPACT = -55, "Compact";
    JAVA_SERIALIZABLE = -100, "Java object";
    PICKLE = -120, "Python object";
    JSON = -130, "JSON";
}

/// Name and number, such as `int (-7)`; only the number for a type without a name.
impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "type {}", self.0),
        }
    }
}

impl fmt::Debug for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeId({self})")
    }
}

/// The id of a Compact schema: its 64-bit Rabin fingerprint. Every client computes the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub i64);

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
