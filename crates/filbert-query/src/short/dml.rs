//! Short plans that change rows by key, with constants, parameters and expressions over the row.
//! Such a statement changes one entry, or adds several rows together.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::Value;
use filbert_dialect::{Delete, Insert, Parsed, Update, schema_of};
use filbert_grid::query::{Dialect, SqlError, StatementResult};
use filbert_grid::{Caller, Change, Map, Refused};

use crate::client_context::ParameterTypes;
use crate::cursor::ReadyRows;
use crate::dml::adding::{Added, Adding};
use crate::dml::apply::{Outcome, is_passing, outcome};
use crate::dml::expressions::{Inputs, RowScope, RowValue};
use crate::dml::inserter::{Inserter, Scratch};
use crate::dml::literals::{constant, is_default, parameter};
use crate::dml::pending::{Pending, ROUNDS_IN_PLACE_MAX};
use crate::dml::returning::Returning;
use crate::dml::rows::RowMaker;
use crate::dml::stored::StoredRows;
use crate::dml::targets::{assigned_columns, fit_targets, target_columns};
use crate::execution::Execution;
use crate::plan::session::dialect_of;
use crate::scan::access::Operand;
use crate::scan::table::MapTable;
use crate::short::key::{Found, Key};
use crate::tables::{Mapped, Tables};

/// The maximum number of rows that one statement writes in place.
const ROWS_IN_PLACE_MAX: usize = 1_000;

/// A change of entries that needs no further planning.
pub(crate) struct ShortDml {
    what: What,
    returning: Option<Returning>,
}

enum What {
    Write { inserter: Inserter, targets: Vec<usize>, rows: Vec<Vec<Cell>> },
    Delete(Keyed),
    Update { keyed: Keyed, sets: Vec<(usize, RowValue)> },
}

/// One value of a row to be written.
enum Cell {
    Given(Operand),
    /// `DEFAULT`.
    Default,
}

/// A row that is found by its key.
struct Keyed {
    table: Arc<MapTable>,
    maker: RowMaker,
    stored: StoredRows,
    key: Key,
}

/// The result of a change: the number of changed rows, and the rows of `RETURNING`; `None` = a key
/// is locked, not of its type, or changed by others all the time, and nothing was changed.
type Done = Result<Option<Added>, SqlError>;

impl ShortDml {
    /// The short plan of a statement, if its shape allows one.
    pub(crate) fn of(
        tables: &Tables,
        state: &SessionState,
        parsed: &Parsed,
        types: &ParameterTypes,
    ) -> Result<Option<ShortDml>, SqlError> {
        let (name, alias) = match parsed {
            Parsed::Insert(Insert { table, alias, .. })
            | Parsed::Update(Update { table, alias, .. })
            | Parsed::Delete(Delete { table, alias, .. }) => (table, alias),
            _ => return Ok(None),
        };
        let Some(mapped) = tables.find(name)? else { return Err(tables.not_found(name)) };
        let mapping = mapped.mapping.clone();
        let alias = alias.as_deref().unwrap_or_else(|| schema_of(name).1);
        let what = match parsed {
            Parsed::Insert(insert) => write(tables, state, insert, mapped, types)?,
            Parsed::Update(update) if update.from.is_empty() && update.with.is_none() => {
                update_by_key(tables, state, update, (alias, types), mapped)?
            }
            Parsed::Delete(delete) if delete.using.is_empty() && delete.with.is_none() => {
                Keyed::of(tables, state, (alias, types), delete.selection.as_ref(), mapped)?.map(What::Delete)
            }
            _ => None,
        };
        let Some(what) = what else { return Ok(None) };
        let returning =
            parsed.returning().map(|items| Returning::of(state, &mapping, alias, &[], items, types)).transpose()?;
        Ok(Some(ShortDml { what, returning }))
    }

