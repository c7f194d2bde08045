//! Quoting of names in statements of PostgreSQL and CrateDB.

/// Reserved words, which need quotes as names.
const RESERVED: [&str; 44] = [
    "all",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "default",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "intersect",
    "into",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "primary",
    "references",
    "select",
    "table",
    "user",
    "where",
];

/// A name in SQL form: quoted if necessary.
pub fn quote_ident(name: &str) -> String {
    let mut chars = name.chars();
    let is_plain = chars.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && chars.all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        && !RESERVED.contains(&name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
