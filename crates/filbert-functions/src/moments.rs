//! Dates, times and intervals of values and of literals: texts are parsed as in PostgreSQL, and
//! timestamps use the session's time zone.

use chrono::{DateTime, Timelike};
use datafusion::common::config::ConfigOptions;
use filbert_data::dates::{
    DAY_US, DateError, Zone, check_micros, read_date, read_interval, read_time, read_timestamp, read_timestamptz,
};
use filbert_data::{FieldType, Interval, Value};
use filbert_grid::query::{Dialect, SqlError};

use crate::context::StatementContext;
use crate::error::data_error;
use crate::types::{date_of, days_of};

/// The time zone of written values, if dates follow PostgreSQL's dialect.
pub fn zone_of_changes(options: &ConfigOptions) -> Option<Zone> {
    let context = StatementContext::of(options)?;
    (context.dialect() == Some(Dialect::Postgres)).then(|| context.zone())
}

/// Whether a value may become a date, a time or an interval.
#[inline]
pub fn may_be_timestamp(value: &Value<'_>) -> bool {
    use Value::{Date, Interval, Text, Time, Timestamp, TimestampTz};
    matches!(value, Text(_) | Date(_) | Time(_) | Timestamp(_) | TimestampTz(_) | Interval(_))
}

/// Converts a value to a column's type, if that is a date, a time or an interval.
///
/// # Errors
/// The value does not fit the type, or is out of range.
pub fn timestamp_of_column<'v>(value: Value<'v>, field_type: &FieldType, zone: &Zone) -> Result<Value<'v>, SqlError> {
    let converted = match &value {
        Value::Text(text) => of_text(text, field_type, zone),
        Value::Timestamp(local) if *field_type == FieldType::TimestampTz => {
            check_micros(zone.to_utc(local.and_utc().timestamp_micros())).map(timestamptz)
        }
        Value::Date(date) if *field_type == FieldType::TimestampTz => {
            check_micros(zone.to_utc(i64::from(days_of(*date)) * DAY_US)).map(timestamptz)
        }
        Value::TimestampTz(utc) if matches!(field_type, FieldType::Timestamp | FieldType::Date | FieldType::Time) => {
            let local = check_micros(zone.to_local(utc.timestamp_micros()));
            local.map(|local| {
                let local = DateTime::from_timestamp_micros(local).map(|local| local.naive_utc());
                match field_type {
                    FieldType::Date => local.map(|local| Value::Date(local.date())),
                    FieldType::Time => local.map(|local| Value::Time(local.time())),
                    _ => local.map(Value::Timestamp),
                }
            })
        }
        Value::Timestamp(local) if *field_type == FieldType::Date => Ok(Some(Value::Date(local.date()))),
        Value::Timestamp(local) if *field_type == FieldType::Time => Ok(Some(Value::Time(local.time()))),
        Value::Time(time) if *field_type == FieldType::Interval => {
            let seconds = i64::from(time.num_seconds_from_midnight());
            let nanoseconds = seconds * 1_000_000_000 + i64::from(time.nanosecond());
            Ok(Some(Value::Interval(Interval { months: 0, days: 0, nanoseconds })))
        }
        Value::Interval(span) if *field_type == FieldType::Time => {
            let micros = (span.nanoseconds / 1_000).rem_euclid(DAY_US);
            Ok(DateTime::from_timestamp_micros(micros).map(|timestamp| Value::Time(timestamp.time())))
        }
        _ => Ok(None),
    };
    match converted {
        Ok(Some(converted)) => Ok(converted),
        Ok(None) => Ok(value),
        Err(error) => Err(data_error(error.to_string()).with_sqlstate(error.sqlstate())),
    }
}

fn timestamptz(micros: i64) -> Option<Value<'static>> {
    DateTime::from_timestamp_micros(micros).map(|timestamp| Value::TimestampTz(timestamp.fixed_offset()))
}

fn of_text(text: &str, field_type: &FieldType, zone: &Zone) -> Result<Option<Value<'static>>, DateError> {
    Ok(match field_type {
        FieldType::Date => date_of(read_date(text)?).map(Value::Date),
        FieldType::Time => {
            let micros = read_time(text)?;
            DateTime::from_timestamp_micros(micros).map(|timestamp| Value::Time(timestamp.time()))
        }
        FieldType::Timestamp => DateTime::from_timestamp_micros(read_timestamp(text)?)
            .map(|timestamp| Value::Timestamp(timestamp.naive_utc())),
        FieldType::TimestampTz => timestamptz(read_timestamptz(text, zone)?),
        FieldType::Interval => Some(Value::Interval(read_interval(text)?)),
        _ => None,
    })
}
