//! Limits the memory and the time of a function's results.
//!
//! A function computes all rows of a batch before any row is used, so a short statement could
//! request any amount of memory: `repeat('x', 60000000)` of 8192 rows. Functions count their values
//! here while they are created. Results beyond the limit are rejected, and an ended statement stops
//! between two values.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, cast::AsArray, types::Int64Type};
use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
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

/// The default limit of the results of one call for one batch of rows, in bytes.
const BYTES_MAX: usize = 256 << 20;
/// The maximum size of one value, in bytes. It is not a setting, because front doors and wire
/// formats have the same limit.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// The number of values between two checks whether the statement has ended.
const VALUES_BETWEEN: usize = 256;
/// The number of bytes between two such checks.
const BYTES_BETWEEN: usize = 1 << 20;
/// The size of an element of a series, in bytes.
const ITEM_OF_SERIES: f64 = 8.0;
/// The fixed size of every value, in bytes.
const OF_ANY_VALUE: usize = 16;

thread_local! {
    /// The bytes that the call in progress on this thread may still add, and its limit. With them,
    /// a value can be rejected before it is created, without knowledge of the call.
    static ROOM: Cell<(usize, usize)> = const { Cell::new((usize::MAX, usize::MAX)) };
}

/// The results of one call so far. A thread has those of one call at a time.
pub(super) struct Results {
    bytes: usize,
    bytes_max: usize,
    limits: Option<Limits>,
    /// The values and bytes since the last check whether the statement has ended.
    since: (usize, usize),
}

impl Results {
    /// Starts counting for a call with these settings.
    pub(super) fn of(options: &ConfigOptions) -> Results {
        let context = StatementContext::of(options);
        let bytes_max = context.map_or(BYTES_MAX, StatementContext::results_bytes_max);
        // Constants are computed at planning, where the limits belong to the task.
        let limits = context.and_then(StatementContext::limits).cloned().or_else(ending::limits);
        ROOM.set((bytes_max, bytes_max));
        Results { bytes: 0, bytes_max, limits, since: (0, 0) }
    }

    /// Counts a value of this size, before or after it is created.
    ///
    /// # Errors
    /// 53200 (out of memory) if all values take too much; 57014 if the statement has ended.
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.saturating_add(OF_ANY_VALUE);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            return Err(too_much(self.bytes_max));
        }
        ROOM.set((self.bytes_max - self.bytes, self.bytes_max));
        self.since.0 += 1;
        self.work(bytes)
    }

    /// Counts the steps of an expensive value, one for each byte that is read or written.
    ///
    /// # Errors
    /// 57014 if the statement has ended.
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

impl Drop for Results {
    fn drop(&mut self) {
        ROOM.set((usize::MAX, usize::MAX));
    }
}

fn too_much(bytes_max: usize) -> DataFusionError {
    let text = format!(
        "the results of a function for one batch of rows take more than {bytes_max} bytes, a quarter of what a query may use; see \
         query_memory_bytes_max"
    );
    ending::refuse(data_error(text).with_sqlstate("53200"))
}

/// The approximate size of a value in bytes, including its fixed size.
pub fn value_bytes(value: &Value<'_>) -> usize {
    OF_ANY_VALUE + bytes_of(value)
}

/// The approximate size of a value in bytes, beyond its fixed size.
pub(super) fn bytes_of(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        _ => 0,
    }
}

/// Wraps functions of DataFusion with results that may be much larger than their arguments. They
/// then reject excessive results before they begin.
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

