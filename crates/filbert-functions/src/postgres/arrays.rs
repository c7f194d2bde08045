//! Functions and operators of arrays.
//!
//! An array of several dimensions is an array of arrays. Elements are compared by value; nulls are
//! equal to each other and greater than all other values, as in PostgreSQL's order of arrays.

use std::borrow::Cow;
use std::cmp::Ordering;

use bigdecimal::{BigDecimal, FromPrimitive};
use datafusion::common::Result;
use filbert_data::{FieldType, Value, is_space};
use filbert_grid::query::arrow_type;

use super::super::results::check_value;
use super::dates::length;
use super::members;
use super::texts::push_output;
use super::{refused, unserved};
use crate::json::Document;
use crate::native::{Call, Native, Take, bool, int4, of_text, pure, text};
use crate::numbers::common_type;
use crate::types::{ARRAY_OF_JSONB, BPCHAR, JSONB, Length, Mark, field_type_of_arrow, is_vector};

/// The maximum number of elements of a created array.
const ITEMS_MAX: i64 = 1 << 20;

pub(super) const FUNCTIONS: &[Native] = &[
    pure("array_append", &[Take::Any, Take::Any], widest, |call| {
        let mut all = items(call, 0)?.to_vec();
        check_flat(&all)?;
        all.extend(call.values.get(1).cloned());
        Ok(owned(all))
    })
    .takes_nulls(),
    pure("array_prepend", &[Take::Any, Take::Any], widest, |call| {
        let rest = items(call, 1)?;
        check_flat(rest)?;
        Ok(owned(call.values.first().into_iter().chain(rest).cloned().collect()))
    })
    .takes_nulls(),
    pure("array_cat", &[Take::Any, Take::Any], widest, |call| {
        let (left, right) = (items(call, 0)?, items(call, 1)?);
        if call.values.iter().all(Value::is_null) {
            return Ok(Value::Null);
        }
        let (left_depth, right_depth) = (dimensions(left).len(), dimensions(right).len());
        let all: Vec<Value<'_>> = match left_depth.cmp(&right_depth) {
            _ if left.is_empty() || right.is_empty() || left_depth == right_depth => {
                left.iter().chain(right).cloned().collect()
            }
            Ordering::Greater => left.iter().cloned().chain([Value::Array(right.to_vec())]).collect(),
            _ => std::iter::once(Value::Array(left.to_vec())).chain(right.iter().cloned()).collect(),
        };
        check_even(&all)?;
        Ok(owned(all))
    })
    .takes_nulls(),
    pure("array_remove", &[Take::Any, Take::Any], widest, |call| {
        if call.values.first().is_none_or(Value::is_null) {
            return Ok(Value::Null);
        }
        let (all, gone) = (items(call, 0)?, call.values.get(1).unwrap_or(&Value::Null));
        check_flat(all)?;
        let gone = compared(call, gone);
        let is_kept = |item: &&Value<'_>| compare(&compared(call, item), &gone) != Ordering::Equal;
        Ok(owned(all.iter().filter(is_kept).cloned().collect()))
    })
    .takes_nulls(),
    pure("array_replace", &[Take::Any, Take::Any, Take::Any], widest, |call| {
        if call.values.first().is_none_or(Value::is_null) {
            return Ok(Value::Null);
        }
        let (old, new) = (call.values.get(1).unwrap_or(&Value::Null), call.values.get(2).unwrap_or(&Value::Null));
        Ok(owned(replaced(call, items(call, 0)?, &compared(call, old), new)))
    })
    .takes_nulls(),
    pure("array_position", &[Take::Any, Take::Any, Take::Int], int4, |call| {
        let start = call.int(2).unwrap_or(i64::MIN);
        let found = positions(call)?.into_iter().flatten().find(|at| i64::from(*at) >= start);
        Ok(found.map_or(Value::Null, Value::Int32))
    })
    .least(2)
    .takes_nulls(),
    pure("array_positions", &[Take::Any, Take::Any], ints, |call| {
        Ok(positions(call)?.map_or(Value::Null, |all| Value::Array(all.into_iter().map(Value::Int32).collect())))
    })
    .takes_nulls(),
    pure("array_to_string", &[Take::Any, Take::Text, Take::Text], text, |call| {
        if call.values.iter().take(2).any(Value::is_null) {
            return Ok(Value::Null);
        }
        let null = call.values.get(2).filter(|null| !null.is_null()).map(|_| call.text(2));
        let mut parts = Vec::new();
        flattened(items(call, 0)?, &mut |item| match (item.is_null(), null) {
            (true, Some(null)) => parts.push(null.to_owned()),
            (true, None) => {}
            (false, _) => {
                let mut part = String::new();
                push_output(item, &mut part);
                parts.push(part);
            }
        });
        let between = call.text(1);
        check_value(parts.len().saturating_mul(between.len()) + parts.iter().map(String::len).sum::<usize>())?;
        Ok(of_text(parts.join(between)))
    })
    .least(2)
    .takes_nulls(),
    pure("array_length", &[Take::Any, Take::Int], int4, |call| Ok(dimension(call)?.map_or(Value::Null, Value::Int32))),
    pure("array_upper", &[Take::Any, Take::Int], int4, |call| {
        Ok(dimension(call)?.map_or(Value::Null, |length| Value::Int32(length - 1 + lower(call))))
    }),
    pure("array_lower", &[Take::Any, Take::Int], int4, |call| {
        Ok(dimension(call)?.map_or(Value::Null, |_| Value::Int32(lower(call))))
    }),
    pure("array_ndims", &[Take::Any], int4, |call| {
        let count = dimensions(items(call, 0)?).len();
        Ok(i32::try_from(count).ok().filter(|count| *count > 0).map_or(Value::Null, Value::Int32))
    }),
    pure("array_dims", &[Take::Any], text, |call| {
        let dimensions = dimensions(items(call, 0)?);
        let lower = lower(call);
        let upper = |length: &usize| i32::try_from(*length).unwrap_or(i32::MAX) - 1 + lower;
        let text: String = dimensions.iter().map(|length| format!("[{lower}:{}]", upper(length))).collect();
        Ok(if text.is_empty() { Value::Null } else { of_text(text) })
    }),
    pure("cardinality", &[Take::Any], int4, |call| {
        let mut count = 0;
        flattened(items(call, 0)?, &mut |_| count += 1);
        Ok(Value::Int32(count))
    }),
    pure("array_fill", &[Take::Any, Take::Any], filled, |call| {
        let lengths = items(call, 1)?;
        let [length] = lengths else { return Err(unserved("array_fill is served for one dimension")) };
        let length = match length {
            Value::Int32(length) => i64::from(*length),
            Value::Int64(length) => *length,
            _ => return Err(refused("22004", "dimension values cannot be null")),
        };
        if !(0..=ITEMS_MAX).contains(&length) {
            return Err(refused("54000", format!("array size exceeds the maximum allowed ({ITEMS_MAX})")));
        }
        let item = call.values.first().unwrap_or(&Value::Null);
        Ok(owned((0..length).map(|_| item.clone()).collect()))
    })
    .takes_nulls(),
    pure("trim_array", &[Take::Any, Take::Int], first, |call| {
        let all = items(call, 0)?;
        let kept = usize::try_from(call.int(1).unwrap_or(0)).ok().and_then(|gone| all.len().checked_sub(gone));
        match kept.and_then(|kept| all.get(..kept)) {
            Some(kept) => Ok(owned(kept.to_vec())),
            None => Err(refused("2202E", format!("number of elements to trim must be between 0 and {}", all.len()))),
        }
    }),
    pure("array_contains", &[Take::Any, Take::Any], bool, |call| {
        let (whole, part) = (compared_items(call, 0)?, compared_items(call, 1)?);
        Ok(Value::Boolean(contains(&whole, &part)))
    }),
    pure("array_overlaps", &[Take::Any, Take::Any], bool, |call| {
        let (mut left, mut is_found) = (Vec::new(), false);
        let (of_left, of_right) = (compared_items(call, 0)?, compared_items(call, 1)?);
        flattened(&of_left, &mut |item| left.push(item));
        let is_in = |item: &Value<'_>| left.iter().any(|found| compare(found, item) == Ordering::Equal);
        flattened(&of_right, &mut |item| is_found |= !item.is_null() && is_in(item));
        Ok(Value::Boolean(is_found))
    }),
    pure("array_compare", &[Take::Any, Take::Any], int4, |call| {
        let (Some(left), Some(right)) = (call.values.first(), call.values.get(1)) else { return Ok(Value::Null) };
        Ok(Value::Int32(match compare(&compared(call, left), &compared(call, right)) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    }),
    // `array[index]`: null outside of the array; `document[name]`.
    pure("array_item", &[Take::Any, Take::Subscript], item_type, |call| {
        if is_document(call) {
            return members::member_at(call);
        }
        let at = call.int(1).and_then(|number| number.checked_sub(lower(call).into()));
        let all = items(call, 0)?;
        let found = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| all.get(at));
        Ok(found.filter(|item| !matches!(item, Value::Array(_))).map_or(Value::Null, |item| item.clone().into_owned()))
    })
    .of_pg_type(members::same),
    // `array[row][column]`, `document[name][name]`
    pure("array_item_of_two", &[Take::Any, Take::Subscript, Take::Subscript], item_type, |call| {
        if is_document(call) {
            return members::member_at(call);
        }
        let at = |number: usize| usize::try_from(call.int(number).unwrap_or(0) - 1).ok();
        let all = items(call, 0)?;
        let row = at(1).and_then(|at| all.get(at));
        let Some(Value::Array(row)) = row else { return Ok(Value::Null) };
        let found = at(2).and_then(|at| row.get(at)).filter(|item| !matches!(item, Value::Array(_)));
        Ok(found.map_or(Value::Null, |item| item.clone().into_owned()))
    })
    .of_pg_type(members::same),
    // `array[from:to]`, `array[from:to][from:to]`
    pure("array_section", &[Take::Any, Take::Int, Take::Int, Take::Rest], first, |call| {
        let mut bounds = Vec::new();
        for at in (1..call.values.len()).step_by(2) {
            // Sections count from 1.
            let bound = |at| match call.int(at) {
                Some(bound) => Ok(bound.saturating_add(1 - i64::from(lower(call)))),
                None => Err(refused("42804", "array subscript must have type integer")),
            };
            bounds.push((bound(at)?, bound(at + 1)?));
        }
        let section = section(items(call, 0)?, &bounds);
        // An array with an empty dimension is empty.
        let is_empty = dimensions(&section).len() < bounds.len();
        Ok(if is_empty { Value::Array(Vec::new()) } else { owned(section) })
    }),
    // Converts elements of `char(n)` to `text`.
    pure("array_without_blanks", &[Take::Any], first, |call| Ok(owned(formed(items(call, 0)?, without_blanks)))),
    pure("generate_subscripts", &[Take::Any, Take::Int], ints, |call| {
        let lower = lower(call);
        Ok(Value::Array((lower..lower + dimension(call)?.unwrap_or(0)).map(Value::Int32).collect()))
    }),
    // `WITH ORDINALITY`: the numbers of the rows that arrays become together.
    pure("array_ordinals", &[Take::Any, Take::Rest], bigints, |call| {
        let length = |value: &Value<'_>| if let Value::Array(items) = value { items.len() } else { 0 };
        let most = call.values.iter().map(length).max().unwrap_or(0);
        Ok(Value::Array((1..=i64::try_from(most).unwrap_or(0)).map(Value::Int64).collect()))
    })
    .takes_nulls(),
];

