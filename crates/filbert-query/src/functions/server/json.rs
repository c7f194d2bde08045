//! JSON documents as PostgreSQL's operators and CrateDB's subscripts look into them.

use datafusion::common::Result;
use filbert_data::{FieldType, Value};

use super::super::json::{Node, push_json_text, push_json_value};
use super::super::row::failed;
use super::native::{Call, Native, Take, bool, int4, of_text, pure, text};

pub(super) const FUNCTIONS: &[Native] = &[
    // `document -> key`, `document -> place`
    pure("json_get", &[Take::Text, Take::Any], json, |call| with(call, |node| step(node, call.values.get(1)), as_json)),
    // `document ->> key`
    pure("json_get_text", &[Take::Text, Take::Any], text, |call| {
        with(call, |node| step(node, call.values.get(1)), as_text)
    }),
    // `document #> path`
    pure("json_get_path", &[Take::Text, Take::Any], json, |call| with(call, |node| along(node, call), as_json)),
    // `document #>> path`
    pure("json_get_path_text", &[Take::Text, Take::Any], text, |call| with(call, |node| along(node, call), as_text)),
    pure("json_extract_path", &[Take::Text, Take::Rest], json, |call| {
        let keys = call.values.get(1..).unwrap_or_default();
        with(call, |node| keys.iter().try_fold(node, |node, key| step(node, Some(key))), as_json)
    }),
    pure("json_extract_path_text", &[Take::Text, Take::Rest], text, |call| {
        let keys = call.values.get(1..).unwrap_or_default();
        with(call, |node| keys.iter().try_fold(node, |node, key| step(node, Some(key))), as_text)
    }),
    // `document @> part`
    pure("json_contains", &[Take::Text, Take::Text], bool, |call| {
        let (whole, part) = (parsed(call.text(0))?, parsed(call.text(1))?);
        Ok(Value::Boolean(contains(whole, part)))
    }),
    // `document ? key`
    pure("json_has_key", &[Take::Text, Take::Text], bool, |call| {
        let node = parsed(call.text(0))?;
        let is_key = node.member(call.text(1)).is_some();
        Ok(Value::Boolean(is_key || node.children().any(|(key, item)| key.is_none() && item.plain() == call.text(1))))
    }),
    pure("json_array_length", &[Take::Text], int4, array_length),
    pure("jsonb_array_length", &[Take::Text], int4, array_length),
    pure("json_typeof", &[Take::Text], text, type_of),
    pure("jsonb_typeof", &[Take::Text], text, type_of),
    pure("json_build_object", &[Take::Rest], json, object).takes_nulls(),
    pure("jsonb_build_object", &[Take::Rest], json, object).takes_nulls(),
    pure("json_build_array", &[Take::Rest], json, array).takes_nulls(),
    pure("jsonb_build_array", &[Take::Rest], json, array).takes_nulls(),
    pure("to_json", &[Take::Any], json, single),
    pure("to_jsonb", &[Take::Any], json, single),
];

fn json(_: &[FieldType]) -> FieldType {
    FieldType::Json
}

fn parsed(text: &str) -> Result<Node<'_>> {
    Node::parse(text).map_err(|_| failed("invalid input syntax for type json"))
}

/// Finds something in the first argument, and tells it.
fn with<'c>(
    call: &'c Call<'_>,
    find: impl FnOnce(Node<'c>) -> Option<Node<'c>>,
    tell: fn(Node<'_>) -> Value<'static>,
) -> Result<Value<'static>> {
    let node = parsed(call.text(0))?;
    Ok(find(node).map_or(Value::Null, tell))
}

