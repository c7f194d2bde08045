//! The order of values.

use std::cmp::Ordering;

use super::Value;
use super::number::Number;

/// The maximum nesting depth of arrays that are compared. Deeper arrays are not comparable.
const DEPTH_MAX: usize = 64;

impl Value<'_> {
    /// Compares two values; `None` if one of them is null or their types have no common order.
    ///
    /// Numbers of all types compare exactly. NaN is greater than all other numbers and equals
    /// itself; both zeros are equal. Texts compare by code points, timestamps with time zone by
    /// their time in UTC, intervals by their length, UUIDs by their bytes, arrays by their first
    /// different item. Two JSON texts or two objects are comparable only if they are equal.
    #[inline]
    pub fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        compare(self, other, DEPTH_MAX)
    }

    /// Whether two values compare as equal. A null equals nothing.
    #[inline]
    pub fn equals(&self, other: &Value<'_>) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }
}

fn compare(a: &Value<'_>, b: &Value<'_>, depth_left: usize) -> Option<Ordering> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Value::TimestampTz(a), Value::TimestampTz(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.cmp(b)),
        (Value::Json(a), Value::Json(b)) => (a == b).then_some(Ordering::Equal),
        // The partition hash in front is not a part of the object.
        (Value::Object(a), Value::Object(b)) => (a.get(4..) == b.get(4..)).then_some(Ordering::Equal),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Interval(a), Value::Interval(b)) => Some(a.length().cmp(&b.length())),
        (Value::Array(a), Value::Array(b)) => {
            let depth_left = depth_left.checked_sub(1)?;
            for (a, b) in a.iter().zip(b) {
                match compare(a, b, depth_left)? {
                    Ordering::Equal => {}
                    different => return Some(different),
                }
            }
            Some(a.len().cmp(&b.len()))
        }
        _ => Some(Number::of(a)?.compare(Number::of(b)?)),
    }
}
