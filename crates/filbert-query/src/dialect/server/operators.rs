//! Operators that are functions here, fields of rows, and operands that do not tell their type.

use datafusion::sql::sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Value, ValueWithSpan};

use super::super::json::{call, text};
use crate::functions::{ARRAY_LIKE, COMPARE_ALL, COMPARE_ANY};

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
pub(super) fn quantified(left: &Expr, op: &BinaryOperator, right: &Expr, is_any: bool) -> Option<Expr> {
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
        return Some(Expr::InList { expr: Box::new(left.clone()), list: items.elem.clone(), negated });
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
