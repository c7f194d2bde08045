//! The types that columns of tables are declared with: what PostgreSQL and CrateDB call them, and how their values are kept.

use std::borrow::Cow;
use std::net::IpAddr;

use chrono::SubsecRound;
use filbert_data::{FieldType, Value};
use filbert_grid::query::SqlError;
use serde::{Deserialize, Serialize};

use crate::error::data_error;
use crate::functions::{Document, Kind, Node};
use crate::types::{BPCHAR, JSONB, Length, Mark, PgType, VARCHAR, field};

/// A type as it was declared. Several are kept alike: an address is a text, an object is a JSON document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeclaredType {
    /// One that is kept as it is.
    Plain(FieldType),
    /// Text of at most so many characters, or of any number that PostgreSQL tells as another type than `text`.
    Varchar(Option<u32>),
    /// Text of at most so many characters, whose blanks at the end do not count.
    Character(u32),
    /// A time or timestamp with so many digits of a second, fewer than are kept.
    Rounded(FieldType, u8),
    /// PostgreSQL's binary JSON: a document like any other here.
    Jsonb,
    /// An address, as text.
    Ip,
    /// CrateDB's object: a JSON document.
    Object(ObjectPolicy, Vec<(String, DeclaredType)>),
    /// Longitude and latitude.
    GeoPoint,
    /// A shape, as a GeoJSON document.
    GeoShape,
    /// Items of one type.
    Array(Box<DeclaredType>),
}

/// What CrateDB's objects do with members that are not declared. Documents are kept as they come; the policy is shown again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ObjectPolicy {
    /// They become columns.
    #[default]
    Dynamic,
    /// They are refused.
    Strict,
    /// They are kept as they are.
    Ignored,
}

impl ObjectPolicy {
    fn name(self) -> &'static str {
        match self {
            ObjectPolicy::Dynamic => "DYNAMIC",
            ObjectPolicy::Strict => "STRICT",
            ObjectPolicy::Ignored => "IGNORED",
        }
    }
}

impl DeclaredType {
    /// How values are kept.
    pub(crate) fn field_type(&self) -> FieldType {
        match self {
            DeclaredType::Plain(field_type) | DeclaredType::Rounded(field_type, _) => field_type.clone(),
            DeclaredType::Varchar(_) | DeclaredType::Character(_) | DeclaredType::Ip => FieldType::Varchar,
            DeclaredType::Jsonb | DeclaredType::Object(..) | DeclaredType::GeoShape => FieldType::Json,
            DeclaredType::GeoPoint => FieldType::Array(Box::new(FieldType::Double)),
            DeclaredType::Array(item) => FieldType::Array(Box::new(item.field_type())),
        }
    }

    /// The name that PostgreSQL's `format_type` gives.
    pub(crate) fn postgres_name(&self) -> String {
        match self {
            DeclaredType::Plain(field_type) => match field_type {
                FieldType::Boolean => "boolean".to_owned(),
                // PostgreSQL has none of 8 bits.
                FieldType::TinyInt | FieldType::SmallInt => "smallint".to_owned(),
                FieldType::Integer => "integer".to_owned(),
                FieldType::BigInt => "bigint".to_owned(),
                FieldType::Decimal(None) => "numeric".to_owned(),
                FieldType::Decimal(Some((precision, scale))) => format!("numeric({precision},{scale})"),
                FieldType::Real => "real".to_owned(),
                FieldType::Double => "double precision".to_owned(),
                FieldType::Char => "character(1)".to_owned(),
                FieldType::Date => "date".to_owned(),
                FieldType::Time => "time without time zone".to_owned(),
                FieldType::Timestamp => "timestamp without time zone".to_owned(),
                FieldType::TimestampTz => "timestamp with time zone".to_owned(),
                FieldType::Uuid => "uuid".to_owned(),
                FieldType::Json => "json".to_owned(),
                FieldType::Binary | FieldType::Object => "bytea".to_owned(),
                FieldType::Interval => "interval".to_owned(),
                FieldType::Varchar => "text".to_owned(),
                FieldType::Array(item) => format!("{}[]", DeclaredType::Plain((**item).clone()).postgres_name()),
            },
            DeclaredType::Rounded(field_type, digits) => {
                let name = DeclaredType::Plain(field_type.clone()).postgres_name();
                match name.split_once(' ') {
                    Some((name, zone)) => format!("{name}({digits}) {zone}"),
                    None => format!("{name}({digits})"),
                }
            }
            DeclaredType::Varchar(None) => "character varying".to_owned(),
            DeclaredType::Varchar(Some(length)) => format!("character varying({length})"),
            DeclaredType::Character(length) => format!("character({length})"),
            DeclaredType::Jsonb | DeclaredType::Object(..) | DeclaredType::GeoShape => "jsonb".to_owned(),
            DeclaredType::Ip => "inet".to_owned(),
            DeclaredType::GeoPoint => "double precision[]".to_owned(),
            DeclaredType::Array(item) => format!("{}[]", item.postgres_name()),
        }
    }

