//! What fields of Compact and Portable objects hold: numbers, texts, decimals, dates and times without a type id of
//! their own, from bytes and into bytes.

use std::borrow::Cow;

use bigdecimal::{BigDecimal, num_bigint::BigInt};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};

use crate::scalars::read_char;
use crate::{DataError, Input, Value};

/// One item as the formats of objects write it. All numbers are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// One byte; 0 is false.
    Boolean,
    /// One byte.
    Int8,
    /// One UTF-16 unit.
    Char,
    /// Two bytes.
    Int16,
    /// Four bytes.
    Int32,
    /// Eight bytes.
    Int64,
    /// Four bytes, IEEE 754.
    Float32,
    /// Eight bytes, IEEE 754.
    Float64,
    /// Length as `i32`, then UTF-8; -1 is null.
    Text,
    /// Length as `i32`, two's complement, then the scale as `i32`.
    Decimal,
    /// Hour, minute and second of one byte each, nanosecond as `i32`.
    Time,
    /// A year, then month and day of one byte each.
    Date(Year),
    /// Date, then time.
    Timestamp(Year),
    /// Date, time, then the offset from UTC in seconds as `i32`.
    TimestampTz(Year),
}

/// How wide a year is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Year {
    /// Four bytes, as Compact writes it.
    Int,
    /// Two bytes, as Portable writes it.
    Short,
}

impl Part {
    /// Bytes of an item, the least there can be.
    pub(crate) fn bytes_min(self) -> usize {
        let year = |year| if year == Year::Int { 4 } else { 2 };
        match self {
            Part::Boolean | Part::Int8 => 1,
            Part::Char | Part::Int16 => 2,
            Part::Int32 | Part::Float32 | Part::Text => 4,
            Part::Int64 | Part::Float64 | Part::Decimal => 8,
            Part::Time => 7,
            Part::Date(width) => year(width) + 2,
            Part::Timestamp(width) => year(width) + 9,
            Part::TimestampTz(width) => year(width) + 13,
        }
    }

    /// Reads one item.
    ///
    /// # Errors
    ///
    /// It ends too early, or is no text, date or time.
    #[inline]
    pub(crate) fn read<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        Ok(match self {
            Part::Boolean => Value::Boolean(input.array::<1>()? != [0]),
            Part::Int8 => Value::Int8(i8::from_be_bytes(input.array()?)),
            Part::Int16 => Value::Int16(i16::from_be_bytes(input.array()?)),
            Part::Int32 => Value::Int32(input.i32()?),
            Part::Int64 => Value::Int64(i64::from_be_bytes(input.array()?)),
            Part::Float32 => Value::Float32(f32::from_be_bytes(input.array()?)),
            Part::Float64 => Value::Float64(f64::from_be_bytes(input.array()?)),
            Part::Text => input.text()?.map_or(Value::Null, |text| Value::Text(Cow::Borrowed(text))),
            _ => return self.read_slowly(input),
        })
    }

    /// What costs more than a call, kept out of the way of the rest.
    #[inline(never)]
    fn read_slowly<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        Ok(match self {
            Part::Char => Value::Text(Cow::Owned(read_char(input)?.to_string())),
            Part::Decimal => decimal(input)?.map_or(Value::Null, Value::Decimal),
            Part::Time => Value::Time(time(input)?),
            Part::Date(year) => Value::Date(date(input, year)?),
            Part::Timestamp(year) => Value::Timestamp(timestamp(input, year)?),
            Part::TimestampTz(year) => Value::TimestampTz(timestamp_tz(input, year)?),
            _ => self.read(input)?,
        })
    }

    /// Reads an array of items one after the other, its length before them; null if the length is -1.
    ///
    /// # Errors
    ///
    /// So many items cannot follow, or one of them is broken.
    pub(crate) fn read_array<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        let Some(length) = input.length(self.bytes_min())? else { return Ok(Value::Null) };
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(self.read(input)?);
        }
        Ok(Value::Array(items))
    }
}

