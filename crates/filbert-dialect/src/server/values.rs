//! Rewrites patterns, casts and functions of values to function calls.
//!
//! | source | becomes |
//! |---|---|
//! | `a LIKE b ESCAPE e`, `a ~~ b` | `a LIKE escaped_pattern(b, e)`; a literal is converted here |
//! | `a ILIKE b` | `lower(a) LIKE lower(..)` |
//! | `a SIMILAR TO b ESCAPE e` | `text_matches(a, similar_pattern(b, e), '')` |
//! | `a ~ b`, `a ~* b` | `text_matches(a, b, '')`, `text_matches(a, b, 'i')` |
//! | `substring(a FROM b FOR c)`, `overlay(..)` | `substring(a, b, c)`, `overlay(a, b, c, d)` |
//! | `a[1]`, `a[1][2]` | `array_item(a, 1)`, `array_item_of_two(a, 1, 2)` |
//! | `a[1:2]`, `a[1:2][3]` | `array_section(a, 1, 2)`, `array_section(a, 1, 2, 1, 3)` |
//! | `a::varchar(3)`, `a::char(3)`, `a::bytea`, `a::jsonb` | `cast_varchar(a, 3)`, .. |
//! | `jsonb_agg(a ORDER BY b)` | `jsonb_array_of_items(array_agg(json_item(a) ORDER BY b))` |

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, BinaryOperator, CastKind, CharacterLength, DataType, DuplicateTreatment, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Subscript, TypedString,
    UnaryOperator, Value, ValueWithSpan, Values,
};

use super::super::json::{call, text};
use super::{dates, members, shifts, taken};
use crate::calls::{ARRAY_PART, CAST_ITEMS};
use crate::like::{escaped_pattern, lower};

/// The maximum length of a text in characters, as in PostgreSQL.
const LENGTH_MAX: u64 = 10_485_760;

