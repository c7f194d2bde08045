//! Converts values of documents to typed values.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use arrow_buffer::i256;
use bigdecimal::{BigDecimal, Signed, Zero};
use chrono::DateTime;
use datafusion::common::Result;
use filbert_data::{FieldType, Value};

use super::super::json::{Kind, Node};
use super::super::row::failed;
use crate::builder::ColumnBuilder;
use crate::error::{carried, data_error};
use crate::types::{DECIMAL_SCALE, decimal256_of};

/// The precision of a decimal without a declared scale.
const DECIMAL_PRECISION: u8 = 76;

/// A column of a type, built value by value.
pub(super) struct Rows {
    field_type: FieldType,
    column: ColumnBuilder,
}

impl Rows {
    pub(super) fn new(field_type: &FieldType) -> Rows {
        Rows { field_type: field_type.clone(), column: ColumnBuilder::new(field_type) }
    }

    /// Appends a value of a document in the column's type; null if it does not fit. Returns whether
    /// the value was appended as null.
    pub(super) fn append(&mut self, node: Option<Node<'_>>) -> Result<bool> {
        let Some(node) = node else {
            self.column.append_null();
            return Ok(true);
        };
        if let (FieldType::Decimal(None), ColumnBuilder::Decimal256(decimals, _)) = (&self.field_type, &mut self.column)
        {
            let decimal = matches!(node.kind(), Kind::Number | Kind::Text).then(|| decimal(&node.plain())).flatten();
            decimals.append_option(decimal);
            return Ok(decimal.is_none());
        }
        let value = value(node, &self.field_type);
        let is_null = value.is_null();
        self.column.append(value).map_err(|error| failed(error.to_string()))?;
        Ok(is_null)
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        self.column.finish()
    }
}

/// A number that may have too many digits. It is clamped to the range, with its sign preserved,
/// because it is compared.
fn decimal(text: &str) -> Option<i256> {
    let scale_of_whole = i256::from_i128(10_i128.pow(DECIMAL_SCALE.unsigned_abs().into()));
    if let Ok(whole) = text.parse::<i64>() {
        return i256::from(whole).checked_mul(scale_of_whole);
    }
    let number: BigDecimal = text.trim().parse().ok()?;
    let most = i256::from_string(&"9".repeat(DECIMAL_PRECISION.into()))?;
    // The digits of 1e1000000000 are not written out.
    let (_, exponent) = number.as_bigint_and_exponent();
    let size = i64::try_from(number.digits()).unwrap_or(i64::MAX).saturating_sub(exponent);
    let near = match size {
        _ if number.is_zero() => Some(i256::ZERO),
        ..-38 => Some(i256::ZERO),
        39.. => None,
        _ => decimal256_of(&number, DECIMAL_SCALE).filter(|near| near.wrapping_abs() <= most),
    };
    Some(match near {
        None if number.is_negative() => most.wrapping_neg(),
        None => most,
        Some(i256::ZERO) if number.is_negative() => i256::MINUS_ONE,
        Some(i256::ZERO) if !number.is_zero() => i256::ONE,
        Some(near) => near,
    })
}

/// A value of a document as a value of a type; null if it does not fit.
pub(super) fn value<'n>(node: Node<'n>, field_type: &FieldType) -> Value<'n> {
    let text = |text: Cow<'n, str>| Value::Text(text);
    match (field_type, node.kind()) {
        (_, Kind::Null) => Value::Null,
        (FieldType::Json, _) => Value::Json(Cow::Borrowed(node.text())),
        (FieldType::Varchar | FieldType::Char, _) => text(node.plain()),
        (FieldType::Array(item), Kind::Array) => {
            Value::Array(node.children().map(|(_, node)| value(node, item)).collect())
        }
        (FieldType::Array(_) | FieldType::Object, _) | (_, Kind::Array | Kind::Object) => Value::Null,
        (FieldType::Timestamp | FieldType::TimestampTz | FieldType::Date, Kind::Number) => {
            let milliseconds = node.text().parse::<f64>().unwrap_or(f64::NAN);
            match DateTime::from_timestamp_micros((milliseconds * 1_000.0) as i64) {
                Some(timestamp) if *field_type == FieldType::TimestampTz => {
                    Value::TimestampTz(timestamp.fixed_offset())
                }
                Some(timestamp) if *field_type == FieldType::Date => Value::Date(timestamp.date_naive()),
                Some(timestamp) => Value::Timestamp(timestamp.naive_utc()),
                None => Value::Null,
            }
        }
        _ => {
            let read = text(node.plain()).into_owned().convert(field_type).or_else(|_| {
                // 5.0 and 5e0 are whole numbers too.
                text(node.plain()).into_owned().convert(&FieldType::Decimal(None))?.convert(field_type)
            });
            read.unwrap_or(Value::Null)
        }
    }
}

