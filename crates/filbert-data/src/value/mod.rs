//! The values of queries: items read from blobs, literals of statements, parameters of predicates.

mod compare;
mod convert;
mod index_key;
mod interval;
mod kinds;
mod number;
mod text;

pub use convert::uuid_of;
pub use interval::{Interval, NoInterval};
pub use kinds::Kinds;

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use uuid::Uuid;

/// One value, borrowed from the source bytes where possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A null, or a field that the object does not have.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A whole number of 8 bits.
    Int8(i8),
    /// A whole number of 16 bits.
    Int16(i16),
    /// A whole number of 32 bits.
    Int32(i32),
    /// A whole number of 64 bits.
    Int64(i64),
    /// A binary floating-point number of 32 bits.
    Float32(f32),
    /// A binary floating-point number of 64 bits.
    Float64(f64),
    /// A decimal number of any size: Java's `BigDecimal` and `BigInteger`.
    Decimal(BigDecimal),
    /// A text, or a single character.
    Text(Cow<'a, str>),
    /// A date.
    Date(NaiveDate),
    /// A time of day.
    Time(NaiveTime),
    /// A date and a time of day, without a time zone.
    Timestamp(NaiveDateTime),
    /// A date and a time of day with an offset from UTC.
    TimestampTz(DateTime<FixedOffset>),
    /// A UUID.
    Uuid(Uuid),
    /// A JSON document, or an object or array within one, as text.
    Json(Cow<'a, str>),
    /// Items in order: an array, a list, or the result of a path with `[any]`.
    Array(Vec<Value<'a>>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A span of time.
    Interval(Interval),
    /// An object as a blob (header and payload): a Portable, a Compact, an
    /// IdentifiedDataSerializable, a Java object. As a whole it is opaque to queries.
    Object(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// A borrowed text.
    #[inline]
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }

    /// The SQL name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Boolean(_) => "BOOLEAN",
            Value::Int8(_) => "TINYINT",
            Value::Int16(_) => "SMALLINT",
            Value::Int32(_) => "INTEGER",
            Value::Int64(_) => "BIGINT",
            Value::Float32(_) => "REAL",
            Value::Float64(_) => "DOUBLE",
            Value::Decimal(_) => "DECIMAL",
            Value::Text(_) => "VARCHAR",
            Value::Date(_) => "DATE",
            Value::Time(_) => "TIME",
            Value::Timestamp(_) => "TIMESTAMP",
            Value::TimestampTz(_) => "TIMESTAMP WITH TIME ZONE",
            Value::Uuid(_) => "UUID",
            Value::Json(_) => "JSON",
            Value::Array(_) => "ARRAY",
            Value::Bytes(_) => "BYTEA",
            Value::Interval(_) => "INTERVAL",
            Value::Object(_) => "OBJECT",
        }
    }

    /// Whether the value is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The same value with owned bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(value) => Value::Boolean(value),
            Value::Int8(value) => Value::Int8(value),
            Value::Int16(value) => Value::Int16(value),
            Value::Int32(value) => Value::Int32(value),
            Value::Int64(value) => Value::Int64(value),
            Value::Float32(value) => Value::Float32(value),
            Value::Float64(value) => Value::Float64(value),
            Value::Decimal(value) => Value::Decimal(value),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Date(value) => Value::Date(value),
            Value::Time(value) => Value::Time(value),
            Value::Timestamp(value) => Value::Timestamp(value),
            Value::TimestampTz(value) => Value::TimestampTz(value),
            Value::Uuid(value) => Value::Uuid(value),
            Value::Json(text) => Value::Json(Cow::Owned(text.into_owned())),
            Value::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Value::Interval(interval) => Value::Interval(interval),
            Value::Object(bytes) => Value::Object(Cow::Owned(bytes.into_owned())),
        }
    }
}
