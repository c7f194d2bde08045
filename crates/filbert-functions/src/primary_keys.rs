//! Values of primary keys. Rows have the same key if the bytes of their keys are equal. Equal
//! values of a key column must therefore have the same bytes.

use filbert_data::{FieldType, Value};
use filbert_grid::query::SqlError;

use crate::error::parsing_error;

/// Checks that a column of this type can be in a primary key.
///
/// # Errors
/// Equal values of the type have several forms, and none of them stands for all.
pub fn check_key_type(column: &str, field_type: &FieldType) -> Result<(), SqlError> {
    match field_type {
        FieldType::Array(_) => {
            let text =
                format!("column {column:?} cannot be in a primary key: keys of type {field_type} are not served");
            Err(parsing_error(text).with_sqlstate("0A000"))
        }
        FieldType::Interval | FieldType::Json => {
            let text = format!(
                "column {column:?} cannot be in a primary key: equal values of type {field_type} may be written \
                 differently, and would be different keys"
            );
            Err(parsing_error(text).with_sqlstate("0A000"))
        }
        _ => Ok(()),
    }
}

/// The form of a key value that stands for all values equal to it: a number without trailing zeros,
/// one zero and one NaN.
pub fn canonical_key(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Decimal(number) => Value::Decimal(number.normalized()),
        Value::Float64(number) => Value::Float64(one_of(number, f64::NAN, f64::is_nan)),
        Value::Float32(number) => Value::Float32(one_of(number, f32::NAN, f32::is_nan)),
        other => other,
    }
}

/// A floating-point number with one zero and one NaN.
fn one_of<F: Copy + Default + PartialEq>(number: F, nan: F, is_nan: fn(F) -> bool) -> F {
    if is_nan(number) {
        nan
    } else if number == F::default() {
        F::default()
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filbert_data::ToBlob;

    #[test]
    fn equal_values_are_one_key() {
        let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
        for (one, other) in [
            (Value::Float64(0.0), Value::Float64(-0.0)),
            (Value::Float64(f64::NAN), Value::Float64(-f64::NAN)),
            (Value::Float32(0.0), Value::Float32(-0.0)),
            (decimal("1"), decimal("1.00")),
            (decimal("100"), decimal("1e2")),
            (decimal("0"), decimal("0.000")),
        ] {
            assert_eq!(canonical_key(one).to_blob().unwrap(), canonical_key(other).to_blob().unwrap());
        }
        for value in [Value::Float64(-1.5), Value::Int64(0), Value::text("-0.0"), decimal("-1.5")] {
            assert_eq!(canonical_key(value.clone()), value);
        }
    }
}
