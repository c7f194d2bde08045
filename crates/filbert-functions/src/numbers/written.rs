//! String literals beside decimals. PostgreSQL parses such a literal as a `numeric` with all digits
//! that it is written with. A decimal here has one scale, so the literal needs a type of its own:
//! beside a `numeric(10,2)`, `'9.999'` would otherwise become 10.00.
//!
//! Literals that the type of their neighbours holds stay texts, and are cast to that type later.

use arrow_schema::DataType;
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, ReturnFieldArgs, cast};
use filbert_data::is_space;

use super::decimals::{scale_of, shortest};
use super::widths::{common_type, wide};
use crate::row::is_text;
use crate::types::{decimal128_of, decimal256_of};

/// The maximum precision of a decimal of 128 bits.
const SHORT_DIGITS_MAX: usize = 38;
/// The maximum precision of a decimal.
const DIGITS_MAX: usize = 76;
/// Functions that compare their arguments, or return one of them.
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "make_array"];
/// Window functions with a default value.
const WITH_DEFAULT: [&str; 2] = ["lag", "lead"];

/// The string literal as a decimal with its own digits, if a decimal of the other type has too few
/// for it. `None` for other expressions, and for texts that are no numbers.
pub fn exact(literal: &Expr, beside: &DataType) -> Option<Expr> {
    let (text, metadata) = match literal {
        Expr::Literal(scalar, metadata) => (scalar.try_as_str().flatten()?, metadata),
        _ => return None,
    };
    let (precision, scale) = match beside {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (*precision, *scale),
        _ => return None,
    };
    let number = number_of(text)?;
    let (unscaled, places) = number.as_bigint_and_exponent();
    let places = i8::try_from(places).ok()?;
    let digits = digits_of(&unscaled).max(usize::from(places.unsigned_abs()));
    let before = digits.saturating_sub(usize::from(places.unsigned_abs()));
    let before_max = usize::from(precision).saturating_sub(usize::from(scale.unsigned_abs()));
    if places <= scale && before <= before_max {
        return None;
    }
    let precision = u8::try_from(digits.max(1)).ok()?;
    let scalar = match digits {
        0..=SHORT_DIGITS_MAX => ScalarValue::Decimal128(Some(decimal128_of(&number, places)?), precision, places),
        _ if digits <= DIGITS_MAX => ScalarValue::Decimal256(Some(decimal256_of(&number, places)?), precision, places),
        _ => return None,
    };
    Some(Expr::Literal(scalar, metadata.clone()))
}

/// The number without zeros at the end, if the text is one in digits.
fn number_of(text: &str) -> Option<BigDecimal> {
    let text = text.trim_matches(is_space);
    let is_number = |char: char| char.is_ascii_digit() || matches!(char, '.' | '-' | '+' | 'e' | 'E');
    // A large exponent would make a long number.
    if !text.chars().all(is_number) || text.len() > 2 * DIGITS_MAX {
        return None;
    }
    let number: BigDecimal = text.parse().ok()?;
    let (_, places) = number.as_bigint_and_exponent();
    (places.unsigned_abs() <= 2 * DIGITS_MAX as u64).then(|| shortest(&number))
}

fn digits_of(unscaled: &BigInt) -> usize {
    unscaled.magnitude().to_string().len()
}

/// Gives the string literals among the operands of an expression types of their own if the others
/// are decimals; returns whether it changed any.
pub(crate) fn widen_operands(expression: &mut Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::BinaryExpr(binary) if compares(binary.op) => widen(vec![&mut *binary.left, &mut *binary.right], schema),
        Expr::Between(between) => widen(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema),
        Expr::InList(list) => widen(std::iter::once(&mut *list.expr).chain(&mut list.list).collect(), schema),
        Expr::Case(case) => match &mut case.expr {
            Some(value) => {
                let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                widen(std::iter::once(&mut **value).chain(others).collect(), schema)
            }
            None => false,
        },
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) => {
            widen(call.args.iter_mut().collect(), schema)
        }
        Expr::WindowFunction(window) if WITH_DEFAULT.contains(&window.fun.name()) => {
            let args = window.params.args.iter_mut().enumerate();
            widen(args.filter(|(at, _)| *at != 1).map(|(_, arg)| arg).collect(), schema)
        }
        _ => false,
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether an expression is a string literal.
pub(crate) fn is_quoted(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(scalar, _) if is_text(&scalar.data_type()) && !scalar.is_null())
}

