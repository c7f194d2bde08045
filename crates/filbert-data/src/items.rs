//! The items in fields of Compact and Portable objects: reading and writing of numbers, texts,
//! decimals, dates and times that have no type id of their own.

use std::borrow::Cow;

use bigdecimal::{BigDecimal, num_bigint::BigInt};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};

use crate::scalars::read_char;
use crate::{DataError, Input, Value};

/// The type of an item in the formats of objects. All numbers are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemType {
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

/// The width of a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Year {
    /// Four bytes, as Compact writes it.
    Int,
    /// Two bytes, as Portable writes it.
    Short,
}

impl ItemType {
    /// The minimum number of bytes of an item.
    pub(crate) fn bytes_min(self) -> usize {
        let year = |year| if year == Year::Int { 4 } else { 2 };
        match self {
            ItemType::Boolean | ItemType::Int8 => 1,
            ItemType::Char | ItemType::Int16 => 2,
            ItemType::Int32 | ItemType::Float32 | ItemType::Text => 4,
            ItemType::Int64 | ItemType::Float64 | ItemType::Decimal => 8,
            ItemType::Time => 7,
            ItemType::Date(width) => year(width) + 2,
            ItemType::Timestamp(width) => year(width) + 9,
            ItemType::TimestampTz(width) => year(width) + 13,
        }
    }

    /// Reads one item.
    ///
    /// # Errors
    ///
    /// The item ends too early, or is not a valid text, date or time.
    #[inline]
    pub(crate) fn read<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        Ok(match self {
            ItemType::Boolean => Value::Boolean(input.array::<1>()? != [0]),
            ItemType::Int8 => Value::Int8(i8::from_be_bytes(input.array()?)),
            ItemType::Int16 => Value::Int16(i16::from_be_bytes(input.array()?)),
            ItemType::Int32 => Value::Int32(input.i32()?),
            ItemType::Int64 => Value::Int64(i64::from_be_bytes(input.array()?)),
            ItemType::Float32 => Value::Float32(f32::from_be_bytes(input.array()?)),
            ItemType::Float64 => Value::Float64(f64::from_be_bytes(input.array()?)),
            ItemType::Text => input.text()?.map_or(Value::Null, |text| Value::Text(Cow::Borrowed(text))),
            _ => return self.read_slowly(input),
        })
    }

    /// Reads an item of the types that cost more than a function call. It is not inlined, so that
    /// [`ItemType::read`] stays small.
    #[inline(never)]
    fn read_slowly<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        Ok(match self {
            ItemType::Char => Value::Text(Cow::Owned(read_char(input)?.to_string())),
            ItemType::Decimal => decimal(input)?.map_or(Value::Null, Value::Decimal),
            ItemType::Time => Value::Time(time(input)?),
            ItemType::Date(year) => Value::Date(date(input, year)?),
            ItemType::Timestamp(year) => Value::Timestamp(timestamp(input, year)?),
            ItemType::TimestampTz(year) => Value::TimestampTz(timestamp_tz(input, year)?),
            _ => self.read(input)?,
        })
    }

    /// Reads an array: its length, then its items. Returns null if the length is -1.
    ///
    /// # Errors
    ///
    /// The unread bytes are too few for that many items, or an item is broken.
    pub(crate) fn read_array<'a>(self, input: &mut Input<'a>) -> Result<Value<'a>, DataError> {
        let Some(length) = input.length(self.bytes_min())? else { return Ok(Value::Null) };
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(self.read(input)?);
        }
        Ok(Value::Array(items))
    }
}

impl ItemType {
    /// Appends an item. A whole number may have any integer type if its value is in range. Only
    /// texts can be null.
    ///
    /// # Errors
    ///
    /// The value has another type or is too large; `out` may then contain a part of it.
    pub(crate) fn write(self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
        match (self, value) {
            (ItemType::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
            (ItemType::Int8, value) => out.extend(whole::<i8>(value)?.to_be_bytes()),
            (ItemType::Int16, value) => out.extend(whole::<i16>(value)?.to_be_bytes()),
            (ItemType::Int32, value) => out.extend(whole::<i32>(value)?.to_be_bytes()),
            (ItemType::Int64, value) => out.extend(whole::<i64>(value)?.to_be_bytes()),
            (ItemType::Float32, Value::Float32(value)) => out.extend(value.to_be_bytes()),
            (ItemType::Float64, Value::Float64(value)) => out.extend(value.to_be_bytes()),
            (ItemType::Float64, Value::Float32(value)) => out.extend(f64::from(*value).to_be_bytes()),
            (ItemType::Text, Value::Null) => out.extend((-1i32).to_be_bytes()),
            (ItemType::Text, Value::Text(text) | Value::Json(text)) => write_bytes(text.as_bytes(), out)?,
            (ItemType::Text, Value::Interval(interval)) => write_bytes(interval.to_string().as_bytes(), out)?,
            (ItemType::Text, Value::Uuid(uuid)) => write_bytes(uuid.to_string().as_bytes(), out)?,
            (ItemType::Char, Value::Text(text)) => {
                let mut units = text.encode_utf16();
                let (Some(unit), None) = (units.next(), units.next()) else { return Err(Unfit) };
                out.extend(unit.to_be_bytes());
            }
            (ItemType::Decimal, Value::Decimal(value)) => write_decimal(value, out)?,
            (ItemType::Decimal, value) => write_decimal(&BigDecimal::from(whole::<i64>(value)?), out)?,
            (ItemType::Time, Value::Time(value)) => write_time(*value, out)?,
            (ItemType::Date(width), Value::Date(value)) => write_date(*value, width, out)?,
            (ItemType::Timestamp(width), Value::Timestamp(value)) => write_timestamp(*value, width, out)?,
            (ItemType::TimestampTz(width), Value::TimestampTz(value)) => {
                write_timestamp(value.naive_local(), width, out)?;
                out.extend(value.offset().local_minus_utc().to_be_bytes());
            }
            _ => return Err(Unfit),
        }
        Ok(())
    }
}

/// The error for a value that does not fit into a field.
#[derive(Debug)]
pub(crate) struct Unfit;

impl Unfit {
    /// The error with the name of the field and the value.
    pub(crate) fn of(self, field: &str, value: &Value<'_>, expected: impl std::fmt::Debug) -> DataError {
        let mut value = format!("{value:?}");
        if let Some((end, _)) = value.char_indices().nth(SHOWN_MAX) {
            value.truncate(end);
            value.push_str("...");
        }
        DataError::Unfit { field: field.into(), value: value.into(), expected: format!("{expected:?}").into() }
    }
}

/// The maximum number of characters of a value in an error text.
const SHOWN_MAX: usize = 60;

/// Appends a length as a big-endian `i32`.
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
    // A leap second has a billion nanoseconds or more; clients cannot represent it.
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

/// The error for an invalid part of a value.
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
