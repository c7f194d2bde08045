//! `UPDATE` and `DELETE` of the rows that satisfy a condition.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, TableWithJoins};
use filbert_data::{Blob, Side, Value};
use filbert_dialect::{Delete, Update, schema_of};
use filbert_functions::error::of_datafusion;
use filbert_grid::query::{Dialect, SqlError};
use filbert_grid::{Expected, Map, threads};
use futures::StreamExt;

use crate::catalog::Mapping;
use crate::dml::assignment::{self, Assigned};
use crate::dml::joined::JoinedColumn;
use crate::dml::pending::{Pending, ROUNDS_MAX, changed_too_often};
use crate::dml::returning::Returning;
use crate::dml::rows::RowMaker;
use crate::dml::targets::assigned_columns;
use crate::dml::{Changed, Dml, Rows, literals, select};
use crate::plan::columns::name_columns;
use crate::plan::scope;
use crate::scan::table::MapTable;
use crate::tables::Mapped;

/// The maximum number of entries that are computed again by their keys. With more, all are computed
/// again.
const NARROWED_MAX: usize = 1_000;

/// The number of columns before the items in the query of entries: the stored key and value.
const STORED_COLUMNS: usize = 2;

/// The change of an entry that was found.
enum Rewrite {
    /// The entry gets this value.
    Value(Blob),
    /// This key and value replace the entry.
    Entry(Blob, Blob),
    /// The entry is removed.
    Remove,
}

/// Computes the change of a row that was found, and the row that `RETURNING` reports.
type Rewriter<'r> = dyn FnMut(&Rows<'_>, usize) -> Result<(Rewrite, Vec<Value<'static>>), SqlError> + Send + 'r;

/// The entries that a statement changes.
struct Found<'s> {
    query: Query,
    alias: &'s str,
    parameters: &'s [Value<'s>],
    /// The columns with typed values, each with the position of its values in the query.
    typed: Vec<(usize, usize)>,
}

