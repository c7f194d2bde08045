//! Conversion of values to other types.

use std::borrow::Cow;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Utc};
use uuid::Uuid;

use super::Value;
use super::number::{Size, signum, to_f64, to_i64};
use crate::{BLOB_HEADER_BYTES, DataError, FieldType, TypeId, type_id};

/// The maximum number of characters of a value in an error text.
const SHOWN_MAX: usize = 60;

impl<'a> Value<'a> {
    /// Converts the value to the type `to`. A null remains null, and `OBJECT` accepts every value
    /// unchanged.
    ///
    /// Numbers become other numbers if they are in range; a number with a fraction cannot become a
    /// whole number. Only conversions to `REAL`, `DOUBLE` and `DECIMAL(p, s)` round. Texts are
    /// parsed as values of the target type, and every value except objects and arrays becomes a
    /// text. Dates and timestamps become timestamps, in UTC if a time zone is involved. The items
    /// of an array are converted one by one.
    ///
    /// # Errors
    ///
    /// The value cannot be converted. The error contains the value, its type and the expected
    /// values.
    pub fn convert(self, to: &FieldType) -> Result<Value<'a>, DataError> {
        if self.is_null() {
            return Ok(self);
        }
        Ok(match (to, self) {
            (FieldType::Object, value) => value,
            (FieldType::Boolean, value @ Value::Boolean(_))
            | (FieldType::TinyInt, value @ Value::Int8(_))
            | (FieldType::SmallInt, value @ Value::Int16(_))
            | (FieldType::Integer, value @ Value::Int32(_))
            | (FieldType::BigInt, value @ Value::Int64(_))
            | (FieldType::Real, value @ Value::Float32(_))
            | (FieldType::Double, value @ Value::Float64(_))
            | (FieldType::Decimal(None), value @ Value::Decimal(_))
            | (FieldType::Varchar, value @ Value::Text(_))
            | (FieldType::Date, value @ Value::Date(_))
            | (FieldType::Time, value @ Value::Time(_))
            | (FieldType::Timestamp, value @ Value::Timestamp(_))
            | (FieldType::TimestampTz, value @ Value::TimestampTz(_))
            | (FieldType::Uuid, value @ Value::Uuid(_))
            | (FieldType::Json, value @ Value::Json(_))
            | (FieldType::Binary, value @ Value::Bytes(_))
            | (FieldType::Interval, value @ Value::Interval(_)) => value,
            (FieldType::Boolean, value) => Value::Boolean(boolean(&value)?),
            (FieldType::TinyInt, value) => Value::Int8(whole(&value, to, "a whole number of -128 to 127")?),
            (FieldType::SmallInt, value) => Value::Int16(whole(&value, to, "a whole number of -32,768 to 32,767")?),
            (FieldType::Integer, value) => Value::Int32(whole(&value, to, "a whole number of 32 bits")?),
            (FieldType::BigInt, value) => Value::Int64(whole(&value, to, "a whole number of 64 bits")?),
            (FieldType::Real, value) => Value::Float32(real(&value)?),
            (FieldType::Double, value) => Value::Float64(double(&value)?),
            (FieldType::Decimal(limits), value) => {
                let number = decimal(&value, to)?;
                Value::Decimal(match *limits {
                    None => number,
                    Some((precision, scale)) => rescale(number, precision, scale)
                        .ok_or_else(|| unfit(&value, to, "a number with fewer digits"))?,
                })
            }
            (FieldType::Varchar, Value::Json(text)) => Value::Text(text),
            (FieldType::Varchar | FieldType::Json, value @ (Value::Object(_) | Value::Array(_))) => {
                return Err(unfit(&value, to, "a value that is no object"));
            }
            (FieldType::Varchar, value) => Value::Text(Cow::Owned(value.to_string())),
            (FieldType::Char, Value::Text(text)) => {
                if text.encode_utf16().nth(1).is_some() || text.is_empty() {
                    return Err(unfit(&Value::Text(text), to, "one character"));
                }
                Value::Text(text)
            }
            (FieldType::Json, Value::Text(text)) => Value::Json(text),
            (FieldType::Date, Value::Timestamp(timestamp)) if timestamp.time() == NaiveTime::MIN => {
                Value::Date(timestamp.date())
            }
            (FieldType::Date, value) => Value::Date(read(&value, to, "a date such as 2024-12-31", date)?),
            (FieldType::Time, value) => Value::Time(read(&value, to, "a time such as 23:59:59.5", time)?),
            (FieldType::Timestamp, Value::Date(date)) => Value::Timestamp(date.and_time(NaiveTime::MIN)),
            (FieldType::Timestamp, Value::TimestampTz(timestamp)) => Value::Timestamp(timestamp.naive_utc()),
            (FieldType::Timestamp, value) => {
                Value::Timestamp(read(&value, to, "a timestamp such as 2024-12-31T23:59:59.5", timestamp)?)
            }
            (FieldType::TimestampTz, Value::Date(date)) => in_utc(date.and_time(NaiveTime::MIN)),
            (FieldType::TimestampTz, Value::Timestamp(timestamp)) => in_utc(timestamp),
            (FieldType::TimestampTz, value) => {
                let expected = "a timestamp with its offset, such as 2024-12-31T23:59:59.5+01:00";
                Value::TimestampTz(read(&value, to, expected, timestamp_tz)?)
            }
            (FieldType::Uuid, value) => {
                let expected = "a UUID such as 67e55044-10b1-426f-9247-bb680e5fe0c8";
                Value::Uuid(read(&value, to, expected, uuid_of)?)
            }
            (FieldType::Binary, value) => Value::Bytes(Cow::Owned(bytes(&value, to)?)),
            (FieldType::Interval, value) => {
                let expected = "an interval such as P1Y2M3DT4H5M6.5S";
                Value::Interval(read(&value, to, expected, |text| text.parse().ok())?)
            }
            (FieldType::Array(item), Value::Array(items)) => {
                Value::Array(items.into_iter().map(|value| value.convert(item)).collect::<Result<_, _>>()?)
            }
            (FieldType::Char, value) => return Err(unfit(&value, to, "one character")),
            (FieldType::Json, value) => return Err(unfit(&value, to, "a JSON document or its text")),
            (FieldType::Array(_), value) => return Err(unfit(&value, to, "an array")),
        })
    }
}

