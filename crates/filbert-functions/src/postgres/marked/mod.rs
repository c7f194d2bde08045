//! PostgreSQL types that Arrow lacks, for expressions that return one of several values.
//!
//! Such a type is an entry in a field's metadata. DataFusion keeps it for columns, and drops it for
//! `CASE`, `coalesce` and similar expressions. One pass over a plan restores it by PostgreSQL's
//! rules: it wraps the expression in an identity function, and the field of its result has the
//! metadata. It does so only for these types; plain columns stay unchanged.
//!
//! A fixed-length text is stored without trailing blanks, and padded when it leaves the engine.
//! Where texts of different lengths are combined, each of them is padded there.

mod function;
pub mod operand;
mod pass;
mod rows;

use std::collections::HashMap;

use arrow_schema::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::functions::{string, unicode};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use filbert_dialect::calls::{ARRAY_LIKE, OPERAND};

use super::operators::call;
use crate::choices;
use crate::types::{BPCHAR, JSONB, Length, Mark, VARCHAR, is_vector};

pub(super) use function::{functions, marked_as, untold};
pub use pass::mark_types;

/// Functions with arguments of one type, which is the type of the result.
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "greatest", "least", "nvl", "ifnull"];
/// The function that makes an array of its arguments.
const ARRAY: &str = "make_array";
/// Functions that return an element of their first argument.
const ITEMS: [&str; 2] = ["array_item", "array_item_of_two"];
/// Functions that return an array like their first argument.
const SECTIONS: [&str; 2] = ["array_section", "trim_array"];
/// The function that returns an array with copies of its first argument.
const FILLED: &str = "array_fill";
/// Functions of arrays and elements with a common type, which the resulting array has.
const TOGETHER: [&str; 5] = ["array_append", "array_cat", "array_prepend", "array_remove", "array_replace"];

/// The type of an expression, if Arrow lacks it; `None` if any type matches: for NULL and string
/// literals.
pub(crate) fn mark_of(expression: &Expr, schema: &DFSchema) -> Option<Mark> {
    if let Expr::ScalarFunction(call) = expression
        && let Some(case) = choices::case_of(call)
    {
        return mark_of(&Expr::Case(case), schema);
    }
    match expression {
        Expr::Alias(alias) => mark_of(&alias.expr, schema),
        Expr::Literal(scalar, None) if scalar.is_null() || scalar.try_as_str().is_some() => None,
        Expr::Placeholder(placeholder) => {
            let mark = Mark::of(placeholder.field.as_ref()?);
            // A parameter value keeps its own blanks.
            let length = if mark.oid == Some(BPCHAR) { Length::Own } else { Length::Unknown };
            Some(Mark { length, ..mark })
        }
        Expr::ScalarFunction(call) if call.func.name() == OPERAND => operand::mark_of_call(call, schema),
        Expr::Cast(cast) => Some(Mark::of(&cast.field)),
        Expr::TryCast(cast) => Some(Mark::of(&cast.field)),
        Expr::ScalarFunction(call) if TOGETHER.contains(&call.func.name()) => {
            let items = call.args.iter().filter_map(|arg| mark_of_items(arg, schema));
            Some(items.reduce(both).unwrap_or_default().of_array())
        }
        Expr::ScalarFunction(call) if call.func.name() == FILLED => {
            Some(call.args.first().and_then(|item| mark_of(item, schema)).unwrap_or_default().of_array())
        }
        Expr::ScalarFunction(call) if is_of_array(call) => {
            let array = call.args.first().and_then(|array| mark_of(array, schema)).unwrap_or_default();
            // What is made of a vector is a plain array.
            let array = if is_vector(array.oid) { Mark::default() } else { array };
            Some(match ITEMS.contains(&call.func.name()) {
                // The subscript of a document selects a part of it.
                true if array.oid == Some(JSONB) => array,
                true => array.of_item(),
                false => array,
            })
        }
        _ => match branches(expression) {
            Some(branches) => {
                let common = common(&branches, schema);
                match expression {
                    // An expression with string literals only is a text.
                    _ if common.is_none() && branches.iter().any(|branch| is_text(branch)) => Some(Mark::default()),
                    Expr::ScalarFunction(call) if call.func.name() == ARRAY => common.map(Mark::of_array),
                    _ => common,
                }
            }
            None => Some(expression.to_field(schema).map_or_else(|_| Mark::default(), |(_, field)| Mark::of(&field))),
        },
    }
}

