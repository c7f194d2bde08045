//! Arguments and results of functions, row by row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float64Type, Int64Type, IntervalMonthDayNanoType, Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, StringViewArray, Time64NanosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use filbert_data::Interval;

/// The kind of an Arrow type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Integer,
    Number,
    Text,
    Boolean,
    /// Unknown: a null or a parameter.
    Unknown,
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Kind {
        match data_type {
            DataType::Date32 | DataType::Date64 => Kind::Date,
            DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
            DataType::Timestamp(_, None) => Kind::Timestamp,
            DataType::Timestamp(_, Some(_)) => Kind::Timestamptz,
            DataType::Interval(_) | DataType::Duration(_) => Kind::Interval,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
            DataType::Boolean => Kind::Boolean,
            DataType::Null => Kind::Unknown,
            whole if whole.is_integer() => Kind::Integer,
            number if number.is_numeric() => Kind::Number,
            _ => Kind::Other,
        }
    }

    /// The Arrow type that the functions here use for the kind.
    pub(super) fn arrow(self) -> DataType {
        match self {
            Kind::Date => DataType::Date32,
            Kind::Time => DataType::Time64(TimeUnit::Nanosecond),
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Kind::Integer => DataType::Int64,
            Kind::Number => DataType::Float64,
            Kind::Text => DataType::Utf8View,
            Kind::Boolean => DataType::Boolean,
            Kind::Unknown | Kind::Other => DataType::Null,
        }
    }

    /// Whether it is a date, a time or an interval.
    pub(super) fn is_temporal(self) -> bool {
        matches!(self, Kind::Date | Kind::Time | Kind::Timestamp | Kind::Timestamptz | Kind::Interval)
    }

    /// The name in PostgreSQL.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Date => "date",
            Kind::Time => "time without time zone",
            Kind::Timestamp => "timestamp without time zone",
            Kind::Timestamptz => "timestamp with time zone",
            Kind::Interval => "interval",
            Kind::Integer => "integer",
            Kind::Number => "numeric",
            Kind::Text => "text",
            Kind::Boolean => "boolean",
            Kind::Unknown | Kind::Other => "unknown",
        }
    }
}

/// A value: days, microseconds since midnight or since 1970-01-01; other types unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Date(i64),
    Time(i64),
    Timestamp(i64),
    Timestamptz(i64),
    Interval(Interval),
    Integer(i64),
    Number(f64),
    /// An unscaled decimal, for a result with a known scale.
    Decimal(i128),
    Text(String),
    Boolean(bool),
}

/// An argument.
struct Column {
    array: ArrayRef,
    kind: Kind,
    is_constant: bool,
}

impl Column {
    fn of(value: &ColumnarValue) -> Result<Column> {
        let (array, is_constant) = match value {
            ColumnarValue::Scalar(scalar) => (scalar.to_array_of_size(1)?, true),
            ColumnarValue::Array(rows) => (Arc::clone(rows), false),
        };
        let kind = Kind::of(array.data_type());
        // One representation for each kind.
        let array = match kind {
            Kind::Other | Kind::Unknown => array,
            _ if *array.data_type() == kind.arrow() => array,
            _ => datafusion::arrow::compute::cast(&array, &kind.arrow())?,
        };
        Ok(Column { array, kind, is_constant })
    }

    fn get(&self, row: usize) -> Cell {
        let row = if self.is_constant { 0 } else { row };
        if self.array.is_null(row) {
            return Cell::Null;
        }
        let array = &self.array;
        let found = match self.kind {
            Kind::Date => array.as_primitive_opt::<Date32Type>().map(|rows| Cell::Date(rows.value(row).into())),
            Kind::Time => {
                array.as_primitive_opt::<Time64NanosecondType>().map(|rows| Cell::Time(rows.value(row) / 1_000))
            }
            Kind::Timestamp => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map(|rows| Cell::Timestamp(rows.value(row)))
            }
            Kind::Timestamptz => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map(|rows| Cell::Timestamptz(rows.value(row)))
            }
            Kind::Interval => array.as_primitive_opt::<IntervalMonthDayNanoType>().map(|rows| {
                let IntervalMonthDayNano { months, days, nanoseconds } = rows.value(row);
                Cell::Interval(Interval { months, days, nanoseconds })
            }),
            Kind::Integer => array.as_primitive_opt::<Int64Type>().map(|rows| Cell::Integer(rows.value(row))),
            Kind::Number => array.as_primitive_opt::<Float64Type>().map(|rows| Cell::Number(rows.value(row))),
            Kind::Text => array.as_string_view_opt().map(|rows| Cell::Text(rows.value(row).to_owned())),
            Kind::Boolean => array.as_boolean_opt().map(|rows| Cell::Boolean(rows.value(row))),
            Kind::Unknown | Kind::Other => None,
        };
        found.unwrap_or(Cell::Null)
    }
}

