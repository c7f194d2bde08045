//! Where the names of a session's statements are looked for: the schemas of `search_path`, then the default one.

use filbert_dialect::{DEFAULT_SCHEMAS, Places, in_schema};
use filbert_grid::query::Dialect;

use crate::asker::Asker;
use crate::catalog::Catalog;
use crate::session::search_path;

/// Schemas in which no names of users are.
const OF_THE_SYSTEM: [&str; 4] = ["pg_catalog", "information_schema", "sys", "blob"];

/// The schemas of somebody's names, over what the catalog has.
pub(crate) struct Path<'c> {
    catalog: &'c Catalog,
    schemas: Vec<String>,
    dialect: Dialect,
}

/// The schemas in which somebody's names without one are looked for, in this order.
pub(crate) fn schemas(asker: &Asker) -> Vec<String> {
    let schemas = search_path(asker.session().map(AsRef::as_ref), asker.dialect(), false);
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
            // CrateDB's schemas come with their first table.
            Dialect::Crate => first,
            Dialect::Hazelcast | Dialect::Postgres => self.schemas.iter().find(is_there).or(first),
        };
        chosen.filter(|schema| !is_default(schema)).cloned()
    }
}
