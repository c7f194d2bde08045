//! PostgreSQL's types: their OIDs, and their values as text and in binary.
//!
//! | Filbert | PostgreSQL | |
//! |---|---|---|
//! | `BOOLEAN` | `boolean` | |
//! | `TINYINT`, `SMALLINT` | `smallint` | PostgreSQL has no 8-bit integer |
//! | `INTEGER`, `BIGINT` | `integer`, `bigint` | |
//! | `DECIMAL` | `numeric` | with precision and scale if they are declared |
//! | `REAL`, `DOUBLE` | `real`, `double precision` | |
//! | `VARCHAR`, `CHAR` | `text` | |
//! | `DATE`, `TIME`, `INTERVAL` | the same | nanoseconds are truncated to microseconds |
//! | `TIMESTAMP`, `TIMESTAMP WITH TIME ZONE` | the same | as above |
//! | `UUID`, `JSON` | `uuid`, `json` | |
//! | `BYTEA`, `OBJECT` | `bytea` | an object is sent as the bytes of its blob |
//! | `x[]` | `x[]` | arrays of arrays must be rectangular |
//! | `BIGINT` of system relations | `oid`, `xid` | as declared |
//! | `VARCHAR` of system relations | `name`, `"char"` | as declared |
//! | `SMALLINT[]`, `BIGINT[]` of system relations | `int2vector`, `oidvector` | as declared |
//!
//! Timestamps with a time zone are written in the time zone of the session.

mod arrays;
mod binary;
mod datetimes;
mod decimals;
mod intervals;
mod numbers;
mod sizes;
mod text;
mod vectors;

use std::fmt;

use filbert_data::FieldType;
use filbert_grid::query::{ColumnMeta, ParameterType};

pub(crate) use binary::{read_binary, utf8, write_binary};
pub(crate) use sizes::value_bytes;
pub(crate) use text::{read_text, write_text};

/// A buffer for the text of values.
struct Text<'o>(&'o mut Vec<u8>);

impl Text<'_> {
    fn push(&mut self, char: char) {
        self.push_str(char.encode_utf8(&mut [0; 4]));
    }

    fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    fn written(write: impl FnOnce(&mut Text<'_>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Text(&mut bytes));
        String::from_utf8(bytes).unwrap()
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// The types without the array types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Bool,
    Bytea,
    Char,
    Name,
    Int8,
    Int2,
    Int4,
    Text,
    Oid,
    Json,
    Float4,
    Float8,
    Unknown,
    Bpchar,
    Varchar,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Numeric,
    Uuid,
    Jsonb,
    Xid,
    Int2Vector,
    OidVector,
}

/// A row of the table: the type, its name, its OID, the OID of its array type, and the size of a
/// value in binary in bytes, -1 if it varies.
type Row = (Base, &'static str, u32, u32, i16);

/// All types. OIDs and sizes are from `pg_type.dat`.
const TYPES: [Row; 26] = [
    (Base::Bool, "boolean", 16, 1000, 1),
    (Base::Bytea, "bytea", 17, 1001, -1),
    (Base::Char, "\"char\"", 18, 1002, 1),
    (Base::Name, "name", 19, 1003, 64),
    (Base::Int8, "bigint", 20, 1016, 8),
    (Base::Int2, "smallint", 21, 1005, 2),
    (Base::Int2Vector, "int2vector", 22, 1006, -1),
    (Base::Int4, "integer", 23, 1007, 4),
    (Base::Text, "text", 25, 1009, -1),
    (Base::Oid, "oid", 26, 1028, 4),
    (Base::Xid, "xid", 28, 1011, 4),
    (Base::OidVector, "oidvector", 30, 1013, -1),
    (Base::Json, "json", 114, 199, -1),
    (Base::Float4, "real", 700, 1021, 4),
    (Base::Float8, "double precision", 701, 1022, 8),
    (Base::Unknown, "unknown", 705, 1009, -2),
    (Base::Bpchar, "character", 1042, 1014, -1),
    (Base::Varchar, "character varying", 1043, 1015, -1),
    (Base::Date, "date", 1082, 1182, 4),
    (Base::Time, "time without time zone", 1083, 1183, 8),
    (Base::Timestamp, "timestamp without time zone", 1114, 1115, 8),
    (Base::Timestamptz, "timestamp with time zone", 1184, 1185, 8),
    (Base::Interval, "interval", 1186, 1187, 16),
    (Base::Numeric, "numeric", 1700, 1231, -1),
    (Base::Uuid, "uuid", 2950, 2951, 16),
    (Base::Jsonb, "jsonb", 3802, 3807, -1),
];

/// A type, or the array type of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PgType {
    pub(crate) base: Base,
    pub(crate) is_array: bool,
}

impl Base {
    fn row(self) -> &'static Row {
        static FALLBACK: Row = (Base::Text, "text", 25, 1009, -1);
        TYPES.iter().find(|row| row.0 == self).unwrap_or(&FALLBACK)
    }
}

