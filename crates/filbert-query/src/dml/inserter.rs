//! Adds one row, and handles a key that exists: an error, nothing, or an update of the existing
//! row. The row is written at once ([`Inserter::write`]), or planned as one of the changes that its
//! statement makes together ([`Inserter::plan`]).

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{Blob, Side, Value};
use filbert_dialect::{ConflictTarget, Insert, OnConflict, catalog_of, schema_of};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode};
use filbert_grid::{Caller, Change, Expected, Expiry, PutMode, ReadView, Refused};

use crate::catalog::{Mapping, MappingColumn};
use crate::client_context::ParameterTypes;
use crate::dml::apply::{Outcome, is_passing, outcome};
use crate::dml::expressions::{EXCLUDED, Inputs, RowExpression, RowScope, RowValue};
use crate::dml::literals::is_default;
use crate::dml::pending::{Pending, ROUNDS_IN_PLACE_MAX};
use crate::dml::rows::RowMaker;
use crate::dml::stored::StoredRows;
use crate::dml::targets::assigned_columns;
use crate::execution::Execution;
use crate::plan::session::dialect_of;
use crate::scan::table::MapTable;
use crate::tables::{Mapped, Tables};

/// Writes new rows of a table or a mapping.
pub(crate) struct Inserter {
    maker: RowMaker,
    table: Arc<MapTable>,
    on_key: OnKey,
    /// Whether a row may update another row of the same statement, as in CrateDB.
    updates_own: bool,
}

/// The action for a row with a key that exists.
enum OnKey {
    Fail,
    Overwrite,
    Nothing,
    Update(Box<UpdateThere>),
}

/// `DO UPDATE`.
struct UpdateThere {
    stored: StoredRows,
    /// Columns and their new values; `None` = the column's default.
    sets: Vec<(usize, Option<RowValue>)>,
    condition: Option<RowExpression>,
}

/// Buffers for the bytes of one entry, reused for the next entry.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Scratch {
    /// The key of the last row.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the last row.
    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// The size of the last row's entry in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// The outcome for a row.
#[derive(Debug)]
pub(crate) enum Written {
    /// The row was added.
    Added,
    /// The existing row became this row.
    Updated(Vec<Value<'static>>),
    /// Nothing was changed.
    Nothing,
}

impl Written {
    /// The number of changed rows.
    pub(crate) fn count(&self) -> u64 {
        u64::from(!matches!(self, Written::Nothing))
    }
}

impl Inserter {
    /// Creates the writer of a statement's rows.
    ///
    /// # Errors
    /// The conflict clause cannot be planned, or is not about the key.
    pub(crate) fn new(
        tables: &Tables,
        state: &SessionState,
        insert: &Insert,
        mapped: Mapped,
        types: &ParameterTypes,
    ) -> Result<Self, SqlError> {
        let Mapped { mapping, table } = mapped;
        let grid = tables.grid()?;
        let maker = RowMaker::new(&mapping, grid.schemas(), state, tables.catalog().row_ids())?;
        let on_key = match &insert.on_conflict {
            None if insert.sink => OnKey::Overwrite,
            None => OnKey::Fail,
            Some(on_conflict) => {
                check_target(&mapping, &on_conflict.target)?;
                let name = insert.alias.as_deref().unwrap_or_else(|| schema_of(&insert.table).1);
                let scope = RowScope::of(&mapping, name, true, types)?;
                on_key(&mapping, &table, &scope, on_conflict, state, &maker)?
            }
        };
        let updates_own = state.config_options().catalog.default_catalog == catalog_of(Dialect::Crate);
        Ok(Inserter { maker, table, on_key, updates_own })
    }

    /// The maker of rows.
    pub(crate) fn maker(&self) -> &RowMaker {
        &self.maker
    }

    /// The table that is written.
    pub(crate) fn table(&self) -> &Arc<MapTable> {
        &self.table
    }

    /// Whether an existing key is an error.
    pub(crate) fn fails_on_key(&self) -> bool {
        matches!(self.on_key, OnKey::Fail)
    }

