//! Access to parts of JSON documents by PostgreSQL's operators and CrateDB's subscripts.

use std::borrow::Cow;

use datafusion::common::Result;
use filbert_data::{FieldType, Value};
use filbert_grid::query::Dialect;

use super::super::json::Node;
use super::refused;
use crate::native::{Call, Native, Take, of_text, pure, text, texts};
use crate::types::{ARRAY_OF_JSON, JSONB};

pub(super) const FUNCTIONS: &[Native] = &[
    // `document -> key`, `document -> index`
    pure("json_get", &[Take::Text, Take::Any], json, |call| with(call, |node| get(node, call), as_json))
        .of_pg_type(same),
    // `document ->> key`
    pure("json_get_text", &[Take::Text, Take::Any], text, |call| with(call, |node| get(node, call), as_text)),
    // `document #> path`
    pure("json_get_path", &[Take::Text, Take::Any], json, |call| with(call, |node| along(node, call), as_json))
        .of_pg_type(same),
    // `document #>> path`
    pure("json_get_path_text", &[Take::Text, Take::Any], text, |call| with(call, |node| along(node, call), as_text)),
    pure("json_extract_path", &[Take::Text, Take::Rest], json, |call| {
        with(call, |node| extracted(node, call), as_json)
    }),
    pure("jsonb_extract_path", &[Take::Text, Take::Rest], json, |call| canonical(call, as_json))
        .of_pg_type(|_| Some(JSONB)),
    pure("json_extract_path_text", &[Take::Text, Take::Rest], text, |call| {
        with(call, |node| extracted(node, call), as_text)
    }),
    pure("jsonb_extract_path_text", &[Take::Text, Take::Rest], text, |call| canonical(call, as_text)),
    // The results of `json` table functions, as arrays: parts of the document as written.
    pure("json_array_elements", &[Take::Text], documents, |call| elements(parsed(call.text(0))?, as_json))
        .of_pg_type(|_| Some(ARRAY_OF_JSON)),
    pure("json_array_elements_text", &[Take::Text], texts, |call| elements(with_texts(call)?, as_text)),
    pure("json_object_keys", &[Take::Text], texts, |call| Ok(Value::Array(names(call)?))),
    pure("json_each_names", &[Take::Text], texts, |call| Ok(Value::Array(names(call)?))),
    pure("json_each_values", &[Take::Text], documents, |call| {
        Ok(Value::Array(with_texts(call)?.children().map(|(_, item)| as_json(item)).collect()))
    })
    .of_pg_type(|_| Some(ARRAY_OF_JSON)),
    pure("json_each_texts", &[Take::Text], texts, |call| {
        Ok(Value::Array(with_texts(call)?.children().map(|(_, item)| as_text(item)).collect()))
    }),
];

fn json(_: &[FieldType]) -> FieldType {
    FieldType::Json
}

fn documents(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Json))
}

fn parsed(text: &str) -> Result<Node<'_>> {
    Node::parse(text).map_err(|_| super::json::malformed(text))
}

/// The first argument as a document with names and texts that are read. In PostgreSQL, none of them
/// has a zero byte.
fn with_texts<'c>(call: &'c Call<'_>) -> Result<Node<'c>> {
    let text = call.text(0);
    let node = parsed(text)?;
    if call.dialect == Dialect::Postgres && has_zero(text) {
        return Err(refused("22P05", "unsupported Unicode escape sequence"));
    }
    Ok(node)
}

