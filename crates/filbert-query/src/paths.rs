//! Search paths: names without a schema are looked up in the schemas of `search_path`, then in the
//! default schema.

use filbert_dialect::{DEFAULT_SCHEMAS, Places, in_schema};
use filbert_grid::query::Dialect;

use crate::catalog::Catalog;
use crate::client_context::ClientContext;
use crate::session::search_path;

/// Schemas without user tables.
const OF_THE_SYSTEM: [&str; 4] = ["pg_catalog", "information_schema", "sys", "blob"];

/// A search path over the schemas of the catalog.
pub(crate) struct Path<'c> {
    catalog: &'c Catalog,
    schemas: Vec<String>,
    dialect: Dialect,
}

/// The search path of a session for names without a schema, in order.
pub(crate) fn schemas(client: &ClientContext) -> Vec<String> {
    let schemas = search_path(client.session().map(AsRef::as_ref), client.dialect(), false);
    schemas.into_iter().filter(|schema| !OF_THE_SYSTEM.contains(&schema.as_str())).collect()
}

fn is_default(schema: &str) -> bool {
    DEFAULT_SCHEMAS.contains(&schema)
}

impl<'c> Path<'c> {
    pub(crate) fn new(catalog: &'c Catalog, schemas: Vec<String>, dialect: Dialect) -> Path<'c> {
        Path { catalog, schemas, dialect }
    }
}

impl Places for Path<'_> {
    fn of_known(&self, name: &str) -> Option<String> {
        let is_there = |name: &str| self.catalog.mapping(name).is_some() || self.catalog.view(name).is_some();
        let found = self.schemas.iter().find(|schema| is_there(&in_schema(schema, name)));
        found.filter(|schema| !is_default(schema)).cloned()
    }

    fn of_new(&self) -> Option<String> {
        let is_there = |schema: &&String| is_default(schema) || self.catalog.has_schema(schema);
        let first = self.schemas.first();
        let chosen = match self.dialect {
            // CrateDB creates a schema with its first table.
            Dialect::Crate => first,
            Dialect::Hazelcast | Dialect::Postgres => self.schemas.iter().find(is_there).or(first),
        };
        chosen.filter(|schema| !is_default(schema)).cloned()
    }
}