/// The field of an expression, with the type that Arrow lacks.
pub fn field_of(expression: &Expr, schema: &DFSchema) -> Option<Field> {
    let found = expression.get_type(schema).ok()?;
    let mark = mark_of(expression, schema).unwrap_or_default();
    Some(Field::new("", found, true).with_metadata(mark.metadata(HashMap::new())))
}

/// The field of the elements of an array, or of arrays within it.
pub(crate) fn field_of_items(array: &Expr, schema: &DFSchema) -> Option<Field> {
    let arrays = field_of(array, schema)?;
    let mut found = arrays.data_type();
    while let DataType::List(item) = found {
        found = item.data_type();
    }
    let mark = Mark::of(&arrays).of_item();
    Some(Field::new("", found.clone(), true).with_metadata(mark.metadata(HashMap::new())))
}

/// The type of an element, or of the elements of an array; `None` if any type matches, also for an
/// array literal in quotes.
fn mark_of_items(operand: &Expr, schema: &DFSchema) -> Option<Mark> {
    match operand {
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_LIKE && call.args.first().is_some_and(is_text) => None,
        _ if is_array(operand, schema) => mark_of(operand, schema).map(Mark::of_item),
        _ => mark_of(operand, schema),
    }
}

fn is_array(operand: &Expr, schema: &DFSchema) -> bool {
    matches!(operand.get_type(schema), Ok(DataType::List(_)))
}

/// Whether DataFusion gives an expression a field of another type.
pub(super) fn loses(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => loses(&alias.expr),
        Expr::Cast(_) | Expr::TryCast(_) => true,
        Expr::ScalarFunction(call) if call.func.name() == OPERAND => true,
        Expr::ScalarFunction(call) if is_of_array(call) || choices::case_of(call).is_some() => true,
        other => branches(other).is_some(),
    }
}

fn is_of_array(call: &ScalarFunction) -> bool {
    let name = call.func.name();
    ITEMS.contains(&name) || TOGETHER.contains(&name) || SECTIONS.contains(&name) || name == FILLED
}

/// The alternatives of an expression; `None` if it has a type of its own.
fn branches(expression: &Expr) -> Option<Vec<&Expr>> {
    match expression {
        Expr::Case(case) => {
            // As in PostgreSQL, ELSE determines the type first.
            let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            Some(case.else_expr.as_deref().into_iter().chain(results).collect())
        }
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) || call.func.name() == ARRAY => {
            Some(call.args.iter().collect())
        }
        _ => None,
    }
}

/// PostgreSQL's type for alternatives: texts have the type of the first one.
fn common(branches: &[&Expr], schema: &DFSchema) -> Option<Mark> {
    let marks = branches.iter().filter_map(|branch| mark_of(branch, schema));
    let mark = marks.reduce(both)?;
    let Length::Of(length) = mark.length else { return Some(mark) };
    let is_other = |branch: &&Expr| match branch {
        Expr::Literal(scalar, None) => scalar.try_as_str().flatten().is_some_and(|text| !is_of_length(text, length)),
        _ => false,
    };
    Some(if branches.iter().any(is_other) { Mark { length: Length::Own, ..mark } } else { mark })
}

fn is_of_length(text: &str, length: u32) -> bool {
    u32::try_from(text.chars().count()) == Ok(length)
}

