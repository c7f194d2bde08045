//! Selects the function that replaces an operator, by operand types as in PostgreSQL.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ScalarUDF, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_grid::query::{QUOTIENT_SCALE, SqlSubject};

use super::super::row::is_text;
use super::decimals::{FREE, scale_of};
use crate::error::{carried, parsing_error};
use crate::types::{field, field_type_of_arrow};

/// The functions by name.
static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> =
    LazyLock::new(|| super::functions().into_iter().map(Arc::new).collect());

/// A function of this module.
pub(in super::super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

fn call(name: &str, args: Vec<Expr>) -> Option<Expr> {
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function(name)?, args)))
}

/// The type of an operand: an integer literal has 32 bits if it fits.
fn operand_type(operand: &Expr, data_type: &DataType) -> DataType {
    match (operand, data_type) {
        (Expr::Literal(ScalarValue::Int64(Some(number)), _), _) if i32::try_from(*number).is_ok() => DataType::Int32,
        (_, DataType::Int8) => DataType::Int16,
        (_, other) => other.clone(),
    }
}

/// An operand of unknown type in the type of the other operand: a parameter, a null, or a string
/// literal. Decimals keep their own digits.
fn as_other(operand: &Expr, other: &DataType) -> Option<Expr> {
    match operand {
        Expr::Placeholder(placeholder) if placeholder.field.is_none() => {
            let own = if other.is_decimal() { &FREE } else { other };
            let field = field(&placeholder.id, &field_type_of_arrow(own), true);
            Some(Expr::Placeholder(Placeholder::new_with_field(placeholder.id.clone(), Some(Arc::new(field)))))
        }
        Expr::Literal(ScalarValue::Null, _) => Some(Expr::Literal(ScalarValue::try_from(other).ok()?, None)),
        Expr::Literal(value, _) if is_text(&value.data_type()) && !value.is_null() => {
            let to = match (other.is_decimal(), value.try_as_str().flatten().and_then(digits_of)) {
                (true, Some(exact)) => exact,
                (true, None) => FREE,
                (false, _) => other.clone(),
            };
            Some(cast(operand.clone(), to))
        }
        _ => None,
    }
}

/// The type of a number in quotes, with its digits.
fn digits_of(text: &str) -> Option<DataType> {
    let number: bigdecimal::BigDecimal = text.trim().parse().ok()?;
    let scale = i8::try_from(super::digits::scale(&number)).ok()?;
    let exponent = number.as_bigint_and_exponent().1;
    let whole = i64::try_from(number.digits()).ok()?.saturating_sub(exponent).max(1);
    let digits = u8::try_from(whole.saturating_add(scale.into())).ok().filter(|digits| *digits <= 38)?;
    Some(DataType::Decimal128(digits, scale))
}

/// Whether an operand is a parameter without a type.
fn is_open(operand: &Expr) -> bool {
    matches!(operand, Expr::Placeholder(placeholder) if placeholder.field.is_none())
}

