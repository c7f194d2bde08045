//! The engine. It runs statements and queries of the map API: in place when they are short,
//! otherwise on its own threads.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use chrono::Utc;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use filbert_data::Value;
use filbert_dialect::{Parsed, ParsedStatement, SessionCommand, TableStatement};
use filbert_functions::ending::Limits;
use filbert_functions::error::{of_datafusion, parsing_error};
use filbert_grid::query::{
    ColumnMeta, DescribeReply, EngineFigures, EntryFilter, EntryProjection, ExpectedResult, MapQuery, ParameterType,
    PreparedQuery, QueryEngine, RowWriterReply, Running, Session, SqlError, SqlErrorCode, Statement, StatementReply,
    StatementResult, WriteMode,
};
use filbert_grid::{ErrorKind, Grid, GridError, Map, ReadView};
use tracing::Instrument;

use crate::catalog::Catalog;
use crate::client_context::{ClientContext, check_described, dialect_of, plan_key};
use crate::config::QueryConfig;
use crate::cursor::{ReadyRows, RunningRows, text_rows};
use crate::dml::{Changed, Dml};
use crate::error_dialects::translated;
use crate::jobs::{JobGuard, Jobs, LogLimits, SlowStatements};
use crate::memory::MemoryLimits;
use crate::parts::Parts;
use crate::paths::{self, Path};
use crate::plan::ahead::counted;
use crate::plan::fairness::fair;
use crate::plan::planner::{PlannedQuery, bind, with_parameters};
use crate::plan::session::Sessions;
use crate::plan::soft_limits;
use crate::plan_cache::Found;
use crate::plan_sources::{Changes, Version};
use crate::plans::{Plan, PlanCacheStatistics, Plans};
use crate::server::Server;
use crate::short::ShortDml;
use crate::tables::Tables;
use crate::template::Template;
use crate::threads::{Threads, caught, caught_here, ended_early};
use crate::{copy, ddl, describe, explain, predicates, row_writer, session, turns};

/// How often a statement is planned again because a table that it reads was altered while it ran.
const REPLANS_MAX: usize = 3;
/// The pause before a statement is run again because its table was altered: shorter than most
/// changes of tables, so that the statement has its turn between two of them.
const ALTERED_PAUSE: Duration = Duration::from_millis(5);

/// Statistics of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStatistics {
    /// Statistics of the plan cache.
    pub plans: PlanCacheStatistics,
    /// Memory that running queries hold, in bytes.
    pub memory_bytes: usize,
    /// The number of mappings.
    pub mappings: usize,
}

/// The query engine of a member.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Parts>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the engine of a member, which then serves its queries.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn start(grid: &Arc<Grid>, config: QueryConfig) -> Result<Engine, GridError> {
        let limits = MemoryLimits::new(&config, grid.config().memory_bytes_max);
        let catalog = Arc::new(Catalog::new(config.catalog_entries_max));
        let tables = Arc::new(Tables::new(Arc::downgrade(grid), catalog));
        if let Some(cluster) = grid.cluster() {
            tables.join_cluster(cluster);
        }
        let after = config.slow_statement_ms.map(Duration::from_millis);
        let slow = SlowStatements { after, hides_literals: config.hides_literals };
        let log = LogLimits { statements_max: config.jobs_log_max, bytes_max: limits.log_bytes_max() };
        let jobs = Jobs::new(log, slow);
        let server = Arc::new(Server::new(tables.clone(), jobs.clone(), limits));
        let sessions = Sessions::new(&config, limits, grid.memory(), &server)?;
        turns::follow_operators();
        let threads = Threads::start(config.thread_count())?;
        let changes = Changes { catalog: tables.catalog().changes().clone(), layouts: grid.layout_changes().clone() };
        let plans = Plans::new(config.plans_max, limits.plans_bytes_max(), grid.memory(), &changes);
        let measured = limits.measured(grid.memory().clone());
        let parts = Parts { config, tables, changes, sessions, measured, threads, plans, jobs };
        let engine = Engine { inner: Arc::new(parts) };
        grid.serve_queries(Arc::new(engine.clone()));
        Ok(engine)
    }

    /// Statistics of the engine.
    pub fn statistics(&self) -> QueryStatistics {
        QueryStatistics {
            plans: self.inner.plans.statistics(),
            memory_bytes: self.inner.sessions.memory_used(),
            mappings: self.inner.tables.catalog().mapping_names().len(),
        }
    }
}