/// The number of an array's first element.
fn lower(call: &Call<'_>) -> i32 {
    i32::from(!is_vector(call.pg_types.first().copied().flatten()))
}

fn bigints(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::BigInt))
}

/// The elements within the bounds, from 1 and inclusive, of each dimension.
fn section<'v>(all: &[Value<'v>], bounds: &[(i64, i64)]) -> Vec<Value<'v>> {
    let Some(((from, to), within)) = bounds.split_first() else { return all.to_vec() };
    let start = usize::try_from((*from).max(1) - 1).unwrap_or(usize::MAX);
    let end = usize::try_from(*to).unwrap_or(0).min(all.len());
    let rows = all.get(start..end).unwrap_or_default().iter();
    let row = |row: &Value<'v>| match row {
        Value::Array(row) => Value::Array(section(row, within)),
        item => item.clone(),
    };
    rows.map(row).collect()
}

fn ints(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Integer))
}

fn first(types: &[FieldType]) -> FieldType {
    types.first().cloned().unwrap_or(FieldType::Varchar)
}

fn filled(types: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(first(types)))
}

fn item_type(types: &[FieldType]) -> FieldType {
    match types.first() {
        // An element of an array of arrays would be an array, which PostgreSQL does not return
        // here.
        Some(FieldType::Array(item)) => innermost(item),
        Some(FieldType::Json) => FieldType::Json,
        _ => FieldType::Varchar,
    }
}