#[cold]
fn unfit(value: &Value<'_>, to: &FieldType, expected: &'static str) -> DataError {
    let mut text = match value {
        Value::Text(text) => format!("{:?}", text.chars().take(SHOWN_MAX + 1).collect::<String>()),
        value => value.to_string(),
    };
    if let Some((end, _)) = text.char_indices().nth(SHOWN_MAX) {
        text.truncate(end);
        text.push_str("...");
    }
    DataError::NotConvertible { value: text, found: value.type_name(), to: to.to_string(), expected }
}

fn read<T>(
    value: &Value<'_>,
    to: &FieldType,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, DataError> {
    let Value::Text(text) = value else { return Err(unfit(value, to, expected)) };
    parse(text.trim()).ok_or_else(|| unfit(value, to, expected))
}

fn boolean(value: &Value<'_>) -> Result<bool, DataError> {
    read(value, &FieldType::Boolean, "true or false", |text| match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    })
}

/// The bytes of a text or an array. A text is hexadecimal after `\x`, otherwise its own UTF-8 bytes
/// are returned. The items of an array are whole numbers of 8 bits, signed (`TINYINT`) or unsigned.
fn bytes(value: &Value<'_>, to: &FieldType) -> Result<Vec<u8>, DataError> {
    let expected = "bytes, such as \\x00ff";
    match value {
        Value::Array(items) => items.iter().map(byte).collect::<Option<_>>(),
        // A whole key or value: the length and the bytes follow the header.
        Value::Object(blob) if type_id(blob).is_ok_and(|id| id == TypeId::BYTE_ARRAY) => {
            blob.get(BLOB_HEADER_BYTES + 4..).map(<[u8]>::to_vec)
        }
        Value::Text(text) => match text.strip_prefix("\\x") {
            Some(digits) if digits.is_ascii() => {
                let pairs = digits.as_bytes().chunks(2);
                pairs
                    .map(|pair| {
                        u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok()
                    })
                    .collect()
            }
            Some(_) => None,
            None => Some(text.as_bytes().to_vec()),
        },
        _ => None,
    }
    .ok_or_else(|| unfit(value, to, expected))
}

