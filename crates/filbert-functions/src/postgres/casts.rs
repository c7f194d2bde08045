//! Casts to `varchar(n)`, `char(n)`, `bytea` and `boolean`, of any value to text, and to arrays of
//! UUIDs and documents.

use datafusion::common::{DataFusionError, Result};
use filbert_data::dates::{self, Zone};
use filbert_data::{FieldType, Value};
use filbert_dialect::DeclaredType;
use filbert_grid::query::{SqlError, SqlSubject};

use super::refused;
use super::texts::output;
use crate::addresses::{is_address, is_network};
use crate::error::{carried, data_error, of_datafusion};
use crate::fitting::fit;
use crate::literals;
use crate::native::{Call, Native, Take, of_text, pure, text};
use crate::types::{
    ARRAY_OF_JSON, ARRAY_OF_JSONB, BPCHAR, INT2VECTOR, Length, Mark, OIDVECTOR, UUID, VARCHAR, is_vector,
};

/// The maximum number of characters of a text that an error shows.
const SHOWN_MAX: usize = 100;

pub(super) const FUNCTIONS: &[Native] = &[
    // Truncates a text to a number of characters.
    pure("cast_varchar", &[Take::Any, Take::Int], text, |call| {
        let most = length_of(call, "varchar")?;
        let whole = cast_output(call.values.first());
        Ok(match whole.char_indices().nth(most) {
            Some((end, _)) => of_text(whole.get(..end).unwrap_or_default()),
            None => of_text(whole),
        })
    })
    .of_pg_type(|_| Some(VARCHAR)),
    // Trailing blanks of a fixed-length text do not count. Without a length, the length of the text
    // applies.
    pure("cast_char", &[Take::Any, Take::Int], text, |call| {
        let most = if call.values.len() == 1 { usize::MAX } else { length_of(call, "char")? };
        let whole: String = cast_output(call.values.first()).chars().take(most).collect();
        Ok(of_text(whole.trim_end_matches(' ')))
    })
    .least(1)
    .of_pg_type(|_| Some(BPCHAR)),
    pure("cast_bytea", &[Take::Any], bytea, |call| match call.values.first() {
        Some(Value::Bytes(bytes)) => Ok(Value::Bytes(bytes.to_vec().into())),
        Some(Value::Text(text)) => Ok(Value::Bytes(bytes(text)?.into())),
        _ => Err(refused("42846", "only texts can be cast to bytea")),
    }),
    pure("cast_inet", &[Take::Text], text, |call| {
        let written = call.text(0).trim();
        if is_address(written) { Ok(of_text(written)) } else { Err(no_address("inet", written)) }
    }),
    pure("cast_cidr", &[Take::Text], text, |call| {
        let written = call.text(0).trim();
        match is_network(written) {
            Some(true) => Ok(of_text(written)),
            Some(false) => {
                let text = format!("invalid cidr value: {written:?}: value has bits set to right of mask");
                Err(refused("22P02", text))
            }
            None => Err(no_address("cidr", written)),
        }
    }),
    pure(
        "cast_uuids",
        &[Take::Any],
        |_| array_of(FieldType::Uuid),
        |call| array(call, &DeclaredType::Plain(FieldType::Uuid)),
    )
    .of_pg_type(|_| Mark::of_oid(UUID, Length::Unknown).of_array().oid),
    pure(
        "cast_json_documents",
        &[Take::Any],
        |_| array_of(FieldType::Json),
        |call| array(call, &DeclaredType::Plain(FieldType::Json)),
    )
    .of_pg_type(|_| Some(ARRAY_OF_JSON)),
    pure("cast_jsonbs", &[Take::Any], |_| array_of(FieldType::Json), |call| array(call, &DeclaredType::Jsonb))
        .of_pg_type(|_| Some(ARRAY_OF_JSONB)),
    pure("cast_text", &[Take::Any], text, |call| match call.values.first() {
        Some(Value::Array(items)) if is_vector(call.pg_types.first().copied().flatten()) => {
            let words: Vec<String> = items.iter().map(|item| cast_output(Some(item))).collect();
            Ok(of_text(words.join(" ")))
        }
        value => Ok(of_text(cast_output(value))),
    }),
    pure("cast_int2vector", &[Take::Any], |_| array_of(FieldType::SmallInt), |call| vector(call, FieldType::SmallInt))
        .of_pg_type(|_| Some(INT2VECTOR)),
    pure("cast_oidvector", &[Take::Any], |_| array_of(FieldType::BigInt), |call| vector(call, FieldType::BigInt))
        .of_pg_type(|_| Some(OIDVECTOR)),
];

