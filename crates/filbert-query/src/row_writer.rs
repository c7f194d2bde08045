//! Bulk insertion: many rows through one statement that is parsed once: `INSERT .. VALUES (?, ..)`.
//!
//! ```text
//!  values of many rows ── cells ──► row ── RowMaker ──► key, value ──┬─ Each: written row by row
//!                                                                    └─ All: written on finish
//! ```
//!
//! With `All`, either all rows are written or none. No row is planned: values go directly into the
//! bytes of entries.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{FieldType, Value};
use filbert_dialect::{Insert, Parsed, ParsedStatement};
use filbert_functions::ending::Limits;
use filbert_functions::error::data_error;
use filbert_grid::query::{ColumnMeta, Dialect, RowWriter, SqlError, SqlErrorCode, WriteMode};
use filbert_grid::{ErrorKind, PutMode, threads};

use crate::catalog::{MappingColumn, Shared};
use crate::client_context::ClientContext;
use crate::dml::adding::Adding;
use crate::dml::ahead::{Ahead, Entry, Settled};
use crate::dml::apply::{Waiting, is_passing, not_free};
use crate::dml::inserter::{Inserter, Scratch, Written};
use crate::dml::literals::{constant, is_default, parameter};
use crate::dml::pending::Pending;
use crate::dml::rows::RowMaker;
use crate::dml::targets::{fit_targets, target_columns};
use crate::error_dialects::translated;
use crate::execution::Execution;
use crate::parts::Parts;
use crate::plans::Plan;
use crate::session::check_may_change;
use crate::tables::Tables;