    /// The name that PostgreSQL's errors give: without lengths.
    pub(crate) fn bare_name(&self) -> String {
        let name = self.postgres_name();
        match (name.split_once('('), name.rsplit_once(')')) {
            (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
            _ => name,
        }
    }

    /// The name that CrateDB's `information_schema` and `SHOW CREATE TABLE` give.
    pub(crate) fn crate_name(&self) -> String {
        match self {
            DeclaredType::Plain(FieldType::TinyInt) => "byte".to_owned(),
            DeclaredType::Plain(FieldType::Array(item)) => {
                format!("array({})", DeclaredType::Plain((**item).clone()).crate_name())
            }
            DeclaredType::Varchar(Some(length)) => format!("varchar({length})"),
            DeclaredType::Varchar(None) => DeclaredType::Plain(FieldType::Varchar).postgres_name(),
            DeclaredType::Jsonb => "object".to_owned(),
            DeclaredType::Ip => "ip".to_owned(),
            DeclaredType::Object(policy, members) if members.is_empty() => format!("object({})", policy.name()),
            DeclaredType::Object(policy, members) => {
                let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
                let member =
                    |(name, member): &(String, DeclaredType)| format!("{} {}", quoted(name), member.crate_name());
                let members = members.iter().map(member).collect::<Vec<_>>().join(", ");
                format!("object({}) as ({members})", policy.name())
            }
            DeclaredType::GeoPoint => "geo_point".to_owned(),
            DeclaredType::GeoShape => "geo_shape".to_owned(),
            DeclaredType::Array(item) => format!("array({})", item.crate_name()),
            other => other.postgres_name(),
        }
    }

    /// What an object declares of its members, as [`member_of`] reads it; `None` if that is nothing.
    pub(crate) fn members(&self) -> Option<String> {
        match self {
            DeclaredType::Object(_, members) if !members.is_empty() => Some(self.crate_name()),
            _ => None,
        }
    }

    /// PostgreSQL's type, where more than the kept type has to be known of it.
    pub(crate) fn pg_type(&self) -> Option<PgType> {
        match self {
            DeclaredType::Jsonb => Some(PgType::of(JSONB)),
            DeclaredType::Varchar(_) => Some(PgType::of(VARCHAR)),
            DeclaredType::Character(length) => Some(PgType { oid: BPCHAR, length: Some(*length) }),
            DeclaredType::Plain(FieldType::Array(item)) => array_of(&DeclaredType::Plain((**item).clone())),
            DeclaredType::Array(item) => array_of(item),
            _ => None,
        }
    }

    /// Takes a value that is of the kept type already as the declared type has it.
    pub(crate) fn fit<'v>(&self, column: &str, value: Value<'v>) -> Result<Value<'v>, SqlError> {
        match (self, value) {
            (DeclaredType::Varchar(Some(most)), Value::Text(text)) => {
                shortened(text, *most, "character varying", column)
            }
            (DeclaredType::Character(most), Value::Text(text)) => {
                let Value::Text(text) = shortened(text, *most, "character", column)? else { return Ok(Value::Null) };
                Ok(Value::Text(match text {
                    Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches(' ')),
                    Cow::Owned(text) => Cow::Owned(text.trim_end_matches(' ').to_owned()),
                }))
            }
            (DeclaredType::Ip, Value::Text(text)) => match address(&text) {
                true => Ok(Value::Text(text)),
                false => Err(invalid(column, "ip", &text, "an address such as 192.168.0.1 or ::1")),
            },
            // Moments are kept without the offset they were written with, as both databases have it.
            (DeclaredType::Plain(FieldType::TimestampTz), Value::TimestampTz(moment)) => {
                Ok(Value::TimestampTz(moment.to_utc().fixed_offset()))
            }
            (DeclaredType::Rounded(_, digits), Value::TimestampTz(moment)) => {
                Ok(Value::TimestampTz(moment.to_utc().round_subsecs((*digits).into()).fixed_offset()))
            }
            (DeclaredType::Rounded(_, digits), Value::Timestamp(moment)) => {
                Ok(Value::Timestamp(moment.round_subsecs((*digits).into())))
            }
            (DeclaredType::Rounded(_, digits), Value::Time(time)) => {
                Ok(Value::Time(time.round_subsecs((*digits).into())))
            }
            (DeclaredType::GeoPoint, Value::Array(items)) => {
                let within = |at: usize, most: f64| matches!(items.get(at), Some(Value::Float64(number)) if number.abs() <= most);
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
            // As PostgreSQL writes documents of the type, by which they are compared.
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
                let items = items.into_iter().map(|value| Ok(item.as_item(item.fit(column, value)?)));
                Ok(Value::Array(items.collect::<Result<_, SqlError>>()?))
            }
            (_, value) => Ok(value),
        }
    }

    /// A value that is fit, as an item of an array: texts of fixed length have the blanks at their end there, since nothing fills them up
    /// where arrays leave the engine.
    fn as_item<'v>(&self, value: Value<'v>) -> Value<'v> {
        let (DeclaredType::Character(length), Value::Text(text)) = (self, &value) else { return value };
        let missing = usize::try_from(*length).unwrap_or(0).saturating_sub(text.chars().count());
        if missing == 0 { value } else { Value::Text(Cow::Owned(format!("{text}{}", " ".repeat(missing)))) }
    }

    /// Whether values of the kept type are values of this type, so that [`DeclaredType::fit`] changes and refuses nothing.
    pub(crate) fn is_free(&self) -> bool {
        match self {
            DeclaredType::Plain(field_type) => !matches!(field_type, FieldType::TimestampTz | FieldType::Json),
            DeclaredType::Varchar(None) => true,
            DeclaredType::Array(item) => item.is_free(),
            DeclaredType::Jsonb | DeclaredType::Object(..) | DeclaredType::GeoShape => false,
            DeclaredType::Varchar(Some(_))
            | DeclaredType::Character(_)
            | DeclaredType::Rounded(..)
            | DeclaredType::Ip
            | DeclaredType::GeoPoint => false,
        }
    }
}