impl QueryEngine for Engine {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        if self.inner.tables.is_in_cluster() {
            // In a cluster the member must first catch up with the other members.
            return None;
        }
        let translate = |error| translated(error, statement.text, dialect_of(statement.session));
        let answer = || caught_here(|| self.inner.answer_in_place(statement).transpose()).transpose();
        if !self.inner.jobs.samples() {
            return answer().map(|answered| answered.map_err(translate));
        }
        let started = Utc::now();
        let answered = answer()?.map_err(translate);
        let session = statement.session.map(Arc::as_ref);
        self.inner.jobs.answered(statement.text, session, started, answered.as_ref().err());
        Some(answered)
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let limits = self.inner.limits_of(statement);
        let task = Task {
            inner: self.inner.clone(),
            text: statement.text.to_owned(),
            client: ClientContext::new(statement.session).declaring(statement.types).described(statement.described),
            parameters: statement.parameters.iter().map(|value| value.clone().into_owned()).collect(),
            expected: statement.expected,
            limits: limits.clone(),
            job: self.inner.jobs.begin(statement.text, statement.session, limits.clone()),
        };
        let share = self.inner.threads.turns().share_for(statement.text);
        self.inner.threads.spawn(async move {
            let (limits, job) = (task.limits.clone(), task.job.clone());
            // A separate task, because the plan may compute for long without yielding.
            let running = tokio::spawn(turns::run(limits.clone(), share, task.run()));
            let abort = running.abort_handle();
            let done = limits.run(async { running.await.map_err(ended_early)? }).await;
            abort.abort();
            if let Err(error) = &done {
                job.fail(error);
            }
            // A result with unread rows keeps the job. All other results end it.
            drop(job);
            reply(done);
        });
        Running::new(move || limits.cancel())
    }

    fn describe(&self, statement: &Statement<'_>, types: &[Option<ParameterType>], reply: DescribeReply) -> Running {
        let (inner, text, types) = (self.inner.clone(), statement.text.to_owned(), types.to_vec());
        let client = ClientContext::new(statement.session).declaring(&types);
        // A cached plan needs no other thread.
        let key = plan_key(statement.session, statement.text, &types);
        let limits = inner.limits_of(statement);
        let is_in_cluster = inner.tables.is_in_cluster();
        if !is_in_cluster && let Some(found) = inner.plans.find(client.dialect(), &key) {
            let described = describe::of_plan(&inner, &client, &found.plan, &types);
            reply(described.map_err(|error| translated(error, statement.text, client.dialect())));
            return Running::done();
        }
        let share = inner.threads.turns().share_for(statement.text);
        let running = limits.clone();
        self.inner.threads.spawn(async move {
            let described = async {
                let client = client.clone().reading(inner.view_for(&text).await?);
                describe::describe(&inner, &text, &client, &types).await
            };
            let described = limits.run(turns::run(limits.clone(), share, caught(described))).await;
            reply(described.map_err(|error| translated(error, &text, client.dialect())));
        });
        Running::new(move || running.cancel())
    }

    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let (inner, text) = (self.inner.clone(), statement.text.to_owned());
        let (client, limits) = (ClientContext::new(statement.session), self.inner.limits_of(statement));
        let share = inner.threads.turns().share_for(statement.text);
        self.inner.threads.spawn(async move {
            let writer = async {
                let client = client.clone().reading(inner.tables.catch_up().await?);
                row_writer::row_writer(&inner, &text, &client, mode).await
            };
            let writer = turns::run(limits, share, caught(writer)).await;
            reply(writer.map_err(|error| translated(error, &text, client.dialect())));
        });
    }

    fn mapping_ddl(&self, map: &str) -> Option<String> {
        let tables = &self.inner.tables;
        let mapping = match tables.catalog().mapping(map) {
            Some(mapping) => (*mapping).clone(),
            None => tables.inferred_here(map).ok()??,
        };
        Some(crate::catalog::ddl(&mapping))
    }

    fn prepare(
        &self,
        map: &Arc<Map>,
        query: MapQuery<'_>,
        view: ReadView,
    ) -> Result<Box<dyn PreparedQuery>, GridError> {
        let formats = self.inner.tables.formats(map).map_err(internal)?;
        predicates::prepare(map, &formats, query, view)
    }

    fn filter(&self, map: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        let formats = self.inner.tables.formats(map).map_err(internal)?;
        Ok(Arc::new(predicates::Filter::new(predicate, &formats)?))
    }

    fn projection(&self, map: &Arc<Map>, projection: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        let formats = self.inner.tables.formats(map).map_err(internal)?;
        Ok(Arc::new(predicates::Projector::of_blob(projection, &formats)?))
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        self.inner.threads.spawn_blocking(job);
    }

    fn figures(&self) -> EngineFigures {
        let plans = self.statistics().plans;
        EngineFigures {
            plans: plans.plans,
            plan_hits: plans.hits,
            plan_misses: plans.misses,
            memory_bytes: Some(self.inner.sessions.memory_used()),
            memory_bytes_max: Some(self.inner.sessions.memory_bytes_max()),
            running: self.inner.jobs.running_count(),
            threads: self.inner.threads.count(),
        }
    }
}

