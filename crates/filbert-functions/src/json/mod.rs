//! The JSON functions. The dialect rewrites them to plain calls with their clauses as text
//! arguments.
//!
//! A path finds values in the text of the document, so numbers keep their spelling. A constant path
//! is parsed once for each batch.

mod build;
mod document;
pub(crate) mod jsonb;
mod path;

use std::borrow::Cow;
use std::str::FromStr;

use bigdecimal::{BigDecimal, ToPrimitive};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::{FieldType, Value};
use filbert_grid::query::arrow_type;

use super::row::{Function, Texts, collect_texts, constant_text, failed, is_text, text_of, wrong_arguments};
use crate::builder::ColumnBuilder;
use crate::types::value_of;
use document::Broken;

pub use document::push_text as push_json_text;
pub use document::{Kind, Node};
pub use jsonb::Document;
use path::{Found, JsonPath};

/// A value as JSON writes it.
pub fn push_json(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(true) => out.push_str("true"),
        Value::Boolean(false) => out.push_str("false"),
        Value::Json(text) => out.push_str(text),
        Value::Float32(number) if !number.is_finite() => out.push_str("null"),
        Value::Float64(number) if !number.is_finite() => out.push_str("null"),
        Value::Int8(_)
        | Value::Int16(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Decimal(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json(item, out);
            }
            out.push(']');
        }
        other => push_json_text(&other.to_string(), out),
    }
}

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = vec![
        Function::udf("json_value", coerce_value, returns_value, json_value),
        Function::udf("json_query", coerce_texts, returns_json, json_query),
        Function::udf("cast_json", coerce_cast, returns_json, |args| {
            Ok(args.args.first().cloned().unwrap_or_else(null))
        }),
    ];
    functions.extend(build::functions());
    functions
}

fn null() -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Utf8View(None))
}

fn returns_json(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Json)
}

fn coerce_texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if types.is_empty() || !types.iter().all(is_text) {
        return Err(wrong_arguments(name, types));
    }
    // Not cast: a cast argument is no longer a literal, but the clauses must be literals.
    Ok(types.to_vec())
}

fn coerce_cast(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text] if is_text(text) => Ok(vec![DataType::Utf8View]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_value(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let (texts, defaults) = types.split_at(types.len().min(5));
    if texts.len() < 5 || defaults.len() > 2 {
        return Err(wrong_arguments(name, types));
    }
    let mut coerced = coerce_texts(name, texts)?;
    coerced.extend_from_slice(defaults);
    Ok(coerced)
}

fn returning(name: Option<&str>) -> Result<FieldType> {
    use datafusion::sql::sqlparser::parser::Parser;
    let name = name.unwrap_or("VARCHAR");
    Parser::new(&filbert_dialect::HazelcastDialect)
        .try_with_sql(name)
        .and_then(|mut parser| parser.parse_data_type())
        .ok()
        .and_then(|data_type| filbert_dialect::sql_type(&data_type))
        .ok_or_else(|| failed(format!("there is no type {name} to return")))
}

fn returns_value(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    returning(args.scalar_arguments.get(2).copied().flatten().and_then(text_of))
}

/// The action for an empty result or an error.
#[derive(Clone, Copy, PartialEq)]
enum Otherwise {
    Null,
    Error,
    Default(usize),
    EmptyArray,
    EmptyObject,
}

fn otherwise(args: &ScalarFunctionArgs, at: usize, default: usize) -> Otherwise {
    match constant_text(args, at) {
        Some("ERROR") => Otherwise::Error,
        Some("DEFAULT") => Otherwise::Default(default),
        Some("[]") => Otherwise::EmptyArray,
        Some("{}") => Otherwise::EmptyObject,
        _ => Otherwise::Null,
    }
}

/// The paths of one argument.
struct Paths {
    texts: Texts,
    constant: Option<JsonPath>,
}

impl Paths {
    fn of(args: &ScalarFunctionArgs, at: usize) -> Result<Paths> {
        let texts = Texts::of(args, at)?;
        let constant = match &texts {
            Texts::Constant(Some(text)) => Some(JsonPath::parse(text).map_err(failed)?),
            _ => None,
        };
        Ok(Paths { texts, constant })
    }

    fn get(&self, row: usize) -> Result<Cow<'_, JsonPath>> {
        match (&self.constant, self.texts.get(row)) {
            (Some(path), _) => Ok(Cow::Borrowed(path)),
            (None, Some(text)) => Ok(Cow::Owned(JsonPath::parse(text).map_err(failed)?)),
            (None, None) => Err(failed("The JSON path is null")),
        }
    }
}

fn broken(error: &Broken) -> String {
    format!("Invalid JSON document: expected {} at byte {}", error.expected, error.at)
}

/// The values that a path finds in a document; `Err` = handled by the `ON ERROR` clause.
fn find<'t>(text: &'t str, path: &JsonPath) -> Result<Vec<Node<'t>>, String> {
    path.find(Node::parse(text).map_err(|error| broken(&error))?)
}

/// The single value that a path finds in a document; `Err` = handled by the `ON ERROR` clause.
fn find_one<'t>(text: &'t str, path: &JsonPath) -> Result<Found<'t>, String> {
    let Some(name) = path.first_member() else {
        return path.find_one(Node::parse(text).map_err(|error| broken(&error))?);
    };
    let (document, first) = Node::parse_with_member(text, name).map_err(|error| broken(&error))?;
    path.find_one_after(document, first)
}

