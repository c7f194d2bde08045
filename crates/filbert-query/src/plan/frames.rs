//! Window frames: their distances, and frames that have no rows.
//!
//! A distance may be any expression without columns, see [`filbert_functions::frames`]. It must be
//! neither null nor negative.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Expr, ExprSchemable, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{
    Expr as Written, Function, Value, ValueWithSpan, WindowFrameBound as WrittenBound,
    WindowFrameUnits as WrittenUnits, WindowType,
};
use filbert_data::Interval;
use filbert_data::dates::Zone;
use filbert_dialect::call;
use filbert_functions::error::{carried, data_error, parsing_error};
use filbert_functions::frames::{FIRST_ROW, LAST_ROW, RANGE_END, RANGE_START};
use filbert_functions::zone_of_changes;

/// Window functions with results that do not depend on the frame.
const WITHOUT_FRAME: [&str; 8] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// Turns distances that are no plain numbers into partition keys, and puts a 1 in their places.
pub(crate) fn written(function: &mut Function) {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else { return };
    let Some(frame) = &mut window.window_frame else { return };
    let (start, end) = match frame.units {
        WrittenUnits::Range => (RANGE_START, RANGE_END),
        WrittenUnits::Rows | WrittenUnits::Groups => (FIRST_ROW, LAST_ROW),
    };
    let counts_rows = frame.units != WrittenUnits::Range;
    let is_plain = |distance: &Written| match distance {
        Written::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            !counts_rows || digits.bytes().all(|digit| digit.is_ascii_digit())
        }
        Written::Interval(_) => true,
        _ => false,
    };
    for (bound, name) in [(Some(&mut frame.start_bound), start), (frame.end_bound.as_mut(), end)] {
        let Some(WrittenBound::Preceding(Some(distance)) | WrittenBound::Following(Some(distance))) = bound else {
            continue;
        };
        if !is_plain(distance) {
            let one = Written::value(Value::Number("1".to_owned(), false));
            let distance = std::mem::replace(distance.as_mut(), one);
            window.partition_by.push(call(name, vec![distance], Vec::new(), None));
        }
    }
}

/// Turns such partition keys into the bounds of the frame; returns whether there were any. Keys of
/// parameters without a value stay.
///
/// # Errors
/// A distance is not constant, null, negative, or of a wrong type.
pub(super) fn settle(function: &mut WindowFunction, options: &ConfigOptions) -> Result<bool> {
    if !function.params.partition_by.iter().any(|key| distance_of(key).is_some()) {
        return Ok(false);
    }
    let frame = &function.params.window_frame;
    let (mut start, mut end) = (frame.start_bound.clone(), frame.end_bound.clone());
    let mut keys = Vec::with_capacity(function.params.partition_by.len());
    for key in &function.params.partition_by {
        let Some((is_start, distance)) = distance_of(key) else {
            keys.push(key.clone());
            continue;
        };
        let Some(value) = constant(distance, frame.units, options)? else { return Ok(false) };
        let value = checked(value, frame.units, is_start)?;
        let bound = if is_start { &mut start } else { &mut end };
        match bound {
            WindowFrameBound::Preceding(place) | WindowFrameBound::Following(place) => *place = value,
            WindowFrameBound::CurrentRow => {}
        }
    }
    function.params.window_frame = WindowFrame::new_bounds(frame.units, start, end);
    function.params.partition_by = keys;
    Ok(true)
}

/// The distance that a partition key is, and whether it is that of the first bound.
fn distance_of(key: &Expr) -> Option<(bool, &Expr)> {
    match key {
        Expr::Alias(alias) => distance_of(&alias.expr),
        Expr::ScalarFunction(call) => {
            let is_start = match call.func.name() {
                FIRST_ROW | RANGE_START => true,
                LAST_ROW | RANGE_END => false,
                _ => return None,
            };
            call.args.first().map(|distance| (is_start, distance))
        }
        _ => None,
    }
}

/// The value of a distance; `None` if a parameter in it has no value yet.
fn constant(distance: &Expr, units: WindowFrameUnits, options: &ConfigOptions) -> Result<Option<ScalarValue>> {
    if distance.exists(|inner| Ok(matches!(inner, Expr::Placeholder(_))))? {
        return Ok(None);
    }
    if distance.exists(|inner| Ok(matches!(inner, Expr::Column(_) | Expr::OuterReferenceColumn(..))))? {
        let text = format!("argument of {units} must not contain variables");
        return Err(carried(parsing_error(text).with_sqlstate("42P10")));
    }
    if distance.exists(|inner| Ok(matches!(inner, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))))? {
        let text = format!("a subquery as the distance of a frame of {units} is not served");
        return Err(carried(parsing_error(text).with_sqlstate("0A000")));
    }
    let schema = DFSchema::empty();
    let options = Arc::new(options.clone());
    let context = SimplifyContext::builder().with_config_options(Arc::clone(&options)).build();
    let distance = ExprSimplifier::new(context).coerce(distance.clone(), &schema)?;
    if let Expr::Literal(value, _) = distance {
        return Ok(Some(value));
    }
    let context = PhysicalPlanningContext::default();
    let properties = ExecutionProps { config_options: Some(options), ..ExecutionProps::new() };
    let distance = datafusion::physical_expr::create_physical_expr(&distance, &schema, &properties, &context)?;
    let row = RecordBatch::try_new_with_options(
        schema.as_arrow().clone().into(),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let values = distance.evaluate(&row)?.into_array(1)?;
    ScalarValue::try_from_array(&values, 0).map(Some)
}

