//! Queries of one map as short plans.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::arrow::compute::concat_batches;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use filbert_data::{FieldType, Value};
use filbert_functions::error::of_datafusion;
use filbert_functions::{ending, guards};
use filbert_grid::ReadView;
use filbert_grid::query::SqlError;
use futures::FutureExt;

use crate::plan::planner::{PlannedQuery, bind, bind_one};
use crate::scan::access::{Access, AccessPlan};
use crate::scan::provider::{MapProvider, physical_filter, unqualified};
use crate::scan::scanner::{ScanCounts, ScanSpec, Scanner};
use crate::short::aggregate::Aggregates;
use crate::threads::Threads;
use crate::turns::is_slice_over;

/// The maximum number of rows that a network task collects in place; a cursor reads larger results.
const ROWS_IN_PLACE_MAX: usize = 1_000;
/// The maximum number of candidates that a network task checks in place.
const CANDIDATES_IN_PLACE_MAX: usize = 4_000;
/// The maximum number of operations for a row. They are prepared and evaluated for a batch of rows
/// in one step each.
const OPERATIONS_MAX: usize = 500;

/// A query of one map that needs no further planning.
pub(crate) struct ShortQuery {
    state: SessionState,
    spec: ScanSpec,
    access: AccessPlan,
    filters: Vec<Expr>,
    /// The filter, if it has no parameters.
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Whether every candidate is known to pass the filter.
    access_is_exact: bool,
    /// The steps that process the rows, in order.
    steps: Vec<Step>,
    output: SchemaRef,
    skip: usize,
    limit: Option<usize>,
    parameters: Vec<Option<DataType>>,
}

enum Step {
    /// Expressions over the columns of the previous step.
    Project { exprs: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef },
    /// Aggregates all rows into one row.
    Aggregate(Aggregates),
}

impl ShortQuery {
    /// The short plan of an optimized plan, if its shape allows one.
    pub(crate) fn of(state: &SessionState, planned: &PlannedQuery, optimized: &LogicalPlan) -> Option<ShortQuery> {
        let mut short = Shape::default();
        let scan = short.peel(optimized)?;
        let provider = source_as_provider(&scan.source).ok()?;
        let provider = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<MapProvider>()?;
        let table = provider.0.clone();
        let filters: Vec<Expr> = scan.filters.iter().cloned().chain(short.filters.drain(..)).map(unqualified).collect();
        let of_steps = short.steps.iter().flat_map(|step| match step {
            LogicalStep::Project(expressions, _) | LogicalStep::Aggregate(expressions, _) => expressions,
        });
        if filters.iter().chain(of_steps).map(operations).fold(0, usize::saturating_add) > OPERATIONS_MAX {
            return None;
        }
        if filters.iter().any(is_undecided) {
            return None;
        }
        let asked: Vec<usize> = match &scan.projection {
            Some(projection) => projection.clone(),
            None => (0..table.columns().len()).collect(),
        };
        let width = asked.len();
        let mut columns = asked;
        for name in filters.iter().flat_map(Expr::column_refs).map(|column| column.name.clone()) {
            let index = table.arrow_schema().index_of(&name).ok()?;
            if !columns.contains(&index) {
                columns.push(index);
            }
        }
        let access = AccessPlan::choose(&table, &filters);
        let has_aggregate = short.steps.iter().any(|step| matches!(step, LogicalStep::Aggregate(..)));
        if !has_aggregate && matches!(access, AccessPlan::All) {
            return None;
        }
        let spec = ScanSpec::new(table.clone(), columns, width).ok()?;
        let filter = match filters.iter().any(has_placeholder) {
            true => None,
            false => physical_filter(state, &spec.schema, &filters).ok()?,
        };
        let asked: Vec<usize> = (0..width).collect();
        let mut schema: SchemaRef = Arc::new(spec.schema.project(&asked).ok()?);
        let mut steps = Vec::with_capacity(short.steps.len());
        // The steps were collected from the outermost node inwards.
        for step in short.steps.into_iter().rev() {
            let (step, next) = compile(state, step, &schema)?;
            steps.push(step);
            schema = next;
        }
        let access_is_exact = is_exact(&access, &filters, &spec);
        Some(ShortQuery {
            state: state.clone(),
            spec,
            access,
            filters,
            filter,
            access_is_exact,
            steps,
            output: Arc::new(optimized.schema().as_arrow().clone()),
            skip: short.skip,
            limit: short.limit,
            parameters: planned.parameters.clone(),
        })
    }

