//! The types of the arguments of PostgreSQL's functions of texts, bytes and arrays, and of the
//! operators that match a text with a pattern.
//!
//! A UUID, a document, a number or a timestamp is no text: it needs a cast. The declarations of
//! [`crate::native`] say how arguments are read, in every dialect; the table here says which types
//! PostgreSQL allows. Functions that are not listed check their arguments themselves.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Like, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::super::row::text_of;
use super::operands::{alike, known, named};
use super::operators::Kind;
use crate::error::{carried, parsing_error};

/// The types that an argument may have. A string literal and NULL match each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument {
    /// `text`, `varchar` or `char`.
    Text,
    /// A text or `bytea`.
    TextOrBytes,
    /// `bytea`.
    Bytes,
    /// A whole number.
    Whole,
    /// A text or a whole number.
    TextOrWhole,
    /// An array. System relations have arrays that are written as texts.
    Array,
    /// Any type.
    Any,
}

use Argument::{Any, Array, Bytes, Text, TextOrBytes, TextOrWhole, Whole};

/// Functions with their arguments. The last argument stands for all further ones.
const FUNCTIONS: &[(&str, &[Argument])] = &[
    ("array_dims", &[Array]),
    ("array_length", &[Array, Whole]),
    ("array_lower", &[Array, Whole]),
    ("array_ndims", &[Array]),
    ("array_to_string", &[Array, Text]),
    ("array_upper", &[Array, Whole]),
    ("ascii", &[Text]),
    ("bit_length", &[TextOrBytes]),
    ("btrim", &[TextOrBytes]),
    ("cardinality", &[Array]),
    ("char_length", &[Text]),
    ("character_length", &[TextOrBytes]),
    ("chr", &[Whole]),
    ("concat_ws", &[Text, Any]),
    ("convert_from", &[Bytes, Text]),
    ("convert_to", &[Text]),
    ("decode", &[Text]),
    ("encode", &[Bytes, Text]),
    ("format", &[Text, Any]),
    ("generate_subscripts", &[Array, Whole]),
    ("get_byte", &[Bytes, Whole]),
    ("initcap", &[Text]),
    ("left", &[Text, Whole]),
    ("length", &[TextOrBytes]),
    ("lower", &[Text]),
    ("lpad", &[Text, Whole, Text]),
    ("ltrim", &[TextOrBytes]),
    ("md5", &[TextOrBytes]),
    ("octet_length", &[TextOrBytes]),
    ("overlay", &[TextOrBytes, TextOrBytes, Whole]),
    ("quote_ident", &[Text]),
    ("regexp_count", &[Text, Text, Whole, Text]),
    ("regexp_instr", &[Text, Text, Whole, Whole, Whole, Text, Whole]),
    ("regexp_like", &[Text]),
    ("regexp_match", &[Text]),
    ("regexp_matches", &[Text]),
    ("regexp_replace", &[Text, Text, Text, TextOrWhole, TextOrWhole, Text]),
    ("regexp_split_to_array", &[Text]),
    ("regexp_split_to_table", &[Text]),
    ("regexp_substr", &[Text, Text, Whole, Whole, Text, Whole]),
    ("repeat", &[Text, Whole]),
    ("replace", &[Text]),
    ("reverse", &[Text]),
    ("right", &[Text, Whole]),
    ("rpad", &[Text, Whole, Text]),
    ("rtrim", &[TextOrBytes]),
    ("set_byte", &[Bytes, Whole]),
    ("sha224", &[Bytes]),
    ("sha256", &[Bytes]),
    ("sha384", &[Bytes]),
    ("sha512", &[Bytes]),
    ("split_part", &[Text, Text, Whole]),
    ("starts_with", &[Text]),
    ("string_to_array", &[Text]),
    ("string_to_table", &[Text]),
    ("strpos", &[TextOrBytes]),
    ("substr", &[TextOrBytes, Whole]),
    ("substring", &[TextOrBytes, TextOrWhole, TextOrWhole]),
    ("to_date", &[Text]),
    ("to_hex", &[Whole]),
    ("to_number", &[Text]),
    ("translate", &[Text]),
    ("trim_array", &[Array, Whole]),
    ("upper", &[Text]),
];

/// Functions of an array and an element, or of two arrays.
const OF_ARRAYS: [&str; 7] = [
    "array_append",
    "array_cat",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
];

/// Functions that stand for operators that match a text with a pattern: the symbol, and the
/// positions of the text and of the pattern. A function of one operand has the other one around it.
const OPERATORS: [(&str, &str, Option<usize>, Option<usize>); 5] = [
    ("escaped_pattern", "~~", None, Some(0)),
    ("lower_as_it_is", "~~*", Some(0), None),
    ("matches_each", "~", Some(0), None),
    ("similar_pattern", "~", None, Some(0)),
    ("text_matches", "~", Some(0), Some(1)),
];

/// Rejects a call with arguments of types that the function or operator is not defined for.
///
/// # Errors
/// The function or the operator does not exist; or the key of an object is no scalar value.
pub(super) fn check(call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    let name = call.func.name();
    let place = FUNCTIONS.binary_search_by_key(&name, |(name, _)| name);
    if let Some((_, arguments)) = place.ok().and_then(|at| FUNCTIONS.get(at)) {
        return check_arguments(name, &call.args, arguments, schema);
    }
    if OF_ARRAYS.contains(&name)
        && let [first, second, ..] = call.args.as_slice()
        && !are_of_one_array(first, second, schema)
    {
        return Err(undefined(name, &call.args, schema));
    }
    if name == "json_pair" && call.args.first().is_some_and(|key| is_compound(key, schema)) {
        return Err(super::refused("22023", "key value must be scalar, not array, composite, or json"));
    }
    match OPERATORS.iter().find(|(of, ..)| *of == name) {
        Some((_, sign, text, pattern)) => {
            let operand = |at: Option<usize>| at.and_then(|at| call.args.get(at));
            // The operator of a comparison with each pattern of an array is an argument.
            let sign = match call.args.get(2) {
                Some(Expr::Literal(given, _)) if name == "matches_each" => text_of(given).unwrap_or(sign),
                _ => sign,
            };
            check_match(sign, operand(*text), operand(*pattern), schema)
        }
        None => Ok(()),
    }
}

