//! DataFusion's session: its settings, functions and catalog, once for the engine; memory, once for each query.

use std::sync::Arc;

use datafusion::catalog::CatalogProvider;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use filbert_grid::GridError;
use filbert_grid::query::Dialect;

use crate::config::QueryConfig;
use crate::dialect::CATALOGS;
use crate::functions;
use crate::plan::memory::{QueryMemory, ServerMemory};
use crate::scan::scanner::BATCH_ROWS;

/// The catalog's name in statements, as in Hazelcast.
pub(crate) const CATALOG: &str = "hazelcast";
/// The schema of mappings, views and maps.
pub(crate) const SCHEMA: &str = "public";
/// The schema in which Hazelcast finds maps without a mapping.
pub(crate) const PARTITIONED: &str = "partitioned";

/// Makes a session for each query.
pub(crate) struct Sessions {
    base: SessionState,
    /// As PostgreSQL has it where that differs: nulls are greater than all else.
    nulls_last: SessionState,
    environment: RuntimeEnv,
    memory: Arc<ServerMemory>,
    query_memory_bytes_max: usize,
}

impl Sessions {
    pub(crate) fn new(config: &QueryConfig, catalog: Arc<dyn CatalogProvider>) -> Result<Self, GridError> {
        let failed = |error: datafusion::error::DataFusionError| {
            GridError::Internal(format!("the query engine cannot be started: {error}"))
        };
        let mut session = SessionConfig::new()
            .with_target_partitions(config.threads.max(1))
            .with_batch_size(BATCH_ROWS)
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(false);
        let options = session.options_mut();
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.default_null_ordering = "nulls_min".to_owned();
        options.sql_parser.map_string_types_to_utf8view = true;
        options.optimizer.prefer_hash_join = true;
        options.execution.time_zone = Some("UTC".to_owned());
        options.explain.show_statistics = false;
        // What sorting keeps back for merging what it has on disk must fit into a query's memory.
        let reserved = options.execution.sort_spill_reservation_bytes.min(config.query_memory_bytes_max / 8);
        options.execution.sort_spill_reservation_bytes = reserved;
        let environment = RuntimeEnvBuilder::new().build().map_err(failed)?;
        let state = SessionStateBuilder::new()
            .with_config(session)
            .with_runtime_env(Arc::new(environment.clone()))
            .with_default_features()
            .build();
        let context = SessionContext::new_with_state(state);
        for name in CATALOGS {
            context.register_catalog(name, catalog.clone());
        }
        functions::register(&context);
        let base = context.state();
        let mut nulls_last = base.config().clone();
        nulls_last.options_mut().sql_parser.default_null_ordering = "nulls_max".to_owned();
        let nulls_last = SessionStateBuilder::new_from_existing(base.clone()).with_config(nulls_last).build();
        Ok(Sessions {
            base,
            nulls_last,
            environment,
            memory: ServerMemory::new(config.queries_memory_bytes_max),
            query_memory_bytes_max: config.query_memory_bytes_max,
        })
    }

    /// The session for what needs no memory: planning and short plans.
    pub(crate) fn planning(&self, dialect: Dialect) -> &SessionState {
        match dialect {
            Dialect::Hazelcast => &self.base,
            Dialect::Crate | Dialect::Postgres => &self.nulls_last,
        }
    }

    /// A session whose plans have memory of their own.
    pub(crate) fn begin(&self, dialect: Dialect) -> SessionState {
        let memory = QueryMemory::new(self.query_memory_bytes_max, self.memory.clone());
        let mut environment = self.environment.clone();
        environment.memory_pool = Arc::new(memory);
        SessionStateBuilder::new_from_existing(self.planning(dialect).clone())
            .with_runtime_env(Arc::new(environment))
            .build()
    }

    /// Memory that queries use at the moment.
    pub(crate) fn memory_used(&self) -> usize {
        self.memory.used()
    }
}
