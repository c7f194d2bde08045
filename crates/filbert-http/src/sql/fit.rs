//! Converts JSON values to the type of a column: numbers to timestamps, lists to documents or times
//! of day.

use std::borrow::Cow;

use chrono::{DateTime, NaiveTime};
use filbert_data::{FieldType, Value};

use crate::answer;

/// Whether values of a type may need [`fit`].
pub(crate) fn may_need(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Timestamp | FieldType::TimestampTz | FieldType::Date | FieldType::Time | FieldType::Json => true,
        FieldType::Array(item) => may_need(item),
        _ => false,
    }
}

/// Whether the meaning of a value depends on the type of its column.
pub(crate) fn is_unclear(value: &Value<'_>) -> bool {
    matches!(value, Value::Int64(_) | Value::Float64(_) | Value::Array(_))
}

/// Converts a value to a type that JSON cannot represent. Returns `None` if the value stays
/// unchanged.
pub(crate) fn fit<'v>(value: &Value<'v>, field_type: &FieldType) -> Option<Value<'v>> {
    match (field_type, value) {
        (FieldType::Timestamp, value) => Some(Value::Timestamp(timestamp(value)?.naive_utc())),
        (FieldType::TimestampTz, value) => Some(Value::TimestampTz(timestamp(value)?.fixed_offset())),
        (FieldType::Date, value) => Some(Value::Date(timestamp(value)?.date_naive())),
        (FieldType::Time, Value::Array(parts)) => time(parts),
        (FieldType::Json, Value::Array(_)) => {
            let mut text = Vec::new();
            answer::write_value(&mut text, value);
            Some(Value::Json(Cow::Owned(String::from_utf8(text).ok()?)))
        }
        (FieldType::Array(item), Value::Array(items)) if may_need(item) => {
            Some(Value::Array(items.iter().map(|value| fit(value, item).unwrap_or_else(|| value.clone())).collect()))
        }
        _ => None,
    }
}

/// Reads milliseconds since 1970.
fn timestamp(value: &Value<'_>) -> Option<DateTime<chrono::Utc>> {
    match value {
        Value::Int64(milliseconds) => DateTime::from_timestamp_millis(*milliseconds),
        Value::Float64(milliseconds) if milliseconds.abs() < 1e18 => {
            DateTime::from_timestamp_micros((milliseconds * 1e3) as i64)
        }
        _ => None,
    }
}

/// Reads CrateDB's format of times of day: microseconds of the day, and an offset in seconds.
fn time(parts: &[Value<'_>]) -> Option<Value<'static>> {
    let [Value::Int64(microseconds), Value::Int64(_)] = parts else { return None };
    let seconds = u32::try_from(microseconds / 1_000_000).ok()?;
    let nanoseconds = u32::try_from(microseconds % 1_000_000 * 1_000).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanoseconds).map(Value::Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(value: Value<'_>, field_type: &FieldType) -> Option<String> {
        fit(&value, field_type).map(|value| value.to_string())
    }

    #[test]
    fn numbers_are_converted_to_timestamps_for_timestamp_columns() {
        let number = || Value::Int64(308_534_400_500);
        assert_eq!(fitted(number(), &FieldType::Timestamp).unwrap(), "1979-10-12T00:00:00.500");
        assert_eq!(fitted(number(), &FieldType::TimestampTz).unwrap(), "1979-10-12T00:00:00.500Z");
        assert_eq!(fitted(number(), &FieldType::Date).unwrap(), "1979-10-12");
        assert_eq!(fitted(number(), &FieldType::BigInt), None);
        assert_eq!(fitted(Value::Float64(1.5), &FieldType::Timestamp).unwrap(), "1970-01-01T00:00:00.001500");
        assert_eq!(fitted(Value::text("1979-10-12"), &FieldType::Timestamp), None);
        let times = FieldType::Array(Box::new(FieldType::Timestamp));
        assert_eq!(
            fitted(Value::Array(vec![number(), Value::Null]), &times).unwrap(),
            "[1979-10-12T00:00:00.500, null]"
        );
    }

    #[test]
    fn lists_are_converted_to_documents_and_times() {
        let list = || Value::Array(vec![Value::Int64(3_723_000_004), Value::Int64(0)]);
        assert_eq!(fitted(list(), &FieldType::Time).unwrap(), "01:02:03.000004");
        assert_eq!(fitted(list(), &FieldType::Json).unwrap(), "[3723000004,0]");
        assert_eq!(fitted(list(), &FieldType::Varchar), None);
    }
}