/// Set-returning functions. Here they return arrays; the elements are the rows.
const OF_ROWS: [&str; 12] = [
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_object_keys",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

/// Functions for which a whole-number literal is an `integer`, as in PostgreSQL, and not the widest
/// type.
const OF_INTEGERS: [&str; 7] =
    ["array_append", "array_position", "array_positions", "array_prepend", "array_remove", "array_replace", "to_hex"];

/// Whether a function returns a set of rows with one column.
pub(super) fn is_of_rows(name: &str) -> bool {
    OF_ROWS.contains(&name)
}

/// Rewrites an expression of values, after its operands.
pub(super) fn rewrite(expression: &mut Expr, of: Dialect) -> Result<(), SqlError> {
    as_predicate(expression);
    match expression {
        Expr::Like { any: false, negated, expr, pattern, escape_char } => {
            let pattern = like_pattern(taken(pattern), escape_char.take(), false)?;
            *expression = like(*negated, taken(expr), pattern);
        }
        Expr::ILike { any: false, negated, expr, pattern, escape_char } => {
            let pattern = like_pattern(taken(pattern), escape_char.take(), true)?;
            let lower = call("lower_as_it_is", vec![taken(expr)], Vec::new(), None);
            *expression = like(*negated, lower, pattern);
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let escape = escape_of(escape_char.take())?.map(String::from).unwrap_or_default();
            let pattern = call("similar_pattern", vec![taken(pattern), text(&escape)], Vec::new(), None);
            *expression = matches(*negated, taken(expr), pattern, "");
        }
        Expr::BinaryOp { left, op, right } if regular(op).is_some() => {
            let (negated, options) = regular(op).unwrap_or_default();
            *expression = matches(negated, taken(left), taken(right), options);
        }
        Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
            // PostgreSQL's `substr` takes no pattern.
            let name = if *shorthand && of == Dialect::Postgres { "substr" } else { "substring" };
            let from = substring_from.take().map_or_else(|| number(1), |from| *from);
            let arguments = [Some(taken(expr)), Some(from), substring_for.take().map(|length| *length)];
            *expression = call(name, arguments.into_iter().flatten().collect(), Vec::new(), None);
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let first = [taken(expr), taken(overlay_what), taken(overlay_from)];
            let arguments = first.into_iter().chain(overlay_for.take().map(|length| *length)).collect();
            *expression = call("overlay", arguments, Vec::new(), None);
        }
        Expr::TypedString(TypedString { data_type, value, .. }) if cast_function(data_type, of).is_some() => {
            if let Some((function, length)) = cast_function(data_type, of) {
                let literal = Expr::Value(value.clone());
                *expression = call(function, with_length(literal, length), Vec::new(), None);
            }
        }
        Expr::Array(array) => array.elem.iter_mut().for_each(as_integer),
        Expr::Cast { expr, data_type: data_type @ DataType::Array(ArrayElemTypeDef::SquareBracket(..)), .. } => {
            if of == Dialect::Postgres {
                set_dimensions(expr, data_type);
            }
            let DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) = data_type else { return Ok(()) };
            let is_of_its_own = cast_function(item, of).is_some() || is_varchar(item);
            // Each element is cast separately.
            if let Expr::Array(array) = expr.as_mut() {
                for found in array.elem.iter_mut().filter(|found| !matches!(found, Expr::Array(_))) {
                    // Elements that are texts are cast already.
                    let is_cast = matches!(found, Expr::Cast { data_type, .. } if data_type == item.as_ref());
                    if !is_cast {
                        let element = match of == Dialect::Postgres && may_be_array(found) {
                            true => call(ARRAY_PART, vec![taken(found)], Vec::new(), None),
                            false => taken(found),
                        };
                        *found = cast(element, item.as_ref().clone());
                    }
                    rewrite(found, of)?;
                }
                // The array then has its type already. A cast of the whole array would lose it if
                // Arrow lacks the type.
                let is_flat = !array.elem.iter().any(|found| matches!(found, Expr::Array(_)));
                if is_of_its_own && is_flat && of == Dialect::Postgres {
                    *expression = array_of_cast_items(std::mem::take(&mut array.elem), item.as_ref().clone(), of)?;
                }
            } else if is_varchar(item) && of == Dialect::Postgres {
                *expression = call("marked_as_varchars", vec![taken(expression)], Vec::new(), None);
            } else if let Some(function) = cast_of_arrays(item).filter(|_| of == Dialect::Postgres && is_open(expr)) {
                *expression = call(function, vec![taken(expr)], Vec::new(), None);
            } else if let Some(template) = cast_of_item(item, of)? {
                *expression = call(CAST_ITEMS, vec![taken(expr), template], Vec::new(), None);
            }
        }
        Expr::Cast { expr, data_type, array: false, format: None, .. } => {
            if let Some((function, length)) = cast_function(data_type, of) {
                *expression = call(function, with_length(taken(expr), length), Vec::new(), None);
            }
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            if let Some(item) = access(root, access_chain) {
                *expression = item;
            }
        }
        Expr::Function(function) => {
            if OF_INTEGERS.contains(&function.name.to_string().to_ascii_lowercase().as_str())
                && let FunctionArguments::List(list) = &mut function.args
            {
                for argument in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(number)) = argument {
                        as_integer(number);
                    }
                }
            }
            if let Some(aggregate) = aggregate(function)? {
                *expression = aggregate;
            } else if let Some(chosen) = shifts::chosen(function) {
                *expression = chosen;
            } else if function.over.is_some() && function.name.to_string().eq_ignore_ascii_case("ntile") {
                // DataFusion returns a 64-bit number.
                *expression = cast(taken(expression), DataType::Int(None));
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A whole-number literal as a 32-bit integer, if it fits.
fn as_integer(expression: &mut Expr) {
    if let Expr::Nested(inner) = expression {
        return as_integer(inner);
    }
    if whole_number(expression).is_some_and(|number| i32::try_from(number).is_ok()) {
        *expression = cast(taken(expression), DataType::Int(None));
    }
}

/// The value of a whole number that is written out, with its signs.
pub(crate) fn whole_number(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole_number(expr)?.checked_neg(),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } | Expr::Nested(expr) => whole_number(expr),
        _ => None,
    }
}

/// Gives literals of `VALUES` the type that another row casts their column to.
pub(super) fn same_types(values: &mut Values, of: Dialect) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let mut types = values.rows.iter().filter_map(|row| match row.content.get(column)? {
            Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => Some(data_type),
            _ => None,
        });
        let found = types.find(|data_type| cast_function(data_type, of).is_some()).cloned();
        let Some(data_type) = found else { continue };
        let is_literal = |item: &Expr| {
            matches!(item, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_) | Value::Null, .. }))
        };
        let any_length = Some(CharacterLength::IntegerLength { length: LENGTH_MAX, unit: None });
        let data_type = match data_type {
            DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => {
                DataType::Varchar(any_length)
            }
            other => other,
        };
        for item in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            if is_literal(item) {
                *item = cast(taken(item), data_type.clone());
            }
        }
    }
}

