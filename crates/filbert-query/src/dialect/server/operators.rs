//! Operators that are functions here.

use datafusion::sql::sqlparser::ast::BinaryOperator;

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
