//! Operators that become functions, fields of rows, and operands of unknown type.

use filbert_grid::query::{Dialect, SqlError};
use sqlparser::ast::{AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Value, ValueWithSpan};

use super::super::json::{call, text};
use super::values::{cast, written_array};
use crate::calls::{ARRAY_LIKE, COMPARE_ALL, COMPARE_ANY};
use crate::work;

/// Whether the type of an expression is unknown: a parameter or a string literal.
pub(super) fn is_untyped(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_untyped(inner),
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_) | Value::SingleQuotedString(_), .. }) => true,
        _ => false,
    }
}

/// The operator with a symbol within `OPERATOR(..)`.
pub(super) fn of_sign(sign: &str) -> Option<BinaryOperator> {
    Some(match sign {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        _ => return None,
    })
}

/// The function for an operator of JSON documents.
pub(super) fn function(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Arrow => "json_get",
        BinaryOperator::LongArrow => "json_get_text",
        BinaryOperator::HashArrow => "json_get_path",
        BinaryOperator::HashLongArrow => "json_get_path_text",
        _ => return None,
    })
}

/// `left <op> ANY (right)` or `ALL` over an array; `None` over a subquery.
///
/// # Errors
/// 54001: too much is copied.
pub(super) fn quantified(
    left: &Expr,
    op: &BinaryOperator,
    right: &Expr,
    is_any: bool,
    of: Dialect,
) -> Result<Option<Expr>, SqlError> {
    let mut array = right;
    while let Expr::Nested(inner) = array {
        array = inner;
    }
    if matches!(array, Expr::Subquery(_)) {
        return Ok(None);
    }
    let negated = match (op, is_any) {
        (BinaryOperator::Eq, true) => Some(false),
        (BinaryOperator::NotEq, false) => Some(true),
        _ => None,
    };
    // An `ARRAY[..]` constructor becomes a list, which indexes serve, unless string literals in it
    // take the type of its other elements.
    if let (Some(negated), Expr::Array(items)) = (negated, array)
        && !items.elem.is_empty()
        && !items.elem.iter().any(|item| matches!(item, Expr::Array(_)))
        && !(of == Dialect::Postgres && are_mixed(&items.elem))
    {
        // In PostgreSQL an array of string literals only is an array of `text`, whatever it is
        // compared with.
        let are_texts = of == Dialect::Postgres && are_quoted(&items.elem);
        let item = |item: &Expr| if are_texts { cast(item.clone(), DataType::Text) } else { item.clone() };
        let list = items.elem.iter().map(item).collect();
        return Ok(Some(Expr::InList { expr: Box::new(left.clone()), list, negated }));
    }
    let array = match is_untyped(array) {
        true => {
            work::copy(left)?;
            call(ARRAY_LIKE, vec![array.clone(), left.clone()], Vec::new(), None)
        }
        false => array.clone(),
    };
    let sign = match op {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        _ => return Ok(None),
    };
    let function = if is_any { COMPARE_ANY } else { COMPARE_ALL };
    Ok(Some(call(function, vec![text(sign), left.clone(), array], Vec::new(), None)))
}

/// `text LIKE ANY (array)`, `text ~ ALL (array)` and similar tests over an `ARRAY[..]` constructor,
/// as the tests of single elements; the flag says whether one match is enough. `None` for other
/// expressions.
///
/// # Errors
/// 54001: too much is copied.
pub(super) fn matches_with_each(expression: &Expr) -> Result<Option<(Vec<Expr>, bool)>, SqlError> {
    match expression {
        Expr::Like { any: true, negated, expr, pattern, escape_char } => {
            let like = |pattern| Expr::Like {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(pattern),
                escape_char: escape_char.clone(),
            };
            each_match(expr, written_items(pattern), like, true)
        }
        Expr::ILike { any: true, negated, expr, pattern, escape_char } => {
            let like = |pattern| Expr::ILike {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(pattern),
                escape_char: escape_char.clone(),
            };
            each_match(expr, written_items(pattern), like, true)
        }
        Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right }
            if sign_of(compare_op).is_some() =>
        {
            let one = |item| Expr::BinaryOp { left: left.clone(), op: compare_op.clone(), right: Box::new(item) };
            each_match(left, written_items(right), one, matches!(expression, Expr::AnyOp { .. }))
        }
        _ => Ok(None),
    }
}

