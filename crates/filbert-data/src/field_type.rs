//! The types that fields have in SQL, independent of the format they are stored in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a field, a column or an expression holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldType {
    /// True or false.
    Boolean,
    /// 8 bits.
    TinyInt,
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Integer,
    /// 64 bits.
    BigInt,
    /// Decimal digits; precision and scale where they are declared.
    Decimal(Option<(u8, i8)>),
    /// 32-bit floating point.
    Real,
    /// 64-bit floating point.
    Double,
    /// Text.
    Varchar,
    /// A single UTF-16 unit: Java's `char`, a text in SQL.
    Char,
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// A day and a time of day.
    Timestamp,
    /// A moment.
    TimestampTz,
    /// A UUID.
    Uuid,
    /// A JSON document.
    Json,
    /// Anything else, opaque.
    Object,
    /// Bytes.
    Binary,
    /// Months, days and nanoseconds.
    Interval,
    /// Items of one type.
    Array(Box<FieldType>),
}

/// As statements write it.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldType::Boolean => "BOOLEAN",
            FieldType::TinyInt => "TINYINT",
            FieldType::SmallInt => "SMALLINT",
            FieldType::Integer => "INTEGER",
            FieldType::BigInt => "BIGINT",
            FieldType::Decimal(None) => "DECIMAL",
            FieldType::Decimal(Some((precision, scale))) => return write!(f, "DECIMAL({precision}, {scale})"),
            FieldType::Real => "REAL",
            FieldType::Double => "DOUBLE",
            FieldType::Varchar => "VARCHAR",
            FieldType::Char => "CHAR",
            FieldType::Date => "DATE",
            FieldType::Time => "TIME",
            FieldType::Timestamp => "TIMESTAMP",
            FieldType::TimestampTz => "TIMESTAMP WITH TIME ZONE",
            FieldType::Uuid => "UUID",
            FieldType::Json => "JSON",
            FieldType::Object => "OBJECT",
            FieldType::Binary => "BYTEA",
            FieldType::Interval => "INTERVAL",
            FieldType::Array(item) => return write!(f, "{item}[]"),
        })
    }
}
