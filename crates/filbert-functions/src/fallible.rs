//! Which expressions can fail for some operands: divisions, narrowing casts, most functions.
//!
//! A function that is not known here counts as one that can fail.

use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};

/// How DataFusion begins the name of a column for an expression that occurs several times
/// (`common_sub_expression_eliminate`). The expression could fail or not.
const REPEATED: &str = "__common_expr";

/// Whether the evaluation of an expression can fail for some rows with this schema.
pub fn can_fail(expression: &Expr, schema: &DFSchema) -> bool {
    expression.exists(|inner| Ok(is_partial(inner, schema))).unwrap_or(true)
}

/// Whether the operation itself can fail; its operands are not considered.
pub(crate) fn is_partial(expression: &Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => match op {
            // Decimals and doubles hardly overflow. In long sums the right operand is short.
            Operator::Plus | Operator::Minus | Operator::Multiply => {
                !right.get_type(schema).is_ok_and(|of| of.is_decimal() || of.is_floating())
            }
            Operator::Divide | Operator::Modulo => !is_divisor(right),
            Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
            | Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch => !is_constant(right),
            _ => false,
        },
        Expr::Like(like) | Expr::SimilarTo(like) => !is_constant(&like.pattern),
        Expr::Negative(_) => true,
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema);
            !from.is_ok_and(|from| always_fits(&from, cast.field.data_type()))
        }
        Expr::ScalarFunction(function) => is_partial_function(&function.func, &function.args),
        // Conditions have one order, whether an operand that they share is computed once or not.
        Expr::Column(column) => column.name.starts_with(REPEATED),
        _ => false,
    }
}

fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(..) => true,
        Expr::Alias(alias) => is_constant(&alias.expr),
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}

/// Whether an operand is a constant divisor that never fails: neither 0 nor -1, with which the
/// smallest number overflows.
fn is_divisor(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(value, _) => value
            .cast_to(&DataType::Float64)
            .is_ok_and(|number| matches!(number, ScalarValue::Float64(Some(number)) if number.abs() > 1.0)),
        Expr::Cast(cast) => is_divisor(&cast.expr),
        _ => false,
    }
}

/// Whether a type can hold all values of another type.
fn always_fits(from: &DataType, to: &DataType) -> bool {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8, Null, Utf8, Utf8View};
    let is_text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    match (from, to) {
        (from, to) if from == to || *from == Null || is_text(to) => true,
        (Int8, Int16 | Int32 | Int64) | (Int16, Int32 | Int64) | (Int32, Int64) | (Float32, Float64) => true,
        (Int8 | Int16 | Int32 | Int64, Float32 | Float64) => true,
        (Int8 | Int16 | Int32 | Int64, DataType::Decimal128(precision, scale)) => {
            i32::from(*precision) - i32::from(*scale) >= 19
        }
        (Int8 | Int16 | Int32 | Int64, DataType::Decimal256(precision, scale)) => {
            i32::from(*precision) - i32::from(*scale) >= 19
        }
        (
            DataType::Decimal128(precision, scale),
            DataType::Decimal128(wider, finer) | DataType::Decimal256(wider, finer),
        ) => finer >= scale && i32::from(*wider) - i32::from(*finer) >= i32::from(*precision) - i32::from(*scale),
        _ => false,
    }
}

/// Functions with a result for all arguments.
const TOTAL: [&str; 42] = [
    "array_length",
    "array_order",
    "ascii",
    "bit_length",
    "btrim",
    "cardinality",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "constant",
    "greatest",
    "initcap",
    "isfinite",
    "isnan",
    "joined_texts",
    "json_typeof",
    "jsonb_contains",
    "jsonb_exists",
    "jsonb_exists_all",
    "jsonb_exists_any",
    "jsonb_order",
    "jsonb_typeof",
    "kept",
    "least",
    "length",
    "lower",
    "ltrim",
    "md5",
    "nullif",
    "num_nonnulls",
    "num_nulls",
    "octet_length",
    "of_each_row",
    "position",
    "reverse",
    "rtrim",
    "starts_with",
    "strpos",
    "trim",
    "upper",
];

/// Functions with a result for all values of one argument, if the other arguments are constants.
const TOTAL_BUT_FOR_CONSTANTS: [&str; 6] =
    ["date_part", "date_trunc", "like_parts", "like_pattern", "text_matches", "extract"];

/// Whether a function fails for some arguments.
fn is_partial_function(function: &ScalarUDF, args: &[Expr]) -> bool {
    match function.name() {
        name if TOTAL.contains(&name) => false,
        name if TOTAL_BUT_FOR_CONSTANTS.contains(&name) => args.iter().filter(|arg| !is_constant(arg)).count() > 1,
        "whole_modulo" | "whole_divide" => !args.get(1).is_some_and(is_divisor),
        "whole_and" | "whole_or" | "whole_xor" | "whole_not" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use arrow_schema::{Field, Schema};
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    #[test]
    fn casts_that_always_fit_cannot_fail() {
        let schema = DFSchema::try_from(Schema::new(vec![Field::new("a", DataType::Int32, true)])).unwrap();
        let check = |input: Expr, expect: bool| {
            assert_eq!(can_fail(&input, &schema), expect, "{input}");
        };
        check(cast(col("a"), DataType::Int64), false);
        check(cast(col("a"), DataType::Int16), true);
        check(cast(col("a"), DataType::Utf8View), false);
        check(cast(col("a"), DataType::Decimal128(25, 4)), false);
        check(cast(col("a"), DataType::Decimal128(10, 4)), true);
        check(col("a") % lit(2), false);
        check(col("a") % lit(0), true);
    }
}