fn json_value(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let field_type = returning(constant_text(args, 2))?;
    let data_type = arrow_type(&field_type);
    let (on_empty, on_error) = (otherwise(args, 3, 5), otherwise(args, 4, 6));
    let (documents, paths) = (Texts::of(args, 0)?, Paths::of(args, 1)?);
    let default = |otherwise: Otherwise, row: usize, error: &str| {
        let scalar = match otherwise {
            Otherwise::Error => return Err(failed(error)),
            Otherwise::Default(at) => match args.args.get(at) {
                Some(ColumnarValue::Scalar(scalar)) => scalar.cast_to(&data_type)?,
                Some(ColumnarValue::Array(rows)) => ScalarValue::try_from_array(rows, row)?.cast_to(&data_type)?,
                None => return Ok(Value::Null),
            },
            _ => return Ok(Value::Null),
        };
        Ok(value_of(&scalar, &field_type))
    };
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let mut column = ColumnBuilder::new(&field_type);
    for row in 0..rows {
        let path = paths.get(row)?;
        let Some(text) = documents.get(row) else {
            column.append_null();
            continue;
        };
        let wrong = match find_one(text, &path) {
            Ok(Found::One(node)) if node.is_scalar() => match column.append(scalar(node, &field_type)) {
                Ok(()) => continue,
                Err(error) => (on_error, Cow::Owned(error.to_string())),
            },
            Ok(Found::One(_)) => (on_error, Cow::Borrowed("Result of JSON_VALUE cannot be array or object")),
            Ok(Found::Nothing) => (on_empty, Cow::Borrowed("JSON_VALUE evaluated to no value")),
            Ok(Found::Many) => (on_error, Cow::Borrowed("JSON_VALUE evaluated to multiple values")),
            Err(error) => (on_error, Cow::Owned(error)),
        };
        let (otherwise, error) = wrong;
        column.append(default(otherwise, row, &error)?).map_err(|error| failed(error.to_string()))?;
    }
    let column = column.finish();
    match constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&column, 0)?)),
        false => Ok(ColumnarValue::Array(column)),
    }
}

/// A scalar as a value for a column of a type.
fn scalar<'t>(node: Node<'t>, field_type: &FieldType) -> Value<'t> {
    match (node.kind(), field_type) {
        (Kind::Null, _) => Value::Null,
        (_, FieldType::Json) => Value::Json(node.plain()),
        (_, FieldType::Varchar | FieldType::Char | FieldType::Object) => Value::Text(node.plain()),
        (Kind::Boolean, _) => Value::Boolean(node.text() == "true"),
        (Kind::Number, FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt) => {
            match node.text().parse().ok().or_else(|| truncated(node.text())) {
                Some(number) => Value::Int64(number),
                None => Value::Text(node.plain()),
            }
        }
        // The value of a number must not depend on an intermediate type.
        _ => Value::Text(node.plain()),
    }
}

/// A number without its fraction, as Hazelcast reads it for a whole-number type; `None` if it is
/// beyond 64 bits.
fn truncated(text: &str) -> Option<i64> {
    // Checked first: an exponent may stand for any number of digits.
    let about: f64 = text.parse().ok()?;
    match about.abs() {
        below if below < 1.0 => Some(0),
        whole if whole < 1e19 => BigDecimal::from_str(text).ok()?.with_scale(0).to_i64(),
        _ => None,
    }
}

fn json_query(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let wrapper = constant_text(args, 2).unwrap_or("WITHOUT").to_owned();
    let (on_empty, on_error) = (otherwise(args, 3, 0), otherwise(args, 4, 0));
    let (documents, paths) = (Texts::of(args, 0)?, Paths::of(args, 1)?);
    let default = |otherwise: Otherwise, error: &str| match otherwise {
        Otherwise::Error => Err(failed(error)),
        Otherwise::EmptyArray => Ok(Some("[]".to_owned())),
        Otherwise::EmptyObject => Ok(Some("{}".to_owned())),
        Otherwise::Null | Otherwise::Default(_) => Ok(None),
    };
    collect_texts(args, |row| {
        let path = paths.get(row)?;
        let Some(text) = documents.get(row) else { return Ok(None) };
        let found = match find(text, &path) {
            Ok(found) => found,
            Err(error) => return default(on_error, &error),
        };
        let wrapped = || {
            let mut out = String::from("[");
            for node in &found {
                if out.len() > 1 {
                    out.push(',');
                }
                node.push_compact(&mut out);
            }
            out.push(']');
            Ok(Some(out))
        };
        let plain = |node: &Node<'_>| {
            let mut out = String::with_capacity(node.text().len());
            node.push_compact(&mut out);
            Ok(Some(out))
        };
        // Hazelcast also returns scalars, and does not wrap the one array of a path without `[*]`.
        match (found.as_slice(), wrapper.as_str()) {
            ([], _) => default(on_empty, "JSON_QUERY evaluated to no value"),
            ([node], "UNCONDITIONAL") if node.kind() == Kind::Array && !path.ends_in_many() => plain(node),
            (_, "UNCONDITIONAL") => wrapped(),
            ([node], _) => plain(node),
            (_, "CONDITIONAL") => wrapped(),
            _ => default(on_error, "JSON_QUERY evaluated to multiple values"),
        }
    })
}
