//! Values as JSON: timestamps in milliseconds since 1970, times of day in microseconds with their
//! offset, JSON documents unchanged.

use std::io::Write;

use chrono::{NaiveDate, Timelike};
use filbert_data::{Interval, Value};
use serde::de::IgnoredAny;

const NULL: &[u8] = b"null";

/// Appends a value.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.extend_from_slice(NULL),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int8(number) => json(out, number),
        Value::Int16(number) => json(out, number),
        Value::Int32(number) => json(out, number),
        Value::Int64(number) => json(out, number),
        Value::Float32(number) if number.is_finite() => json(out, number),
        Value::Float64(number) if number.is_finite() => json(out, number),
        // JSON has no such numbers. CrateDB also writes them as texts.
        Value::Float32(_) | Value::Float64(_) => display_text(out, value),
        // Java's text format of decimals is valid JSON.
        Value::Decimal(_) => display(out, value),
        Value::Text(text) => write_text(out, text),
        Value::Date(date) => json(out, &milliseconds(*date)),
        Value::Time(time) => {
            let microseconds =
                i64::from(time.num_seconds_from_midnight()) * 1_000_000 + i64::from(time.nanosecond() / 1_000);
            // The second item is the offset in seconds: times without an offset are UTC.
            json(out, &(microseconds, 0));
        }
        Value::Timestamp(timestamp) => json(out, &timestamp.and_utc().timestamp_millis()),
        Value::TimestampTz(timestamp) => json(out, &timestamp.timestamp_millis()),
        Value::Uuid(_) => display_text(out, value),
        Value::Json(text) => write_document(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        // The same format as in requests: hexadecimal digits after `\x`.
        Value::Bytes(_) => display_text(out, value),
        Value::Interval(interval) => write_text(out, &interval_text(interval)),
        Value::Object(_) => display_text(out, value),
    }
}

/// Appends a text in quotes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    json(out, text);
}

fn json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // No failure is possible here: there are no maps, and writing into memory does not fail.
        out.truncate(start);
        out.extend_from_slice(NULL);
    }
}

fn display(out: &mut Vec<u8>, value: &Value<'_>) {
    // Writing into memory does not fail.
    let _ = write!(out, "{value}");
}

fn display_text(out: &mut Vec<u8>, value: &Value<'_>) {
    write_text(out, &value.to_string());
}

/// Appends a JSON document unchanged. Clients of maps may have stored invalid JSON, which is
/// written as a text.
fn write_document(out: &mut Vec<u8>, text: &str) {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => out.extend_from_slice(text.as_bytes()),
        Err(_) => write_text(out, text),
    }
}

fn milliseconds(date: NaiveDate) -> i64 {
    date.signed_duration_since(NaiveDate::default()).num_milliseconds()
}

/// An interval in the text format of CrateDB and PostgreSQL: `1 year 2 mons 3 days 04:05:06.5`.
fn interval_text(interval: &Interval) -> String {
    let mut out = String::new();
    filbert_data::dates::write_interval(interval, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use chrono::{DateTime, NaiveTime};
    use filbert_data::FieldType;

    use super::*;

    fn check(value: Value<'_>, expected: &str) {
        let mut out = Vec::new();
        write_value(&mut out, &value);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{value:?}");
    }

    #[test]
    fn values_are_written_as_crate_db_does() {
        check(Value::Int64(i64::MIN), "-9223372036854775808");
        check(Value::Float64(1.5), "1.5");
        check(Value::Float64(3.0), "3.0");
        check(Value::Float32(0.1), "0.1");
        check(Value::Float64(f64::NAN), "\"NaN\"");
        check(Value::Float64(f64::NEG_INFINITY), "\"-Infinity\"");
        check(Value::text("1e100").convert(&FieldType::Decimal(None)).unwrap(), "1E+100");
        check(Value::text("12.50").convert(&FieldType::Decimal(None)).unwrap(), "12.50");
        check(Value::text("a\"b\u{1}\n"), r#""a\"b\u0001\n""#);
        check(Value::Date(NaiveDate::from_ymd_opt(1979, 10, 12).unwrap()), "308534400000");
        check(Value::Time(NaiveTime::from_hms_micro_opt(1, 2, 3, 4).unwrap()), "[3723000004,0]");
        check(Value::Timestamp(DateTime::from_timestamp_millis(-1).unwrap().naive_utc()), "-1");
        check(Value::TimestampTz(DateTime::from_timestamp_millis(1_500).unwrap().into()), "1500");
        check(Value::Json(Cow::Borrowed(r#"{"a": [1, 2]}"#)), r#"{"a": [1, 2]}"#);
        check(Value::Json(Cow::Borrowed(r#"{"a": "#)), r#""{\"a\": ""#);
        check(Value::Array(vec![Value::Null, Value::Boolean(true), Value::Array(vec![])]), "[null,true,[]]");
        check(Value::Bytes(Cow::Borrowed(&[0, 255])), r#""\\x00ff""#);
        check(Value::Interval("P1Y2M3DT4H5M6.5S".parse().unwrap()), "\"1 year 2 mons 3 days 04:05:06.5\"");
        check(Value::Interval("-00:00:00.25".parse().unwrap()), "\"-00:00:00.25\"");
    }
}