fn internal(error: SqlError) -> GridError {
    GridError::Internal(error.message)
}

impl Parts {
    /// The limits of a statement that begins now: its own timeout, the session's, or the member's.
    fn limits_of(&self, statement: &Statement<'_>) -> Limits {
        let of_session = || statement.session.and_then(|session| session::statement_timeout_ms(session));
        let timeout = statement.timeout_ms.or_else(of_session).or(self.config.timeout_ms);
        Limits::new(timeout.filter(|timeout| *timeout > 0).map(Duration::from_millis)).measured(self.measured.clone())
    }

    /// Runs a statement on the caller's thread if its plan is cached and short.
    fn answer_in_place(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        let dialect = dialect_of(statement.session);
        let key = plan_key(statement.session, statement.text, statement.types);
        let version = self.changes.version();
        let Some(found) = self.plans.find(dialect, &key) else {
            return self.answer_by_template(statement, version);
        };
        match found.plan.given(dialect, statement.parameters) {
            Ok(parameters) => self.run_in_place(&found, version, statement, parameters),
            Err(error) => Some(Err(error)),
        }
    }

    /// Runs a statement that differs from a cached one in its literals alone.
    fn answer_by_template(
        &self,
        statement: &Statement<'_>,
        version: Version,
    ) -> Option<Result<StatementResult, SqlError>> {
        if !statement.parameters.is_empty() {
            return None;
        }
        let template = Template::of(statement.text)?;
        let key = plan_key(statement.session, template.key(), &[]);
        let found = self.plans.find_by_template(dialect_of(statement.session), &key)?;
        // An error must refer to the statement as the client wrote it. The statement therefore runs
        // again, which is safe because a failed statement has changed nothing.
        self.run_in_place(&found, version, statement, template.values())?.ok().map(Ok)
    }

    /// Runs a plan that was found after the definitions had this version. `None` if it cannot run
    /// in place, or if one of its sources has changed since.
    fn run_in_place(
        &self,
        found: &Found<Plan>,
        version: Version,
        statement: &Statement<'_>,
        parameters: &[Value<'_>],
    ) -> Option<Result<StatementResult, SqlError>> {
        let is_valid = || self.changes.valid_since(version, &found.sources).is_some();
        match &*found.plan {
            Plan::Query { short: Some(short), planned, .. } if statement.expected != ExpectedResult::UpdateCount => {
                let rows = short.run_in_place(parameters)?;
                if !is_valid() {
                    // A table that was altered meanwhile may have been read in part or not at all.
                    return None;
                }
                note_run(statement.session);
                Some(rows.map(|rows| StatementResult::Rows(Box::new(ReadyRows::new(planned.columns.clone(), rows)))))
            }
            Plan::Change { short: Some(short), statement: planned, .. } => {
                let other =
                    if short.returning().is_some() { ExpectedResult::UpdateCount } else { ExpectedResult::Rows };
                if statement.expected == other {
                    return None;
                }
                let (table, command) = planned.parsed.changed_table()?;
                if let Err(error) = session::check_may_change(statement.session.map(Arc::as_ref), command) {
                    return Some(Err(error));
                }
                let _shared = self.tables.catalog().gates().try_share(table)?;
                if !is_valid() {
                    return None;
                }
                if let Some(Err(error)) =
                    short.returning().map(|returning| check_described(statement.described, returning.columns()))
                {
                    return Some(Err(error));
                }
                let execution = self.sessions.execution(dialect_of(statement.session), statement.session);
                let changed = short.run_in_place(parameters, &execution)?;
                note_changed(statement.session, &changed);
                Some(changed)
            }
            Plan::Session { command, .. } => Some(self.run_session(command, statement.session, parameters, None)),
            _ => None,
        }
    }

    /// The search path for names without a schema.
    pub(crate) fn path(&self, client: &ClientContext) -> Path<'_> {
        Path::new(self.tables.catalog(), paths::schemas(client), client.dialect())
    }

