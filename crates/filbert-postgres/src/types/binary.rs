//! Values in PostgreSQL's binary formats.

use std::borrow::Cow;

use filbert_data::dates::Zone;
use filbert_data::{FieldType, Value};
use uuid::Uuid;

use super::{Base, PgType, arrays, datetimes, decimals, intervals, text, vectors};
use crate::error::{PgError, sqlstate};

#[cold]
pub(super) fn invalid(bytes: &[u8], pg_type: PgType) -> Box<PgError> {
    let message = format!("{} bytes are no binary value of type {pg_type}", bytes.len());
    PgError::new(sqlstate::INVALID_BINARY, message)
}

/// Reads a value of a type from its binary form.
///
/// # Errors
/// The bytes are not a value of the type.
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
        Base::Oid | Base::Xid => Value::Int64(u32::from_be_bytes(fixed(bytes, pg_type)?).into()),
        Base::Int2Vector | Base::OidVector => vectors::read_binary(bytes, pg_type)?,
        Base::Float4 => Value::Float32(f32::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Float8 => Value::Float64(f64::from_be_bytes(fixed(bytes, pg_type)?)),
        Base::Numeric => Value::Decimal(decimals::read_binary(bytes)?),
        Base::Text | Base::Varchar | Base::Bpchar | Base::Name | Base::Char | Base::Unknown => {
            Value::text(utf8(bytes)?)
        }
        Base::Bytea => Value::Bytes(Cow::Borrowed(bytes)),
        Base::Date => {
            let days = i32::from_be_bytes(fixed(bytes, pg_type)?);
            Value::Date(datetimes::date_of(days).ok_or_else(|| datetimes::out_of_range("date"))?)
        }
        Base::Time => {
            let microseconds = i64::from_be_bytes(fixed(bytes, pg_type)?);
            Value::Time(datetimes::time_of(microseconds).ok_or_else(|| datetimes::out_of_range("time"))?)
        }
        Base::Timestamp | Base::Timestamptz => {
            let microseconds = i64::from_be_bytes(fixed(bytes, pg_type)?);
            let timestamp =
                datetimes::timestamp_of(microseconds).ok_or_else(|| datetimes::out_of_range("timestamp"))?;
            match pg_type.base {
                Base::Timestamp => Value::Timestamp(timestamp),
                _ => Value::TimestampTz(datetimes::in_utc(timestamp)),
            }
        }
        Base::Interval => {
            let interval = intervals::read_binary(&fixed(bytes, pg_type)?);
            Value::Interval(interval.ok_or_else(|| datetimes::out_of_range("interval"))?)
        }
        Base::Uuid => Value::Uuid(Uuid::from_bytes(fixed(bytes, pg_type)?)),
        Base::Json => Value::Json(Cow::Borrowed(text::json(utf8(bytes)?, pg_type)?)),
        Base::Jsonb => match bytes.split_first() {
            // The only version of the format.
            Some((1, document)) => Value::Json(Cow::Borrowed(text::json(utf8(document)?, pg_type)?)),
            _ => return Err(invalid(bytes, pg_type)),
        },
    })
}

fn fixed<const N: usize>(bytes: &[u8], pg_type: PgType) -> Result<[u8; N], Box<PgError>> {
    bytes.try_into().map_err(|_| invalid(bytes, pg_type))
}

/// Decodes bytes as text without zero bytes.
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