    /// Whether its parameters have the natural types of these literals.
    pub(crate) fn takes_as_they_are(&self, literals: &[Value<'_>]) -> bool {
        let fits = |(wanted, literal): (&Option<DataType>, &Value<'_>)| match (wanted, literal) {
            (Some(wanted), Value::Int64(_)) => wanted.is_signed_integer(),
            (Some(wanted), Value::Text(_)) => wanted.is_string(),
            _ => false,
        };
        self.parameters.len() == literals.len() && self.parameters.iter().zip(literals).all(fits)
    }

    /// One line for EXPLAIN.
    pub(crate) fn describe(&self) -> String {
        let access = match &self.access {
            AccessPlan::All if crate::scan::chunks::reads_columns(&self.spec) => "columns".to_owned(),
            AccessPlan::All => "all entries".to_owned(),
            AccessPlan::Keys(keys) if keys.len() == 1 => "one key".to_owned(),
            AccessPlan::Composite(columns) if columns.iter().all(|values| values.len() == 1) => "one key".to_owned(),
            AccessPlan::Keys(keys) => format!("{} keys", keys.len()),
            AccessPlan::Composite(columns) => format!("{} keys", columns.iter().map(Vec::len).product::<usize>()),
            AccessPlan::Index { name, .. } => format!("index {name}"),
        };
        let kind = if self.aggregates() { "ShortAggregate" } else { "ShortLookup" };
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let filter = if filters.is_empty() { String::new() } else { format!(", filter={}", filters.join(" AND ")) };
        let names: Vec<&str> = self.output.fields().iter().map(|field| field.name().as_str()).collect();
        format!("{kind}: map={}, access={access}, columns=[{}]{filter}", self.spec.table.name(), names.join(", "))
    }

    fn aggregates(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Aggregate(_)))
    }

    /// Runs the query on the caller's thread; `None` if it would take longer than a network task
    /// may.
    pub(crate) fn run_in_place(&self, parameters: &[Value<'_>]) -> Option<Result<RecordBatch, SqlError>> {
        if matches!(self.access, AccessPlan::All) {
            return None;
        }
        // A member that holds all partitions waits for nothing.
        let found = self.lookup(parameters, Some(CANDIDATES_IN_PLACE_MAX), &ReadView::complete()).now_or_never()?;
        found.map(|result| result.map(|(rows, _)| rows)).transpose()
    }

    /// Runs the query on the engine's threads; `None` if a cursor should read the rows.
    pub(crate) async fn run(
        &self,
        threads: &Threads,
        parameters: &[Value<'_>],
        view: &ReadView,
    ) -> Option<Result<RecordBatch, SqlError>> {
        if matches!(self.access, AccessPlan::All) {
            return match self.aggregates() {
                true => Some(self.aggregate_in_parts(threads, parameters, view).await),
                false => None,
            };
        }
        let candidates_max = if self.aggregates() { None } else { Some(CANDIDATES_IN_PLACE_MAX) };
        let found = self.lookup(parameters, candidates_max, view).await;
        found.map(|result| result.map(|(rows, _)| rows)).transpose()
    }

    /// Runs the query here to its end, and returns its cost.
    pub(crate) async fn run_counted(
        &self,
        parameters: &[Value<'_>],
        view: &ReadView,
    ) -> Result<(usize, ScanCounts), SqlError> {
        let found = self.lookup(parameters, None, view).await?;
        Ok(found.map_or((0, ScanCounts::default()), |(rows, counts)| (rows.num_rows(), counts)))
    }

    /// The scan with the values of parameters.
    fn resolve(&self, parameters: &[Value<'_>]) -> Result<ScanSpec, SqlError> {
        let mut spec = self.spec.clone();
        if parameters.is_empty() {
            spec.access = self.access.resolve(&spec.table, &[])?;
        } else {
            let bound: Result<Vec<Value<'_>>, SqlError> = self
                .parameters
                .iter()
                .zip(parameters)
                .enumerate()
                .map(|(index, (wanted, value))| bind_one(index, wanted.as_ref(), value))
                .collect();
            spec.access = self.access.resolve(&spec.table, &bound?)?;
        }
        if self.access_is_exact && !matches!(spec.access, Access::All) {
            return Ok(spec);
        }
        spec.filter = match &self.filter {
            Some(filter) => Some(filter.clone()),
            None if self.filters.is_empty() => None,
            None => {
                let values = bind(&self.parameters, parameters)?;
                let filters: Result<Vec<Expr>, SqlError> =
                    self.filters.iter().map(|filter| with_values(filter, &values)).collect();
                physical_filter(&self.state, &spec.schema, &filters?).map_err(|error| of_datafusion(&error))?
            }
        };
        Ok(spec)
    }

    /// Reads all candidates here; `None` if there are more than `candidates_max`.
    async fn lookup(
        &self,
        parameters: &[Value<'_>],
        candidates_max: Option<usize>,
        view: &ReadView,
    ) -> Result<Option<(RecordBatch, ScanCounts)>, SqlError> {
        let spec = self.resolve(parameters)?;
        if candidates_max.is_some() && matches!(spec.access, Access::All) {
            return Ok(None);
        }
        let partitions = 0..spec.table.map().partition_count();
        let mut scanner = Scanner::new(spec, partitions, view.clone());
        scanner.stop_after(candidates_max);
        let mut batches = Vec::new();
        let mut rows = 0;
        let mut work = self.begin()?;
        let wanted =
            if self.aggregates() { usize::MAX } else { self.limit.map_or(usize::MAX, |limit| limit + self.skip) };
        while let Some(batch) = scanner.next_batch().await.map_err(|error| of_datafusion(&error))? {
            ending::check().map_err(|error| of_datafusion(&error))?;
            if let Some(batch) = work.take(batch)? {
                rows += batch.num_rows();
                batches.push(batch);
            }
            if rows >= wanted {
                break;
            }
            if candidates_max.is_some() && rows > ROWS_IN_PLACE_MAX {
                return Ok(None);
            }
        }
        if scanner.was_stopped() {
            return Ok(None);
        }
        let counts = scanner.counts();
        if let Some(batch) = work.finish()? {
            batches.push(batch);
        }
        self.result(batches).map(|rows| Some((rows, counts)))
    }

    async fn aggregate_in_parts(
        &self,
        threads: &Threads,
        parameters: &[Value<'_>],
        view: &ReadView,
    ) -> Result<RecordBatch, SqlError> {
        let spec = self.resolve(parameters)?;
        let mut whole = self.begin()?;
        let count = spec.table.map().partition_count();
        let is_unread = whole.needs_only_counts() && spec.filter.is_none() && view.is_complete();
        if is_unread && matches!(spec.access, Access::All) {
            whole.add_rows(spec.table.map().size());
        } else {
            let parts = u32::try_from(threads.count()).unwrap_or(1).clamp(1, count.max(1));
            let mut running = Vec::new();
            for part in 0..parts {
                let bound =
                    |part: u32| u32::try_from(u64::from(count) * u64::from(part) / u64::from(parts)).unwrap_or(count);
                let mut scanner = Scanner::new(spec.clone(), bound(part)..bound(part + 1), view.clone());
                let mut work = self.begin()?;
                let part = async move {
                    while let Some(batch) = scanner.next_batch().await.map_err(|error| of_datafusion(&error))? {
                        work.take(batch)?;
                        ending::check().map_err(|error| of_datafusion(&error))?;
                        if is_slice_over() {
                            tokio::task::yield_now().await;
                        }
                    }
                    Ok(work)
                };
                running.push(threads.run_part(part));
            }
            for part in running {
                whole.merge(part.await?)?;
            }
        }
        let batches = whole.finish()?.into_iter().collect();
        self.result(batches)
    }

    fn begin(&self) -> Result<Work, SqlError> {
        Work::begin(&self.steps)
    }

    /// The rows with the column names and within the limits of the query.
    fn result(&self, batches: Vec<RecordBatch>) -> Result<RecordBatch, SqlError> {
        let named = |batch: RecordBatch| {
            let rows = batch.num_rows();
            filbert_functions::builder::batch(&self.output, batch.columns().to_vec(), rows)
        };
        let batches: datafusion::common::Result<Vec<RecordBatch>> = batches.into_iter().map(named).collect();
        let mut batches = batches.map_err(|error| of_datafusion(&error))?;
        let rows = match batches.len() {
            1 => batches.pop().unwrap_or_else(|| RecordBatch::new_empty(self.output.clone())),
            _ => concat_batches(&self.output, &batches).map_err(|error| of_datafusion(&error.into()))?,
        };
        if self.skip == 0 && self.limit.is_none() {
            return Ok(rows);
        }
        let skip = self.skip.min(rows.num_rows());
        let count = (rows.num_rows() - skip).min(self.limit.unwrap_or(usize::MAX));
        Ok(rows.slice(skip, count))
    }
}

/// The processing of rows through the steps.
struct Work {
    /// The projections before the aggregation, or all of them.
    before: Vec<(Vec<Arc<dyn PhysicalExpr>>, SchemaRef)>,
    aggregates: Option<Aggregates>,
    after: Vec<(Vec<Arc<dyn PhysicalExpr>>, SchemaRef)>,
}

impl Work {
    fn begin(steps: &[Step]) -> Result<Self, SqlError> {
        let mut work = Work { before: Vec::new(), aggregates: None, after: Vec::new() };
        for step in steps {
            match step {
                Step::Aggregate(aggregates) => {
                    work.aggregates = Some(aggregates.begin().map_err(|error| of_datafusion(&error))?);
                }
                Step::Project { exprs, schema } => {
                    let part = (exprs.clone(), schema.clone());
                    if work.aggregates.is_some() { work.after.push(part) } else { work.before.push(part) }
                }
            }
        }
        Ok(work)
    }

    fn take(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>, SqlError> {
        let projected = project(&self.before, batch)?;
        match &mut self.aggregates {
            None => Ok(Some(projected)),
            Some(aggregates) => {
                aggregates.update(&projected).map_err(|error| of_datafusion(&error))?;
                Ok(None)
            }
        }
    }

    fn needs_only_counts(&self) -> bool {
        self.before.is_empty() && self.aggregates.as_ref().is_some_and(Aggregates::needs_only_counts)
    }

    fn add_rows(&mut self, rows: usize) {
        if let Some(aggregates) = &mut self.aggregates {
            aggregates.add_rows(rows);
        }
    }

    fn merge(&mut self, other: Work) -> Result<(), SqlError> {
        match (&mut self.aggregates, other.aggregates) {
            (Some(aggregates), Some(others)) => aggregates.merge(others).map_err(|error| of_datafusion(&error)),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Option<RecordBatch>, SqlError> {
        let Some(aggregates) = self.aggregates else { return Ok(None) };
        let row = aggregates.finish().map_err(|error| of_datafusion(&error))?;
        project(&self.after, row).map(Some)
    }
}

fn project(steps: &[(Vec<Arc<dyn PhysicalExpr>>, SchemaRef)], mut batch: RecordBatch) -> Result<RecordBatch, SqlError> {
    for (exprs, schema) in steps {
        let rows = batch.num_rows();
        let columns: datafusion::common::Result<Vec<_>> =
            exprs.iter().map(|expr| expr.evaluate(&batch)?.into_array(rows)).collect();
        batch = columns
            .and_then(|columns| filbert_functions::builder::batch(schema, columns, rows))
            .map_err(|error| of_datafusion(&error))?;
    }
    Ok(batch)
}

/// The nodes above the scan, from the outermost inwards.
#[derive(Default)]
struct Shape {
    steps: Vec<LogicalStep>,
    filters: Vec<Expr>,
    skip: usize,
    limit: Option<usize>,
}

enum LogicalStep {
    Project(Vec<Expr>, DFSchemaRef),
    Aggregate(Vec<Expr>, DFSchemaRef),
}

impl Shape {
    fn peel<'p>(&mut self, plan: &'p LogicalPlan) -> Option<&'p datafusion::logical_expr::TableScan> {
        match plan {
            LogicalPlan::Limit(limit) => {
                let SkipType::Literal(skip) = limit.get_skip_type().ok()? else { return None };
                let FetchType::Literal(fetch) = limit.get_fetch_type().ok()? else { return None };
                // Below a projection of rows a limit has the same meaning.
                let only_projections = self.steps.iter().all(|step| matches!(step, LogicalStep::Project(..)));
                if !only_projections || self.skip > 0 || self.limit.is_some() {
                    return None;
                }
                self.skip = skip;
                self.limit = fetch;
                self.peel(&limit.input)
            }
            LogicalPlan::Projection(projection) => {
                if projection.expr.iter().any(|expr| has_placeholder(expr) || expr.is_volatile()) {
                    return None;
                }
                self.steps.push(LogicalStep::Project(projection.expr.clone(), projection.schema.clone()));
                self.peel(&projection.input)
            }
            LogicalPlan::SubqueryAlias(alias) => self.peel(&alias.input),
            LogicalPlan::Aggregate(aggregate) => {
                let has_one = self.steps.iter().any(|step| matches!(step, LogicalStep::Aggregate(..)));
                if has_one || !aggregate.group_expr.is_empty() || aggregate.aggr_expr.iter().any(has_placeholder) {
                    return None;
                }
                let step = LogicalStep::Aggregate(aggregate.aggr_expr.clone(), aggregate.schema.clone());
                self.steps.push(step);
                self.peel(&aggregate.input)
            }
            LogicalPlan::Filter(filter) => {
                // A filter above an aggregation or a limit has another meaning.
                let LogicalPlan::TableScan(_) = &*filter.input else { return None };
                if filter.predicate.is_volatile() || has_subquery(&filter.predicate) {
                    return None;
                }
                self.filters.push(filter.predicate.clone());
                self.peel(&filter.input)
            }
            LogicalPlan::TableScan(scan) => {
                if let Some(fetch) = scan.fetch {
                    let aggregates = self.steps.iter().any(|step| matches!(step, LogicalStep::Aggregate(..)));
                    if aggregates {
                        return None;
                    }
                    self.limit.get_or_insert(fetch);
                }
                Some(scan)
            }
            _ => None,
        }
    }
}

fn compile(state: &SessionState, step: LogicalStep, input: &SchemaRef) -> Option<(Step, SchemaRef)> {
    match step {
        LogicalStep::Project(exprs, schema) => {
            let input = DFSchema::try_from(input.clone()).ok()?;
            let physical = |expr: Expr| {
                let guarded = guards::value(unqualified(expr), &input).ok()?;
                state.create_physical_expr(guarded, &input).ok()
            };
            let exprs: Option<Vec<Arc<dyn PhysicalExpr>>> = exprs.into_iter().map(physical).collect();
            let schema: SchemaRef = Arc::new(Schema::clone(schema.as_arrow()));
            Some((Step::Project { exprs: exprs?, schema: schema.clone() }, schema))
        }
        LogicalStep::Aggregate(exprs, schema) => {
            let schema: SchemaRef = Arc::new(Schema::clone(schema.as_arrow()));
            let schema_of_input = DFSchema::try_from(input.clone()).ok()?;
            let guarded = |expr: Expr| guards::value(unqualified(expr), &schema_of_input).ok();
            let exprs = exprs.into_iter().map(guarded).collect::<Option<Vec<Expr>>>()?;
            let aggregates = Aggregates::compile(state, &exprs, input, &schema)?;
            Some((Step::Aggregate(aggregates), schema))
        }
    }
}

/// The number of operations of an expression: its nodes but for values and columns.
fn operations(expr: &Expr) -> usize {
    let mut count = 0;
    let counted = expr.apply(|inner| {
        count +=
            usize::from(!matches!(inner, Expr::Literal(..) | Expr::Column(_) | Expr::Placeholder(_) | Expr::Alias(_)));
        Ok(TreeNodeRecursion::Continue)
    });
    if counted.is_ok() { count } else { usize::MAX }
}

fn has_placeholder(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).unwrap_or(true)
}

/// Whether a filter has a parameter of unknown type: only its value decides the types around it,
/// and so which operator is meant. Whether it is null does not depend on its type.
fn is_undecided(filter: &Expr) -> bool {
    let mut found = false;
    let searched = filter.apply(|inner| {
        Ok(match inner {
            Expr::IsNull(operand) | Expr::IsNotNull(operand) if matches!(**operand, Expr::Placeholder(_)) => {
                TreeNodeRecursion::Jump
            }
            Expr::Placeholder(placeholder) if placeholder.field.is_none() => {
                found = true;
                TreeNodeRecursion::Stop
            }
            _ => TreeNodeRecursion::Continue,
        })
    });
    found || searched.is_err()
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_))))
        .unwrap_or(true)
}

fn with_values(expr: &Expr, values: &[ScalarAndMetadata]) -> Result<Expr, SqlError> {
    use datafusion::common::tree_node::Transformed;
    let replaced = expr.clone().transform(|expr| {
        let Expr::Placeholder(placeholder) = &expr else { return Ok(Transformed::no(expr)) };
        let number: Option<usize> = placeholder.id.strip_prefix('$').and_then(|number| number.parse().ok());
        let value = number.and_then(|number| number.checked_sub(1)).and_then(|index| values.get(index));
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value.value.clone(), value.metadata.clone())),
            None => Transformed::no(expr),
        })
    });
    replaced.map(|transformed| transformed.data).map_err(|error| of_datafusion(&error))
}

/// Whether a lookup finds exactly the rows that satisfy the filter: one equality of one column with
/// a single index form for each value.
fn is_exact(access: &AccessPlan, filters: &[Expr], spec: &ScanSpec) -> bool {
    let [Expr::BinaryExpr(filter)] = filters else { return false };
    let whole = match access {
        AccessPlan::Keys(_) => true,
        AccessPlan::Index { equal, range, .. } => equal.len() == 1 && range.is_none(),
        AccessPlan::All | AccessPlan::Composite(_) => false,
    };
    let column = match (&*filter.left, &*filter.right) {
        (Expr::Column(column), _) | (_, Expr::Column(column)) => column,
        _ => return false,
    };
    let is_plain = spec.table.column(&column.name).is_some_and(|column| {
        matches!(
            column.field_type,
            FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt | FieldType::Varchar
        )
    });
    whole && is_plain && filter.op == datafusion::logical_expr::Operator::Eq
}

/// The column index of an expression that is a plain column.
pub(crate) fn plain_column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    (expr.as_ref() as &dyn std::any::Any).downcast_ref::<Column>().map(Column::index)
}