    /// Runs a statement about the session.
    fn run_session(
        &self,
        command: &SessionCommand,
        session: Option<&Arc<Session>>,
        parameters: &[Value<'_>],
        own: Option<&JobGuard>,
    ) -> Result<StatementResult, SqlError> {
        let of_user = session.map(Arc::as_ref);
        session::run(command, session, dialect_of(session), parameters, |id| Ok(self.jobs.kill(id, of_user, own)))
    }
}

/// Records in a session that a statement runs.
fn note_run(session: Option<&Arc<Session>>) {
    if let Some(session) = session {
        session.note_run();
    }
}

/// Records the changes of a statement in its session.
fn note_changed(session: Option<&Arc<Session>>, changed: &Result<StatementResult, SqlError>) {
    let Some(session) = session else { return };
    session.note_run();
    match changed {
        Ok(StatementResult::Count(count)) => session.note_changes(*count),
        Ok(StatementResult::Rows(_)) => session.note_changes(1),
        Err(_) => {}
    }
}

/// A running statement.
struct Task {
    inner: Arc<Parts>,
    text: String,
    client: ClientContext,
    parameters: Vec<Value<'static>>,
    expected: ExpectedResult,
    limits: Limits,
    job: Arc<JobGuard>,
}

impl Task {
    async fn run(mut self) -> Result<StatementResult, SqlError> {
        let wait_ms = u64::try_from(self.inner.sessions.lock_wait_ms()).unwrap_or(0);
        let until = Instant::now() + Duration::from_millis(wait_ms);
        let mut answered = caught(self.answer()).await;
        while answered.as_ref().is_err_and(|error| error.kind == ErrorKind::BeingReplaced) && Instant::now() < until {
            // Another member has altered the table of the statement, which has changed nothing.
            // This member may not know the new table yet. The statement waits as for a lock.
            tokio::time::sleep(ALTERED_PAUSE).await;
            answered = caught(self.answer()).await;
        }
        answered.map_err(|error| translated(error, &self.text, self.client.dialect()))
    }

    async fn answer(&mut self) -> Result<StatementResult, SqlError> {
        let view = self.inner.view_for(&self.text).await?;
        self.client = std::mem::take(&mut self.client).reading(view);
        let (mut version, mut found) = self.planned().await?;
        for _ in 0..REPLANS_MAX {
            let Plan::Query { planned, short: Some(short), .. } = &*found.plan else { break };
            self.expect(ExpectedResult::Rows)?;
            let Some(rows) = short.run(&self.inner.threads, &self.parameters, self.client.view()).await else { break };
            if self.inner.changes.valid_since(version, &found.sources).is_some() {
                note_run(self.client.session());
                return Ok(StatementResult::Rows(Box::new(ReadyRows::new(planned.columns.clone(), rows?))));
            }
            // A table that was altered meanwhile may have been read in part or not at all.
            (version, found) = self.planned().await?;
        }
        match &*found.plan {
            Plan::Query { planned, optimized, .. } => {
                self.expect(ExpectedResult::Rows)?;
                note_run(self.client.session());
                self.query(planned, optimized.as_ref()).await
            }
            Plan::Change { statement, short, .. } => {
                let is_valid = || self.inner.changes.valid_since(version, &found.sources).is_some();
                self.run_change(&statement.parsed, short.as_ref(), is_valid).await
            }
            Plan::Session { command, .. } => {
                self.inner.run_session(command, self.client.session(), &self.parameters, Some(&self.job))
            }
            Plan::Other(statement) => self.other(statement).await,
        }
    }

