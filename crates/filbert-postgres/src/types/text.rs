//! Values in PostgreSQL's text formats.

use std::{borrow::Cow, fmt::Write};

use filbert_data::dates::{DateError, Zone};
use filbert_data::{FieldType, Value, dates, is_space, uuid_of};

use super::{Base, PgType, Text, arrays, datetimes, decimals, numbers, vectors};
use crate::error::{PgError, sqlstate};

/// The maximum number of characters of a value in an error text.
const SHOWN_MAX: usize = 60;

/// A text in quotes for an error text, shortened if it is long.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("\"{}...\"", text.get(..end).unwrap_or_default()),
        None => format!("\"{text}\""),
    }
}

#[cold]
pub(super) fn invalid(text: &str, pg_type: PgType) -> Box<PgError> {
    let sqlstate = match pg_type.base {
        Base::Date | Base::Time | Base::Timestamp | Base::Timestamptz | Base::Interval => sqlstate::INVALID_DATETIME,
        _ => sqlstate::INVALID_TEXT,
    };
    PgError::new(sqlstate, format!("invalid input syntax for type {pg_type}: {}", shown(text)))
}

/// Reads a value of a type from its text.
///
/// # Errors
/// The text is not a value of the type.
pub(crate) fn read_text<'a>(text: &'a str, pg_type: PgType, zone: &Zone) -> Result<Value<'a>, Box<PgError>> {
    if pg_type.is_array {
        return arrays::read_text(text, pg_type, zone);
    }
    let none = || invalid(text, pg_type);
    let trimmed = text.trim_matches(is_space);
    Ok(match pg_type.base {
        Base::Bool => Value::Boolean(boolean(trimmed).ok_or_else(none)?),
        Base::Int2 => Value::Int16(whole(text, pg_type)?),
        Base::Int4 => Value::Int32(whole(text, pg_type)?),
        Base::Int8 => Value::Int64(whole(text, pg_type)?),
        Base::Oid | Base::Xid => Value::Int64(whole::<u32>(text, pg_type)?.into()),
        Base::Int2Vector | Base::OidVector => vectors::read_text(text, pg_type)?,
        Base::Float4 => Value::text(trimmed).convert(&FieldType::Real).map_err(|_| none())?,
        Base::Float8 => Value::text(trimmed).convert(&FieldType::Double).map_err(|_| none())?,
        Base::Numeric => Value::Decimal(trimmed.parse().map_err(|_| decimals::refused(trimmed).unwrap_or_else(none))?),
        Base::Text | Base::Varchar | Base::Bpchar | Base::Name | Base::Char | Base::Unknown => Value::text(text),
        Base::Bytea => Value::Bytes(bytes(text).ok_or_else(none)?),
        Base::Date | Base::Time | Base::Timestamp | Base::Timestamptz | Base::Interval => {
            let read = timestamp(text, pg_type.base, zone)
                .map_err(|error| PgError::new(error.sqlstate(), error.to_string()))?;
            read.ok_or_else(none)?
        }
        Base::Uuid => Value::Uuid(uuid_of(trimmed).ok_or_else(none)?),
        Base::Json | Base::Jsonb => Value::Json(Cow::Borrowed(json(text, pg_type)?)),
    })
}

/// Reads a date, a time, a timestamp or an interval.
fn timestamp(text: &str, base: Base, zone: &Zone) -> Result<Option<Value<'static>>, DateError> {
    Ok(match base {
        Base::Date => datetimes::of_days(dates::read_date(text)?).map(Value::Date),
        Base::Time => datetimes::time_of(dates::read_time(text)?).map(Value::Time),
        Base::Timestamp => datetimes::of_micros(dates::read_timestamp(text)?).map(Value::Timestamp),
        Base::Timestamptz => {
            let read = datetimes::of_micros(dates::read_timestamptz(text, zone)?);
            read.map(|timestamp| Value::TimestampTz(datetimes::in_utc(timestamp)))
        }
        _ => Some(Value::Interval(dates::read_interval(text)?)),
    })
}

/// Checks that a text is a JSON document, and returns it.
pub(super) fn json(text: &str, pg_type: PgType) -> Result<&str, Box<PgError>> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(invalid(text, pg_type).within(error.to_string())),
    }
}

fn whole<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str, pg_type: PgType) -> Result<T, Box<PgError>> {
    use std::num::IntErrorKind;
    text.trim_matches(is_space).parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            let message = format!("value {} is out of range for type {pg_type}", shown(text));
            PgError::new(sqlstate::NUMBER_OUT_OF_RANGE, message)
        }
        _ => invalid(text, pg_type),
    })
}

/// Reads `true`, `yes`, `on`, `1` and their opposites. Unique prefixes are accepted.
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str| !text.is_empty() && word.starts_with(&text);
    match text.as_str() {
        "1" | "on" => Some(true),
        "0" | "of" | "off" => Some(false),
        _ if begins("true") || begins("yes") => Some(true),
        _ if begins("false") || begins("no") => Some(false),
        _ => None,
    }
}

/// Reads hexadecimal digits after `\x`. Otherwise reads characters, with octal numbers and
/// backslashes after a backslash.
fn bytes(text: &str) -> Option<Cow<'_, [u8]>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        return bytes.filter(|_| rest.is_empty()).map(Cow::Owned);
    }
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let (octal, after) = rest.split_first_chunk::<3>()?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()?);
            rest = after;
        }
    }
    Some(Cow::Owned(bytes))
}

/// Writes a value that is not null as text.
///
/// # Errors
/// PostgreSQL has no such value.
pub(crate) fn write_text(
    value: &Value<'_>,
    pg_type: PgType,
    zone: &Zone,
    out: &mut Vec<u8>,
) -> Result<(), Box<PgError>> {
    let mut text = Text(out);
    let mut display = |value: &dyn std::fmt::Display| {
        // Writing into a buffer does not fail.
        let _ = write!(text, "{value}");
    };
    match value {
        Value::Null => {}
        Value::Boolean(value) => text.push(if *value { 't' } else { 'f' }),
        Value::Int8(value) => display(value),
        Value::Int16(value) => display(value),
        Value::Int32(value) => display(value),
        Value::Int64(value) => display(value),
        Value::Float32(value) => numbers::float4(*value, &mut text),
        Value::Float64(value) => numbers::float8(*value, &mut text),
        Value::Decimal(value) => decimals::write_text(value, &mut text)?,
        Value::Text(value) | Value::Json(value) => text.push_str(value),
        Value::Date(value) => dates::write_date(datetimes::days_of(*value), &mut text),
        Value::Time(value) => dates::write_time(datetimes::microseconds_of_day(*value), &mut text),
        Value::Timestamp(value) => dates::write_timestamp(value.and_utc().timestamp_micros(), &mut text),
        Value::TimestampTz(value) => dates::write_timestamptz(value.timestamp_micros(), zone, &mut text),
        Value::Uuid(value) => display(value),
        Value::Interval(value) => dates::write_interval(value, &mut text),
        Value::Bytes(bytes) | Value::Object(bytes) => {
            text.push_str("\\x");
            let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' - 10 + half };
            text.0.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        }
        Value::Array(items) if vectors::item_of(pg_type).is_some() => vectors::write_text(items, &mut text),
        Value::Array(items) => arrays::write_text(items, pg_type.item(), zone, &mut text)?,
    }
    Ok(())
}
