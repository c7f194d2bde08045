//! Pages of SQL results: Arrow record batches are written as columns of the client protocol,
//! without an intermediate copy.
//!
//! | SQL type | Arrow type | column of the protocol |
//! |---|---|---|
//! | BOOLEAN to BIGINT, REAL, DOUBLE | the same | the same |
//! | DECIMAL | `Decimal128`, `Decimal256` | DECIMAL: unscaled bytes and scale |
//! | VARCHAR, CHAR | `Utf8View`, `Utf8`, `LargeUtf8` | VARCHAR |
//! | JSON | the same | JSON |
//! | DATE | `Date32` | DATE |
//! | TIME | `Time64` | TIME |
//! | TIMESTAMP, TIMESTAMP WITH TIME ZONE | `Timestamp` | the same, the latter at offset 0 |
//! | OBJECT | `BinaryView`, `Binary`, `LargeBinary` | OBJECT: a serialized value |
//! | UUID, BYTEA, INTERVAL, arrays | text, `BinaryView`, `Interval`, `List` | OBJECT: serialized |
//! | any | `Null` | NULL: only the number of rows |
//!
//! A DECIMAL without a declared scale is sent with as few digits as the number needs.

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
        TimestampNanosecondType, TimestampSecondType,
    },
};
use arrow_schema::{DataType, TimeUnit};
use filbert_data::{Blob, FieldType, ToBlob, Value};
use filbert_grid::query::{ColumnMeta, ColumnReader, SqlError, SqlErrorCode};
use filbert_wire::{
    codec::Fixed,
    frame::Writer,
    sql_page::{PageWriter, SqlColumn, SqlDecimal, SqlTime, SqlTimestamp, SqlTimestampWithTimeZone},
    structure::HazelcastJsonValue,
};

use crate::calendar::{date_of_days, time_of_nanoseconds, timestamp_of};

/// The number of a type in the protocol.
pub(crate) fn column_type(field_type: &FieldType) -> i32 {
    match field_type {
        FieldType::Varchar | FieldType::Char => SqlColumn::VARCHAR,
        FieldType::Boolean => SqlColumn::BOOLEAN,
        FieldType::TinyInt => SqlColumn::TINYINT,
        FieldType::SmallInt => SqlColumn::SMALLINT,
        FieldType::Integer => SqlColumn::INTEGER,
        FieldType::BigInt => SqlColumn::BIGINT,
        FieldType::Decimal(_) => SqlColumn::DECIMAL,
        FieldType::Real => SqlColumn::REAL,
        FieldType::Double => SqlColumn::DOUBLE,
        FieldType::Date => SqlColumn::DATE,
        FieldType::Time => SqlColumn::TIME,
        FieldType::Timestamp => SqlColumn::TIMESTAMP,
        FieldType::TimestampTz => SqlColumn::TIMESTAMP_WITH_TIME_ZONE,
        FieldType::Json => SqlColumn::JSON,
        FieldType::Uuid | FieldType::Object | FieldType::Binary | FieldType::Interval | FieldType::Array(_) => {
            SqlColumn::OBJECT
        }
    }
}

/// The number of a result column's type in the protocol. A column that is only the literal `NULL`
/// has the type NULL.
pub(crate) fn result_type(column: &ColumnMeta, array: &ArrayRef) -> i32 {
    match array.data_type() {
        DataType::Null => SqlColumn::NULL,
        _ => column_type(&column.field_type),
    }
}

/// Appends a page.
///
/// # Errors
/// The columns of the batch differ from `columns`, which is a defect of the engine.
pub(crate) fn put_page(
    writer: &mut Writer<'_>,
    columns: &[ColumnMeta],
    rows: &RecordBatch,
    last: bool,
) -> Result<(), SqlError> {
    if columns.len() != rows.num_columns() {
        let text = format!("a page has {} columns, expected {}", rows.num_columns(), columns.len());
        return Err(SqlError::new(SqlErrorCode::Generic, text));
    }
    let types = columns.iter().zip(rows.columns()).map(|(column, array)| result_type(column, array));
    let mut page = PageWriter::begin(writer, last, types);
    for (column, array) in columns.iter().zip(rows.columns()) {
        if put_column(&mut page, &column.field_type, array).is_none() {
            let text = format!(
                "column {:?} of type {} came as {}, which is a defect of this server",
                column.name,
                column.field_type,
                array.data_type()
            );
            return Err(SqlError::new(SqlErrorCode::Generic, text));
        }
    }
    page.end();
    Ok(())
}