    /// The plan of the statement, and the version of the definitions before it was found. Cuts the
    /// parameters to the number that the plan takes.
    async fn planned(&mut self) -> Result<(Version, Found<Plan>), SqlError> {
        let version = self.inner.changes.version();
        let planning = self.inner.plan(&self.text, &self.client).instrument(tracing::debug_span!("plan"));
        let found = planning.await?;
        let given = found.plan.given(self.client.dialect(), &self.parameters)?.len();
        self.parameters.truncate(given);
        Ok((version, found))
    }

    /// Runs a statement that changes rows. Nobody can alter or drop the table meanwhile. `is_valid`
    /// tells whether the short plan still is.
    async fn run_change(
        &self,
        parsed: &Parsed,
        short: Option<&ShortDml>,
        is_valid: impl Fn() -> bool,
    ) -> Result<StatementResult, SqlError> {
        self.expect(if parsed.tells_rows() { ExpectedResult::Rows } else { ExpectedResult::UpdateCount })?;
        let Some((table, command)) = parsed.changed_table() else {
            return Err(parsing_error("a statement that changes entries is expected"));
        };
        session::check_may_change(self.client.session().map(Arc::as_ref), command)?;
        let _shared = self.inner.tables.catalog().gates().share(table).await?;
        let execution = self.inner.sessions.execution_for(&self.client);
        // A short plan holds for the table as it was at planning.
        let short = short.filter(|_| is_valid());
        if let Some(returning) = short.and_then(ShortDml::returning) {
            self.client.check_described(returning.columns())?;
        }
        let changing = self.limits.begin_changes()?;
        let changed = match short.and_then(|short| short.run_in_place(&self.parameters, &execution)) {
            Some(changed) => {
                if changed.is_ok() {
                    changing.done();
                }
                changed
            }
            // The statement must wait for a locked key, has a key that is not of its type, or has
            // no short plan.
            None => {
                drop(changing);
                self.change(parsed).instrument(tracing::debug_span!("change", table)).await
            }
        };
        note_changed(self.client.session(), &changed);
        changed
    }

    fn expect(&self, found: ExpectedResult) -> Result<(), SqlError> {
        if self.expected == ExpectedResult::Any || self.expected == found {
            return Ok(());
        }
        let text = match found {
            ExpectedResult::Rows => "the statement doesn't produce update count, it produces rows",
            _ => "the statement doesn't produce rows, it produces update count",
        };
        Err(SqlError::new(SqlErrorCode::Generic, text))
    }

    /// The physical plan of a query with the values of its parameters.
    async fn physical(
        &self,
        state: &SessionState,
        planned: &PlannedQuery,
        optimized: Option<&LogicalPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
        let physical = match optimized {
            Some(optimized) => state.query_planner().create_physical_plan(optimized, state).await,
            None => {
                let values = bind(&planned.parameters, &self.parameters)?;
                let plan = with_parameters(planned.plan.clone(), values)?;
                state.create_physical_plan(&plan).await
            }
        };
        physical
            .and_then(soft_limits::runnable)
            .and_then(|plan| fair(plan, &self.limits))
            .map_err(|error| of_datafusion(&error))
    }

    async fn query(
        &self,
        planned: &PlannedQuery,
        optimized: Option<&LogicalPlan>,
    ) -> Result<StatementResult, SqlError> {
        let state = self.inner.sessions.begin_for(&self.client, Some(&self.limits));
        let physical = self.physical(&state, planned, optimized).await?;
        let infinite = physical.boundedness().is_unbounded();
        let budget = self.inner.tables.grid()?.kept_budget().clone();
        let stream = counted(physical, &budget).and_then(|physical| execute_stream(physical, state.task_ctx()));
        let stream = stream.map_err(|error| of_datafusion(&error))?;
        // A parameter's value may decide a column's type.
        let columns = retyped(&planned.columns, &stream.schema());
        let rows = RunningRows::new(
            columns,
            stream,
            infinite,
            self.limits.clone(),
            self.inner.threads.clone(),
            self.job.clone(),
            self.client.dialect(),
        );
        Ok(StatementResult::Rows(Box::new(rows)))
    }

