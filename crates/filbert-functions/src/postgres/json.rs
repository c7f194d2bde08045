//! Functions and operators of `jsonb` and `json`.
//!
//! Both are texts in Arrow. The field of a `jsonb` has the OID of the PostgreSQL type in its
//! metadata, and its text has the canonical form of [`Document`]. A `json` is the original text.

use std::borrow::Cow;

use bigdecimal::{BigDecimal, RoundingMode};
use chrono::{NaiveDateTime, TimeDelta};
use datafusion::common::{DataFusionError, Result};
use filbert_data::dates::{Zone, write_timestamp};
use filbert_data::{FieldType, Value};
use filbert_grid::query::SqlSubject;

use super::super::json::{Kind, Node};
use super::super::numbers::{text_of_double, text_of_real};
use super::{refused, unserved};
use crate::context::StatementContext;
use crate::error::{carried, data_error};
use crate::json::jsonb::{Document, Fault, push_text};
use crate::native::{Call, Native, Take, bool, int4, of_text, pure, text, texts};
use crate::types::{ARRAY_OF_JSON, ARRAY_OF_JSONB, JSONB};

pub(super) const FUNCTIONS: &[Native] = &[
    pure("cast_jsonb", &[Take::Any], json, |call| Ok(value_of(&of_value(call.values.first(), true)?)))
        .of_pg_type(jsonb),
    pure("cast_json_document", &[Take::Any], json, |call| match call.values.first() {
        Some(Value::Text(text) | Value::Json(text)) => match Node::parse(text) {
            Ok(_) => Ok(Value::Json(text.to_string().into())),
            Err(_) => parsed(text).map(|document| value_of(&document)),
        },
        _ => Err(refused("42846", "only texts can be cast to json")),
    }),
    pure("jsonb_order", &[Take::Any], bytes, |call| {
        let mut key = Vec::new();
        of_value(call.values.first(), true)?.append_key(&mut key);
        Ok(Value::Bytes(key.into()))
    }),
    pure("jsonb_contains", &[Take::Any, Take::Any], bool, |call| {
        Ok(Value::Boolean(document(call, 0)?.contains(&document(call, 1)?)))
    }),
    pure("jsonb_exists", &[Take::Any, Take::Text], bool, |call| {
        Ok(Value::Boolean(document(call, 0)?.has(call.text(1))))
    }),
    pure("jsonb_exists_any", &[Take::Any, Take::Any], bool, |call| {
        let document = document(call, 0)?;
        Ok(Value::Boolean(path(call, 1)?.iter().flatten().any(|name| document.has(name))))
    }),
    pure("jsonb_exists_all", &[Take::Any, Take::Any], bool, |call| {
        let document = document(call, 0)?;
        Ok(Value::Boolean(path(call, 1)?.iter().flatten().all(|name| document.has(name))))
    }),
    pure("jsonb_concat", &[Take::Any, Take::Any], json, |call| {
        Ok(value_of(&concatenated(document(call, 0)?, document(call, 1)?)))
    })
    .of_pg_type(jsonb),
    pure("jsonb_delete", &[Take::Any, Take::Any], json, delete).of_pg_type(jsonb),
    pure("jsonb_delete_path", &[Take::Any, Take::Any], json, |call| {
        let path = whole_path(call, 1)?;
        let mut document = document(call, 0)?;
        if document.is_scalar() {
            return Err(refused("22023", "cannot delete path in scalar"));
        }
        change_whole(&mut document, &path, &Change::Delete)?;
        Ok(value_of(&document))
    })
    .of_pg_type(jsonb),
    pure("jsonb_set", &[Take::Any, Take::Any, Take::Any, Take::Bool], json, |call| {
        let creates = call.values.len() < 4 || call.bool(3);
        put(call, &Change::Set { value: document(call, 2)?, creates })
    })
    .least(3)
    .of_pg_type(jsonb),
    pure("jsonb_insert", &[Take::Any, Take::Any, Take::Any, Take::Bool], json, |call| {
        put(call, &Change::Insert { value: document(call, 2)?, after: call.values.len() > 3 && call.bool(3) })
    })
    .least(3)
    .of_pg_type(jsonb),
    pure("jsonb_strip_nulls", &[Take::Any], json, |call| Ok(value_of(&document(call, 0)?.without_nulls())))
        .of_pg_type(jsonb),
    pure("json_strip_nulls", &[Take::Text], json, |call| {
        let node = Node::parse(call.text(0)).map_err(|_| malformed(call.text(0)))?;
        let mut out = String::with_capacity(call.text(0).len());
        push_without_nulls(node, &mut out);
        Ok(Value::Json(out.into()))
    }),
    pure("jsonb_pretty", &[Take::Any], text, |call| {
        let mut out = String::new();
        document(call, 0)?.pretty(0, &mut out);
        Ok(of_text(out))
    }),
    pure("jsonb_array_length", &[Take::Any], int4, length),
    pure("json_array_length", &[Take::Any], int4, length),
    pure("jsonb_typeof", &[Take::Any], text, |call| Ok(of_text(document(call, 0)?.kind()))),
    pure("json_typeof", &[Take::Any], text, |call| Ok(of_text(document(call, 0)?.kind()))),
    pure("jsonb_build_object", &[Take::Rest], json, |call| Ok(value_of(&built_object(call)?)))
        .takes_nulls()
        .of_pg_type(jsonb),
    pure("jsonb_build_array", &[Take::Rest], json, |call| {
        let values = arguments(call);
        let items = values.iter().map(|value| of_value(Some(value), false));
        Ok(value_of(&Document::Array(items.collect::<Result<_>>()?)))
    })
    .takes_nulls()
    .of_pg_type(jsonb),
    pure("json_build_object", &[Take::Rest], json, |call| written_object(call, [", ", " : "])).takes_nulls(),
    // A row, as the names and values of its columns.
    pure("json_of_row", &[Take::Rest], json, |call| written_object(call, [",", ":"])).takes_nulls(),
    pure("json_build_array", &[Take::Rest], json, |call| {
        let mut out = String::from("[");
        for (at, value) in arguments(call).iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            push_json(value, &mut out)?;
        }
        out.push(']');
        Ok(Value::Json(out.into()))
    })
    .takes_nulls(),
    pure("to_jsonb", &[Take::Any], json, |call| Ok(value_of(&of_value(arguments(call).first(), false)?)))
        .of_pg_type(jsonb),
    pure("to_json", &[Take::Any], json, to_json),
    pure("array_to_json", &[Take::Any], json, to_json),
    pure("jsonb_object", &[Take::Any, Take::Any], json, |call| Ok(value_of(&Document::object(pairs(call)?))))
        .least(1)
        .of_pg_type(jsonb),
    // The building blocks of document aggregates: the text of an element, and an array of such
    // texts.
    pure("json_item", &[Take::Any], text, |call| {
        let mut out = String::new();
        if let Some(Value::Array(_)) = call.values.first() {
            out.push(ON_A_LINE);
        }
        push_json(arguments(call).first().unwrap_or(&Value::Null), &mut out)?;
        Ok(of_text(out))
    })
    .takes_nulls(),
    pure("json_item_of_row", &[Take::Any], text, |call| match call.values.first() {
        Some(Value::Json(text)) => Ok(of_text(format!("{ON_A_LINE}{text}"))),
        _ => Ok(of_text("null".to_owned())),
    })
    .takes_nulls(),
    pure("json_pair", &[Take::Any, Take::Any], text, |call| {
        let arguments = arguments(call);
        let Some(key) = arguments.first().filter(|key| !key.is_null()) else {
            return Err(refused("22023", "field name must not be null"));
        };
        let mut out = String::new();
        push_text(&plain_text(key)?, &mut out);
        out.push_str(" : ");
        push_json(arguments.get(1).unwrap_or(&Value::Null), &mut out)?;
        Ok(of_text(out))
    })
    .takes_nulls(),
    pure("json_array_of_items", &[Take::Any], json, |call| Ok(Value::Json(format!("[{}]", joined(call)).into()))),
    pure("json_object_of_pairs", &[Take::Any], json, |call| Ok(Value::Json(format!("{{ {} }}", joined(call)).into()))),
    pure("jsonb_array_of_items", &[Take::Any], json, |call| Ok(value_of(&parsed(&format!("[{}]", joined(call)))?)))
        .of_pg_type(jsonb),
    pure("jsonb_object_of_pairs", &[Take::Any], json, |call| Ok(value_of(&parsed(&format!("{{{}}}", joined(call)))?)))
        .of_pg_type(jsonb),
    // The results of table functions, as arrays.
    pure("jsonb_array_elements", &[Take::Any], documents, |call| {
        Ok(Value::Array(elements(call)?.iter().map(value_of).collect()))
    })
    .of_pg_type(|_| Some(ARRAY_OF_JSONB)),
    pure("jsonb_array_elements_text", &[Take::Any], texts, elements_as_texts),
    pure("jsonb_object_keys", &[Take::Any], texts, |call| {
        let members = members(call, "jsonb_object_keys", "an array", "a scalar")?;
        Ok(Value::Array(members.into_iter().map(|(name, _)| of_text(name)).collect()))
    }),
    pure("jsonb_each_names", &[Take::Any], texts, |call| {
        let members = members(call, "jsonb_each", "a non-object", "a non-object")?;
        Ok(Value::Array(members.into_iter().map(|(name, _)| of_text(name)).collect()))
    }),
    pure("jsonb_each_values", &[Take::Any], documents, |call| {
        let members = members(call, "jsonb_each", "a non-object", "a non-object")?;
        Ok(Value::Array(members.iter().map(|(_, member)| value_of(member)).collect()))
    })
    .of_pg_type(|_| Some(ARRAY_OF_JSONB)),
    pure("jsonb_each_texts", &[Take::Any], texts, |call| {
        let members = members(call, "jsonb_each_text", "a non-object", "a non-object")?;
        Ok(Value::Array(members.iter().map(|(_, member)| as_text(member)).collect()))
    }),
    pure("jsonb_to_number", &[Take::Any, Take::Text], text, |call| scalar(call, "number")),
    pure("jsonb_to_boolean", &[Take::Any, Take::Text], text, |call| scalar(call, "boolean")),
    pure("jsonb_path_exists", &[Take::Rest], bool, |_| Err(unserved("paths of jsonb are not served"))),
    pure("jsonb_path_query", &[Take::Rest], json, |_| Err(unserved("paths of jsonb are not served"))).of_pg_type(jsonb),
    pure("jsonb_path_query_array", &[Take::Rest], json, |_| Err(unserved("paths of jsonb are not served")))
        .of_pg_type(jsonb),
    pure("jsonb_path_query_first", &[Take::Rest], json, |_| Err(unserved("paths of jsonb are not served")))
        .of_pg_type(jsonb),
    pure("jsonb_path_match", &[Take::Rest], bool, |_| Err(unserved("paths of jsonb are not served"))),
];

