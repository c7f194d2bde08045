//! Changes of rows by their keys as short plans: one entry each, of constants, parameters and expressions over the row.

use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{Blob, Value};
use filbert_grid::query::{SqlError, SqlErrorCode, StatementResult};
use filbert_grid::{Caller, Change, Map, Refused};

use crate::cursor::ReadyRows;
use crate::dialect::{Delete, Insert, Parsed, Update, schema_of};
use crate::dml::apply::{Outcome, outcome};
use crate::dml::expressions::{Inputs, RowScope, RowValue};
use crate::dml::inserter::{Inserter, Scratch, Written};
use crate::dml::literals::{constant, is_default, parameter};
use crate::dml::returning::{Returning, Told};
use crate::dml::rows::RowMaker;
use crate::dml::stored::StoredRows;
use crate::dml::targets::{assigned_columns, fit_targets, target_columns};
use crate::scan::access::Operand;
use crate::scan::table::MapTable;
use crate::short::key::Key;
use crate::surroundings::Occasion;
use crate::tables::{Mapped, Tables};

/// Rows that one statement writes in place.
const ROWS_IN_PLACE_MAX: usize = 1_000;
/// How often an entry is read again that others change meanwhile.
const ROUNDS_MAX: usize = 100;

/// A change of entries that needs no planning any more.
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

/// What a change did: rows that were changed; `None` = a key is locked, and nothing was changed.
type Done = Result<Option<u64>, SqlError>;

impl ShortDml {
    /// The short plan of a statement, if it has that shape.
    pub(crate) fn of(tables: &Tables, state: &SessionState, parsed: &Parsed) -> Result<Option<ShortDml>, SqlError> {
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
            Parsed::Insert(insert) => write(tables, state, insert, mapped)?,
            Parsed::Update(update) if update.from.is_empty() => update_by_key(tables, state, update, alias, mapped)?,
            Parsed::Delete(delete) if delete.using.is_empty() => {
                Keyed::of(tables, state, alias, delete.selection.as_ref(), mapped)?.map(What::Delete)
            }
            _ => None,
        };
        let Some(what) = what else { return Ok(None) };
        let returning = parsed.returning().map(|items| Returning::of(state, &mapping, alias, items)).transpose()?;
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

    /// Makes the changes in the caller's thread; `None` if it would have to wait for a locked key. Nothing has been changed then.
    pub(crate) fn run_in_place(
        &self,
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Option<Result<StatementResult, SqlError>> {
        let Some(returning) = &self.returning else {
            let done = self.run(parameters, occasion, &mut |_| Ok(()));
            return done.transpose().map(|count| count.map(StatementResult::Count));
        };
        let mut told: Told = returning.begin();
        let done = self.run(parameters, occasion, &mut |row| returning.tell(&mut told, row, parameters, occasion));
        match done {
            Ok(None) => None,
            Err(error) => Some(Err(error)),
            Ok(Some(_)) => Some(
                returning
                    .end(told)
                    .map(|rows| StatementResult::Rows(Box::new(ReadyRows::new(returning.columns().clone(), rows)))),
            ),
        }
    }

    /// Whether it may be run again if it fails, since nothing was changed then: it changes one row, and tells nothing of it.
    pub(crate) fn fails_whole(&self) -> bool {
        let is_one = match &self.what {
            What::Write { rows, .. } => rows.len() <= 1,
            What::Delete(_) | What::Update { .. } => true,
        };
        is_one && self.returning.is_none()
    }

    /// Whether it means the same with parameters as with the literals in whose place they are: `other` has those.
    pub(crate) fn same_as_with_literals(&self, other: &ShortDml) -> bool {
        let columns = |short: &ShortDml| short.returning.as_ref().map(|returning| returning.columns().clone());
        let computes_alike = match &self.what {
            What::Update { sets, .. } => sets.iter().all(|(_, value)| value.takes_numbers_as_they_are()),
            What::Write { .. } | What::Delete(_) => true,
        };
        computes_alike && columns(self) == columns(other)
    }

    /// What `RETURNING` tells.
    pub(crate) fn returning(&self) -> Option<&Returning> {
        self.returning.as_ref()
    }

    fn run(&self, parameters: &[Value<'_>], occasion: &Occasion, tell: &mut Tell<'_>) -> Done {
        match &self.what {
            What::Write { inserter, targets, rows } => {
                write_rows(inserter, (targets, rows), parameters, occasion, tell)
            }
            What::Delete(keyed) => keyed.delete(parameters, self.returning.is_some(), tell),
            What::Update { keyed, sets } => keyed.update(sets, parameters, occasion, tell),
        }
    }
}

/// Hears of each row that was changed.
type Tell<'t> = dyn FnMut(&[Value<'_>]) -> Result<(), SqlError> + 't;

