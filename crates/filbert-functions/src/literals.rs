//! Parses values from text: arrays in PostgreSQL's form `{1,"a b",NULL}` and in JSON
//! `[1, "a b", null]`, points as `POINT (x y)`, and booleans.

use filbert_data::dates::Zone;
use filbert_data::{FieldType, Value, is_space};
use filbert_dialect::{DeclaredType, arrays as literals};
use filbert_grid::query::SqlError;

use crate::error::{conversion, data_error};
use crate::json::{Kind, Node};
use crate::moments::timestamp_of_column;

/// Converts a value to an array with elements of one type. Dates and times are parsed and converted
/// as in PostgreSQL if there is a time zone.
///
/// # Errors
/// The value is no array, or an element does not have the type.
pub fn convert<'v>(
    value: Value<'v>,
    field_type: &FieldType,
    declared: Option<&DeclaredType>,
    zone: Option<&Zone>,
) -> Result<Value<'v>, SqlError> {
    let array = match &value {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) | Value::Json(text) => {
            let point = match declared {
                Some(DeclaredType::GeoPoint) => point(text),
                _ => None,
            };
            let documents = match field_type {
                FieldType::Array(item) if **item == FieldType::Json => documents(text),
                _ => None,
            };
            match point.or(documents).or_else(|| {
                Some(literals::items(text)?.into_iter().map(|item| value_of_item(item, field_type)).collect())
            }) {
                Some(items) => Value::Array(items),
                None => return Err(malformed(text)),
            }
        }
        _ => value,
    };
    let array = match zone {
        Some(zone) if is_of_moments(field_type) => moments(array, field_type, zone)?,
        _ => array,
    };
    array.convert(field_type).map_err(|error| conversion(&error))
}

/// Whether the elements are dates, times or intervals.
fn is_of_moments(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Array(item) => is_of_moments(item),
        FieldType::Date | FieldType::Time | FieldType::Timestamp | FieldType::TimestampTz | FieldType::Interval => true,
        _ => false,
    }
}

fn moments<'v>(value: Value<'v>, field_type: &FieldType, zone: &Zone) -> Result<Value<'v>, SqlError> {
    match (value, field_type) {
        (Value::Array(items), FieldType::Array(item)) => {
            Ok(Value::Array(items.into_iter().map(|value| moments(value, item, zone)).collect::<Result<_, _>>()?))
        }
        (value, _) => timestamp_of_column(value, field_type, zone),
    }
}

fn value_of_item(item: Option<String>, field_type: &FieldType) -> Value<'static> {
    let Some(text) = item else { return Value::Null };
    match field_type {
        FieldType::Array(of) if **of == FieldType::Boolean => {
            truth_of(&text).map_or_else(|| Value::Text(text.into()), Value::Boolean)
        }
        _ => Value::Text(text.into()),
    }
}

fn malformed(text: &str) -> SqlError {
    let shown: String = text.chars().take(100).collect();
    data_error(format!("malformed array literal: {shown:?}, expected items as {{1,2}} or [1, 2]"))
        .with_sqlstate("22P02")
}

/// The elements of an array of documents, if the text is one.
fn documents(text: &str) -> Option<Vec<Value<'static>>> {
    let array = Node::parse(text).ok().filter(|node| node.kind() == Kind::Array)?;
    Some(array.children().map(|(_, item)| Value::Json(item.text().to_owned().into())).collect())
}

/// The longitude and latitude of `POINT (x y)`.
fn point(text: &str) -> Option<Vec<Value<'static>>> {
    let text = text.trim();
    let (word, rest) = text.split_at_checked(5)?;
    if !word.eq_ignore_ascii_case("point") {
        return None;
    }
    let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    let numbers: Vec<f64> = inner.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    (numbers.len() == 2).then(|| numbers.into_iter().map(Value::Float64).collect())
}

/// Parses a boolean: one of its words or a prefix of it, in any case, with surrounding blanks.
pub fn truth_of(text: &str) -> Option<bool> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    // A prefix of several words is ambiguous.
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(word.as_str());
    match word.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        _ if begins("true", 1) || begins("yes", 1) || begins("on", 2) => Some(true),
        _ if begins("false", 1) || begins("no", 1) || begins("off", 2) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, item: FieldType, expected: &str) {
        let array = convert(Value::text(text), &FieldType::Array(Box::new(item)), None, None);
        let found = match array {
            Ok(array) => array.to_string(),
            Err(error) => error.sqlstate().to_owned(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn literals_of_both_databases_are_arrays() {
        check("{1,2,NULL}", FieldType::Integer, "[1, 2, null]");
        check("[1, 2, null]", FieldType::Integer, "[1, 2, null]");
        check("{}", FieldType::Integer, "[]");
        check(r#"{a, "b, \"c\"", "NULL"}"#, FieldType::Varchar, r#"[a, b, "c", NULL]"#);
        for broken in ["1,2", "{1,2", "{1,,2}", "{{1},{2}}", "{\"a}", "{1 \"a\"}", "["] {
            check(broken, FieldType::Integer, "22P02");
        }
        check("{x}", FieldType::Integer, "22P02");
    }

    #[test]
    fn points_are_written_as_texts() {
        let field_type = FieldType::Array(Box::new(FieldType::Double));
        let found =
            convert(Value::text("POINT (9.5 47.25)"), &field_type, Some(&DeclaredType::GeoPoint), None).unwrap();
        assert_eq!(found, Value::Array(vec![Value::Float64(9.5), Value::Float64(47.25)]));
    }
}
