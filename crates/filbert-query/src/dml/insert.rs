//! `INSERT` and `SINK` of the rows of a query.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Value as SqlValue};
use filbert_data::{FieldType, Value};
use filbert_dialect::Insert;
use filbert_functions::error::{of_datafusion, parsing_error};
use filbert_grid::query::{Dialect, SqlError};
use futures::StreamExt;

use crate::dml::adding::Adding;
use crate::dml::assignment::{self, Assigned};
use crate::dml::inserter::Inserter;
use crate::dml::returning::Returning;
use crate::dml::targets::{fit_targets, target_columns};
use crate::dml::{Changed, Dml, Rows, literals};
use crate::plan::columns::name_columns;
use crate::plan::{scope, values};

impl Dml<'_> {
    /// Runs an INSERT or SINK.
    pub(crate) async fn insert(&self, insert: &Insert, parameters: &[Value<'_>]) -> Result<Changed, SqlError> {
        let mapped = self.mapped(&insert.table)?;
        let mapping = mapped.mapping.clone();
        let state = self.sessions.planning_within(self.dialect, &self.execution);
        let inserter = Inserter::new(self.tables, &state, insert, mapped, self.client.types())?;
        let returning =
            self.returning(&mapping, insert.alias.as_deref(), &insert.table, &[], insert.returning.as_deref())?;
        let mut adding = Adding::new(&inserter, self.pending(inserter.table()), returning.is_some());
        let mut targets = target_columns(&mapping, &insert.columns)?;
        let Some(source) = &insert.source else {
            let mut row = vec![Value::Null; mapping.columns.len()];
            let given = vec![false; row.len()];
            inserter.maker().complete(&mut row, &given, &self.execution)?;
            adding.add(&inserter, &row, parameters, &self.execution)?;
            return self.make(adding, &inserter, returning.as_ref(), parameters).await;
        };
        let mut query = (**source).clone();
        let defaults = take_defaults(&mut query);
        quote_numbers(&mut query, self.dialect, &|place| Some(&mapping.columns.get(*targets.get(place)?)?.field_type));
        let mut number = 0;
        for mut query in values::split(query) {
            scope::resolve(self.tables, self.client, &mut query)?;
            name_columns(&mut query, &|name| self.tables.visible_columns(name));
            let open = assignment::of_any_type(&query, targets.len());
            let typed: Vec<(usize, usize)> = std::iter::zip(targets.iter().copied(), 0..)
                .filter(|(_, place)| open.get(*place).is_some_and(|is_open| !is_open))
                .collect();
            let assigned = Assigned { maker: inserter.maker(), typed: &typed };
            let mut stream = self.stream(query, &self.execution, parameters, assigned).await?;
            let width = stream.schema().fields().len();
            fit_targets(&mapping, &insert.columns, &mut targets, width);
            if width != targets.len() {
                return Err(parsing_error(format!(
                    "{} columns of {:?} are to be written and the source has {width}, expected as many",
                    targets.len(),
                    insert.table
                )));
            }
            let is_given = |number: usize| (0..width).map(move |source| (number, source));
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(|error| of_datafusion(&error))?;
                let rows = Rows::of(&batch);
                for at in 0..batch.num_rows() {
                    let mut row = vec![Value::Null; mapping.columns.len()];
                    let mut given = vec![false; row.len()];
                    for ((number, source), &target) in is_given(number).zip(&targets) {
                        if defaults.contains(&(number, source)) {
                            continue;
                        }
                        inserter.maker().check_target(target)?;
                        if let (Some(place), Some(given)) = (row.get_mut(target), given.get_mut(target)) {
                            let value = rows.get(source, at)?;
                            *place = inserter.maker().convert_field(target, value, rows.is_untyped(source))?;
                            *given = true;
                        }
                    }
                    inserter.maker().complete(&mut row, &given, &self.execution)?;
                    adding.add(&inserter, &row, parameters, &self.execution)?;
                    number += 1;
                }
            }
        }
        self.make(adding, &inserter, returning.as_ref(), parameters).await
    }

    /// Makes the changes of all rows.
    async fn make(
        &self,
        adding: Adding,
        inserter: &Inserter,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
    ) -> Result<Changed, SqlError> {
        let waiting = self.waiting(inserter.table());
        let (count, returned) = adding.make(inserter, waiting, returning, parameters, &self.execution).await?;
        Ok(Changed::of(count, returning, returned))
    }
}

/// Puts numbers in quotes if their column of `VALUES` also has string literals, and in PostgreSQL's
/// dialect if they are written to a column of texts. Each is then converted to the type of the
/// target column, and rows with numbers and with texts stay one query. `target` is the type of the
/// column that is written.
fn quote_numbers<'t>(query: &mut Query, dialect: Dialect, target: &dyn Fn(usize) -> Option<&'t FieldType>) {
    let SetExpr::Values(values) = &mut *query.body else { return };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for place in 0..width {
        let is_text = match target(place) {
            Some(FieldType::Varchar | FieldType::Char) => true,
            Some(FieldType::Real | FieldType::Double | FieldType::Decimal(_)) => false,
            _ => continue,
        };
        let has_texts = || {
            let mut items = values.rows.iter().filter_map(|row| row.content.get(place));
            items.any(|item| matches!(literals::constant(item, dialect), Some(Value::Text(_))))
        };
        let is_quoted = is_text && dialect == Dialect::Postgres;
        if !(is_quoted || has_texts()) {
            continue;
        }
        for item in values.rows.iter_mut().filter_map(|row| row.content.get_mut(place)) {
            let text = match literals::constant(item, dialect) {
                Some(Value::Int64(number)) => number.to_string(),
                Some(Value::Decimal(number)) => number.to_plain_string(),
                Some(Value::Float64(number)) => number.to_string(),
                _ => continue,
            };
            *item = Expr::value(SqlValue::SingleQuotedString(text));
        }
    }
}

/// Removes `DEFAULT` keywords from `VALUES`; returns the row and the position of each.
fn take_defaults(query: &mut Query) -> HashSet<(usize, usize)> {
    let mut defaults = HashSet::new();
    if let SetExpr::Values(values) = &mut *query.body {
        for (row, values) in values.rows.iter_mut().enumerate() {
            for (place, expr) in values.iter_mut().enumerate() {
                if literals::is_default(expr) {
                    defaults.insert((row, place));
                    *expr = Expr::value(SqlValue::Null);
                }
            }
        }
    }
    defaults
}