impl PgType {
    pub(crate) const TEXT: PgType = PgType { base: Base::Text, is_array: false };

    /// The type with an OID. `None` if the OID is unknown.
    pub(crate) fn from_oid(oid: u32) -> Option<PgType> {
        TYPES.iter().find_map(|row| match oid {
            _ if row.2 == oid => Some(PgType { base: row.0, is_array: false }),
            _ if row.3 == oid => Some(PgType { base: row.0, is_array: true }),
            _ => None,
        })
    }

    /// The PostgreSQL type in which values of a field type are sent.
    pub(crate) fn of(field_type: &FieldType) -> PgType {
        let base = match field_type {
            FieldType::Boolean => Base::Bool,
            FieldType::TinyInt | FieldType::SmallInt => Base::Int2,
            FieldType::Integer => Base::Int4,
            FieldType::BigInt => Base::Int8,
            FieldType::Decimal(_) => Base::Numeric,
            FieldType::Real => Base::Float4,
            FieldType::Double => Base::Float8,
            FieldType::Varchar | FieldType::Char => Base::Text,
            FieldType::Date => Base::Date,
            FieldType::Time => Base::Time,
            FieldType::Timestamp => Base::Timestamp,
            FieldType::TimestampTz => Base::Timestamptz,
            FieldType::Uuid => Base::Uuid,
            FieldType::Json => Base::Json,
            FieldType::Object | FieldType::Binary => Base::Bytea,
            FieldType::Interval => Base::Interval,
            FieldType::Array(item) => return PgType { base: PgType::of(item).base, is_array: true },
        };
        PgType { base, is_array: false }
    }

    /// The PostgreSQL type in which values of a result's column are sent.
    ///
    /// Computed OIDs are whole numbers, and drivers read them as such. The exception is the list of
    /// a composite type's attribute types, `attrtypoids`. The driver asyncpg uses it to learn the
    /// definitions of types, and would first have to learn the definition of any other type of
    /// list.
    pub(crate) fn of_column(column: &ColumnMeta) -> PgType {
        if let Some(described) = column.pg_type.and_then(PgType::from_oid) {
            return described;
        }
        match PgType::of(&column.field_type) {
            PgType { base: Base::Int8, is_array: true } if column.name == "attrtypoids" => {
                PgType { base: Base::Oid, is_array: true }
            }
            other => other,
        }
    }

    /// The field type of values of this type. `None` if the statement decides.
    pub(crate) fn field_type(self) -> Option<FieldType> {
        let item = match self.base {
            Base::Bool => FieldType::Boolean,
            Base::Bytea => FieldType::Binary,
            Base::Int2 => FieldType::SmallInt,
            Base::Int4 => FieldType::Integer,
            Base::Int8 | Base::Oid | Base::Xid => FieldType::BigInt,
            Base::Int2Vector => FieldType::Array(Box::new(FieldType::SmallInt)),
            Base::OidVector => FieldType::Array(Box::new(FieldType::BigInt)),
            Base::Json | Base::Jsonb => FieldType::Json,
            Base::Float4 => FieldType::Real,
            Base::Float8 => FieldType::Double,
            Base::Char | Base::Name | Base::Text | Base::Bpchar | Base::Varchar => FieldType::Varchar,
            Base::Date => FieldType::Date,
            Base::Time => FieldType::Time,
            Base::Timestamp => FieldType::Timestamp,
            Base::Timestamptz => FieldType::TimestampTz,
            Base::Interval => FieldType::Interval,
            Base::Numeric => FieldType::Decimal(None),
            Base::Uuid => FieldType::Uuid,
            Base::Unknown => return None,
        };
        Some(if self.is_array { FieldType::Array(Box::new(item)) } else { item })
    }

    /// The type in which a client sends the values of a parameter.
    pub(crate) fn of_parameter(parameter: &ParameterType) -> PgType {
        let declared = parameter.pg_type.and_then(PgType::from_oid);
        declared.unwrap_or_else(|| PgType::of(&parameter.field_type))
    }

    /// The declaration of a parameter with this type. `None` if the statement decides the type.
    pub(crate) fn parameter_type(self) -> Option<ParameterType> {
        let field_type = self.field_type()?;
        let pg_type = (PgType::of(&field_type) != self).then(|| self.oid());
        Some(ParameterType { field_type, pg_type })
    }

    pub(crate) fn oid(self) -> u32 {
        let row = self.base.row();
        if self.is_array { row.3 } else { row.2 }
    }

    /// Whether its values are numbers.
    pub(crate) fn is_number(self) -> bool {
        let numbers = [Base::Int2, Base::Int4, Base::Int8, Base::Float4, Base::Float8, Base::Numeric];
        !self.is_array && numbers.contains(&self.base)
    }

    /// The size of a value in binary in bytes, -1 if it varies.
    pub(crate) fn size(self) -> i16 {
        if self.is_array { -1 } else { self.base.row().4 }
    }