/// Writes a value that is not null in the binary format of the type.
///
/// # Errors
/// PostgreSQL has no such value.
pub(crate) fn write_binary(value: &Value<'_>, pg_type: PgType, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let range = |what| move || datetimes::out_of_range(what);
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
        (Base::Oid | Base::Xid, Value::Int64(value)) => {
            let oid = u32::try_from(*value).map_err(|_| invalid(&value.to_be_bytes(), pg_type))?;
            out.extend_from_slice(&oid.to_be_bytes());
        }
        (Base::Int2Vector | Base::OidVector, Value::Array(items)) => vectors::write_binary(items, pg_type, out)?,
        (Base::Float4, Value::Float32(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Float8, Value::Float64(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Base::Numeric, Value::Decimal(value)) => decimals::write_binary(value, out)?,
        (Base::Date, Value::Date(value)) => out.extend_from_slice(&datetimes::days(*value).to_be_bytes()),
        (Base::Time, Value::Time(value)) => {
            out.extend_from_slice(&datetimes::microseconds_of_day(*value).to_be_bytes())
        }
        (Base::Timestamp, Value::Timestamp(value)) => {
            let microseconds = datetimes::microseconds(*value).ok_or_else(range("timestamp"))?;
            out.extend_from_slice(&microseconds.to_be_bytes());
        }
        (Base::Timestamptz, Value::TimestampTz(value)) => {
            let microseconds = datetimes::microseconds(value.naive_utc()).ok_or_else(range("timestamp"))?;
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
        // A value with another type than its column: written as text in a text column, otherwise
        // converted.
        (Base::Text | Base::Varchar | Base::Bpchar | Base::Name | Base::Char | Base::Unknown | Base::Json, other) => {
            super::write_text(other, pg_type, &Zone::UTC, out)?
        }
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

#[cfg(test)]
mod tests {
    use super::super::{read_text, type_by_name, write_text};
    use super::*;

    /// Values as text, and as the hexadecimal results of PostgreSQL's `*send` functions.
    const KNOWN: [(&str, &str, &str); 33] = [
        ("boolean", "t", "01"),
        ("smallint", "-2", "fffe"),
        ("integer", "65536", "00010000"),
        ("bigint", "-9223372036854775808", "8000000000000000"),
        ("oid", "4294967295", "ffffffff"),
        ("xid", "3", "00000003"),
        ("int2vector", "1 -2", "000000010000000000000015000000020000000000000002000100000002fffe"),
        ("oidvector", "26", "00000001000000000000001a0000000100000000000000040000001a"),
        ("oidvector", "", "00000000000000000000001a"),
        ("real", "1.5", "3fc00000"),
        ("double precision", "-0.1", "bfb999999999999a"),
        ("double precision", "NaN", "7ff8000000000000"),
        ("numeric", "1234567.89", "0003000100000002007b11d722c4"),
        ("text", "ü", "c3bc"),
        ("text", "", ""),
        ("varchar", "a b", "612062"),
        ("bytea", "\\x00ff", "00ff"),
        ("date", "2000-01-01", "00000000"),
        ("date", "1999-12-31", "ffffffff"),
        ("date", "0001-01-01 BC", "fff4da8b"),
        ("time", "00:00:01", "00000000000f4240"),
        ("time", "23:59:59.999999", "000000141dd75fff"),
        ("timestamp", "2000-01-01 00:00:00", "0000000000000000"),
        ("timestamp", "1970-01-01 00:00:00", "fffca2fec4c82000"),
        ("timestamptz", "2000-01-01 00:00:01+00", "00000000000f4240"),
        ("interval", "1 year 2 mons 3 days 00:00:04", "00000000003d0900000000030000000e"),
        ("interval", "-1 days +00:00:01", "00000000000f4240ffffffff00000000"),
        ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8", "67e5504410b1426f9247bb680e5fe0c8"),
        ("json", "{\"a\": 1}", "7b2261223a20317d"),
        ("jsonb", "[]", "015b5d"),
        ("integer[]", "{}", "000000000000000000000017"),
        ("integer[]", "{5}", "00000001000000000000001700000001000000010000000400000005"),
        ("text[]", "{a,NULL}", "00000001000000010000001900000002000000010000000161ffffffff"),
    ];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn values_have_the_bytes_of_postgresql() {
        for (name, text, expected) in KNOWN {
            let pg_type = type_by_name(name).unwrap();
            let value = read_text(text, pg_type, &Zone::UTC).unwrap_or_else(|error| panic!("{name} {text}: {error:?}"));
            let mut binary = Vec::new();
            write_binary(&value, pg_type, &mut binary).unwrap();
            assert_eq!(hex(&binary), expected, "{name} {text}");
            let reread = read_binary(&binary, pg_type).unwrap();
            let mut written = Vec::new();
            write_text(&reread, pg_type, &Zone::UTC, &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn texts_are_read_as_postgresql_reads_them() {
        for (name, text, expected) in [
            ("boolean", " YES ", "t"),
            ("boolean", "off", "f"),
            ("boolean", "0", "f"),
            ("integer", " 7 ", "7"),
            ("real", "Infinity", "Infinity"),
            ("double precision", "1E3", "1000"),
            ("numeric", "1e3", "1000"),
            ("bytea", "a\\\\b\\101", "\\x615c6241"),
            ("bytea", "\\xAB cd", "\\xabcd"),
            ("date", "20240229", "2024-02-29"),
            ("interval", "PT1H", "01:00:00"),
            ("uuid", "{67E55044-10B1-426F-9247-BB680E5FE0C8}", "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        ] {
            let pg_type = type_by_name(name).unwrap();
            let mut written = Vec::new();
            write_text(&read_text(text, pg_type, &Zone::UTC).unwrap(), pg_type, &Zone::UTC, &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{name} {text}");
        }
    }

    #[test]
    fn what_is_no_value_of_a_type_is_an_error() {
        for (name, text, sqlstate) in [
            ("boolean", "o", "22P02"),
            ("integer", "", "22P02"),
            ("smallint", "32768", "22003"),
            ("numeric", "NaN", "0A000"),
            ("numeric", "-Infinity", "0A000"),
            ("numeric", "nanny", "22P02"),
            ("bytea", "\\x0", "22P02"),
            ("bytea", "\\9", "22P02"),
            ("date", "2023-02-29", "22008"),
            ("timestamp", "yesterday", "0A000"),
            ("uuid", "x", "22P02"),
            ("json", "{", "22P02"),
        ] {
            let error = read_text(text, type_by_name(name).unwrap(), &Zone::UTC).unwrap_err();
            assert_eq!(error.sqlstate, sqlstate, "{name} {text}");
        }
        for (name, bytes) in
            [("integer", &[0; 3][..]), ("boolean", &[]), ("jsonb", b"\x02{}"), ("uuid", &[0; 15]), ("text", b"\xff")]
        {
            assert!(read_binary(bytes, type_by_name(name).unwrap()).is_err(), "{name}");
        }
        let far = read_binary(&i64::MAX.to_be_bytes(), type_by_name("timestamp").unwrap()).unwrap_err();
        assert_eq!(far.sqlstate, "22008");
    }

    #[test]
    fn values_of_other_types_than_their_column_are_converted() {
        let mut out = Vec::new();
        write_binary(&Value::Int64(7), type_by_name("integer").unwrap(), &mut out).unwrap();
        write_binary(&Value::Int32(7), PgType::TEXT, &mut out).unwrap();
        assert_eq!(out, b"\0\0\0\x077");
        assert!(write_binary(&Value::text("x"), type_by_name("integer").unwrap(), &mut out).is_err());
    }
}
