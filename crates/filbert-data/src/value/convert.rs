//! Values of one type as values of another.

use std::borrow::Cow;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, Utc};
use uuid::Uuid;

use super::Value;
use super::number::{Size, signum, to_f64, to_i64};
use crate::{DataError, FieldType};

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

impl<'a> Value<'a> {
    /// The same value as one of the type `to`. A null stays null; `OBJECT` takes everything as it is.
    ///
    /// Numbers become other numbers if they are in range and, for whole numbers, have no fraction; only to `REAL`,
    /// `DOUBLE` and `DECIMAL(p, s)` they are rounded. Texts are read as what they are to become, and everything but
    /// objects becomes a text. Dates and timestamps become timestamps, in UTC where a time zone is concerned. The items
    /// of an array are converted one by one.
    ///
    /// # Errors
    ///
    /// There is no such value; the error tells the value, its type and what was expected.
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
            (FieldType::Date, Value::Timestamp(moment)) if moment.time() == NaiveTime::MIN => {
                Value::Date(moment.date())
            }
            (FieldType::Date, value) => Value::Date(read(&value, to, "a date such as 2024-12-31", date)?),
            (FieldType::Time, value) => Value::Time(read(&value, to, "a time such as 23:59:59.5", time)?),
            (FieldType::Timestamp, Value::Date(date)) => Value::Timestamp(date.and_time(NaiveTime::MIN)),
            (FieldType::Timestamp, Value::TimestampTz(moment)) => Value::Timestamp(moment.naive_utc()),
            (FieldType::Timestamp, value) => {
                Value::Timestamp(read(&value, to, "a timestamp such as 2024-12-31T23:59:59.5", timestamp)?)
            }
            (FieldType::TimestampTz, Value::Date(date)) => in_utc(date.and_time(NaiveTime::MIN)),
            (FieldType::TimestampTz, Value::Timestamp(moment)) => in_utc(moment),
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

/// Texts are hexadecimal after `\x`, else their own bytes; arrays are of whole numbers of 8 bits, with a sign or without.
fn bytes(value: &Value<'_>, to: &FieldType) -> Result<Vec<u8>, DataError> {
    let expected = "bytes, such as \\x00ff";
    match value {
        Value::Array(items) => items.iter().map(byte).collect::<Option<_>>(),
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
    // 2^63 is the first that is too large; the cast would cut it off at one less.
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
        value => read(value, to, expected, |text| text.parse().ok()),
    }
}

fn real(value: &Value<'_>) -> Result<f32, DataError> {
    let to = &FieldType::Real;
    let expected = "a number within the range of REAL";
    if let Value::Text(_) = value {
        return read(value, to, expected, |text| text.parse().ok());
    }
    let wide = double(value).map_err(|_| unfit(value, to, expected))?;
    let narrow = wide as f32;
    if narrow.is_infinite() && wide.is_finite() { Err(unfit(value, to, expected)) } else { Ok(narrow) }
}

fn decimal(value: &Value<'_>, to: &FieldType) -> Result<BigDecimal, DataError> {
    let expected = "a number";
    // The digits that are shown for a double, 0.1, and not the fifty that it has exactly.
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

/// The number rounded to `scale` digits behind the point; none if more than `precision` digits are left.
fn rescale(number: BigDecimal, precision: u8, scale: i8) -> Option<BigDecimal> {
    let scale = i64::from(scale);
    if signum(&number) == 0 {
        return Some(BigDecimal::new(BigInt::ZERO, scale));
    }
    // Scales come from outside: neither may a huge number get all its zeros, nor a tiny one lose them one by one.
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

fn in_utc(moment: NaiveDateTime) -> Value<'static> {
    Value::TimestampTz(moment.and_utc().with_timezone(&Utc.fix()))
}

fn date(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn time(text: &str) -> Option<NaiveTime> {
    ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())
}

fn timestamp(text: &str) -> Option<NaiveDateTime> {
    let Some((day, moment)) = text.split_once(['T', 't', ' ']) else {
        return date(text).map(|date| date.and_time(NaiveTime::MIN));
    };
    Some(date(day)?.and_time(time(moment)?))
}

fn timestamp_tz(text: &str) -> Option<DateTime<FixedOffset>> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(moment);
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M%#z"];
    if let Some(moment) = formats.iter().find_map(|format| DateTime::parse_from_str(text, format).ok()) {
        return Some(moment);
    }
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return timestamp(local).map(|moment| moment.and_utc().fixed_offset());
    }
    timestamp(text).map(|moment| moment.and_utc().fixed_offset())
}

/// A UUID of its text: hexadecimal digits in braces or without, with hyphens behind any four digits.
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