fn jsonb(_: &[Option<u32>]) -> Option<u32> {
    Some(JSONB)
}

fn json(_: &[FieldType]) -> FieldType {
    FieldType::Json
}

fn bytes(_: &[FieldType]) -> FieldType {
    FieldType::Binary
}

fn documents(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Json))
}

fn value_of(document: &Document) -> Value<'static> {
    Value::Json(document.to_string().into())
}

fn as_text(document: &Document) -> Value<'static> {
    document.plain().map_or(Value::Null, |text| of_text(text.into_owned()))
}

/// The error for a text that is no document.
pub(super) fn malformed(text: &str) -> DataFusionError {
    let message = format!("invalid input syntax for type json: {text:?}");
    let subject = SqlSubject::Text { text: text.to_owned(), field_type: FieldType::Json };
    carried(data_error(message).with_sqlstate("22P02").about(subject))
}

/// Parses a document.
pub(super) fn parsed(text: &str) -> Result<Document> {
    Document::parse(text).map_err(|fault| match fault {
        Fault::Syntax => malformed(text),
        Fault::Zero => refused("22P05", "unsupported Unicode escape sequence"),
        Fault::Number => refused("22003", "value overflows numeric format"),
    })
}

/// An argument as a document; only texts are documents.
fn document(call: &Call<'_>, at: usize) -> Result<Document> {
    match call.values.get(at) {
        Some(Value::Text(text) | Value::Json(text)) => parsed(text),
        _ => Err(refused("42804", "a document of jsonb is expected")),
    }
}

