//! The types that functions accept for parameters among their arguments, as PostgreSQL resolves
//! them: an argument whose type the function determines, or the type of the other arguments.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use filbert_data::FieldType;
use filbert_functions::frames::{FIRST_ROW, LAST_ROW};
use filbert_functions::numbers::decimals::FREE;
use filbert_functions::taken_as;
use filbert_functions::types::{JSONB, Mark, field, with_pg_type};
use filbert_functions::{field_beside, field_of};
use filbert_grid::query::{Dialect, arrow_type};

/// Functions of numbers with a version for `double precision`, which PostgreSQL prefers.
const OF_FLOATS: [&str; 31] = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "ceiling", "cos", "cosh", "cot",
    "degrees", "exp", "floor", "ln", "log", "log10", "power", "pow", "radians", "round", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
];

/// Functions of documents of `json`.
const OF_JSON: [&str; 8] = [
    "json_array_elements",
    "json_array_elements_text",
    "json_array_length",
    "json_extract_path",
    "json_extract_path_text",
    "json_object_keys",
    "json_strip_nulls",
    "json_typeof",
];

/// Functions of documents of `jsonb`, with the places of these.
const OF_JSONB: [(&str, &[usize]); 19] = [
    ("jsonb_array_elements", &[0]),
    ("jsonb_array_elements_text", &[0]),
    ("jsonb_array_length", &[0]),
    ("jsonb_concat", &[0, 1]),
    ("jsonb_contains", &[0, 1]),
    ("jsonb_delete", &[0]),
    ("jsonb_delete_path", &[0]),
    ("jsonb_exists", &[0]),
    ("jsonb_exists_all", &[0]),
    ("jsonb_exists_any", &[0]),
    ("jsonb_extract_path", &[0]),
    ("jsonb_extract_path_text", &[0]),
    ("jsonb_insert", &[0, 2]),
    ("jsonb_object_keys", &[0]),
    ("jsonb_order", &[0]),
    ("jsonb_pretty", &[0]),
    ("jsonb_set", &[0, 2]),
    ("jsonb_strip_nulls", &[0]),
    ("jsonb_typeof", &[0]),
];