impl Dml<'_> {
    /// Runs an UPDATE.
    pub(crate) async fn update(&self, update: &Update, parameters: &[Value<'_>]) -> Result<Changed, SqlError> {
        let Mapped { mapping, table } = self.mapped(&update.table)?;
        let alias = update.alias.as_deref().unwrap_or_else(|| schema_of(&update.table).1);
        // Key columns are immutable in CrateDB; in PostgreSQL a row may get another key.
        let moves = self.dialect == Dialect::Postgres;
        let assigned = assigned_columns(&mapping, &update.assignments, moves)?;
        let rows = self.rows(&mapping)?;
        let mut defaults = HashSet::new();
        let (mut columns, mut items, mut typed) = (Vec::new(), Vec::new(), Vec::new());
        let mut moves_keys = false;
        for (index, column) in mapping.columns.iter().enumerate() {
            let new = assigned.iter().find(|(target, _)| *target == index).map(|(_, expr)| *expr);
            // The whole value is written only if it is assigned, or if it is the only column of the
            // value.
            let hidden_whole = column.hidden && new.is_none() && mapping.table.is_none();
            let of_key = column.path.side == Side::Key;
            // Checks and generated columns of a table may read its key.
            if of_key && mapping.table.is_none() || hidden_whole {
                continue;
            }
            moves_keys |= of_key && new.is_some();
            columns.push(index);
            items.push(match new {
                Some(expr) if literals::is_default(expr) => {
                    defaults.insert(index);
                    Expr::value(datafusion::sql::sqlparser::ast::Value::Null)
                }
                Some(expr) => {
                    rows.check_target(index)?;
                    if !assignment::is_of_any_type(expr) {
                        typed.push((index, items.len() + STORED_COLUMNS));
                    }
                    expr.clone()
                }
                None => Expr::CompoundIdentifier(vec![quoted(alias), quoted(&column.name)]),
            });
        }
        let others = self.joined(update.with.as_ref(), &update.from, update.returning.as_deref()).await?;
        let returning = self.returning(&mapping, Some(alias), &update.table, &others, update.returning.as_deref())?;
        let beside = Beside::of(&others, returning.as_ref(), &mut items);
        let query = select::entries(&update.table, alias, &items, update.selection.as_ref())?;
        let query = select::joined(query, update.with.as_ref(), &update.from);
        let mut rewrite = |found: &Rows<'_>, at: usize| {
            let mut row = vec![Value::Null; mapping.columns.len()];
            for (item, &target) in columns.iter().enumerate() {
                let value = match defaults.contains(&target) {
                    true => rows.default_value(target, Some(&self.execution))?,
                    false => rows
                        .convert_field(
                            target,
                            found.get(item + STORED_COLUMNS, at)?,
                            found.is_untyped(item + STORED_COLUMNS),
                        )?
                        .into_owned(),
                };
                if let Some(place) = row.get_mut(target) {
                    *place = value;
                }
            }
            rows.check(&mut row, &self.execution)?;
            let value = rows.writer().value(&row)?;
            let rewrite =
                if moves_keys { Rewrite::Entry(rows.writer().key(&row)?, value) } else { Rewrite::Value(value) };
            beside.add_to(&mut row, found, at)?;
            Ok((rewrite, row))
        };
        let found = Found { query, alias, parameters, typed };
        self.change(found, &update.from, &table, returning.as_ref(), &rows, &mut rewrite).await
    }

    /// Runs a DELETE.
    pub(crate) async fn delete(&self, delete: &Delete, parameters: &[Value<'_>]) -> Result<Changed, SqlError> {
        let Mapped { mapping, table } = self.mapped(&delete.table)?;
        let alias = delete.alias.as_deref().unwrap_or_else(|| schema_of(&delete.table).1);
        let returned = if delete.returning.is_some() { returned_columns(&mapping) } else { Vec::new() };
        let mut items: Vec<Expr> = returned
            .iter()
            .filter_map(|index| mapping.columns.get(*index))
            .map(|column| Expr::CompoundIdentifier(vec![quoted(alias), quoted(&column.name)]))
            .collect();
        let others = self.joined(delete.with.as_ref(), &delete.using, delete.returning.as_deref()).await?;
        let returning = self.returning(&mapping, Some(alias), &delete.table, &others, delete.returning.as_deref())?;
        let beside = Beside::of(&others, returning.as_ref(), &mut items);
        let query = select::entries(&delete.table, alias, &items, delete.selection.as_ref())?;
        let query = select::joined(query, delete.with.as_ref(), &delete.using);
        let rows = self.rows(&mapping)?;
        let mut rewrite = |found: &Rows<'_>, at: usize| {
            let mut row = vec![Value::Null; mapping.columns.len()];
            for (item, &target) in returned.iter().enumerate() {
                if let Some(place) = row.get_mut(target) {
                    *place = found.get(item + STORED_COLUMNS, at)?.into_owned();
                }
            }
            beside.add_to(&mut row, found, at)?;
            Ok((Rewrite::Remove, row))
        };
        let found = Found { query, alias, parameters, typed: Vec::new() };
        self.change(found, &delete.using, &table, returning.as_ref(), &rows, &mut rewrite).await
    }

    /// Changes the entries that a query of stored keys and values finds. `rewrite` computes each
    /// change.
    async fn change(
        &self,
        found: Found<'_>,
        joined: &[TableWithJoins],
        table: &MapTable,
        returning: Option<&Returning>,
        rows: &RowMaker,
        rewrite: &mut Rewriter<'_>,
    ) -> Result<Changed, SqlError> {
        let Found { mut query, alias, parameters, typed } = found;
        scope::resolve(self.tables, self.client, &mut query)?;
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let map = table.map();
        let mut changing = Changing {
            pending: self.pending(table),
            done: (!joined.is_empty()).then(HashSet::new),
            returned: returning.map(|_| Vec::new()),
            count: 0,
            moves: false,
        };
        let mut claims = map.claims();
        let mut narrowed = query.clone();
        let mut again = None;
        for _ in 0..ROUNDS_MAX {
            let execution = again.as_ref().unwrap_or(&self.execution);
            let assigned = Assigned { maker: rows, typed: &typed };
            let mut stream = self.stream(narrowed, execution, parameters, assigned).await?;
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(|error| of_datafusion(&error))?;
                changing.take(&Rows::of(&batch), rows, rewrite)?;
            }
            let returned = changing.returned.iter().flatten().map(|(_, row)| row.as_slice());
            let returned =
                returning.map(|returning| returning.of_rows(returned, parameters, &self.execution)).transpose()?;
            let differing = changing.pending.make(self.waiting(table), &mut claims).await?;
            if differing.is_empty() {
                return Ok(Changed::of(changing.count, returning, returned));
            }
            if let Some(key) = differing.iter().find(|key| changing.is_new(key)) {
                return Err(rows.duplicate(key));
            }
            again = Some(execution.again(map, differing.iter().map(AsRef::as_ref)));
            // The keys of recomputed entries stay claimed, so nobody changes them once more.
            narrowed = match changing.moves || differing.len() > NARROWED_MAX {
                true => {
                    changing.begin_anew(map);
                    query.clone()
                }
                false => {
                    changing.forget(&differing);
                    select::among(&query, alias, &differing)
                }
            };
        }
        Err(changed_too_often())
    }
}

/// The values of joined tables that `RETURNING` reports beside a row.
struct Beside {
    /// The number of columns of the joined tables.
    width: usize,
    /// The reported columns by number, each with the position of its values in the query.
    places: Vec<(usize, usize)>,
}

