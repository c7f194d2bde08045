//! Builds Arrow arrays from single values.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Decimal256Builder, Float32Builder,
    Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder,
    StringViewBuilder, Time64NanosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{IntervalMonthDayNano, NullBufferBuilder, OffsetBufferBuilder};
use arrow_schema::{DataType, Field, SchemaRef};
use filbert_data::{DataError, FieldType, Interval, ToBlob, Value};

use crate::types::{days_of, decimal128_of, decimal256_of, nanoseconds_of};

/// Builds one column. A value is converted to the column's type where SQL does so implicitly.
pub enum ColumnBuilder {
    /// Of `BOOLEAN`.
    Boolean(BooleanBuilder),
    /// Of `TINYINT`.
    Int8(Int8Builder),
    /// Of `SMALLINT`.
    Int16(Int16Builder),
    /// Of `INTEGER`.
    Int32(Int32Builder),
    /// Of `BIGINT`.
    Int64(Int64Builder),
    /// Of `REAL`.
    Float32(Float32Builder),
    /// Of `DOUBLE`.
    Float64(Float64Builder),
    /// Of `DECIMAL` with at most 38 digits, and its scale.
    Decimal128(Decimal128Builder, i8),
    /// Of `DECIMAL` with more digits, and its scale.
    Decimal256(Decimal256Builder, i8),
    /// Of `VARCHAR`.
    Text(StringViewBuilder),
    /// Of `JSON`.
    Json(StringViewBuilder),
    /// Of `DATE`.
    Date(Date32Builder),
    /// Of `TIME`.
    Time(Time64NanosecondBuilder),
    /// Of `TIMESTAMP`.
    Timestamp(TimestampMicrosecondBuilder),
    /// Of `TIMESTAMP WITH TIME ZONE`.
    TimestampTz(TimestampMicrosecondBuilder),
    /// Of objects, as blobs.
    Object(BinaryViewBuilder),
    /// Of UUIDs, as text.
    Uuid(StringViewBuilder),
    /// Of bytes.
    Bytes(BinaryViewBuilder),
    /// Of intervals.
    Interval(IntervalMonthDayNanoBuilder),
    /// Of arrays.
    List(Box<Lists>),
}

/// Builds a column of lists, with the elements of all lists one after the other.
pub struct Lists {
    item: FieldType,
    items: ColumnBuilder,
    items_count: usize,
    ends: OffsetBufferBuilder<i32>,
    last_end: usize,
    validity: NullBufferBuilder,
}