/// An array of elements that are cast to a type. An empty one is part of another array, which
/// determines its type.
fn array_of_cast_items(mut items: Vec<Expr>, item: DataType, of: Dialect) -> Result<Expr, SqlError> {
    let is_empty = items.is_empty();
    if is_empty {
        let mut null = cast(Expr::value(Value::Null), item.clone());
        rewrite(&mut null, of)?;
        items.push(null);
    }
    if is_varchar(&item) {
        let is_cast = |found: &&mut Expr| matches!(found, Expr::Cast { .. });
        for found in items.iter_mut().filter(is_cast) {
            *found = call("marked_as_varchar", vec![taken(found)], Vec::new(), None);
        }
    }
    let array = Expr::Array(Array { elem: items, named: true });
    Ok(match is_empty {
        true => call("array_section", vec![array, number(1), number(0)], Vec::new(), None),
        false => array,
    })
}

/// The cast of NULL to an element type that has a length or precision; `None` for other types. Each
/// element of an array is cast like that.
fn cast_of_item(item: &DataType, of: Dialect) -> Result<Option<Expr>, SqlError> {
    let mut template = cast(Expr::value(Value::Null), item.clone());
    let is_timed = matches!(item, DataType::Timestamp(Some(_), _) | DataType::Time(Some(_), _));
    if of != Dialect::Postgres || !(is_timed || cast_function(item, of).is_some()) {
        return Ok(None);
    }
    if is_timed {
        if let ControlFlow::Break(error) = dates::rewrite(&mut template) {
            return Err(error);
        }
    } else {
        rewrite(&mut template, of)?;
    }
    Ok(Some(template))
}

/// Sets the number of dimensions of an array type. The declared number does not count: a literal
/// has its own, and other values keep theirs.
fn set_dimensions(value: &Expr, data_type: &mut DataType) {
    fn item_of(data_type: &DataType) -> &DataType {
        match data_type {
            DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => item_of(item),
            item => item,
        }
    }
    let dimensions = match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) => {
            let opened = written.chars().filter(|found| !found.is_whitespace()).take_while(|found| *found == '{');
            opened.count().max(1)
        }
        _ => 1,
    };
    let array = |item: DataType, _| DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(item), None));
    *data_type = (0..dimensions).fold(item_of(data_type).clone(), array);
}

/// Whether a value has no type of its own: a string literal or a parameter.
fn is_open(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_open(inner),
        Expr::Value(ValueWithSpan { value, .. }) => {
            matches!(value, Value::SingleQuotedString(_) | Value::Placeholder(_) | Value::Null)
        }
        _ => false,
    }
}

/// Whether a value may be an array: only planning knows the types of columns, parameters, functions
/// and subqueries.
fn may_be_array(value: &Expr) -> bool {
    match value {
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }) => true,
        Expr::Nested(inner) => may_be_array(inner),
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Array(_)),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::CompoundFieldAccess { .. }
        | Expr::Function(_)
        | Expr::Subquery(_)
        | Expr::Case { .. } => true,
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::StringConcat,
        _ => false,
    }
}

/// The function that makes arrays of literals and parameters, for element types that Arrow lacks.
fn cast_of_arrays(item: &DataType) -> Option<&'static str> {
    Some(match item {
        DataType::Uuid => "cast_uuids",
        DataType::JSON => "cast_json_documents",
        DataType::JSONB => "cast_jsonbs",
        _ => return None,
    })
}

/// Whether a type is `varchar` without a length, which differs from text in name only.
fn is_varchar(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Varchar(None) | DataType::CharacterVarying(None) | DataType::CharVarying(None))
}

