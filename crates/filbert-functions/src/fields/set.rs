//! `object_set(object, value, key, ..)`: an object with a value at a path of keys. Missing objects
//! along the path are created.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarFunctionArgs;
use filbert_data::Value;
use filbert_grid::query::ColumnReader;

use super::super::json::{Kind, Node, push_json_text};
use super::super::row::{Texts, wrong_arguments};
use super::read::parsed;
use crate::error::{carried, data_error};
use crate::json::push_json;
use crate::types::field_type_of;

pub(super) fn set(args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    let objects = Texts::of(args, 0)?;
    let (Some(value), Some(field)) = (args.args.get(1), args.arg_fields.get(1)) else {
        return Err(DataFusionError::Internal("the value is missing".to_owned()));
    };
    let values = value.to_array(rows)?;
    let reader = ColumnReader::new(values.as_ref(), &field_type_of(field));
    let reader = reader.ok_or_else(|| wrong_arguments("object_set", &[field.data_type().clone()]))?;
    let keys = (2..args.args.len()).map(|at| Texts::of(args, at)).collect::<Result<Vec<_>>>()?;
    let mut builder = StringViewBuilder::with_capacity(rows);
    for row in 0..rows {
        let path: Option<Vec<&str>> = keys.iter().map(|key| key.get(row)).collect();
        let path = path.ok_or_else(|| carried(data_error("the name of a member is null").with_sqlstate("22004")))?;
        let object = match objects.get(row) {
            Some(text) => Some(parsed(text)?).filter(|node| node.kind() != Kind::Null),
            None => None,
        };
        let mut out = String::new();
        push_with(object, &path, &reader.get(row), &mut out)?;
        builder.append_value(out);
    }
    Ok(Arc::new(builder.finish()))
}

/// Writes an object with a value at a path.
fn push_with(object: Option<Node<'_>>, path: &[&str], value: &Value<'_>, out: &mut String) -> Result<()> {
    let Some((name, rest)) = path.split_first() else {
        match value {
            // Arrays keep nulls, and documents stay documents, as in JSON.
            Value::Json(text) => out.push_str(parsed(text)?.text()),
            value => push_json(value, out),
        }
        return Ok(());
    };
    if let Some(other) = object.filter(|node| node.kind() != Kind::Object) {
        let shown: String = other.text().chars().take(60).collect();
        let text = format!("member {name:?} cannot be set in {shown}, expected an object");
        return Err(carried(data_error(text).with_sqlstate("22P02")));
    }
    out.push('{');
    let start = out.len();
    let next = |key: &str, out: &mut String| {
        if out.len() > start {
            out.push(',');
        }
        out.push_str(key);
        out.push(':');
    };
    let mut is_set = false;
    for (key, member) in object.into_iter().flat_map(Node::children) {
        // In quotes, as written.
        let key = format!("\"{}\"", key.unwrap_or_default());
        let is_it = Node::parse(&key).is_ok_and(|key| key.plain() == *name);
        if is_it && is_set {
            continue;
        }
        next(&key, out);
        match is_it {
            true => push_with(Some(member).filter(|node| node.kind() != Kind::Null), rest, value, out)?,
            false => out.push_str(member.text()),
        }
        is_set |= is_it;
    }
    if !is_set {
        let mut key = String::new();
        push_json_text(name, &mut key);
        next(&key, out);
        push_with(None, rest, value, out)?;
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: &str, path: &[&str], value: Value<'_>, expected: &str) {
        let mut out = String::new();
        push_with(Node::parse(object).ok(), path, &value, &mut out).unwrap();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_member_is_set_wherever_it_is() {
        check("{\"a\": 1, \"b\": 2}", &["a"], Value::Int32(5), "{\"a\":5,\"b\":2}");
        check("{}", &["a"], Value::text("x\"y"), "{\"a\":\"x\\\"y\"}");
        check("", &["a", "b"], Value::Boolean(true), "{\"a\":{\"b\":true}}");
        check("{\"a\": {\"c\": [1]}}", &["a", "b"], Value::Null, "{\"a\":{\"c\":[1],\"b\":null}}");
        check("{\"a\": null}", &["a", "b"], Value::Json("[1]".into()), "{\"a\":{\"b\":[1]}}");
        check("{\"a\":1,\"\\u0061\":2}", &["a"], Value::Int8(3), "{\"a\":3}");
        assert!(push_with(Node::parse("{\"a\": 1}").ok(), &["a", "b"], &Value::Null, &mut String::new()).is_err());
    }
}
