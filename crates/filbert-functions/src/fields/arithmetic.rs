//! Arithmetic with numbers of documents: whole numbers stay whole, as in CrateDB's `BIGINT`; other
//! results are `DOUBLE`.

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::Operator;

use super::read::no_number;
use super::scalar::{Number, Scalar};
use crate::error::{carried, data_error};

/// The result of an operator over two values; `None` = null.
pub(super) fn compute(operator: Operator, left: &Scalar<'_>, right: &Scalar<'_>) -> Result<Option<Number>> {
    let operand = |scalar: &Scalar<'_>| match (scalar, scalar.number()) {
        (Scalar::Null, _) => Ok(None),
        (_, Some(number)) => Ok(Some(number)),
        (other, None) => Err(no_number(&shown(other))),
    };
    let (Some(left), Some(right)) = (operand(left)?, operand(right)?) else { return Ok(None) };
    if let (Number::Whole(left), Number::Whole(right)) = (left, right) {
        return whole(operator, left, right).map(Some);
    }
    let (left, right) = (left.to_f64(), right.to_f64());
    if matches!(operator, Operator::Divide | Operator::Modulo) && right == 0.0 {
        return Err(divided_by_zero());
    }
    let made = match operator {
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left % right,
    };
    if made.is_finite() { Ok(Some(Number::Double(made))) } else { Err(overflow("DOUBLE", operator)) }
}

fn whole(operator: Operator, left: i128, right: i128) -> Result<Number> {
    if matches!(operator, Operator::Divide | Operator::Modulo) && right == 0 {
        return Err(divided_by_zero());
    }
    let made = match operator {
        Operator::Plus => left.checked_add(right),
        Operator::Minus => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    let made = made.filter(|made| i64::try_from(*made).is_ok());
    made.map(Number::Whole).ok_or_else(|| overflow("BIGINT", operator))
}

fn shown(scalar: &Scalar<'_>) -> String {
    match scalar {
        Scalar::Text(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        Scalar::Document(text) => text.chars().take(60).collect(),
        Scalar::Boolean(truth) => truth.to_string(),
        _ => "a timestamp".to_owned(),
    }
}

fn divided_by_zero() -> DataFusionError {
    carried(data_error("division by zero").with_sqlstate("22012"))
}

fn overflow(type_name: &str, operator: Operator) -> DataFusionError {
    carried(data_error(format!("{type_name} overflow in '{operator}' operator")).with_sqlstate("22003"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_whole() {
        let of = |left, operator, right| {
            let made = compute(operator, &Scalar::of_json(left), &Scalar::of_json(right));
            made.map(|number| number.map(Number::text)).map_err(|error| crate::error::of_datafusion(&error).sqlstate())
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of("7", Operator::Divide, "2"), some("3"));
        assert_eq!(of("7.0", Operator::Divide, "2"), some("3.5"));
        assert_eq!(of("\"7\"", Operator::Plus, "2"), some("9"));
        assert_eq!(of("null", Operator::Plus, "2"), Ok(None));
        assert_eq!(of("9223372036854775807", Operator::Plus, "1"), Err("22003"));
        assert_eq!(of("1", Operator::Modulo, "0"), Err("22012"));
        assert_eq!(of("\"x\"", Operator::Minus, "1"), Err("22P02"));
    }
}
