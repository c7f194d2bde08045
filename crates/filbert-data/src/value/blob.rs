//! Values and blobs: how a value is written by the stock clients, and what a blob holds.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};

use super::Value;
use crate::convert::{expect_type, write_length};
use crate::parts::{Part, Year};
use crate::text::write_text;
use crate::{BLOB_HEADER_BYTES, Blob, DataError, FromBlob, Input, ToBlob, TypeId, plain, portable, type_id};

impl<'a> Value<'a> {
    /// The value that a blob holds, borrowed where that is possible. Arrays and lists are read item by item; what has
    /// fields, or is of a type unknown here, stays the blob that it is.
    ///
    /// # Errors
    ///
    /// The blob has no header, or its payload is broken.
    pub fn from_blob(blob: &'a [u8]) -> Result<Value<'a>, DataError> {
        plain::read_blob(type_id(blob)?, blob, None)
    }
}

/// Each value as the stock Java client writes the type it stands for: an `Int32` as an int, an `Array` as an `ArrayList`,
/// `Bytes` as a `byte[]`, an `Interval` as its text, a `Decimal` as a `BigDecimal`, an `Object` as itself.
impl ToBlob for Value<'_> {
    fn type_id(&self) -> TypeId {
        match self {
            Value::Null => TypeId::NULL,
            Value::Boolean(_) => TypeId::BOOLEAN,
            Value::Int8(_) => TypeId::BYTE,
            Value::Int16(_) => TypeId::SHORT,
            Value::Int32(_) => TypeId::INT,
            Value::Int64(_) => TypeId::LONG,
            Value::Float32(_) => TypeId::FLOAT,
            Value::Float64(_) => TypeId::DOUBLE,
            Value::Decimal(_) => TypeId::BIG_DECIMAL,
            Value::Text(_) => TypeId::STRING,
            Value::Date(_) => TypeId::LOCAL_DATE,
            Value::Time(_) => TypeId::LOCAL_TIME,
            Value::Timestamp(_) => TypeId::LOCAL_DATE_TIME,
            Value::TimestampTz(_) => TypeId::OFFSET_DATE_TIME,
            Value::Uuid(_) => TypeId::UUID,
            Value::Json(_) => TypeId::JSON,
            Value::Array(_) => TypeId::ARRAY_LIST,
            Value::Bytes(_) => TypeId::BYTE_ARRAY,
            Value::Interval(_) => TypeId::STRING,
            Value::Object(blob) => type_id(blob).unwrap_or(TypeId::NULL),
        }
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let part = match self {
            Value::Null => return Ok(()),
            Value::Boolean(_) => Part::Boolean,
            Value::Int8(_) => Part::Int8,
            Value::Int16(_) => Part::Int16,
            Value::Int32(_) => Part::Int32,
            Value::Int64(_) => Part::Int64,
            Value::Float32(_) => Part::Float32,
            Value::Float64(_) => Part::Float64,
            Value::Decimal(_) => Part::Decimal,
            Value::Date(_) => Part::Date(Year::Int),
            Value::Time(_) => Part::Time,
            Value::Timestamp(_) => Part::Timestamp(Year::Int),
            Value::TimestampTz(_) => Part::TimestampTz(Year::Int),
            Value::Text(text) => return write_text(TypeId::STRING, text, out),
            Value::Json(text) => return write_text(TypeId::JSON, text, out),
            Value::Uuid(uuid) => return uuid.write_payload(out),
            Value::Array(items) => {
                write_length(TypeId::ARRAY_LIST, items.len(), out)?;
                return items.iter().try_for_each(|item| item.write_object(out));
            }
            Value::Bytes(bytes) => {
                write_length(TypeId::BYTE_ARRAY, bytes.len(), out)?;
                out.extend_from_slice(bytes);
                return Ok(());
            }
            Value::Interval(interval) => return write_text(TypeId::STRING, &interval.to_string(), out),
            Value::Object(blob) => {
                let payload = blob.get(BLOB_HEADER_BYTES..).ok_or(DataError::NoHeader { bytes: blob.len() })?;
                out.extend_from_slice(payload);
                return Ok(());
            }
        };
        part.write(self, out).map_err(|_| DataError::Unwritable { type_id: self.type_id() })
    }