fn is_document(call: &Call<'_>) -> bool {
    members::same(call.pg_types).is_some()
}

fn innermost(field_type: &FieldType) -> FieldType {
    match field_type {
        FieldType::Array(item) => innermost(item),
        other => other.clone(),
    }
}

fn rank(field_type: &FieldType) -> Option<u8> {
    Some(match field_type {
        FieldType::TinyInt => 0,
        FieldType::SmallInt => 1,
        FieldType::Integer => 2,
        FieldType::BigInt => 3,
        FieldType::Decimal(_) => 4,
        FieldType::Real => 5,
        FieldType::Double => 6,
        _ => return None,
    })
}

/// The array type with an element type for all values.
fn widest(types: &[FieldType]) -> FieldType {
    let mut arrays = types.iter().filter(|found| matches!(found, FieldType::Array(_)));
    let deepest = arrays.clone().max_by_key(|found| depth(found)).cloned();
    let mut item = match arrays.next() {
        Some(array) => innermost(array),
        None => return FieldType::Array(Box::new(FieldType::Varchar)),
    };
    for other in types {
        let other = innermost(other);
        let is_decimal = |found: &FieldType| matches!(found, FieldType::Decimal(_));
        if is_decimal(&item) || is_decimal(&other) {
            let (left, right) = (arrow_type(&item), arrow_type(&other));
            if let Some(common) = common_type(&[&left, &right]) {
                item = field_type_of_arrow(&common);
            }
        } else if let (Some(left), Some(right)) = (rank(&item), rank(&other))
            && right > left
        {
            item = other;
        }
    }
    (0..deepest.as_ref().map_or(1, depth)).fold(item, |item, _| FieldType::Array(Box::new(item)))
}