fn write_rows(
    inserter: &Inserter,
    (targets, rows): (&[usize], &[Vec<Cell>]),
    parameters: &[Value<'_>],
    occasion: &Occasion,
    tell: &mut Tell<'_>,
) -> Done {
    let mut whole = Vec::with_capacity(rows.len());
    for cells in rows {
        whole.push(row(inserter.maker(), targets, cells, parameters, occasion)?);
    }
    // Only the first can be given back as not done: what follows a change cannot start anew.
    if whole.len() > 1 {
        for row in &whole {
            let key = inserter.maker().writer().key(row)?;
            let map = inserter.table().map();
            if map.is_locked(map.partition_of(&key), &key) {
                return Ok(None);
            }
        }
    }
    let mut count = 0;
    let mut scratch = Scratch::default();
    for (done, row) in whole.iter().enumerate() {
        match inserter.write(row, parameters, occasion, &mut scratch)? {
            Some(written) => {
                count += written.count();
                match &written {
                    Written::Added => tell(row)?,
                    Written::Updated(row) => tell(row)?,
                    Written::Nothing => {}
                }
            }
            None if done == 0 => return Ok(None),
            None => {
                let text = format!("a key was locked by a client after {done} rows were written");
                return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03"));
            }
        }
    }
    Ok(Some(count))
}

/// A whole row of values that are given.
fn row<'v>(
    maker: &RowMaker,
    targets: &[usize],
    cells: &'v [Cell],
    parameters: &'v [Value<'v>],
    occasion: &Occasion,
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
    maker.complete(&mut values, &given, occasion)?;
    Ok(values)
}

impl Keyed {
    /// The row of `WHERE <key> = <constant> AND ..`, if the condition says that and nothing else.
    fn of(
        tables: &Tables,
        state: &SessionState,
        alias: &str,
        selection: Option<&Expr>,
        mapped: Mapped,
    ) -> Result<Option<Keyed>, SqlError> {
        let Mapped { mapping, table } = mapped;
        let Some(key) = selection.and_then(|selection| Key::of(&mapping, &table, alias, selection)) else {
            return Ok(None);
        };
        let grid = tables.grid()?;
        let maker = RowMaker::new(&mapping, grid.schemas(), state, tables.catalog().row_ids())?;
        let stored = StoredRows::of(&mapping, table.formats());
        Ok(Some(Keyed { table, maker, stored, key }))
    }