/// An untyped field as a value for a typed column; if it does not fit, the text itself.
pub fn value_of_field(document: &str, to: &FieldType) -> Value<'static> {
    let Ok(node) = Node::parse(document) else { return Value::Text(Cow::Owned(document.to_owned())) };
    match value(node, to) {
        Value::Null if node.kind() != Kind::Null => Value::Text(node.plain()).into_owned(),
        value => value.into_owned(),
    }
}

/// Parses a document.
pub(super) fn parsed(text: &str) -> Result<Node<'_>> {
    Node::parse(text).map_err(|_| {
        let shown: String = text.chars().take(60).collect();
        let error = data_error(format!("invalid input syntax for type json: {shown:?}"));
        carried(error.with_sqlstate("22P02"))
    })
}

/// The error for a value that does not fit a type.
pub(super) fn not_of_type(text: &str, field_type: &FieldType) -> datafusion::common::DataFusionError {
    let shown: String = text.chars().take(60).collect();
    let error = data_error(format!("cannot cast {shown} to {field_type}"));
    carried(error.with_sqlstate("22P02"))
}

/// The error for a value that is not numeric.
pub(super) fn no_number(shown: &str) -> datafusion::common::DataFusionError {
    let error = data_error(format!("cannot compute with {shown}, expected a number"));
    carried(error.with_sqlstate("22P02"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, field_type: &FieldType, expected: &Value<'_>) {
        assert_eq!(value(Node::parse(json).unwrap(), field_type), *expected, "{json}");
    }

    #[test]
    fn members_are_read_as_they_are_declared() {
        check("5", &FieldType::Integer, &Value::Int32(5));
        check("5.0", &FieldType::BigInt, &Value::Int64(5));
        check("5.5", &FieldType::BigInt, &Value::Null);
        check("\"5\"", &FieldType::SmallInt, &Value::Int16(5));
        check("\"a\\nb\"", &FieldType::Varchar, &Value::text("a\nb"));
        check("{\"a\": 1}", &FieldType::Varchar, &Value::text("{\"a\": 1}"));
        check(
            "[1, null]",
            &FieldType::Array(Box::new(FieldType::Integer)),
            &Value::Array(vec![Value::Int32(1), Value::Null]),
        );
        check(
            "1500",
            &FieldType::TimestampTz,
            &Value::TimestampTz(DateTime::from_timestamp_millis(1500).unwrap().into()),
        );
        check("true", &FieldType::Boolean, &Value::Boolean(true));
        check("{}", &FieldType::Double, &Value::Null);
    }

    #[test]
    fn numbers_that_do_not_fit_stay_on_their_side() {
        let unit = |text| decimal(text).unwrap();
        assert_eq!(Some(unit("2")), i256::from_string(&format!("2{}", "0".repeat(38))));
        assert_eq!(unit("0.5"), i256::from_i128(5 * 10_i128.pow(37)));
        assert_eq!(unit("1e-300"), i256::ONE);
        assert_eq!(unit("-1e-300"), i256::MINUS_ONE);
        assert_eq!(unit("0"), i256::ZERO);
        assert!(unit("1e300") > unit("1e37") && unit("-1e300") < unit("-1e37"));
        assert_eq!((unit("1e300"), unit("-1e300")), (unit("1e50"), unit("-1e50")), "both are beyond");
        assert_eq!(decimal("x"), None);
    }
}