fn byte(item: &Value<'_>) -> Option<u8> {
    match item {
        Value::Int8(byte) => Some(byte.cast_unsigned()),
        Value::Int16(number) => u8::try_from(*number).ok(),
        Value::Int32(number) => u8::try_from(*number).ok(),
        Value::Int64(number) => u8::try_from(*number).ok(),
        _ => None,
    }
}

fn whole<T: TryFrom<i64>>(value: &Value<'_>, to: &FieldType, expected: &'static str) -> Result<T, DataError> {
    let number = match value {
        Value::Int8(number) => Some((*number).into()),
        Value::Int16(number) => Some((*number).into()),
        Value::Int32(number) => Some((*number).into()),
        Value::Int64(number) => Some(*number),
        Value::Float32(number) => whole_of((*number).into()),
        Value::Float64(number) => whole_of(*number),
        Value::Decimal(number) => to_i64(number),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| unfit(value, to, expected))
}

fn whole_of(number: f64) -> Option<i64> {
    // 2^63 is the first double that is too large; the cast would saturate at 2^63 - 1.
    let limit = 9_223_372_036_854_775_808.0;
    (number.fract() == 0.0 && number >= -limit && number < limit).then_some(number as i64)
}

fn double(value: &Value<'_>) -> Result<f64, DataError> {
    let to = &FieldType::Double;
    let expected = "a number within the range of DOUBLE";
    match value {
        Value::Int8(number) => Ok((*number).into()),
        Value::Int16(number) => Ok((*number).into()),
        Value::Int32(number) => Ok((*number).into()),
        Value::Int64(number) => Ok(*number as f64),
        Value::Float32(number) => Ok((*number).into()),
        Value::Float64(number) => Ok(*number),
        Value::Decimal(number) => {
            Some(to_f64(number)).filter(|number| number.is_finite()).ok_or_else(|| unfit(value, to, expected))
        }
        value => read(value, to, expected, |text| {
            let number: f64 = text.parse().ok()?;
            is_within(number, text).then_some(number)
        }),
    }
}

/// Whether a number that was read from a text is not one out of range, which would be infinite or
/// zero.
fn is_within(number: f64, text: &str) -> bool {
    let is_spelled = || !text.contains(|char: char| char.is_ascii_digit());
    let digits = || text.split(['e', 'E']).next().unwrap_or(text);
    let is_zero = || !digits().contains(|char: char| matches!(char, '1'..='9'));
    if number.is_infinite() { is_spelled() } else { number != 0.0 || is_zero() }
}

fn real(value: &Value<'_>) -> Result<f32, DataError> {
    let to = &FieldType::Real;
    let expected = "a number within the range of REAL";
    if let Value::Text(_) = value {
        return read(value, to, expected, |text| {
            let number: f32 = text.parse().ok()?;
            is_within(number.into(), text).then_some(number)
        });
    }
    let wide = double(value).map_err(|_| unfit(value, to, expected))?;
    let narrow = wide as f32;
    if narrow.is_infinite() && wide.is_finite() { Err(unfit(value, to, expected)) } else { Ok(narrow) }
}

