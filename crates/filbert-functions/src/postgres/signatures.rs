//! The types of the arguments of PostgreSQL's functions of texts, bytes and arrays, and of the
//! operators that match a text with a pattern.
//!
//! A UUID, a document, a number or a timestamp is no text: it needs a cast. Functions that are not
//! listed check their arguments themselves.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Like, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::operands::{alike, known, missing, named};
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
    ("regexp_replace", &[Text, Text, Text, TextOrWhole]),
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
    ("substr", &[TextOrBytes, TextOrWhole, TextOrWhole]),
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

/// Functions that stand for operators, with the symbol and the number of operands.
const OPERATORS: [(&str, &str, usize); 4] =
    [("escaped_pattern", "~~", 1), ("lower_as_it_is", "~~*", 1), ("similar_pattern", "~", 1), ("text_matches", "~", 2)];

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
    let Some((_, sign, operands)) = OPERATORS.iter().find(|(of, ..)| *of == name) else { return Ok(()) };
    match call.args.get(..*operands) {
        Some([operand]) if !fits(operand, Text, schema) => Err(missing(operand, sign, operand, schema)),
        Some([text, pattern]) if !fits(text, Text, schema) || !fits(pattern, Text, schema) => {
            Err(missing(text, sign, pattern, schema))
        }
        _ => Ok(()),
    }
}

/// Like [`check`], for `LIKE`.
pub(super) fn check_like(like: &Like, schema: &DFSchema) -> Result<()> {
    let sign = if like.case_insensitive { "~~*" } else { "~~" };
    match [&like.expr, &like.pattern].iter().all(|operand| fits(operand, TextOrBytes, schema)) {
        true => Ok(()),
        false => Err(missing(&like.expr, sign, &like.pattern, schema)),
    }
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
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| name));
        assert!(FUNCTIONS.iter().all(|(_, arguments)| !arguments.is_empty()));
    }
}
