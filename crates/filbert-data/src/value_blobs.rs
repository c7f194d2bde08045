//! Values and blobs: writes values as the stock clients write them, and reads the values of blobs.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};

use crate::convert::{expect_type, write_length};
use crate::items::{ItemType, Year};
use crate::text::write_text;
use crate::{BLOB_HEADER_BYTES, Blob, DataError, FromBlob, Input, ToBlob, TypeId, Value, plain, portable, type_id};

impl<'a> Value<'a> {
    /// The value of a blob, borrowed where possible. Arrays and lists are read item by item. An
    /// object with fields, or a value of an unknown type, remains a blob.
    ///
    /// # Errors
    ///
    /// The blob has no header, or its payload is broken.
    pub fn from_blob(blob: &'a [u8]) -> Result<Value<'a>, DataError> {
        plain::read_blob(type_id(blob)?, blob, None)
    }
}

/// Each value is written as the stock Java client writes the corresponding type: an `Int32` as an
/// int, an `Array` as an `ArrayList`, `Bytes` as a `byte[]`, an `Interval` as its text, a `Decimal`
/// as a `BigDecimal`, an `Object` unchanged.
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
            Value::Boolean(_) => ItemType::Boolean,
            Value::Int8(_) => ItemType::Int8,
            Value::Int16(_) => ItemType::Int16,
            Value::Int32(_) => ItemType::Int32,
            Value::Int64(_) => ItemType::Int64,
            Value::Float32(_) => ItemType::Float32,
            Value::Float64(_) => ItemType::Float64,
            Value::Decimal(_) => ItemType::Decimal,
            Value::Date(_) => ItemType::Date(Year::Int),
            Value::Time(_) => ItemType::Time,
            Value::Timestamp(_) => ItemType::Timestamp(Year::Int),
            Value::TimestampTz(_) => ItemType::TimestampTz(Year::Int),
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
            // The blob keeps its partition hash.
            out.extend_from_slice(blob);
            return Ok(());
        }
        if !out.is_empty() && matches!(self, Value::Array(_)) {
            // The positions of nested Portables count from the start of the blob.
            out.extend_from_slice(&self.to_blob()?);
            return Ok(());
        }
        out.reserve(BLOB_HEADER_BYTES + self.payload_bytes());
        out.extend_from_slice(&[0; 4]);
        self.write_object(out)
    }

    /// As in the trait. `out` must begin with the first byte of the enclosing blob.
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

/// The number of bytes, then the minimal two's complement in big-endian order.
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

/// The value of a JSON document is its text.
impl From<crate::Json> for Value<'static> {
    fn from(json: crate::Json) -> Self {
        Value::Json(Cow::Owned(json.0))
    }
}

/// The value of a blob is the unchanged blob. [`Value::from_blob`] reads its content.
impl From<Blob> for Value<'static> {
    fn from(blob: Blob) -> Self {
        Value::Object(Cow::Owned(blob.into_vec()))
    }
}
