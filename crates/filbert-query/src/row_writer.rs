//! Rows on their way in, many at a time, as one statement says that was understood once: `INSERT .. VALUES (?, ..)`.
//!
//! ```text
//!  values of many rows ── cells ──► row ── RowMaker ──► key, value ──┬─ Each: written at once, row by row
//!                                                                   └─ All: kept ── finish: keys checked, then written
//! ```
//!
//! No row is planned: values go straight to the bytes of entries.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{Blob, FieldType, Value};
use filbert_grid::query::{ColumnMeta, Dialect, RowWriter, SqlError, SqlErrorCode, WriteMode};
use filbert_grid::{Caller, Change, ErrorKind, Map, Millis, threads};

use crate::asker::Asker;
use crate::catalog::MappingColumn;
use crate::dialect::{Insert, Parsed, ParsedStatement};
use crate::dml::apply::Changes;
use crate::dml::inserter::{Inserter, Scratch, Written};
use crate::dml::literals::{constant, is_default, parameter};
use crate::dml::rows::RowMaker;
use crate::dml::targets::{fit_targets, target_columns};
use crate::engine::Inner;
use crate::error::data_error;
use crate::plans::Plan;
use crate::surroundings::Occasion;
use crate::words::said;

/// Where a column's value comes from.
enum Cell {
    /// The value of this number of each row.
    Given(usize),
    /// The same for all rows.
    Constant(Value<'static>),
}

/// Makes a statement that adds rows ready to take many of them.
///
/// # Errors
/// The statement cannot be understood, or is not one that takes rows: the kind is `UnsupportedOperation` then.
pub(crate) async fn row_writer(
    engine: &Inner,
    text: &str,
    asker: &Asker,
    mode: WriteMode,
) -> Result<Box<dyn RowWriter>, SqlError> {
    let plan = engine.plan(text, asker).await?;
    if let Plan::Other(ParsedStatement { parsed: Parsed::Copy(copy), .. }) = &*plan
        && let Some(table) = &copy.table
    {
        return copy_writer(engine, asker, table, &copy.columns, mode);
    }
    let Plan::Change { statement, .. } = &*plan else { return Err(not_for_rows()) };
    let Parsed::Insert(insert) = &statement.parsed else { return Err(not_for_rows()) };
    let Some([rows]) = insert.values().filter(|_| insert.returning.is_none()) else { return Err(not_for_rows()) };
    let rows: &[Expr] = rows;
    let tables = &engine.tables;
    let Some(mapped) = tables.find(&insert.table)? else { return Err(tables.not_found(&insert.table)) };
    let state = engine.sessions.planning(asker.dialect());
    let mapping = mapped.mapping.clone();
    let inserter = Inserter::new(tables, state, insert, mapped)?;
    let maker = inserter.maker();
    let mut targets = target_columns(&mapping, &insert.columns)?;
    fit_targets(&mapping, &insert.columns, &mut targets, rows.len());
    if rows.len() != targets.len() {
        let text = format!("{} columns are to be written and there are {} values", targets.len(), rows.len());
        return Err(crate::error::parsing_error(text));
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
                *meta = ColumnMeta { name, field_type, nullable: true, pg_type: None };
            }
        } else {
            let Some(value) = constant(expr) else { return Err(not_for_rows()) };
            cells.push((*target, Cell::Constant(maker.convert(*target, value)?)));
        }
    }
    let kept = match inserter.writes_entries() {
        true => Kept::Entries(Vec::new()),
        false => Kept::Rows(Vec::new()),
    };
    Ok(Box::new(Writer {
        given: given(maker, &cells),
        now: tables.grid()?.now(),
        inserter,
        cells,
        columns: columns.into(),
        occasion: engine.sessions.occasion(asker.dialect(), asker.session()),
        dialect: asker.dialect(),
        mode,
        kept,
        written: 0,
        scratch: Scratch::default(),
    }))
}

/// Takes the columns of a table, by name or all that are not computed.
///
/// # Errors
/// There is no such table or column.
pub(crate) fn copy_writer(
    engine: &Inner,
    asker: &Asker,
    table: &str,
    names: &[String],
    mode: WriteMode,
) -> Result<Box<dyn RowWriter>, SqlError> {
    let tables = &engine.tables;
    let Some(mapped) = tables.find(table)? else { return Err(tables.not_found(table)) };
    let mapping = mapped.mapping.clone();
    let insert = Insert { table: table.to_owned(), ..Insert::default() };
    let inserter = Inserter::new(tables, engine.sessions.planning(asker.dialect()), &insert, mapped)?;
    let maker = inserter.maker();
    let mut targets = target_columns(&mapping, names)?;
    if names.is_empty() {
        targets.retain(|target| maker.check_target(*target).is_ok());
    }
    targets.iter().try_for_each(|target| maker.check_target(*target))?;
    let columns = targets.iter().filter_map(|target| mapping.columns.get(*target));
    let meta = |column: &MappingColumn| {
        let (name, field_type) = (column.name.clone(), column.field_type.clone());
        ColumnMeta { name, field_type, nullable: true, pg_type: None }
    };
    let columns = columns.map(meta).collect();
    let cells: Vec<_> = targets.into_iter().enumerate().map(|(at, target)| (target, Cell::Given(at))).collect();
    Ok(Box::new(Writer {
        given: given(maker, &cells),
        now: tables.grid()?.now(),
        inserter,
        cells,
        columns,
        occasion: engine.sessions.occasion(asker.dialect(), asker.session()),
        dialect: asker.dialect(),
        mode,
        kept: Kept::Entries(Vec::new()),
        written: 0,
        scratch: Scratch::default(),
    }))
}