impl Beside {
    /// Adds the columns to the items of the query of entries.
    fn of(joined: &[JoinedColumn], returning: Option<&Returning>, items: &mut Vec<Expr>) -> Beside {
        let mut places = Vec::new();
        for &index in returning.map(Returning::joined).unwrap_or_default() {
            if let Some(column) = joined.get(index) {
                places.push((index, items.len() + STORED_COLUMNS));
                items.push(column.expr());
            }
        }
        Beside { width: if places.is_empty() { 0 } else { joined.len() }, places }
    }

    /// Appends the values to a row.
    fn add_to(&self, row: &mut Vec<Value<'static>>, found: &Rows<'_>, at: usize) -> Result<(), SqlError> {
        let own = row.len();
        row.resize(own + self.width, Value::Null);
        for (index, place) in &self.places {
            if let Some(value) = row.get_mut(own + index) {
                *value = found.get(*place, at)?.into_owned();
            }
        }
        Ok(())
    }
}

/// The changes of an UPDATE or a DELETE.
struct Changing {
    pending: Pending,
    /// The keys of the entries found so far, if the query may find an entry several times. The
    /// first time counts.
    done: Option<HashSet<Box<[u8]>>>,
    /// The rows that `RETURNING` reports, each with its entry's key.
    returned: Option<Vec<(Blob, Vec<Value<'static>>)>>,
    count: u64,
    /// Whether a row gets another key.
    moves: bool,
}

impl Changing {
    /// Adds entries that were found.
    fn take(&mut self, found: &Rows<'_>, rows: &RowMaker, rewrite: &mut Rewriter<'_>) -> Result<(), SqlError> {
        for at in 0..found.len() {
            threads::give_way_at(at);
            let (key, old) = (found.raw(0, at)?, found.raw(1, at)?);
            if self.done.as_mut().is_some_and(|done| !done.insert(key.as_slice().into())) {
                continue;
            }
            let (rewritten, row) = rewrite(found, at)?;
            match rewritten {
                Rewrite::Entry(new, value) if *new != *key => {
                    self.moves = true;
                    self.take_away(&key, &old)?;
                    self.put(&new, Expected::Nothing, &value, rows)?;
                }
                Rewrite::Entry(_, value) | Rewrite::Value(value) => {
                    self.put(&key, Expected::Value(&old), &value, rows)?;
                }
                Rewrite::Remove => self.take_away(&key, &old)?,
            }
            self.count += 1;
            if let Some(returned) = &mut self.returned {
                returned.push((Blob::from(key), row));
            }
        }
        Ok(())
    }

    /// Removes the row of a key; another row may have taken its key already.
    fn take_away(&mut self, key: &[u8], old: &[u8]) -> Result<(), SqlError> {
        if !self.pending.add(key, Expected::Value(old), None)?
            && let Some(value) = self.pending.get(key).and_then(|change| change.value.map(Blob::from))
        {
            self.pending.take_out(key);
            self.pending.add(key, Expected::Value(old), Some(&value))?;
        }
        Ok(())
    }

    /// Puts a row at a key; the former row may have left already.
    fn put(&mut self, key: &[u8], expected: Expected<'_>, value: &[u8], rows: &RowMaker) -> Result<(), SqlError> {
        if self.pending.add(key, expected, Some(value))? {
            return Ok(());
        }
        let left = self.pending.get(key).filter(|change| change.value.is_none() && expected == Expected::Nothing);
        let Some(Expected::Value(old)) = left.map(|change| change.expected) else { return Err(rows.duplicate(key)) };
        let old = Blob::from(old);
        self.pending.take_out(key);
        self.pending.add(key, Expected::Value(&old), Some(value))?;
        Ok(())
    }

    /// Whether a row was to move to this key, which had no row.
    fn is_new(&self, key: &[u8]) -> bool {
        self.pending.get(key).is_some_and(|change| change.expected == Expected::Nothing)
    }

    /// Drops the changes of some entries.
    fn forget(&mut self, keys: &[Box<[u8]>]) {
        for key in keys {
            self.pending.take_out(key);
            self.count -= 1;
            if let Some(done) = &mut self.done {
                done.remove(key);
            }
        }
        if let Some(returned) = &mut self.returned {
            let keys: HashSet<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
            returned.retain(|(key, _)| !keys.contains(&**key));
        }
    }

    /// Drops all changes.
    fn begin_anew(&mut self, map: &Map) {
        self.pending.clear(map);
        self.count = 0;
        if let Some(done) = &mut self.done {
            done.clear();
        }
        if let Some(returned) = &mut self.returned {
            returned.clear();
        }
    }
}

/// The columns that `RETURNING` may report.
fn returned_columns(mapping: &Mapping) -> Vec<usize> {
    let is_returned =
        |index: &usize| mapping.columns.get(*index).is_some_and(|column| !column.hidden || mapping.table.is_some());
    (0..mapping.columns.len()).filter(is_returned).collect()
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
