//! DataFusion's session: settings, functions and catalog are shared by the engine; memory is
//! separate for each query.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::{SessionConfig, SessionContext};
use filbert_data::dates::Zone;
use filbert_dialect::{CATALOGS, catalog_of};
use filbert_functions as functions;
use filbert_functions::context::{StatementContext, dialect_of_options};
use filbert_functions::ending::Limits;
use filbert_functions::settings;
use filbert_grid::query::{Dialect, Session};
use filbert_grid::{GridError, MemberMemory, ReadView};

use crate::client_context::ClientContext;
use crate::config::QueryConfig;
use crate::execution::Execution;
use crate::memory::{MemoryLimits, QueryMemory, ServerMemory};
use crate::plan::filtered::Filtered;
use crate::plan::guarded::Guarded;
use crate::plan::ternary::Lists;
use crate::plan::windows::{FinishedFrames, Frames};
use crate::plan::{ended, rules};
use crate::scan::scanner::BATCH_ROWS;
use crate::scan::view::ViewOfRun;
use crate::server::{Server, ServerOfSession};
use crate::spill::SpillFiles;
use crate::system;
use crate::table_catalog::TableCatalog;
use crate::tables::SCHEMA;

/// Creates a session for each query.
pub(crate) struct Sessions {
    /// One state for each dialect: functions, names and the order of nulls differ.
    states: [SessionState; 3],
    /// The states that running plans derive from.
    running: [SessionState; 3],
    /// The functions of each state, in an order that allows registering them again.
    functions: [Functions; 3],
    environment: RuntimeEnv,
    memory: Arc<ServerMemory>,
    limits: MemoryLimits,
    lock_wait_ms: i64,
}

