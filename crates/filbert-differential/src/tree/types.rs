//! The types of generated statements.

/// A type, with PostgreSQL's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Type {
    Int2,
    Int4,
    Int8,
    Numeric,
    Real,
    Double,
    Text,
    Varchar,
    Char,
    Bool,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Interval,
    Uuid,
    Bytea,
    Jsonb,
    Ints,
    Texts,
}

impl Type {
    pub(crate) const ALL: [Type; 20] = [
        Type::Int2,
        Type::Int4,
        Type::Int8,
        Type::Numeric,
        Type::Real,
        Type::Double,
        Type::Text,
        Type::Varchar,
        Type::Char,
        Type::Bool,
        Type::Date,
        Type::Timestamp,
        Type::Timestamptz,
        Type::Time,
        Type::Interval,
        Type::Uuid,
        Type::Bytea,
        Type::Jsonb,
        Type::Ints,
        Type::Texts,
    ];

    /// The name in casts and in the function table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Int2 => "int2",
            Type::Int4 => "int4",
            Type::Int8 => "int8",
            Type::Numeric => "numeric",
            Type::Real => "float4",
            Type::Double => "float8",
            Type::Text => "text",
            Type::Varchar => "varchar",
            Type::Char => "bpchar",
            Type::Bool => "bool",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            Type::Time => "time",
            Type::Interval => "interval",
            Type::Uuid => "uuid",
            Type::Bytea => "bytea",
            Type::Jsonb => "jsonb",
            Type::Ints => "int4[]",
            Type::Texts => "text[]",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The name in Hazelcast's dialect.
    pub(crate) fn hazelcast_name(self) -> &'static str {
        match self {
            Type::Int2 => "smallint",
            Type::Int4 => "integer",
            Type::Int8 => "bigint",
            Type::Numeric => "decimal",
            Type::Real => "real",
            Type::Double => "double",
            Type::Bool => "boolean",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Time => "time",
            _ => "varchar",
        }
    }

    /// The OID with which a client declares a parameter.
    pub(crate) fn oid(self) -> u32 {
        match self {
            Type::Int2 => 21,
            Type::Int4 => 23,
            Type::Int8 => 20,
            Type::Numeric => 1700,
            Type::Real => 700,
            Type::Double => 701,
            Type::Text => 25,
            Type::Varchar => 1043,
            Type::Char => 1042,
            Type::Bool => 16,
            Type::Date => 1082,
            Type::Timestamp => 1114,
            Type::Timestamptz => 1184,
            Type::Time => 1083,
            Type::Interval => 1186,
            Type::Uuid => 2950,
            Type::Bytea => 17,
            Type::Jsonb => 3802,
            Type::Ints => 1007,
            Type::Texts => 1009,
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric | Type::Real | Type::Double)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Type::Real | Type::Double)
    }

    /// The types that PostgreSQL accepts without a cast where this type is expected.
    pub(crate) fn taken_for(self) -> &'static [Type] {
        match self {
            Type::Int4 => &[Type::Int2],
            Type::Int8 => &[Type::Int4, Type::Int2],
            Type::Numeric => &[Type::Int4, Type::Int8, Type::Int2],
            Type::Double => &[Type::Real, Type::Int4, Type::Numeric, Type::Int8],
            Type::Real => &[Type::Int4],
            Type::Text => &[Type::Varchar, Type::Varchar, Type::Char],
            Type::Varchar => &[Type::Text],
            Type::Timestamp => &[Type::Date],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_name() {
        assert!(Type::ALL.into_iter().all(|kind| Type::named(kind.name()) == Some(kind)));
        assert_eq!(Type::named("money"), None);
    }
}
