//! Constants of statements.

use bigdecimal::BigDecimal;
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value as SqlValue};
use filbert_data::Value;
use filbert_grid::query::Dialect;

/// The largest exponent of a literal that is taken as a decimal.
const EXPONENT_MAX: u32 = 1_000;

/// The value of a literal; `None` for other expressions.
pub(crate) fn constant(expr: &Expr, dialect: Dialect) -> Option<Value<'static>> {
    match expr {
        Expr::Nested(inner) => constant(inner, dialect),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match constant(expr, dialect)? {
            Value::Int64(number) => Some(Value::Int64(number.checked_neg()?)),
            Value::Decimal(number) => Some(Value::Decimal(-number)),
            Value::Float64(number) => Some(Value::Float64(-number)),
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            SqlValue::Number(text, _) => number(text, dialect),
            SqlValue::SingleQuotedString(text) => Some(Value::Text(text.clone().into())),
            SqlValue::Boolean(value) => Some(Value::Boolean(*value)),
            SqlValue::Null => Some(Value::Null),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the expression is the keyword `DEFAULT`.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The number of a parameter, from 0; `None` for other expressions.
pub(crate) fn parameter(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Nested(inner) => parameter(inner),
        Expr::Value(value) => match &value.value {
            SqlValue::Placeholder(name) => name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}

/// A numeric literal: a whole number, a decimal, or, with an exponent, a double. In PostgreSQL's
/// dialect it is a decimal with an exponent too; the planner takes one that is too long to be
/// written out.
fn number(text: &str, dialect: Dialect) -> Option<Value<'static>> {
    if let Some((_, exponent)) = text.split_once(['e', 'E']) {
        return match dialect {
            Dialect::Postgres => {
                let exponent: i32 = exponent.parse().ok()?;
                if exponent.unsigned_abs() > EXPONENT_MAX {
                    return None;
                }
                text.parse::<BigDecimal>().ok().map(Value::Decimal)
            }
            Dialect::Hazelcast | Dialect::Crate => text.parse().ok().map(Value::Float64),
        };
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Int64(whole));
    }
    text.parse::<BigDecimal>().ok().map(Value::Decimal)
}