fn depth(field_type: &FieldType) -> usize {
    match field_type {
        FieldType::Array(item) => 1 + depth(item),
        _ => 0,
    }
}

fn owned(items: Vec<Value<'_>>) -> Value<'static> {
    Value::Array(items.into_iter().map(Value::into_owned).collect())
}

/// The elements of an argument; empty for null.
fn items<'c>(call: &'c Call<'_>, at: usize) -> Result<&'c [Value<'c>]> {
    match call.values.get(at) {
        Some(Value::Array(items)) => Ok(items),
        None | Some(Value::Null) => Ok(&[]),
        Some(_) => Err(refused("42883", "an array is expected: a text has to be cast to one, as in '{1,2}'::int[]")),
    }
}

fn check_flat(items: &[Value<'_>]) -> Result<()> {
    match items.iter().any(|item| matches!(item, Value::Array(_))) {
        true => Err(refused("22000", "argument must be empty or one-dimensional array")),
        false => Ok(()),
    }
}

fn check_even(items: &[Value<'_>]) -> Result<()> {
    let lengths = |item: &Value<'_>| match item {
        Value::Array(items) => dimensions(items),
        _ => Vec::new(),
    };
    match items.split_first() {
        Some((first, rest)) if rest.iter().any(|item| lengths(item) != lengths(first)) => {
            Err(refused("2202E", "cannot concatenate incompatible arrays"))
        }
        _ => Ok(()),
    }
}

/// The lengths of the dimensions; empty for an empty array.
fn dimensions(items: &[Value<'_>]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut level = items;
    while !level.is_empty() {
        lengths.push(level.len());
        level = match level.first() {
            Some(Value::Array(items)) => items,
            _ => break,
        };
    }
    lengths
}

fn dimension(call: &Call<'_>) -> Result<Option<i32>> {
    let lengths = dimensions(items(call, 0)?);
    let at = call.int(1).and_then(|number| usize::try_from(number - 1).ok());
    Ok(at.and_then(|at| lengths.get(at)).and_then(|length| i32::try_from(*length).ok()))
}

fn flattened<'v>(items: &'v [Value<'v>], act: &mut impl FnMut(&'v Value<'v>)) {
    for item in items {
        match item {
            Value::Array(items) => flattened(items, act),
            item => act(item),
        }
    }
}

fn replaced<'v>(call: &Call<'_>, items: &[Value<'v>], old: &Value<'_>, new: &Value<'v>) -> Vec<Value<'v>> {
    let one = |item: &Value<'v>| match item {
        Value::Array(items) => Value::Array(replaced(call, items, old, new)),
        item if compare(&compared(call, item), old) == Ordering::Equal => new.clone(),
        item => item.clone(),
    };
    items.iter().map(one).collect()
}

/// Whether an argument is a fixed-length text or an array of such texts, where comparisons ignore
/// trailing blanks.
fn are_fixed(call: &Call<'_>) -> bool {
    let arrays = Mark::of_oid(BPCHAR, Length::Unknown).of_array().oid;
    call.pg_types.iter().any(|oid| oid.is_some() && (*oid == Some(BPCHAR) || *oid == arrays))
}

/// Whether an argument is a document or an array of documents, which are texts in Arrow.
fn are_documents(call: &Call<'_>) -> bool {
    call.pg_types.iter().any(|oid| matches!(oid, Some(JSONB | ARRAY_OF_JSONB)))
}

fn without_blanks(text: &str) -> Value<'_> {
    Value::Text(text.trim_end_matches(' ').into())
}

/// The form of texts that a call compares; `None` = as they are.
fn form_of(call: &Call<'_>) -> Option<fn(&str) -> Value<'_>> {
    match call {
        call if are_fixed(call) => Some(without_blanks),
        call if are_documents(call) => Some(|text| Value::Json(text.into())),
        _ => None,
    }
}

/// A value in the form that a call compares.
fn compared<'v>(call: &Call<'_>, value: &'v Value<'v>) -> Cow<'v, Value<'v>> {
    match (value, form_of(call)) {
        (Value::Array(items), Some(form)) => Cow::Owned(Value::Array(formed(items, form))),
        (Value::Text(text), Some(form)) => Cow::Owned(form(text)),
        (value, _) => Cow::Borrowed(value),
    }
}

/// The elements of an argument in the form that a call compares.
fn compared_items<'c>(call: &'c Call<'_>, at: usize) -> Result<Cow<'c, [Value<'c>]>> {
    let items = items(call, at)?;
    Ok(form_of(call).map_or(Cow::Borrowed(items), |form| Cow::Owned(formed(items, form))))
}

fn formed<'v>(items: &'v [Value<'v>], form: fn(&str) -> Value<'_>) -> Vec<Value<'v>> {
    let one = |item: &'v Value<'v>| match item {
        Value::Array(items) => Value::Array(formed(items, form)),
        Value::Text(text) => form(text),
        item => item.clone(),
    };
    items.iter().map(one).collect()
}

fn positions(call: &Call<'_>) -> Result<Option<Vec<i32>>> {
    if call.values.first().is_none_or(Value::is_null) {
        return Ok(None);
    }
    let (all, wanted) = (items(call, 0)?, call.values.get(1).unwrap_or(&Value::Null));
    if all.iter().any(|item| matches!(item, Value::Array(_))) {
        return Err(unserved("searching for elements in multidimensional arrays is not supported"));
    }
    let wanted = compared(call, wanted);
    let is_found = |item: &Value<'_>| compare(&compared(call, item), &wanted) == Ordering::Equal;
    let found = (lower(call)..).zip(all).filter(|(_, item)| is_found(item)).map(|(at, _)| at);
    Ok(Some(found.collect()))
}

/// Whether all elements of an array occur in another; a null occurs in none.
fn contains(whole: &[Value<'_>], part: &[Value<'_>]) -> bool {
    let (mut all, mut is_within) = (Vec::new(), true);
    flattened(whole, &mut |item| all.push(item));
    flattened(part, &mut |item| {
        is_within &= !item.is_null() && all.iter().any(|found| compare(found, item) == Ordering::Equal);
    });
    is_within
}

/// The order of values of one type, or of numbers.
pub(super) fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
        (Value::TimestampTz(left), Value::TimestampTz(right)) => left.cmp(right),
        (Value::Uuid(left), Value::Uuid(right)) => left.cmp(right),
        (Value::Interval(left), Value::Interval(right)) => length(left).cmp(&length(right)),
        (Value::Json(left), Value::Json(right)) => match (key_of_document(left), key_of_document(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.cmp(right),
        },
        (Value::Text(left) | Value::Json(left), Value::Text(right) | Value::Json(right)) => left.cmp(right),
        (left, right) => match (whole(left), whole(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => numbers(left, right),
        },
    }
}

/// The comparison key of a document; `None` for other texts.
pub(super) fn key_of_document(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    Document::parse(text).ok()?.append_key(&mut key);
    Some(key)
}

fn whole(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int8(value) => Some(i64::from(*value)),
        Value::Int16(value) => Some(i64::from(*value)),
        Value::Int32(value) => Some(i64::from(*value)),
        Value::Int64(value) => Some(*value),
        _ => None,
    }
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    let float = |value: &Value<'_>| match value {
        Value::Float32(value) => Some(f64::from(*value)),
        Value::Float64(value) => Some(*value),
        _ => None,
    };
    let exact = |value: &Value<'_>| match value {
        Value::Decimal(value) => Some(value.clone()),
        Value::Float32(_) | Value::Float64(_) => float(value).and_then(BigDecimal::from_f64),
        other => whole(other).map(BigDecimal::from),
    };
    match (float(left), float(right)) {
        // NaN is greater than all other numbers, and zero has no sign.
        (Some(left), Some(right)) => left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan())),
        _ => match (exact(left), exact(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.to_string().cmp(&right.to_string()),
        },
    }
}

/// Writes an array as PostgreSQL displays it.
pub(super) fn push_text(items: &[Value<'_>], out: &mut String) {
    out.push('{');
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        match item {
            Value::Null => out.push_str("NULL"),
            Value::Array(items) => push_text(items, out),
            item => {
                let mut text = String::new();
                push_output(item, &mut text);
                let is_special = |char: char| matches!(char, '{' | '}' | ',' | '"' | '\\') || is_space(char);
                if !text.is_empty() && !text.contains(is_special) && !text.eq_ignore_ascii_case("null") {
                    out.push_str(&text);
                    continue;
                }
                out.push('"');
                for char in text.chars() {
                    if matches!(char, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(char);
                }
                out.push('"');
            }
        }
    }
    out.push('}');
}
