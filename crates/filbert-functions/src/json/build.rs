//! Builds JSON: `JSON_OBJECT`, `JSON_ARRAY`, and the aggregates `JSON_ARRAYAGG` and
//! `JSON_OBJECTAGG`.
//!
//! The aggregates are `array_agg` of texts (`json_text` and `json_member`), combined by
//! `json_array_from` and `json_object_from`. DataFusion thus handles the order of their items.

use std::borrow::Cow;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::{FieldType, Value};

use super::document::push_text;
use super::{Function, collect_texts, constant_text, failed, value_of};
use crate::row::{array, is_text, wrong_arguments};
use crate::types::field_type_of;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("json_object", coerce_pairs, super::returns_json, json_object),
        Function::udf("json_array", coerce_any, super::returns_json, json_array),
        Function::udf("json_text", coerce_any, returns_text, json_text),
        Function::udf("json_member", coerce_pairs, returns_text, json_member),
        Function::udf("json_array_from", coerce_list, super::returns_json, |args| from_list(args, '[', ']')),
        Function::udf("json_object_from", coerce_list, super::returns_json, |args| from_list(args, '{', '}')),
    ]
}

fn returns_text(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Varchar)
}

fn coerce_any(_: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.to_vec())
}

fn coerce_list(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [clause, DataType::List(_) | DataType::Null] if is_text(clause) => Ok(types.to_vec()),
        _ => Err(wrong_arguments(name, types)),
    }
}

/// A text, followed by pairs of a text and any value.
fn coerce_pairs(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let keys = types.iter().skip(1).step_by(2);
    if types.len().is_multiple_of(2) || !keys.clone().all(is_text) {
        return Err(wrong_arguments(name, types));
    }
    Ok(types.to_vec())
}

/// An argument's value in a row.
fn value(args: &ScalarFunctionArgs, at: usize, row: usize) -> Result<Value<'static>> {
    let scalar = match args.args.get(at) {
        Some(ColumnarValue::Scalar(scalar)) => scalar.clone(),
        Some(ColumnarValue::Array(rows)) => ScalarValue::try_from_array(rows, row)?,
        None => ScalarValue::Null,
    };
    let field_type = args.arg_fields.get(at).map_or(FieldType::Varchar, |field| field_type_of(field));
    Ok(value_of(&scalar, &field_type))
}

/// Writes a value as JSON.
pub(crate) fn push(value: &Value<'_>, out: &mut String) -> Result<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Json(text) => out.push_str(text),
        Value::Float32(number) if !number.is_finite() => out.push_str("null"),
        Value::Float64(number) if !number.is_finite() => out.push_str("null"),
        Value::Int8(_)
        | Value::Int16(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Decimal(_) => out.push_str(&text(value)?),
        other => push_text(&text(other)?, out),
    }
    Ok(())
}

fn text(value: &Value<'_>) -> Result<Cow<'static, str>> {
    match value.clone().into_owned().convert(&FieldType::Varchar) {
        Ok(Value::Text(text)) => Ok(text),
        Ok(other) => Err(failed(format!("{other:?} has no form in JSON"))),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn is_absent(args: &ScalarFunctionArgs) -> bool {
    constant_text(args, 0) == Some("ABSENT")
}

/// Writes `"key":value`; returns whether anything was written.
fn push_member(args: &ScalarFunctionArgs, at: usize, row: usize, absent: bool, out: &mut String) -> Result<bool> {
    let Value::Text(key) = value(args, at, row)? else { return Err(failed("Key of a JSON object cannot be null")) };
    let value = value(args, at + 1, row)?;
    if absent && value.is_null() {
        return Ok(false);
    }
    push_text(&key, out);
    out.push(':');
    push(&value, out)?;
    Ok(true)
}

fn json_object(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let absent = is_absent(args);
    collect_texts(args, |row| {
        let mut out = String::from("{");
        for at in (1..args.args.len()).step_by(2) {
            let before = out.len();
            if before > 1 {
                out.push(',');
            }
            if !push_member(args, at, row, absent, &mut out)? {
                out.truncate(before);
            }
        }
        out.push('}');
        Ok(Some(out))
    })
}

fn json_array(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let absent = is_absent(args);
    collect_texts(args, |row| {
        let mut out = String::from("[");
        for at in 1..args.args.len() {
            let value = value(args, at, row)?;
            if absent && value.is_null() {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            push(&value, &mut out)?;
        }
        out.push(']');
        Ok(Some(out))
    })
}

fn json_text(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    collect_texts(args, |row| {
        let value = value(args, 0, row)?;
        if value.is_null() {
            return Ok(None);
        }
        let mut out = String::new();
        push(&value, &mut out)?;
        Ok(Some(out))
    })
}

fn json_member(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let absent = is_absent(args);
    collect_texts(args, |row| {
        let mut out = String::new();
        Ok(push_member(args, 1, row, absent, &mut out)?.then_some(out))
    })
}

/// The items of a list in brackets. Nulls in arrays are written or omitted, nulls in objects are
/// always omitted: a member with a null value does not exist.
fn from_list(args: &ScalarFunctionArgs, open: char, close: char) -> Result<ColumnarValue> {
    let absent = is_absent(args) || open == '{';
    let lists = array(args, 1)?;
    if lists.data_type() == &DataType::Null {
        return Ok(super::null());
    }
    collect_texts(args, |row| {
        let lists = lists.as_list::<i32>();
        if lists.is_null(row) {
            return Ok(None);
        }
        let items = datafusion::arrow::compute::cast(&lists.value(row), &DataType::Utf8View)?;
        let items = items.as_string_view();
        let mut out = String::from(open);
        for item in items.iter().filter(|item| !absent || item.is_some()) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(item.unwrap_or("null"));
        }
        out.push(close);
        Ok(Some(out))
    })
}