/// The replacement of arithmetic on numbers; `None` if the operands are no numbers.
///
/// # Errors
/// The operator does not exist for these numbers.
pub(in super::super) fn plan(raw: &RawBinaryExpr, left: &DataType, right: &DataType) -> Result<Option<Expr>> {
    let arithmetic = matches!(
        raw.op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::PGExp
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr
            | BinaryOperator::BitwiseXor
            | BinaryOperator::PGBitwiseXor
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight
    );
    if !arithmetic {
        return Ok(super::widths::comparison(raw, left, right).or_else(|| of_texts(raw, left, right)));
    }
    let is_power = raw.op == BinaryOperator::PGExp;
    if is_open(&raw.left) && is_open(&raw.right) && !is_power {
        let text = format!("operator is not unique: unknown {} unknown", raw.op);
        return Err(carried(parsing_error(text).with_sqlstate("42725")));
    }
    let (left, right) = (operand_type(&raw.left, left), operand_type(&raw.right, right));
    let cast_type = |typed: &Expr, other: &DataType| match typed {
        Expr::Cast(cast) => cast.field.data_type().clone(),
        Expr::Placeholder(Placeholder { field: Some(field), .. }) => field.data_type().clone(),
        _ => other.clone(),
    };
    // An operand of unknown type beside one of this type. There are no powers of whole numbers, and
    // the number of places of a shift is an `integer`.
    let beside = |other: &DataType| match raw.op {
        BinaryOperator::PGExp if other.is_integer() || other.is_null() => DataType::Float64,
        _ => other.clone(),
    };
    let is_shift = matches!(raw.op, BinaryOperator::PGBitwiseShiftLeft | BinaryOperator::PGBitwiseShiftRight);
    let of_right = |left: &DataType| if is_shift && left.is_integer() { DataType::Int32 } else { beside(left) };
    let (left_expr, left) = match as_other(&raw.left, &beside(&right)) {
        Some(typed) if beside(&right).is_numeric() => (typed.clone(), cast_type(&typed, &beside(&right))),
        _ => (raw.left.clone(), left),
    };
    let (right_expr, right) = match as_other(&raw.right, &of_right(&left)) {
        Some(typed) if left.is_numeric() => (typed.clone(), cast_type(&typed, &of_right(&left))),
        _ => (raw.right.clone(), right),
    };
    if !left.is_numeric() || !right.is_numeric() {
        return Ok(None);
    }
    let args = vec![narrowed(left_expr, &left), narrowed(right_expr, &right)];
    let missing = || {
        let arguments = vec![field_type_of_arrow(&left), field_type_of_arrow(&right)];
        let text = format!("there is no operator {} of these numbers", raw.op);
        let subject = SqlSubject::Operator { sign: raw.op.to_string(), arguments };
        carried(parsing_error(text).with_sqlstate("42883").about(subject))
    };
    let planned = if left.is_integer() && right.is_integer() {
        of_whole(&raw.op, args)
    } else if left.is_floating() || right.is_floating() {
        of_floats(&raw.op, args)
    } else {
        return of_decimals(raw, args, &left, &right).ok_or_else(missing);
    };
    planned.map(Some).ok_or_else(missing)
}

/// Untyped parameters are texts if they are compared with each other, or concatenated.
fn of_texts(raw: &RawBinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    use datafusion::logical_expr::{BinaryExpr, Operator};
    let operator = match raw.op {
        BinaryOperator::StringConcat => Operator::StringConcat,
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    };
    // The other operand of such a concatenation is a text, or is converted to one.
    let is_plain =
        |data_type: &DataType| data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean;
    let is_joined = |other: &DataType| operator == Operator::StringConcat && is_plain(other);
    let (left, right) = match (is_open(&raw.left), is_open(&raw.right)) {
        (true, true) => (as_other(&raw.left, &DataType::Utf8View)?, as_other(&raw.right, &DataType::Utf8View)?),
        (true, false) if is_joined(right) => (as_other(&raw.left, &DataType::Utf8View)?, raw.right.clone()),
        (false, true) if is_joined(left) => (raw.left.clone(), as_other(&raw.right, &DataType::Utf8View)?),
        _ => return None,
    };
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: operator, right: Box::new(right) }))
}

/// A literal as a 32-bit integer, if that is its type.
fn narrowed(operand: Expr, data_type: &DataType) -> Expr {
    match (operand, data_type) {
        (Expr::Literal(ScalarValue::Int64(Some(number)), metadata), DataType::Int32) => match i32::try_from(number) {
            Ok(number) => Expr::Literal(ScalarValue::Int32(Some(number)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(number)), metadata),
        },
        (operand, _) => operand,
    }
}