    fn payload_bytes(&self) -> usize {
        match self {
            Value::Text(text) | Value::Json(text) => 4 + text.len(),
            Value::Array(items) => items.iter().fold(4, |bytes, item| bytes + 4 + item.payload_bytes()),
            Value::Bytes(bytes) => 4 + bytes.len(),
            Value::Object(blob) => blob.len().saturating_sub(BLOB_HEADER_BYTES),
            Value::Null => 0,
            _ => 16,
        }
    }

    fn write_blob(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        if let Value::Object(blob) = self {
            // With the partition hash that it has.
            out.extend_from_slice(blob);
            return Ok(());
        }
        if !out.is_empty() && matches!(self, Value::Array(_)) {
            // Portables within count their positions from the start of the blob.
            out.extend_from_slice(&self.to_blob()?);
            return Ok(());
        }
        out.reserve(BLOB_HEADER_BYTES + self.payload_bytes());
        out.extend_from_slice(&[0; 4]);
        self.write_object(out)
    }

    /// As the trait says; `out` has to begin with the blob that the value is written into.
    fn write_object(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let type_id = self.type_id();
        out.extend_from_slice(&type_id.0.to_be_bytes());
        match self {
            Value::Object(blob) if type_id == TypeId::PORTABLE => portable::put_in(blob, out),
            _ => self.write_payload(out),
        }
    }
}

/// Implements both traits for a Rust type that a value wraps.
macro_rules! wrapped {
    ($($rust:ty = $type_id:ident, $variant:ident;)*) => {
        $(
            #[doc = concat!("As the stock clients write it, ", stringify!($type_id), ".")]
            impl ToBlob for $rust {
                fn type_id(&self) -> TypeId {
                    TypeId::$type_id
                }

                fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
                    Value::$variant(self.clone()).write_payload(out)
                }

                fn payload_bytes(&self) -> usize {
                    16
                }
            }

            impl FromBlob for $rust {
                fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
                    expect_type(input, TypeId::$type_id)?;
                    match plain::read_payload(input)? {
                        Some(Value::$variant(value)) => Ok(value),
                        _ => Err(input.null()),
                    }
                }
            }
        )*
    };
}

wrapped! {
    BigDecimal = BIG_DECIMAL, Decimal;
    NaiveDate = LOCAL_DATE, Date;
    NaiveTime = LOCAL_TIME, Time;
    NaiveDateTime = LOCAL_DATE_TIME, Timestamp;
    DateTime<FixedOffset> = OFFSET_DATE_TIME, TimestampTz;
}

/// Its bytes in two's complement, the highest first, in the least number that holds it.
impl ToBlob for BigInt {
    fn type_id(&self) -> TypeId {
        TypeId::BIG_INTEGER
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let bytes = self.to_signed_bytes_be();
        write_length(TypeId::BIG_INTEGER, bytes.len(), out)?;
        out.extend_from_slice(&bytes);
        Ok(())
    }
}

impl FromBlob for BigInt {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::BIG_INTEGER)?;
        let length = input.length(1)?.ok_or_else(|| input.null())?;
        Ok(BigInt::from_signed_bytes_be(input.take(length)?))
    }
}

/// A JSON document's value is its text.
impl From<crate::Json> for Value<'static> {
    fn from(json: crate::Json) -> Self {
        Value::Json(Cow::Owned(json.0))
    }
}

/// A blob's value is the blob as it is; see [`Value::from_blob`] to look inside.
impl From<Blob> for Value<'static> {
    fn from(blob: Blob) -> Self {
        Value::Object(Cow::Owned(blob.into_vec()))
    }
}