/// Gives the string literals among operands types of their own if the others are decimals; returns
/// whether it changed any. All operands get their common type where DataFusion has none.
pub(crate) fn widen(mut operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !operands.iter().any(|operand| is_quoted(operand)) {
        return false;
    }
    let others = operands.iter().filter(|operand| !is_quoted(operand));
    let types: Vec<DataType> = others.filter_map(|operand| operand.get_type(schema).ok()).collect();
    let Some(beside) = decimal_of(types.iter()) else { return false };
    let mut is_changed = false;
    for operand in &mut operands {
        if let Some(literal) = exact(operand, &beside) {
            **operand = literal;
            is_changed = true;
        }
    }
    let types: Vec<DataType> = operands.iter().filter_map(|operand| operand.get_type(schema).ok()).collect();
    if let Some(to) = wide(types.iter()) {
        for operand in operands {
            let is_other = operand.get_type(schema).is_ok_and(|found| found.is_numeric() && found != to);
            if is_other || is_quoted(operand) {
                *operand = cast(operand.clone(), to.clone());
            }
        }
        return true;
    }
    is_changed
}

/// The common type of decimals; `None` if other types than exact numbers are among them.
fn decimal_of<'t>(types: impl Iterator<Item = &'t DataType>) -> Option<DataType> {
    let known: Vec<&DataType> = types.filter(|found| !found.is_null()).collect();
    common_type(&known).filter(|common| scale_of(common).is_some())
}

/// The common type of exact numbers and string literals beside them.
pub fn common_with_literals<'e>(types: &[&DataType], literals: impl Iterator<Item = &'e Expr>) -> Option<DataType> {
    let beside = decimal_of(types.iter().copied())?;
    let exact: Vec<DataType> = literals
        .filter_map(|literal| match exact(literal, &beside)? {
            Expr::Literal(scalar, _) => Some(scalar.data_type()),
            _ => None,
        })
        .collect();
    if exact.is_empty() {
        return None;
    }
    common_type(&types.iter().copied().chain(&exact).collect::<Vec<_>>())
}

/// The common type of a function's arguments, if they are decimals and some are string literals
/// with more digits than the others.
pub(crate) fn common_of_arguments(args: &ReturnFieldArgs<'_>) -> Option<DataType> {
    let types: Vec<&DataType> = args.arg_fields.iter().map(|field| field.data_type()).collect();
    let literals = args.scalar_arguments.iter().flatten().filter(|scalar| is_text(&scalar.data_type()));
    let literals: Vec<Expr> = literals.map(|scalar| Expr::Literal((*scalar).clone(), None)).collect();
    common_with_literals(&types, literals.iter())
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::lit;

    use super::*;

    #[track_caller]
    fn check(text: &str, beside: DataType, expected: &str) {
        let found = exact(&lit(text), &beside);
        let shown = match found {
            Some(Expr::Literal(scalar, _)) => format!("{scalar} {}", scalar.data_type()),
            Some(other) => other.to_string(),
            None => "text".to_owned(),
        };
        assert_eq!(shown, expected, "{text} beside {beside}");
    }

    #[test]
    fn a_literal_with_more_digits_than_its_neighbour_has_its_own_type() {
        let price = || DataType::Decimal128(10, 2);
        check("9.99", price(), "text");
        check("9.990", price(), "text");
        check("9.999", price(), "9.999 Decimal128(4, 3)");
        check(" -0.001 ", price(), "-0.001 Decimal128(3, 3)");
        check("12345678901", price(), "12345678901 Decimal128(11, 0)");
        check("1e9", price(), "1000000000 Decimal128(10, 0)");
        check("1e-3", price(), "0.001 Decimal128(3, 3)");
        check("1e400", price(), "text");
        check("nan", price(), "text");
        check("x", price(), "text");
        check("", price(), "text");
        check("4.2", DataType::Int32, "text");
        check("4.2", DataType::Float64, "text");
    }
}
