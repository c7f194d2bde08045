//! Vectorized text functions: upper and lower case, lengths and sections.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, Int32Builder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::FieldType;
use filbert_dialect::{lower, lower_of};

use super::super::row::{Function, Texts, array, collect_texts, is_integer, is_text, wrong_arguments};
use super::matcher;
use super::refused;
use super::texts::section;
use crate::types::field_type_of;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("upper", coerce_text, returns_text, |args| mapped(args, upper)),
        Function::udf("initcap", coerce_text, returns_text, |args| mapped(args, capitals)),
        Function::udf("lower", coerce_text, returns_text, |args| mapped(args, lower)),
        // For the text of ILIKE, where trailing blanks count.
        Function::udf("lower_as_it_is", coerce_text, returns_text, |args| mapped(args, lower)),
        Function::udf("length", coerce_measured, returns_int, length),
        Function::udf("char_length", coerce_text, returns_int, length),
        Function::udf("character_length", coerce_text, returns_int, length),
        Function::udf("strpos", coerce_sought, returns_int, place),
        Function::udf("substr", coerce_numbered, returns_section, substring),
        Function::udf("substring", coerce_section, returns_section, substring),
    ]
}

fn returns_text(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Varchar)
}

fn returns_int(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Integer)
}

fn returns_section(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(match args.arg_fields.first().map(|field| field_type_of(field)) {
        Some(FieldType::Binary) => FieldType::Binary,
        _ => FieldType::Varchar,
    })
}

fn coerce_text(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text] if is_text(text) => Ok(vec![DataType::Utf8View]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_measured(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [bytes] if bytes.is_binary() => Ok(vec![DataType::BinaryView]),
        _ => coerce_text(name, types),
    }
}

/// A text, and the text that is sought in it.
fn coerce_sought(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [whole, sought] if is_text(whole) && is_text(sought) => Ok(vec![DataType::Utf8View; 2]),
        _ => Err(wrong_arguments(name, types)),
    }
}

/// A text or bytes, followed by numbers; or a text, an expression, and an escape character.
fn coerce_section(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [whole, rest @ ..] if matches!(rest.len(), 1 | 2) && is_text(whole) && rest.iter().all(is_text) => {
            Ok(vec![DataType::Utf8View; types.len()])
        }
        _ => coerce_numbered(name, types),
    }
}

/// A text or bytes, followed by numbers. A literal in quotes is a number, too.
fn coerce_numbered(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [whole, rest @ ..] = types else { return Err(wrong_arguments(name, types)) };
    let is_whole = is_text(whole) || whole.is_binary();
    let are_numbers = rest.iter().all(|found| is_integer(found) || is_text(found));
    if !is_whole || !matches!(rest.len(), 1 | 2) || !are_numbers {
        return Err(wrong_arguments(name, types));
    }
    let first = if whole.is_binary() { DataType::BinaryView } else { DataType::Utf8View };
    Ok(std::iter::once(first).chain(rest.iter().map(|_| DataType::Int64)).collect())
}

fn mapped(args: &ScalarFunctionArgs, map: fn(&str) -> Cow<'_, str>) -> Result<ColumnarValue> {
    let texts = Texts::of(args, 0)?;
    collect_texts(args, |row| Ok(texts.get(row).map(|text| map(text).into_owned())))
}

/// A text in upper case, character by character. A character whose upper case has several
/// characters stays unchanged, as in PostgreSQL.
pub(super) fn upper(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_uppercase());
    }
    Cow::Owned(text.chars().map(upper_of).collect())
}

fn upper_of(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        // Greek letters with iota subscript also have an upper case of one character.
        _ => match u32::from(char) {
            code @ (0x1f80..0x1f88 | 0x1f90..0x1f98 | 0x1fa0..0x1fa8) => char::from_u32(code + 8).unwrap_or(char),
            code @ (0x1fb3 | 0x1fc3 | 0x1ff3) => char::from_u32(code + 9).unwrap_or(char),
            _ => char,
        },
    }
}

/// A text with each word capitalized. A word is a sequence of letters and digits.
fn capitals(text: &str) -> Cow<'_, str> {
    let mut is_within = false;
    let one = |char: char| {
        let cased = if is_within { lower_of(char) } else { upper_of(char) };
        is_within = char.is_alphanumeric();
        cased
    };
    Cow::Owned(text.chars().map(one).collect())
}

