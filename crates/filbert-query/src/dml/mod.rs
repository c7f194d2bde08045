//! Statements that change entries: `INSERT`, `SINK`, `UPDATE`, `DELETE`.
//!
//! ```text
//!  INSERT, SINK:    source query ──► rows ──► EntryWriter ──► put
//!  UPDATE, DELETE:  SELECT "$key", "$value", new values FROM "$raw".t WHERE .. ──► rows ──► replace if same │ remove if same
//! ```
//!
//! The condition of an UPDATE or DELETE is planned as that of a SELECT, subqueries and all, so that exactly those entries are
//! changed that the SELECT would show. Each is changed only if its value is still the one that the condition saw; where it
//! is not, the statement looks at it again. Plans of DataFusion for UPDATE and DELETE are never used: they may come with an
//! empty filter.

pub(crate) mod apply;
mod select;
pub(crate) mod writer;

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query};
use filbert_data::{Blob, Value};
use filbert_grid::Grid;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode};
use futures::StreamExt;

use crate::catalog::Mapping;
use crate::dialect::{Delete, Insert, Update};
use crate::dml::apply::{Changes, Outcome};
use crate::dml::writer::EntryWriter;
use crate::error::{of_datafusion, parsing_error};
use crate::plan::columns::name_columns;
use crate::plan::planner::{bind, expand_views, plan_rewritten, with_parameters};
use crate::plan::session::Sessions;
use crate::tables::{Mapped, Tables};
use crate::types::value_of;

/// How often a statement looks again at entries that were changed while it ran.
const ROUNDS_MAX: usize = 100;

/// Makes a row's new value; `None` takes the entry out.
type Rewrite<'r> = dyn FnMut(&RecordBatch, usize) -> Result<Option<Blob>, SqlError> + Send + 'r;

/// What statements that change entries need.
pub(crate) struct Dml<'e> {
    pub(crate) grid: Arc<Grid>,
    pub(crate) tables: &'e Tables,
    pub(crate) sessions: &'e Sessions,
    pub(crate) dialect: Dialect,
}

