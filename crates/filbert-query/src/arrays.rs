//! Arrays that are given as text: PostgreSQL's `{1,"a b",NULL}` and JSON's `[1, "a b", null]`; points as `POINT (x y)`.

use filbert_data::{FieldType, Value};
use filbert_grid::query::SqlError;

use crate::catalog::DeclaredType;
use crate::dml::rows::conversion;
use crate::error::data_error;
use crate::functions::{Kind, Node, truth_of};

/// A value as an array of items of one type.
///
/// # Errors
/// It is no array, or an item is not of the type.
pub(crate) fn convert<'v>(
    value: Value<'v>,
    field_type: &FieldType,
    declared: Option<&DeclaredType>,
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
            match point
                .or(documents)
                .or_else(|| Some(items(text)?.into_iter().map(|item| value_of_item(item, field_type)).collect()))
            {
                Some(items) => Value::Array(items),
                None => return Err(malformed(text)),
            }
        }
        _ => value,
    };
    array.convert(field_type).map_err(|error| conversion(&error))
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

/// The items of an array of documents, if that is what a text is.
fn documents(text: &str) -> Option<Vec<Value<'static>>> {
    let array = Node::parse(text).ok().filter(|node| node.kind() == Kind::Array)?;
    Some(array.children().map(|(_, item)| Value::Json(item.text().to_owned().into())).collect())
}

/// The items of a literal, as texts and nulls; `None` if it is none.
pub(crate) fn items(text: &str) -> Option<Vec<Option<String>>> {
    let text = text.trim();
    let is_json = text.starts_with('[');
    let inner = match is_json {
        true => text.strip_prefix('[')?.strip_suffix(']')?,
        false => text.strip_prefix('{')?.strip_suffix('}')?,
    };
    let mut items = Vec::new();
    let mut rest = inner.trim();
    if rest.is_empty() {
        return Some(items);
    }
    loop {
        let (item, after) = item(rest)?;
        items.push(item);
        let after = after.trim_start();
        if after.is_empty() {
            return Some(items);
        }
        rest = after.strip_prefix(',')?.trim_start();
    }
}

/// The rows of an array of arrays, `{{1,2},{3,4}}`, as they are written; `None` if it is none.
pub(crate) fn rows(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut rows = Vec::new();
    let (mut depth, mut start, mut is_quoted) = (0_usize, 0, false);
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => depth = depth.checked_sub(1)?,
            ',' if !is_quoted && depth == 0 => {
                rows.push(inner.get(start..at)?.trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    rows.push(inner.get(start..)?.trim());
    let are_rows = rows.iter().all(|row| row.starts_with('{') && row.ends_with('}'));
    (are_rows && depth == 0 && !is_quoted).then_some(rows)
}

/// The first item and what follows it.
fn item(text: &str) -> Option<(Option<String>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else { return plain(text) };
    let mut unescaped = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Some(unescaped), quoted.get(at + 1..)?)),
            '\\' => unescaped.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'u' => {
                    let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                other => other,
            }),
            other => unescaped.push(other),
        }
    }
    None
}

/// The first item, which is not in quotes, and what follows it. A backslash stands before characters that mean themselves.
fn plain(text: &str) -> Option<(Option<String>, &str)> {
    let mut unescaped = String::new();
    // Blanks at the end do not count, unless they are escaped.
    let (mut kept, mut is_escaped) = (0, false);
    let mut characters = text.char_indices();
    let end = loop {
        match characters.next() {
            None => break text.len(),
            Some((at, ',')) => break at,
            Some((_, '\\')) => {
                unescaped.push(characters.next()?.1);
                (kept, is_escaped) = (unescaped.len(), true);
            }
            // Arrays in arrays are not served.
            Some((_, '{' | '}' | '[' | ']' | '"')) => return None,
            Some((_, character)) => {
                unescaped.push(character);
                if !character.is_ascii_whitespace() {
                    kept = unescaped.len();
                }
            }
        }
    };
    unescaped.truncate(kept);
    let is_null = !is_escaped && unescaped.eq_ignore_ascii_case("null");
    (kept > 0).then(|| ((!is_null).then_some(unescaped), text.get(end..).unwrap_or_default()))
}

/// Longitude and latitude of `POINT (x y)`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, item: FieldType, expected: &str) {
        let array = convert(Value::text(text), &FieldType::Array(Box::new(item)), None);
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
        let found = convert(Value::text("POINT (9.5 47.25)"), &field_type, Some(&DeclaredType::GeoPoint)).unwrap();
        assert_eq!(found, Value::Array(vec![Value::Float64(9.5), Value::Float64(47.25)]));
    }
}