/// The arguments. The elements of arrays of documents are documents: Arrow has one type for them
/// and texts. Timestamps with a time zone are texts in the session's time zone.
fn arguments<'c>(call: &'c Call<'_>) -> Cow<'c, [Value<'c>]> {
    let has_documents = |oid: &Option<u32>| matches!(oid, Some(ARRAY_OF_JSON | ARRAY_OF_JSONB));
    let has_zone = call.values.iter().any(has_zone);
    if !has_zone && !call.pg_types.iter().any(has_documents) {
        return Cow::Borrowed(call.values);
    }
    let zone = call.context().filter(|_| has_zone).map(StatementContext::zone);
    let values = call.values.iter().zip(call.pg_types).map(|(value, oid)| {
        let value = if has_documents(oid) { as_documents(value) } else { value.clone() };
        match &zone {
            Some(zone) => in_zone(value, zone),
            None => value,
        }
    });
    Cow::Owned(values.collect())
}

fn has_zone(value: &Value<'_>) -> bool {
    match value {
        Value::TimestampTz(_) => true,
        Value::Array(items) => items.iter().any(has_zone),
        _ => false,
    }
}

/// The value with timestamps in ISO 8601's form `2000-01-01T06:00:00+05:30`.
fn in_zone<'v>(value: Value<'v>, zone: &Zone) -> Value<'v> {
    match value {
        Value::TimestampTz(timestamp) => {
            let seconds = zone.offset_at(timestamp.timestamp_micros());
            let utc = timestamp.naive_utc();
            let local = utc.checked_add_signed(TimeDelta::seconds(i64::from(seconds))).unwrap_or(utc);
            let (sign, offset) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
            let (hours, minutes) = (offset / 3600, offset / 60 % 60);
            let mut zone = format!("{sign}{hours:02}:{minutes:02}");
            if offset % 60 != 0 {
                zone.push_str(&format!(":{:02}", offset % 60));
            }
            Value::Text(iso_text(&local, &zone).into())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(|item| in_zone(item, zone)).collect()),
        other => other,
    }
}