/// A distance as DataFusion expects it: a count for rows and groups, for ranges the text of a
/// number or of an interval.
fn checked(value: ScalarValue, units: WindowFrameUnits, is_start: bool) -> Result<ScalarValue> {
    let which = if is_start { "starting" } else { "ending" };
    if value.is_null() {
        let text = format!("frame {which} offset must not be null");
        return Err(carried(data_error(text).with_sqlstate("22004")));
    }
    if units == WindowFrameUnits::Range {
        let is_negative = value.data_type().is_numeric() && value < ScalarValue::new_zero(&value.data_type())?;
        return match &value {
            _ if is_negative => Err(negative_size()),
            // The text of an interval in a statement has this form: types that have no such
            // distance reject both.
            ScalarValue::IntervalMonthDayNano(Some(parts)) => Ok(ScalarValue::Utf8(Some(format!(
                "{} months {} days {} nanoseconds",
                parts.months, parts.days, parts.nanoseconds
            )))),
            _ => match value.cast_to(&DataType::Utf8)? {
                ScalarValue::Utf8(Some(text)) => Ok(ScalarValue::Utf8(Some(text.trim().to_owned()))),
                other => Ok(other),
            },
        };
    }
    let count = match &value {
        text if text.try_as_str().is_some() => {
            let written = text.try_as_str().flatten().unwrap_or_default();
            let wrong = || {
                let text = format!("invalid input syntax for type bigint: \"{written}\"");
                carried(data_error(text).with_sqlstate("22P02"))
            };
            written.trim().parse::<i64>().map_err(|_| wrong())?
        }
        // PostgreSQL rounds to the nearest even number.
        ScalarValue::Float64(Some(number)) => number.round_ties_even() as i64,
        ScalarValue::Float32(Some(number)) => number.round_ties_even() as i64,
        number if number.data_type().is_numeric() => match number.cast_to(&DataType::Decimal128(38, 0))? {
            ScalarValue::Decimal128(Some(number), ..) => {
                i64::try_from(number).map_err(|_| carried(data_error("bigint out of range").with_sqlstate("22003")))?
            }
            _ => 0,
        },
        _ => {
            let text = format!("argument of {units} must be type bigint");
            return Err(carried(parsing_error(text).with_sqlstate("42804")));
        }
    };
    let count = u64::try_from(count).map_err(|_| {
        let text = format!("frame {which} offset must not be negative");
        carried(data_error(text).with_sqlstate("22013"))
    })?;
    Ok(ScalarValue::UInt64(Some(count)))
}

fn negative_size() -> DataFusionError {
    carried(data_error("invalid preceding or following size in window function").with_sqlstate("22013"))
}

/// The length of an interval in microseconds.
fn length_of(months: i32, days: i32, nanoseconds: i64) -> i128 {
    Interval { months, days, nanoseconds }.length().div_euclid(1_000)
}

/// Checks a frame with distances of their final types. A function over a frame that never has rows
/// gets none. Returns whether the function changed.
///
/// # Errors
/// A distance is negative, or a range of days is not served in the time zone of the session.
pub(super) fn finish(function: &mut WindowFunction, schema: &DFSchema, options: &ConfigOptions) -> Result<bool> {
    let frame = &function.params.window_frame;
    for bound in [&frame.start_bound, &frame.end_bound] {
        let (WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance)) = bound else { continue };
        let ScalarValue::IntervalMonthDayNano(Some(parts)) = distance else { continue };
        if length_of(parts.months, parts.days, parts.nanoseconds) < 0 {
            return Err(negative_size());
        }
        let order = function.params.order_by.first().map(|sort| sort.expr.get_type(schema)).transpose()?;
        if let Some(DataType::Timestamp(_, Some(_))) = order
            && let Some(zone) = zone_of_changes(options)
        {
            let offset = constant_offset(&zone);
            let differs = parts.months != 0 && offset != Some(0) || parts.days != 0 && offset.is_none();
            if differs {
                let text = format!(
                    "RANGE with days or months over timestamptz is not served in the time zone {}: use hours, or order \
                     by a timestamp",
                    zone.name()
                );
                return Err(carried(parsing_error(text).with_sqlstate("0A000")));
            }
        }
    }
    let is_empty = match (&frame.start_bound, &frame.end_bound) {
        (WindowFrameBound::Preceding(start), WindowFrameBound::Preceding(end)) => {
            !start.is_null() && !end.is_null() && start < end
        }
        (WindowFrameBound::Following(start), WindowFrameBound::Following(end)) => {
            !start.is_null() && !end.is_null() && start > end
        }
        _ => false,
    };
    if !is_empty {
        return Ok(false);
    }
    let name = function.fun.name().to_owned();
    match &function.fun {
        WindowFunctionDefinition::AggregateUDF(_) => function.params.filter = Some(Box::new(lit(false))),
        WindowFunctionDefinition::WindowUDF(_) if !WITHOUT_FRAME.contains(&name.as_str()) => {
            if let Some(value) = function.params.args.first_mut() {
                *value = Expr::Literal(ScalarValue::try_from(&value.get_type(schema)?)?, None);
            }
        }
        WindowFunctionDefinition::WindowUDF(_) => {}
    }
    // All rows of the partition: a range is not served in an order of each type.
    function.params.window_frame = WindowFrame::new(None);
    Ok(true)
}

/// The offset of a time zone if it never changes, in seconds.
fn constant_offset(zone: &Zone) -> Option<i32> {
    match zone {
        Zone::Fixed { seconds, .. } => Some(*seconds),
        Zone::Named(_) => {
            let is_constant = zone.name().starts_with("Etc/")
                || ["GMT", "GMT+0", "GMT-0", "GMT0", "Greenwich", "UCT", "UTC", "Universal", "Zulu"]
                    .contains(&zone.name());
            is_constant.then(|| zone.offset_at(0))
        }
    }
}
