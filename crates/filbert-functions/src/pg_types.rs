//! The types of PostgreSQL, with the OIDs of its `pg_type.dat`.

use filbert_data::FieldType;

/// A type.
pub struct PgType {
    /// Its OID.
    pub oid: i64,
    /// Its name in `pg_type`.
    pub name: &'static str,
    /// Its name in SQL.
    pub sql: &'static str,
    /// The OID of its array type; 0 = none.
    pub array: i64,
    /// The size of a value in bytes; -1 = variable, -2 = zero-terminated text.
    pub size: i64,
    /// The character of its category.
    pub category: &'static str,
    /// Whether casts prefer it within its category.
    pub preferred: bool,
    /// The kind: base, composite or pseudo.
    pub kind: &'static str,
}

const fn base(
    oid: i64,
    name: &'static str,
    sql: &'static str,
    array: i64,
    size: i64,
    category: &'static str,
) -> PgType {
    PgType { oid, name, sql, array, size, category, preferred: false, kind: "b" }
}

const fn preferred(base: PgType) -> PgType {
    PgType { preferred: true, ..base }
}

const fn pseudo(oid: i64, name: &'static str, size: i64) -> PgType {
    PgType { oid, name, sql: name, array: 0, size, category: "P", preferred: false, kind: "p" }
}

/// All types except array types, which follow from them.
pub const TYPES: &[PgType] = &[
    preferred(base(16, "bool", "boolean", 1000, 1, "B")),
    base(17, "bytea", "bytea", 1001, -1, "U"),
    base(18, "char", "\"char\"", 1002, 1, "Z"),
    base(19, "name", "name", 1003, 64, "S"),
    base(20, "int8", "bigint", 1016, 8, "N"),
    base(21, "int2", "smallint", 1005, 2, "N"),
    base(22, "int2vector", "int2vector", 1006, -1, "A"),
    base(23, "int4", "integer", 1007, 4, "N"),
    base(24, "regproc", "regproc", 1008, 4, "N"),
    preferred(base(25, "text", "text", 1009, -1, "S")),
    preferred(base(26, "oid", "oid", 1028, 4, "N")),
    base(27, "tid", "tid", 1010, 6, "U"),
    base(28, "xid", "xid", 1011, 4, "U"),
    base(29, "cid", "cid", 1012, 4, "U"),
    base(30, "oidvector", "oidvector", 1013, -1, "A"),
    base(114, "json", "json", 199, -1, "U"),
    base(142, "xml", "xml", 143, -1, "U"),
    base(194, "pg_node_tree", "pg_node_tree", 0, -1, "Z"),
    base(600, "point", "point", 1017, 16, "G"),
    base(650, "cidr", "cidr", 651, -1, "I"),
    base(700, "float4", "real", 1021, 4, "N"),
    preferred(base(701, "float8", "double precision", 1022, 8, "N")),
    pseudo(705, "unknown", -2),
    base(829, "macaddr", "macaddr", 1040, 6, "U"),
    preferred(base(869, "inet", "inet", 1041, -1, "I")),
    base(1033, "aclitem", "aclitem", 1034, 12, "U"),
    base(1042, "bpchar", "character", 1014, -1, "S"),
    base(1043, "varchar", "character varying", 1015, -1, "S"),
    base(1082, "date", "date", 1182, 4, "D"),
    base(1083, "time", "time without time zone", 1183, 8, "D"),
    base(1114, "timestamp", "timestamp without time zone", 1115, 8, "D"),
    preferred(base(1184, "timestamptz", "timestamp with time zone", 1185, 8, "D")),
    preferred(base(1186, "interval", "interval", 1187, 16, "T")),
    base(1266, "timetz", "time with time zone", 1270, 12, "D"),
    base(1560, "bit", "bit", 1561, -1, "V"),
    preferred(base(1562, "varbit", "bit varying", 1563, -1, "V")),
    base(1700, "numeric", "numeric", 1231, -1, "N"),
    base(1790, "refcursor", "refcursor", 2201, -1, "U"),
    base(2202, "regprocedure", "regprocedure", 2207, 4, "N"),
    base(2205, "regclass", "regclass", 2210, 4, "N"),
    base(2206, "regtype", "regtype", 2211, 4, "N"),
    pseudo(2249, "record", -1),
    pseudo(2275, "cstring", -2),
    pseudo(2276, "any", 4),
    pseudo(2277, "anyarray", -1),
    pseudo(2278, "void", 4),
    pseudo(2279, "trigger", 4),
    pseudo(2283, "anyelement", 4),
    base(2950, "uuid", "uuid", 2951, 16, "U"),
    pseudo(3838, "event_trigger", 4),
    base(3802, "jsonb", "jsonb", 3807, -1, "U"),
    base(4089, "regnamespace", "regnamespace", 4090, 4, "N"),
    base(4096, "regrole", "regrole", 4097, 4, "N"),
];

/// The type with this OID. For the OID of an array type, the type of its elements, and `true`.
pub fn by_oid(oid: i64) -> Option<(&'static PgType, bool)> {
    let of_array = |found: &&PgType| found.array == oid && oid != 0;
    TYPES
        .iter()
        .find(|found| found.oid == oid)
        .map(|found| (found, false))
        .or_else(|| TYPES.iter().find(of_array).map(|found| (found, true)))
}

/// The OID of a type from one of its names.
pub fn by_name(name: &str) -> Option<i64> {
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name).to_ascii_lowercase();
    if let Some(item) = name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
        let item = by_name(item)?;
        return TYPES.iter().find(|found| found.oid == item).map(|found| found.array);
    }
    let without_length = name.split('(').next().unwrap_or(&name).trim().to_owned();
    let plain = match without_length.as_str() {
        "int" => "int4",
        "decimal" => "numeric",
        "float" | "double" => "float8",
        "string" => "text",
        "char" => "bpchar",
        "\"char\"" => "char",
        other => other,
    };
    TYPES.iter().find(|found| found.name == plain || found.sql == plain).map(|found| found.oid)
}