fn as_documents<'v>(value: &Value<'v>) -> Value<'v> {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(as_documents).collect()),
        Value::Text(text) => Value::Json(text.clone()),
        other => other.clone(),
    }
}

/// A value as a document. A text is parsed if `is_document`, otherwise it becomes a JSON string.
pub(super) fn of_value(value: Option<&Value<'_>>, is_document: bool) -> Result<Document> {
    Ok(match value {
        None | Some(Value::Null) => Document::Null,
        Some(Value::Json(text)) => parsed(text)?,
        Some(Value::Text(text)) if is_document => parsed(text)?,
        Some(Value::Boolean(value)) => Document::Bool(*value),
        Some(Value::Array(items)) => {
            Document::Array(items.iter().map(|item| of_value(Some(item), false)).collect::<Result<_>>()?)
        }
        Some(value) => {
            let text = plain_text(value)?;
            match is_number(value) {
                true => Document::number(&text).map_err(|_| refused("22003", "value overflows numeric format"))?,
                false => Document::Text(text),
            }
        }
    })
}

/// Whether a value is written as a number; a value that is not finite becomes a string.
fn is_number(value: &Value<'_>) -> bool {
    match value {
        Value::Float32(number) => number.is_finite(),
        Value::Float64(number) => number.is_finite(),
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => true,
        _ => false,
    }
}

/// Writes a document without members that are null, and without blanks.
fn push_without_nulls(node: Node<'_>, out: &mut String) {
    let (open, close) = match node.kind() {
        Kind::Object => ('{', '}'),
        Kind::Array => ('[', ']'),
        _ => return out.push_str(node.text()),
    };
    out.push(open);
    let mut is_first = true;
    for (name, child) in node.children() {
        if name.is_some() && child.text() == "null" {
            continue;
        }
        if !std::mem::replace(&mut is_first, false) {
            out.push(',');
        }
        if let Some(name) = name {
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
        }
        push_without_nulls(child, out);
    }
    out.push(close);
}

/// A timestamp in ISO 8601's form, before its zone; the era comes last.
fn iso_text(timestamp: &NaiveDateTime, zone: &str) -> String {
    let mut text = String::new();
    write_timestamp(timestamp.and_utc().timestamp_micros(), &mut text);
    let text = text.replacen(' ', "T", 1);
    match text.strip_suffix(" BC") {
        Some(text) => format!("{text}{zone} BC"),
        None => text + zone,
    }
}