/// Computes the result of each row; null if one of its arguments is null.
pub(super) fn compute(args: &ScalarFunctionArgs, row: impl FnMut(&[Cell]) -> Result<Cell>) -> Result<ColumnarValue> {
    compute_all(args, true, row)
}

/// Computes the result of each row, with arguments that may be null.
pub(super) fn compute_all(
    args: &ScalarFunctionArgs,
    is_strict: bool,
    mut row: impl FnMut(&[Cell]) -> Result<Cell>,
) -> Result<ColumnarValue> {
    let columns = args.args.iter().map(Column::of).collect::<Result<Vec<_>>>()?;
    let is_constant = columns.iter().all(|column| column.is_constant);
    let rows = if is_constant { 1 } else { args.number_rows };
    // Constants are read once.
    let mut cells: Vec<Cell> =
        columns.iter().map(|column| if column.is_constant { column.get(0) } else { Cell::Null }).collect();
    let mut results = Vec::with_capacity(rows);
    for at in 0..rows {
        for (cell, column) in cells.iter_mut().zip(&columns).filter(|(_, column)| !column.is_constant) {
            *cell = column.get(at);
        }
        results.push(match is_strict && cells.contains(&Cell::Null) {
            true => Cell::Null,
            false => row(&cells)?,
        });
    }
    let array = array_of(args.return_field.data_type(), results)?;
    Ok(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
        false => ColumnarValue::Array(array),
    })
}

/// Results as an array of the declared type.
pub(super) fn array_of(data_type: &DataType, cells: Vec<Cell>) -> Result<ArrayRef> {
    let whole = |cell: &Cell| match cell {
        Cell::Date(value)
        | Cell::Time(value)
        | Cell::Timestamp(value)
        | Cell::Timestamptz(value)
        | Cell::Integer(value) => Some(*value),
        _ => None,
    };
    let wholes = || cells.iter().map(whole);
    let array: ArrayRef = match data_type {
        DataType::Date32 => {
            Arc::new(wholes().map(|value| value.and_then(|days| i32::try_from(days).ok())).collect::<Date32Array>())
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            Arc::new(wholes().map(|value| value.map(|micros| micros * 1_000)).collect::<Time64NanosecondArray>())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(wholes().collect::<TimestampMicrosecondArray>().with_timezone_opt(zone.clone()))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = |cell: &Cell| match cell {
                Cell::Interval(Interval { months, days, nanoseconds }) => {
                    Some(IntervalMonthDayNano { months: *months, days: *days, nanoseconds: *nanoseconds })
                }
                _ => None,
            };
            Arc::new(cells.iter().map(interval).collect::<IntervalMonthDayNanoArray>())
        }
        DataType::Int32 => {
            Arc::new(wholes().map(|value| value.and_then(|value| i32::try_from(value).ok())).collect::<Int32Array>())
        }
        DataType::Int64 => Arc::new(wholes().collect::<Int64Array>()),
        DataType::Float64 => {
            let number = |cell: &Cell| match cell {
                Cell::Number(value) => Some(*value),
                _ => None,
            };
            Arc::new(cells.iter().map(number).collect::<Float64Array>())
        }
        DataType::Decimal128(precision, scale) => {
            let decimal = |cell: &Cell| match cell {
                Cell::Decimal(value) => Some(*value),
                _ => None,
            };
            let array = cells.iter().map(decimal).collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Boolean => {
            let boolean = |cell: &Cell| match cell {
                Cell::Boolean(value) => Some(*value),
                _ => None,
            };
            Arc::new(cells.iter().map(boolean).collect::<BooleanArray>())
        }
        DataType::Utf8View => {
            let text = |cell: &'_ Cell| match cell {
                Cell::Text(text) => Some(text.clone()),
                _ => None,
            };
            Arc::new(cells.iter().map(text).collect::<StringViewArray>())
        }
        other => return Err(DataFusionError::Internal(format!("a function of dates gives no {other}"))),
    };
    Ok(array)
}

/// The arguments of each row.
pub(super) fn column_cells(args: &ScalarFunctionArgs) -> Result<Vec<Vec<Cell>>> {
    let columns = args.args.iter().map(Column::of).collect::<Result<Vec<_>>>()?;
    Ok((0..args.number_rows).map(|row| columns.iter().map(|column| column.get(row)).collect()).collect())
}