fn number(number: i64) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// `a ~~ b` and similar operators as `LIKE`.
fn as_predicate(expression: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = expression else { return };
    let (negated, ignores_case) = match op {
        BinaryOperator::PGLikeMatch => (false, false),
        BinaryOperator::PGNotLikeMatch => (true, false),
        BinaryOperator::PGILikeMatch => (false, true),
        BinaryOperator::PGNotILikeMatch => (true, true),
        _ => return,
    };
    let (expr, pattern) = (Box::new(taken(left)), Box::new(taken(right)));
    *expression = match ignores_case {
        false => Expr::Like { negated, any: false, expr, pattern, escape_char: None },
        true => Expr::ILike { negated, any: false, expr, pattern, escape_char: None },
    };
}

fn like(negated: bool, expr: Expr, pattern: Expr) -> Expr {
    Expr::Like { negated, any: false, expr: Box::new(expr), pattern: Box::new(pattern), escape_char: None }
}

/// The escape character: the backslash by default; none for an empty text.
fn escape_of(written: Option<ValueWithSpan>) -> Result<Option<char>, SqlError> {
    let Some(written) = written else { return Ok(Some('\\')) };
    if let Value::SingleQuotedString(escape) = &written.value {
        let mut chars = escape.chars();
        if let (escape, None) = (chars.next(), chars.next()) {
            return Ok(escape);
        }
        return Err(parsing_error("invalid escape string: ESCAPE takes one character or none").with_sqlstate("22025"));
    }
    Err(parsing_error("ESCAPE takes a literal of one character").with_sqlstate("0A000"))
}

fn like_pattern(pattern: Expr, escape: Option<ValueWithSpan>, ignores_case: bool) -> Result<Expr, SqlError> {
    let escape = escape_of(escape)?;
    match &pattern {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) => {
            let escaped = escaped_pattern(written, escape)?;
            Ok(text(&if ignores_case { lower(&escaped).into_owned() } else { escaped }))
        }
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Ok(pattern),
        _ => {
            let escape = escape.map(String::from).unwrap_or_default();
            let escaped = call("escaped_pattern", vec![pattern, text(&escape)], Vec::new(), None);
            Ok(if ignores_case { call("lower", vec![escaped], Vec::new(), None) } else { escaped })
        }
    }
}

/// Whether a regular expression operator is negated, and its options.
fn regular(op: &BinaryOperator) -> Option<(bool, &'static str)> {
    Some(match op {
        BinaryOperator::PGRegexMatch => (false, ""),
        BinaryOperator::PGRegexIMatch => (false, "i"),
        BinaryOperator::PGRegexNotMatch => (true, ""),
        BinaryOperator::PGRegexNotIMatch => (true, "i"),
        _ => return None,
    })
}

fn matches(negated: bool, expr: Expr, pattern: Expr, options: &str) -> Expr {
    let found = call("text_matches", vec![expr, pattern, text(options)], Vec::new(), None);
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) },
        false => found,
    }
}

fn with_length(expr: Expr, length: Option<u64>) -> Vec<Expr> {
    std::iter::once(expr).chain(length.map(|length| number(i64::try_from(length).unwrap_or(i64::MAX)))).collect()
}

/// The function that casts to a type, and its length argument; `None` for casts that DataFusion
/// plans.
fn cast_function(data_type: &DataType, of: Dialect) -> Option<(&'static str, Option<u64>)> {
    let length = |given: &Option<CharacterLength>| match given {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        _ => None,
    };
    Some(match data_type {
        DataType::Varchar(given) | DataType::CharacterVarying(given) | DataType::CharVarying(given) => {
            ("cast_varchar", Some(length(given)?))
        }
        DataType::Char(given) | DataType::Character(given) => ("cast_char", Some(length(given).unwrap_or(1))),
        DataType::Bytea => ("cast_bytea", None),
        DataType::JSONB if of == Dialect::Postgres => ("cast_jsonb", None),
        DataType::JSON if of == Dialect::Postgres => ("cast_json_document", None),
        DataType::Uuid => ("cast_uuid", None),
        _ => return None,
    })
}

