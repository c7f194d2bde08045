//! The catalog for DataFusion: the member's tables and the system relations, for each dialect.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use filbert_dialect::{DEFAULT_SCHEMAS, in_schema};
use filbert_functions::error::carried;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, SqlSubject};

use crate::scan::provider::MapProvider;
use crate::server::Server;
use crate::system::{self, SystemSchema};
use crate::tables::{PARTITIONED, RAW_SCHEMA, SCHEMA, Tables};

/// DataFusion's catalog over the tables, for one dialect.
#[derive(Debug)]
pub(crate) struct TableCatalog {
    public: Arc<PublicSchema>,
    raw: Arc<PublicSchema>,
    server: Arc<Server>,
    dialect: Dialect,
}

impl TableCatalog {
    pub(crate) fn new(server: &Arc<Server>, dialect: Dialect) -> Self {
        let schema = |raw| {
            let system = SystemSchema::find(system::PG_CATALOG, server, dialect);
            Arc::new(PublicSchema { tables: server.tables.clone(), raw, name: None, system })
        };
        TableCatalog { public: schema(false), raw: schema(true), server: server.clone(), dialect }
    }
}

impl CatalogProvider for TableCatalog {
    fn schema_names(&self) -> Vec<String> {
        [SCHEMA, PARTITIONED, system::INFORMATION_SCHEMA].map(str::to_owned).to_vec()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            PARTITIONED => Some(self.public.clone()),
            name if DEFAULT_SCHEMAS.contains(&name) => Some(self.public.clone()),
            RAW_SCHEMA => Some(self.raw.clone()),
            name => {
                if let Some(system) = SystemSchema::find(name, &self.server, self.dialect) {
                    return Some(Arc::new(system));
                }
                let tables = self.public.tables.clone();
                Some(Arc::new(PublicSchema { tables, raw: false, name: Some(name.to_owned()), system: None }))
            }
        }
    }
}

/// Mappings, and maps without a mapping.
#[derive(Debug)]
struct PublicSchema {
    tables: Arc<Tables>,
    /// Whether tables expose their stored keys and values as columns.
    raw: bool,
    /// The schema's name, if it is not the default schema.
    name: Option<String>,
    /// The fallback for names that no table has.
    system: Option<SystemSchema>,
}

impl PublicSchema {
    /// The catalog name of a table of this schema.
    fn in_catalog(&self, name: &str) -> String {
        match &self.name {
            Some(schema) => in_schema(schema, name),
            None => name.to_owned(),
        }
    }
}

#[async_trait]
impl SchemaProvider for PublicSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.catalog().mapping_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let found = self.tables.find_as(&self.in_catalog(name), self.raw).map_err(carried)?;
        let found = found.map(|mapped| Arc::new(MapProvider(mapped.table)) as Arc<dyn TableProvider>);
        Ok(found.or_else(|| self.system.as_ref()?.relation(name)))
    }

    fn table_exist(&self, name: &str) -> bool {
        matches!(self.tables.find(&self.in_catalog(name)), Ok(Some(_)))
            || self.system.as_ref().is_some_and(|system| system.table_exist(name))
    }
}

/// Fails if the table does not exist, with a suggestion where one helps.
pub(crate) fn check(tables: &Tables, schema: Option<&str>, name: &str, dialect: Dialect) -> Result<(), SqlError> {
    if let Some(schema) = schema.filter(|schema| system::is_system_schema(schema, dialect)) {
        if system::has(schema, name, dialect) {
            return Ok(());
        }
        let name = format!("{schema}.{name}");
        let text = format!("relation {name:?} does not exist");
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("42P01");
        return Err(error.about(SqlSubject::Relation { name, nearest: None }));
    }
    let own = [SCHEMA, PARTITIONED, RAW_SCHEMA];
    let other = schema.filter(|schema| !own.contains(schema) && !DEFAULT_SCHEMAS.contains(schema));
    let name = &other.map_or_else(|| name.to_owned(), |schema| in_schema(schema, name));
    // Names without a schema are also looked up in `pg_catalog`.
    if tables.find(name)?.is_some() || schema.is_none() && system::has(system::PG_CATALOG, name, dialect) {
        return Ok(());
    }
    if let Some(schema) = other.filter(|schema| !tables.catalog().has_schema(schema)) {
        let text = format!("schema {schema:?} is not there, expected {SCHEMA:?}");
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("3F000");
        return Err(error.about(SqlSubject::Schema { name: schema.to_owned(), relation: name.clone() }));
    }
    Err(tables.not_found(name))
}