/// The source of a column's value.
enum Cell {
    /// The value at this position of each row.
    Given(usize),
    /// The same value for all rows.
    Constant(Value<'static>),
}

/// Prepares a statement that adds rows for many rows.
///
/// # Errors
/// The statement is invalid, or does not take rows. In the second case the error's kind is
/// `UnsupportedOperation`.
pub(crate) async fn row_writer(
    engine: &Parts,
    text: &str,
    client: &ClientContext,
    mode: WriteMode,
) -> Result<Box<dyn RowWriter>, SqlError> {
    let plan = engine.plan(text, client).await?.plan;
    if let Plan::Other(ParsedStatement { parsed: Parsed::Copy(copy), .. }) = &*plan
        && let Some(table) = &copy.table
    {
        check_may_change(client.session().map(Arc::as_ref), "COPY FROM")?;
        return Ok(copy_writer(engine, client, table, &copy.columns, mode, None)?);
    }
    let Plan::Change { statement, .. } = &*plan else { return Err(not_for_rows()) };
    let Parsed::Insert(insert) = &statement.parsed else { return Err(not_for_rows()) };
    check_may_change(client.session().map(Arc::as_ref), "INSERT")?;
    let Some([rows]) = insert.values().filter(|_| insert.returning.is_none()) else { return Err(not_for_rows()) };
    let rows: &[Expr] = rows;
    let tables = &engine.tables;
    let Some(mapped) = tables.find(&insert.table)? else { return Err(tables.not_found(&insert.table)) };
    let state = engine.sessions.planning_for(client);
    let mapping = mapped.mapping.clone();
    let inserter = Inserter::new(tables, &state, insert, mapped, &[])?;
    let maker = inserter.maker();
    let mut targets = target_columns(&mapping, &insert.columns)?;
    fit_targets(&mapping, &insert.columns, &mut targets, rows.len());
    if rows.len() != targets.len() {
        let text = format!("{} columns are to be written and there are {} values", targets.len(), rows.len());
        return Err(filbert_functions::error::parsing_error(text));
    }
    let mut cells = Vec::with_capacity(targets.len());
    let mut columns: Vec<ColumnMeta> = (1..=statement.parameters).map(unused).collect();
    for (expr, target) in rows.iter().zip(&targets) {
        if is_default(expr) {
            continue;
        }
        maker.check_target(*target)?;
        if let Some(number) = parameter(expr) {
            cells.push((*target, Cell::Given(number)));
            if let (Some(meta), Some(column)) = (columns.get_mut(number), mapping.columns.get(*target)) {
                let (name, field_type) = (column.name.clone(), column.field_type.clone());
                *meta = ColumnMeta { name, field_type, nullable: true, pg_type: None, length: None };
            }
        } else {
            let Some(value) = constant(expr, client.dialect()) else { return Err(not_for_rows()) };
            cells.push((*target, Cell::Constant(maker.convert(*target, value)?)));
        }
    }
    Ok(Box::new(Writer {
        given: given(maker, &cells),
        adding: adding(engine, &inserter, mode),
        wait_ms: engine.sessions.lock_wait_ms(),
        limits: None,
        inserter,
        cells,
        columns: columns.into(),
        execution: engine.sessions.execution_for(client),
        dialect: client.dialect(),
        written: 0,
        scratch: Scratch::default(),
        tables: engine.tables.clone(),
    }))
}

/// Prepares a writer for the columns of a table: the named columns, or all that are not computed.
///
/// # Errors
/// The table or a column does not exist.
pub(crate) fn copy_writer(
    engine: &Parts,
    client: &ClientContext,
    table: &str,
    names: &[String],
    mode: WriteMode,
    limits: Option<Limits>,
) -> Result<Box<Writer>, SqlError> {
    let tables = &engine.tables;
    let Some(mapped) = tables.find(table)? else { return Err(tables.not_found(table)) };
    let mapping = mapped.mapping.clone();
    let insert = Insert { table: table.to_owned(), ..Insert::default() };
    let inserter = Inserter::new(tables, &engine.sessions.planning_for(client), &insert, mapped, &[])?;
    let maker = inserter.maker();
    let mut targets = target_columns(&mapping, names)?;
    if names.is_empty() {
        targets.retain(|target| !maker.is_generated(*target));
    }
    // The rows' own values are kept for identity columns, ALWAYS or not.
    targets.iter().try_for_each(|target| maker.check_copied(*target))?;
    let columns = targets.iter().filter_map(|target| Some((*target, mapping.columns.get(*target)?)));
    let meta = |(target, column): (usize, &MappingColumn)| {
        let (name, field_type) = (column.name.clone(), column.field_type.clone());
        let pg_type = mapping.pg_type(target).map(|pg_type| pg_type.oid);
        ColumnMeta { name, field_type, nullable: true, pg_type, length: None }
    };
    let columns = columns.map(meta).collect();
    let cells: Vec<_> = targets.into_iter().enumerate().map(|(at, target)| (target, Cell::Given(at))).collect();
    Ok(Box::new(Writer {
        given: given(maker, &cells),
        adding: adding(engine, &inserter, mode),
        wait_ms: engine.sessions.lock_wait_ms(),
        limits,
        inserter,
        cells,
        columns,
        execution: engine.sessions.execution_for(client),
        dialect: client.dialect(),
        written: 0,
        scratch: Scratch::default(),
        tables: engine.tables.clone(),
    }))
}

fn not_for_rows() -> SqlError {
    let text = "rows are taken by INSERT .. VALUES with one row of parameters and constants, and by COPY .. FROM STDIN";
    SqlError {
        kind: ErrorKind::UnsupportedOperation,
        ..SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000")
    }
}

/// The column of a parameter that no column uses.
fn unused(number: usize) -> ColumnMeta {
    ColumnMeta {
        name: format!("${number}"),
        field_type: FieldType::Varchar,
        nullable: true,
        pg_type: None,
        length: None,
    }
}

/// Which columns have values.
fn given(maker: &RowMaker, cells: &[(usize, Cell)]) -> Vec<bool> {
    (0..maker.mapping().columns.len()).map(|index| cells.iter().any(|(target, _)| *target == index)).collect()
}

/// The buffer of rows, if all or none of them are to be written.
fn adding(engine: &Parts, inserter: &Inserter, mode: WriteMode) -> Option<Adding> {
    let pending = || Pending::new(inserter.table().map(), Some(engine.sessions.memory_for_changes()));
    (mode == WriteMode::All).then(|| Adding::new(inserter, pending(), false))
}

/// The writer of the rows of one statement.
pub(crate) struct Writer {
    inserter: Inserter,
    /// Rows that are written together; `None` = each row is written at once.
    adding: Option<Adding>,
    /// How long to wait for a locked key, in milliseconds.
    wait_ms: i64,
    /// The limits that may end the statement before it writes, if any.
    limits: Option<Limits>,
    cells: Vec<(usize, Cell)>,
    /// Which columns of a row have values.
    given: Vec<bool>,
    columns: Arc<[ColumnMeta]>,
    /// The statement context.
    execution: Execution,
    /// The error dialect.
    dialect: Dialect,
    written: u64,
    scratch: Scratch,
    tables: Arc<Tables>,
}

impl RowWriter for Writer {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        let (tables, written_before) = (self.tables.clone(), self.written);
        let shared = match &self.adding {
            // In this mode nothing is written before all rows have arrived.
            Some(_) => Ok(None),
            None => self.share(&tables).map(Some),
        };
        let _shared = match shared {
            Ok(shared) => shared,
            Err(error) => {
                let rows = values.chunks(self.columns.len().max(1));
                return rows.for_each(|_| on_row(Err(translated(error.clone(), "", self.dialect))));
            }
        };
        if let Some(mode) = self.inserter.put_mode()
            && self.adding.is_none()
            && tables.is_in_cluster()
        {
            self.write_ahead(mode, values, on_row);
            return self.note(self.written - written_before);
        }
        let mut row = Vec::with_capacity(self.given.len());
        for (number, given) in values.chunks(self.columns.len().max(1)).enumerate() {
            threads::give_way_at(number);
            row.clear();
            let outcome = self.fill(given, &mut row).and_then(|()| match &mut self.adding {
                Some(adding) => adding.add(&self.inserter, &row, given, &self.execution),
                None => self.put(&row, given),
            });
            on_row(outcome.map_err(|error| translated(error, "", self.dialect)));
        }
        self.note(self.written - written_before);
    }

