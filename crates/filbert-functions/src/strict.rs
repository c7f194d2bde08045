//! Strict functions: the result is NULL if an argument is NULL.
//!
//! PostgreSQL makes NULL of a call of such a function with a constant NULL while it plans, so the
//! other arguments are not computed, and cannot fail. Here a function does so when DataFusion
//! simplifies it. An argument that is computed to a constant NULL counts as well.

use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, ReturnFieldArgs, ScalarUDF};
use datafusion::prelude::SessionContext;
use filbert_grid::query::Dialect;

use super::around::{Around, around};
use crate::context::dialect_of_options;

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
    "json_strip_nulls",
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

/// Strict functions that operators are planned as, in alphabetical order.
const OPERATORS: &[&str] = &[
    "array_contains",
    "array_overlaps",
    "dates_divide",
    "dates_minus",
    "dates_plus",
    "dates_times",
    "escaped_pattern",
    "json_get",
    "json_get_path",
    "json_get_path_text",
    "json_get_text",
    "lower_as_it_is",
    "similar_pattern",
    "text_matches",
];

/// Whether a function is strict: one of PostgreSQL's, or one that operators are planned as.
pub(super) fn is_strict(name: &str) -> bool {
    FUNCTIONS.binary_search(&name).is_ok() || OPERATORS.binary_search(&name).is_ok()
}

/// NULL in place of a call of a strict function with a constant NULL, in PostgreSQL's dialect.
/// `field` returns the field of the call.
///
/// # Errors
/// An argument has no type.
pub(super) fn simplified(
    args: Vec<Expr>,
    info: &SimplifyContext,
    field: impl FnOnce(ReturnFieldArgs<'_>) -> Result<FieldRef>,
) -> Result<ExprSimplifyResult> {
    if !args.iter().any(is_null) || dialect_of_options(info.config_options()) != Dialect::Postgres {
        return Ok(ExprSimplifyResult::Original(args));
    }
    let fields = args.iter().map(|arg| Ok(arg.to_field(info.schema())?.1)).collect::<Result<Vec<_>>>()?;
    let literals = args.iter().map(|arg| match arg {
        Expr::Literal(scalar, _) => Some(scalar),
        _ => None,
    });
    let literals: Vec<_> = literals.collect();
    let field = field(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &literals })?;
    let metadata = FieldMetadata::new_from_field(&field);
    Ok(ExprSimplifyResult::Simplified(Expr::Literal(ScalarValue::try_from(field.data_type())?, Some(metadata))))
}

/// Whether an expression is NULL, of any type.
fn is_null(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(scalar, _) => scalar.is_null(),
        Expr::Cast(Cast { expr, .. }) => is_null(expr),
        _ => false,
    }
}

/// Wraps DataFusion's own strict functions.
pub(super) fn of_datafusion(context: &SessionContext) {
    let known = context.state();
    for name in FUNCTIONS {
        if let Some(inner) = known.scalar_functions().get(*name) {
            context.register_udf(around(Arc::clone(inner), Strict));
        }
    }
}

/// The wrapper of a strict function.
#[derive(Debug)]
struct Strict;

impl Around for Strict {
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match simplified(args, info, |args| inner.return_field_from_args(args))? {
            ExprSimplifyResult::Original(args) => inner.simplify(args, info),
            null => Ok(null),
        }
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