/// Rejects an operator that matches a text with a pattern, if one of them is no text. An operand
/// that is not given is one.
fn check_match(sign: &str, text: Option<&Expr>, pattern: Option<&Expr>, schema: &DFSchema) -> Result<()> {
    if [text, pattern].into_iter().flatten().all(|operand| fits(operand, Text, schema)) {
        return Ok(());
    }
    let named = |operand: Option<&Expr>| operand.map_or_else(|| "text".to_owned(), |operand| named(operand, schema));
    let message = format!("operator does not exist: {} {sign} {}", named(text), named(pattern));
    Err(carried(parsing_error(message).with_sqlstate("42883")))
}

/// Like [`check`], for `LIKE`.
pub(super) fn check_like(like: &Like, schema: &DFSchema) -> Result<()> {
    let sign = if like.case_insensitive { "~~*" } else { "~~" };
    check_match(sign, Some(&like.expr), Some(&like.pattern), schema)
}

/// Like [`check`], for `string_agg`.
pub(super) fn check_joined(call: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    check_arguments(call.func.name(), &call.params.args, &[TextOrBytes], schema)
}

fn check_arguments(name: &str, values: &[Expr], arguments: &[Argument], schema: &DFSchema) -> Result<()> {
    let of = |at: usize| arguments.get(at).or(arguments.last()).copied().unwrap_or(Any);
    if values.iter().enumerate().all(|(at, value)| fits(value, of(at), schema)) {
        return Ok(());
    }
    Err(undefined(name, values, schema))
}

/// Whether an array may contain an element, or another array.
fn are_of_one_array(first: &Expr, second: &Expr, schema: &DFSchema) -> bool {
    is_open(first, schema) || is_open(second, schema) || alike(first, second, schema)
}

/// Whether it is of any type, or an array that is made of a value of any type: it gets its type
/// later.
fn is_open(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        Expr::ScalarFunction(call) if OF_ARRAYS.contains(&call.func.name()) => {
            call.args.iter().any(|inner| is_open(inner, schema))
        }
        value => known(value, schema) == Kind::Unknown,
    }
}

fn undefined(name: &str, values: &[Expr], schema: &DFSchema) -> DataFusionError {
    let types: Vec<String> = values.iter().map(|value| named(value, schema)).collect();
    let message = format!("function {name}({}) does not exist", types.join(", "));
    carried(parsing_error(message).with_sqlstate("42883"))
}

/// Whether a value is no key of an object.
fn is_compound(value: &Expr, schema: &DFSchema) -> bool {
    match known(value, schema) {
        Kind::Array | Kind::Json | Kind::Jsonb => true,
        _ => value.get_type(schema).is_ok_and(|found| matches!(found, DataType::Struct(_))),
    }
}

fn fits(value: &Expr, argument: Argument, schema: &DFSchema) -> bool {
    match known(value, schema) {
        _ if argument == Any => true,
        Kind::Unknown => true,
        Kind::Text | Kind::Char => matches!(argument, Text | TextOrBytes | TextOrWhole | Array),
        Kind::Bytes => matches!(argument, Bytes | TextOrBytes),
        Kind::Array => argument == Array,
        Kind::Json | Kind::Jsonb | Kind::Uuid => false,
        Kind::Other => {
            let is_whole = value.get_type(schema).map_or(true, |found| found.is_integer());
            is_whole && matches!(argument, Whole | TextOrWhole)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use filbert_grid::query::Dialect;

    use super::*;
    use crate::native::taken_as;

    /// Functions that read documents as texts, and functions of rewritten expressions.
    const UNLISTED: &[&str] = &[
        "cast_cidr",
        "cast_inet",
        "json_array_elements",
        "json_array_elements_text",
        "json_each_names",
        "json_each_texts",
        "json_each_values",
        "json_extract_path",
        "json_extract_path_text",
        "json_get",
        "json_get_path",
        "json_get_path_text",
        "json_get_text",
        "json_object_keys",
        "json_strip_nulls",
        "jsonb_exists",
        "jsonb_extract_path",
        "jsonb_extract_path_text",
        "jsonb_to_boolean",
        "jsonb_to_number",
        "matches_each",
    ];

    #[test]
    fn arguments_that_are_read_as_texts_are_declared() {
        let mut others = BTreeSet::new();
        for function in super::super::functions(Dialect::Postgres) {
            let listed = FUNCTIONS.iter().find(|(name, _)| *name == function.name());
            for at in 0..8 {
                let declared = listed.and_then(|(_, arguments)| arguments.get(at).or(arguments.last()).copied());
                let is_as_read = match taken_as(&function, at) {
                    Some(DataType::Utf8View) => declared == Some(Text),
                    Some(DataType::Int32) => declared.is_none_or(|declared| declared == Whole),
                    _ => true,
                };
                if !is_as_read {
                    others.insert(function.name().to_owned());
                }
            }
        }
        assert_eq!(others.iter().map(String::as_str).collect::<Vec<_>>(), UNLISTED);
    }

    #[test]
    fn names_are_in_order() {
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| name));
        assert!(FUNCTIONS.iter().all(|(_, arguments)| !arguments.is_empty()));
    }
}
