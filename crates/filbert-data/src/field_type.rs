//! The SQL types of fields, independent of the storage format.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of a field, a column or an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldType {
    /// True or false.
    Boolean,
    /// A whole number of 8 bits.
    TinyInt,
    /// A whole number of 16 bits.
    SmallInt,
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    BigInt,
    /// A decimal number, with precision and scale if they are declared.
    Decimal(Option<(u8, i8)>),
    /// A 32-bit floating-point number.
    Real,
    /// A 64-bit floating-point number.
    Double,
    /// Text.
    Varchar,
    /// A single UTF-16 unit: Java's `char`, a text in SQL.
    Char,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// A date and a time of day.
    Timestamp,
    /// A date and a time of day with an offset from UTC.
    TimestampTz,
    /// A UUID.
    Uuid,
    /// A JSON document.
    Json,
    /// Any other value, opaque.
    Object,
    /// Bytes.
    Binary,
    /// Months, days and nanoseconds.
    Interval,
    /// An array of items of one type.
    Array(Box<FieldType>),
}

/// The type as written in SQL statements.
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