/// The result size of each row, in bytes.
type Growth = fn(&ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>>;

/// A function that checks the size of its results first.
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

/// Counts the results of a batch before they are created.
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

/// For `regexp_replace`: assumes that each character and the end of the text match, because only
/// the function knows the matches.
fn matches_replaced(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (whole, to) = (Texts::of(args, 0)?, Texts::of(args, 2)?);
    Ok(Box::new(move |row| match (whole.get(row), to.get(row)) {
        (Some(whole), Some(to)) => (whole.len() + 1).saturating_mul(to.len()).saturating_add(whole.len()),
        _ => 0,
    }))
}

/// For `array_repeat`: an element and a number.
fn items_repeated(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let (items, counts) = (array(args, 0)?, whole_numbers(args, 1)?);
    Ok(Box::new(move |row| item_bytes(&items, row).saturating_mul(number(&counts, row))))
}

/// For `array_resize`: an array, a number of elements, and the fill element. The existing elements
/// are not larger.
fn items_filled(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let counts = whole_numbers(args, 1)?;
    let fill = if args.args.len() > 2 { Some(array(args, 2)?) } else { None };
    Ok(Box::new(move |row| {
        let each = fill.as_ref().map_or(OF_ANY_VALUE, |fill| item_bytes(fill, row));
        each.saturating_mul(number(&counts, row))
    }))
}

/// For `range` and `generate_series`: the stop, or the start, the stop and the step; also for dates
/// and timestamps. A step away from the stop gives no items.
fn numbered(args: &ScalarFunctionArgs) -> Result<Box<dyn Fn(usize) -> usize>> {
    let places = (0..args.args.len()).map(|at| array(args, at)).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(move |row| {
        if places.iter().any(|places| places.is_null(row)) {
            return 0;
        }
        let place = |at: usize| places.get(at).map(|places| place_of(places, row));
        let (first, last, step) = match (place(0), place(1)) {
            (Some(last), None) => (0.0, last, 1.0),
            (Some(first), Some(last)) => (first, last, place(2).unwrap_or(1.0)),
            _ => return 0,
        };
        let direction = places.get(2).map_or(Some(1.0), |steps| direction_of(steps, row));
        if direction.is_some_and(|direction| (last - first) * direction < 0.0) {
            return 0;
        }
        let bytes = (last - first).abs() / step.abs().max(1.0) * ITEM_OF_SERIES;
        // Out of range values saturate at the maximum.
        bytes as usize
    }))
}

/// Whether a step leads to larger or to smaller values, as a sign; `None` if the length of months
/// decides it.
fn direction_of(steps: &ArrayRef, row: usize) -> Option<f64> {
    match ScalarValue::try_from_array(steps, row) {
        Ok(ScalarValue::Int64(Some(number))) => Some((number as f64).signum()),
        Ok(ScalarValue::Int32(Some(number))) => Some(f64::from(number).signum()),
        Ok(ScalarValue::IntervalMonthDayNano(Some(step))) => {
            let parts = [i64::from(step.months), i64::from(step.days), step.nanoseconds];
            match (parts.iter().any(|part| *part > 0), parts.iter().any(|part| *part < 0)) {
                (true, false) => Some(1.0),
                (false, true) => Some(-1.0),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A bound or a step of a series: a number, or a time in nanoseconds with months of 28 days; 0 for
/// NULL and other types.
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
/// Like [`Results::add`].
pub(super) fn count_series(args: &ScalarFunctionArgs) -> Result<()> {
    count(args, numbered, usize::MAX)
}

/// The size of an array element that becomes an element of another array, in bytes.
fn item_bytes(items: &ArrayRef, row: usize) -> usize {
    let reader = ColumnReader::new(items.as_ref(), &field_type_of_arrow(items.data_type()));
    OF_ANY_VALUE + reader.map_or(0, |reader| bytes_of(&reader.get(row)))
}

/// Rejects a value of this size before it is created.
///
/// # Errors
/// 54000 (program limit exceeded); 53200 if the results of the call take too much with it.
pub(super) fn check_value(bytes: usize) -> Result<()> {
    check_length(bytes, VALUE_BYTES_MAX)?;
    let (room, bytes_max) = ROOM.get();
    if bytes > room { Err(too_much(bytes_max)) } else { Ok(()) }
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

/// The size of a text after a replacement, in bytes.
pub(super) fn replaced_bytes(whole: &str, from: &str, to: &str) -> usize {
    match to.len().checked_sub(from.len()) {
        // The text does not grow.
        None | Some(0) => whole.len(),
        // The replacement goes between all characters, and at both ends.
        Some(more) if from.is_empty() => (whole.chars().count() + 1).saturating_mul(more).saturating_add(whole.len()),
        Some(more) => whole.matches(from).count().saturating_mul(more).saturating_add(whole.len()),
    }
}

fn whole_numbers(args: &ScalarFunctionArgs, at: usize) -> Result<ArrayRef> {
    let numbers = array(args, at)?;
    Ok(datafusion::arrow::compute::cast(&numbers, &DataType::Int64)?)
}

/// A count; 0 for NULL and negative numbers.
fn number(counts: &ArrayRef, row: usize) -> usize {
    let counts = counts.as_primitive::<Int64Type>();
    match counts.is_valid(row) {
        true => usize::try_from(counts.value(row)).unwrap_or(0),
        false => 0,
    }
}
