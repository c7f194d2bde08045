//! Converts rows of record batches to values. `filbert_grid::query` specifies the array types of
//! each column type.

use std::borrow::Cow;
use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use chrono::{DateTime, NaiveDate, NaiveTime};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnMeta, ColumnReader};

/// Days from 0001-01-01 to 1970-01-01, both included.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;

/// Converts a batch to rows.
pub(super) fn rows(columns: &[ColumnMeta], batch: &RecordBatch) -> VecDeque<Vec<Value<'static>>> {
    let row = |row| {
        let value = |(column, array): (&ColumnMeta, &ArrayRef)| value(&column.field_type, array, row);
        columns.iter().zip(batch.columns()).map(value).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// Converts one value. Returns null if the array type is not valid for the column type.
fn value(field_type: &FieldType, array: &ArrayRef, row: usize) -> Value<'static> {
    if array.is_null(row) || matches!(array.data_type(), DataType::Null) {
        return Value::Null;
    }
    if matches!(field_type, FieldType::Array(_) | FieldType::Interval | FieldType::Binary) {
        let reader = ColumnReader::new(array.as_ref(), field_type);
        return reader.map_or(Value::Null, |reader| reader.get(row).into_owned());
    }
    let found = match array.data_type() {
        DataType::Boolean => array.as_boolean_opt().map(|array| Value::Boolean(array.value(row))),
        DataType::Int8 => array.as_primitive_opt::<Int8Type>().map(|array| Value::Int8(array.value(row))),
        DataType::Int16 => array.as_primitive_opt::<Int16Type>().map(|array| Value::Int16(array.value(row))),
        DataType::Int32 => array.as_primitive_opt::<Int32Type>().map(|array| Value::Int32(array.value(row))),
        DataType::Int64 => array.as_primitive_opt::<Int64Type>().map(|array| Value::Int64(array.value(row))),
        DataType::Float32 => array.as_primitive_opt::<Float32Type>().map(|array| Value::Float32(array.value(row))),
        DataType::Float64 => array.as_primitive_opt::<Float64Type>().map(|array| Value::Float64(array.value(row))),
        DataType::Decimal128(_, scale) => array
            .as_primitive_opt::<Decimal128Type>()
            .map(|array| decimal(field_type, BigInt::from(array.value(row)), *scale)),
        DataType::Decimal256(_, scale) => array
            .as_primitive_opt::<Decimal256Type>()
            .map(|array| decimal(field_type, BigInt::from_signed_bytes_le(&array.value(row).to_le_bytes()), *scale)),
        DataType::Date32 => array.as_primitive_opt::<Date32Type>().and_then(|array| {
            NaiveDate::from_num_days_from_ce_opt(array.value(row).checked_add(EPOCH_DAYS_FROM_CE)?).map(Value::Date)
        }),
        DataType::Time64(TimeUnit::Microsecond) => array
            .as_primitive_opt::<Time64MicrosecondType>()
            .and_then(|array| time(array.value(row).checked_mul(1_000)?)),
        DataType::Time64(_) => {
            array.as_primitive_opt::<Time64NanosecondType>().and_then(|array| time(array.value(row)))
        }
        DataType::Timestamp(unit, zone) => nanoseconds(array, *unit, row).and_then(|(seconds, nanoseconds)| {
            let moment = DateTime::from_timestamp(seconds, nanoseconds)?;
            Some(match zone {
                Some(_) => Value::TimestampTz(moment.fixed_offset()),
                None => Value::Timestamp(moment.naive_utc()),
            })
        }),
        DataType::Utf8View => array.as_string_view_opt().map(|array| text(field_type, array.value(row))),
        DataType::Utf8 => array.as_string_opt::<i32>().map(|array| text(field_type, array.value(row))),
        DataType::LargeUtf8 => array.as_string_opt::<i64>().map(|array| text(field_type, array.value(row))),
        DataType::BinaryView => array.as_binary_view_opt().map(|array| object(array.value(row))),
        DataType::Binary => array.as_binary_opt::<i32>().map(|array| object(array.value(row))),
        DataType::LargeBinary => array.as_binary_opt::<i64>().map(|array| object(array.value(row))),
        _ => None,
    };
    found.unwrap_or(Value::Null)
}

/// Removes trailing zeros of decimals without a declared scale. The array has a larger scale than
/// the original numbers.
fn decimal(field_type: &FieldType, unscaled: BigInt, scale: i8) -> Value<'static> {
    let value = BigDecimal::new(unscaled, i64::from(scale));
    Value::Decimal(match field_type {
        FieldType::Decimal(None) => value.normalized(),
        _ => value,
    })
}

fn time(nanoseconds: i64) -> Option<Value<'static>> {
    let seconds = u32::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    let rest = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest).map(Value::Time)
}

/// Seconds since 1970, and the remaining nanoseconds.
fn nanoseconds(array: &ArrayRef, unit: TimeUnit, row: usize) -> Option<(i64, u32)> {
    let (value, per_second) = match unit {
        TimeUnit::Second => (array.as_primitive_opt::<TimestampSecondType>()?.value(row), 1),
        TimeUnit::Millisecond => (array.as_primitive_opt::<TimestampMillisecondType>()?.value(row), 1_000),
        TimeUnit::Microsecond => (array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row), 1_000_000),
        TimeUnit::Nanosecond => (array.as_primitive_opt::<TimestampNanosecondType>()?.value(row), 1_000_000_000),
    };
    let rest = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    Some((value.div_euclid(per_second), u32::try_from(rest).ok()?))
}

fn text(field_type: &FieldType, text: &str) -> Value<'static> {
    let text = Cow::Owned(text.to_owned());
    match field_type {
        FieldType::Json => Value::Json(text),
        _ => Value::Text(text),
    }
}

/// Converts a blob to its value, or to an object if its type is unknown.
fn object(blob: &[u8]) -> Value<'static> {
    Value::from_blob(blob).map_or_else(|_| Value::Object(Cow::Owned(blob.to_vec())), Value::into_owned)
}
