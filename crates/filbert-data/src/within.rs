//! Follows a path into a value that was already read: into an item of an array or a list, or into a
//! nested object.
//!
//! This module knows formats, but not entries. The readers of whole fields, `fields` and `ids`, use
//! it.

use std::borrow::Cow;

use crate::compact::SchemaSource;
use crate::plain::Items;
use crate::{BLOB_HEADER_BYTES, DataError, Path, Step, TypeId, Value, compact, json, portable, type_id};

/// The value that a path finds in an array or a list.
pub(crate) fn in_items<'a>(
    type_id: TypeId,
    blob: &'a [u8],
    steps: &[Step],
    schemas: &dyn SchemaSource,
) -> Result<Value<'a>, DataError> {
    let mut items = Items::of(type_id, blob, Some(schemas));
    match steps.split_first() {
        None => Ok(Value::Object(Cow::Borrowed(blob))),
        Some((Step::Field(_), _)) => Ok(Value::Null),
        Some((Step::Index(index), rest)) => {
            let (mut at, mut found) = (0, Value::Null);
            items.each(|value| {
                if at == *index {
                    found = in_value(value, rest, schemas)?;
                }
                at += 1;
                Ok(at <= *index)
            })?;
            Ok(found)
        }
        Some((Step::Any, rest)) => {
            let flat = rest.contains(&Step::Any);
            let mut all = Vec::new();
            let there = items.each(|value| {
                match in_value(value, rest, schemas)? {
                    Value::Array(found) if flat => all.extend(found),
                    found => all.push(found),
                }
                Ok(true)
            })?;
            Ok(if there { Value::Array(all) } else { Value::Null })
        }
    }
}

/// The value that a path finds in a value that was already read.
pub(crate) fn in_value<'a>(
    value: Value<'a>,
    steps: &[Step],
    schemas: &dyn SchemaSource,
) -> Result<Value<'a>, DataError> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value) };
    match value {
        Value::Array(items) => match step {
            Step::Field(_) => Ok(Value::Null),
            Step::Index(index) => match items.into_iter().nth(*index) {
                Some(item) => in_value(item, rest, schemas),
                None => Ok(Value::Null),
            },
            Step::Any => {
                let flat = rest.contains(&Step::Any);
                let mut all = Vec::new();
                for item in items {
                    match in_value(item, rest, schemas)? {
                        Value::Array(found) if flat => all.extend(found),
                        found => all.push(found),
                    }
                }
                Ok(Value::Array(all))
            }
        },
        Value::Json(text) => json::find(&text, steps).map(Value::into_owned),
        Value::Object(blob) => {
            let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
            let path = Path::of(steps.to_vec());
            let mut found = Value::Null;
            let visit = &mut |_, value: Value<'_>| found = value.into_owned();
            match type_id(&blob)? {
                TypeId::PORTABLE => portable::read_fields(payload, &[(0, &path)], visit)?,
                TypeId::COMPACT => compact::read_fields(payload, schemas, &[(0, &path)], visit)?,
                _ => {}
            }
            Ok(found)
        }
        _ => Ok(Value::Null),
    }
}