fn not_for_rows() -> SqlError {
    let text = "rows are taken by INSERT .. VALUES with one row of parameters and constants, and by COPY .. FROM STDIN";
    SqlError {
        kind: ErrorKind::UnsupportedOperation,
        ..SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000")
    }
}

/// A parameter that no column is given.
fn unused(number: usize) -> ColumnMeta {
    ColumnMeta { name: format!("${number}"), field_type: FieldType::Varchar, nullable: true, pg_type: None }
}

/// Which columns are given values.
fn given(maker: &RowMaker, cells: &[(usize, Cell)]) -> Vec<bool> {
    (0..maker.mapping().columns.len()).map(|index| cells.iter().any(|(target, _)| *target == index)).collect()
}

struct Writer {
    inserter: Inserter,
    now: Millis,
    cells: Vec<(usize, Cell)>,
    /// Which columns of a row are given values.
    given: Vec<bool>,
    columns: Arc<[ColumnMeta]>,
    /// Who asks, and when.
    occasion: Occasion,
    /// Whose words errors are in.
    dialect: Dialect,
    mode: WriteMode,
    /// What [`WriteMode::All`] keeps.
    kept: Kept,
    written: u64,
    scratch: Scratch,
}

/// Rows that are kept until all are there.
enum Kept {
    /// As the entries that they become.
    Entries(Vec<(Blob, Blob)>),
    /// As they are, with what their parameters were: a row that is there may have to be updated by them.
    Rows(Vec<(Vec<Value<'static>>, Vec<Value<'static>>)>),
}

impl RowWriter for Writer {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        let mut row = Vec::with_capacity(self.given.len());
        for (number, given) in values.chunks(self.columns.len().max(1)).enumerate() {
            threads::give_way_at(number);
            row.clear();
            let outcome = self.fill(given, &mut row).and_then(|()| match self.mode {
                WriteMode::All => self.keep(&row, given),
                WriteMode::Each => self.put(&row, given),
            });
            on_row(outcome.map_err(|error| said(error, "", self.dialect)));
        }
    }

    fn finish(mut self: Box<Self>) -> Result<u64, SqlError> {
        match std::mem::replace(&mut self.kept, Kept::Rows(Vec::new())) {
            Kept::Entries(entries) => self.finish_entries(&entries),
            Kept::Rows(rows) => {
                for (row, parameters) in &rows {
                    self.put(row, parameters)?;
                }
                Ok(self.written)
            }
        }
    }
}

impl Writer {
    fn map(&self) -> &Map {
        self.inserter.table().map()
    }

    /// Makes a row whole.
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
        maker.complete(row, &self.given, &self.occasion)
    }

    fn keep(&mut self, row: &[Value<'_>], parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        match &mut self.kept {
            Kept::Entries(entries) => entries.push(self.inserter.maker().entry(row)?),
            Kept::Rows(rows) => rows.push((owned(row), owned(parameters))),
        }
        Ok(1)
    }

    /// Writes a row; waits for a key that is locked.
    fn put(&mut self, row: &[Value<'_>], parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        loop {
            if let Some(written) = self.inserter.write(row, parameters, &self.occasion, &mut self.scratch)? {
                self.written += written.count();
                return Ok(written.count());
            }
            let key = self.inserter.maker().writer().key(row)?;
            Changes::new(self.map(), self.now).block_until_free(&key)?;
        }
    }

    fn put_entry(&self, key: &Blob, value: &Blob) -> Result<Written, SqlError> {
        loop {
            match self.inserter.write_entry(key, value)? {
                Some(written) => return Ok(written),
                None => Changes::new(self.map(), self.now).block_until_free(key)?,
            }
        }
    }

    fn finish_entries(&self, entries: &[(Blob, Blob)]) -> Result<u64, SqlError> {
        if self.mode == WriteMode::Each {
            return Ok(self.written);
        }
        if self.inserter.fails_on_key() {
            self.check_keys(entries)?;
        }
        let mut count = 0;
        for (done, (key, value)) in entries.iter().enumerate() {
            match self.put_entry(key, value) {
                Ok(written) => count += written.count(),
                Err(error) => {
                    // Someone else was there first: what was written is taken back.
                    self.take_back(entries.get(..done).unwrap_or_default());
                    return Err(error);
                }
            }
        }
        Ok(count)
    }

    /// Fails if a key is there, or twice among those that are to be written.
    fn check_keys(&self, entries: &[(Blob, Blob)]) -> Result<(), SqlError> {
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(entries.len());
        for (key, _) in entries {
            if !seen.insert(key) || self.map().entry_view(self.map().partition_of(key), key, |view| view.is_some()) {
                return Err(self.inserter.maker().duplicate(key));
            }
        }
        Ok(())
    }

    /// Takes out entries that were written, unless others have changed them since.
    fn take_back(&self, entries: &[(Blob, Blob)]) {
        if !self.inserter.fails_on_key() {
            // Which of them were there before is not known.
            return;
        }
        for (key, value) in entries {
            let change = Change::RemoveIfSame { key, expected: value };
            // A key that was locked or changed meanwhile is another's affair.
            let _ = self.map().change(self.map().partition_of(key), Caller::default(), change, |_| ());
        }
    }
}

fn owned(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().map(|value| value.clone().into_owned()).collect()
}

/// The same value, without a copy of its bytes.
fn lent<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::Text(text) => Value::Text(Cow::Borrowed(text)),
        Value::Json(text) => Value::Json(Cow::Borrowed(text)),
        Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
        Value::Object(bytes) => Value::Object(Cow::Borrowed(bytes)),
        other => other.clone(),
    }
}
