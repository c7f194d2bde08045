//! Declared types of table columns: their names in PostgreSQL and CrateDB, and the stored type of
//! their values.

use filbert_data::FieldType;
use serde::{Deserialize, Serialize};

/// A declared type. Several may have the same stored type: an IP address is a text, an object is a
/// JSON document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeclaredType {
    /// A type that equals its stored type.
    Plain(FieldType),
    /// Text of limited length, or of any length with a PostgreSQL type other than `text`.
    Varchar(Option<u32>),
    /// Text of limited length with insignificant trailing blanks.
    Character(u32),
    /// A time or timestamp with fewer fractional digits than its stored type.
    Rounded(FieldType, u8),
    /// PostgreSQL's binary JSON: a document like any other here.
    Jsonb,
    /// An IP address, as text.
    Ip,
    /// CrateDB's object: a JSON document.
    Object(ObjectPolicy, Vec<(String, DeclaredType)>),
    /// Longitude and latitude.
    GeoPoint,
    /// A shape, as a GeoJSON document.
    GeoShape,
    /// Elements of one type.
    Array(Box<DeclaredType>),
}

/// How CrateDB's objects handle undeclared members. Documents are stored unchanged; the policy is
/// only displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectPolicy {
    /// They become columns.
    #[default]
    Dynamic,
    /// They are rejected.
    Strict,
    /// They are stored unchanged.
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
    /// The stored type.
    pub fn field_type(&self) -> FieldType {
        match self {
            DeclaredType::Plain(field_type) | DeclaredType::Rounded(field_type, _) => field_type.clone(),
            DeclaredType::Varchar(_) | DeclaredType::Character(_) | DeclaredType::Ip => FieldType::Varchar,
            DeclaredType::Jsonb | DeclaredType::Object(..) | DeclaredType::GeoShape => FieldType::Json,
            DeclaredType::GeoPoint => FieldType::Array(Box::new(FieldType::Double)),
            DeclaredType::Array(item) => FieldType::Array(Box::new(item.field_type())),
        }
    }

    /// The name that PostgreSQL's `format_type` returns.
    pub fn postgres_name(&self) -> String {
        match self {
            DeclaredType::Plain(field_type) => match field_type {
                FieldType::Boolean => "boolean".to_owned(),
                // PostgreSQL has no 8-bit type.
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

    /// The name in PostgreSQL's errors: without lengths.
    pub fn bare_name(&self) -> String {
        let name = self.postgres_name();
        match (name.split_once('('), name.rsplit_once(')')) {
            (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
            _ => name,
        }
    }

    /// The name in CrateDB's `information_schema` and `SHOW CREATE TABLE`.
    pub fn crate_name(&self) -> String {
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

    /// The declared members of an object, in the form that [`crate::member_of`] parses; `None` if
    /// there are none.
    pub fn members(&self) -> Option<String> {
        match self {
            DeclaredType::Object(_, members) if !members.is_empty() => Some(self.crate_name()),
            _ => None,
        }
    }

    /// Whether every value of the stored type is valid, so nothing is changed or rejected on
    /// writing.
    pub fn is_free(&self) -> bool {
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