fn decimal(value: &Value<'_>, to: &FieldType) -> Result<BigDecimal, DataError> {
    let expected = "a number";
    // The digits of the shortest text of a double, such as 0.1, not its about fifty exact digits.
    let of_text = |text: String| text.parse().map_err(|_| unfit(value, to, "a finite number"));
    match value {
        Value::Int8(number) => Ok((*number).into()),
        Value::Int16(number) => Ok((*number).into()),
        Value::Int32(number) => Ok((*number).into()),
        Value::Int64(number) => Ok((*number).into()),
        Value::Float32(number) => of_text(format!("{number:e}")),
        Value::Float64(number) => of_text(format!("{number:e}")),
        Value::Decimal(number) => Ok(number.clone()),
        value => read(value, to, expected, |text| text.parse().ok()),
    }
}

/// Rounds the number to `scale` digits after the point; `None` if the result has more than
/// `precision` digits.
fn rescale(number: BigDecimal, precision: u8, scale: i8) -> Option<BigDecimal> {
    let scale = i64::from(scale);
    if signum(&number) == 0 {
        return Some(BigDecimal::new(BigInt::ZERO, scale));
    }
    // Scales come from outside and may be extreme: a huge number must not be expanded to all its
    // zeros, and a tiny number must not be rounded digit by digit.
    let size = Size::of(&number);
    if size.from > i64::from(precision) - scale {
        return None;
    }
    if size.below < -scale {
        return Some(BigDecimal::new(BigInt::ZERO, scale));
    }
    let rounded = number.with_scale_round(scale, RoundingMode::HalfUp);
    (rounded.digits() <= precision.into()).then_some(rounded)
}

fn in_utc(timestamp: NaiveDateTime) -> Value<'static> {
    Value::TimestampTz(timestamp.and_utc().with_timezone(&Utc.fix()))
}

fn date(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn time(text: &str) -> Option<NaiveTime> {
    ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())
}

fn timestamp(text: &str) -> Option<NaiveDateTime> {
    let Some((day, time_of_day)) = text.split_once(['T', 't', ' ']) else {
        return date(text).map(|date| date.and_time(NaiveTime::MIN));
    };
    Some(date(day)?.and_time(time(time_of_day)?))
}

fn timestamp_tz(text: &str) -> Option<DateTime<FixedOffset>> {
    if let Ok(timestamp) = DateTime::parse_from_rfc3339(text) {
        return Some(timestamp);
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M%#z"];
    if let Some(timestamp) = formats.iter().find_map(|format| DateTime::parse_from_str(text, format).ok()) {
        return Some(timestamp);
    }
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return timestamp(local).map(|timestamp| timestamp.and_utc().fixed_offset());
    }
    with_seconds_of_offset(text).or_else(|| timestamp(text).map(|timestamp| timestamp.and_utc().fixed_offset()))
}

/// Parses a timestamp whose offset has seconds, such as `+04:04:55`, as Java writes it.
fn with_seconds_of_offset(text: &str) -> Option<DateTime<FixedOffset>> {
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00:00".len())?)?;
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let offset = NaiveTime::parse_from_str(offset.get(1..)?, "%H:%M:%S").ok()?;
    let seconds = i32::try_from(offset.num_seconds_from_midnight()).ok()?;
    FixedOffset::east_opt(sign * seconds)?.from_local_datetime(&timestamp(local)?).single()
}

/// Parses a UUID: hexadecimal digits with or without braces, with an optional hyphen after each
/// group of four digits.
pub fn uuid_of(text: &str) -> Option<Uuid> {
    if let Ok(uuid) = Uuid::try_parse(text) {
        return Some(uuid);
    }
    let digits = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut plain = String::with_capacity(32);
    let mut was_hyphen = true;
    for char in digits.chars() {
        match char {
            '-' if !was_hyphen && plain.len().is_multiple_of(4) && plain.len() < 32 => was_hyphen = true,
            digit if digit.is_ascii_hexdigit() => {
                plain.push(digit);
                was_hyphen = false;
            }
            _ => return None,
        }
    }
    (plain.len() == 32).then(|| Uuid::try_parse(&plain).ok()).flatten()
}