fn of_whole(op: &BinaryOperator, args: Vec<Expr>) -> Option<Expr> {
    let name = match op {
        BinaryOperator::Plus => "whole_add",
        BinaryOperator::Minus => "whole_subtract",
        BinaryOperator::Multiply => "whole_multiply",
        BinaryOperator::Divide => "whole_divide",
        BinaryOperator::Modulo => "whole_modulo",
        BinaryOperator::PGExp => "power",
        BinaryOperator::BitwiseAnd => "whole_and",
        BinaryOperator::BitwiseOr => "whole_or",
        BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => "whole_xor",
        BinaryOperator::PGBitwiseShiftLeft => "shift_left",
        BinaryOperator::PGBitwiseShiftRight => "shift_right",
        _ => return None,
    };
    call(name, args)
}

fn of_floats(op: &BinaryOperator, args: Vec<Expr>) -> Option<Expr> {
    let name = match op {
        BinaryOperator::Plus => "float_add",
        BinaryOperator::Minus => "float_subtract",
        BinaryOperator::Multiply => "float_multiply",
        BinaryOperator::Divide => "float_divide",
        BinaryOperator::PGExp => "power",
        _ => return None,
    };
    call(name, args)
}

/// Sums and differences use DataFusion, and so do products if their type exists.
fn of_decimals(raw: &RawBinaryExpr, args: Vec<Expr>, left: &DataType, right: &DataType) -> Option<Option<Expr>> {
    let name = match raw.op {
        BinaryOperator::Plus => return sum(args, left, right, "+"),
        BinaryOperator::Minus => return sum(args, left, right, "-"),
        BinaryOperator::Multiply => {
            let scale = i32::from(scale_of(left).unwrap_or(0)) + i32::from(scale_of(right).unwrap_or(0));
            if scale < QUOTIENT_SCALE.into() {
                return sum(args, left, right, "*");
            }
            "numeric_multiply"
        }
        BinaryOperator::Divide => "numeric_divide",
        BinaryOperator::Modulo => "numeric_modulo",
        BinaryOperator::PGExp => "power",
        _ => return None,
    };
    call(name, args).map(Some)
}

/// An operator of DataFusion over 256-bit decimals, which leave room for the result.
fn sum(args: Vec<Expr>, left: &DataType, right: &DataType, sign: &str) -> Option<Option<Expr>> {
    use datafusion::logical_expr::{BinaryExpr, Operator};
    let operator = match sign {
        "+" => Operator::Plus,
        "-" => Operator::Minus,
        _ => Operator::Multiply,
    };
    let digits = |data_type: &DataType| match data_type {
        DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _) => u32::from(*precision),
        DataType::Int16 => 5,
        DataType::Int32 => 10,
        _ => 20,
    };
    let scale = |data_type: &DataType| scale_of(data_type).unwrap_or(0);
    let behind = |data_type: &DataType| u32::from(scale(data_type).unsigned_abs());
    let before = |data_type: &DataType| digits(data_type).saturating_sub(behind(data_type));
    let needed = match sign {
        "*" => digits(left) + digits(right) + 1,
        _ => before(left).max(before(right)) + behind(left).max(behind(right)) + 1,
    };
    let widened = |operand: Expr, data_type: &DataType| match needed {
        // The smaller type has enough digits.
        ..=38 if matches!(data_type, DataType::Decimal128(..)) => operand,
        ..=38 => cast(operand, DataType::Decimal128(u8::try_from(digits(data_type)).unwrap_or(38), 0)),
        _ if matches!(data_type, DataType::Decimal256(..)) => operand,
        _ => cast(operand, DataType::Decimal256(u8::try_from(digits(data_type)).unwrap_or(76), scale(data_type))),
    };
    let mut args = args.into_iter();
    let (first, second) = (args.next()?, args.next()?);
    Some(Some(Expr::BinaryExpr(BinaryExpr {
        left: Box::new(widened(first, left)),
        op: operator,
        right: Box::new(widened(second, right)),
    })))
}