    fn delete(&self, parameters: &[Value<'_>], tells: bool, tell: &mut Tell<'_>) -> Done {
        let Some(key) = self.key.blob(&self.table, &self.maker, parameters)? else { return Ok(Some(0)) };
        if !tells {
            return Ok(self.change(Change::Delete { key: &key })?.map(|done| u64::from(done == Outcome::Made)));
        }
        for _ in 0..ROUNDS_MAX {
            let Some(old) = self.value(&key) else { return Ok(Some(0)) };
            let row = self.stored.read(self.maker.writer(), &key, &old)?;
            match self.change(Change::RemoveIfSame { key: &key, expected: &old })? {
                None => return Ok(None),
                Some(Outcome::Made) => return tell(&row).map(|()| Some(1)),
                Some(Outcome::Differs) => {}
            }
        }
        Err(changed_too_often())
    }

    fn update(
        &self,
        sets: &[(usize, RowValue)],
        parameters: &[Value<'_>],
        occasion: &Occasion,
        tell: &mut Tell<'_>,
    ) -> Done {
        let Some(key) = self.key.blob(&self.table, &self.maker, parameters)? else { return Ok(Some(0)) };
        for _ in 0..ROUNDS_MAX {
            let Some(old) = self.value(&key) else { return Ok(Some(0)) };
            let row = self.stored.read(self.maker.writer(), &key, &old)?;
            let mut new = row.clone();
            let inputs = Inputs { row: &row, excluded: &[], parameters, occasion: Some(occasion) };
            for (target, value) in sets {
                if let Some(place) = new.get_mut(*target) {
                    let computed = value.evaluate(&inputs)?;
                    *place = self.maker.convert_field(*target, computed, value.is_untyped())?.into_owned();
                }
            }
            self.maker.check(&mut new, occasion)?;
            let value = self.maker.writer().value(&new)?;
            match self.change(Change::ReplaceIfSame { key: &key, expected: &old, value: &value })? {
                None => return Ok(None),
                Some(Outcome::Made) => return tell(&new).map(|()| Some(1)),
                Some(Outcome::Differs) => {}
            }
        }
        Err(changed_too_often())
    }

    fn map(&self) -> &Map {
        self.table.map()
    }

    fn value(&self, key: &[u8]) -> Option<Blob> {
        self.map().entry_view(self.map().partition_of(key), key, |view| view.map(|view| Blob::from(view.value)))
    }

    /// Makes a change; `None` if its key is locked.
    fn change(&self, change: Change<'_>) -> Result<Option<Outcome>, SqlError> {
        let partition = self.map().partition_of(change.key().unwrap_or_default());
        match self.map().change(partition, Caller::default(), change, |reply| outcome(&reply)) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Refused::Locked { .. }) => Ok(None),
            Err(Refused::Error(error)) => Err(error.into()),
        }
    }
}

fn changed_too_often() -> SqlError {
    let text = format!("the entry was changed by others {ROUNDS_MAX} times while the statement ran");
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001")
}

fn write(tables: &Tables, state: &SessionState, insert: &Insert, mapped: Mapped) -> Result<Option<What>, SqlError> {
    let Some(values) = insert.values().filter(|rows| rows.len() <= ROWS_IN_PLACE_MAX) else { return Ok(None) };
    let mapping = mapped.mapping.clone();
    let mut targets = target_columns(&mapping, &insert.columns)?;
    fit_targets(&mapping, &insert.columns, &mut targets, values.first().map_or(0, |row| row.len()));
    let inserter = Inserter::new(tables, state, insert, mapped)?;
    let mut rows = Vec::with_capacity(values.len());
    for row in values {
        let row: &[Expr] = row;
        if row.len() != targets.len() {
            // The general way says what is wrong.
            return Ok(None);
        }
        let mut cells = Vec::with_capacity(row.len());
        for (expr, target) in row.iter().zip(&targets) {
            if is_default(expr) {
                cells.push(Cell::Default);
                continue;
            }
            let Some(operand) = operand_of(expr) else { return Ok(None) };
            inserter.maker().check_target(*target)?;
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
    alias: &str,
    mapped: Mapped,
) -> Result<Option<What>, SqlError> {
    let mapping = mapped.mapping.clone();
    let Some(keyed) = Keyed::of(tables, state, alias, update.selection.as_ref(), mapped)? else { return Ok(None) };
    // What cannot be told of the row alone goes the general way, which also says what is wrong.
    let Ok(assigned) = assigned_columns(&mapping, &update.assignments, false) else { return Ok(None) };
    let scope = RowScope::of(&mapping, alias, false)?;
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
pub(super) fn operand_of(expr: &Expr) -> Option<Operand> {
    match parameter(expr) {
        Some(number) => Some(Operand::Parameter(number)),
        None => constant(expr).map(Operand::Constant),
    }
}