/// Whether a document has the escape of a zero byte.
fn has_zero(document: &str) -> bool {
    let mut places = document.match_indices("\\u0000");
    places.any(|(at, _)| {
        let before = document.as_bytes().get(..at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

/// Finds a part of the first argument, and converts it.
fn with<'c>(
    call: &'c Call<'_>,
    find: impl FnOnce(Node<'c>) -> Option<Node<'c>>,
    tell: fn(Node<'_>) -> Value<'static>,
) -> Result<Value<'static>> {
    Ok(find(with_texts(call)?).map_or(Value::Null, tell))
}

/// A part of a `jsonb`, also of one that is written as a text.
fn canonical(call: &Call<'_>, tell: fn(Node<'_>) -> Value<'static>) -> Result<Value<'static>> {
    let document = match call.pg_types.first() {
        Some(Some(JSONB)) => Cow::Borrowed(call.text(0)),
        _ => Cow::Owned(super::json::parsed(call.text(0))?.to_string()),
    };
    Ok(extracted(parsed(&document)?, call).map_or(Value::Null, tell))
}

/// The elements of a document that is an array.
fn elements(node: Node<'_>, tell: fn(Node<'_>) -> Value<'static>) -> Result<Value<'static>> {
    if !node.text().starts_with('[') {
        let what = if node.is_scalar() { "a scalar" } else { "an object" };
        return Err(refused("22023", format!("cannot extract elements from {what}")));
    }
    Ok(Value::Array(node.children().map(|(_, item)| tell(item)).collect()))
}

fn as_json(node: Node<'_>) -> Value<'static> {
    Value::Json(node.text().to_owned().into())
}

fn as_text(node: Node<'_>) -> Value<'static> {
    if node.text() == "null" { Value::Null } else { of_text(node.plain().into_owned()) }
}

/// The member of a `jsonb` that subscripts select, as by `#>`.
pub(super) fn member_at(call: &Call<'_>) -> Result<Value<'static>> {
    with(call, |node| extracted(node, call), as_json)
}

/// A part of a `jsonb` is a `jsonb`.
pub(super) fn same(types: &[Option<u32>]) -> Option<u32> {
    types.first().copied().flatten().filter(|oid| *oid == JSONB)
}

/// `document -> name` selects a member, `document -> index` an element. A scalar `jsonb` counts as
/// an array of one element.
fn get<'n>(node: Node<'n>, call: &Call<'_>) -> Option<Node<'n>> {
    let key = call.values.get(1)?;
    match key {
        Value::Text(name) if call.dialect == Dialect::Postgres => member(node, name),
        Value::Text(_) => step(node, Some(key)),
        _ if node.is_scalar() && same(call.pg_types).is_some() => matches!(call.int(1), Some(0 | -1)).then_some(node),
        _ => step(node, Some(key)),
    }
}

/// The member with a name; the last if several members have it.
fn member<'n>(node: Node<'n>, name: &str) -> Option<Node<'n>> {
    let is_it = |key: &str| match key.contains('\\') {
        true => Node::parse(&format!("\"{key}\"")).is_ok_and(|key| key.plain() == name),
        false => key == name,
    };
    node.children().filter(|(key, _)| key.is_some_and(is_it)).last().map(|(_, member)| member)
}

fn extracted<'n>(node: Node<'n>, call: &Call<'_>) -> Option<Node<'n>> {
    let keys = call.values.get(1..).unwrap_or_default();
    keys.iter().try_fold(node, |node, key| step(node, Some(key)))
}

/// The member with a name, or the element at an index; a negative index counts from the end.
fn step<'n>(node: Node<'n>, key: Option<&Value<'_>>) -> Option<Node<'n>> {
    let place = match key? {
        Value::Text(name) => match node.text().starts_with('[') {
            true => name.trim().parse().ok()?,
            false => return member(node, name),
        },
        Value::Int8(place) => i64::from(*place),
        Value::Int16(place) => i64::from(*place),
        Value::Int32(place) => i64::from(*place),
        Value::Int64(place) => *place,
        _ => return None,
    };
    let at = match usize::try_from(place) {
        Ok(at) => at,
        Err(_) => node.children().count().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
    };
    node.children().nth(at).filter(|(key, _)| key.is_none()).map(|(_, item)| item)
}

/// Follows a path: an array of names and indexes, or its text `{a,0,b}`.
fn along<'n>(node: Node<'n>, call: &Call<'_>) -> Option<Node<'n>> {
    let mut node = node;
    match call.values.get(1)? {
        Value::Array(keys) => {
            for key in keys {
                node = step(node, Some(key))?;
            }
        }
        Value::Text(path) => {
            for part in filbert_dialect::arrays::items(path)? {
                node = step(node, Some(&of_text(part?)))?;
            }
        }
        _ => return None,
    }
    Some(node)
}

/// The names of an object's members, in document order.
fn names(call: &Call<'_>) -> Result<Vec<Value<'static>>> {
    let node = with_texts(call)?;
    if !node.text().starts_with('{') {
        let what = if node.is_scalar() { "a scalar" } else { "an array" };
        return Err(refused("22023", format!("cannot call json_object_keys on {what}")));
    }
    let plain = |name: &str| Node::parse(&format!("\"{name}\"")).map(|name| name.plain().into_owned());
    Ok(node.children().filter_map(|(name, _)| plain(name?).ok()).map(of_text).collect())
}
