//! Functions that create and change dates, times and intervals.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Volatility};
use filbert_data::dates::{
    Civil, DAY_US, DateError, HOUR_US, MINUTE_US, SECOND_US, Zone, check_days, check_micros, days_in_month,
    days_of_civil, round_micros, round_timestamp, split_micros,
};
use filbert_data::{FieldType, Interval};

use super::super::super::row::{Function, is_integer, is_text, wrong_arguments};
use super::calculate::{
    add_to_timestamp, add_to_timestamptz, age, interval, justify_days, justify_hours, justify_interval, micros_of,
};
use super::casts::{converted, local};
use super::cells::{Cell, Kind, compute, compute_all};
use super::fields::zone_of_text;
use super::{refused, wrong, zone_of};
use crate::context::StatementContext;

macro_rules! function {
    ($constant:ident, $name:literal, $coerce:expr, $type:ident, $invoke:expr) => {
        static $constant: LazyLock<Arc<ScalarUDF>> =
            LazyLock::new(|| Arc::new(Function::udf($name, $coerce, |_| Ok(FieldType::$type), $invoke)));
    };
}

function!(MAKE_DATE, "make_date", wholes::<3>, Date, make_date);
function!(MAKE_TIME, "make_time", clock, Time, make_time);
function!(MAKE_TIMESTAMP, "make_timestamp", date_and_time_parts::<6>, Timestamp, make_timestamp);
function!(MAKE_TIMESTAMPTZ, "make_timestamptz", timestamp_in_zone, TimestampTz, make_timestamptz);
function!(MAKE_INTERVAL, "make_interval", parts, Interval, make_interval);
function!(JUSTIFY_DAYS, "justify_days", one_interval, Interval, |args| justify(args, justify_days));
function!(JUSTIFY_HOURS, "justify_hours", one_interval, Interval, |args| justify(args, justify_hours));
function!(JUSTIFY_INTERVAL, "justify_interval", one_interval, Interval, |args| justify(args, justify_interval));
function!(IS_FINITE, "isfinite", one_temporal, Boolean, |args| compute(args, |_| Ok(Cell::Boolean(true))));
function!(OVERLAPS, "overlaps", four, Boolean, overlaps);
static AGE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    // With one argument, the age today: a plan that is kept must not have its value.
    let returns = |_: &datafusion::logical_expr::ReturnFieldArgs<'_>| Ok(FieldType::Interval);
    Arc::new(Function::with_volatility("age", Volatility::Volatile, two_timestamps, returns, run_age))
});
static TIMEZONE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |args: &datafusion::logical_expr::ReturnFieldArgs<'_>| {
        let kind = args.arg_fields.get(1).map_or(Kind::Unknown, |field| Kind::of(field.data_type()));
        Ok(if kind == Kind::Timestamptz { FieldType::Timestamp } else { FieldType::TimestampTz })
    };
    Arc::new(Function::udf("timezone", in_zone, returns, timezone))
});
static ROUNDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |args: &datafusion::logical_expr::ReturnFieldArgs<'_>| {
        let kind = args.arg_fields.first().map_or(Kind::Unknown, |field| Kind::of(field.data_type()));
        Ok(super::operators::field_type(kind))
    };
    Arc::new(Function::udf("dates_rounded", rounded_arguments, returns, rounded))
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let all = [
        &MAKE_DATE,
        &MAKE_TIME,
        &MAKE_TIMESTAMP,
        &MAKE_TIMESTAMPTZ,
        &MAKE_INTERVAL,
        &JUSTIFY_DAYS,
        &JUSTIFY_HOURS,
        &JUSTIFY_INTERVAL,
        &IS_FINITE,
        &OVERLAPS,
        &AGE,
        &TIMEZONE,
        &ROUNDED,
    ];
    all.map(|function| Arc::clone(function)).to_vec()
}

fn field_out_of_range(text: String) -> DateError {
    DateError::Field { text }
}

fn numbers(name: &str, types: &[DataType], wholes: usize, floats: usize) -> Result<Vec<DataType>> {
    let is_number = |data_type: &DataType| data_type.is_numeric() || data_type.is_null();
    let fits = types.len() == wholes + floats
        && types.iter().take(wholes).all(is_integer)
        && types.iter().skip(wholes).all(is_number);
    if !fits {
        return Err(wrong_arguments(name, types));
    }
    let of = |at: usize| if at < wholes { DataType::Int64 } else { DataType::Float64 };
    Ok((0..types.len()).map(of).collect())
}

fn wholes<const COUNT: usize>(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    numbers(name, types, COUNT, 0)
}

