//! `UPDATE` and `DELETE` of the rows that a condition finds.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, TableWithJoins};
use filbert_data::{Blob, Side, Value};
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode};
use futures::StreamExt;

use crate::catalog::Mapping;
use crate::dialect::{Delete, Update, schema_of};
use crate::dml::apply::{Changes, Outcome};
use crate::dml::rows::RowMaker;
use crate::dml::targets::assigned_columns;
use crate::dml::{Changed, Changing, Dml, Rows, literals, select};
use crate::error::of_datafusion;
use crate::plan::columns::name_columns;
use crate::plan::planner::expand_views;
use crate::tables::Mapped;

/// How often a statement looks again at entries that were changed while it ran.
const ROUNDS_MAX: usize = 100;

/// What is done with an entry that was found.
enum Rewrite {
    /// Its value becomes this.
    Value(Blob),
    /// Another key and this value take its place.
    Entry(Blob, Blob),
    /// It goes.
    Remove,
}

/// Makes of a row that was found what becomes of it, and the row that `RETURNING` tells of.
type Rewriter<'r> = dyn FnMut(&Rows<'_>, usize) -> Result<(Rewrite, Vec<Value<'static>>), SqlError> + Send + 'r;

/// Which entries a statement is about.
struct Found<'s> {
    query: Query,
    alias: &'s str,
    parameters: &'s [Value<'s>],
}