    /// One line for EXPLAIN.
    pub(crate) fn describe(&self) -> String {
        let (what, table, rows) = match &self.what {
            What::Write { inserter, rows, .. } if inserter.overwrites() => ("ShortSink", inserter.table(), rows.len()),
            What::Write { inserter, rows, .. } => ("ShortInsert", inserter.table(), rows.len()),
            What::Delete(keyed) => ("ShortDelete", &keyed.table, 1),
            What::Update { keyed, .. } => ("ShortUpdate", &keyed.table, 1),
        };
        format!("{what}: map={}, access=one key, rows={rows}", table.name())
    }

    /// Makes the changes on the caller's thread. `None` if it would have to wait for a locked key,
    /// has a key that is not of its type, or a row that others change all the time; nothing was
    /// changed then.
    pub(crate) fn run_in_place(
        &self,
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Option<Result<StatementResult, SqlError>> {
        let done = self.run(parameters, execution).transpose()?;
        Some(done.map(|(count, returned)| match (&self.returning, returned) {
            (Some(returning), Some(returned)) => {
                StatementResult::Rows(Box::new(ReadyRows::new(returning.columns().clone(), returned)))
            }
            _ => StatementResult::Count(count),
        }))
    }

    /// Whether this plan with parameters is equivalent to `other`, which has literals in their
    /// place.
    pub(crate) fn same_as_with_literals(&self, other: &ShortDml) -> bool {
        let columns = |short: &ShortDml| short.returning.as_ref().map(|returning| returning.columns().clone());
        let computes_alike = match &self.what {
            What::Update { sets, .. } => sets.iter().all(|(_, value)| value.takes_numbers_as_they_are()),
            What::Write { .. } | What::Delete(_) => true,
        };
        computes_alike && columns(self) == columns(other)
    }

    /// The `RETURNING` clause.
    pub(crate) fn returning(&self) -> Option<&Returning> {
        self.returning.as_ref()
    }

    fn run(&self, parameters: &[Value<'_>], execution: &Execution) -> Done {
        let run = Run { returning: self.returning.as_ref(), parameters, execution };
        match &self.what {
            What::Write { inserter, targets, rows } => run.write_rows(inserter, targets, rows),
            What::Delete(keyed) => run.delete(keyed),
            What::Update { keyed, sets } => run.update(keyed, sets),
        }
    }
}

/// One run of a short plan.
struct Run<'r> {
    returning: Option<&'r Returning>,
    parameters: &'r [Value<'r>],
    execution: &'r Execution,
}

