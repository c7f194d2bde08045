//! Values in PostgreSQL's binary formats.

use std::borrow::Cow;

use filbert_data::{FieldType, Value};
use uuid::Uuid;

use super::{Base, PgType, arrays, decimals, intervals, moments, text};
use crate::error::{PgError, sqlstate};

#[cold]
pub(super) fn invalid(bytes: &[u8], pg_type: PgType) -> Box<PgError> {
    let message = format!("{} bytes are no binary value of type {pg_type}", bytes.len());
    PgError::new(sqlstate::INVALID_BINARY, message)
}

/// Reads a value of a type from its binary form.
///
/// # Errors
/// It is none of the type.
pub(crate) fn read_binary<'a>(bytes: &'a [u8], pg_type: PgType) -> Result<Value<'a>, Box<PgError>> {
    if pg_type.is_array {
        return arrays::read_binary(bytes, pg_type);
    }
    Ok(match pg_type.base {
        Base::Bool => match bytes {
            [0] => Value::Boolean(false),
            [_] => Value::Boolean(true),
            _ => return Err(invalid(bytes, pg_type)),
        },
        Base::Int2 => Value::Int16(i16::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Int4 => Value::Int32(i32::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Int8 => Value::Int64(i64::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Oid => Value::Int64(u32::from_be_bytes(fixed(bytes, pg_type)?).into()),
        Base::Float4 => Value::Float32(f32::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Float8 => Value::Float64(f64::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Numeric => Value::Decimal(decimals::read_binary(bytes)?),
        Base::Text | Base::Varchar | Base::Bpchar | Base::Name | Base::Char | Base::Unknown => {
            Value::text(utf8(bytes)?)
        }
        Base::Bytea => Value::Bytes(Cow::Borrowed(bytes)),
        Base::Date => {
            let days = i32::from_be_bytes(fixed(bytes, pg_type)?);
            Value::Date(moments::date_of(days).ok_or_else(|| moments::out_of_range("date"))?)
        }
        Base::Time => {
            let microseconds = i64::from_be_bytes(fixed(bytes, pg_type)?);
            Value::Time(moments::time_of(microseconds).ok_or_else(|| moments::out_of_range("time"))?)
        }
        Base::Timestamp | Base::Timestamptz => {
            let microseconds = i64::from_be_bytes(fixed(bytes, pg_type)?);
            let timestamp = moments::timestamp_of(microseconds).ok_or_else(|| moments::out_of_range("timestamp"))?;
            match pg_type.base {
                Base::Timestamp => Value::Timestamp(timestamp),
                _ => Value::TimestampTz(moments::in_utc(timestamp)),
            }
        }
        Base::Interval => {
            let interval = intervals::read_binary(&fixed(bytes, pg_type)?);
            Value::Interval(interval.ok_or_else(|| moments::out_of_range("interval"))?)
        }
        Base::Uuid => Value::Uuid(Uuid::from_bytes(fixed(bytes, pg_type)?)),
        Base::Json => Value::Json(Cow::Borrowed(text::json(utf8(bytes)?, pg_type)?)),
        Base::Jsonb => match bytes.split_first() {
            // The only version that there is.
            Some((1, document)) => Value::Json(Cow::Borrowed(text::json(utf8(document)?, pg_type)?)),
            _ => return Err(invalid(bytes, pg_type)),
        },
    })
}

fn fixed<const N: usize>(bytes: &[u8], pg_type: PgType) -> Result<[u8; N], Box<PgError>> {
    bytes.try_into().map_err(|_| invalid(bytes, pg_type))
}

/// Bytes as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Box<PgError>> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(PgError::new(sqlstate::NOT_IN_REPERTOIRE, "a text has a zero byte in it")),
        Err(error) => {
            let message = format!("invalid byte sequence for encoding \"UTF8\" behind byte {}", error.valid_up_to());
            Err(PgError::new(sqlstate::NOT_IN_REPERTOIRE, message))
        }
    }
}

/// Writes a value that is not null in binary, as one of the type.
///
/// # Errors
/// PostgreSQL has no such value.
pub(crate) fn write_binary(value: &Value<'_>, pg_type: PgType, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let range = |what| move || moments::out_of_range(what);
    match (pg_type.base, value) {
        _ if pg_type.is_array => match value {
            Value::Array(items) => arrays::write_binary(items, pg_type.item(), out)?,
            other => arrays::write_binary(std::slice::from_ref(other), pg_type.item(), out)?,
        },
        (_, Value::Null) => {}
        (Base::Bool, Value::Boolean(value)) => out.push(u8::from(*value)),
        (Base::Int2, Value::Int8(value)) => out.extend_from_slice(&i16::from(*value).to_be_bytes()),
        (Base::Int2, Value::Int16(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Int4, Value::Int32(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Int8, Value::Int64(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Float4, Value::Float32(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Float8, Value::Float64(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Numeric, Value::Decimal(value)) => decimals::write_binary(value, out)?,
        (Base::Date, Value::Date(value)) => out.extend_from_slice(&moments::days(*value).to_be_bytes()),
        (Base::Time, Value::Time(value)) => out.extend_from_slice(&moments::microseconds_of_day(*value).to_be_bytes()),
        (Base::Timestamp, Value::Timestamp(value)) => {
            let microseconds = moments::microseconds(*value).ok_or_else(range("timestamp"))?;
            out.extend_from_slice(&microseconds.to_be_bytes());
        }
        (Base::Timestamptz, Value::TimestampTz(value)) => {
            let microseconds = moments::microseconds(value.naive_utc()).ok_or_else(range("timestamp"))?;
            out.extend_from_slice(&microseconds.to_be_bytes());
        }
        (Base::Interval, Value::Interval(value)) => intervals::write_binary(value, out),
        (Base::Uuid, Value::Uuid(value)) => out.extend_from_slice(value.as_bytes()),
        (Base::Bytea, Value::Bytes(value) | Value::Object(value)) => out.extend_from_slice(value),
        (Base::Jsonb, Value::Json(value)) => {
            out.push(1);
            out.extend_from_slice(value.as_bytes());
        }
        (Base::Text | Base::Json, Value::Text(value) | Value::Json(value)) => out.extend_from_slice(value.as_bytes()),
        // A value of another type than its column: as text where the column is of text, else converted.
        (Base::Text | Base::Varchar | Base::Json, other) => super::write_text(other, pg_type, out)?,
        (_, other) => return write_converted(other, pg_type, out),
    }
    Ok(())
}

#[cold]
fn write_converted(value: &Value<'_>, pg_type: PgType, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let to = pg_type.field_type().unwrap_or(FieldType::Varchar);
    let converted = value.clone().convert(&to)?;
    if converted == *value {
        return Err(PgError::new(sqlstate::INTERNAL, format!("a {} cannot be sent as {pg_type}", value.type_name())));
    }
    write_binary(&converted, pg_type, out)
}
