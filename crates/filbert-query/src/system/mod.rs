//! System relations: `information_schema` of each dialect, `pg_catalog` for PostgreSQL's clients,
//! and `sys` for CrateDB's clients.
//!
//! ```text
//!  Tables, sessions, jobs ─► Facts (schemas, relations, .., with OIDs)
//!                                 └─► Scene ─► rows of a Relation ─► RecordBatch
//! ```
//!
//! A relation is one element of a constant: its name, its columns as one line, and the function
//! that makes its rows. The rows are made for each query from the current content.

mod facts;
pub(crate) mod functions;
mod information;
mod postgres;
pub(crate) mod relation;
mod scene;
mod sys;
mod tables;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use filbert_grid::query::Dialect;

pub(crate) use facts::{Facts, RelationFacts, RelationKind};
pub(crate) use filbert_dialect::system::PG_CATALOG;
pub(crate) use postgres::index_definition;
pub(crate) use scene::{Scene, default_schema};

use crate::oids;
use crate::server::Server;
use relation::{Relation, SystemTable, Table};

/// The schema of the standard's catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// The schema of CrateDB's catalog.
pub(crate) const SYS: &str = "sys";

fn read(groups: &[&[Relation]]) -> Vec<Table> {
    groups.iter().copied().flatten().map(Table::read).collect()
}

static POSTGRES: LazyLock<Vec<Table>> = LazyLock::new(|| read(postgres::RELATIONS));
static SYSTEM: LazyLock<Vec<Table>> = LazyLock::new(|| read(&[sys::RELATIONS]));
static OF_HAZELCAST: LazyLock<Vec<Table>> = LazyLock::new(|| read(&[information::HAZELCAST]));
static OF_POSTGRES: LazyLock<Vec<Table>> = LazyLock::new(|| read(information::POSTGRES));
static OF_CRATE: LazyLock<Vec<Table>> = LazyLock::new(|| read(information::CRATE));

/// The relations of a system schema; `None` for other schemas.
fn tables(schema: &str, dialect: Dialect) -> Option<&'static [Table]> {
    match (schema, dialect) {
        (INFORMATION_SCHEMA, Dialect::Hazelcast) => Some(&OF_HAZELCAST),
        (INFORMATION_SCHEMA, Dialect::Postgres) => Some(&OF_POSTGRES),
        (INFORMATION_SCHEMA, Dialect::Crate) => Some(&OF_CRATE),
        (PG_CATALOG, Dialect::Postgres | Dialect::Crate) => Some(&POSTGRES),
        (SYS, Dialect::Crate | Dialect::Postgres) => Some(&SYSTEM),
        _ => None,
    }
}

/// All system relations by schema, as PostgreSQL's users see them.
fn system_tables() -> [(&'static str, i64, &'static [Table]); 3] {
    [
        (PG_CATALOG, oids::PG_CATALOG, &POSTGRES),
        (INFORMATION_SCHEMA, oids::INFORMATION_SCHEMA, &OF_POSTGRES),
        (SYS, oids::SYS, &SYSTEM),
    ]
}

/// Whether a name is that of a system schema.
pub(crate) fn is_system_schema(schema: &str, dialect: Dialect) -> bool {
    tables(schema, dialect).is_some()
}

/// Whether a system schema has a relation with this name.
pub(crate) fn has(schema: &str, name: &str, dialect: Dialect) -> bool {
    tables(schema, dialect).is_some_and(|tables| tables.iter().any(|table| table.name == name))
}

/// A system schema for DataFusion.
#[derive(Debug)]
pub(crate) struct SystemSchema {
    tables: &'static [Table],
    server: Arc<Server>,
    dialect: Dialect,
}

impl SystemSchema {
    /// The system schema with this name in a dialect.
    pub(crate) fn find(name: &str, server: &Arc<Server>, dialect: Dialect) -> Option<SystemSchema> {
        Some(SystemSchema { tables: tables(name, dialect)?, server: server.clone(), dialect })
    }

    /// The relation with this name.
    pub(crate) fn relation(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let table = self.tables.iter().find(|table| table.name == name)?;
        Some(Arc::new(SystemTable { table, server: self.server.clone(), dialect: self.dialect }))
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.relation(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }
}

#[cfg(test)]
mod tests {
    use filbert_dialect::system::{EMPTY_RELATIONS, TABLE_FUNCTIONS};

    use super::*;

    #[test]
    fn statements_are_rewritten_by_names_of_relations_that_there_are() {
        let mut empty: Vec<&str> = postgres::EMPTY.iter().map(|relation| relation.name).collect();
        empty.extend(["pg_enum", "pg_range"]);
        empty.sort_unstable();
        assert_eq!(empty, EMPTY_RELATIONS);
        let mut functions: Vec<&str> = postgres::FUNCTIONS.iter().map(|relation| relation.name).collect();
        functions.sort_unstable();
        assert_eq!(functions, TABLE_FUNCTIONS);
    }
}