fn whole(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// The place of a text within another one, in characters from 1; 0 if it is not there.
fn place(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (texts, sought) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    integers(args, |row| {
        let (text, sought) = (texts.get(row)?, sought.get(row)?);
        let before = text.find(sought).and_then(|at| text.get(..at));
        Some(before.map_or(0, |before| whole(before.chars().count() + 1)))
    })
}

fn length(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.args.iter().any(|value| value.data_type().is_binary()) {
        let bytes = bytes_of(args)?;
        let bytes = bytes.as_binary_view();
        return integers(args, |row| bytes.is_valid(row).then(|| whole(bytes.value(row).len())));
    }
    let texts = Texts::of(args, 0)?;
    integers(args, |row| {
        texts.get(row).map(|text| whole(if text.is_ascii() { text.len() } else { text.chars().count() }))
    })
}

fn integers(args: &ScalarFunctionArgs, mut row: impl FnMut(usize) -> Option<i32>) -> Result<ColumnarValue> {
    if is_constant(args) {
        return Ok(ColumnarValue::Scalar(ScalarValue::Int32(row(0))));
    }
    let mut builder = Int32Builder::with_capacity(args.number_rows);
    (0..args.number_rows).for_each(|at| builder.append_option(row(at)));
    Ok(ColumnarValue::Array(Arc::new(builder.finish())))
}

fn is_constant(args: &ScalarFunctionArgs) -> bool {
    args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)))
}

fn bytes_of(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
    let bytes = array(args, 0)?;
    match bytes.data_type() {
        DataType::BinaryView => Ok(bytes),
        _ => Ok(datafusion::arrow::compute::cast(&bytes, &DataType::BinaryView)?),
    }
}

/// `substring(text FROM start FOR length)`, also of bytes; `substring(text FROM expression)`;
/// `substring(text, pattern, escape)`.
fn substring(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
    if types.get(1).is_some_and(|data_type| is_text(data_type) && !data_type.is_null()) {
        return matched(args);
    }
    let numbers = (1..types.len()).map(|at| array(args, at)).collect::<Result<Vec<_>>>()?;
    let number = |at: usize, row: usize| {
        let numbers = numbers.get(at)?.as_primitive_opt::<arrow_array::types::Int64Type>()?;
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let place = |row: usize| -> Result<Option<(usize, usize)>> {
        let Some(from) = number(0, row) else { return Ok(None) };
        let length = number(1, row);
        if numbers.len() > 1 && length.is_none() {
            return Ok(None);
        }
        section(from, length).map(Some)
    };
    if types.first().is_some_and(DataType::is_binary) {
        let bytes = bytes_of(args)?;
        let bytes = bytes.as_binary_view();
        let one = |row: usize| -> Result<Option<Vec<u8>>> {
            let Some((start, length)) = place(row)? else { return Ok(None) };
            let value = bytes.is_valid(row).then(|| bytes.value(row));
            Ok(value.map(|value| value.iter().skip(start).take(length).copied().collect()))
        };
        if is_constant(args) {
            return Ok(ColumnarValue::Scalar(ScalarValue::BinaryView(one(0)?)));
        }
        let mut builder = BinaryViewBuilder::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            builder.append_option(one(row)?);
        }
        return Ok(ColumnarValue::Array(Arc::new(builder.finish())));
    }
    let texts = Texts::of(args, 0)?;
    collect_texts(args, |row| {
        let (Some(text), Some((start, length))) = (texts.get(row), place(row)?) else { return Ok(None) };
        if text.is_ascii() {
            let end = start.saturating_add(length).min(text.len());
            return Ok(Some(text.get(start..end).unwrap_or_default().to_owned()));
        }
        Ok(Some(text.chars().skip(start).take(length).collect()))
    })
}

/// The match of an expression in a text: its first group, or the whole match.
fn matched(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (texts, patterns) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    let escapes = match args.args.len() {
        2 => None,
        _ => Some(Texts::of(args, 2)?),
    };
    collect_texts(args, |row| {
        let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row)) else { return Ok(None) };
        let Some(escapes) = &escapes else {
            return matcher::with(pattern, "", |matcher| {
                let Some(found) = matcher.captures(text, 0)? else { return Ok(None) };
                let wanted = found.get(1).or(found.first()).copied().flatten();
                Ok(wanted.and_then(|(start, end)| text.get(start..end)).map(str::to_owned))
            });
        };
        let Some(escape) = escapes.get(row) else { return Ok(None) };
        let mut characters = escape.chars();
        let escape = match (characters.next(), characters.next()) {
            (escape, None) => escape,
            _ => return Err(refused("22025", "invalid escape string")),
        };
        let pattern = matcher::valid(super::expressions::of_similar_part(pattern, escape))?;
        matcher::with(&pattern, "", |matcher| Ok(matcher.first_group(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_keep_the_number_of_characters() {
        assert_eq!(upper("straße ŉ éǆ"), "STRAßE ŉ ÉǄ");
        assert_eq!(lower("İΣΑΣ ÀK"), "iσασ àk");
    }
}
