//! Statements that change rows: `INSERT`, `SINK`, `UPDATE`, `DELETE`.
//!
//! ```text
//!  INSERT, SINK:    source query ──► rows ──► RowMaker ──► Inserter ──┐
//!  UPDATE, DELETE:  SELECT "$key", "$value", new values               ├─► Pending ──► all or none
//!                   FROM "$raw".t WHERE .. ──► rows ──────────────────┘
//! ```
//!
//! The condition of an UPDATE or DELETE is planned like the condition of a SELECT, with its
//! subqueries. The statement therefore changes exactly the entries that the SELECT would return.
//! Nothing is written before everything is read and computed. An entry is changed only if its value
//! is still the one that the condition was checked on; otherwise the statement computes it again.
//! DataFusion's own plans for UPDATE and DELETE are never used: they may have an empty filter.

pub(crate) mod adding;
pub(crate) mod ahead;
pub(crate) mod apply;
mod assignment;
pub(crate) mod expressions;
mod insert;
pub(crate) mod inserter;
pub(crate) mod joined;
pub(crate) mod literals;
pub(crate) mod pending;
pub(crate) mod returning;
pub(crate) mod rows;
pub(crate) mod select;
pub(crate) mod stored;
pub(crate) mod targets;
mod update;
pub(crate) mod writer;

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use datafusion::sql::sqlparser::ast::{Query, SelectItem, TableWithJoins, With};
use filbert_data::{FieldType, Value};
use filbert_dialect::schema_of;
use filbert_functions::ending::Limits;
use filbert_functions::error::of_datafusion;
use filbert_functions::types::value_of;
use filbert_grid::Grid;
use filbert_grid::query::{ColumnMeta, ColumnReader, Dialect, SqlError};

use crate::catalog::Mapping;
use crate::client_context::ClientContext;
use crate::dml::apply::Waiting;
use crate::dml::assignment::Assigned;
use crate::dml::joined::JoinedColumn;
use crate::dml::pending::Pending;
use crate::dml::returning::Returning;
use crate::dml::rows::RowMaker;
use crate::execution::Execution;
use crate::plan::planner::{bind, plan_rewritten, with_parameters, without_blanks};
use crate::plan::session::Sessions;
use crate::scan::table::MapTable;
use crate::tables::{Mapped, Tables};

/// The context of statements that change rows.
pub(crate) struct Dml<'e> {
    pub(crate) grid: Arc<Grid>,
    pub(crate) tables: &'e Tables,
    pub(crate) sessions: &'e Sessions,
    pub(crate) dialect: Dialect,
    /// The session context.
    pub(crate) client: &'e ClientContext,
    /// The statement context: the session and the start time.
    pub(crate) execution: Execution,
    /// The limits that may end the statement early, if any.
    limits: Option<Limits>,
}

impl<'e> Dml<'e> {
    /// Starts a statement of a session.
    pub(crate) fn begins(
        tables: &'e Tables,
        sessions: &'e Sessions,
        client: &'e ClientContext,
        limits: Option<Limits>,
    ) -> Result<Dml<'e>, SqlError> {
        Ok(Dml {
            grid: tables.grid()?,
            tables,
            sessions,
            dialect: client.dialect(),
            client,
            execution: sessions.execution_for(client).ended_by(limits.clone()),
            limits,
        })
    }
}

