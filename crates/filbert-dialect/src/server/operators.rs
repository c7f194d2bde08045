//! Operators that are functions here, fields of rows, and operands that do not tell their type.

use filbert_grid::query::Dialect;
use sqlparser::ast::{AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Value, ValueWithSpan};

use super::super::json::{call, text};
use super::values::{cast, written_array};
use crate::calls::{ARRAY_LIKE, COMPARE_ALL, COMPARE_ANY};

/// Whether an expression does not say of which type it is: a parameter, a text in quotes.
pub(super) fn is_untyped(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_untyped(inner),
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_) | Value::SingleQuotedString(_), .. }) => true,
        _ => false,
    }
}

/// The operator of a sign within `OPERATOR(..)`.
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

/// The function that an operator on JSON documents is.
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
pub(super) fn quantified(left: &Expr, op: &BinaryOperator, right: &Expr, is_any: bool, of: Dialect) -> Option<Expr> {
    let mut array = right;
    while let Expr::Nested(inner) = array {
        array = inner;
    }
    if matches!(array, Expr::Subquery(_)) {
        return None;
    }
    let negated = match (op, is_any) {
        (BinaryOperator::Eq, true) => Some(false),
        (BinaryOperator::NotEq, false) => Some(true),
        _ => None,
    };
    // Items that are written out are a list, which indexes serve.
    if let (Some(negated), Expr::Array(items)) = (negated, array)
        && !items.elem.is_empty()
        && !items.elem.iter().any(|item| matches!(item, Expr::Array(_)))
    {
        // In PostgreSQL an array of texts in quotes alone is one of `text`, whatever it is compared with.
        let are_texts = of == Dialect::Postgres && are_quoted(&items.elem);
        let item = |item: &Expr| if are_texts { cast(item.clone(), DataType::Text) } else { item.clone() };
        let list = items.elem.iter().map(item).collect();
        return Some(Expr::InList { expr: Box::new(left.clone()), list, negated });
    }
    let array = match is_untyped(array) {
        true => call(ARRAY_LIKE, vec![array.clone(), left.clone()], Vec::new(), None),
        false => array.clone(),
    };
    let sign = match op {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        _ => return None,
    };
    let function = if is_any { COMPARE_ANY } else { COMPARE_ALL };
    Some(call(function, vec![text(sign), left.clone(), array], Vec::new(), None))
}

/// `text LIKE ANY (array)`, `text ~ ALL (array)` and the like over an array that is written out, as the matches with each item, and
/// whether one of them is enough; `None` for all else.
pub(super) fn matches_with_each(expression: &Expr) -> Option<(Vec<Expr>, bool)> {
    match expression {
        Expr::Like { any: true, negated, expr, pattern, escape_char } => {
            let like = |pattern| Expr::Like {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(pattern),
                escape_char: escape_char.clone(),
            };
            Some((written_items(pattern)?.into_iter().map(like).collect(), true))
        }
        Expr::ILike { any: true, negated, expr, pattern, escape_char } => {
            let like = |pattern| Expr::ILike {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(pattern),
                escape_char: escape_char.clone(),
            };
            Some((written_items(pattern)?.into_iter().map(like).collect(), true))
        }
        Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right }
            if sign_of(compare_op).is_some() =>
        {
            let one = |item| Expr::BinaryOp { left: left.clone(), op: compare_op.clone(), right: Box::new(item) };
            let is_any = matches!(expression, Expr::AnyOp { .. });
            Some((written_items(right)?.into_iter().map(one).collect(), is_any))
        }
        _ => None,
    }
}

/// The same over an array that is computed: `matches_each(text, patterns, operator, whether one is enough)`; `None` for all else.
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

/// The sign of an operator that matches a text with a pattern.
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

/// The items of an array that is written out; `None` of one without items, and of all else.
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

/// Whether items of an array are texts in quotes, or such and nulls.
fn are_quoted(items: &[Expr]) -> bool {
    let is_quoted =
        |item: &Expr| matches!(item, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }));
    let is_null = |item: &Expr| matches!(item, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
    items.iter().any(is_quoted) && items.iter().all(|item| is_quoted(item) || is_null(item))
}

/// The fields of `(row).field.field`; `None` if it is not only those that are looked into.
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