    /// Whether existing rows are overwritten as a whole.
    pub(crate) fn overwrites(&self) -> bool {
        matches!(self.on_key, OnKey::Overwrite)
    }

    /// Whether the outcome for a row depends on the existing row.
    pub(crate) fn looks_first(&self) -> bool {
        matches!(self.on_key, OnKey::Nothing | OnKey::Update(_))
    }

    /// Plans the change of a complete row, as one of several changes that are made together.
    ///
    /// # Errors
    /// Another row has the same key and the statement does not allow that, the existing row cannot
    /// be updated, or there are too many changes.
    pub(crate) fn plan(
        &self,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
        scratch: &mut Scratch,
        pending: &mut Pending,
    ) -> Result<Written, SqlError> {
        let Scratch { key, value } = scratch;
        self.maker.writer().entry_into(row, key, value)?;
        let (key, value) = (key.as_slice(), value.as_slice());
        match &self.on_key {
            OnKey::Fail => match pending.add(key, Expected::Nothing, Some(value))? {
                true => Ok(Written::Added),
                false => Err(self.maker.duplicate(key)),
            },
            OnKey::Overwrite => {
                // Of several rows with the same key, the last one wins.
                if !pending.add(key, Expected::Anything, Some(value))? {
                    pending.take_out(key);
                    pending.add(key, Expected::Anything, Some(value))?;
                }
                Ok(Written::Added)
            }
            OnKey::Nothing if self.found(key, execution.view())?.is_some() => Ok(Written::Nothing),
            OnKey::Nothing => match pending.add(key, Expected::Nothing, Some(value))? {
                true => Ok(Written::Added),
                false => Ok(Written::Nothing),
            },
            OnKey::Update(_) if !self.updates_own && pending.get(key).is_some() => Err(updated_twice()),
            OnKey::Update(update) => {
                if pending.get(key).is_some() {
                    return self.update_own(update, key, row, parameters, execution, pending);
                }
                let Some(old) = self.found(key, execution.view())? else {
                    pending.add(key, Expected::Nothing, Some(value))?;
                    return Ok(Written::Added);
                };
                let Some(new) = self.updated(update, (key, &old), row, parameters, execution)? else {
                    return Ok(Written::Nothing);
                };
                let replacement = self.maker.writer().value(&new)?;
                pending.add(key, Expected::Value(&old), Some(&replacement))?;
                Ok(Written::Updated(new))
            }
        }
    }

    /// Plans the update of a row that the same statement adds or updates.
    fn update_own(
        &self,
        update: &UpdateThere,
        key: &[u8],
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
        pending: &mut Pending,
    ) -> Result<Written, SqlError> {
        let Some(change) = pending.get(key) else { return Ok(Written::Nothing) };
        let old = Blob::from(change.value.unwrap_or_default());
        let expected = owned(change.expected);
        let Some(new) = self.updated(update, (key, &old), row, parameters, execution)? else {
            return Ok(Written::Nothing);
        };
        let replacement = self.maker.writer().value(&new)?;
        pending.take_out(key);
        pending.add(key, expected.as_deref().map_or(Expected::Nothing, Expected::Value), Some(&replacement))?;
        Ok(Written::Updated(new))
    }

    /// The existing value.
    fn found(&self, key: &[u8], view: &ReadView) -> Result<Option<Blob>, SqlError> {
        Ok(self.table.map().value_by(view, key)?)
    }