impl Dml<'_> {
    /// Runs an INSERT or SINK; returns the number of rows.
    pub(crate) async fn insert(&self, insert: &Insert, parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        let Mapped { mapping, table } = self.mapped(&insert.table)?;
        let targets = target_columns(&mapping, &insert.columns)?;
        let mut query = (*insert.source).clone();
        expand_views(self.tables, &mut query)?;
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let reads_target = select::reads(&query, &insert.table);
        let mut stream = self.stream(query, parameters).await?;
        let width = stream.schema().fields().len();
        if width != targets.len() {
            return Err(parsing_error(format!(
                "{} columns of {:?} are to be written and the source has {width}, expected as many",
                targets.len(),
                insert.table
            )));
        }
        let writer = EntryWriter::new(&mapping, self.grid.schemas())?;
        let changes = Changes::new(table.map(), self.grid.now());
        let mut count = 0;
        // A source that reads what is written must not meet its own rows.
        let mut read = Vec::new();
        while reads_target && let Some(batch) = stream.next().await {
            read.push(batch);
        }
        let mut batches = futures::stream::iter(read).chain(stream);
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| of_datafusion(&error))?;
            for row in 0..batch.num_rows() {
                let mut values = vec![Value::Null; mapping.columns.len()];
                for (source, &target) in targets.iter().enumerate() {
                    let value = cell(&batch, source, row)?;
                    if let Some(place) = values.get_mut(target) {
                        *place = writer.convert(target, value)?;
                    }
                }
                let (key, value) = (writer.key(&values)?, writer.value(&values)?);
                if insert.sink {
                    changes.sink(&key, &value).await?;
                } else {
                    changes.insert(&key, &value).await?;
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// Runs an UPDATE; returns the number of entries that were changed.
    pub(crate) async fn update(&self, update: &Update, parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        let Mapped { mapping, table } = self.mapped(&update.table)?;
        let alias = update.alias.as_deref().unwrap_or(&update.table);
        let assigned = assigned_columns(&mapping, update)?;
        let mut columns = Vec::new();
        let mut items = Vec::new();
        for (index, column) in mapping.columns.iter().enumerate() {
            let new = assigned.iter().find(|(target, _)| *target == index).map(|(_, expr)| (*expr).clone());
            // The whole value is written only if it is assigned or all there is.
            let hidden_whole = column.hidden && new.is_none();
            if column.path.side == filbert_data::Side::Key || hidden_whole {
                continue;
            }
            let old = || Expr::CompoundIdentifier(vec![quoted(alias), quoted(&column.name)]);
            columns.push(index);
            items.push(new.unwrap_or_else(old));
        }
        let query = select::entries(&update.table, update.alias.as_deref(), &items, update.selection.as_ref())?;
        let writer = EntryWriter::new(&mapping, self.grid.schemas())?;
        let changes = Changes::new(table.map(), self.grid.now());
        let mut rewrite = |batch: &RecordBatch, row: usize| -> Result<Option<Blob>, SqlError> {
            let mut values = vec![Value::Null; mapping.columns.len()];
            for (item, &target) in columns.iter().enumerate() {
                if let Some(place) = values.get_mut(target) {
                    *place = writer.convert(target, cell(batch, item + 2, row)?)?;
                }
            }
            writer.value(&values).map(Some)
        };
        self.change(query, alias, parameters, &changes, &mut rewrite).await
    }

    /// Runs a DELETE; returns the number of entries that were taken out.
    pub(crate) async fn delete(&self, delete: &Delete, parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        let Mapped { table, .. } = self.mapped(&delete.table)?;
        let alias = delete.alias.as_deref().unwrap_or(&delete.table);
        let query = select::entries(&delete.table, delete.alias.as_deref(), &[], delete.selection.as_ref())?;
        let changes = Changes::new(table.map(), self.grid.now());
        self.change(query, alias, parameters, &changes, &mut |_, _| Ok(None)).await
    }

    /// Changes the entries that a query of stored keys and values finds: each to what `rewrite` makes of its row, or to nothing.
    async fn change(
        &self,
        mut query: Query,
        alias: &str,
        parameters: &[Value<'_>],
        changes: &Changes<'_>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<u64, SqlError> {
        expand_views(self.tables, &mut query)?;
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let reads_first = select::has_subqueries(&query);
        let mut count = 0;
        let mut narrowed = query.clone();
        for _ in 0..ROUNDS_MAX {
            let mut missed: Vec<Blob> = Vec::new();
            let mut stream = self.stream(narrowed, parameters).await?;
            let mut read = Vec::new();
            if reads_first {
                while let Some(batch) = stream.next().await {
                    read.push(batch);
                }
            }
            let mut batches = futures::stream::iter(read).chain(stream);
            while let Some(batch) = batches.next().await {
                let batch = batch.map_err(|error| of_datafusion(&error))?;
                for row in 0..batch.num_rows() {
                    let (key, expected) = (raw(&batch, 0, row)?, raw(&batch, 1, row)?);
                    let outcome = match rewrite(&batch, row)? {
                        Some(value) => changes.replace(&key, &expected, &value).await?,
                        None => changes.remove(&key, &expected).await?,
                    };
                    match outcome {
                        Outcome::Made => count += 1,
                        Outcome::Differs => missed.push(Blob::from(key)),
                    }
                }
            }
            if missed.is_empty() {
                return Ok(count);
            }
            narrowed = select::among(&query, alias, &missed);
        }
        let text = format!("some entries were changed by others {ROUNDS_MAX} times while the statement ran");
        Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
    }

    async fn stream(&self, query: Query, parameters: &[Value<'_>]) -> Result<SendableRecordBatchStream, SqlError> {
        let state = self.sessions.begin(self.dialect);
        let plan = plan_rewritten(&state, self.tables, query).await?;
        let types = crate::plan::planner::parameter_types(&plan)?;
        // A parameter may stand in a part that was optimized away or in an assignment alone: more values are no error here.
        let values = bind(&types, parameters.get(..types.len()).unwrap_or(parameters))?;
        let plan = with_parameters(plan, values)?;
        let physical = state.create_physical_plan(&plan).await.map_err(|error| of_datafusion(&error))?;
        execute_stream(physical, state.task_ctx()).map_err(|error| of_datafusion(&error))
    }

    fn mapped(&self, name: &str) -> Result<Mapped, SqlError> {
        match self.tables.find(name)? {
            Some(mapped) => Ok(mapped),
            None => Err(self.tables.not_found(name)),
        }
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// The columns that an INSERT writes, by number: those it names, or all that are not hidden.
pub(crate) fn target_columns(mapping: &Mapping, names: &[String]) -> Result<Vec<usize>, SqlError> {
    if names.is_empty() {
        let visible = mapping.columns.iter().enumerate().filter(|(_, column)| !column.hidden);
        return Ok(visible.map(|(index, _)| index).collect());
    }
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let target = column_index(mapping, name)?;
        if targets.contains(&target) {
            return Err(parsing_error(format!("column {name:?} is to be written twice, expected once")));
        }
        targets.push(target);
    }
    Ok(targets)
}

fn assigned_columns<'u>(mapping: &Mapping, update: &'u Update) -> Result<Vec<(usize, &'u Expr)>, SqlError> {
    let mut assigned: Vec<(usize, &Expr)> = Vec::with_capacity(update.assignments.len());
    for (name, expr) in &update.assignments {
        let index = column_index(mapping, name)?;
        if mapping.columns.get(index).is_some_and(|column| column.path.side == filbert_data::Side::Key) {
            return Err(parsing_error(format!("cannot update {name:?}: keys do not change")));
        }
        if assigned.iter().any(|(target, _)| *target == index) {
            return Err(parsing_error(format!("column {name:?} is assigned twice, expected once")));
        }
        assigned.push((index, expr));
    }
    Ok(assigned)
}

pub(crate) fn column_index(mapping: &Mapping, name: &str) -> Result<usize, SqlError> {
    mapping
        .columns
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| crate::catalog::unknown_column(mapping, name))
}

/// One value of a batch.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> Result<Value<'static>, SqlError> {
    let schema = batch.schema();
    let Some(field) = schema.fields().get(column) else { return Ok(Value::Null) };
    let scalar = ScalarValue::try_from_array(batch.column(column), row).map_err(|error| of_datafusion(&error))?;
    Ok(value_of(&scalar, &crate::types::field_type_of(field)))
}

/// The bytes of a stored key or value.
fn raw(batch: &RecordBatch, column: usize, row: usize) -> Result<Vec<u8>, SqlError> {
    match ScalarValue::try_from_array(batch.column(column), row).map_err(|error| of_datafusion(&error))? {
        ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes)) => Ok(bytes),
        other => Err(crate::error::data_error(format!("a stored entry came as {other}, expected bytes"))),
    }
}