fn as_json(node: Node<'_>) -> Value<'static> {
    Value::Json(node.text().to_owned().into())
}

fn as_text(node: Node<'_>) -> Value<'static> {
    if node.text() == "null" { Value::Null } else { of_text(node.plain().into_owned()) }
}

/// The member of a name, or the item of a place; from the end for negative ones.
fn step<'n>(node: Node<'n>, key: Option<&Value<'_>>) -> Option<Node<'n>> {
    let place = match key? {
        Value::Text(name) => {
            return node.member(name).or_else(|| {
                node.children().nth(name.parse().ok()?).filter(|(key, _)| key.is_none()).map(|(_, item)| item)
            });
        }
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

/// Along a path: an array of names and places, or its text `{a,0,b}`.
fn along<'n>(node: Node<'n>, call: &Call<'_>) -> Option<Node<'n>> {
    let mut node = node;
    match call.values.get(1)? {
        Value::Array(keys) => {
            for key in keys {
                node = step(node, Some(key))?;
            }
        }
        Value::Text(path) => {
            let inner = path.trim().trim_start_matches('{').trim_end_matches('}');
            for part in inner.split(',').filter(|part| !part.is_empty()) {
                node = step(node, Some(&of_text(part.trim().trim_matches('"'))))?;
            }
        }
        _ => return None,
    }
    Some(node)
}

/// Whether all of a document is in another, as `jsonb`'s `@>` has it.
fn contains(whole: Node<'_>, part: Node<'_>) -> bool {
    let of = |node: Node<'_>| node.text().chars().next();
    match (of(whole), of(part)) {
        (Some('{'), Some('{')) => part.children().all(|(key, wanted)| {
            let key = key.map(|key| key.trim_matches('"')).unwrap_or_default();
            whole.member(key).is_some_and(|found| contains(found, wanted))
        }),
        (Some('['), Some('[')) => {
            part.children().all(|(_, wanted)| whole.children().any(|(_, found)| contains(found, wanted)))
        }
        (Some('['), _) if part.is_scalar() => whole.children().any(|(_, found)| contains(found, part)),
        _ => whole.is_scalar() && part.is_scalar() && whole.plain() == part.plain(),
    }
}

fn array_length(call: &Call<'_>) -> Result<Value<'static>> {
    let node = parsed(call.text(0))?;
    if !node.text().starts_with('[') {
        return Err(failed("cannot get array length of a non-array"));
    }
    Ok(i32::try_from(node.children().count()).map_or(Value::Null, Value::Int32))
}

fn type_of(call: &Call<'_>) -> Result<Value<'static>> {
    Ok(of_text(match parsed(call.text(0))?.text().chars().next() {
        Some('{') => "object",
        Some('[') => "array",
        Some('"') => "string",
        Some('t' | 'f') => "boolean",
        Some('n') => "null",
        _ => "number",
    }))
}

fn single(call: &Call<'_>) -> Result<Value<'static>> {
    let mut out = String::new();
    push(call.values.first(), &mut out)?;
    Ok(Value::Json(out.into()))
}

fn push(value: Option<&Value<'_>>, out: &mut String) -> Result<()> {
    match value {
        Some(Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push(Some(item), out)?;
            }
            out.push(']');
            Ok(())
        }
        Some(value) => push_json_value(value, out),
        None => {
            out.push_str("null");
            Ok(())
        }
    }
}

fn array(call: &Call<'_>) -> Result<Value<'static>> {
    let mut out = String::new();
    out.push('[');
    for (at, value) in call.values.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        push(Some(value), &mut out)?;
    }
    out.push(']');
    Ok(Value::Json(out.into()))
}

fn object(call: &Call<'_>) -> Result<Value<'static>> {
    let mut out = String::new();
    out.push('{');
    for (at, pair) in call.values.chunks(2).enumerate() {
        let (Some(key), Some(value)) = (pair.first(), pair.get(1)) else {
            return Err(failed("json_build_object takes pairs of a key and a value"));
        };
        if at > 0 {
            out.push_str(", ");
        }
        push_json_text(&key.to_string(), &mut out);
        out.push_str(" : ");
        push(Some(value), &mut out)?;
    }
    out.push('}');
    Ok(Value::Json(out.into()))
}
