//! The memory and the time that the results of a function take.
//!
//! A function computes all rows of a batch before anybody sees one of them, so that a short statement could ask for any amount of
//! memory: `repeat('x', 60000000)` of 8192 rows. Whoever makes values counts them here as they come about. What does not fit is refused,
//! and a statement that is over ends between two values.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, cast::AsArray, types::Int64Type};
use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use datafusion::prelude::SessionContext;
use filbert_data::Value;
use filbert_grid::query::ColumnReader;

use super::around::{Around, around};
use super::row::{Texts, array, rows_of};
use crate::context::StatementContext;
use crate::ending;
use crate::ending::Limits;
use crate::error::{carried, data_error};
use crate::types::field_type_of_arrow;

/// Bytes of the results of one call for one batch of rows, where nobody says otherwise.
const BYTES_MAX: usize = 256 << 20;
/// Bytes of one value. Not a setting: doors and the wire's formats have this limit for a value as well.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// Values that are made between two looks at whether the statement is over.
const VALUES_BETWEEN: usize = 256;
/// Bytes that are made between two such looks.
const BYTES_BETWEEN: usize = 1 << 20;
/// Bytes of an item of a series.
const ITEM_OF_SERIES: f64 = 8.0;
/// Bytes that a value takes whatever it holds.
const OF_ANY_VALUE: usize = 16;

/// The results of one call, as far as they have been made.
pub(super) struct Results {
    bytes: usize,
    bytes_max: usize,
    limits: Option<Limits>,
    /// Values and bytes since it was last looked whether the statement is over.
    since: (usize, usize),
}

impl Results {
    /// None yet, of a call with these settings.
    pub(super) fn of(options: &ConfigOptions) -> Results {
        let context = StatementContext::of(options);
        let bytes_max = context.map_or(BYTES_MAX, StatementContext::results_bytes_max);
        // Constants are computed while a statement is planned.
        let limits = context.and_then(StatementContext::limits).cloned().or_else(ending::limits);
        Results { bytes: 0, bytes_max, limits, since: (0, 0) }
    }

    /// Counts a value of so many bytes, which is made already or is about to be.
    ///
    /// # Errors
    /// 53200 (out of memory) when all take too much together; 57014 when the statement is over.
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.saturating_add(OF_ANY_VALUE);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            let text = format!(
                "the results of a function for one batch of rows take more than {} bytes, a quarter of what a query may use; see \
                 query_memory_bytes_max",
                self.bytes_max
            );
            return Err(ending::refuse(data_error(text).with_sqlstate("53200")));
        }
        self.since.0 += 1;
        self.work(bytes)
    }

    /// Counts steps of a value that takes long to make, one for each byte that is looked at or made.
    ///
    /// # Errors
    /// 57014 when the statement is over.
    pub(super) fn work(&mut self, steps: usize) -> Result<()> {
        self.since.1 = self.since.1.saturating_add(steps);
        if self.since.0 >= VALUES_BETWEEN || self.since.1 >= BYTES_BETWEEN {
            self.since = (0, 0);
            if let Some(over) = self.limits.as_ref().filter(|limits| limits.are_over()) {
                return Err(carried(over.why_over()));
            }
        }
        Ok(())
    }
}

/// The bytes that a value takes, roughly, itself included.
pub fn value_bytes(value: &Value<'_>) -> usize {
    OF_ANY_VALUE + bytes_of(value)
}

/// The bytes that a value takes beyond itself, roughly.
pub(super) fn bytes_of(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        _ => 0,
    }
}

/// Has functions of DataFusion whose results can be any number of times as large as their arguments refuse, before they begin, what would
/// take too much.
pub(super) fn bound(context: &SessionContext) {
    let growing: [(&str, Growth, usize); 7] = [
        ("repeat", repeated, VALUE_BYTES_MAX),
        ("replace", replaced, VALUE_BYTES_MAX),
        ("regexp_replace", matches_replaced, VALUE_BYTES_MAX),
        ("array_repeat", items_repeated, VALUE_BYTES_MAX),
        ("array_resize", items_filled, VALUE_BYTES_MAX),
        // A series becomes rows.
        ("range", numbered, usize::MAX),
        ("generate_series", numbered, usize::MAX),
    ];
    let known = context.state();
    for (name, growth, value_bytes_max) in growing {
        if let Some(inner) = known.scalar_functions().get(name) {
            context.register_udf(around(Arc::clone(inner), Bounded { growth, value_bytes_max }));
        }
    }
}

/// The bytes of a call's results, by row.
type Growth = fn(&ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>>;

/// A function with a look at the bytes of its results before.
#[derive(Debug)]
struct Bounded {
    growth: Growth,
    value_bytes_max: usize,
}

impl Around for Bounded {
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        count(&args, self.growth, self.value_bytes_max)?;
        inner.invoke_with_args(args)
    }
}

/// Counts the results of a batch before they are made.
fn count(args: &ScalarFunctionArgs, growth: Growth, value_bytes_max: usize) -> Result<()> {
    let bytes_of_row = growth(args)?;
    let mut results = Results::of(&args.config_options);
    for row in 0..rows_of(args) {
        let bytes = bytes_of_row(row);
        check_length(bytes, value_bytes_max)?;
        results.add(bytes)?;
    }
    Ok(())
}

fn repeated(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (texts, counts) = (Texts::of(args, 0)?, whole_numbers(args, 1)?);
    Ok(Box::new(move |row| texts.get(row).map_or(0, str::len).saturating_mul(number(&counts, row))))
}

