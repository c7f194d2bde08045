//! The text form of values in all expectations, and the literals of parameters.
//!
//! | value | text |
//! |---|---|
//! | null | `NULL` |
//! | boolean | `true`, `false` |
//! | whole number | digits |
//! | decimal | plain digits without trailing zeros after the decimal point |
//! | real, double | shortest round-trip digits with a point or exponent; `NaN`, `Infinity`,
//! `-Infinity` |
//! | text, JSON | unchanged; the empty text is `(empty)` |
//! | date, time, timestamp | `2026-01-31`, `23:59:01.5`, `2026-01-31T23:59:01.5` |
//! | timestamp with time zone | `2026-01-31T23:59:01.5Z`, in UTC |
//! | UUID | with hyphens |
//! | array | `[item, item]` |
//! | object | `<object>` |

use filbert::{FieldType, Value};
use sqllogictest::ColumnType;

/// The type of a column, as one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) char);

impl Kind {
    /// The letter of a type. `?` in a file matches any type.
    pub(crate) fn of(field_type: Option<&FieldType>) -> Kind {
        Kind(match field_type {
            Some(FieldType::Boolean) => 'B',
            Some(FieldType::TinyInt) => 'Y',
            Some(FieldType::SmallInt) => 'S',
            Some(FieldType::Integer) => 'I',
            Some(FieldType::BigInt) => 'L',
            Some(FieldType::Decimal(_)) => 'N',
            Some(FieldType::Real) => 'F',
            Some(FieldType::Double) => 'R',
            Some(FieldType::Varchar | FieldType::Char) => 'T',
            Some(FieldType::Date) => 'D',
            Some(FieldType::Time) => 'M',
            Some(FieldType::Timestamp) => 'P',
            Some(FieldType::TimestampTz) => 'Z',
            Some(FieldType::Json) => 'J',
            // A UUID is an object in Hazelcast's protocol.
            Some(FieldType::Uuid | FieldType::Object | FieldType::Array(_)) => 'O',
            Some(FieldType::Binary) => 'X',
            Some(FieldType::Interval) => 'V',
            None => '?',
        })
    }

    /// Whether the column types match the expectation of a file. A column with only nulls matches
    /// any type.
    pub(crate) fn fits(actual: &[Kind], expected: &[Kind]) -> bool {
        let fits = |(actual, expected): (&Kind, &Kind)| actual == expected || actual.0 == '?' || expected.0 == '?';
        actual.len() == expected.len() && actual.iter().zip(expected).all(fits)
    }
}

impl ColumnType for Kind {
    fn from_char(value: char) -> Option<Self> {
        "BYSILNFRTDMPZJOXV?".contains(value).then_some(Kind(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

/// The text of a value.
pub(crate) fn text_of(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Int8(value) => value.to_string(),
        Value::Int16(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Float32(value) if value.is_infinite() => infinity(f64::from(*value)),
        Value::Float64(value) if value.is_infinite() => infinity(*value),
        Value::Float32(value) => format!("{value:?}"),
        Value::Float64(value) => format!("{value:?}"),
        Value::Decimal(value) => value.normalized().to_plain_string(),
        Value::Text(text) | Value::Json(text) if text.is_empty() => "(empty)".to_owned(),
        Value::Text(text) | Value::Json(text) => text.to_string(),
        Value::Date(value) => value.to_string(),
        Value::Time(value) => shortened(&value.format("%H:%M:%S%.9f").to_string()),
        Value::Timestamp(value) => shortened(&value.format("%Y-%m-%dT%H:%M:%S%.9f").to_string()),
        Value::TimestampTz(value) => shortened(&value.naive_utc().format("%Y-%m-%dT%H:%M:%S%.9f").to_string()) + "Z",
        Value::Uuid(value) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(text_of).collect::<Vec<_>>().join(", ")),
        Value::Bytes(_) | Value::Interval(_) => value.to_string(),
        Value::Object(_) => "<object>".to_owned(),
    }
}

fn infinity(value: f64) -> String {
    if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
}

/// Removes trailing zeros of the fraction of a time.
fn shortened(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Splits off the first line of a statement if it contains the values of its `?`: `-- with: 1,
/// 'text', NULL, 2.5, true`. Whole numbers are `BIGINT`. A type may follow a value, as in
/// `5::INTEGER` or `'2026-01-31'::DATE`.
pub(crate) fn with_parameters(statement: &str) -> (&str, Vec<Value<'static>>) {
    let Some((first, rest)) = statement.split_once('\n') else { return (statement, Vec::new()) };
    match first.strip_prefix("-- with:") {
        Some(values) => (rest, values.split(", ").map(|literal| parameter(literal.trim())).collect()),
        None => (statement, Vec::new()),
    }
}

fn parameter(literal: &str) -> Value<'static> {
    let (written, type_name) = literal.split_once("::").unwrap_or((literal, ""));
    let text = written.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).map(str::to_owned);
    match (type_name, text) {
        (_, None) if written == "NULL" => Value::Null,
        (_, None) if written == "true" || written == "false" => Value::Boolean(written == "true"),
        ("TINYINT", None) => Value::Int8(written.parse().unwrap()),
        ("SMALLINT", None) => Value::Int16(written.parse().unwrap()),
        ("INTEGER", None) => Value::Int32(written.parse().unwrap()),
        ("DECIMAL", None) => Value::Decimal(written.parse().unwrap()),
        ("REAL", None) => Value::Float32(written.parse().unwrap()),
        (_, None) if written.contains('.') => Value::Float64(written.parse().unwrap()),
        (_, None) => Value::Int64(written.parse().unwrap()),
        ("DATE", Some(text)) => Value::Date(text.parse().unwrap()),
        ("TIME", Some(text)) => Value::Time(text.parse().unwrap()),
        ("TIMESTAMP", Some(text)) => Value::Timestamp(text.parse().unwrap()),
        ("JSON", Some(text)) => Value::Json(text.into()),
        (_, Some(text)) => Value::Text(text.into()),
    }
}
