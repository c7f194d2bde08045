//! The values of one column in one chunk, in the format of Arrow's arrays.

use chrono::{Datelike, Timelike};
use filbert_data::{FieldType, Value};

use super::bits;
use super::texts::Texts;

/// The day number of 1970-01-01, if 0001-01-01 is day 1.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;
/// The number of digits that always fit into 128 bits.
const DECIMAL_PRECISION_MAX: u8 = 38;

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Bits.
    Boolean,
    /// 8-bit integers.
    Int8,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 32-bit floating-point numbers.
    Float32,
    /// 64-bit floating-point numbers.
    Float64,
    /// Decimals in 128 bits, as integers in units of `10^-scale`.
    Decimal {
        /// The number of digits, at most 38.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: i8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Nanoseconds since midnight.
    Time,
    /// Microseconds since 1970-01-01, without a time zone.
    Timestamp,
    /// Microseconds since 1970-01-01 in UTC.
    TimestampTz,
    /// Texts, as string views.
    Text,
}

impl ColumnType {
    /// The column type of a field type; `None` if the type has no columns: decimals without limits
    /// or with more than 38 digits, UUIDs, objects, binaries, intervals, arrays.
    #[must_use]
    pub fn of(field_type: &FieldType) -> Option<ColumnType> {
        Some(match field_type {
            FieldType::Boolean => ColumnType::Boolean,
            FieldType::TinyInt => ColumnType::Int8,
            FieldType::SmallInt => ColumnType::Int16,
            FieldType::Integer => ColumnType::Int32,
            FieldType::BigInt => ColumnType::Int64,
            FieldType::Real => ColumnType::Float32,
            FieldType::Double => ColumnType::Float64,
            FieldType::Decimal(Some((precision @ ..=DECIMAL_PRECISION_MAX, scale))) => {
                ColumnType::Decimal { precision: (*precision).max(1), scale: *scale }
            }
            FieldType::Varchar | FieldType::Char | FieldType::Json => ColumnType::Text,
            FieldType::Date => ColumnType::Date,
            FieldType::Time => ColumnType::Time,
            FieldType::Timestamp => ColumnType::Timestamp,
            FieldType::TimestampTz => ColumnType::TimestampTz,
            FieldType::Decimal(_)
            | FieldType::Uuid
            | FieldType::Object
            | FieldType::Binary
            | FieldType::Interval
            | FieldType::Array(_) => return None,
        })
    }
}

/// Numbers of one type, and the minimum and maximum of all numbers that were ever set.
#[derive(Clone)]
pub(crate) struct Numbers<T> {
    pub(super) values: Vec<T>,
    pub(super) range: Option<(T, T)>,
}

impl<T: Copy + Default + PartialOrd> Numbers<T> {
    fn new() -> Self {
        Numbers { values: Vec::new(), range: None }
    }

    fn grow(&mut self, capacity: usize) {
        self.values.reserve_exact(capacity.saturating_sub(self.values.len()));
        self.values.resize(capacity, T::default());
    }

    fn set(&mut self, at: usize, value: T) {
        if let Some(place) = self.values.get_mut(at) {
            *place = value;
        }
        self.range = match self.range {
            None => Some((value, value)),
            Some((min, max)) => Some((least(min, value), greatest(max, value))),
        };
    }

    fn clear(&mut self, at: usize) {
        if let Some(place) = self.values.get_mut(at) {
            *place = T::default();
        }
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }
}

/// The lesser of two values. A value that is not comparable, such as NaN, is kept forever.
fn least<T: Copy + PartialOrd>(min: T, value: T) -> T {
    if min <= value || min.partial_cmp(&min).is_none() { min } else { value }
}

fn greatest<T: Copy + PartialOrd>(max: T, value: T) -> T {
    if max >= value || max.partial_cmp(&max).is_none() { max } else { value }
}

#[derive(Clone)]
pub(crate) enum Data {
    Boolean(Vec<u64>),
    Int8(Numbers<i8>),
    Int16(Numbers<i16>),
    Int32(Numbers<i32>),
    Int64(Numbers<i64>),
    Float32(Numbers<f32>),
    Float64(Numbers<f64>),
    Decimal(Numbers<i128>, i8),
    Date(Numbers<i32>),
    Time(Numbers<i64>),
    Timestamp(Numbers<i64>),
    TimestampTz(Numbers<i64>),
    Text(Texts),
}

/// The result of storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Value,
    Null,
    Broken,
}

impl Data {
    pub(crate) fn new(column_type: ColumnType) -> Data {
        match column_type {
            ColumnType::Boolean => Data::Boolean(Vec::new()),
            ColumnType::Int8 => Data::Int8(Numbers::new()),
            ColumnType::Int16 => Data::Int16(Numbers::new()),
            ColumnType::Int32 => Data::Int32(Numbers::new()),
            ColumnType::Int64 => Data::Int64(Numbers::new()),
            ColumnType::Float32 => Data::Float32(Numbers::new()),
            ColumnType::Float64 => Data::Float64(Numbers::new()),
            ColumnType::Decimal { scale, .. } => Data::Decimal(Numbers::new(), scale),
            ColumnType::Date => Data::Date(Numbers::new()),
            ColumnType::Time => Data::Time(Numbers::new()),
            ColumnType::Timestamp => Data::Timestamp(Numbers::new()),
            ColumnType::TimestampTz => Data::TimestampTz(Numbers::new()),
            ColumnType::Text => Data::Text(Texts::default()),
        }
    }