impl Part {
    /// Appends an item; whole numbers may come in any width that holds them. Null has a place in texts alone.
    ///
    /// # Errors
    ///
    /// The value is of another type or too large; `out` may then hold a part of it.
    pub(crate) fn write(self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
        match (self, value) {
            (Part::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
            (Part::Int8, value) => out.extend(whole::<i8>(value)?.to_be_bytes()),
            (Part::Int16, value) => out.extend(whole::<i16>(value)?.to_be_bytes()),
            (Part::Int32, value) => out.extend(whole::<i32>(value)?.to_be_bytes()),
            (Part::Int64, value) => out.extend(whole::<i64>(value)?.to_be_bytes()),
            (Part::Float32, Value::Float32(value)) => out.extend(value.to_be_bytes()),
            (Part::Float64, Value::Float64(value)) => out.extend(value.to_be_bytes()),
            (Part::Float64, Value::Float32(value)) => out.extend(f64::from(*value).to_be_bytes()),
            (Part::Text, Value::Null) => out.extend((-1i32).to_be_bytes()),
            (Part::Text, Value::Text(text) | Value::Json(text)) => write_bytes(text.as_bytes(), out)?,
            (Part::Text, Value::Interval(interval)) => write_bytes(interval.to_string().as_bytes(), out)?,
            (Part::Text, Value::Uuid(uuid)) => write_bytes(uuid.to_string().as_bytes(), out)?,
            (Part::Char, Value::Text(text)) => {
                let mut units = text.encode_utf16();
                let (Some(unit), None) = (units.next(), units.next()) else { return Err(Unfit) };
                out.extend(unit.to_be_bytes());
            }
            (Part::Decimal, Value::Decimal(value)) => write_decimal(value, out)?,
            (Part::Decimal, value) => write_decimal(&BigDecimal::from(whole::<i64>(value)?), out)?,
            (Part::Time, Value::Time(value)) => write_time(*value, out)?,
            (Part::Date(width), Value::Date(value)) => write_date(*value, width, out)?,
            (Part::Timestamp(width), Value::Timestamp(value)) => write_timestamp(*value, width, out)?,
            (Part::TimestampTz(width), Value::TimestampTz(value)) => {
                write_timestamp(value.naive_local(), width, out)?;
                out.extend(value.offset().local_minus_utc().to_be_bytes());
            }
            _ => return Err(Unfit),
        }
        Ok(())
    }
}

/// A value that a field has no place for.
#[derive(Debug)]
pub(crate) struct Unfit;

impl Unfit {
    /// The error that names the field.
    pub(crate) fn of(self, field: &str, value: &Value<'_>, expected: impl std::fmt::Debug) -> DataError {
        let mut value = format!("{value:?}");
        if let Some((end, _)) = value.char_indices().nth(SHOWN_MAX) {
            value.truncate(end);
            value.push_str("...");
        }
        DataError::Unfit { field: field.into(), value: value.into(), expected: format!("{expected:?}").into() }
    }
}

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

/// A length as the formats write it.
pub(crate) fn write_count(count: usize, out: &mut Vec<u8>) -> Result<(), Unfit> {
    out.extend(i32::try_from(count).map_err(|_| Unfit)?.to_be_bytes());
    Ok(())
}

fn whole<T: TryFrom<i64>>(value: &Value<'_>) -> Result<T, Unfit> {
    let value = match value {
        Value::Int8(value) => i64::from(*value),
        Value::Int16(value) => i64::from(*value),
        Value::Int32(value) => i64::from(*value),
        Value::Int64(value) => *value,
        _ => return Err(Unfit),
    };
    T::try_from(value).map_err(|_| Unfit)
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Unfit> {
    write_count(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_decimal(value: &BigDecimal, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    write_bytes(&unscaled.to_signed_bytes_be(), out)?;
    out.extend(i32::try_from(scale).map_err(|_| Unfit)?.to_be_bytes());
    Ok(())
}

fn write_time(value: NaiveTime, out: &mut Vec<u8>) -> Result<(), Unfit> {
    for number in [value.hour(), value.minute(), value.second()] {
        out.push(u8::try_from(number).map_err(|_| Unfit)?);
    }
    // The nanoseconds of a leap second are beyond a billion; clients have no place for it.
    let nanosecond = i32::try_from(value.nanosecond()).ok().filter(|nanosecond| *nanosecond < 1_000_000_000);
    out.extend(nanosecond.ok_or(Unfit)?.to_be_bytes());
    Ok(())
}

fn write_date(value: NaiveDate, width: Year, out: &mut Vec<u8>) -> Result<(), Unfit> {
    match width {
        Year::Int => out.extend(value.year().to_be_bytes()),
        Year::Short => out.extend(i16::try_from(value.year()).map_err(|_| Unfit)?.to_be_bytes()),
    }
    for number in [value.month(), value.day()] {
        out.push(u8::try_from(number).map_err(|_| Unfit)?);
    }
    Ok(())
}

fn write_timestamp(value: NaiveDateTime, width: Year, out: &mut Vec<u8>) -> Result<(), Unfit> {
    write_date(value.date(), width, out)?;
    write_time(value.time(), out)
}

/// The error for something that cannot be.
#[cold]
pub(crate) fn broken(input: &Input<'_>, found: impl Into<String>, expected: &'static str) -> DataError {
    DataError::Broken { type_id: input.type_id(), found: found.into(), expected }
}

fn decimal(input: &mut Input<'_>) -> Result<Option<BigDecimal>, DataError> {
    let Some(length) = input.length(1)? else { return Ok(None) };
    let unscaled = BigInt::from_signed_bytes_be(input.take(length)?);
    let scale = input.i32()?;
    Ok(Some(BigDecimal::new(unscaled, i64::from(scale))))
}

fn time(input: &mut Input<'_>) -> Result<NaiveTime, DataError> {
    let [hour, minute, second] = input.array()?;
    let nanosecond = input.i32()?;
    u32::try_from(nanosecond)
        .ok()
        .filter(|nanosecond| *nanosecond < 1_000_000_000)
        .and_then(|nanosecond| NaiveTime::from_hms_nano_opt(hour.into(), minute.into(), second.into(), nanosecond))
        .ok_or_else(|| broken(input, format!("the time {hour}:{minute}:{second} and {nanosecond} ns"), "a time of day"))
}

fn date(input: &mut Input<'_>, width: Year) -> Result<NaiveDate, DataError> {
    let year = match width {
        Year::Int => input.i32()?,
        Year::Short => i16::from_be_bytes(input.array()?).into(),
    };
    let [month, day] = input.array()?;
    NaiveDate::from_ymd_opt(year, month.into(), day.into())
        .ok_or_else(|| broken(input, format!("the date {year}-{month}-{day}"), "a day within 262,143 years of year 0"))
}

fn timestamp(input: &mut Input<'_>, width: Year) -> Result<NaiveDateTime, DataError> {
    Ok(date(input, width)?.and_time(time(input)?))
}

fn timestamp_tz(input: &mut Input<'_>, width: Year) -> Result<DateTime<FixedOffset>, DataError> {
    let local = timestamp(input, width)?;
    let offset = input.i32()?;
    FixedOffset::east_opt(offset)
        .and_then(|zone| zone.from_local_datetime(&local).single())
        .ok_or_else(|| broken(input, format!("the offset {offset} s"), "less than a day"))
}