impl Sessions {
    pub(crate) fn new(
        config: &QueryConfig,
        limits: MemoryLimits,
        memory: &Arc<MemberMemory>,
        server: &Arc<Server>,
    ) -> Result<Self, GridError> {
        let failed = |error: datafusion::error::DataFusionError| {
            GridError::Internal(format!("the query engine cannot be started: {error}"))
        };
        let spill = SpillFiles::new(config.spill_directory.as_deref(), config.queries_spill_bytes_max)?;
        let disk = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(spill));
        let environment = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build().map_err(failed)?;
        let states = [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres]
            .map(|dialect| state(config, limits, server, &environment, dialect));
        server.set_functions(function_names(&states));
        let functions = [0, 1, 2].map(|at: usize| states.get(at).map_or_else(Functions::default, Functions::of));
        let running = states.each_ref().map(without_functions);
        Ok(Sessions {
            states,
            running,
            functions,
            environment,
            memory: ServerMemory::new(limits.queries_bytes_max, memory.clone()),
            limits,
            lock_wait_ms: i64::try_from(config.lock_wait_ms).unwrap_or(i64::MAX),
        })
    }

    /// The session for work without a memory pool: planning and short plans.
    pub(crate) fn planning(&self, dialect: Dialect) -> &SessionState {
        of_dialect(&self.states, dialect)
    }

    /// The planning session of a session context. Its time zone determines the meaning of
    /// timestamps in text.
    pub(crate) fn planning_for(&self, client: &ClientContext) -> Cow<'_, SessionState> {
        self.planning_of(client.dialect(), client.session())
    }

    /// The same for a part of a run.
    pub(crate) fn planning_within(&self, dialect: Dialect, execution: &Execution) -> Cow<'_, SessionState> {
        self.planning_of(dialect, execution.context().session())
    }

    fn planning_of(&self, dialect: Dialect, session: Option<&Arc<Session>>) -> Cow<'_, SessionState> {
        let planning = self.planning(dialect);
        let context = StatementContext::planning(session, dialect, self.limits.results_bytes_max());
        if context.zone() == Zone::UTC {
            return Cow::Borrowed(planning);
        }
        let mut state = planning.clone();
        settings::insert(state.config_mut().options_mut(), context);
        // Physical expressions see these settings.
        let options = Arc::clone(state.config_options());
        state.execution_props_mut().config_options = Some(options);
        Cow::Owned(state)
    }

    /// A session that runs a plan with a memory pool of its own. The plan's functions and catalogs
    /// see the session context. The session knows no functions by name: their registration takes
    /// longer than the plan of a short query.
    pub(crate) fn begin_for(&self, client: &ClientContext, limits: Option<&Limits>) -> SessionState {
        let context = StatementContext::new(client.session().cloned(), self.memory.results_bytes_max(self.limits));
        let running = of_dialect(&self.running, client.dialect());
        let begun = self.begun(running, context.ended_by(limits.cloned()), client.view());
        started(begun)
    }

    /// A run of a statement that begins now.
    pub(crate) fn execution(&self, dialect: Dialect, session: Option<&Arc<Session>>) -> Execution {
        let context = StatementContext::new(session.cloned(), self.memory.results_bytes_max(self.limits));
        Execution::new(context, self.planning(dialect).config_options().clone())
    }

    /// The same for a statement of a client.
    pub(crate) fn execution_for(&self, client: &ClientContext) -> Execution {
        self.execution(client.dialect(), client.session()).reading(client.view())
    }

    /// A session that plans and runs a part of such a run.
    pub(crate) fn begin_within(&self, dialect: Dialect, execution: &Execution) -> SessionState {
        let functions = of_dialect(&self.functions, dialect);
        let begun = self.begun(self.planning(dialect), execution.context().clone(), execution.view());
        let begun = begun
            .with_scalar_functions(functions.scalars.clone())
            .with_aggregate_functions(functions.aggregates.clone());
        started(begun)
    }

    /// A session that is derived from another one, with a memory pool of its own.
    fn begun(&self, from: &SessionState, context: StatementContext, view: &ReadView) -> SessionStateBuilder {
        let memory = QueryMemory::new(self.limits.query_bytes_max, self.memory.clone());
        let mut environment = self.environment.clone();
        environment.memory_pool = Arc::new(memory);
        let mut config = ViewOfRun::added(view, from.config().clone());
        config = config.with_batch_size(self.memory.batch_rows(BATCH_ROWS));
        settings::insert(config.options_mut(), context);
        SessionStateBuilder::new_from_existing(from.clone()).with_config(config).with_runtime_env(Arc::new(environment))
    }

    /// Memory for the changes that a statement is about to make: the same limit as for a query.
    pub(crate) fn memory_for_changes(&self) -> MemoryReservation {
        let memory = QueryMemory::new(self.limits.query_bytes_max, self.memory.clone());
        let pool: Arc<dyn MemoryPool> = Arc::new(memory);
        MemoryConsumer::new("the changes of one statement").register(&pool)
    }

    /// How long a statement waits for a key that others hold, in milliseconds.
    pub(crate) fn lock_wait_ms(&self) -> i64 {
        self.lock_wait_ms
    }

    /// Memory that queries use now.
    pub(crate) fn memory_used(&self) -> usize {
        self.memory.used()
    }

    /// Bytes that all queries may use together.
    pub(crate) fn memory_bytes_max(&self) -> usize {
        self.limits.queries_bytes_max
    }
}

fn of_dialect<T>([hazelcast, crate_, postgres]: &[T; 3], dialect: Dialect) -> &T {
    match dialect {
        Dialect::Hazelcast => hazelcast,
        Dialect::Crate => crate_,
        Dialect::Postgres => postgres,
    }
}

/// The session with the time at which it starts: functions see the settings at that time, and it is
/// the value of `now()`.
fn started(session: SessionStateBuilder) -> SessionState {
    let mut state = session.build();
    state.mark_start_execution();
    state
}

/// The state of a dialect for plans that name no functions any more.
fn without_functions(state: &SessionState) -> SessionState {
    SessionStateBuilder::new_from_existing(state.clone())
        .with_scalar_functions(Vec::new())
        .with_higher_order_functions(Vec::new())
        .with_aggregate_functions(Vec::new())
        .with_window_functions(Vec::new())
        .with_table_functions(HashMap::new())
        .build()
}

