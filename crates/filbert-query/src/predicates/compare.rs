//! Comparison of a field's value with a predicate's value.

use std::cmp::Ordering;

use filbert_data::{FieldType, Value};

/// Whether a field has a predicate's value; NULL equals NULL.
pub(super) fn equals(found: &Value<'_>, wanted: &Value<'_>) -> bool {
    match (found, wanted) {
        (Value::Null, wanted) => wanted.is_null(),
        (_, Value::Null) => false,
        _ => compare(found, wanted) == Some(Ordering::Equal) || found == wanted,
    }
}

/// Compares a field with a predicate's value, which is converted to the field's type if necessary.
pub(super) fn compare(found: &Value<'_>, wanted: &Value<'_>) -> Option<Ordering> {
    if found.is_null() || wanted.is_null() {
        return None;
    }
    found.compare(wanted).or_else(|| {
        let wanted = wanted.clone().convert(&type_of(found)?).ok()?;
        found.compare(&wanted)
    })
}

/// The type that another value is converted to for a comparison with this one.
fn type_of(value: &Value<'_>) -> Option<FieldType> {
    Some(match value {
        Value::Boolean(_) => FieldType::Boolean,
        // Texts are parsed as numbers of any kind.
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => {
            FieldType::Decimal(None)
        }
        Value::Float32(_) | Value::Float64(_) => FieldType::Double,
        Value::Text(_) => FieldType::Varchar,
        Value::Date(_) => FieldType::Date,
        Value::Time(_) => FieldType::Time,
        Value::Timestamp(_) => FieldType::Timestamp,
        Value::TimestampTz(_) => FieldType::TimestampTz,
        Value::Uuid(_) => FieldType::Uuid,
        Value::Bytes(_) => FieldType::Binary,
        Value::Interval(_) => FieldType::Interval,
        Value::Null | Value::Json(_) | Value::Array(_) | Value::Object(_) => return None,
    })
}
