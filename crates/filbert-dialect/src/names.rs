//! Names of tables in the default schema and in other schemas.
//!
//! The default schema has three names: `public`, `doc` (in CrateDB) and, with its catalog,
//! `hazelcast.public`. A table of the default schema has no schema in the catalog; a table `t` of
//! another schema `s` has the catalog name `s.t`.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{Ident, ObjectName, TableFactor, Visit, Visitor};

use super::tokens;
use crate::walk;

/// Keywords that continue a statement. If one of them follows where a table is expected, the table
/// is missing.
const NO_TABLES: [&str; 17] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "JOIN",
    "ON",
    "USING",
    "AS",
    "AND",
];

/// Separates a duplicate column name from its number within a planned statement, where names are
/// unique.
pub const REPEATED: char = '\u{1}';

/// The names of the default schema.
pub const DEFAULT_SCHEMAS: [&str; 2] = ["public", "doc"];
/// The catalog names, one for each dialect.
pub const CATALOGS: [&str; 3] = ["hazelcast", "crate", "filbert"];

/// The catalog name of a dialect in statements; for Hazelcast's dialect as in Hazelcast.
pub fn catalog_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Hazelcast => "hazelcast",
        Dialect::Crate => "crate",
        Dialect::Postgres => "filbert",
    }
}

/// The catalog name of a table of a schema.
pub fn in_schema(schema: &str, name: &str) -> String {
    if DEFAULT_SCHEMAS.contains(&schema) { name.to_owned() } else { format!("{schema}.{name}") }
}

/// The schema of a catalog name, and the name within the schema.
pub fn schema_of(name: &str) -> (Option<&str>, &str) {
    match name.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, name),
    }
}

/// The catalog name of a name in a statement.
pub fn catalog_name(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [name] => Ok(name.value.clone()),
        [schema, name] => Ok(in_schema(&schema.value, &name.value)),
        [catalog, schema, name] if CATALOGS.contains(&catalog.value.as_str()) => {
            Ok(in_schema(&schema.value, &name.value))
        }
        [catalog, ..] => {
            let text = format!("the database {:?} of {name} is not there, expected {:?}", catalog.value, CATALOGS[0]);
            Err(parsing_error(text).with_sqlstate("3D000"))
        }
        [] => Err(parsing_error("a name is expected")),
    }
}

/// Rejects a query with a keyword in place of a table.
pub(super) fn check_tables(tree: &impl Visit) -> Result<(), SqlError> {
    struct Tables;
    impl Visitor for Tables {
        type Break = SqlError;

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
            let TableFactor::Table { name, .. } = factor else { return ControlFlow::Continue(()) };
            match name.0.as_slice() {
                [name] => check_table(name.as_ident()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match walk::read(tree, &mut Tables) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn check_table(name: Option<&Ident>) -> ControlFlow<SqlError> {
    let found = name.filter(|name| name.quote_style.is_none());
    match found.filter(|name| NO_TABLES.iter().any(|word| name.value.eq_ignore_ascii_case(word))) {
        None => ControlFlow::Continue(()),
        Some(name) => {
            ControlFlow::Break(tokens::at(&format!("expected a table, found: {}", name.value), name.span.start))
        }
    }
}

/// Rejects a collation with another order than the one of code points.
pub(super) fn check_collation(name: &ObjectName) -> Result<(), SqlError> {
    let last = name.0.last().and_then(|part| part.as_ident()).map_or("", |name| name.value.as_str());
    if ["c", "posix", "default", "ucs_basic", "c.utf8", "c.utf-8"].contains(&last.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let text = format!("texts are ordered by their code points: COLLATE {name} is not served, expected \"C\"");
    Err(parsing_error(text).with_sqlstate("0A000"))
}
