//! Operators that are functions here, fields of rows, and operands that do not tell their type.

use datafusion::sql::sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Value, ValueWithSpan};

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
        BinaryOperator::Question => "json_has_key",
        _ => return None,
    })
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
