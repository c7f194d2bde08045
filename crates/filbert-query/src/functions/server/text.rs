//! Texts and arrays.

use datafusion::common::Result;
use filbert_data::{FieldType, Value};
use filbert_grid::query::{SqlError, SqlErrorCode};

use super::super::row::failed;
use super::native::{Call, Native, Take, int4, of_text, pure, text};
use crate::error::carried;

pub(super) const FUNCTIONS: &[Native] = &[
    pure("format", &[Take::Text, Take::Rest], text, format_text).takes_nulls(),
    pure("array_upper", &[Take::Any, Take::Int], int4, |call| Ok(length(call))),
    pure("array_lower", &[Take::Any, Take::Int], int4, |call| match length(call) {
        Value::Null => Ok(Value::Null),
        _ => Ok(Value::Int32(1)),
    }),
    pure("generate_subscripts", &[Take::Any, Take::Int], ints, |call| match length(call) {
        Value::Int32(length) => Ok(Value::Array((1..=length).map(Value::Int32).collect())),
        _ => Ok(Value::Array(Vec::new())),
    }),
    // The value of a subquery that stands for one value.
    pure("only_item", &[Take::Any], item, |call| match call.values.first() {
        Some(Value::Array(items)) => match items.as_slice() {
            [] => Ok(Value::Null),
            [item] => Ok(item.clone().into_owned()),
            _ => Err(carried(
                SqlError::new(
                    SqlErrorCode::DataException,
                    "more than one row returned by a subquery used as an expression",
                )
                .with_sqlstate("21000"),
            )),
        },
        _ => Ok(Value::Null),
    }),
    pure("array_prefixed", &[Take::Text, Take::Texts], super::native::texts, |call| match call.values.get(1) {
        Some(Value::Array(items)) => {
            Ok(Value::Array(items.iter().map(|item| of_text(format!("{}{item}", call.text(0)))).collect()))
        }
        _ => Ok(Value::Null),
    }),
    pure("pg_typeof", &[Take::Any], text, type_name).takes_nulls(),
];

fn item(types: &[FieldType]) -> FieldType {
    match types.first() {
        Some(FieldType::Array(item)) => (**item).clone(),
        _ => FieldType::Varchar,
    }
}

fn ints(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Integer))
}

fn length(call: &Call<'_>) -> Value<'static> {
    match (call.values.first(), call.int(1)) {
        (Some(Value::Array(items)), Some(1)) if !items.is_empty() => {
            i32::try_from(items.len()).map_or(Value::Null, Value::Int32)
        }
        _ => Value::Null,
    }
}

fn type_name(call: &Call<'_>) -> Result<Value<'static>> {
    let found = call.types.first().cloned().unwrap_or(FieldType::Varchar);
    let (oid, _) = crate::catalogs::types::of_field_type(&found);
    Ok(of_text(crate::catalogs::types::format(oid, None)))
}

/// `format('%s %I %L', ..)`
fn format_text(call: &Call<'_>) -> Result<Value<'static>> {
    if call.values.first().is_none_or(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut out = String::new();
    let mut next = 1;
    let mut chars = call.text(0).chars().peekable();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = chars.peek().filter(|char| char.is_ascii_digit()) {
            digits.push(*digit);
            chars.next();
        }
        if !digits.is_empty() && chars.peek() == Some(&'$') {
            chars.next();
            next = digits.parse().unwrap_or(next);
        }
        let kind = chars.next();
        if kind == Some('%') {
            out.push('%');
            continue;
        }
        let Some(value) = call.values.get(next) else { return Err(failed("too few arguments for format()")) };
        next += 1;
        match (kind, value.is_null()) {
            (Some('s'), true) => {}
            (Some('s' | 'd'), _) => out.push_str(&value.to_string()),
            (Some('I'), false) => out.push_str(&crate::catalogs::quote_ident(&value.to_string())),
            (Some('L'), true) => out.push_str("NULL"),
            (Some('L'), false) => out.push_str(&format!("'{}'", value.to_string().replace('\'', "''"))),
            (kind, _) => {
                let kind = kind.map(String::from).unwrap_or_default();
                return Err(failed(format!("unrecognized format() type specifier \"{kind}\", expected s, I or L")));
            }
        }
    }
    Ok(of_text(out))
}