fn clock(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    numbers(name, types, 2, 1)
}

fn date_and_time_parts<const COUNT: usize>(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    numbers(name, types, COUNT - 1, 1)
}

fn timestamp_in_zone(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types.split_last() {
        Some((zone, rest)) if types.len() == 7 && is_text(zone) => {
            let mut coerced = numbers(name, rest, 5, 1)?;
            coerced.push(DataType::Utf8View);
            Ok(coerced)
        }
        _ => numbers(name, types, 5, 1),
    }
}

fn parts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types.len() {
        0..=6 => numbers(name, types, types.len(), 0),
        _ => numbers(name, types, 6, 1),
    }
}

fn one_interval(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [one] if matches!(Kind::of(one), Kind::Interval | Kind::Time | Kind::Text | Kind::Unknown) => {
            Ok(vec![Kind::Interval.arrow()])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn one_temporal(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [one] if Kind::of(one).is_temporal() && Kind::of(one) != Kind::Time => Ok(vec![Kind::of(one).arrow()]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn two_timestamps(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |data_type: &DataType| {
        matches!(Kind::of(data_type), Kind::Date | Kind::Timestamp | Kind::Timestamptz | Kind::Text | Kind::Unknown)
    };
    if types.is_empty() || types.len() > 2 || !types.iter().all(fits) {
        return Err(wrong_arguments(name, types));
    }
    let is_local = types.iter().any(|data_type| Kind::of(data_type) == Kind::Timestamp)
        && types.iter().all(|data_type| Kind::of(data_type) != Kind::Timestamptz);
    let kind = if is_local { Kind::Timestamp } else { Kind::Timestamptz };
    Ok(vec![kind.arrow(); types.len()])
}

fn four(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let kind = |at: usize| types.get(at).map_or(Kind::Other, Kind::of);
    let is_taken = |data_type: &DataType| {
        let kind = Kind::of(data_type);
        kind.is_temporal() || matches!(kind, Kind::Text | Kind::Unknown)
    };
    if types.len() != 4 || !types.iter().all(is_taken) {
        return Err(wrong_arguments(name, types));
    }
    let known = types.iter().map(Kind::of).filter(|kind| kind.is_temporal() && *kind != Kind::Interval);
    let common = known.max_by_key(|kind| match kind {
        Kind::Timestamptz => 3,
        Kind::Timestamp => 2,
        Kind::Date => 1,
        _ => 0,
    });
    // Dates are compared as timestamps.
    let common = match common {
        Some(Kind::Date) => Kind::Timestamptz,
        Some(common) => common,
        None => return Err(wrong_arguments(name, types)),
    };
    let of = |at: usize| if kind(at) == Kind::Interval { Kind::Interval.arrow() } else { common.arrow() };
    Ok((0..4).map(of).collect())
}

fn in_zone(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [zone, of] = types else { return Err(wrong_arguments(name, types)) };
    let zone = match Kind::of(zone) {
        Kind::Text | Kind::Unknown => DataType::Utf8View,
        Kind::Interval => Kind::Interval.arrow(),
        _ => return Err(wrong_arguments(name, types)),
    };
    match Kind::of(of) {
        Kind::Timestamp => Ok(vec![zone, Kind::Timestamp.arrow()]),
        Kind::Timestamptz | Kind::Date | Kind::Text | Kind::Unknown => Ok(vec![zone, Kind::Timestamptz.arrow()]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn rounded_arguments(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [of, digits] if is_integer(digits) && Kind::of(of).is_temporal() => {
            Ok(vec![Kind::of(of).arrow(), DataType::Int64])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn days(year: i64, month: i64, day: i64) -> Result<i64, DateError> {
    let text = || field_out_of_range(format!("{year}-{month:02}-{day:02}"));
    let part = |value: i64| u32::try_from(value).unwrap_or(0);
    // A negative year is BC; there is no year 0.
    let astronomical = if year < 0 { year + 1 } else { year };
    let (month, day) = (part(month), part(day));
    let is_date = year != 0
        && year.abs() < 10_000_000
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(astronomical, month);
    if !is_date {
        return Err(text());
    }
    check_days(days_of_civil(Civil { year: astronomical, month, day })).map(i64::from)
}

fn time(hours: i64, minutes: i64, seconds: f64) -> Result<i64, DateError> {
    let text = || field_out_of_range(format!("{hours:02}:{minutes:02}:{seconds:02}"));
    if !(0..=24).contains(&hours) || !(0..60).contains(&minutes) || !(0.0..=60.0).contains(&seconds) {
        return Err(text());
    }
    let micros = hours * HOUR_US + minutes * MINUTE_US + (seconds * SECOND_US as f64).round_ties_even() as i64;
    if micros > DAY_US { Err(text()) } else { Ok(micros) }
}

fn make_date(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| match cells {
        [Cell::Integer(year), Cell::Integer(month), Cell::Integer(day)] => {
            days(*year, *month, *day).map(Cell::Date).map_err(|error| match error {
                DateError::Field { text } => refused(format!("date field value out of range: {text}"), "22008"),
                other => wrong(&other),
            })
        }
        _ => Ok(Cell::Null),
    })
}

fn make_time(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| match cells {
        [Cell::Integer(hours), Cell::Integer(minutes), Cell::Number(seconds)] => {
            match time(*hours, *minutes, *seconds) {
                Ok(DAY_US) => Err(refused("a time of 24:00:00 is not served: a day ends at 23:59:59.999999", "0A000")),
                Ok(micros) => Ok(Cell::Time(micros)),
                Err(DateError::Field { text }) => {
                    Err(refused(format!("time field value out of range: {text}"), "22008"))
                }
                Err(other) => Err(wrong(&other)),
            }
        }
        _ => Ok(Cell::Null),
    })
}

fn local_of(cells: &[Cell]) -> Result<Option<i64>> {
    let [
        Cell::Integer(year),
        Cell::Integer(month),
        Cell::Integer(day),
        Cell::Integer(hours),
        Cell::Integer(minutes),
        Cell::Number(seconds),
        ..,
    ] = cells
    else {
        return Ok(None);
    };
    let named = |error: DateError, what: &str| match error {
        DateError::Field { text } => refused(format!("{what} field value out of range: {text}"), "22008"),
        other => wrong(&other),
    };
    let days = days(*year, *month, *day).map_err(|error| named(error, "date"))?;
    let time = time(*hours, *minutes, *seconds).map_err(|error| named(error, "time"))?;
    check_micros(i128::from(days) * i128::from(DAY_US) + i128::from(time)).map(Some).map_err(|error| wrong(&error))
}

fn make_timestamp(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| Ok(local_of(cells)?.map_or(Cell::Null, Cell::Timestamp)))
}

fn make_timestamptz(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let session_zone = zone_of(&args.config_options);
    compute(args, |cells| {
        let Some(local) = local_of(cells)? else { return Ok(Cell::Null) };
        let given = match cells.get(6) {
            // Here a positive offset is east of Greenwich.
            Some(Cell::Text(zone)) if zone.starts_with(['+', '-']) => {
                let zone = zone.replacen('+', "UTC-", 1);
                let zone = if zone.starts_with('-') { zone.replacen('-', "UTC+", 1) } else { zone };
                Some(zone_of_text(&zone)?)
            }
            Some(Cell::Text(zone)) => Some(zone_of_text(zone)?),
            _ => None,
        };
        let utc = given.as_ref().unwrap_or(&session_zone).to_utc(local);
        check_micros(utc).map(Cell::Timestamptz).map_err(|error| wrong(&error))
    })
}

fn make_interval(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.args.is_empty() {
        return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::IntervalMonthDayNano(Some(
            Default::default(),
        ))));
    }
    compute(args, |cells| {
        let whole = |at: usize| match cells.get(at) {
            Some(Cell::Integer(value)) => i128::from(*value),
            _ => 0,
        };
        let seconds = match cells.get(6) {
            Some(Cell::Number(seconds)) if seconds.is_finite() => (seconds * 1e6).round_ties_even() as i128,
            Some(Cell::Number(_)) => return Err(wrong(&DateError::Overflow { kind: "interval" })),
            _ => 0,
        };
        let months = i64::try_from(whole(0) * 12 + whole(1)).unwrap_or(i64::MAX);
        let days = i64::try_from(whole(2) * 7 + whole(3)).unwrap_or(i64::MAX);
        let micros = whole(4) * i128::from(HOUR_US) + whole(5) * i128::from(MINUTE_US) + seconds;
        interval(months, days, micros).map(Cell::Interval).map_err(|error| wrong(&error))
    })
}

fn justify(args: &ScalarFunctionArgs, by: fn(&Interval) -> Result<Interval, DateError>) -> Result<ColumnarValue> {
    compute(args, |cells| match cells {
        [Cell::Interval(span)] => by(span).map(Cell::Interval).map_err(|error| wrong(&error)),
        _ => Ok(Cell::Null),
    })
}

fn run_age(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    let now = StatementContext::of(&args.config_options).map_or_else(chrono::Utc::now, StatementContext::now);
    compute(args, |cells| {
        let of = |cell: &Cell| local(cell, &zone).map(|local| local.unwrap_or(0));
        let span = match cells {
            [one, other] => of(one).and_then(|one| age(one, of(other)?)),
            [one] => of(&Cell::Timestamptz(now.timestamp_micros()))
                .and_then(|now| age(split_micros(now).0 * DAY_US, of(one)?)),
            _ => return Ok(Cell::Null),
        };
        span.map(Cell::Interval).map_err(|error| wrong(&error))
    })
}

fn timezone(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| {
        let [zone, of] = cells else { return Ok(Cell::Null) };
        let zone = match zone {
            Cell::Text(name) => zone_of_text(name)?,
            Cell::Interval(span) if span.months != 0 || span.days != 0 => {
                return Err(refused("interval time zone must not include months or days", "22023"));
            }
            Cell::Interval(span) => Zone::of_seconds(micros_of(span) / SECOND_US)
                .ok_or_else(|| wrong(&DateError::Overflow { kind: "time zone displacement" }))?,
            _ => return Ok(Cell::Null),
        };
        let to = if matches!(of, Cell::Timestamptz(_)) { Kind::Timestamp } else { Kind::Timestamptz };
        converted(of, to, &zone).map_err(|error| wrong(&error))
    })
}

fn overlaps(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    compute_all(args, false, |cells| {
        let [start, end, other_start, other_end] = cells else { return Ok(Cell::Null) };
        let ends = |start: &Cell, end: &Cell| match (start, end) {
            (Cell::Timestamp(start), Cell::Interval(span)) => add_to_timestamp(*start, span).map(Some),
            (Cell::Timestamptz(start), Cell::Interval(span)) => add_to_timestamptz(*start, span, &zone).map(Some),
            (Cell::Time(start), Cell::Interval(span)) => Ok(Some((start + micros_of(span)).rem_euclid(DAY_US))),
            _ => Ok(number(end)),
        };
        let one = (number(start), ends(start, end).map_err(|error| wrong(&error))?);
        let other = (number(other_start), ends(other_start, other_end).map_err(|error| wrong(&error))?);
        Ok(overlap(ordered(one), ordered(other)).map_or(Cell::Null, Cell::Boolean))
    })
}

fn number(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Time(value) | Cell::Timestamp(value) | Cell::Timestamptz(value) => Some(*value),
        _ => None,
    }
}

type Span = (Option<i64>, Option<i64>);

/// The earlier end first; a null becomes the second end.
fn ordered(span: Span) -> Span {
    match span {
        (None, end) => (end, None),
        (Some(start), Some(end)) if start > end => (Some(end), Some(start)),
        span => span,
    }
}

/// Whether two spans overlap, as far as their ends are known. A span without length is its start.
fn overlap(one: Span, other: Span) -> Option<bool> {
    let (start, other_start) = (one.0?, other.0?);
    let ((early_end, late_start), is_same) = match start.cmp(&other_start) {
        std::cmp::Ordering::Less => ((one.1, other_start), false),
        std::cmp::Ordering::Greater => ((other.1, start), false),
        std::cmp::Ordering::Equal => ((None, start), true),
    };
    if is_same {
        return if one.1.is_none() || other.1.is_none() { None } else { Some(true) };
    }
    let ends = early_end?;
    if late_start < ends {
        return Some(true);
    }
    // If the end of the later span is unknown, the spans may overlap.
    let late_end = if start < other_start { other.1 } else { one.1 };
    late_end.map(|_| false)
}

/// Rounds a value to fewer fractional digits of its seconds.
fn rounded(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| {
        let [of, Cell::Integer(digits)] = cells else { return Ok(Cell::Null) };
        let digits = u32::try_from(*digits).unwrap_or(6).min(6);
        let plain = |micros: i64| round_micros(micros, digits);
        let round = |micros: i64| round_timestamp(micros, digits);
        Ok(match of {
            _ if digits == 6 => of.clone(),
            Cell::Timestamp(micros) => Cell::Timestamp(round(*micros)),
            Cell::Timestamptz(micros) => Cell::Timestamptz(round(*micros)),
            Cell::Time(micros) => match plain(*micros) {
                DAY_US.. => {
                    return Err(refused("a time of 24:00:00 is not served: a day ends at 23:59:59.999999", "0A000"));
                }
                micros => Cell::Time(micros),
            },
            Cell::Interval(span) => {
                let span = interval(span.months.into(), span.days.into(), plain(micros_of(span)).into());
                Cell::Interval(span.map_err(|error| wrong(&error))?)
            }
            other => other.clone(),
        })
    })
}