/// The maximum number of rows, from the first one on, such that their texts and objects have at
/// most `bytes_max` bytes together. At least one row. Columns of fixed size do not count: the
/// number of rows limits them.
pub(crate) fn rows_within(rows: &RecordBatch, bytes_max: usize) -> usize {
    let count = rows.num_rows();
    // Views share buffers, so this may count too much, but never too little.
    let bytes: usize = rows.columns().iter().map(Array::get_array_memory_size).sum();
    if bytes <= bytes_max {
        return count;
    }
    let mut bytes = vec![0_usize; count];
    for array in rows.columns() {
        let mut add = |lengths: &mut dyn Iterator<Item = usize>| {
            bytes.iter_mut().zip(lengths).for_each(|(bytes, length)| *bytes = bytes.saturating_add(length));
        };
        match array.data_type() {
            DataType::Utf8View => add(&mut array.as_string_view().lengths().map(|length| length as usize)),
            DataType::BinaryView => add(&mut array.as_binary_view().lengths().map(|length| length as usize)),
            DataType::Utf8 => add(&mut array.as_string::<i32>().offsets().lengths()),
            DataType::LargeUtf8 => add(&mut array.as_string::<i64>().offsets().lengths()),
            DataType::Binary => add(&mut array.as_binary::<i32>().offsets().lengths()),
            DataType::LargeBinary => add(&mut array.as_binary::<i64>().offsets().lengths()),
            _ => {}
        }
    }
    let mut sum = 0_usize;
    let fitting = bytes.iter().take_while(|bytes| {
        sum = sum.saturating_add(**bytes);
        sum <= bytes_max
    });
    fitting.count().max(1).min(count)
}

/// Appends a column. `None` if the array's type does not fit the column's type.
fn put_column(page: &mut PageWriter<'_, '_>, field_type: &FieldType, array: &ArrayRef) -> Option<()> {
    if matches!(array.data_type(), DataType::Null) {
        page.nulls(array.len());
        return Some(());
    }
    match field_type {
        FieldType::Boolean => {
            let array = array.as_boolean_opt()?;
            page.fixed(array.len(), array.null_count(), array.iter());
        }
        FieldType::TinyInt => put_primitive::<Int8Type, _>(page, array, |value| value)?,
        FieldType::SmallInt => put_primitive::<Int16Type, _>(page, array, |value| value)?,
        FieldType::Integer => put_primitive::<Int32Type, _>(page, array, |value| value)?,
        FieldType::BigInt => put_primitive::<Int64Type, _>(page, array, |value| value)?,
        FieldType::Real => put_primitive::<Float32Type, _>(page, array, |value| value)?,
        FieldType::Double => put_primitive::<Float64Type, _>(page, array, |value| value)?,
        FieldType::Date => put_primitive::<Date32Type, _>(page, array, |days| date_of_days(i64::from(days)))?,
        FieldType::Time => put_time(page, array)?,
        FieldType::Timestamp => put_timestamp(page, array, |local| local)?,
        FieldType::TimestampTz => {
            put_timestamp(page, array, |local| SqlTimestampWithTimeZone { local, offset_seconds: 0 })?;
        }
        FieldType::Decimal(declared) => put_decimal(page, array, declared.is_none())?,
        FieldType::Varchar | FieldType::Char => match array.data_type() {
            DataType::Utf8View => page.texts(array.as_string_view().iter()),
            DataType::Utf8 => page.texts(array.as_string::<i32>().iter()),
            DataType::LargeUtf8 => page.texts(array.as_string::<i64>().iter()),
            _ => return None,
        },
        FieldType::Json => {
            let json = |text: Option<_>| text.map(|value| HazelcastJsonValue { value });
            match array.data_type() {
                DataType::Utf8View => page.items(array.as_string_view().iter().map(json)),
                DataType::Utf8 => page.items(array.as_string::<i32>().iter().map(json)),
                DataType::LargeUtf8 => page.items(array.as_string::<i64>().iter().map(json)),
                _ => return None,
            }
        }
        FieldType::Uuid | FieldType::Binary | FieldType::Interval | FieldType::Array(_) => {
            put_blobs(page, field_type, array)?
        }
        FieldType::Object => match array.data_type() {
            DataType::BinaryView => page.objects(array.as_binary_view().iter()),
            DataType::Binary => page.objects(array.as_binary::<i32>().iter()),
            DataType::LargeBinary => page.objects(array.as_binary::<i64>().iter()),
            _ => return None,
        },
    }
    Some(())
}

