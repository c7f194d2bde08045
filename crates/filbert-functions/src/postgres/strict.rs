//! Strict functions: the result is NULL if an argument is NULL.
//!
//! PostgreSQL makes NULL of a call of such a function with a constant NULL while it plans, so the
//! other arguments are not computed, and cannot fail.

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, ScalarUDF};

/// The strict functions of values that PostgreSQL 15 has (`pg_proc.proisstrict`, in all forms of a
/// name), in alphabetical order.
const FUNCTIONS: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "age",
    "array_dims",
    "array_length",
    "array_lower",
    "array_ndims",
    "array_to_json",
    "array_upper",
    "ascii",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bit_length",
    "btrim",
    "cardinality",
    "cbrt",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "chr",
    "convert_from",
    "convert_to",
    "cos",
    "cosh",
    "cot",
    "date_bin",
    "date_part",
    "date_trunc",
    "decode",
    "degrees",
    "div",
    "encode",
    "exp",
    "extract",
    "factorial",
    "floor",
    "gcd",
    "get_byte",
    "initcap",
    "isfinite",
    "json_array_length",
    "json_object",
    "json_typeof",
    "jsonb_array_length",
    "jsonb_concat",
    "jsonb_contains",
    "jsonb_delete",
    "jsonb_delete_path",
    "jsonb_exists",
    "jsonb_exists_all",
    "jsonb_exists_any",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_path_exists",
    "jsonb_path_match",
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_pretty",
    "jsonb_set",
    "jsonb_strip_nulls",
    "jsonb_typeof",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "lcm",
    "left",
    "length",
    "ln",
    "log",
    "log10",
    "lower",
    "lpad",
    "ltrim",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "make_timestamptz",
    "md5",
    "min_scale",
    "mod",
    "octet_length",
    "overlay",
    "position",
    "pow",
    "power",
    "quote_ident",
    "quote_literal",
    "radians",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_substr",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_to_json",
    "rpad",
    "rtrim",
    "scale",
    "set_byte",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "sign",
    "sin",
    "sinh",
    "split_part",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "tan",
    "tanh",
    "timezone",
    "to_char",
    "to_date",
    "to_hex",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_timestamp",
    "translate",
    "trim_array",
    "trim_scale",
    "trunc",
    "upper",
    "width_bucket",
];

/// The functions that operators are planned as, in alphabetical order.
const OPERATORS: &[&str] = &[
    "array_contains",
    "array_overlaps",
    "dates_divide",
    "dates_minus",
    "dates_plus",
    "dates_times",
    "escaped_pattern",
    "joined_texts",
    "json_get",
    "json_get_path",
    "json_get_path_text",
    "json_get_text",
    "like_parts",
    "lower_as_it_is",
    "similar_pattern",
    "text_matches",
];

/// An expression of PostgreSQL's dialect with NULL in place of its calls of strict functions with
/// a constant NULL. Types must be coerced.
///
/// # Errors
/// Those of DataFusion's traversal of expressions; none is known.
pub fn without_null_calls(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expression.transform_up(|inner| {
        let is_null = match &inner {
            Expr::ScalarFunction(call) => is_strict(&call.func) && call.args.iter().any(is_null),
            _ => false,
        };
        let field = if is_null { inner.to_field(schema).ok() } else { None };
        let null = field.and_then(|(_, field)| {
            let null = ScalarValue::try_from(field.data_type()).ok()?;
            Some(Expr::Literal(null, Some(FieldMetadata::new_from_field(&field))))
        });
        Ok(null.map_or_else(|| Transformed::no(inner), Transformed::yes))
    })
}

fn is_strict(function: &ScalarUDF) -> bool {
    let name = function.name();
    FUNCTIONS.binary_search(&name).is_ok() || OPERATORS.binary_search(&name).is_ok()
}

/// Whether an expression is NULL, of any type.
fn is_null(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(scalar, _) => scalar.is_null(),
        Expr::Cast(Cast { expr, .. }) => is_null(expr),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(FUNCTIONS.is_sorted() && OPERATORS.is_sorted());
    }
}