/// PostgreSQL's type of arrays of a type, where Arrow has none for the items.
fn array_of(item: &DeclaredType) -> Option<PgType> {
    let oid = match (item.pg_type(), item.field_type()) {
        (Some(item), _) => Mark::of_oid(item.oid, Length::Unknown).of_array().oid,
        (None, field_type) => Mark::of(&field("", &field_type, true)).of_array().oid,
    };
    oid.map(PgType::of)
}

/// The type of the member along keys, by what [`DeclaredType::members`] tells of an object; `None` if it is not declared.
pub(crate) fn member_of(object: &str, keys: &[&str]) -> Option<DeclaredType> {
    let mut declared = crate::dialect::parse_declared_type(object)?;
    for key in keys {
        let DeclaredType::Object(_, members) = declared else { return None };
        declared = members.into_iter().find(|(name, _)| name == key)?.1;
    }
    Some(declared)
}

/// A text of at most so many characters; blanks beyond do not count.
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

/// Whether a text is an address, maybe with the bits of its network.
fn address(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
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
        let fit = |most, text| DeclaredType::Varchar(Some(most)).fit("c", Value::text(text));
        assert_eq!(fit(3, "abc").unwrap(), Value::text("abc"));
        assert_eq!(fit(3, "äöü").unwrap(), Value::text("äöü"));
        assert_eq!(fit(3, "abc  ").unwrap(), Value::text("abc"));
        let error = fit(3, "abcd").unwrap_err();
        assert_eq!(error.sqlstate(), "22001");
        assert_eq!(error.message, "value too long for type character varying(3): column \"c\" was given 4 characters");
        assert_eq!(DeclaredType::Character(5).fit("c", Value::text("ab  ")).unwrap(), Value::text("ab"));
        let array = DeclaredType::Array(Box::new(DeclaredType::Character(4)));
        let found = array.fit("c", Value::Array(vec![Value::text("ä"), Value::Null, Value::text("abcd ")])).unwrap();
        assert_eq!(found, Value::Array(vec![Value::text("ä   "), Value::Null, Value::text("abcd")]));
    }

    #[test]
    fn addresses_and_points_are_checked() {
        for (text, is_one) in
            [("10.0.0.1", true), ("::1", true), ("10.0.0.0/8", true), ("10.0.0.0/33", false), ("x", false)]
        {
            assert_eq!(DeclaredType::Ip.fit("c", Value::text(text)).is_ok(), is_one, "{text}");
        }
        let point = |longitude, latitude| {
            DeclaredType::GeoPoint
                .fit("c", Value::Array(vec![Value::Float64(longitude), Value::Float64(latitude)]))
                .is_ok()
        };
        assert!(point(9.7, 47.4) && !point(190.0, 0.0) && !point(0.0, 91.0));
    }
}