    async fn change(&self, parsed: &Parsed) -> Result<StatementResult, SqlError> {
        let dml = Dml::begins(&self.inner.tables, &self.inner.sessions, &self.client, Some(self.limits.clone()))?;
        let changed = match parsed {
            Parsed::Insert(insert) => dml.insert(insert, &self.parameters).await,
            Parsed::Update(update) => dml.update(update, &self.parameters).await,
            Parsed::Delete(delete) => dml.delete(delete, &self.parameters).await,
            _ => Err(parsing_error("a statement that changes entries is expected")),
        };
        Ok(match changed? {
            Changed::Count(count) => StatementResult::Count(count),
            Changed::Rows(columns, rows) => StatementResult::Rows(Box::new(ReadyRows::new(columns, rows))),
        })
    }

    async fn other(&self, statement: &ParsedStatement) -> Result<StatementResult, SqlError> {
        match &statement.parsed {
            Parsed::Explain { analyze, statement: explained } => {
                self.expect(ExpectedResult::Rows)?;
                self.explain(explained, *analyze, statement.parameters).await
            }
            Parsed::Show(what) => {
                self.expect(ExpectedResult::Rows)?;
                let rows = ddl::show(&self.inner.tables, what)?;
                Ok(ready(rows))
            }
            Parsed::Copy(copy) => {
                self.expect(ExpectedResult::UpdateCount)?;
                if copy.query.is_none() {
                    session::check_may_change(self.client.session().map(Arc::as_ref), "COPY FROM")?;
                }
                let rows = copy::run(&self.inner, &self.client, &self.limits, copy, &self.parameters).await?;
                Ok(StatementResult::Count(rows))
            }
            parsed => {
                self.expect(ExpectedResult::UpdateCount)?;
                if !matches!(parsed, Parsed::Table(TableStatement::KeepUp { .. })) {
                    let session = self.client.session().map(Arc::as_ref);
                    session::check_may_change(session, describe::of_other(parsed, self.client.dialect()).0)?;
                }
                let count = ddl::run(&self.inner, &self.client, parsed).await?;
                if let Some(session) = self.client.session() {
                    session.note_run();
                    session.note_changes(1);
                }
                Ok(StatementResult::Count(count))
            }
        }
    }

    async fn explain(&self, parsed: &Parsed, analyze: bool, parameters: usize) -> Result<StatementResult, SqlError> {
        let statement = ParsedStatement { parsed: parsed.clone(), parameters };
        let lines = match self.inner.make_plan(statement, &self.client).await? {
            Plan::Query { planned, optimized, short, .. } => {
                if let Some(short) = &short {
                    explain::short(short, &self.parameters, analyze, self.client.view()).await?
                } else {
                    let state = self.inner.sessions.begin_for(&self.client, Some(&self.limits));
                    let physical = self.physical(&state, &planned, optimized.as_ref()).await?;
                    explain::plan(&physical, &state, analyze).await?
                }
            }
            Plan::Change { .. } | Plan::Session { .. } | Plan::Other(_) if analyze => {
                return Err(parsing_error("EXPLAIN ANALYZE runs queries only: it changes nothing"));
            }
            Plan::Change { short: Some(short), .. } => vec![short.describe()],
            Plan::Session { command, .. } => vec![session::tag(&command).to_owned()],
            Plan::Change { statement, .. } | Plan::Other(statement) => vec![explain::change(&statement.parsed)],
        };
        Ok(ready(text_rows(explain::column(self.client.dialect()), lines.iter().map(String::as_str))?))
    }
}

fn retyped(columns: &Arc<[ColumnMeta]>, schema: &Schema) -> Arc<[ColumnMeta]> {
    let field = |(column, field): (&ColumnMeta, &Arc<Field>)| {
        let found = filbert_functions::types::field_type_of(field);
        // Keeps the type from the metadata where both types are the same in Arrow.
        let same =
            filbert_grid::query::arrow_type(&column.field_type) == *field.data_type() || field.data_type().is_null();
        ColumnMeta { field_type: if same { column.field_type.clone() } else { found }, ..column.clone() }
    };
    columns.iter().zip(schema.fields()).map(field).collect()
}

/// A statement result from rows that are all available.
fn ready(rows: RecordBatch) -> StatementResult {
    let of_field = |field: &Arc<Field>| ColumnMeta {
        name: field.name().clone(),
        field_type: filbert_functions::types::field_type_of(field),
        nullable: field.is_nullable(),
        pg_type: None,
        length: None,
    };
    let columns = rows.schema().fields().iter().map(of_field).collect();
    StatementResult::Rows(Box::new(ReadyRows::new(columns, rows)))
}