impl Dml<'_> {
    /// The rows of a query with values that are assigned to columns.
    async fn stream(
        &self,
        query: Query,
        execution: &Execution,
        parameters: &[Value<'_>],
        assigned: Assigned<'_>,
    ) -> Result<SendableRecordBatchStream, SqlError> {
        let state = self.sessions.begin_within(self.dialect, execution);
        let plan = plan_rewritten(&state, self.tables, self.client, query).await?;
        let plan = assigned.fit(plan)?;
        let plan = without_blanks(plan).map_err(|error| of_datafusion(&error))?;
        let types = crate::plan::planner::parameter_types(&plan)?;
        // A parameter may occur in a part that was optimized away, or in an assignment alone. More
        // values than the plan uses are no error here.
        let values = bind(&types, parameters.get(..types.len()).unwrap_or(parameters))?;
        let plan = with_parameters(plan, values)?;
        let physical = state.create_physical_plan(&plan).await.map_err(|error| of_datafusion(&error))?;
        execute_stream(physical, state.task_ctx()).map_err(|error| of_datafusion(&error))
    }

    fn rows(&self, mapping: &Arc<Mapping>) -> Result<RowMaker, SqlError> {
        let state = self.sessions.planning_within(self.dialect, &self.execution);
        RowMaker::new(mapping, self.grid.schemas(), &state, self.tables.catalog().row_ids())
    }

    /// The parameters of waiting for keys of a table.
    fn waiting<'w>(&'w self, table: &'w MapTable) -> Waiting<'w> {
        Waiting { map: table.map(), limits: self.limits.as_ref(), wait_ms: self.sessions.lock_wait_ms() }
    }

    /// An empty set of changes of a table.
    fn pending(&self, table: &MapTable) -> Pending {
        Pending::new(table.map(), Some(self.sessions.memory_for_changes()))
    }

    fn mapped(&self, name: &str) -> Result<Mapped, SqlError> {
        match self.tables.find(name)? {
            Some(mapped) => Ok(mapped),
            None => Err(self.tables.not_found(name)),
        }
    }

    /// The columns of the tables that a statement joins, if it has a `RETURNING`.
    async fn joined(
        &self,
        with: Option<&With>,
        joined: &[TableWithJoins],
        items: Option<&[SelectItem]>,
    ) -> Result<Vec<JoinedColumn>, SqlError> {
        if items.is_none() || joined.is_empty() {
            return Ok(Vec::new());
        }
        let state = self.sessions.planning_within(self.dialect, &self.execution);
        joined::columns(&state, self.tables, self.client, with, joined).await
    }

    /// The `RETURNING` clause of a statement. The table has the name `alias` in it.
    ///
    /// # Errors
    /// As [`Returning::of`], and SQLSTATE 0A000 if its columns are not the described ones.
    fn returning(
        &self,
        mapping: &Mapping,
        alias: Option<&str>,
        table: &str,
        joined: &[JoinedColumn],
        items: Option<&[SelectItem]>,
    ) -> Result<Option<Returning>, SqlError> {
        let name = alias.unwrap_or_else(|| schema_of(table).1);
        let state = self.sessions.planning_within(self.dialect, &self.execution);
        let Some(items) = items else { return Ok(None) };
        let returning = Returning::of(&state, mapping, name, joined, items, self.client.types())?;
        self.client.check_described(returning.columns())?;
        Ok(Some(returning))
    }
}

/// The result of a statement that changed rows.
pub(crate) enum Changed {
    /// The number of rows.
    Count(u64),
    /// The rows of `RETURNING`.
    Rows(Arc<[ColumnMeta]>, RecordBatch),
}

impl Changed {
    /// The result of a statement: the number of rows, and the rows of `RETURNING`.
    fn of(count: u64, returning: Option<&Returning>, returned: Option<RecordBatch>) -> Changed {
        match (returning, returned) {
            (Some(returning), Some(returned)) => Changed::Rows(returning.columns().clone(), returned),
            _ => Changed::Count(count),
        }
    }
}

/// The values of a batch.
pub(crate) struct Rows<'b> {
    batch: &'b RecordBatch,
    columns: Vec<(FieldType, Option<ColumnReader<'b>>)>,
    /// The columns with types that are known only from their values.
    untyped: Vec<bool>,
}

impl<'b> Rows<'b> {
    pub(crate) fn of(batch: &'b RecordBatch) -> Self {
        let columns = batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, column)| {
            let field_type = filbert_functions::types::field_type_of(field);
            let reader = ColumnReader::new(column.as_ref(), &field_type);
            (field_type, reader)
        });
        let untyped =
            batch.schema_ref().fields().iter().map(|field| filbert_functions::types::is_untyped(field)).collect();
        Rows { batch, columns: columns.collect(), untyped }
    }

    /// The number of rows.
    fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether the type of a column is known only from its values.
    pub(crate) fn is_untyped(&self, column: usize) -> bool {
        self.untyped.get(column).is_some_and(|untyped| *untyped)
    }

    /// A value; null if there is no such column.
    ///
    /// # Errors
    /// The value cannot be read.
    pub(crate) fn get(&self, column: usize, row: usize) -> Result<Value<'_>, SqlError> {
        match self.columns.get(column) {
            None => Ok(Value::Null),
            Some((_, Some(reader))) => Ok(reader.get(row)),
            Some((field_type, None)) => {
                let scalar = ScalarValue::try_from_array(self.batch.column(column), row);
                Ok(value_of(&scalar.map_err(|error| of_datafusion(&error))?, field_type))
            }
        }
    }

    /// The bytes of a stored key or value.
    fn raw(&self, column: usize, row: usize) -> Result<Vec<u8>, SqlError> {
        let scalar = ScalarValue::try_from_array(self.batch.column(column), row);
        match scalar.map_err(|error| of_datafusion(&error))? {
            ScalarValue::BinaryView(Some(bytes))
            | ScalarValue::Binary(Some(bytes))
            | ScalarValue::LargeBinary(Some(bytes)) => Ok(bytes),
            other => {
                Err(filbert_functions::error::data_error(format!("a stored entry came as {other}, expected bytes")))
            }
        }
    }
}