impl Dml<'_> {
    /// Runs an UPDATE.
    pub(crate) async fn update(&self, update: &Update, parameters: &[Value<'_>]) -> Result<Changed, SqlError> {
        let Mapped { mapping, table } = self.mapped(&update.table)?;
        let alias = update.alias.as_deref().unwrap_or_else(|| schema_of(&update.table).1);
        // CrateDB's keys stay what they are; PostgreSQL's rows may move to another key.
        let moves = self.dialect == Dialect::Postgres;
        let assigned = assigned_columns(&mapping, &update.assignments, moves)?;
        let rows = self.rows(&mapping)?;
        let mut defaults = HashSet::new();
        let (mut columns, mut items) = (Vec::new(), Vec::new());
        let mut moves_keys = false;
        for (index, column) in mapping.columns.iter().enumerate() {
            let new = assigned.iter().find(|(target, _)| *target == index).map(|(_, expr)| *expr);
            // The whole value is written only if it is assigned or all there is.
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
                    expr.clone()
                }
                None => Expr::CompoundIdentifier(vec![quoted(alias), quoted(&column.name)]),
            });
        }
        let query = select::entries(&update.table, alias, &items, update.selection.as_ref())?;
        let query = select::joined(query, &update.from);
        let mut rewrite = |found: &Rows<'_>, at: usize| {
            let mut row = vec![Value::Null; mapping.columns.len()];
            for (item, &target) in columns.iter().enumerate() {
                let value = match defaults.contains(&target) {
                    true => rows.default_value(target, Some(&self.occasion))?,
                    false => {
                        rows.convert_field(target, found.get(item + 2, at)?, found.is_untyped(item + 2))?.into_owned()
                    }
                };
                if let Some(place) = row.get_mut(target) {
                    *place = value;
                }
            }
            rows.check(&mut row, &self.occasion)?;
            let value = rows.writer().value(&row)?;
            let rewrite =
                if moves_keys { Rewrite::Entry(rows.writer().key(&row)?, value) } else { Rewrite::Value(value) };
            Ok((rewrite, row))
        };
        let mut changing = self.begin(&mapping, Some(alias), &update.table, update.returning.as_deref())?;
        let found = Found { query, alias, parameters };
        self.change(found, &update.from, &self.changes(&table), &rows, &mut changing, &mut rewrite).await?;
        changing.end()
    }

    /// Runs a DELETE.
    pub(crate) async fn delete(&self, delete: &Delete, parameters: &[Value<'_>]) -> Result<Changed, SqlError> {
        let Mapped { mapping, table } = self.mapped(&delete.table)?;
        let alias = delete.alias.as_deref().unwrap_or_else(|| schema_of(&delete.table).1);
        let told = if delete.returning.is_some() { told_columns(&mapping) } else { Vec::new() };
        let items: Vec<Expr> = told
            .iter()
            .filter_map(|index| mapping.columns.get(*index))
            .map(|column| Expr::CompoundIdentifier(vec![quoted(alias), quoted(&column.name)]))
            .collect();
        let query = select::entries(&delete.table, alias, &items, delete.selection.as_ref())?;
        let query = select::joined(query, &delete.using);
        let rows = self.rows(&mapping)?;
        let mut rewrite = |found: &Rows<'_>, at: usize| {
            let mut row = vec![Value::Null; mapping.columns.len()];
            for (item, &target) in told.iter().enumerate() {
                if let Some(place) = row.get_mut(target) {
                    *place = found.get(item + 2, at)?.into_owned();
                }
            }
            Ok((Rewrite::Remove, row))
        };
        let mut changing = self.begin(&mapping, Some(alias), &delete.table, delete.returning.as_deref())?;
        let found = Found { query, alias, parameters };
        self.change(found, &delete.using, &self.changes(&table), &rows, &mut changing, &mut rewrite).await?;
        changing.end()
    }

    /// Changes the entries that a query of stored keys and values finds, each as `rewrite` makes of its row.
    async fn change(
        &self,
        found: Found<'_>,
        joined: &[TableWithJoins],
        changes: &Changes<'_>,
        rows: &RowMaker,
        changing: &mut Changing,
        rewrite: &mut Rewriter<'_>,
    ) -> Result<(), SqlError> {
        let Found { mut query, alias, parameters } = found;
        expand_views(self.tables, &mut query)?;
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let reads_first = select::has_subqueries(&query) || !joined.is_empty();
        let mut narrowed = query.clone();
        // A row that is found with several others is changed once.
        let mut done: HashSet<Vec<u8>> = HashSet::new();
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
                let found = Rows::of(&batch);
                for at in 0..batch.num_rows() {
                    let (key, expected) = (found.raw(0, at)?, found.raw(1, at)?);
                    if !joined.is_empty() && done.contains(&key) {
                        continue;
                    }
                    let (rewritten, row) = rewrite(&found, at)?;
                    match changes.rewrite(&key, &expected, &rewritten, rows).await? {
                        Outcome::Made => {
                            changing.change(&row, parameters, &self.occasion)?;
                            if !joined.is_empty() {
                                done.insert(key);
                            }
                        }
                        Outcome::Differs => missed.push(Blob::from(key)),
                    }
                }
            }
            if missed.is_empty() {
                return Ok(());
            }
            narrowed = select::among(&query, alias, &missed);
        }
        let text = format!("some entries were changed by others {ROUNDS_MAX} times while the statement ran");
        Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
    }
}

impl Changes<'_> {
    /// Does with an entry what is to be done with it, if it is still as it was found.
    async fn rewrite(
        &self,
        key: &[u8],
        expected: &[u8],
        rewrite: &Rewrite,
        rows: &RowMaker,
    ) -> Result<Outcome, SqlError> {
        match rewrite {
            Rewrite::Value(value) => self.replace(key, expected, value).await,
            Rewrite::Entry(new, value) if **new == *key => self.replace(key, expected, value).await,
            Rewrite::Remove => self.remove(key, expected).await,
            Rewrite::Entry(new, value) => {
                if self.insert(new, value).await? == Outcome::Differs {
                    return Err(rows.duplicate(new));
                }
                let outcome = self.remove(key, expected).await?;
                if outcome == Outcome::Differs {
                    self.remove(new, value).await?;
                }
                Ok(outcome)
            }
        }
    }
}

/// The columns of rows that `RETURNING` may tell of.
fn told_columns(mapping: &Mapping) -> Vec<usize> {
    let is_told =
        |index: &usize| mapping.columns.get(*index).is_some_and(|column| !column.hidden || mapping.table.is_some());
    (0..mapping.columns.len()).filter(is_told).collect()
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
