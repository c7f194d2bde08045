//! The columns and rows of an SQL result.

use std::{borrow::Cow, sync::Arc, vec};

use bigdecimal::{BigDecimal, num_bigint::BigInt};
use chrono::{FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use filbert_data::{DataError, FieldType, TypeId, Value};
use filbert_wire::{
    sql_page::{self, SqlDate, SqlTime, SqlTimestamp, SqlTimestampWithTimeZone},
    structure::SqlColumnMetadata,
};

use crate::ClientError;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlColumn {
    /// The name of the column.
    pub name: String,
    /// The type of the column; `None` for the type NULL.
    pub field_type: Option<FieldType>,
    /// Whether the column may contain nulls.
    pub is_nullable: bool,
}

impl SqlColumn {
    pub(crate) fn new(column: &SqlColumnMetadata<'_>) -> Self {
        use filbert_wire::sql_page::SqlColumn as Wire;
        let field_type = match column.kind {
            Wire::VARCHAR => FieldType::Varchar,
            Wire::BOOLEAN => FieldType::Boolean,
            Wire::TINYINT => FieldType::TinyInt,
            Wire::SMALLINT => FieldType::SmallInt,
            Wire::INTEGER => FieldType::Integer,
            Wire::BIGINT => FieldType::BigInt,
            Wire::DECIMAL => FieldType::Decimal(None),
            Wire::REAL => FieldType::Real,
            Wire::DOUBLE => FieldType::Double,
            Wire::DATE => FieldType::Date,
            Wire::TIME => FieldType::Time,
            Wire::TIMESTAMP => FieldType::Timestamp,
            Wire::TIMESTAMP_WITH_TIME_ZONE => FieldType::TimestampTz,
            Wire::JSON => FieldType::Json,
            Wire::NULL => return Self { name: column.name.to_owned(), field_type: None, is_nullable: column.nullable },
            _ => FieldType::Object,
        };
        Self { name: column.name.to_owned(), field_type: Some(field_type), is_nullable: column.nullable }
    }
}

/// One row of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlRow {
    columns: Arc<[SqlColumn]>,
    values: Vec<Value<'static>>,
}

impl SqlRow {
    /// The columns.
    pub fn columns(&self) -> &[SqlColumn] {
        &self.columns
    }

    /// The values, in the order of the columns.
    pub fn values(&self) -> &[Value<'static>] {
        &self.values
    }

    /// Returns the value of the first column with this name, or `None` if there is no such column.
    pub fn get(&self, name: &str) -> Option<&Value<'static>> {
        let at = self.columns.iter().position(|column| column.name == name)?;
        self.values.get(at)
    }

    /// Returns the value of the column with this index, counted from 0.
    pub fn at(&self, column: usize) -> Option<&Value<'static>> {
        self.values.get(column)
    }

    /// Consumes the row and returns its values.
    pub fn into_values(self) -> Vec<Value<'static>> {
        self.values
    }
}

/// The remaining values of one column.
enum Column {
    Values(vec::IntoIter<Value<'static>>),
    Nulls,
}

/// A page, read row by row.
#[derive(Default)]
pub(crate) struct Page {
    is_last: bool,
    rows_left: usize,
    columns: Vec<Column>,
}

impl Page {
    /// Returns an empty last page.
    pub(crate) fn end() -> Page {
        Page { is_last: true, ..Page::default() }
    }

    pub(crate) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Converts a page of the wire protocol.
    pub(crate) fn new(page: sql_page::SqlPage<'_>) -> Result<Page, ClientError> {
        let rows = page.columns.first().map_or(0, sql_page::SqlColumn::rows);
        if page.columns.iter().any(|column| column.rows() != rows) {
            return Err(broken(TypeId::NULL, "columns of different lengths", "as many rows in each"));
        }
        let columns = page.columns.into_iter().map(Column::new).collect::<Result<_, _>>()?;
        Ok(Page { is_last: page.last, rows_left: rows, columns })
    }

    /// Checks that the page has the columns of the result. A page with only null columns needs no
    /// bytes for its rows. Such a page must not claim more rows than requested.
    pub(crate) fn check(&self, columns: usize, page_rows: i32) -> Result<(), ClientError> {
        if self.rows_left > 0 && self.columns.len() != columns {
            return Err(broken(TypeId::NULL, format!("{} columns", self.columns.len()), "the result's columns"));
        }
        let has_values = self.columns.iter().any(|column| matches!(column, Column::Values(_)));
        if !has_values && usize::try_from(page_rows).is_ok_and(|most| self.rows_left > most) {
            return Err(broken(TypeId::NULL, format!("{} rows", self.rows_left), "as many as were asked for"));
        }
        Ok(())
    }

