//! The values of an `IN`, as hash sets for texts and whole numbers. A lookup takes constant time,
//! whatever the number of values.

use std::collections::HashSet;

use filbert_data::{FieldType, Value};

use super::compare::equals;

/// The values of an `IN`.
pub(super) struct Members {
    all: Vec<Value<'static>>,
    /// The whole numbers.
    numbers: HashSet<i64>,
    /// The other values: a whole number may equal them as well.
    others: Vec<Value<'static>>,
    /// All values in the form for comparison with a text field.
    texts: HashSet<String>,
}

impl Members {
    pub(super) fn new(all: Vec<Value<'static>>) -> Members {
        let (numbers, others): (Vec<_>, Vec<_>) = all.iter().partition(|value| whole(value).is_some());
        let text = |value: &Value<'static>| match value.clone().convert(&FieldType::Varchar) {
            Ok(Value::Text(text)) => Some(text.into_owned()),
            _ => None,
        };
        Members {
            numbers: numbers.into_iter().filter_map(whole).collect(),
            others: others.into_iter().cloned().collect(),
            texts: all.iter().filter_map(text).collect(),
            all,
        }
    }

    /// Whether one of them equals a field's value.
    pub(super) fn contain(&self, found: &Value<'_>) -> bool {
        if let Value::Text(text) = found {
            return self.texts.contains(&**text);
        }
        match whole(found) {
            Some(number) => self.numbers.contains(&number) || self.others.iter().any(|other| equals(found, other)),
            None => self.all.iter().any(|other| equals(found, other)),
        }
    }
}

fn whole(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int8(number) => Some(i64::from(*number)),
        Value::Int16(number) => Some(i64::from(*number)),
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any field value and any list, the result equals that of single comparisons.
    #[test]
    fn members_are_what_equals_one_of_them() {
        let text = |text: &'static str| Value::Text(text.into());
        let values = [
            Value::Null,
            Value::Boolean(true),
            Value::Int8(5),
            Value::Int16(-1),
            Value::Int32(5),
            Value::Int64(i64::MAX),
            Value::Float32(5.0),
            Value::Float64(0.5),
            Value::Float64(f64::NAN),
            Value::Decimal("5.0".parse().unwrap_or_default()),
            text("5"),
            text("5.0"),
            text(" 5"),
            text("true"),
            text(""),
            text("a"),
            text("0.5"),
            text("2024-01-01"),
            Value::Bytes(vec![5].into()),
        ];
        for first in &values {
            for second in &values {
                let members = Members::new(vec![first.clone(), second.clone()]);
                for found in &values {
                    let expected = equals(found, first) || equals(found, second);
                    assert_eq!(members.contain(found), expected, "{found:?} in {first:?}, {second:?}");
                }
            }
        }
    }
}