/// Elements and sections of an array; `None` for other expressions.
fn access(root: &mut Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let is_part = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
    let named = chain.iter().take_while(is_part).count();
    let (parts, subscripts) = chain.split_at_checked(named)?;
    let index = |access: &AccessExpr| match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Some(index.clone()),
        _ => None,
    };
    let is_slice = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
    let (function, places) = match subscripts {
        // Beside a section, an index stands for the section from 1 to it.
        sections if sections.iter().any(is_slice) => {
            let mut bounds = Vec::with_capacity(2 * sections.len());
            for access in sections {
                match access {
                    AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                        // No array begins before 0.
                        bounds.push(lower_bound.clone().unwrap_or_else(|| number(0)));
                        bounds.push(upper_bound.clone().unwrap_or_else(|| number(i64::from(i32::MAX))));
                    }
                    other => bounds.extend([number(1), index(other)?]),
                }
            }
            ("array_section", bounds)
        }
        [first] => ("array_item", vec![index(first)?]),
        [first, second] => ("array_item_of_two", vec![index(first)?, index(second)?]),
        _ => return None,
    };
    let column = members::column(root, parts)?;
    Some(call(function, std::iter::once(column).chain(places).collect(), Vec::new(), None))
}

/// An aggregate of documents, as an array that is converted to a document; `None` for other
/// functions.
fn aggregate(function: &mut Function) -> Result<Option<Expr>, SqlError> {
    let (item, whole) = match function.name.to_string().to_ascii_lowercase().as_str() {
        "json_agg" => ("json_item", "json_array_of_items"),
        "jsonb_agg" => ("json_item", "jsonb_array_of_items"),
        "json_object_agg" => ("json_pair", "json_object_of_pairs"),
        "jsonb_object_agg" => ("json_pair", "jsonb_object_of_pairs"),
        _ => return Ok(None),
    };
    let FunctionArguments::List(list) = &mut function.args else { return Ok(None) };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return Err(parsing_error(format!("{} is not served with DISTINCT", function.name)).with_sqlstate("0A000"));
    }
    let is_other = |argument: &&FunctionArg| {
        let FunctionArg::Unnamed(argument) = argument else { return true };
        !matches!(argument, FunctionArgExpr::Expr(_) | FunctionArgExpr::QualifiedWildcard(_))
    };
    if let Some(other) = list.args.iter().find(is_other) {
        return Err(parsing_error(format!("an aggregate of documents takes values and rows, not {other}")));
    }
    let mut item = call(item, Vec::new(), Vec::new(), None);
    if let Expr::Function(Function { args: FunctionArguments::List(of_item), .. }) = &mut item {
        of_item.args = std::mem::take(&mut list.args);
    }
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(item))];
    function.name = ObjectName::from(Ident::new("array_agg"));
    let items = Expr::Function(function.clone());
    Ok(Some(call(whole, vec![items], Vec::new(), None)))
}

/// The maximum number of dimensions of an array, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// A longer array literal keeps its elements in its text, because each element as an expression
/// takes kilobytes in a plan.
const ARRAY_BYTES_MAX: usize = 64 << 10;

/// Whether an array literal is cast as a text, like the texts of a column. Those are arrays of one
/// dimension.
pub(super) fn is_long_array(written: &str) -> bool {
    let is_nested = || written.trim_start_matches(filbert_data::is_space).starts_with("{{");
    written.len() > ARRAY_BYTES_MAX && !is_nested()
}

/// The elements of an array literal, `{1,2}` or `{{1},{2}}`, each cast to a type; `None` for other
/// texts, and for more than 6 dimensions.
pub(super) fn written_array(written: &str, item: &DataType) -> Option<Expr> {
    written_dimensions(written, item, DIMENSIONS_MAX)
}

fn written_dimensions(written: &str, item: &DataType, dimensions_left: usize) -> Option<Expr> {
    let dimensions_left = dimensions_left.checked_sub(1)?;
    let elements = match crate::arrays::items(written) {
        Some(items) => {
            let null = || Expr::value(Value::Null);
            let one = |written: Option<String>| cast(written.map_or_else(null, |written| text(&written)), item.clone());
            items.into_iter().map(one).collect()
        }
        None => {
            let rows = crate::arrays::rows(written)?;
            let rows =
                rows.iter().map(|row| written_dimensions(row, item, dimensions_left)).collect::<Option<Vec<_>>>()?;
            let length = |row: &Expr| if let Expr::Array(row) = row { row.elem.len() } else { 0 };
            if rows.windows(2).any(|pair| matches!(pair, [first, second] if length(first) != length(second))) {
                return None;
            }
            rows
        }
    };
    Some(Expr::Array(Array { elem: elements, named: true }))
}