    /// Returns the next row.
    pub(crate) fn next(&mut self, columns: &Arc<[SqlColumn]>) -> Option<SqlRow> {
        self.rows_left = self.rows_left.checked_sub(1)?;
        let values = self.columns.iter_mut().map(|column| match column {
            Column::Values(values) => values.next().unwrap_or(Value::Null),
            Column::Nulls => Value::Null,
        });
        Some(SqlRow { columns: columns.clone(), values: values.collect() })
    }
}

impl Column {
    fn new(column: sql_page::SqlColumn<'_>) -> Result<Column, ClientError> {
        use sql_page::SqlColumn as Wire;
        Ok(match column {
            Wire::Nulls { .. } => Column::Nulls,
            Wire::Varchar(rows) => values(rows, |text| Value::Text(Cow::Owned(text.to_owned()))),
            Wire::Json(rows) => values(rows, |json| Value::Json(Cow::Owned(json.value.to_owned()))),
            Wire::Object(rows) => {
                let read = |blob| Value::from_blob(blob).map(Value::into_owned);
                let read = rows.into_iter().map(|blob| blob.map_or(Ok(Value::Null), read));
                Column::Values(read.collect::<Result<Vec<_>, DataError>>()?.into_iter())
            }
            Wire::Boolean(rows) => values(rows, Value::Boolean),
            Wire::TinyInt(rows) => values(rows, Value::Int8),
            Wire::SmallInt(rows) => values(rows, Value::Int16),
            Wire::Integer(rows) => values(rows, Value::Int32),
            Wire::BigInt(rows) => values(rows, Value::Int64),
            Wire::Real(rows) => values(rows, Value::Float32),
            Wire::Double(rows) => values(rows, Value::Float64),
            Wire::Decimal(rows) => values(rows, |decimal| {
                let unscaled = BigInt::from_signed_bytes_be(decimal.unscaled);
                Value::Decimal(BigDecimal::new(unscaled, i64::from(decimal.scale)))
            }),
            Wire::Date(rows) => checked(rows, |day| date(day).map(Value::Date))?,
            Wire::Time(rows) => checked(rows, |of_day| time(of_day).map(Value::Time))?,
            Wire::Timestamp(rows) => checked(rows, |sql_timestamp| timestamp(sql_timestamp).map(Value::Timestamp))?,
            Wire::TimestampWithTimeZone(rows) => checked(rows, timestamp_tz)?,
        })
    }
}

fn values<T>(rows: Vec<Option<T>>, value: impl Fn(T) -> Value<'static>) -> Column {
    let rows: Vec<_> = rows.into_iter().map(|row| row.map_or(Value::Null, &value)).collect();
    Column::Values(rows.into_iter())
}

fn checked<T>(
    rows: Vec<Option<T>>,
    value: impl Fn(T) -> Result<Value<'static>, ClientError>,
) -> Result<Column, ClientError> {
    let rows = rows.into_iter().map(|row| row.map_or(Ok(Value::Null), &value));
    Ok(Column::Values(rows.collect::<Result<Vec<_>, _>>()?.into_iter()))
}

fn broken(type_id: TypeId, found: impl Into<String>, expected: &'static str) -> ClientError {
    DataError::Broken { type_id, found: found.into(), expected }.into()
}

fn date(date: SqlDate) -> Result<NaiveDate, ClientError> {
    NaiveDate::from_ymd_opt(date.year, date.month.into(), date.day.into())
        .ok_or_else(|| broken(TypeId::LOCAL_DATE, format!("{date:?}"), "a day within 262,143 years of year 0"))
}

fn time(time: SqlTime) -> Result<NaiveTime, ClientError> {
    u32::try_from(time.nanosecond)
        .ok()
        .and_then(|nano| NaiveTime::from_hms_nano_opt(time.hour.into(), time.minute.into(), time.second.into(), nano))
        .ok_or_else(|| broken(TypeId::LOCAL_TIME, format!("{time:?}"), "a time of day"))
}

fn timestamp(sql_timestamp: SqlTimestamp) -> Result<NaiveDateTime, ClientError> {
    Ok(date(sql_timestamp.date)?.and_time(time(sql_timestamp.time)?))
}

fn timestamp_tz(sql_timestamp: SqlTimestampWithTimeZone) -> Result<Value<'static>, ClientError> {
    let local = timestamp(sql_timestamp.local)?;
    FixedOffset::east_opt(sql_timestamp.offset_seconds)
        .and_then(|zone| zone.from_local_datetime(&local).single())
        .map(Value::TimestampTz)
        .ok_or_else(|| broken(TypeId::OFFSET_DATE_TIME, format!("{sql_timestamp:?}"), "an offset of less than a day"))
}