/// The OID of a type and its modifier, as in `atttypid` and `atttypmod`.
pub type Declared = (i64, i64);

/// The PostgreSQL type in which values are sent.
pub fn of_field_type(field_type: &FieldType) -> Declared {
    match field_type {
        FieldType::Boolean => (16, -1),
        FieldType::TinyInt | FieldType::SmallInt => (21, -1),
        FieldType::Integer => (23, -1),
        FieldType::BigInt => (20, -1),
        FieldType::Decimal(None) => (1700, -1),
        // PostgreSQL adds four to the modifier, for a former header.
        FieldType::Decimal(Some((precision, scale))) => {
            (1700, ((i64::from(*precision) << 16) | (i64::from(*scale) & 0x7ff)) + 4)
        }
        FieldType::Real => (700, -1),
        FieldType::Double => (701, -1),
        FieldType::Varchar | FieldType::Char => (25, -1),
        FieldType::Date => (1082, -1),
        FieldType::Time => (1083, -1),
        FieldType::Timestamp => (1114, -1),
        FieldType::TimestampTz => (1184, -1),
        FieldType::Uuid => (2950, -1),
        FieldType::Json => (114, -1),
        FieldType::Object | FieldType::Binary => (17, -1),
        FieldType::Interval => (1186, -1),
        FieldType::Array(item) => {
            let (oid, modifier) = of_field_type(item);
            // An array of arrays has the same type as an array.
            match by_oid(oid) {
                Some((found, false)) => (found.array, modifier),
                _ => (oid, modifier),
            }
        }
    }
}

/// The SQL name of a type with its modifier, as `format_type` returns it.
pub fn format(oid: i64, modifier: Option<i64>) -> String {
    let Some((found, is_array)) = by_oid(oid) else {
        return if oid == 0 { "-".to_owned() } else { "???".to_owned() };
    };
    let modifier = modifier.filter(|modifier| *modifier >= 0);
    let name = match (found.oid, modifier) {
        (1043 | 1042, Some(modifier)) => format!("{}({})", found.sql, modifier - 4),
        (1700, Some(modifier)) => format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff),
        (1114 | 1184 | 1083 | 1266, Some(modifier)) => match found.sql.split_once(' ') {
            Some((first, rest)) => format!("{first}({modifier}) {rest}"),
            None => found.sql.to_owned(),
        },
        (1042, None) => "bpchar".to_owned(),
        _ => found.sql.to_owned(),
    };
    if is_array { format!("{name}[]") } else { name }
}

/// The names of the input and output functions. Drivers recognize a type by them.
pub fn functions(found: &PgType) -> [String; 4] {
    let underscored = matches!(found.oid, 114 | 142 | 600 | 650 | 829 | 869 | 1082..=1700 | 2249..=2283 | 2950 | 3802 | 3838)
        && found.oid != 1033;
    let separator = if underscored || found.kind == "p" && found.name != "unknown" { "_" } else { "" };
    let stem = if matches!(found.oid, 829) { "macaddr" } else { found.name };
    ["in", "out", "recv", "send"].map(|way| format!("{stem}{separator}{way}"))
}

/// The same for arrays of any element type.
pub const ARRAY_FUNCTIONS: [&str; 4] = ["array_in", "array_out", "array_recv", "array_send"];

/// Functions that statements cannot call but catalogs refer to: input and output of types, and
/// handlers of relations.
pub fn internal_functions() -> Vec<String> {
    let handlers = ["array_subscript_handler", "heap_tableam_handler", "bthandler", "hashhandler"];
    let named = ARRAY_FUNCTIONS.into_iter().chain(handlers).map(str::to_owned);
    TYPES.iter().flat_map(functions).chain(named).collect()
}

/// The name of a type in CrateDB.
pub fn crate_type(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Array(item) => format!("{}_array", crate_type(item)),
        FieldType::Json => "object".to_owned(),
        // CrateDB's users read timestamps as numbers of this type.
        FieldType::TinyInt => "byte".to_owned(),
        FieldType::Decimal(_) => "numeric".to_owned(),
        other => {
            let (oid, _) = of_field_type(other);
            by_oid(oid).map_or("text", |(found, _)| found.sql).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_called_as_postgresql_calls_them() {
        for (oid, modifier, expected) in [
            (23, None, "integer"),
            (1007, Some(-1), "integer[]"),
            (1043, Some(14), "character varying(10)"),
            (1700, Some(655_366), "numeric(10,2)"),
            (1184, Some(3), "timestamp(3) with time zone"),
            (0, None, "-"),
            (99_999, None, "???"),
        ] {
            assert_eq!(format(oid, modifier), expected);
        }
        for (name, oid) in
            [("int", 23), ("text[]", 1009), ("_int4", 1007), ("numeric(3,1)", 1700), ("timestamptz", 1184)]
        {
            assert_eq!(by_name(name), Some(oid), "{name}");
        }
        assert_eq!(of_field_type(&FieldType::Array(Box::new(FieldType::Decimal(Some((10, 2)))))), (1231, 655_366));
        let of = |oid| by_oid(oid).map(|(found, _)| functions(found)).unwrap_or_default();
        assert_eq!(of(23).first().map(String::as_str), Some("int4in"));
        assert_eq!(of(1184).get(2).map(String::as_str), Some("timestamptz_recv"));
    }
}