impl Run<'_> {
    /// The rows of `RETURNING` for rows that are about to be changed.
    fn returned_rows(&self, rows: &[&[Value<'static>]]) -> Result<Option<RecordBatch>, SqlError> {
        let rows = rows.iter().copied();
        self.returning.map(|returning| returning.of_rows(rows, self.parameters, self.execution)).transpose()
    }

    /// The result for no rows.
    fn nothing(&self) -> Done {
        Ok(Some((0, self.returned_rows(&[])?)))
    }

    fn write_rows(&self, inserter: &Inserter, targets: &[usize], rows: &[Vec<Cell>]) -> Done {
        let of_cells = |cells| row(inserter.maker(), targets, cells, self.parameters, self.execution);
        if let ([cells], None) = (rows, self.returning) {
            let written =
                inserter.write(&of_cells(cells)?, self.parameters, self.execution, &mut Scratch::default())?;
            return Ok(written.map(|written| (written.count(), None)));
        }
        let pending = Pending::new(inserter.table().map(), None);
        let mut adding = Adding::new(inserter, pending, self.returning.is_some());
        for cells in rows {
            adding.add(inserter, &of_cells(cells)?, self.parameters, self.execution)?;
        }
        adding.make_in_place(inserter, self.returning, self.parameters, self.execution)
    }

    fn delete(&self, keyed: &Keyed) -> Done {
        let key = match keyed.find(self.parameters)? {
            Found::Key(key) => key,
            Found::NoRow => return self.nothing(),
            Found::NotOfType => return Ok(None),
        };
        if self.returning.is_none() {
            let done = keyed.change(Change::Delete { key: &key })?;
            return Ok(done.map(|done| (u64::from(done == Outcome::Made), None)));
        }
        let mut view = Cow::Borrowed(self.execution.view());
        for _ in 0..ROUNDS_IN_PLACE_MAX {
            let Some(old) = keyed.map().value_by(&view, &key)? else { return self.nothing() };
            let row = keyed.stored.read(keyed.maker.writer(), &key, &old)?;
            let returned = self.returned_rows(&[&row])?;
            match keyed.change(Change::RemoveIfSame { key: &key, expected: &old })? {
                None => return Ok(None),
                Some(Outcome::Made) => return Ok(Some((1, returned))),
                Some(Outcome::Differs) => view = Cow::Owned(keyed.map().view_at_leaders(&view, [&*key])),
            }
        }
        Ok(None)
    }

    fn update(&self, keyed: &Keyed, sets: &[(usize, RowValue)]) -> Done {
        let key = match keyed.find(self.parameters)? {
            Found::Key(key) => key,
            Found::NoRow => return self.nothing(),
            Found::NotOfType => return Ok(None),
        };
        let mut view = Cow::Borrowed(self.execution.view());
        for _ in 0..ROUNDS_IN_PLACE_MAX {
            let Some(old) = keyed.map().value_by(&view, &key)? else { return self.nothing() };
            let row = keyed.stored.read(keyed.maker.writer(), &key, &old)?;
            let mut new = row.clone();
            let inputs =
                Inputs { row: &row, excluded: &[], parameters: self.parameters, execution: Some(self.execution) };
            for (target, value) in sets {
                if let Some(place) = new.get_mut(*target) {
                    let computed = value.evaluate(&inputs)?;
                    *place = keyed.maker.convert_field(*target, computed, value.is_untyped())?.into_owned();
                }
            }
            keyed.maker.check(&mut new, self.execution)?;
            let value = keyed.maker.writer().value(&new)?;
            let returned = self.returned_rows(&[&new])?;
            match keyed.change(Change::ReplaceIfSame { key: &key, expected: &old, value: &value })? {
                None => return Ok(None),
                Some(Outcome::Made) => return Ok(Some((1, returned))),
                Some(Outcome::Differs) => view = Cow::Owned(keyed.map().view_at_leaders(&view, [&*key])),
            }
        }
        Ok(None)
    }
}

/// A complete row of given values.
fn row<'v>(
    maker: &RowMaker,
    targets: &[usize],
    cells: &'v [Cell],
    parameters: &'v [Value<'v>],
    execution: &Execution,
) -> Result<Vec<Value<'v>>, SqlError> {
    let mut values = vec![Value::Null; maker.mapping().columns.len()];
    let mut given = vec![false; values.len()];
    for (cell, &target) in cells.iter().zip(targets) {
        let Cell::Given(operand) = cell else { continue };
        if let (Some(place), Some(given)) = (values.get_mut(target), given.get_mut(target)) {
            *place = maker.convert(target, operand.value(parameters)?.clone())?;
            *given = true;
        }
    }
    maker.complete(&mut values, &given, execution)?;
    Ok(values)
}