    /// The type of an array's items.
    pub(crate) fn item(self) -> PgType {
        PgType { is_array: false, ..self }
    }
}

impl fmt::Display for PgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.row().1)?;
        if self.is_array { f.write_str("[]") } else { Ok(()) }
    }
}

/// The OIDs of all types and their arrays.
pub(crate) fn all_oids() -> impl Iterator<Item = u32> {
    TYPES.iter().flat_map(|row| [row.2, row.3])
}

/// Finds a type by its name in a statement, such as in `PREPARE p (int, text) AS ..`.
pub(crate) fn type_by_name(name: &str) -> Option<PgType> {
    let name = name.trim().to_ascii_lowercase();
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(name) => (name.trim_end().to_owned(), true),
        None => (name, false),
    };
    // Lengths and precisions are irrelevant for a parameter.
    let plain = match (name.find('('), name.find(')')) {
        (Some(open), Some(close)) if open < close => {
            let (before, after) = (name.get(..open)?, name.get(close + 1..)?);
            format!("{} {}", before.trim_end(), after.trim()).trim_end().to_owned()
        }
        _ => name,
    };
    let base = match plain.strip_prefix("pg_catalog.").unwrap_or(&plain) {
        "bool" => Base::Bool,
        "int2" => Base::Int2,
        "int" | "int4" => Base::Int4,
        "int8" => Base::Int8,
        "float4" => Base::Float4,
        "float" | "float8" => Base::Float8,
        "decimal" => Base::Numeric,
        "varchar" | "string" => Base::Varchar,
        "char" | "bpchar" => Base::Bpchar,
        "time" => Base::Time,
        "timestamp" => Base::Timestamp,
        "timestamptz" => Base::Timestamptz,
        plain => TYPES.iter().find(|row| row.1 == plain)?.0,
    };
    Some(PgType { base, is_array })
}

/// The type modifier of a column in a row description, -1 if none is declared.
pub(crate) fn modifier_of(column: &ColumnMeta) -> i32 {
    let numeric = PgType { base: Base::Numeric, is_array: false };
    let arrays = PgType { is_array: true, ..numeric };
    // A column with the explicit OID of `numeric` has no fixed precision and scale.
    // Four is added for a header that earlier versions of PostgreSQL had there.
    let of_text = |length: u32| i32::try_from(length).ok()?.checked_add(4);
    if let Some(modifier) = column.length.and_then(of_text) {
        return modifier;
    }
    let is_free = column.pg_type.is_some_and(|oid| oid == numeric.oid() || oid == arrays.oid());
    if is_free { -1 } else { modifier(&column.field_type) }
}

/// The precision of the widest numbers, in digits.
const DIGITS_MAX: u8 = 76;

/// The type modifier of `DECIMAL(p, s)`, -1 if none is declared.
fn modifier(field_type: &FieldType) -> i32 {
    match field_type {
        // The precision of a computed number is not declared.
        FieldType::Decimal(Some((precision, _))) if *precision >= DIGITS_MAX => -1,
        FieldType::Decimal(Some((precision, scale))) => {
            // The scale has 11 bits. Four is added for a header that earlier versions of PostgreSQL
            // had there.
            (i32::from(*precision) << 16 | i32::from(*scale) & 0x7ff) + 4
        }
        FieldType::Array(item) => modifier(item),
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_oids_of_postgresql() {
        for (field_type, oid, name) in [
            (FieldType::TinyInt, 21, "smallint"),
            (FieldType::Integer, 23, "integer"),
            (FieldType::Char, 25, "text"),
            (FieldType::Object, 17, "bytea"),
            (FieldType::Array(Box::new(FieldType::BigInt)), 1016, "bigint[]"),
            (FieldType::Array(Box::new(FieldType::Array(Box::new(FieldType::Varchar)))), 1009, "text[]"),
        ] {
            let found = PgType::of(&field_type);
            assert_eq!((found.oid(), found.to_string().as_str()), (oid, name));
            assert_eq!(PgType::from_oid(oid), Some(found));
        }
        assert_eq!(PgType::from_oid(0), None);
        assert_eq!(modifier(&FieldType::Decimal(Some((10, 2)))), 655_366);
        assert_eq!(modifier(&FieldType::Decimal(Some((76, 2)))), -1);
        assert_eq!(modifier(&FieldType::Integer), -1);
    }

    #[test]
    fn types_are_found_by_their_names() {
        for (name, oid) in [
            ("int", 23),
            ("INTEGER[]", 1007),
            ("varchar(10)", 1043),
            ("timestamp(3) with time zone", 1184),
            ("double precision", 701),
            ("pg_catalog.int8", 20),
            ("numeric(10, 2) []", 1231),
        ] {
            assert_eq!(type_by_name(name).map(PgType::oid), Some(oid), "{name}");
        }
        assert_eq!(type_by_name("point"), None);
    }
}