/// Appends values without a column type in the protocol, each serialized as by the Java client.
fn put_blobs(page: &mut PageWriter<'_, '_>, field_type: &FieldType, array: &ArrayRef) -> Option<()> {
    let reader = ColumnReader::new(array.as_ref(), field_type)?;
    let blobs: Vec<Option<Blob>> = (0..reader.len())
        .map(|row| match reader.get(row) {
            Value::Null => None,
            value => value.to_blob().ok(),
        })
        .collect();
    page.objects(blobs.iter().map(|blob| blob.as_ref().map(Blob::as_bytes)));
    Some(())
}

fn put_primitive<T: ArrowPrimitiveType, V: Fixed>(
    page: &mut PageWriter<'_, '_>,
    array: &ArrayRef,
    convert: impl Fn(T::Native) -> V,
) -> Option<()> {
    let array = array.as_primitive_opt::<T>()?;
    if array.null_count() == 0 {
        page.fixed(array.len(), 0, array.values().iter().map(|value| Some(convert(*value))));
    } else {
        page.fixed(array.len(), array.null_count(), array.iter().map(|value| value.map(&convert)));
    }
    Some(())
}

fn put_time(page: &mut PageWriter<'_, '_>, array: &ArrayRef) -> Option<()> {
    match array.data_type() {
        DataType::Time64(TimeUnit::Microsecond) => put_primitive::<Time64MicrosecondType, SqlTime>(page, array, |us| {
            time_of_nanoseconds(us.saturating_mul(1000))
        }),
        _ => put_primitive::<Time64NanosecondType, SqlTime>(page, array, time_of_nanoseconds),
    }
}

fn put_timestamp<V: Fixed>(
    page: &mut PageWriter<'_, '_>,
    array: &ArrayRef,
    convert: impl Fn(SqlTimestamp) -> V,
) -> Option<()> {
    // Seconds and nanoseconds, so no unit loses digits.
    let of = |per_second: i64, value: i64| {
        timestamp_of(
            value.div_euclid(per_second),
            value.rem_euclid(per_second).saturating_mul(1_000_000_000 / per_second),
        )
    };
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            put_primitive::<TimestampSecondType, V>(page, array, |value| convert(of(1, value)))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            put_primitive::<TimestampMillisecondType, V>(page, array, |value| convert(of(1000, value)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            put_primitive::<TimestampNanosecondType, V>(page, array, |value| convert(of(1_000_000_000, value)))
        }
        _ => put_primitive::<TimestampMicrosecondType, V>(page, array, |value| convert(of(1_000_000, value))),
    }
}

fn put_decimal(page: &mut PageWriter<'_, '_>, array: &ArrayRef, is_free: bool) -> Option<()> {
    match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let array = array.as_primitive_opt::<Decimal128Type>()?;
            page.decimals(|put| array.iter().for_each(|value| put_decimal128(put, value, *scale, is_free)));
        }
        DataType::Decimal256(_, scale) => {
            let array = array.as_primitive_opt::<Decimal256Type>()?;
            page.decimals(|put| {
                for value in array {
                    match value.map(|value| (value, value.to_i128())) {
                        None => put(None),
                        Some((_, Some(value))) => put_decimal128(put, Some(value), *scale, is_free),
                        Some((mut value, None)) => {
                            let mut scale = i32::from(*scale);
                            let (ten, zero) = (arrow_buffer::i256::from_i128(10), arrow_buffer::i256::ZERO);
                            while is_free
                                && scale > 0
                                && value.checked_rem(ten) == Some(zero)
                                && let Some(shorter) = value.checked_div(ten)
                            {
                                value = shorter;
                                scale -= 1;
                            }
                            put(Some(SqlDecimal { unscaled: shortest(&value.to_be_bytes()), scale }));
                        }
                    }
                }
            });
        }
        _ => return None,
    }
    Some(())
}

fn put_decimal128(put: &mut dyn FnMut(Option<SqlDecimal<'_>>), value: Option<i128>, scale: i8, is_free: bool) {
    let Some(mut value) = value else { return put(None) };
    let mut scale = i32::from(scale);
    while is_free && scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    put(Some(SqlDecimal { unscaled: shortest(&value.to_be_bytes()), scale }));
}

/// A big-endian number without the bytes that only repeat its sign.
fn shortest(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, tail @ ..] = rest
        && let Some(next) = tail.first()
        && (*first == 0 && next & 0x80 == 0 || *first == 0xff && next & 0x80 != 0)
    {
        rest = tail;
    }
    rest
}

#[cfg(test)]
#[path = "sql_rows_tests.rs"]
mod tests;