impl ColumnBuilder {
    /// An empty column of a type.
    pub fn new(field_type: &FieldType) -> Self {
        match field_type {
            FieldType::Boolean => ColumnBuilder::Boolean(BooleanBuilder::new()),
            FieldType::TinyInt => ColumnBuilder::Int8(Int8Builder::new()),
            FieldType::SmallInt => ColumnBuilder::Int16(Int16Builder::new()),
            FieldType::Integer => ColumnBuilder::Int32(Int32Builder::new()),
            FieldType::BigInt => ColumnBuilder::Int64(Int64Builder::new()),
            FieldType::Real => ColumnBuilder::Float32(Float32Builder::new()),
            FieldType::Double => ColumnBuilder::Float64(Float64Builder::new()),
            FieldType::Decimal(_) => match filbert_grid::query::arrow_type(field_type) {
                DataType::Decimal128(precision, scale) => ColumnBuilder::Decimal128(
                    Decimal128Builder::new().with_data_type(DataType::Decimal128(precision, scale)),
                    scale,
                ),
                DataType::Decimal256(precision, scale) => ColumnBuilder::Decimal256(
                    Decimal256Builder::new().with_data_type(DataType::Decimal256(precision, scale)),
                    scale,
                ),
                _ => ColumnBuilder::Decimal256(Decimal256Builder::new(), 0),
            },
            FieldType::Varchar | FieldType::Char => ColumnBuilder::Text(StringViewBuilder::new()),
            FieldType::Json => ColumnBuilder::Json(StringViewBuilder::new()),
            FieldType::Date => ColumnBuilder::Date(Date32Builder::new()),
            FieldType::Time => ColumnBuilder::Time(Time64NanosecondBuilder::new()),
            FieldType::Timestamp => ColumnBuilder::Timestamp(TimestampMicrosecondBuilder::new()),
            FieldType::TimestampTz => {
                ColumnBuilder::TimestampTz(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
            FieldType::Object => ColumnBuilder::Object(BinaryViewBuilder::new()),
            FieldType::Uuid => ColumnBuilder::Uuid(StringViewBuilder::new()),
            FieldType::Binary => ColumnBuilder::Bytes(BinaryViewBuilder::new()),
            FieldType::Interval => ColumnBuilder::Interval(IntervalMonthDayNanoBuilder::new()),
            FieldType::Array(item) => ColumnBuilder::List(Box::new(Lists::new(item))),
        }
    }

    /// Appends a value, converted to the column's type.
    pub fn append(&mut self, value: Value<'_>) -> Result<(), DataError> {
        match (self, value) {
            (ColumnBuilder::Int64(builder), Value::Int64(value)) => builder.append_value(value),
            (ColumnBuilder::Int64(builder), Value::Int32(value)) => builder.append_value(i64::from(value)),
            (ColumnBuilder::Int32(builder), Value::Int32(value)) => builder.append_value(value),
            // JSON returns whole numbers as 64-bit integers.
            (ColumnBuilder::Int32(builder), Value::Int64(value)) if i32::try_from(value).is_ok() => {
                builder.append_option(i32::try_from(value).ok());
            }
            (ColumnBuilder::Text(builder), Value::Text(text)) => builder.append_value(text),
            (ColumnBuilder::Json(builder), Value::Json(text)) => builder.append_value(text),
            (ColumnBuilder::Float64(builder), Value::Float64(value)) => builder.append_value(value),
            (ColumnBuilder::Boolean(builder), Value::Boolean(value)) => builder.append_value(value),
            (ColumnBuilder::Object(builder), Value::Object(bytes)) => builder.append_value(bytes),
            (builder, Value::Null) => builder.append_null(),
            (builder, value) => builder.append_converted(value)?,
        }
        Ok(())
    }

    fn field_type(&self) -> FieldType {
        match self {
            ColumnBuilder::Boolean(_) => FieldType::Boolean,
            ColumnBuilder::Int8(_) => FieldType::TinyInt,
            ColumnBuilder::Int16(_) => FieldType::SmallInt,
            ColumnBuilder::Int32(_) => FieldType::Integer,
            ColumnBuilder::Int64(_) => FieldType::BigInt,
            ColumnBuilder::Float32(_) => FieldType::Real,
            ColumnBuilder::Float64(_) => FieldType::Double,
            ColumnBuilder::Decimal128(..) | ColumnBuilder::Decimal256(..) => FieldType::Decimal(None),
            ColumnBuilder::Text(_) => FieldType::Varchar,
            ColumnBuilder::Json(_) => FieldType::Json,
            ColumnBuilder::Date(_) => FieldType::Date,
            ColumnBuilder::Time(_) => FieldType::Time,
            ColumnBuilder::Timestamp(_) => FieldType::Timestamp,
            ColumnBuilder::TimestampTz(_) => FieldType::TimestampTz,
            ColumnBuilder::Object(_) => FieldType::Object,
            ColumnBuilder::Uuid(_) => FieldType::Uuid,
            ColumnBuilder::Bytes(_) => FieldType::Binary,
            ColumnBuilder::Interval(_) => FieldType::Interval,
            ColumnBuilder::List(lists) => FieldType::Array(Box::new(lists.item.clone())),
        }
    }

    #[cold]
    fn append_converted(&mut self, value: Value<'_>) -> Result<(), DataError> {
        if let ColumnBuilder::Object(builder) = self {
            builder.append_value(value.to_blob()?.as_bytes());
            return Ok(());
        }
        let value = value.convert(&self.field_type())?;
        match (self, value) {
            (ColumnBuilder::Boolean(builder), Value::Boolean(value)) => builder.append_value(value),
            (ColumnBuilder::Int8(builder), Value::Int8(value)) => builder.append_value(value),
            (ColumnBuilder::Int16(builder), Value::Int16(value)) => builder.append_value(value),
            (ColumnBuilder::Int32(builder), Value::Int32(value)) => builder.append_value(value),
            (ColumnBuilder::Int64(builder), Value::Int64(value)) => builder.append_value(value),
            (ColumnBuilder::Float32(builder), Value::Float32(value)) => builder.append_value(value),
            (ColumnBuilder::Float64(builder), Value::Float64(value)) => builder.append_value(value),
            (ColumnBuilder::Decimal128(builder, scale), Value::Decimal(value)) => match decimal128_of(&value, *scale) {
                Some(unscaled) => builder.append_value(unscaled),
                None => return Err(too_many_digits(&value)),
            },
            (ColumnBuilder::Decimal256(builder, scale), Value::Decimal(value)) => match decimal256_of(&value, *scale) {
                Some(unscaled) => builder.append_value(unscaled),
                None => return Err(too_many_digits(&value)),
            },
            (ColumnBuilder::Text(builder), Value::Text(text)) => builder.append_value(text),
            (ColumnBuilder::Json(builder), Value::Json(text)) => builder.append_value(text),
            (ColumnBuilder::Date(builder), Value::Date(date)) => builder.append_value(days_of(date)),
            (ColumnBuilder::Time(builder), Value::Time(time)) => builder.append_value(nanoseconds_of(time)),
            (ColumnBuilder::Timestamp(builder), Value::Timestamp(timestamp)) => {
                builder.append_value(timestamp.and_utc().timestamp_micros());
            }
            (ColumnBuilder::TimestampTz(builder), Value::TimestampTz(timestamp)) => {
                builder.append_value(timestamp.timestamp_micros());
            }
            (ColumnBuilder::Uuid(builder), Value::Uuid(uuid)) => {
                builder.append_value(uuid.hyphenated().encode_lower(&mut [0; uuid::fmt::Hyphenated::LENGTH]));
            }
            (ColumnBuilder::Bytes(builder), Value::Bytes(bytes)) => builder.append_value(bytes),
            (ColumnBuilder::Interval(builder), Value::Interval(interval)) => {
                let Interval { months, days, nanoseconds } = interval;
                builder.append_value(IntervalMonthDayNano { months, days, nanoseconds });
            }
            (ColumnBuilder::List(lists), Value::Array(items)) => lists.append(items)?,
            (builder, _) => builder.append_null(),
        }
        Ok(())
    }

    /// Appends a null.
    pub fn append_null(&mut self) {
        match self {
            ColumnBuilder::Boolean(builder) => builder.append_null(),
            ColumnBuilder::Int8(builder) => builder.append_null(),
            ColumnBuilder::Int16(builder) => builder.append_null(),
            ColumnBuilder::Int32(builder) => builder.append_null(),
            ColumnBuilder::Int64(builder) => builder.append_null(),
            ColumnBuilder::Float32(builder) => builder.append_null(),
            ColumnBuilder::Float64(builder) => builder.append_null(),
            ColumnBuilder::Decimal128(builder, _) => builder.append_null(),
            ColumnBuilder::Decimal256(builder, _) => builder.append_null(),
            ColumnBuilder::Text(builder) | ColumnBuilder::Json(builder) => builder.append_null(),
            ColumnBuilder::Date(builder) => builder.append_null(),
            ColumnBuilder::Time(builder) => builder.append_null(),
            ColumnBuilder::Timestamp(builder) | ColumnBuilder::TimestampTz(builder) => builder.append_null(),
            ColumnBuilder::Object(builder) | ColumnBuilder::Bytes(builder) => builder.append_null(),
            ColumnBuilder::Uuid(builder) => builder.append_null(),
            ColumnBuilder::Interval(builder) => builder.append_null(),
            ColumnBuilder::List(lists) => lists.append_null(),
        }
    }

    /// The column of all values since the last call.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Boolean(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int8(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int16(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int32(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int64(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Float32(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Float64(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Decimal128(builder, _) => Arc::new(builder.finish()),
            ColumnBuilder::Decimal256(builder, _) => Arc::new(builder.finish()),
            ColumnBuilder::Text(builder) | ColumnBuilder::Json(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Date(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Time(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Timestamp(builder) | ColumnBuilder::TimestampTz(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Object(builder) | ColumnBuilder::Bytes(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Uuid(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Interval(builder) => Arc::new(builder.finish()),
            ColumnBuilder::List(lists) => lists.finish(),
        }
    }
}

impl Lists {
    fn new(item: &FieldType) -> Lists {
        Lists {
            item: item.clone(),
            items: ColumnBuilder::new(item),
            items_count: 0,
            ends: OffsetBufferBuilder::new(0),
            last_end: 0,
            validity: NullBufferBuilder::new(0),
        }
    }

    fn append(&mut self, items: Vec<Value<'_>>) -> Result<(), DataError> {
        for item in items {
            self.items.append(item)?;
            self.items_count += 1;
        }
        self.end(true);
        Ok(())
    }

    fn append_null(&mut self) {
        self.end(false);
    }

    fn end(&mut self, is_valid: bool) {
        self.ends.push_length(self.items_count - self.last_end);
        self.last_end = self.items_count;
        self.validity.append(is_valid);
    }

    fn finish(&mut self) -> ArrayRef {
        let item_type = filbert_grid::query::arrow_type(&self.item);
        let ends = std::mem::replace(&mut self.ends, OffsetBufferBuilder::new(0)).finish();
        (self.items_count, self.last_end) = (0, 0);
        let item = Arc::new(Field::new_list_field(item_type, true));
        Arc::new(ListArray::new(item, ends, self.items.finish(), self.validity.finish()))
    }
}

fn too_many_digits(value: &bigdecimal::BigDecimal) -> DataError {
    DataError::NotConvertible {
        value: value.to_string(),
        found: "DECIMAL",
        to: "DECIMAL".to_owned(),
        expected: "at most as many digits as the type has",
    }
}

/// A batch of columns; may have no columns.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> datafusion::common::Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