    /// Makes room for `capacity` values.
    pub(crate) fn grow(&mut self, capacity: usize) {
        match self {
            Data::Boolean(bits) => {
                let words = bits::words(capacity);
                bits.reserve_exact(words.saturating_sub(bits.len()));
                bits.resize(words, 0);
            }
            Data::Int8(numbers) => numbers.grow(capacity),
            Data::Int16(numbers) => numbers.grow(capacity),
            Data::Int32(numbers) | Data::Date(numbers) => numbers.grow(capacity),
            Data::Int64(numbers) | Data::Time(numbers) | Data::Timestamp(numbers) | Data::TimestampTz(numbers) => {
                numbers.grow(capacity);
            }
            Data::Float32(numbers) => numbers.grow(capacity),
            Data::Float64(numbers) => numbers.grow(capacity),
            Data::Decimal(numbers, _) => numbers.grow(capacity),
            Data::Text(texts) => texts.grow(capacity),
        }
    }

    /// Stores a value, converted to the type of the column.
    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: Value<'_>, field_type: &FieldType) -> Stored {
        match (&mut *self, &value) {
            (_, Value::Null) => {
                self.clear(at);
                return Stored::Null;
            }
            (Data::Int32(numbers), Value::Int32(value)) => numbers.set(at, *value),
            (Data::Int64(numbers), Value::Int64(value)) => numbers.set(at, *value),
            (Data::Int64(numbers), Value::Int32(value)) => numbers.set(at, i64::from(*value)),
            (Data::Float64(numbers), Value::Float64(value)) => numbers.set(at, *value),
            (Data::Boolean(bits), Value::Boolean(value)) => bits::set(bits, at, *value),
            (Data::Text(texts), Value::Text(text)) if *field_type == FieldType::Varchar => {
                return if texts.set(at, text) { Stored::Value } else { Stored::Broken };
            }
            _ => return self.set_converted(at, value, field_type),
        }
        Stored::Value
    }

    fn set_converted(&mut self, at: usize, value: Value<'_>, field_type: &FieldType) -> Stored {
        let Ok(value) = value.convert(field_type) else {
            self.clear(at);
            return Stored::Broken;
        };
        match (&mut *self, value) {
            (Data::Boolean(bits), Value::Boolean(value)) => bits::set(bits, at, value),
            (Data::Int8(numbers), Value::Int8(value)) => numbers.set(at, value),
            (Data::Int16(numbers), Value::Int16(value)) => numbers.set(at, value),
            (Data::Int32(numbers), Value::Int32(value)) => numbers.set(at, value),
            (Data::Int64(numbers), Value::Int64(value)) => numbers.set(at, value),
            (Data::Float32(numbers), Value::Float32(value)) => numbers.set(at, value),
            (Data::Float64(numbers), Value::Float64(value)) => numbers.set(at, value),
            (Data::Decimal(numbers, scale), Value::Decimal(value)) => {
                // The conversion has set this scale and checked the number of digits.
                let (unscaled, exponent) = value.into_bigint_and_exponent();
                match i128::try_from(unscaled) {
                    Ok(unscaled) if exponent == i64::from(*scale) => numbers.set(at, unscaled),
                    _ => {
                        self.clear(at);
                        return Stored::Broken;
                    }
                }
            }
            (Data::Date(numbers), Value::Date(date)) => {
                numbers.set(at, date.num_days_from_ce() - EPOCH_DAYS_FROM_CE);
            }
            (Data::Time(numbers), Value::Time(time)) => {
                let seconds = i64::from(time.num_seconds_from_midnight());
                numbers.set(at, seconds * 1_000_000_000 + i64::from(time.nanosecond()));
            }
            (Data::Timestamp(numbers), Value::Timestamp(timestamp)) => {
                numbers.set(at, timestamp.and_utc().timestamp_micros());
            }
            (Data::TimestampTz(numbers), Value::TimestampTz(timestamp)) => {
                numbers.set(at, timestamp.timestamp_micros())
            }
            (Data::Text(texts), Value::Text(text) | Value::Json(text)) => {
                return if texts.set(at, &text) { Stored::Value } else { Stored::Broken };
            }
            _ => {
                self.clear(at);
                return Stored::Null;
            }
        }
        Stored::Value
    }

    /// Removes a value.
    pub(crate) fn clear(&mut self, at: usize) {
        match self {
            Data::Boolean(bits) => bits::set(bits, at, false),
            Data::Int8(numbers) => numbers.clear(at),
            Data::Int16(numbers) => numbers.clear(at),
            Data::Int32(numbers) | Data::Date(numbers) => numbers.clear(at),
            Data::Int64(numbers) | Data::Time(numbers) | Data::Timestamp(numbers) | Data::TimestampTz(numbers) => {
                numbers.clear(at);
            }
            Data::Float32(numbers) => numbers.clear(at),
            Data::Float64(numbers) => numbers.clear(at),
            Data::Decimal(numbers, _) => numbers.clear(at),
            Data::Text(texts) => texts.clear(at),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Data::Boolean(bits) => bits.capacity() * size_of::<u64>(),
            Data::Int8(numbers) => numbers.bytes(),
            Data::Int16(numbers) => numbers.bytes(),
            Data::Int32(numbers) | Data::Date(numbers) => numbers.bytes(),
            Data::Int64(numbers) | Data::Time(numbers) | Data::Timestamp(numbers) | Data::TimestampTz(numbers) => {
                numbers.bytes()
            }
            Data::Float32(numbers) => numbers.bytes(),
            Data::Float64(numbers) => numbers.bytes(),
            Data::Decimal(numbers, _) => numbers.bytes(),
            Data::Text(texts) => texts.bytes(),
        }
    }
}