/// The JSON text of a value that is no document; timestamps have a `T`.
fn plain_text(value: &Value<'_>) -> Result<String> {
    Ok(match value {
        Value::Text(text) | Value::Json(text) => text.to_string(),
        Value::Timestamp(timestamp) => iso_text(timestamp, ""),
        Value::TimestampTz(timestamp) => iso_text(&timestamp.naive_utc(), "+00:00"),
        Value::Decimal(number) => number.to_plain_string(),
        Value::Interval(_) | Value::Time(_) | Value::Date(_) => super::texts::output(Some(value)),
        Value::Bytes(bytes) => bytes.iter().fold(String::from("\\x"), |out, byte| format!("{out}{byte:02x}")),
        Value::Float32(number) => text_of_real(*number),
        Value::Float64(number) => text_of_double(*number),
        other => match other.clone().into_owned().convert(&FieldType::Varchar) {
            Ok(Value::Text(text)) => text.into_owned(),
            _ => return Err(unserved("a value of this type within a document is not served")),
        },
    })
}

/// Writes a value as `to_json` does; documents are unchanged.
fn push_json(value: &Value<'_>, out: &mut String) -> Result<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Json(text) => out.push_str(text),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                push_json(item, out)?;
            }
            out.push(']');
        }
        other if is_number(other) => out.push_str(&plain_text(other)?),
        other => push_text(&plain_text(other)?, out),
    }
    Ok(())
}