    /// Writes a complete row by itself. `None` if its key is locked, or its row is changed by
    /// others all the time; nothing was changed then.
    ///
    /// # Errors
    /// The key exists and the statement does not allow that, or the existing row cannot be updated.
    pub(crate) fn write(
        &self,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
        scratch: &mut Scratch,
    ) -> Result<Option<Written>, SqlError> {
        let Scratch { key, value } = scratch;
        self.maker.writer().entry_into(row, key, value)?;
        let (key, value) = (key.as_slice(), value.as_slice());
        let update = match &self.on_key {
            OnKey::Overwrite => return self.write_entry(key, value, PutMode::Set),
            OnKey::Fail | OnKey::Nothing => return self.write_entry(key, value, PutMode::IfAbsent),
            OnKey::Update(update) => update,
        };
        let mut view = Cow::Borrowed(execution.view());
        for _ in 0..ROUNDS_IN_PLACE_MAX {
            let (outcome, written) = match self.found(key, &view)? {
                None => (self.put(key, value, PutMode::IfAbsent)?, Written::Added),
                Some(old) => {
                    let Some(new) = self.updated(update, (key, &old), row, parameters, execution)? else {
                        return Ok(Some(Written::Nothing));
                    };
                    let replacement = self.maker.writer().value(&new)?;
                    let change = Change::ReplaceIfSame { key, expected: &old, value: &replacement };
                    (self.change(change)?, Written::Updated(new))
                }
            };
            match outcome {
                None => return Ok(None),
                Some(Outcome::Made) => return Ok(Some(written)),
                Some(Outcome::Differs) => view = Cow::Owned(self.table.map().view_at_leaders(&view, [key])),
            }
        }
        Ok(None)
    }

    /// Makes the entry of a complete row.
    ///
    /// # Errors
    /// A value cannot be written.
    pub(crate) fn entry(&self, row: &[Value<'_>], scratch: &mut Scratch) -> Result<(), SqlError> {
        self.maker.writer().entry_into(row, &mut scratch.key, &mut scratch.value)
    }

    /// How an entry is put. `None` for a statement that updates existing rows.
    pub(crate) fn put_mode(&self) -> Option<PutMode> {
        match self.on_key {
            OnKey::Overwrite => Some(PutMode::Set),
            OnKey::Fail | OnKey::Nothing => Some(PutMode::IfAbsent),
            OnKey::Update(_) => None,
        }
    }

    /// The outcome for a row by the outcome of its change.
    ///
    /// # Errors
    /// The key exists and the statement does not allow that.
    pub(crate) fn written(&self, key: &[u8], outcome: Outcome) -> Result<Written, SqlError> {
        match outcome {
            Outcome::Made => Ok(Written::Added),
            Outcome::Differs if self.fails_on_key() => Err(self.maker.duplicate(key)),
            Outcome::Differs => Ok(Written::Nothing),
        }
    }

    /// Writes an entry by itself, as [`Inserter::write`] writes a row.
    ///
    /// # Errors
    /// The key exists and the statement does not allow that.
    pub(crate) fn write_entry(&self, key: &[u8], value: &[u8], mode: PutMode) -> Result<Option<Written>, SqlError> {
        self.put(key, value, mode)?.map(|outcome| self.written(key, outcome)).transpose()
    }

    /// The new values of an existing row; `None` if it is not updated.
    fn updated(
        &self,
        update: &UpdateThere,
        (key, old): (&[u8], &[u8]),
        excluded: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<Option<Vec<Value<'static>>>, SqlError> {
        let row = update.stored.read(self.maker.writer(), key, old)?;
        let inputs = Inputs { row: &row, excluded, parameters, execution: Some(execution) };
        if let Some(condition) = &update.condition
            && condition.evaluate(&inputs)? != Value::Boolean(true)
        {
            return Ok(None);
        }
        let mut new = row.clone();
        for (column, value) in &update.sets {
            let value = match value {
                Some(value) => {
                    let found = value.evaluate(&inputs)?;
                    self.maker.convert_field(*column, found, value.is_untyped())?.into_owned()
                }
                None => self.maker.default_value(*column, Some(execution))?,
            };
            if let Some(place) = new.get_mut(*column) {
                *place = value;
            }
        }
        self.maker.check(&mut new, execution)?;
        Ok(Some(new))
    }

    fn put(&self, key: &[u8], value: &[u8], mode: PutMode) -> Result<Option<Outcome>, SqlError> {
        self.change(Change::Put { key, value, expiry: Expiry::DEFAULT, mode })
    }

    /// Makes a change; `None` if its key is locked, or no leader could be reached.
    fn change(&self, change: Change<'_>) -> Result<Option<Outcome>, SqlError> {
        let map = self.table.map();
        let partition = map.partition_of(change.key().unwrap_or_default());
        match map.change(partition, Caller::default(), change, |reply| outcome(&reply)) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Refused::Locked { .. }) => Ok(None),
            Err(Refused::Error(error)) if is_passing(&error) => Ok(None),
            Err(Refused::Error(error)) => Err(error.into()),
        }
    }
}