fn no_address(name: &str, written: &str) -> DataFusionError {
    let shown: String = written.chars().take(SHOWN_MAX).collect();
    refused("22P02", format!("invalid input syntax for type {name}: {shown:?}"))
}

fn length_of(call: &Call<'_>, name: &str) -> Result<usize> {
    match call.int(1).and_then(|length| usize::try_from(length).ok()) {
        Some(0) | None => Err(refused("22023", format!("length for type {name} must be at least 1"))),
        Some(length) => Ok(length),
    }
}

fn array_of(item: FieldType) -> FieldType {
    FieldType::Array(Box::new(item))
}

/// A value as an array with elements of a type.
fn array(call: &Call<'_>, item: &DeclaredType) -> Result<Value<'static>> {
    let value = call.values.first().cloned().unwrap_or(Value::Null);
    let array = literals::convert(value, &array_of(item.field_type()), None, None).map_err(carried)?;
    let Value::Array(items) = array else { return Ok(Value::Null) };
    let items = items.into_iter().map(|value| Ok(fit(item, "array", value).map_err(carried)?.into_owned()));
    Ok(Value::Array(items.collect::<Result<_>>()?))
}

/// A vector from an array, or from the text of numbers between blanks.
fn vector(call: &Call<'_>, item: FieldType) -> Result<Value<'static>> {
    let Some(Value::Text(text)) = call.values.first() else { return array(call, &DeclaredType::Plain(item)) };
    let number = |word: &str| match item {
        FieldType::SmallInt => word.parse().ok().map(Value::Int16),
        _ => word.parse().ok().map(|number: u32| Value::Int64(number.into())),
    };
    let name = if item == FieldType::SmallInt { "smallint" } else { "oid" };
    let number =
        |word| number(word).ok_or_else(|| refused("22P02", format!("invalid input syntax for type {name}: {word:?}")));
    Ok(Value::Array(text.split_ascii_whitespace().map(number).collect::<Result<_>>()?))
}

fn bytea(_: &[FieldType]) -> FieldType {
    FieldType::Binary
}

/// The text of a value for a cast: booleans in full.
fn cast_output(value: Option<&Value<'_>>) -> String {
    match value {
        Some(Value::Boolean(value)) => value.to_string(),
        other => output(other),
    }
}

/// The text of a value, as a cast to text gives it in PostgreSQL. `zone` is the time zone of
/// timestamps with a time zone.
pub fn cast_to_text(value: &Value<'_>, zone: &Zone) -> String {
    match value {
        Value::TimestampTz(timestamp) => {
            let mut out = String::new();
            dates::write_timestamptz(timestamp.timestamp_micros(), zone, &mut out);
            out
        }
        other => cast_output(Some(other)),
    }
}

/// The bytes that a text stands for.
///
/// # Errors
/// The text has a digit or an escape that is not valid.
pub fn bytes_of_text(text: &str) -> std::result::Result<Vec<u8>, SqlError> {
    bytes(text).map_err(|error| of_datafusion(&error))
}

/// The bytes of a text: hexadecimal after `\x`, otherwise with escaped octal numbers.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits),
        None => escaped(text),
    }
}

pub(super) fn hexadecimal(text: &str) -> Result<Vec<u8>> {
    let digits = text.chars().filter(|char| !matches!(char, ' ' | '\t' | '\n' | '\r'));
    let halves = digits.map(|char| {
        let half = char.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        half.ok_or_else(|| refused("22023", format!("invalid hexadecimal digit: \"{char}\"")))
    });
    let halves = halves.collect::<Result<Vec<u8>>>()?;
    let (pairs, rest) = halves.as_chunks::<2>();
    match rest.is_empty() {
        true => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
        false => Err(refused("22023", "invalid hexadecimal data: odd number of digits")),
    }
}

pub(super) fn escaped(text: &str) -> Result<Vec<u8>> {
    let wrong = || {
        let subject = SqlSubject::Text { text: text.to_owned(), field_type: FieldType::Binary };
        carried(data_error("invalid input syntax for type bytea").with_sqlstate("22P02").about(subject))
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            out.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            out.push(b'\\');
            rest = after;
        } else {
            let (octal, after) = rest.split_first_chunk::<3>().ok_or_else(wrong)?;
            let digits = octal.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(octal).ok()).flatten();
            out.push(digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).ok_or_else(wrong)?);
            rest = after;
        }
    }
    Ok(out)
}
