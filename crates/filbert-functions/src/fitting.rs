//! Fits values to the declared type of their column: limits the length, rounds, and validates.

use std::borrow::Cow;

use chrono::{DateTime, SubsecRound};
use filbert_data::dates::round_timestamp;
use filbert_data::{FieldType, Value};
use filbert_dialect::DeclaredType;
use filbert_grid::query::SqlError;

use crate::addresses::is_address;
use crate::error::data_error;
use crate::json::{Document, Kind, Node};
use crate::types::{BPCHAR, JSONB, Length, Mark, PgType, VARCHAR, field};

/// The PostgreSQL type, if it carries more information than the stored type.
pub fn postgres_type(declared: &DeclaredType) -> Option<PgType> {
    match declared {
        DeclaredType::Jsonb => Some(PgType::of(JSONB)),
        DeclaredType::Varchar(length) => Some(PgType { oid: VARCHAR, length: *length }),
        DeclaredType::Character(length) => Some(PgType { oid: BPCHAR, length: Some(*length) }),
        DeclaredType::Plain(FieldType::Array(item)) => array_of(&DeclaredType::Plain((**item).clone())),
        DeclaredType::Array(item) => array_of(item),
        _ => None,
    }
}

/// Fits a value of the stored type to the declared type.
pub fn fit<'v>(declared: &DeclaredType, column: &str, value: Value<'v>) -> Result<Value<'v>, SqlError> {
    match (declared, value) {
        (DeclaredType::Varchar(Some(most)), Value::Text(text)) => shortened(text, *most, "character varying", column),
        (DeclaredType::Character(most), Value::Text(text)) => {
            let Value::Text(text) = shortened(text, *most, "character", column)? else { return Ok(Value::Null) };
            Ok(Value::Text(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches(' ')),
                Cow::Owned(text) => Cow::Owned(text.trim_end_matches(' ').to_owned()),
            }))
        }
        (DeclaredType::Ip, Value::Text(text)) => match is_address(&text) {
            true => Ok(Value::Text(text)),
            false => Err(invalid(column, "ip", &text, "an address such as 192.168.0.1 or ::1")),
        },
        // Timestamps are stored without their original offset, as in both databases.
        (DeclaredType::Plain(FieldType::TimestampTz), Value::TimestampTz(timestamp)) => {
            Ok(Value::TimestampTz(timestamp.to_utc().fixed_offset()))
        }
        (DeclaredType::Rounded(_, digits), Value::TimestampTz(timestamp)) => {
            let micros = round_timestamp(timestamp.timestamp_micros(), (*digits).into());
            let rounded = DateTime::from_timestamp_micros(micros).unwrap_or_else(|| timestamp.to_utc());
            Ok(Value::TimestampTz(rounded.fixed_offset()))
        }
        (DeclaredType::Rounded(_, digits), Value::Timestamp(timestamp)) => {
            let micros = round_timestamp(timestamp.and_utc().timestamp_micros(), (*digits).into());
            let rounded = DateTime::from_timestamp_micros(micros);
            Ok(Value::Timestamp(rounded.map_or(timestamp, |rounded| rounded.naive_utc())))
        }
        (DeclaredType::Rounded(_, digits), Value::Time(time)) => Ok(Value::Time(time.round_subsecs((*digits).into()))),
        (DeclaredType::GeoPoint, Value::Array(items)) => {
            let within =
                |at: usize, most: f64| matches!(items.get(at), Some(Value::Float64(number)) if number.abs() <= most);
            match items.len() == 2 && within(0, 180.0) && within(1, 90.0) {
                true => Ok(Value::Array(items)),
                false => {
                    let text = Value::Array(items).to_string();
                    Err(invalid(column, "geo_point", &text, "a longitude and a latitude such as [9.7, 47.4]"))
                }
            }
        }
        (DeclaredType::Object(..), Value::Json(text)) => match Node::parse(&text) {
            Ok(node) if node.kind() == Kind::Object => Ok(Value::Json(text)),
            _ => Err(invalid(column, "object", &text, "a JSON object such as {\"a\": 1}")),
        },
        // PostgreSQL's text form of `jsonb`, which comparisons use.
        (DeclaredType::Jsonb, Value::Json(text)) => match Document::parse(&text) {
            Ok(document) => Ok(Value::Json(document.to_string().into())),
            Err(_) => Err(invalid(column, "json", &text, "a JSON document such as {\"a\": [1, true]}")),
        },
        (DeclaredType::GeoShape | DeclaredType::Plain(FieldType::Json), Value::Json(text)) => {
            match Node::parse(&text) {
                Ok(_) => Ok(Value::Json(text)),
                Err(_) => Err(invalid(column, "json", &text, "a JSON document such as {\"a\": [1, true]}")),
            }
        }
        (DeclaredType::Array(item), Value::Array(items)) => {
            let items = items.into_iter().map(|value| Ok(as_item(item, fit(item, column, value)?)));
            Ok(Value::Array(items.collect::<Result<_, SqlError>>()?))
        }
        (_, value) => Ok(value),
    }
}