/// The functions of a session. A function comes first if another function has taken over its name.
/// A session that is derived from another registers all functions again, each under its name and
/// its aliases, and the last one with a name wins. For example, DataFusion's `strpos` has the alias
/// `position`, which takes its arguments in another order than ours.
#[derive(Clone, Default)]
struct Functions {
    scalars: Vec<Arc<ScalarUDF>>,
    aggregates: Vec<Arc<AggregateUDF>>,
}

impl Functions {
    fn of(state: &SessionState) -> Functions {
        Functions {
            scalars: in_order(state.scalar_functions(), |function| (function.name(), function.aliases())),
            aggregates: in_order(state.aggregate_functions(), |function| (function.name(), function.aliases())),
        }
    }
}

fn in_order<F>(known: &HashMap<String, Arc<F>>, names: fn(&F) -> (&str, &[String])) -> Vec<Arc<F>> {
    let keeps_names = |function: &Arc<F>| {
        let is_own = |name: &str| known.get(name).is_some_and(|other| Arc::ptr_eq(other, function));
        let (name, aliases) = names(function);
        is_own(name) && aliases.iter().all(|name| is_own(name))
    };
    let (last, mut first): (Vec<_>, Vec<_>) = known.values().cloned().partition(keeps_names);
    first.extend(last);
    first
}

/// The state that all queries of a dialect share.
fn state(
    config: &QueryConfig,
    limits: MemoryLimits,
    server: &Arc<Server>,
    environment: &RuntimeEnv,
    dialect: Dialect,
) -> SessionState {
    let catalog = catalog_of(dialect);
    let mut session = SessionConfig::new()
        .with_target_partitions(config.thread_count())
        .with_batch_size(BATCH_ROWS)
        .with_default_catalog_and_schema(catalog, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = session.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.default_null_ordering = match dialect {
        Dialect::Hazelcast => "nulls_min".to_owned(),
        // As in PostgreSQL, nulls sort after all other values.
        Dialect::Crate | Dialect::Postgres => "nulls_max".to_owned(),
    };
    // Errors report positions in the text, for protocols that need them.
    options.sql_parser.collect_spans = dialect != Dialect::Hazelcast;
    options.sql_parser.map_string_types_to_utf8view = true;
    // The order of a subquery must first be applied where it matters.
    options.sql_parser.enable_subquery_sort_elimination = false;
    options.optimizer.prefer_hash_join = true;
    // This optimization compares groups by IEEE equality. A NaN, which is not equal to itself, ends
    // the query in a panic.
    options.optimizer.enable_topk_aggregation = false;
    options.execution.time_zone = Some("UTC".to_owned());
    options.explain.show_statistics = false;
    // A result computed from `IS TRUE` and similar tests may be declared nullable although its plan
    // says otherwise.
    options.execution.skip_physical_aggregate_schema_check = true;
    // The memory that sorting reserves for merging spilled data must fit into a query's memory.
    let reserved = options.execution.sort_spill_reservation_bytes.min(limits.query_bytes_max / 8);
    options.execution.sort_spill_reservation_bytes = reserved;
    settings::insert(options, ServerOfSession(server.clone()));
    settings::insert(options, StatementContext::lasting(dialect, limits.results_bytes_max()));
    // The types of object members must be known before type coercion; a view may use them in any
    // dialect.
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(functions::Fields)];
    if dialect == Dialect::Postgres {
        rules.push(Arc::new(functions::Quoted));
    }
    if dialect != Dialect::Hazelcast {
        rules.push(Arc::new(functions::CommonTypes));
    }
    rules.push(Arc::new(functions::numbers::Widths { dialect }));
    rules.push(Arc::new(Frames));
    rules.extend(Analyzer::new().rules);
    rules.push(Arc::new(FinishedFrames));
    rules.push(Arc::new(Filtered));
    rules.push(Arc::new(Lists));
    rules.push(Arc::new(functions::CountedOperators));
    let mut builder = SessionStateBuilder::new()
        .with_config(session)
        .with_runtime_env(Arc::new(environment.clone()))
        .with_default_features()
        .with_analyzer_rules(rules.into_iter().map(ended::analyzing).collect())
        .with_optimizer_rules(rules::logical())
        .with_query_planner(Arc::new(Guarded))
        .with_physical_optimizer_rules(rules::physical());
    if dialect != Dialect::Hazelcast {
        // Before DataFusion's planners, which have their own array operators.
        let values = functions::Values { is_strict: dialect == Dialect::Postgres };
        builder.expr_planners().get_or_insert_default().insert(0, Arc::new(values));
    }
    // Before DataFusion's planners, which handle `count(*)` themselves.
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(functions::Arguments));
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(functions::Conditions));
    let state = builder.build();
    let context = SessionContext::new_with_state(state);
    let tables = Arc::new(TableCatalog::new(server, dialect));
    for name in CATALOGS {
        context.register_catalog(name, tables.clone());
    }
    functions::register(&context, dialect, &system::functions::functions());
    context.state()
}