fn to_json(call: &Call<'_>) -> Result<Value<'static>> {
    let mut out = String::new();
    push_json(arguments(call).first().unwrap_or(&Value::Null), &mut out)?;
    Ok(Value::Json(out.into()))
}

/// Marks an element that starts a new line unless it is the first: arrays and rows in an array of
/// `json`. No document contains this character.
const ON_A_LINE: char = '\0';

fn joined(call: &Call<'_>) -> String {
    let Some(Value::Array(items)) = call.values.first() else { return String::new() };
    let mut out = String::new();
    for (at, item) in items.iter().enumerate() {
        let item = item.to_string();
        let (between, item) = match (at, item.strip_prefix(ON_A_LINE)) {
            (0, item_of_line) => ("", item_of_line.unwrap_or(&item)),
            (_, Some(item)) => (", \n ", item),
            (_, None) => (", ", item.as_str()),
        };
        out.push_str(between);
        out.push_str(item);
    }
    out
}

/// The names of a path: an array of texts, or its text form.
fn path(call: &Call<'_>, at: usize) -> Result<Vec<Option<String>>> {
    match call.values.get(at) {
        Some(Value::Array(names)) => Ok(names
            .iter()
            .map(|name| match name {
                Value::Null => None,
                other => Some(other.to_string()),
            })
            .collect()),
        Some(Value::Text(text)) => filbert_dialect::arrays::items(text).ok_or_else(|| {
            let message = format!("malformed array literal: {text:?}");
            refused("22P02", message)
        }),
        _ => Err(refused("42804", "a path is an array of texts")),
    }
}

fn whole_path(call: &Call<'_>, at: usize) -> Result<Vec<String>> {
    let path = path(call, at)?.into_iter().enumerate();
    path.map(|(at, name)| name.ok_or_else(|| refused("22004", format!("path element at position {} is null", at + 1))))
        .collect()
}

fn concatenated(left: Document, right: Document) -> Document {
    let items = |document: Document| match document {
        Document::Array(items) => items,
        other => vec![other],
    };
    match (left, right) {
        (Document::Object(mut left), Document::Object(right)) => {
            left.extend(right);
            Document::object(left)
        }
        (left, right) => {
            let mut all = items(left);
            all.extend(items(right));
            Document::Array(all)
        }
    }
}

/// `document - name`, `document - names`, `document - index`.
fn delete(call: &Call<'_>) -> Result<Value<'static>> {
    let mut document = document(call, 0)?;
    if document.is_scalar() {
        return Err(refused("22023", "cannot delete from scalar"));
    }
    if let Some(place) = call.int(1) {
        let Document::Array(items) = &mut document else {
            return Err(refused("22023", "cannot delete from object using integer index"));
        };
        if let Ok(at) = Document::place(items.len(), place) {
            items.remove(at);
        }
        return Ok(value_of(&document));
    }
    let names = match call.values.get(1) {
        Some(Value::Array(_)) => path(call, 1)?.into_iter().flatten().collect(),
        _ => vec![call.text(1).to_owned()],
    };
    match &mut document {
        Document::Object(members) => members.retain(|(name, _)| !names.contains(name)),
        Document::Array(items) => items.retain(|item| !matches!(item, Document::Text(text) if names.contains(text))),
        _ => {}
    }
    Ok(value_of(&document))
}

/// The change at the end of a path.
enum Change {
    Delete,
    Set { value: Document, creates: bool },
    Insert { value: Document, after: bool },
}

fn put(call: &Call<'_>, what: &Change) -> Result<Value<'static>> {
    let path = whole_path(call, 1)?;
    let mut document = document(call, 0)?;
    if document.is_scalar() {
        return Err(refused("22023", "cannot set path in scalar"));
    }
    change_whole(&mut document, &path, what)?;
    Ok(value_of(&document))
}

/// Applies a change at a path in a whole document. Deleting from an empty document does nothing.
fn change_whole(document: &mut Document, path: &[String], what: &Change) -> Result<()> {
    let creates = !matches!(what, Change::Delete | Change::Set { creates: false, .. });
    if document.is_empty() && !creates { Ok(()) } else { change(document, path, 0, what) }
}

/// Applies a change at a path, from this depth on.
fn change(document: &mut Document, path: &[String], depth: usize, what: &Change) -> Result<()> {
    let Some(name) = path.get(depth) else { return Ok(()) };
    let is_last = depth + 1 == path.len();
    match document {
        Document::Object(members) => {
            let found = members.iter().position(|(found, _)| found == name);
            match (found, is_last, what) {
                (Some(at), false, _) => {
                    if let Some((_, member)) = members.get_mut(at) {
                        change(member, path, depth + 1, what)?;
                    }
                }
                (None, false, _) | (None, true, Change::Delete | Change::Set { creates: false, .. }) => {}
                (Some(at), true, Change::Delete) => _ = members.remove(at),
                (Some(at), true, Change::Set { value, .. }) => {
                    if let Some((_, member)) = members.get_mut(at) {
                        *member = value.clone();
                    }
                }
                (Some(_), true, Change::Insert { .. }) => {
                    return Err(refused("22023", "cannot replace existing key"));
                }
                (None, true, Change::Set { value, .. } | Change::Insert { value, .. }) => {
                    let mut all = std::mem::take(members);
                    all.push((name.clone(), value.clone()));
                    *document = Document::object(all);
                }
            }
        }
        Document::Array(items) => {
            let place = name.trim().parse::<i64>().map_err(|_| {
                let at = depth + 1;
                refused("22P02", format!("path element at position {at} is not an integer: \"{name}\""))
            })?;
            let found = Document::place(items.len(), place);
            match (found, is_last, what) {
                (Ok(at), false, _) => {
                    if let Some(item) = items.get_mut(at) {
                        change(item, path, depth + 1, what)?;
                    }
                }
                (Err(_), false, _) | (Err(_), true, Change::Delete | Change::Set { creates: false, .. }) => {}
                (Ok(at), true, Change::Delete) => _ = items.remove(at),
                (Ok(at), true, Change::Set { value, .. }) => {
                    if let Some(item) = items.get_mut(at) {
                        *item = value.clone();
                    }
                }
                (Ok(at), true, Change::Insert { value, after }) => {
                    items.insert(at + usize::from(*after), value.clone())
                }
                (Err(is_after), true, Change::Set { value, .. } | Change::Insert { value, .. }) => {
                    let at = if is_after { items.len() } else { 0 };
                    items.insert(at, value.clone());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn length(call: &Call<'_>) -> Result<Value<'static>> {
    match document(call, 0)? {
        Document::Array(items) => Ok(i32::try_from(items.len()).map_or(Value::Null, Value::Int32)),
        Document::Object(_) => Err(refused("22023", "cannot get array length of a non-array")),
        _ => Err(refused("22023", "cannot get array length of a scalar")),
    }
}

fn elements(call: &Call<'_>) -> Result<Vec<Document>> {
    match document(call, 0)? {
        Document::Array(items) => Ok(items),
        Document::Object(_) => Err(refused("22023", "cannot extract elements from an object")),
        _ => Err(refused("22023", "cannot extract elements from a scalar")),
    }
}

fn elements_as_texts(call: &Call<'_>) -> Result<Value<'static>> {
    Ok(Value::Array(elements(call)?.iter().map(as_text).collect()))
}

fn members(call: &Call<'_>, name: &str, array: &str, scalar: &str) -> Result<Vec<(String, Document)>> {
    match document(call, 0)? {
        Document::Object(members) => Ok(members),
        Document::Array(_) => Err(refused("22023", format!("cannot call {name} on {array}"))),
        _ => Err(refused("22023", format!("cannot call {name} on {scalar}"))),
    }
}

/// The text of a scalar document of a kind, for a cast to the named type.
fn scalar(call: &Call<'_>, kind: &str) -> Result<Value<'static>> {
    let document = document(call, 0)?;
    if document.kind() != kind {
        let message = format!("cannot cast jsonb {} to type {}", document.kind(), call.text(1));
        return Err(refused("22023", message));
    }
    let value_of = document.to_string();
    let is_whole = matches!(call.text(1), "smallint" | "integer" | "bigint");
    // Rounds like casts to whole numbers: halves away from zero.
    Ok(of_text(match value_of.parse::<BigDecimal>() {
        Ok(number) if is_whole => number.with_scale_round(0, RoundingMode::HalfUp).to_plain_string(),
        _ => value_of,
    }))
}

fn key_of(value: Option<&Value<'_>>, at: usize) -> Result<String> {
    match value {
        None | Some(Value::Null) => Err(refused("22023", format!("argument {}: key must not be null", at + 1))),
        Some(Value::Array(_)) => Err(refused("22023", "key value must be scalar, not array, composite, or json")),
        Some(value) => plain_text(value),
    }
}

fn check_pairs(call: &Call<'_>) -> Result<(), DataFusionError> {
    match call.values.len().is_multiple_of(2) {
        true => Ok(()),
        false => Err(refused("22023", "argument list must have even number of elements")),
    }
}

fn built_object(call: &Call<'_>) -> Result<Document> {
    check_pairs(call)?;
    let values = arguments(call);
    let pairs = values
        .chunks(2)
        .enumerate()
        .map(|(at, pair)| Ok((key_of(pair.first(), at * 2)?, of_value(pair.get(1), false)?)));
    Ok(Document::object(pairs.collect::<Result<_>>()?))
}

/// A document of names and values, with separators between pairs and within them.
fn written_object(call: &Call<'_>, [between, within]: [&str; 2]) -> Result<Value<'static>> {
    check_pairs(call)?;
    let mut out = String::from("{");
    for (at, pair) in arguments(call).chunks(2).enumerate() {
        out.push_str(if at > 0 { between } else { "" });
        push_text(&key_of(pair.first(), at * 2)?, &mut out);
        out.push_str(within);
        push_json(pair.get(1).unwrap_or(&Value::Null), &mut out)?;
    }
    out.push('}');
    Ok(Value::Json(out.into()))
}

/// The names and texts of `jsonb_object(names_and_texts)` or `jsonb_object(names, texts)`.
fn pairs(call: &Call<'_>) -> Result<Vec<(String, Document)>> {
    let first = path(call, 0)?;
    let (names, values): (Vec<_>, Vec<_>) = match call.values.len() {
        1 => {
            if !first.len().is_multiple_of(2) {
                return Err(refused("2202E", "array must have even number of elements"));
            }
            first.chunks(2).map(|pair| (pair.first().cloned().flatten(), pair.get(1).cloned().flatten())).unzip()
        }
        _ => (first, path(call, 1)?),
    };
    if names.len() != values.len() {
        return Err(refused("2202E", "mismatched array dimensions"));
    }
    let pairs = names.into_iter().zip(values).map(|(name, value)| match name {
        Some(name) => Ok((name, value.map_or(Document::Null, Document::Text))),
        None => Err(refused("22004", "null value not allowed for object key")),
    });
    pairs.collect()
}
