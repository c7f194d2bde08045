//! Keys that are positions in the SELECT list: `GROUP BY 1`, `ORDER BY (2)`.
//!
//! In PostgreSQL parentheses do not matter, and a minus sign belongs to the number. DataFusion
//! takes both as constant expressions, which sort nothing.

use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError};

use super::Output;

/// Writes a key that is a position as its digits alone.
///
/// # Errors
/// In PostgreSQL's dialect: the key is another constant, which would sort and group nothing, or it
/// is below zero.
pub(super) fn written_out(key: &mut Expr, clause: &str, dialect: Dialect) -> Result<(), SqlError> {
    let Some((is_negative, constant)) = constant(key) else { return Ok(()) };
    let refused = |text: String, code| Err(parsing_error(text).with_sqlstate(code));
    match constant {
        Value::Placeholder(_) => Ok(()),
        Value::Number(digits, _) if dialect != Dialect::Postgres || digits.parse::<i32>().is_ok() => {
            match is_negative {
                true if dialect != Dialect::Postgres => Ok(()),
                true => refused(format!("{clause} position -{digits} is not in select list"), "42P10"),
                false => {
                    *key = Expr::value(Value::Number(digits.clone(), false));
                    Ok(())
                }
            }
        }
        _ if dialect == Dialect::Postgres => refused(format!("non-integer constant in {clause}"), "42601"),
        _ => Ok(()),
    }
}

/// A constant without its parentheses, and whether it has a minus sign.
fn constant(key: &Expr) -> Option<(bool, &Value)> {
    match key {
        Expr::Nested(inner) => constant(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match constant(expr)? {
            (is_negative, number @ Value::Number(..)) => Some((!is_negative, number)),
            _ => None,
        },
        Expr::Value(value) => Some((false, &value.value)),
        _ => None,
    }
}

/// The digits of a key that is a position.
pub(super) fn place(key: &Expr) -> Option<&str> {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// The expression of the column at this position, if no `*` comes before it.
pub(super) fn at_place<'o>(digits: &str, outputs: &'o [Output]) -> Option<&'o Expr> {
    let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
    outputs.iter().map_while(|output| output.expression.as_ref()).nth(place)
}