fn replaced(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (whole, from, to) = (Texts::of(args, 0)?, Texts::of(args, 1)?, Texts::of(args, 2)?);
    Ok(Box::new(move |row| match (whole.get(row), from.get(row), to.get(row)) {
        (Some(whole), Some(from), Some(to)) => replaced_bytes(whole, from, to),
        _ => 0,
    }))
}

/// Of `regexp_replace`: as if each character and the text's end matched, as the matches are known to the function alone.
fn matches_replaced(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (whole, to) = (Texts::of(args, 0)?, Texts::of(args, 2)?);
    Ok(Box::new(move |row| match (whole.get(row), to.get(row)) {
        (Some(whole), Some(to)) => (whole.len() + 1).saturating_mul(to.len()).saturating_add(whole.len()),
        _ => 0,
    }))
}

/// Of `array_repeat`: an item, a number.
fn items_repeated(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (items, counts) = (array(args, 0)?, whole_numbers(args, 1)?);
    Ok(Box::new(move |row| item_bytes(&items, row).saturating_mul(number(&counts, row))))
}

/// Of `array_resize`: an array, a number of items, and the item that fills it up. What is there already is no larger.
fn items_filled(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let counts = whole_numbers(args, 1)?;
    let fill = if args.args.len() > 2 { Some(array(args, 2)?) } else { None };
    Ok(Box::new(move |row| {
        let each = fill.as_ref().map_or(OF_ANY_VALUE, |fill| item_bytes(fill, row));
        each.saturating_mul(number(&counts, row))
    }))
}

/// Of `range` and `generate_series`: the last number, or the first, the last and the step; of dates and timestamps as well.
fn numbered(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let places = (0..args.args.len()).map(|at| array(args, at)).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(move |row| {
        let place = |at: usize| places.get(at).map(|places| place_of(places, row));
        let (first, last, step) = match (place(0), place(1)) {
            (Some(last), None) => (0.0, last, 1.0),
            (Some(first), Some(last)) => (first, last, place(2).unwrap_or(1.0)),
            _ => return 0,
        };
        let bytes = (last - first).abs() / step.abs().max(1.0) * ITEM_OF_SERIES;
        // Beyond all numbers it is the greatest one.
        bytes as usize
    }))
}

/// A bound or a step of a series: a number, or a time in nanoseconds, in which a month has 28 days; 0 for NULL and all else.
fn place_of(places: &ArrayRef, row: usize) -> f64 {
    const DAY: f64 = 86_400e9;
    match ScalarValue::try_from_array(places, row) {
        Ok(ScalarValue::Int64(Some(number))) => number as f64,
        Ok(ScalarValue::Int32(Some(number))) => f64::from(number),
        Ok(ScalarValue::Date32(Some(days))) => f64::from(days) * DAY,
        Ok(ScalarValue::Date64(Some(millis))) => millis as f64 * 1e6,
        Ok(ScalarValue::TimestampSecond(Some(seconds), _)) => seconds as f64 * 1e9,
        Ok(ScalarValue::TimestampMillisecond(Some(millis), _)) => millis as f64 * 1e6,
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => micros as f64 * 1e3,
        Ok(ScalarValue::TimestampNanosecond(Some(nanos), _)) => nanos as f64,
        Ok(ScalarValue::IntervalMonthDayNano(Some(step))) => {
            (f64::from(step.months) * 28.0 + f64::from(step.days)) * DAY + step.nanoseconds as f64
        }
        _ => 0.0,
    }
}

/// Counts the series of a batch.
///
/// # Errors
/// As [`Results::add`].
pub(super) fn count_series(args: &ScalarFunctionArgs) -> Result<()> {
    count(args, numbered, usize::MAX)
}

/// The bytes that a value of an array takes as an item of another.
fn item_bytes(items: &ArrayRef, row: usize) -> usize {
    let reader = ColumnReader::new(items.as_ref(), &field_type_of_arrow(items.data_type()));
    OF_ANY_VALUE + reader.map_or(0, |reader| bytes_of(&reader.get(row)))
}

/// Refuses a value of so many bytes.
///
/// # Errors
/// 54000 (program limit exceeded).
pub(super) fn check_value(bytes: usize) -> Result<()> {
    check_length(bytes, VALUE_BYTES_MAX)
}

fn check_length(bytes: usize, bytes_max: usize) -> Result<()> {
    match bytes <= bytes_max {
        true => Ok(()),
        false => {
            let text = format!("requested length too large: at most {bytes_max} bytes");
            Err(ending::refuse(data_error(text).with_sqlstate("54000")))
        }
    }
}

/// The bytes of a text in which one part is replaced by another.
pub(super) fn replaced_bytes(whole: &str, from: &str, to: &str) -> usize {
    match to.len().checked_sub(from.len()) {
        // It does not grow.
        None | Some(0) => whole.len(),
        // Between all characters, and at both ends.
        Some(more) if from.is_empty() => (whole.chars().count() + 1).saturating_mul(more).saturating_add(whole.len()),
        Some(more) => whole.matches(from).count().saturating_mul(more).saturating_add(whole.len()),
    }
}

fn whole_numbers(args: &ScalarFunctionArgs, at: usize) -> Result<ArrayRef> {
    let numbers = array(args, at)?;
    Ok(datafusion::arrow::compute::cast(&numbers, &DataType::Int64)?)
}

/// A count; 0 for NULL and what is less.
fn number(counts: &ArrayRef, row: usize) -> usize {
    let counts = counts.as_primitive::<Int64Type>();
    match counts.is_valid(row) {
        true => usize::try_from(counts.value(row)).unwrap_or(0),
        false => 0,
    }
}