/// The expected value, if any.
fn owned(expected: Expected<'_>) -> Option<Blob> {
    match expected {
        Expected::Value(value) => Some(Blob::from(value)),
        Expected::Nothing | Expected::Anything => None,
    }
}

/// The error of a statement with two rows of the same key where an existing row is updated.
fn updated_twice() -> SqlError {
    let text = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("21000")
}

/// Fails unless an `ON CONFLICT` is about the key.
fn check_target(mapping: &Mapping, target: &ConflictTarget) -> Result<(), SqlError> {
    let facts = mapping.table.as_ref();
    let is_key = match (target, facts) {
        (ConflictTarget::Any, _) => true,
        (ConflictTarget::Columns(columns), Some(facts)) => {
            columns.len() == facts.primary_key.len() && columns.iter().all(|column| facts.primary_key.contains(column))
        }
        (ConflictTarget::Constraint(name), Some(facts)) => {
            !facts.primary_key.is_empty() && facts.primary_key_name == *name
        }
        (ConflictTarget::Columns(columns), None) => columns.iter().all(|name| {
            let column = mapping.columns.iter().find(|column| column.name == *name);
            column.is_some_and(|column| column.path.side == Side::Key)
        }),
        (ConflictTarget::Constraint(_), None) => false,
    };
    if is_key {
        return Ok(());
    }
    let expected = facts.map(|facts| facts.primary_key.join(", ")).unwrap_or_default();
    let text = format!(
        "there is no unique constraint of {:?} matching the ON CONFLICT specification, expected its primary key ({expected})",
        mapping.name
    );
    Err(parsing_error(text).with_sqlstate("42P10"))
}

/// Whether an assignment is `k = excluded.k`, of a column of the key.
fn is_own_key(mapping: &Mapping, name: &str, expr: &Expr) -> bool {
    let Expr::CompoundIdentifier(parts) = expr else { return false };
    let [relation, column] = parts.as_slice() else { return false };
    let of_key = |column: &MappingColumn| column.name == name && column.path.side == Side::Key;
    relation.value == EXCLUDED && column.value == name && mapping.columns.iter().any(of_key)
}

fn on_key(
    mapping: &Mapping,
    table: &MapTable,
    scope: &RowScope,
    on_conflict: &OnConflict,
    state: &SessionState,
    maker: &RowMaker,
) -> Result<OnKey, SqlError> {
    let Some(assignments) = &on_conflict.update else { return Ok(OnKey::Nothing) };
    // Both rows have the same key. Programs that write upserts assign each column.
    let keeps_key = dialect_of(state) == Dialect::Postgres;
    let is_set = |(name, expr): &&(String, Expr)| !(keeps_key && is_own_key(mapping, name, expr));
    let assignments: Vec<(String, Expr)> = assignments.iter().filter(is_set).cloned().collect();
    let mut sets = Vec::with_capacity(assignments.len());
    for (column, expr) in assigned_columns(mapping, &assignments, false)? {
        // A default may differ from row to row.
        let value = if is_default(expr) { None } else { Some(maker.assigned(column, expr, scope, state)?) };
        sets.push((column, value));
    }
    let condition = match &on_conflict.selection {
        Some(condition) => Some(scope.expression(state, condition)?),
        None => None,
    };
    let stored = StoredRows::of(mapping, table.formats());
    Ok(OnKey::Update(Box::new(UpdateThere { stored, sets, condition })))
}
