//! Reads single values of results, whatever the Arrow type of a column is.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray, LargeStringArray, ListArray, PrimitiveArray,
    StringArray, StringViewArray,
};
use arrow_schema::{DataType, TimeUnit};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use chrono::{DateTime, NaiveDate, NaiveTime};
use filbert_data::{FieldType, Interval, Value};
use uuid::Uuid;

/// Days from the start of the common era to 1970-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// A reader of single values of a result's column. The Arrow type is determined only once.
#[derive(Debug)]
pub struct ColumnReader<'a> {
    array: &'a dyn Array,
    form: Form<'a>,
}

#[derive(Debug)]
enum Form<'a> {
    Nulls,
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Decimal128(&'a PrimitiveArray<Decimal128Type>, Scale),
    Decimal256(&'a PrimitiveArray<Decimal256Type>, Scale),
    Text(Texts<'a>, TextForm),
    Bytes(Binaries<'a>, BytesForm),
    Date(&'a PrimitiveArray<Date32Type>),
    /// The values, and the nanoseconds per unit.
    Time(&'a [i64], i64),
    /// The values, the units per second, and whether they are timestamps with time zone.
    Timestamp(&'a [i64], i64, bool),
    Interval(&'a PrimitiveArray<IntervalMonthDayNanoType>),
    List(&'a ListArray, FieldType),
}

/// The number of digits after the point, and whether trailing zeros are only an effect of the fixed
/// scale.
#[derive(Clone, Copy, Debug)]
struct Scale {
    digits: i8,
    is_free: bool,
}

#[derive(Debug)]
enum Texts<'a> {
    View(&'a StringViewArray),
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
}

#[derive(Clone, Copy, Debug)]
enum TextForm {
    Text,
    Json,
    Uuid,
}

#[derive(Debug)]
enum Binaries<'a> {
    View(&'a BinaryViewArray),
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
}

#[derive(Clone, Copy, Debug)]
enum BytesForm {
    Bytes,
    Object,
}

impl<'a> Texts<'a> {
    fn of(array: &'a dyn Array) -> Option<Texts<'a>> {
        Some(match array.data_type() {
            DataType::Utf8View => Texts::View(array.as_string_view_opt()?),
            DataType::Utf8 => Texts::Small(array.as_string_opt()?),
            DataType::LargeUtf8 => Texts::Large(array.as_string_opt()?),
            _ => return None,
        })
    }

    fn get(&self, row: usize) -> &'a str {
        match self {
            Texts::View(array) => array.value(row),
            Texts::Small(array) => array.value(row),
            Texts::Large(array) => array.value(row),
        }
    }
}

impl<'a> Binaries<'a> {
    fn of(array: &'a dyn Array) -> Option<Binaries<'a>> {
        Some(match array.data_type() {
            DataType::BinaryView => Binaries::View(array.as_binary_view_opt()?),
            DataType::Binary => Binaries::Small(array.as_binary_opt()?),
            DataType::LargeBinary => Binaries::Large(array.as_binary_opt()?),
            _ => return None,
        })
    }

    fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Binaries::View(array) => array.value(row),
            Binaries::Small(array) => array.value(row),
            Binaries::Large(array) => array.value(row),
        }
    }
}

impl<'a> ColumnReader<'a> {
    /// Creates a reader of an array as a column of a type; `None` if the array's type is not valid
    /// for it.
    pub fn new(array: &'a dyn Array, field_type: &FieldType) -> Option<ColumnReader<'a>> {
        if *array.data_type() == DataType::Null {
            return Some(ColumnReader { array, form: Form::Nulls });
        }
        let text = |form| Some(Form::Text(Texts::of(array)?, form));
        let bytes = |form| Some(Form::Bytes(Binaries::of(array)?, form));
        let form = match field_type {
            FieldType::Boolean => Form::Boolean(array.as_boolean_opt()?),
            FieldType::TinyInt => Form::Int8(array.as_primitive_opt()?),
            FieldType::SmallInt => Form::Int16(array.as_primitive_opt()?),
            FieldType::Integer => Form::Int32(array.as_primitive_opt()?),
            FieldType::BigInt => Form::Int64(array.as_primitive_opt()?),
            FieldType::Real => Form::Float32(array.as_primitive_opt()?),
            FieldType::Double => Form::Float64(array.as_primitive_opt()?),
            FieldType::Decimal(declared) => {
                let is_free = declared.is_none();
                match array.data_type() {
                    DataType::Decimal128(_, digits) => {
                        Form::Decimal128(array.as_primitive_opt()?, Scale { digits: *digits, is_free })
                    }
                    DataType::Decimal256(_, digits) => {
                        Form::Decimal256(array.as_primitive_opt()?, Scale { digits: *digits, is_free })
                    }
                    _ => return None,
                }
            }
            FieldType::Varchar | FieldType::Char => text(TextForm::Text)?,
            FieldType::Json => text(TextForm::Json)?,
            FieldType::Uuid => text(TextForm::Uuid)?,
            FieldType::Date => Form::Date(array.as_primitive_opt()?),
            FieldType::Time => match array.data_type() {
                DataType::Time64(TimeUnit::Microsecond) => Form::Time(values::<Time64MicrosecondType>(array)?, 1_000),
                _ => Form::Time(values::<Time64NanosecondType>(array)?, 1),
            },
            FieldType::Timestamp | FieldType::TimestampTz => {
                let has_zone = *field_type == FieldType::TimestampTz;
                let (values, per_second) = match array.data_type() {
                    DataType::Timestamp(TimeUnit::Second, _) => (values::<TimestampSecondType>(array)?, 1),
                    DataType::Timestamp(TimeUnit::Millisecond, _) => {
                        (values::<TimestampMillisecondType>(array)?, 1_000)
                    }
                    DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                        (values::<TimestampNanosecondType>(array)?, NANOSECONDS_PER_SECOND)
                    }
                    _ => (values::<TimestampMicrosecondType>(array)?, 1_000_000),
                };
                Form::Timestamp(values, per_second, has_zone)
            }
            FieldType::Interval => Form::Interval(array.as_primitive_opt()?),
            FieldType::Binary => bytes(BytesForm::Bytes)?,
            FieldType::Object => bytes(BytesForm::Object)?,
            FieldType::Array(item) => Form::List(array.as_list_opt()?, (**item).clone()),
        };
        Some(ColumnReader { array, form })
    }

    /// The number of rows of the column.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }

    /// Whether the value of a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.form, Form::Nulls) || self.array.is_null(row)
    }

    /// The value of a row; `Null` after the last row.
    pub fn get(&self, row: usize) -> Value<'a> {
        if row >= self.array.len() || self.is_null(row) {
            return Value::Null;
        }
        match &self.form {
            Form::Nulls => Value::Null,
            Form::Boolean(array) => Value::Boolean(array.value(row)),
            Form::Int8(array) => Value::Int8(array.value(row)),
            Form::Int16(array) => Value::Int16(array.value(row)),
            Form::Int32(array) => Value::Int32(array.value(row)),
            Form::Int64(array) => Value::Int64(array.value(row)),
            Form::Float32(array) => Value::Float32(array.value(row)),
            Form::Float64(array) => Value::Float64(array.value(row)),
            Form::Decimal128(array, scale) => decimal(BigInt::from(array.value(row)), *scale),
            Form::Decimal256(array, scale) => {
                decimal(BigInt::from_signed_bytes_le(&array.value(row).to_le_bytes()), *scale)
            }
            Form::Text(texts, form) => text(texts.get(row), *form),
            Form::Bytes(binaries, BytesForm::Bytes) => Value::Bytes(Cow::Borrowed(binaries.get(row))),
            Form::Bytes(binaries, BytesForm::Object) => Value::Object(Cow::Borrowed(binaries.get(row))),
            Form::Date(array) => array
                .value(row)
                .checked_add(EPOCH_DAYS_FROM_CE)
                .and_then(NaiveDate::from_num_days_from_ce_opt)
                .map_or(Value::Null, Value::Date),
            Form::Time(values, nanoseconds) => time(values.get(row).copied(), *nanoseconds),
            Form::Timestamp(values, per_second, has_zone) => {
                timestamp(values.get(row).copied(), *per_second, *has_zone)
            }
            Form::Interval(array) => {
                let value = array.value(row);
                Value::Interval(Interval { months: value.months, days: value.days, nanoseconds: value.nanoseconds })
            }
            Form::List(array, item) => {
                let items = array.value(row);
                match ColumnReader::new(items.as_ref(), item) {
                    Some(reader) => Value::Array((0..items.len()).map(|at| reader.get(at).into_owned()).collect()),
                    None => Value::Null,
                }
            }
        }
    }
}

fn values<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&[T::Native]> {
    Some(array.as_primitive_opt::<T>()?.values())
}

fn decimal(unscaled: BigInt, scale: Scale) -> Value<'static> {
    let number = BigDecimal::new(unscaled, i64::from(scale.digits));
    if !scale.is_free {
        return Value::Decimal(number);
    }
    let shortest = number.normalized();
    // Zeros before the point stay.
    let shortest = if shortest.as_bigint_and_exponent().1 < 0 { shortest.with_scale(0) } else { shortest };
    Value::Decimal(if scale.digits == QUOTIENT_SCALE { quotient_digits(&shortest) } else { shortest })
}

/// The scale of columns with quotients and averages in PostgreSQL's dialect. Such values are shown
/// with at least 16 significant digits.
pub const QUOTIENT_SCALE: i8 = 37;

/// Rounds a quotient to the digits that PostgreSQL shows. It counts digits in groups of four.
pub fn quotient_digits(number: &BigDecimal) -> BigDecimal {
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    let digits = unscaled.magnitude().to_string();
    let place = i64::try_from(digits.len()).unwrap_or(0) - 1 - exponent;
    // PostgreSQL estimates the position from the operands. The estimate is one less if the operands
    // begin with equal digits.
    let is_one = exponent == 0 && digits == "1";
    let groups = if is_one || digits == "0" { -1 } else { place.div_euclid(4) };
    number.with_scale(exponent.max(16 - groups * 4).max(0))
}

fn text(text: &str, form: TextForm) -> Value<'_> {
    match form {
        TextForm::Text => Value::Text(Cow::Borrowed(text)),
        TextForm::Json => Value::Json(Cow::Borrowed(text)),
        TextForm::Uuid => match Uuid::try_parse(text) {
            Ok(uuid) => Value::Uuid(uuid),
            Err(_) => Value::Text(Cow::Borrowed(text)),
        },
    }
}

fn time(value: Option<i64>, nanoseconds: i64) -> Value<'static> {
    let time = value.and_then(|value| {
        let nanoseconds = value.checked_mul(nanoseconds)?;
        let seconds = u32::try_from(nanoseconds.div_euclid(NANOSECONDS_PER_SECOND)).ok()?;
        let rest = u32::try_from(nanoseconds.rem_euclid(NANOSECONDS_PER_SECOND)).ok()?;
        NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest)
    });
    time.map_or(Value::Null, Value::Time)
}

fn timestamp(value: Option<i64>, per_second: i64, has_zone: bool) -> Value<'static> {
    let timestamp = value.and_then(|value| {
        let nanoseconds = value.rem_euclid(per_second) * (NANOSECONDS_PER_SECOND / per_second);
        DateTime::from_timestamp(value.div_euclid(per_second), u32::try_from(nanoseconds).ok()?)
    });
    match timestamp {
        None => Value::Null,
        Some(timestamp) if has_zone => Value::TimestampTz(timestamp.fixed_offset()),
        Some(timestamp) => Value::Timestamp(timestamp.naive_utc()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal256Array, Int32Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn values_are_read_as_their_column_says() {
        let decimal: ArrayRef = Arc::new(
            Decimal256Array::from_iter_values([arrow_buffer_i256(150), arrow_buffer_i256(100_000)])
                .with_precision_and_scale(76, 2)
                .unwrap(),
        );
        let free = ColumnReader::new(&decimal, &FieldType::Decimal(None)).unwrap();
        assert_eq!((free.get(0).to_string(), free.get(1).to_string()), ("1.5".into(), "1000".into()));
        let fixed = ColumnReader::new(&decimal, &FieldType::Decimal(Some((76, 2)))).unwrap();
        assert_eq!(fixed.get(0).to_string(), "1.50");
        let timestamps: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None]));
        let reader = ColumnReader::new(&timestamps, &FieldType::Timestamp).unwrap();
        assert_eq!(reader.get(0).to_string(), "1969-12-31T23:59:59.999999");
        assert!(reader.get(1).is_null() && reader.get(2).is_null());
        assert!(ColumnReader::new(&Int32Array::from(vec![1]), &FieldType::Varchar).is_none());
    }

    fn arrow_buffer_i256(value: i128) -> <Decimal256Type as ArrowPrimitiveType>::Native {
        <Decimal256Type as ArrowPrimitiveType>::Native::from_i128(value)
    }
}
