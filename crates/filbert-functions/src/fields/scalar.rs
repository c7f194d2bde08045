//! Values with a type that is known only from the value, and their comparison.
//!
//! Kinds are ordered as in PostgreSQL's `jsonb`: texts, numbers, booleans, arrays, objects.

use std::borrow::Cow;
use std::cmp::Ordering;

use bigdecimal::{BigDecimal, ToPrimitive};
use filbert_data::{FieldType, Value};

use super::super::json::{Kind, Node};

/// A number; whole numbers are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Double(f64),
}

impl Number {
    /// Parses a text in JSON's number grammar.
    pub(super) fn parse(text: &str) -> Option<Number> {
        let text = text.trim();
        // Rust also parses `inf` and `nan`.
        if !text.bytes().next_back()?.is_ascii_digit() {
            return None;
        }
        if let Ok(whole) = text.parse() {
            return Some(Number::Whole(whole));
        }
        text.parse().ok().filter(|number: &f64| number.is_finite()).map(Number::Double)
    }

    pub(super) fn of_decimal(decimal: &BigDecimal) -> Number {
        let whole = decimal.is_integer().then(|| decimal.to_i128()).flatten();
        whole.map_or_else(|| Number::Double(decimal.to_f64().unwrap_or(f64::NAN)), Number::Whole)
    }

