//! The order, the index keys and the conversions of values.

use std::cmp::Ordering;

use filbert_data::{FieldType, Kinds, ToBlob, Value};

use super::drawing::values_types;

/// The maximum number of values of an input that are compared with each other.
pub const COMPARED_MAX: usize = 6;

/// The complete value as text, for comparisons: NaN does not equal itself.
pub fn shown(value: &Value<'_>) -> String {
    format!("{value:?}")
}

/// Checks each value and each pair of values.
pub fn check(values: &[Value<'_>]) {
    for value in values {
        assert_eq!(shown(&value.clone().into_owned()), shown(value));
        let _text = value.to_string();
        assert!(matches!(value.compare(value), None | Some(Ordering::Equal)), "{value:?} differs from itself");
        let kinds = Kinds::of(value);
        assert_eq!(Kinds::from_bits(kinds.bits()), kinds);
        write(value);
        convert(value);
    }
    for (at, a) in values.iter().enumerate() {
        for (before, b) in values.iter().enumerate().take(at) {
            compare(a, b);
            let between = values.iter().take(before);
            for c in between {
                follow(a, b, c);
            }
        }
    }
}

/// A written value is read again without a change, except for types that are read as another type.
fn write(value: &Value<'_>) {
    match value.to_blob() {
        Ok(_) if holds(value, &|value| matches!(value, Value::Object(_) | Value::Bytes(_) | Value::Interval(_))) => {}
        Ok(blob) => {
            let again = Value::from_blob(&blob);
            assert_eq!(again.map(|value| shown(&value)), Ok(shown(value)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Whether a value, or one of its items, satisfies a condition.
fn holds(value: &Value<'_>, is_such: &dyn Fn(&Value<'_>) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| holds(item, is_such)),
        value => is_such(value),
    }
}

fn convert(value: &Value<'_>) {
    for scalar in values_types() {
        for field_type in [scalar.clone(), FieldType::Array(Box::new(scalar))] {
            match value.clone().convert(&field_type) {
                Ok(converted) => {
                    let again = converted.clone().convert(&field_type).map(|again| shown(&again));
                    assert_eq!(again, Ok(shown(&converted)), "{value:?} to {field_type}");
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    let of = match value {
        Value::Boolean(_) => FieldType::Boolean,
        Value::Int64(_) => FieldType::BigInt,
        Value::Float32(_) => FieldType::Real,
        Value::Float64(_) => FieldType::Double,
        Value::Decimal(_) => FieldType::Decimal(None),
        Value::Date(_) => FieldType::Date,
        Value::Time(_) => FieldType::Time,
        Value::Timestamp(_) => FieldType::Timestamp,
        Value::TimestampTz(_) => FieldType::TimestampTz,
        Value::Uuid(_) => FieldType::Uuid,
        _ => return,
    };
    let text = value.clone().convert(&FieldType::Varchar).expect("a plain value becomes a text");
    let again = text.clone().convert(&of);
    assert!(again.as_ref().is_ok_and(|again| again.equals(value)), "{value:?} is {text:?}, which is {again:?}");
}

fn key(value: &Value<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    value.append_index_key(&mut key);
    key
}

/// The order of two values does not depend on the side, and is the order of their index keys.
fn compare(a: &Value<'_>, b: &Value<'_>) {
    let order = a.compare(b);
    assert_eq!(b.compare(a), order.map(Ordering::reverse), "{a:?} and {b:?}");
    assert_eq!(a.equals(b), order == Some(Ordering::Equal));
    let keys = key(a).cmp(&key(b));
    let Some(order) = order else { return };
    let rounded = |value| holds(value, &|value| matches!(value, Value::Decimal(_)));
    // Decimals that are nearly equal may share a key.
    if rounded(a) || rounded(b) {
        let is_array = matches!(a, Value::Array(_));
        assert!(keys == order || order != Ordering::Equal && (is_array || keys == Ordering::Equal), "{a:?} and {b:?}");
    } else {
        assert_eq!(keys, order, "{a:?} and {b:?}");
    }
}

/// The order is transitive.
fn follow(a: &Value<'_>, b: &Value<'_>, c: &Value<'_>) {
    for (first, second, third) in [(a, b, c), (a, c, b), (b, a, c)] {
        if let (Some(one), Some(two), Some(both)) = (first.compare(second), second.compare(third), first.compare(third))
            && (one == two || two == Ordering::Equal)
        {
            assert_eq!(both, one, "{first:?}, {second:?} and {third:?}");
        }
    }
}
