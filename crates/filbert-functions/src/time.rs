//! Functions on dates and times.

use arrow_schema::{DataType, TimeUnit};
use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::{FieldType, Value};

use super::row::{Function, Texts, collect, collect_texts, failed, is_integer, is_text, wrong_arguments};
use crate::error::{carried, parsing_error};
use crate::types::{field_type_of, value_of};

/// The milliseconds of a 365-day year. They decide whether a number counts seconds or a smaller
/// unit.
const YEAR_MS: i64 = 31_536_000_000;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("extract_field", coerce_extract, returns_extracted, extract),
        Function::udf("to_timestamp_tz", coerce_number, |_| Ok(FieldType::TimestampTz), to_timestamp_tz),
        Function::udf("to_epoch_millis", coerce_timestamp, |_| Ok(FieldType::BigInt), to_epoch_millis),
        Function::udf("to_char", coerce_to_char, |_| Ok(FieldType::Varchar), to_char),
    ]
}

fn is_temporal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Null
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
    )
}

fn micros(zone: bool) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.then(|| "UTC".into()))
}

/// One unit for each kind.
fn temporal(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(_, zone) => micros(zone.is_some()),
        other => other.clone(),
    }
}

fn coerce_extract(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [field, timestamp] if is_text(field) && is_temporal(timestamp) => {
            Ok(vec![DataType::Utf8View, temporal(timestamp)])
        }
        // Rejected by [`returns_extracted`]: DataFusion discards an error from here.
        [_, _] => Ok(types.to_vec()),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn returns_extracted(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    match args.arg_fields {
        [_, timestamp] if !is_temporal(timestamp.data_type()) => {
            let name = crate::types::field_type_of_arrow(timestamp.data_type());
            Err(carried(parsing_error(format!("Cannot extract field from {name}")).with_sqlstate("42883")))
        }
        _ => Ok(FieldType::Double),
    }
}

fn coerce_number(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if is_integer(number) => Ok(vec![DataType::Int64]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_timestamp(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Null] => Ok(vec![micros(true)]),
        [text] if is_text(text) => Ok(vec![micros(true)]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_to_char(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [value, format] if is_text(format) && (is_temporal(value) || value.is_numeric()) => {
            Ok(vec![temporal(value), DataType::Utf8View])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn value(args: &ScalarFunctionArgs, at: usize, row: usize) -> Result<Value<'static>> {
    let scalar = match args.args.get(at) {
        Some(ColumnarValue::Scalar(scalar)) => scalar.clone(),
        Some(ColumnarValue::Array(rows)) => ScalarValue::try_from_array(rows, row)?,
        None => ScalarValue::Null,
    };
    let field_type = args.arg_fields.get(at).map_or(FieldType::Object, |field| field_type_of(field));
    Ok(value_of(&scalar, &field_type))
}

/// The date and time of a value; `None` for other types.
fn date_and_time(value: &Value<'_>) -> Option<(Option<NaiveDate>, NaiveTime)> {
    Some(match value {
        Value::Date(date) => (Some(*date), NaiveTime::MIN),
        Value::Time(time) => (None, *time),
        Value::Timestamp(timestamp) => (Some(timestamp.date()), timestamp.time()),
        Value::TimestampTz(timestamp) => (Some(timestamp.naive_local().date()), timestamp.naive_local().time()),
        _ => return None,
    })
}

fn extract(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let fields = Texts::of(args, 0)?;
    collect(args, |row| {
        let value = value(args, 1, row)?;
        let (Some(field), Some((date, time))) = (fields.get(row), date_and_time(&value)) else {
            return Ok(ScalarValue::Float64(None));
        };
        field_of(field, date, time).map(|number| ScalarValue::Float64(Some(number)))
    })
}

fn field_of(field: &str, date: Option<NaiveDate>, time: NaiveTime) -> Result<f64> {
    let seconds = f64::from(time.second());
    let micros = f64::from(time.nanosecond() / 1_000 % 1_000_000);
    let fraction = f64::from(time.nanosecond() % 1_000_000_000) / 1e9;
    match field {
        "EPOCH" if date.is_none() => return Ok(f64::from(time.num_seconds_from_midnight()) + fraction),
        "HOUR" | "HOURS" => return Ok(f64::from(time.hour())),
        "MINUTE" | "MINUTES" => return Ok(f64::from(time.minute())),
        "SECOND" | "SECONDS" => return Ok(seconds),
        "MILLISECOND" | "MILLISECONDS" => return Ok(seconds * 1e3 + (micros / 1e3).floor()),
        "MICROSECOND" | "MICROSECONDS" => return Ok(seconds * 1e6 + micros),
        "NANOSECOND" | "NANOSECONDS" => return Ok(seconds * 1e9 + f64::from(time.nanosecond() % 1_000_000_000)),
        _ => {}
    }
    let of_date = |date: NaiveDate| {
        let year = date.year();
        Some(match field {
            "MILLENNIUM" => f64::from((year - 1).div_euclid(1000) + 1),
            "CENTURY" => f64::from((year - 1).div_euclid(100) + 1),
            "DECADE" => f64::from(year.div_euclid(10)),
            "YEAR" | "YEARS" => f64::from(year),
            "ISOYEAR" => f64::from(date.iso_week().year()),
            "QUARTER" => f64::from(date.month0() / 3 + 1),
            "MONTH" | "MONTHS" => f64::from(date.month()),
            "WEEK" | "WEEKS" => f64::from(date.iso_week().week()),
            "DOW" | "DAYOFWEEK" => f64::from(date.weekday().num_days_from_sunday()),
            "ISODOW" => f64::from(date.weekday().number_from_monday()),
            "DAY" | "DAYS" => f64::from(date.day()),
            "DOY" | "DAYOFYEAR" => f64::from(date.ordinal()),
            // As in Hazelcast, the fraction is added to the whole seconds before.
            "EPOCH" => date.and_time(time).and_utc().timestamp() as f64 + fraction,
            _ => return None,
        })
    };
    match date {
        Some(date) => of_date(date).ok_or_else(|| failed(format!("there is no field {field} to extract"))),
        None => Err(failed(format!("Cannot extract {field} from TIME"))),
    }
}

/// A number of seconds, milliseconds, microseconds or nanoseconds; its size decides which.
fn to_timestamp_tz(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    collect(args, |row| {
        let Value::Int64(number) = value(args, 0, row)? else {
            return ScalarValue::try_from(&micros(true));
        };
        let micros = if number < YEAR_MS {
            number.checked_mul(1_000_000)
        } else if number < YEAR_MS * 1_000 {
            number.checked_mul(1_000)
        } else if number < YEAR_MS * 1_000_000 {
            Some(number)
        } else {
            Some(number / 1_000)
        };
        match micros {
            Some(_) => Ok(ScalarValue::TimestampMicrosecond(micros, Some("UTC".into()))),
            None => Err(failed(format!("{number} is beyond the range of TIMESTAMP WITH TIME ZONE"))),
        }
    })
}

fn to_epoch_millis(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    collect(args, |row| {
        Ok(ScalarValue::Int64(match value(args, 0, row)? {
            Value::TimestampTz(timestamp) => Some(timestamp.timestamp_millis()),
            _ => None,
        }))
    })
}

/// Formats numbers by PostgreSQL's number patterns.
pub(super) fn numbers_to_char(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let pictures = Texts::of(args, 1)?;
    collect_texts(args, |row| match pictures.get(row) {
        Some(picture) => super::numbers::to_char(&value(args, 0, row)?, picture),
        None => Ok(None),
    })
}

fn to_char(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let formats = Texts::of(args, 1)?;
    collect_texts(args, |row| {
        let value = value(args, 0, row)?;
        let Some(format) = formats.get(row) else { return Ok(None) };
        if value.is_null() {
            return Ok(None);
        }
        if let Some((date, time)) = date_and_time(&value) {
            let date = date.unwrap_or_default();
            return Ok(Some(format_timestamp(date.and_time(time), format)));
        }
        match value.convert(&FieldType::Decimal(None)) {
            Ok(Value::Decimal(number)) => super::math::format_number(&number, format).map(Some),
            _ => Err(failed("TO_CHAR takes dates, times and numbers")),
        }
    })
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The patterns of PostgreSQL's `to_char`; among those with the same first character the longest
/// comes first.
const PATTERNS: [&str; 36] = [
    "HH24", "HH12", "HH", "MI", "MS", "MM", "MONTH", "Month", "month", "MON", "Mon", "mon", "SS", "US", "YYYY", "YYY",
    "YY", "Y", "IYYY", "IW", "IDDD", "ID", "DDD", "DD", "DAY", "Day", "day", "DY", "Dy", "dy", "D", "WW", "W", "Q",
    "CC", "AM",
];

fn format_timestamp(timestamp: NaiveDateTime, format: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    // Names are padded to nine characters, and numbers to their digits, except after FM.
    let mut fill = true;
    'next: while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            out.push_str(text);
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("FM") {
            (fill, rest) = (false, after);
            continue;
        }
        for (pattern, upper) in [("PM", true), ("pm", false), ("am", false)] {
            if let Some(after) = rest.strip_prefix(pattern) {
                let half = if timestamp.hour() < 12 { "AM" } else { "PM" };
                out.push_str(&if upper { half.to_owned() } else { half.to_lowercase() });
                rest = after;
                continue 'next;
            }
        }
        for pattern in PATTERNS {
            if let Some(after) = rest.strip_prefix(pattern) {
                push_pattern(timestamp, pattern, fill, &mut out);
                (fill, rest) = (true, after);
                continue 'next;
            }
        }
        out.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}

fn push_pattern(timestamp: NaiveDateTime, pattern: &str, fill: bool, out: &mut String) {
    let number = |number: i64, width: usize| if fill { format!("{number:0width$}") } else { number.to_string() };
    let of = |number: u32, width: usize| self::number_text(number, width, fill);
    let name = |names: &[&str], at: u32, length: usize| {
        let name = names.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or_default();
        let name: String = name.chars().take(length).collect();
        let name = match pattern.chars().nth(1) {
            Some(second) if second.is_uppercase() => name.to_uppercase(),
            _ if pattern.starts_with(char::is_lowercase) => name.to_lowercase(),
            _ => name,
        };
        if fill && length > 3 { format!("{name:<9}") } else { name }
    };
    let hour12 = (timestamp.hour() + 11) % 12 + 1;
    let weekday = timestamp.weekday();
    out.push_str(&match pattern {
        "HH24" => of(timestamp.hour(), 2),
        "HH12" | "HH" => of(hour12, 2),
        "MI" => of(timestamp.minute(), 2),
        "SS" => of(timestamp.second(), 2),
        "MS" => of(timestamp.nanosecond() / 1_000_000 % 1_000, 3),
        "US" => of(timestamp.nanosecond() / 1_000 % 1_000_000, 6),
        "MM" => of(timestamp.month(), 2),
        "MONTH" | "Month" | "month" => name(&MONTHS, timestamp.month0(), 9),
        "MON" | "Mon" | "mon" => name(&MONTHS, timestamp.month0(), 3),
        "YYYY" => number(i64::from(timestamp.year()), 4),
        "YYY" => number(i64::from(timestamp.year().rem_euclid(1000)), 3),
        "YY" => number(i64::from(timestamp.year().rem_euclid(100)), 2),
        "Y" => number(i64::from(timestamp.year().rem_euclid(10)), 1),
        "IYYY" => number(i64::from(timestamp.iso_week().year()), 4),
        "IW" => of(timestamp.iso_week().week(), 2),
        "IDDD" => of((timestamp.iso_week().week() - 1) * 7 + weekday.number_from_monday(), 3),
        "ID" => of(weekday.number_from_monday(), 1),
        "DDD" => of(timestamp.ordinal(), 3),
        "DD" => of(timestamp.day(), 2),
        "DAY" | "Day" | "day" => name(&DAYS, weekday.num_days_from_sunday(), 9),
        "DY" | "Dy" | "dy" => name(&DAYS, weekday.num_days_from_sunday(), 3),
        "D" => of(weekday.number_from_sunday(), 1),
        "WW" => of(timestamp.ordinal0() / 7 + 1, 2),
        "W" => of(timestamp.day0() / 7 + 1, 1),
        "Q" => of(timestamp.month0() / 3 + 1, 1),
        "CC" => number(i64::from((timestamp.year() - 1).div_euclid(100) + 1), 2),
        _ => {
            if timestamp.hour() < 12 {
                "AM".to_owned()
            } else {
                "PM".to_owned()
            }
        }
    });
}

fn number_text(number: u32, width: usize, fill: bool) -> String {
    if fill { format!("{number:0width$}") } else { number.to_string() }
}