pub(super) fn of_type(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// Whether an expression is a parameter without a type.
pub(super) fn is_open(expression: &Expr) -> bool {
    matches!(expression, Expr::Placeholder(placeholder) if placeholder.field.is_none())
}

/// The type that a function accepts for an argument, if its name or the other arguments determine
/// it.
pub(super) fn taken(call: &ScalarFunction, at: usize, schema: &DFSchema, dialect: Dialect) -> Option<FieldRef> {
    let of_siblings = || common_type(call.args.iter(), schema);
    let whole = || Some(of_type(DataType::Int32));
    let float = || Some(of_type(DataType::Float64));
    let name = call.func.name();
    if dialect == Dialect::Postgres
        && let Some(found) = taken_by_postgresql(call, at, schema)
    {
        return Some(found);
    }
    match (name, at) {
        ("generate_series", _) => of_siblings().or_else(whole),
        (FIRST_ROW | LAST_ROW, _) => Some(of_type(DataType::Int64)),
        ("array_append" | "array_position" | "array_positions" | "array_remove" | "array_replace", 1..)
        | ("array_prepend", 0) => of_items(call, schema),
        ("make_date", _)
        | ("round" | "trunc" | "left" | "right" | "repeat" | "lpad" | "rpad", 1)
        | ("split_part", 2) => whole(),
        ("make_time" | "make_timestamp" | "make_timestamptz", at) => {
            let second = if name == "make_time" { 2 } else { 5 };
            match at.cmp(&second) {
                Ordering::Less => whole(),
                Ordering::Equal => float(),
                Ordering::Greater => None,
            }
        }
        ("to_timestamp", 0) if call.args.len() == 1 => float(),
        _ => taken_as(&call.func, at).map(of_type),
    }
}

/// Like [`taken`], for functions whose arguments other dialects take as they are.
fn taken_by_postgresql(call: &ScalarFunction, at: usize, schema: &DFSchema) -> Option<FieldRef> {
    let of_siblings = || common_type(call.args.iter(), schema);
    let whole = || Some(of_type(DataType::Int32));
    let float = || Some(of_type(DataType::Float64));
    let numeric = || Some(of_type(FREE));
    let of = |field_type: &FieldType| Some(of_type(arrow_type(field_type)));
    let texts = || of(&FieldType::Array(Box::new(FieldType::Varchar)));
    let document = |of: Field| Some(Arc::new(of));
    let json = || document(field("", &FieldType::Json, true));
    let has_decimals = || of_siblings().is_some_and(|found| found.data_type().is_decimal());
    match (call.func.name(), at) {
        ("generate_series", 2) if of_siblings().is_some_and(|found| found.data_type().is_temporal()) => {
            of(&FieldType::Interval)
        }
        ("compare_any" | "compare_all", 1) => of_items(call, schema),
        ("array_item" | "array_item_of_two", 1..) => match of_arrays(call, schema) {
            Some(_) => whole(),
            None => Some(of_type(DataType::Utf8View)),
        },
        ("array_contains" | "array_overlaps", _) => of_arrays(call, schema),
        ("array_cat", _) => of_arrays(call, schema).or_else(texts),
        ("array_position", 2) => whole(),
        ("array_append" | "array_position" | "array_positions" | "array_remove" | "array_replace", 0)
        | ("array_prepend", 1) => array_of(of_siblings()),
        ("overlay" | "strpos" | "btrim" | "ltrim" | "rtrim", ..2)
            if call
                .args
                .iter()
                .take(2)
                .any(|arg| field_of(arg, schema).is_some_and(|found| found.data_type().is_binary())) =>
        {
            of(&FieldType::Binary)
        }
        ("substr", 1..) | ("width_bucket", 3) | ("make_interval", ..6) => whole(),
        ("make_interval", 6) => float(),
        ("justify_days" | "justify_hours" | "justify_interval", 0) => of(&FieldType::Interval),
        ("age", _) => of_siblings().or_else(|| of(&FieldType::TimestampTz)),
        ("date_trunc" | "timezone", 1) => of(&FieldType::TimestampTz),
        ("mod" | "gcd" | "lcm", _) => of_siblings(),
        ("div" | "scale" | "min_scale" | "trim_scale", _) => numeric(),
        ("factorial", 0) => Some(of_type(DataType::Int64)),
        ("round" | "trunc", 0) if call.args.len() == 2 => numeric(),
        ("round" | "trunc", 1) => None,
        // The logarithm to any base is one of decimals alone.
        ("log", _) if call.args.len() == 2 => numeric(),
        ("encode" | "convert_from" | "get_byte" | "set_byte" | "sha224" | "sha256" | "sha384" | "sha512", 0) => {
            of(&FieldType::Binary)
        }
        (
            "jsonb_set" | "jsonb_insert" | "jsonb_delete_path" | "jsonb_exists_any" | "jsonb_exists_all"
            | "json_get_path" | "json_get_path_text",
            1,
        )
        | ("json_object" | "jsonb_object", _) => texts(),
        (name, 0) if OF_JSON.contains(&name) => json(),
        (name, at) if OF_JSONB.iter().any(|(of, places)| *of == name && places.contains(&at)) => {
            document(with_pg_type(field("", &FieldType::Json, true), JSONB))
        }
        ("width_bucket", _) if has_decimals() => numeric(),
        ("width_bucket", _) => float(),
        (name, _) if OF_FLOATS.contains(&name) && has_decimals() => numeric(),
        (name, _) if OF_FLOATS.contains(&name) => float(),
        _ => None,
    }
}

/// The type that an aggregate function accepts for its arguments in PostgreSQL's dialect, if its
/// name determines it. `min` and `max` of values without a type are those of texts.
pub(super) fn taken_by_aggregate(name: &str) -> Option<FieldRef> {
    match name {
        "min" | "max" => Some(of_type(DataType::Utf8View)),
        "bool_and" | "bool_or" => Some(of_type(DataType::Boolean)),
        _ if ["corr", "covar", "regr_", "stddev", "var"].iter().any(|of_floats| name.starts_with(of_floats)) => {
            Some(of_type(DataType::Float64))
        }
        _ => None,
    }
}

/// The elements of the first array among the arguments.
fn of_items(call: &ScalarFunction, schema: &DFSchema) -> Option<FieldRef> {
    let array = of_arrays(call, schema)?;
    let DataType::List(item) = array.data_type() else { return None };
    let metadata = Mark::of(&array).of_item().metadata(item.metadata().clone());
    Some(Arc::new(Field::new("", item.data_type().clone(), true).with_metadata(metadata)))
}

/// The array of elements of a type. An array whose elements nothing determines is one of texts.
fn array_of(item: Option<FieldRef>) -> Option<FieldRef> {
    let item = item.unwrap_or_else(|| of_type(DataType::Utf8View));
    let item_type = if item.data_type().is_decimal() { FREE } else { item.data_type().clone() };
    let metadata = Mark::of(&item).of_array().metadata(HashMap::new());
    Some(Arc::new(Field::new_list("", Field::new_list_field(item_type, true), true).with_metadata(metadata)))
}

/// The first array among the arguments.
fn of_arrays(call: &ScalarFunction, schema: &DFSchema) -> Option<FieldRef> {
    let fields = call.args.iter().filter(|arg| !is_open(arg)).filter_map(|arg| field_beside(arg, schema).ok());
    let mut arrays = fields.filter(|found| matches!(found.data_type(), DataType::List(_)));
    arrays.next()
}

/// The type of the expressions beside parameters: the widest numeric type, otherwise the first
/// type.
pub(super) fn common_type<'e>(siblings: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Option<FieldRef> {
    let mut found: Option<FieldRef> = None;
    for sibling in siblings {
        let field = match sibling {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
                of_type(DataType::Int32)
            }
            sibling if is_open(sibling) => continue,
            sibling => match field_of(sibling, schema) {
                Some(field) => Arc::new(field),
                None => continue,
            },
        };
        let is_larger = |known: &FieldRef| rank(field.data_type()) > rank(known.data_type());
        if !field.data_type().is_null() && found.as_ref().is_none_or(is_larger) {
            found = Some(field);
        }
    }
    found
}

/// The order of numeric types in coercion.
fn rank(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 3,
        DataType::Int64 => 4,
        decimal if decimal.is_decimal() => 5,
        DataType::Float32 => 6,
        DataType::Float64 => 7,
        _ => 0,
    }
}