    fn finish(mut self: Box<Self>) -> Result<u64, SqlError> {
        let Some(adding) = self.adding.take() else { return Ok(self.written) };
        let tables = self.tables.clone();
        let _shared = self.share(&tables)?;
        let made = adding.make_blocking(&self.inserter, self.waiting(), &self.execution);
        let written = made.map_err(|error| translated(error, "", self.dialect))?;
        self.note(written);
        Ok(written)
    }
}

impl Writer {
    /// Says which columns the following rows have. The other columns get their defaults.
    pub(crate) fn take_only(&mut self, columns: &[bool]) {
        for (target, cell) in &self.cells {
            if let (Cell::Given(number), Some(given)) = (cell, self.given.get_mut(*target)) {
                *given = columns.get(*number).is_none_or(|is_given| *is_given);
            }
        }
    }

    /// Locks the table's name as a writer, shared with other writers, if the name still refers to
    /// the table that the rows were made for.
    fn share<'t>(&self, tables: &'t Tables) -> Result<Shared<'t>, SqlError> {
        let mapping = self.inserter.maker().mapping();
        let catalog = tables.catalog();
        let shared = catalog.gates().share_blocking(&mapping.name)?;
        let is_same = match catalog.mapping(&mapping.name) {
            Some(found) => Arc::ptr_eq(&found, mapping),
            // A map without a mapping has the columns of its entries.
            None => mapping.table.is_none(),
        };
        if is_same && !self.inserter.table().map().is_destroyed() {
            return Ok(shared);
        }
        let text = format!("{:?} was altered or dropped while rows came for it: they can be sent again", mapping.name);
        Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
    }

    /// Records the number of changed rows in the session.
    fn note(&self, count: u64) {
        if let Some(session) = self.execution.context().session() {
            session.note_run();
            session.note_changes(count);
        }
    }

    fn waiting(&self) -> Waiting<'_> {
        Waiting { map: self.inserter.table().map(), limits: self.limits.as_ref(), wait_ms: self.wait_ms }
    }

    /// Completes a row: converts the given values, adds constants and defaults, and checks
    /// constraints.
    fn fill<'v>(&self, given: &'v [Value<'_>], row: &mut Vec<Value<'v>>) -> Result<(), SqlError> {
        if given.len() != self.columns.len() {
            let text = format!("a row has {} values, expected {}", given.len(), self.columns.len());
            return Err(data_error(text).with_sqlstate("07001"));
        }
        row.resize(self.given.len(), Value::Null);
        let maker = self.inserter.maker();
        for (target, cell) in &self.cells {
            let value = match cell {
                Cell::Given(number) => match given.get(*number) {
                    Some(value) => maker.convert(*target, lent(value))?,
                    None => Value::Null,
                },
                Cell::Constant(value) => value.clone(),
            };
            if let Some(place) = row.get_mut(*target) {
                *place = value;
            }
        }
        maker.complete(row, &self.given, &self.execution)
    }

    /// Writes each row by itself, many at a time.
    fn write_ahead(&mut self, mode: PutMode, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        let (mut ahead, mut scratch) = (Ahead::new(mode), std::mem::take(&mut self.scratch));
        let mut row = Vec::with_capacity(self.given.len());
        for (number, given) in values.chunks(self.columns.len().max(1)).enumerate() {
            threads::give_way_at(number);
            row.clear();
            match self.fill(given, &mut row).and_then(|()| self.inserter.entry(&row, &mut scratch)) {
                Ok(()) => {
                    if !ahead.has_room_for(&scratch) {
                        self.settle(&mut ahead, on_row);
                    }
                    ahead.send(self.waiting(), &scratch);
                }
                Err(error) => ahead.add_wrong(error),
            }
        }
        self.settle(&mut ahead, on_row);
        self.scratch = scratch;
    }

    /// Waits for the rows that are on their way. A row without a leader is written again.
    fn settle(&mut self, ahead: &mut Ahead, on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        for row in ahead.settle() {
            let written = match row {
                Settled::Wrong(error) => Err(error),
                Settled::Answered(Ok(outcome), entry) => self.inserter.written(&entry.key, outcome),
                Settled::Answered(Err(error), entry) if is_passing(&error) => self.put_entry(&entry, ahead.mode()),
                Settled::Answered(Err(error), _) => Err(not_free(error)),
            };
            let count = written.map(|written| written.count());
            self.written += count.as_ref().copied().unwrap_or_default();
            on_row(count.map_err(|error| translated(error, "", self.dialect)));
        }
    }

    /// Writes an entry; waits for a locked key.
    fn put_entry(&self, entry: &Entry, mode: PutMode) -> Result<Written, SqlError> {
        loop {
            if let Some(written) = self.inserter.write_entry(&entry.key, &entry.value, mode)? {
                return Ok(written);
            }
            self.waiting().block_until_free(&entry.key)?;
        }
    }

    /// Writes a row; waits for a locked key.
    fn put(&mut self, row: &[Value<'_>], parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        loop {
            if let Some(written) = self.inserter.write(row, parameters, &self.execution, &mut self.scratch)? {
                self.written += written.count();
                return Ok(written.count());
            }
            let key = self.inserter.maker().writer().key(row)?;
            self.waiting().block_until_free(&key)?;
        }
    }
}

/// Borrows the value without copying its bytes.
fn lent<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::Text(text) => Value::Text(Cow::Borrowed(text)),
        Value::Json(text) => Value::Json(Cow::Borrowed(text)),
        Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
        Value::Object(bytes) => Value::Object(Cow::Borrowed(bytes)),
        other => other.clone(),
    }
}