/// A fitted value as an array element. Fixed-length text is padded there, because nothing pads it
/// when the array leaves the engine.
fn as_item<'v>(declared: &DeclaredType, value: Value<'v>) -> Value<'v> {
    let (DeclaredType::Character(length), Value::Text(text)) = (declared, &value) else { return value };
    let missing = usize::try_from(*length).unwrap_or(0).saturating_sub(text.chars().count());
    if missing == 0 { value } else { Value::Text(Cow::Owned(format!("{text}{}", " ".repeat(missing)))) }
}

/// The PostgreSQL array type, if Arrow has no type for the elements.
fn array_of(item: &DeclaredType) -> Option<PgType> {
    let oid = match (postgres_type(item), item.field_type()) {
        (Some(item), _) => Mark::of_oid(item.oid, Length::Unknown).of_array().oid,
        (None, field_type) => Mark::of(&field("", &field_type, true)).of_array().oid,
    };
    oid.map(PgType::of)
}

/// Limits a text to a number of characters; trailing blanks beyond it do not count.
fn shortened<'v>(text: Cow<'v, str>, most: u32, type_name: &str, column: &str) -> Result<Value<'v>, SqlError> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // A character has at least one byte.
    if text.len() <= most {
        return Ok(Value::Text(text));
    }
    let Some((end, _)) = text.char_indices().nth(most) else { return Ok(Value::Text(text)) };
    if text.get(end..).is_some_and(|rest| rest.trim_end_matches(' ').is_empty()) {
        return Ok(Value::Text(Cow::Owned(text.get(..end).unwrap_or_default().to_owned())));
    }
    let found = text.chars().count();
    let message =
        format!("value too long for type {type_name}({most}): column {column:?} was given {found} characters");
    Err(data_error(message).with_sqlstate("22001"))
}

fn invalid(column: &str, type_name: &str, text: &str, expected: &str) -> SqlError {
    let shown: String = text.chars().take(100).collect();
    data_error(format!("column {column:?}: {shown:?} is no {type_name}, expected {expected}")).with_sqlstate("22P02")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_held_to_their_length() {
        let fit = |most, text| super::fit(&DeclaredType::Varchar(Some(most)), "c", Value::text(text));
        assert_eq!(fit(3, "abc").unwrap(), Value::text("abc"));
        assert_eq!(fit(3, "äöü").unwrap(), Value::text("äöü"));
        assert_eq!(fit(3, "abc  ").unwrap(), Value::text("abc"));
        let error = fit(3, "abcd").unwrap_err();
        assert_eq!(error.sqlstate(), "22001");
        assert_eq!(error.message, "value too long for type character varying(3): column \"c\" was given 4 characters");
        assert_eq!(super::fit(&DeclaredType::Character(5), "c", Value::text("ab  ")).unwrap(), Value::text("ab"));
        let array = DeclaredType::Array(Box::new(DeclaredType::Character(4)));
        let found =
            super::fit(&array, "c", Value::Array(vec![Value::text("ä"), Value::Null, Value::text("abcd ")])).unwrap();
        assert_eq!(found, Value::Array(vec![Value::text("ä   "), Value::Null, Value::text("abcd")]));
    }

    #[test]
    fn addresses_and_points_are_checked() {
        for (text, is_one) in
            [("10.0.0.1", true), ("::1", true), ("10.0.0.0/8", true), ("10.0.0.0/33", false), ("x", false)]
        {
            assert_eq!(fit(&DeclaredType::Ip, "c", Value::text(text)).is_ok(), is_one, "{text}");
        }
        let point = |longitude, latitude| {
            let value = Value::Array(vec![Value::Float64(longitude), Value::Float64(latitude)]);
            fit(&DeclaredType::GeoPoint, "c", value).is_ok()
        };
        assert!(point(9.7, 47.4) && !point(190.0, 0.0) && !point(0.0, 91.0));
    }
}