/// The test of an operand with each element, which copies the operand.
fn each_match(
    operand: &Expr,
    items: Option<Vec<Expr>>,
    one: impl Fn(Expr) -> Expr,
    is_any: bool,
) -> Result<Option<(Vec<Expr>, bool)>, SqlError> {
    let Some(items) = items else { return Ok(None) };
    let matches = items.into_iter().map(|item| work::copy(operand).map(|()| one(item)));
    Ok(Some((matches.collect::<Result<_, _>>()?, is_any)))
}

/// The same over a computed array: `matches_each(text, patterns, operator, whether one is enough)`;
/// `None` for other expressions.
pub(super) fn matches_with_items(expression: &Expr) -> Option<Expr> {
    let (left, sign, right, is_any) = match expression {
        Expr::Like { any: true, negated, expr, pattern, escape_char: None } => {
            (expr, if *negated { "!~~" } else { "~~" }, pattern, true)
        }
        Expr::ILike { any: true, negated, expr, pattern, escape_char: None } => {
            (expr, if *negated { "!~~*" } else { "~~*" }, pattern, true)
        }
        Expr::AnyOp { left, compare_op, right, .. } => (left, sign_of(compare_op)?, right, true),
        Expr::AllOp { left, compare_op, right } => (left, sign_of(compare_op)?, right, false),
        _ => return None,
    };
    let mut array = right.as_ref();
    while let Expr::Nested(inner) = array {
        array = inner;
    }
    let patterns = match array {
        Expr::Subquery(_) => return None,
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) => {
            let texts = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None));
            cast(written_array(written, &DataType::Text)?, texts)
        }
        array => array.clone(),
    };
    let is_any = Expr::value(Value::Boolean(is_any));
    Some(call("matches_each", vec![left.as_ref().clone(), patterns, text(sign), is_any], Vec::new(), None))
}

/// The symbol of an operator that matches a text with a pattern.
fn sign_of(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        _ => return None,
    })
}

/// The elements of an `ARRAY[..]` constructor; `None` for an empty one and for other expressions.
fn written_items(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Nested(inner) => written_items(inner),
        Expr::Array(items) if !items.elem.is_empty() => Some(items.elem.clone()),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) => {
            let null = || Expr::value(Value::Null);
            let items = crate::arrays::items(written)?.into_iter();
            let items: Vec<Expr> = items.map(|item| item.map_or_else(null, |item| text(&item))).collect();
            (!items.is_empty()).then_some(items)
        }
        _ => None,
    }
}

/// Whether some elements of an array are string literals, and others are not.
fn are_mixed(items: &[Expr]) -> bool {
    items.iter().any(|item| are_quoted(std::slice::from_ref(item))) && !are_quoted(items)
}

/// Whether the elements of an array are string literals, possibly with nulls.
fn are_quoted(items: &[Expr]) -> bool {
    let is_quoted =
        |item: &Expr| matches!(item, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }));
    let is_null = |item: &Expr| matches!(item, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
    items.iter().any(is_quoted) && items.iter().all(|item| is_quoted(item) || is_null(item))
}

/// The fields of `(row).field.field`; `None` if the chain has other accesses.
pub(super) fn fields(root: &Expr, chain: &[AccessExpr]) -> Option<Vec<String>> {
    if !matches!(root, Expr::Nested(_) | Expr::Function(_)) {
        return None;
    }
    let field = |access: &AccessExpr| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.value.clone()),
        _ => None,
    };
    chain.iter().map(field).collect()
}