impl Keyed {
    /// Finds the key for the values of the parameters.
    fn find(&self, parameters: &[Value<'_>]) -> Result<Found, SqlError> {
        self.key.find(&self.table, &self.maker, parameters)
    }

    /// The row of `WHERE <key> = <constant> AND ..`, if the condition has exactly this form.
    fn of(
        tables: &Tables,
        state: &SessionState,
        (alias, types): (&str, &ParameterTypes),
        selection: Option<&Expr>,
        mapped: Mapped,
    ) -> Result<Option<Keyed>, SqlError> {
        let Mapped { mapping, table } = mapped;
        let dialect = dialect_of(state);
        let key = selection.and_then(|selection| Key::of(&mapping, &table, (alias, types), selection, dialect));
        let Some(key) = key else { return Ok(None) };
        let grid = tables.grid()?;
        let maker = RowMaker::new(&mapping, grid.schemas(), state, tables.catalog().row_ids())?;
        let stored = StoredRows::of(&mapping, table.formats());
        Ok(Some(Keyed { table, maker, stored, key }))
    }

    fn map(&self) -> &Map {
        self.table.map()
    }

    /// Makes a change; `None` if its key is locked, or no leader could be reached.
    fn change(&self, change: Change<'_>) -> Result<Option<Outcome>, SqlError> {
        let partition = self.map().partition_of(change.key().unwrap_or_default());
        match self.map().change(partition, Caller::default(), change, |reply| outcome(&reply)) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Refused::Locked { .. }) => Ok(None),
            Err(Refused::Error(error)) if is_passing(&error) => Ok(None),
            Err(Refused::Error(error)) => Err(error.into()),
        }
    }
}

fn write(
    tables: &Tables,
    state: &SessionState,
    insert: &Insert,
    mapped: Mapped,
    types: &ParameterTypes,
) -> Result<Option<What>, SqlError> {
    let Some(values) = insert.values().filter(|rows| rows.len() <= ROWS_IN_PLACE_MAX) else { return Ok(None) };
    let mapping = mapped.mapping.clone();
    let mut targets = target_columns(&mapping, &insert.columns)?;
    fit_targets(&mapping, &insert.columns, &mut targets, values.first().map_or(0, |row| row.len()));
    let inserter = Inserter::new(tables, state, insert, mapped, types)?;
    let mut rows = Vec::with_capacity(values.len());
    for row in values {
        let row: &[Expr] = row;
        if row.len() != targets.len() {
            // The general plan reports the error.
            return Ok(None);
        }
        let mut cells = Vec::with_capacity(row.len());
        for (expr, target) in row.iter().zip(&targets) {
            if is_default(expr) {
                cells.push(Cell::Default);
                continue;
            }
            let Some(operand) = operand_of(expr, dialect_of(state)) else { return Ok(None) };
            inserter.maker().check_target(*target)?;
            if let Operand::Constant(value) = &operand {
                inserter.maker().check_constant(*target, value)?;
            }
            cells.push(Cell::Given(operand));
        }
        rows.push(cells);
    }
    Ok(Some(What::Write { inserter, targets, rows }))
}

fn update_by_key(
    tables: &Tables,
    state: &SessionState,
    update: &Update,
    (alias, types): (&str, &ParameterTypes),
    mapped: Mapped,
) -> Result<Option<What>, SqlError> {
    let mapping = mapped.mapping.clone();
    let of_key = Keyed::of(tables, state, (alias, types), update.selection.as_ref(), mapped)?;
    let Some(keyed) = of_key else { return Ok(None) };
    // The general plan handles conditions that the row alone does not decide, and reports errors.
    let Ok(assigned) = assigned_columns(&mapping, &update.assignments, false) else { return Ok(None) };
    let scope = RowScope::of(&mapping, alias, false, types)?;
    let mut sets = Vec::with_capacity(assigned.len());
    for (target, expr) in assigned {
        let is_dynamic_default = is_default(expr);
        let is_whole = mapping.columns.get(target).is_none_or(|column| column.hidden);
        match keyed.maker.assigned(target, expr, &scope, state) {
            Ok(value) if !is_dynamic_default && !is_whole => sets.push((target, value)),
            _ => return Ok(None),
        }
    }
    Ok(Some(What::Update { keyed, sets }))
}

/// A constant or a parameter.
pub(super) fn operand_of(expr: &Expr, dialect: Dialect) -> Option<Operand> {
    match parameter(expr) {
        Some(number) => Some(Operand::Parameter(number)),
        None => constant(expr, dialect).map(Operand::Constant),
    }
}
