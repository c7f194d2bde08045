//! Names of tables: the default schema's names, and those of other schemas.
//!
//! The default schema has three names: `public`, `doc` (CrateDB's) and, with its catalog, `hazelcast.public`. A table of it has no
//! schema in the catalog; a table `t` of another schema `s` is there as `s.t`.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use filbert_grid::query::SqlError;

use crate::error::parsing_error;

/// The names of the default schema.
pub(crate) const DEFAULT_SCHEMAS: [&str; 2] = ["public", "doc"];
/// The catalog has a name for each dialect.
pub(crate) const CATALOGS: [&str; 3] = ["hazelcast", "crate", "filbert"];

/// The name in the catalog of a table of a schema.
pub(crate) fn in_schema(schema: &str, name: &str) -> String {
    if DEFAULT_SCHEMAS.contains(&schema) { name.to_owned() } else { format!("{schema}.{name}") }
}

/// The schema and the name within it of a name in the catalog.
pub(crate) fn schema_of(name: &str) -> (Option<&str>, &str) {
    match name.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, name),
    }
}

/// The name in the catalog that a statement's name stands for.
pub(crate) fn catalog_name(name: &ObjectName) -> Result<String, SqlError> {
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