    pub(super) fn to_f64(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Double(double) => double,
        }
    }

    /// The nearest double, and the remainder of a whole number. Numbers sort by these parts.
    fn parts(self) -> (f64, i128) {
        match self {
            // Removes the sign of zero.
            Number::Double(double) => (double + 0.0, 0),
            Number::Whole(whole) => {
                let nearest = whole as f64;
                (nearest, whole.saturating_sub(nearest as i128))
            }
        }
    }

    fn compare(self, other: Number) -> Ordering {
        let ((left, left_rest), (right, right_rest)) = (self.parts(), other.parts());
        left.total_cmp(&right).then(left_rest.cmp(&right_rest))
    }

    /// The JSON form.
    pub(super) fn text(self) -> String {
        match self {
            Number::Whole(whole) => whole.to_string(),
            Number::Double(double) => Value::Float64(double).to_string(),
        }
    }
}

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'v> {
    Null,
    Boolean(bool),
    Number(Number),
    Text(Cow<'v, str>),
    /// A timestamp in microseconds since 1970.
    Timestamp(i64),
    /// An array or an object, as JSON.
    Document(Cow<'v, str>),
}

impl<'v> Scalar<'v> {
    /// The value of a document; a text that is no document is a plain text.
    pub(super) fn of_json(text: &'v str) -> Scalar<'v> {
        let Ok(node) = Node::parse(text) else { return Scalar::Text(Cow::Borrowed(text)) };
        match node.kind() {
            Kind::Null => Scalar::Null,
            Kind::Boolean => Scalar::Boolean(node.text() == "true"),
            Kind::Number => match Number::parse(node.text()) {
                Some(number) => Scalar::Number(number),
                None => Scalar::Text(Cow::Borrowed(node.text())),
            },
            Kind::Text => Scalar::Text(node.plain()),
            Kind::Array | Kind::Object => Scalar::Document(Cow::Borrowed(node.text())),
        }
    }

    /// A value of a type of SQL.
    pub(super) fn of_value(value: Value<'v>) -> Scalar<'v> {
        match value {
            Value::Null => Scalar::Null,
            Value::Boolean(truth) => Scalar::Boolean(truth),
            Value::Int8(number) => Scalar::Number(Number::Whole(number.into())),
            Value::Int16(number) => Scalar::Number(Number::Whole(number.into())),
            Value::Int32(number) => Scalar::Number(Number::Whole(number.into())),
            Value::Int64(number) => Scalar::Number(Number::Whole(number.into())),
            // The number in its displayed form, not the nearest double.
            Value::Float32(number) => Scalar::Number(Number::Double(number.to_string().parse().unwrap_or(f64::NAN))),
            Value::Float64(number) => Scalar::Number(Number::Double(number)),
            Value::Decimal(number) => Scalar::Number(Number::of_decimal(&number)),
            Value::Text(text) => Scalar::Text(text),
            Value::Json(Cow::Borrowed(text)) => Scalar::of_json(text),
            Value::Json(Cow::Owned(text)) => Scalar::of_json(&text).into_owned(),
            Value::Date(date) => Scalar::Timestamp(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros()),
            Value::Timestamp(timestamp) => Scalar::Timestamp(timestamp.and_utc().timestamp_micros()),
            Value::TimestampTz(timestamp) => Scalar::Timestamp(timestamp.timestamp_micros()),
            other => Scalar::Text(Cow::Owned(other.to_string())),
        }
    }

    pub(super) fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Null => Scalar::Null,
            Scalar::Boolean(truth) => Scalar::Boolean(truth),
            Scalar::Number(number) => Scalar::Number(number),
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
            Scalar::Timestamp(timestamp) => Scalar::Timestamp(timestamp),
            Scalar::Document(text) => Scalar::Document(Cow::Owned(text.into_owned())),
        }
    }

    /// A number, or a text that contains one.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Scalar::Number(number) => Some(*number),
            Scalar::Text(text) => Number::parse(text),
            _ => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Scalar::Boolean(truth) => Some(*truth),
            Scalar::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Scalar::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    fn timestamp(&self) -> Option<i64> {
        match self {
            Scalar::Timestamp(timestamp) => Some(*timestamp),
            // As in CrateDB, timestamps in documents count milliseconds.
            Scalar::Number(number) => Some((number.to_f64() * 1_000.0) as i64),
            Scalar::Text(text) => match Value::Text(Cow::Borrowed(text)).convert(&FieldType::TimestampTz) {
                Ok(Value::TimestampTz(timestamp)) => Some(timestamp.timestamp_micros()),
                _ => match Value::Text(Cow::Borrowed(text)).convert(&FieldType::Timestamp) {
                    Ok(Value::Timestamp(timestamp)) => Some(timestamp.and_utc().timestamp_micros()),
                    _ => None,
                },
            },
            _ => None,
        }
    }

    fn document(&self) -> Option<String> {
        let (Scalar::Document(text) | Scalar::Text(text)) = self else { return None };
        let mut compact = String::with_capacity(text.len());
        Node::parse(text).ok()?.push_compact(&mut compact);
        Some(compact)
    }

    /// Compares two values; `None` if the result is unknown: with nulls, and between unrelated
    /// kinds.
    pub(super) fn compare(&self, other: &Scalar<'_>) -> Option<Ordering> {
        match (self, other) {
            (Scalar::Null, _) | (_, Scalar::Null) => None,
            (Scalar::Text(left), Scalar::Text(right)) => Some(left.cmp(right)),
            (Scalar::Timestamp(_), _) | (_, Scalar::Timestamp(_)) => Some(self.timestamp()?.cmp(&other.timestamp()?)),
            (Scalar::Number(_), _) | (_, Scalar::Number(_)) => Some(self.number()?.compare(other.number()?)),
            (Scalar::Boolean(_), _) | (_, Scalar::Boolean(_)) => Some(self.truth()?.cmp(&other.truth()?)),
            (Scalar::Document(_), _) | (_, Scalar::Document(_)) => Some(self.document()?.cmp(&other.document()?)),
        }
    }

    /// A text that sorts bytewise like the values, and is the same for equal values; `None` = null.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Scalar::Null => None,
            Scalar::Text(text) => Some(format!("1{text}")),
            Scalar::Number(number) => {
                let (nearest, rest) = number.parts();
                let bits = nearest.to_bits();
                let bits = if nearest.is_sign_negative() { !bits } else { bits | (1 << 63) };
                let rest = rest.cast_unsigned() ^ (1 << 127);
                Some(format!("2{bits:016x}{rest:032x}"))
            }
            Scalar::Timestamp(timestamp) => Scalar::Number(Number::Whole((timestamp / 1_000).into())).key(),
            Scalar::Boolean(truth) => Some(format!("3{}", u8::from(*truth))),
            Scalar::Document(text) => {
                let rank = if text.starts_with('[') { 4 } else { 5 };
                Some(format!("{rank}{}", self.document().as_deref().unwrap_or(text)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_compare_as_what_they_are() {
        let json = Scalar::of_json;
        for (left, right, expected) in [
            ("5", "10", Some(Ordering::Less)),
            ("\"5\"", "\"10\"", Some(Ordering::Greater)),
            ("5", "5.0", Some(Ordering::Equal)),
            ("\"7\"", "6.5", Some(Ordering::Greater)),
            ("\"x\"", "6.5", None),
            ("true", "false", Some(Ordering::Greater)),
            ("true", "1", None),
            ("null", "1", None),
            ("[1, 2]", "[1,2]", Some(Ordering::Equal)),
            ("1e300", "-1e300", Some(Ordering::Greater)),
            ("9007199254740993", "9007199254740992.0", Some(Ordering::Greater)),
        ] {
            assert_eq!(json(left).compare(&json(right)), expected, "{left} {right}");
        }
        let timestamp = Scalar::Timestamp(1_500_000);
        assert_eq!(timestamp.compare(&json("1500")), Some(Ordering::Equal));
        assert_eq!(timestamp.compare(&json("\"1970-01-01T00:00:01Z\"")), Some(Ordering::Greater));
    }

    #[test]
    fn keys_are_in_the_order_of_values() {
        let ordered =
            ["\"\"", "\"a\"", "\"b\"", "-1e300", "-2", "-1.5", "0", "0.5", "9007199254740992", "9007199254740993"]
                .into_iter()
                .chain(["1e300", "false", "true", "[1]", "{}"]);
        let keys: Vec<_> = ordered.map(|text| Scalar::of_json(text).key()).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(Scalar::of_json("1").key(), Scalar::of_json("1.0").key());
        assert_eq!(Scalar::of_json("0").key(), Scalar::of_json("-0.0").key());
        assert_eq!(Scalar::of_json("null").key(), None);
    }
}
