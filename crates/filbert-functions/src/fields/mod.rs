//! Members of objects: CrateDB's `object['member']`. The type of a member is known only from its
//! value.
//!
//! A member with a declared type has that type. Any other member is an *untyped field*: a JSON
//! value, marked in the metadata of its column, which front doors return unchanged. The expression
//! around it determines its type (`resolve`): beside a number it is a number, beside a text a text.
//! A result computed from untyped fields is untyped again.
//!
//! ```text
//!  object['a'] > 5     dialect: object_get(object, 'a') > 5
//!                      planner: compare(>, object_get(..), 5)
//!  ORDER BY object['a']   rule: ORDER BY key(object_get(..))
//! ```

mod arithmetic;
mod function;
mod read;
mod resolve;
mod rule;
mod scalar;
mod set;
mod totals;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{AggregateUDF, Expr, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use function::What;

pub use read::value_of_field;
pub use rule::Fields;
pub(super) use totals::Summed;

/// The functions that statements are rewritten to.
pub(super) fn functions() -> Vec<ScalarUDF> {
    [What::Get, What::Set, What::Plain, What::Number, What::Truth, What::Has].map(What::udf).to_vec()
}

/// The aggregates that statements are rewritten to.
pub(super) fn aggregates() -> Vec<AggregateUDF> {
    totals::aggregates()
}

/// An operator with an untyped operand; `None` if no operand is untyped.
pub(super) fn binary(left: &Expr, op: &BinaryOperator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let op = match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::And => Operator::And,
        BinaryOperator::Or => Operator::Or,
        BinaryOperator::StringConcat => Operator::StringConcat,
        BinaryOperator::PGRegexMatch => Operator::RegexMatch,
        BinaryOperator::PGRegexIMatch => Operator::RegexIMatch,
        BinaryOperator::PGRegexNotMatch => Operator::RegexNotMatch,
        BinaryOperator::PGRegexNotIMatch => Operator::RegexNotIMatch,
        BinaryOperator::PGLikeMatch => Operator::LikeMatch,
        BinaryOperator::PGILikeMatch => Operator::ILikeMatch,
        BinaryOperator::PGNotLikeMatch => Operator::NotLikeMatch,
        BinaryOperator::PGNotILikeMatch => Operator::NotILikeMatch,
        _ => return None,
    };
    resolve::binary(left, op, right, schema)
}