/// The dialect of the statements that a session plans.
pub(crate) fn dialect_of(state: &SessionState) -> Dialect {
    dialect_of_options(state.config_options())
}

/// The functions of PostgreSQL's dialect by name, with their `pg_proc` kind characters, including
/// functions that only system relations refer to.
fn function_names([_, _, postgres]: &[SessionState; 3]) -> Vec<(String, &'static str)> {
    let scalars = postgres.scalar_functions().keys().map(|name| (name.clone(), "f"));
    let aggregates = postgres.aggregate_functions().keys().map(|name| (name.clone(), "a"));
    let windows = postgres.window_functions().keys().map(|name| (name.clone(), "w"));
    let internal = filbert_functions::pg_types::internal_functions().into_iter().map(|name| (name, "f"));
    let mut names: Vec<_> = scalars.chain(aggregates).chain(windows).chain(internal).collect();
    names.sort_unstable();
    names.dedup_by(|left, right| left.0 == right.0);
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;
    use crate::catalog::Catalog;
    use crate::jobs::{Jobs, LogLimits, SlowStatements};
    use crate::tables::Tables;
    use std::sync::Weak;

    fn sessions() -> Sessions {
        let tables = Arc::new(Tables::new(Weak::new(), Arc::new(Catalog::new(10))));
        let config = QueryConfig::default();
        let limits = MemoryLimits::new(&config, None);
        let server = Arc::new(Server::new(tables, Jobs::new(LogLimits::default(), SlowStatements::default()), limits));
        let memory = Arc::new(MemberMemory::new(None));
        Sessions::new(&config, limits, &memory, &server).unwrap()
    }

    #[test]
    fn the_dialect_knows_all_aggregates() {
        let sessions = sessions();
        for dialect in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
            let planning = sessions.planning(dialect);
            let names = planning.aggregate_functions().keys().filter(|name| name.as_str() != "grouping");
            let unknown: Vec<&String> = names.filter(|name| !filbert_dialect::is_aggregate_name(name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    #[test]
    fn a_session_that_begins_has_the_functions_that_statements_are_planned_with() {
        let sessions = sessions();
        for dialect in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
            let planning = sessions.planning(dialect);
            let begun = sessions.begin_within(dialect, &sessions.execution(dialect, None));
            for (name, function) in planning.scalar_functions() {
                let follows_settings = function.inner().with_updated_config(planning.config_options()).is_some();
                let found = begun.scalar_functions().get(name).unwrap();
                assert!(Arc::ptr_eq(function, found) || follows_settings && function.name() == found.name(), "{name}");
            }
            for (name, function) in planning.aggregate_functions() {
                assert!(Arc::ptr_eq(function, begun.aggregate_functions().get(name).unwrap()), "{name}");
            }
            assert_eq!(planning.scalar_functions().len(), begun.scalar_functions().len());
        }
    }
}