fn both(first: Mark, second: Mark) -> Mark {
    let own = |mark: Mark| Mark { length: Length::Own, ..mark };
    match (first, second) {
        _ if first == second => first,
        _ if first.is_of_texts() && (second == Mark::default() || second.is_of_texts()) => first,
        _ if !first.is_of_text() || !second.is_of_text() => Mark::default(),
        _ if first.oid == Some(BPCHAR) => own(first),
        _ if first.oid == Some(VARCHAR) && second.oid != Some(19) => first,
        _ => Mark::default(),
    }
}

/// Whether it is a string literal.
fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(scalar, _) if scalar.try_as_str().flatten().is_some())
}

/// A text of a type (any type if `None`) as one of the wanted type; the flag says whether the
/// expression changed.
fn as_one_of(text: Expr, mark: Option<Mark>, wanted: Mark) -> (Expr, bool) {
    let function = match mark {
        None if wanted.is_uuid() => Some("cast_uuid"),
        None if wanted.oid == Some(JSONB) => Some("cast_jsonb"),
        None if wanted.is_json() => Some("cast_json_document"),
        _ => None,
    };
    if let Some(converted) = function.and_then(|function| call(function, vec![text.clone()])) {
        return (converted, true);
    }
    // An array of fixed-length texts as an array of text.
    let has_fixed_items = |mark: Mark| mark.of_item().oid == Some(BPCHAR);
    if mark.is_some_and(has_fixed_items)
        && !has_fixed_items(wanted)
        && let Some(converted) = without_blanks_of_items(&text)
    {
        return (converted, true);
    }
    match (mark, wanted.length) {
        (None, Length::Of(_)) => (rtrim(text), true),
        (Some(Mark { length: Length::Of(length), .. }), Length::Own) => (filled(text, length), true),
        (Some(Mark { length: Length::Own, .. }), Length::Unknown) => (rtrim(text), true),
        _ => (text, false),
    }
}

/// Pads a text with the blanks that are not stored.
fn filled(text: Expr, length: u32) -> Expr {
    unicode::rpad().call(vec![text, lit(i64::from(length))])
}

fn rtrim(text: Expr) -> Expr {
    string::rtrim().call(vec![text])
}

/// A text without insignificant blanks, with its type.
fn trimmed(text: Expr) -> Expr {
    marked_as(rtrim(text), Mark::of_oid(BPCHAR, Length::Unknown))
}

/// The arguments of functions of arrays and elements in their common type: fixed-length texts are
/// padded or trimmed. `None` if nothing changes.
fn as_of_one(function: &ScalarFunction, schema: &DFSchema) -> Option<Vec<Expr>> {
    let concerned = match function.func.name() {
        FILLED => 1,
        name if TOGETHER.contains(&name) => function.args.len(),
        _ => 0,
    };
    let result = function.args.iter().take(concerned).filter_map(|arg| mark_of_items(arg, schema)).reduce(both)?;
    let mut is_changed = false;
    let args = function.args.iter().enumerate().map(|(at, arg)| {
        let Some(mark) = mark_of_items(arg, schema).filter(|_| at < concerned) else { return arg.clone() };
        let converted = match (result.oid == Some(BPCHAR), mark.oid == Some(BPCHAR), mark.length) {
            (true, true, Length::Of(length)) => Some(filled(arg.clone(), length)),
            (false, true, Length::Own) if is_array(arg, schema) => without_blanks_of_items(arg),
            _ => None,
        };
        is_changed |= converted.is_some();
        converted.unwrap_or_else(|| arg.clone())
    });
    let args: Vec<Expr> = args.collect();
    is_changed.then_some(args)
}

/// An array of fixed-length texts as an array of text.
fn without_blanks_of_items(array: &Expr) -> Option<Expr> {
    call("array_without_blanks", vec![array.clone()])
}

/// Whether its values have insignificant trailing blanks.
fn has_blanks(expression: &Expr, schema: &DFSchema) -> bool {
    mark_of(expression, schema).is_some_and(|mark| mark.length == Length::Own)
}
