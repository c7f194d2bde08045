//! Turns rows into entries: converts values, fills in defaults, checks constraints, then writes an
//! entry.
//!
//! ```text
//!  values ─ convert ─► row ─ complete ─► EntryWriter ─► key, value
//! ```
//!
//! The step `complete` adds the row id, defaults and generated columns, and checks NOT NULL and
//! CHECK.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, FunctionArguments};
use filbert_data::dates::Zone;
use filbert_data::{Blob, FieldReader, FieldType, Formats, Side, Value};
use filbert_dialect::DeclaredType;
use filbert_functions::error::data_error;
use filbert_functions::types::DECIMAL_SCALE;
use filbert_functions::{
    bytes_of_text, canonical_key, cast_to_text, fit, literals, may_be_timestamp, numbers, timestamp_of_column,
    truth_of, value_of_field, zone_of_changes,
};
use filbert_grid::Schemas;
use filbert_grid::query::{Dialect, SqlError, Violated};
use uuid::Uuid;

use crate::catalog::{Mapping, MappingColumn, ROW_ID, RowIds, Sequence};
use crate::dml::assignment;
use crate::dml::expressions::{Inputs, RowExpression, RowScope, RowValue};
use crate::dml::literals::{constant, is_default};
use crate::dml::writer::EntryWriter;
use crate::execution::Execution;
use crate::plan::session::dialect_of;

/// The maximum size of a value in the description of a row, in bytes.
const SHOWN_BYTES_MAX: usize = 64;

/// Makes entries from rows.
pub(crate) struct RowMaker {
    mapping: Arc<Mapping>,
    writer: EntryWriter,
    /// For tables: one rule for each column.
    rules: Vec<ColumnRule>,
    generated: Vec<(usize, RowExpression)>,
    checks: Vec<(String, RowExpression)>,
    row_ids: Arc<RowIds>,
    schemas: Arc<Schemas>,
    /// The time zone of timestamps without one, if dates are parsed as in PostgreSQL.
    zone: Option<Zone>,
    /// Whether numbers are cast to the types of their columns as in PostgreSQL.
    rounds: bool,
}

/// The requirements of a table's column on its values.
struct ColumnRule {
    not_null: bool,
    /// The stored type, if it is an array.
    array: Option<FieldType>,
    /// The declared type, if it restricts values beyond the stored type.
    declared: Option<DeclaredType>,
    default: DefaultValue,
    /// Whether the column is in the primary key.
    is_key: bool,
    is_generated: bool,
    /// Whether statements may not set the column, because its identity is `ALWAYS`.
    counts_always: bool,
}

/// The side of the decimal point where a number has more digits than a `numeric` without a declared
/// scale can have.
fn place_beyond(number: &BigDecimal) -> Option<&'static str> {
    let number = number.normalized();
    let behind = number.fractional_digit_count();
    let in_front = i64::try_from(number.digits()).unwrap_or(i64::MAX).saturating_sub(behind);
    match i64::from(DECIMAL_SCALE) {
        most if behind > most => Some("behind"),
        most if in_front > most => Some("in front of"),
        _ => None,
    }
}

/// The default of a column.
enum DefaultValue {
    /// A value of the column.
    Constant(Value<'static>),
    /// The next value of a sequence.
    Next(Arc<Sequence>),
    /// The row id of a table without a primary key.
    RowId,
    /// The start time of the transaction.
    Now,
    /// The date of the start of the transaction.
    Today,
    RandomUuid,
    Computed(RowExpression),
}

impl RowMaker {
    /// Creates the maker of a mapping's entries. Registers the schemas of its Compact classes.
    ///
    /// # Errors
    /// A declared expression cannot be planned, or a format cannot be written.
    pub(crate) fn new(
        mapping: &Arc<Mapping>,
        schemas: &Arc<Schemas>,
        state: &SessionState,
        row_ids: &Arc<RowIds>,
    ) -> Result<RowMaker, SqlError> {
        let writer = EntryWriter::new(mapping, schemas)?;
        let (mut rules, mut generated, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(facts) = &mapping.table {
            let scope = RowScope::of(mapping, filbert_dialect::schema_of(&mapping.name).1, false, &[])?;
            for (index, (column, facts)) in mapping.columns.iter().zip(&facts.columns).enumerate() {
                if let Some(expression) = &facts.generated {
                    generated.push((index, scope.expression(state, &expression.expr)?));
                }
                let default = match (&facts.identity, &facts.default) {
                    (Some(identity), _) => DefaultValue::Next(identity.sequence.clone()),
                    (None, Some(expression)) => default_of(&expression.expr, mapping, index, &scope, state)?,
                    (None, None) if column.hidden && column.name == ROW_ID => DefaultValue::RowId,
                    (None, None) => DefaultValue::Constant(Value::Null),
                };
                rules.push(ColumnRule {
                    not_null: facts.not_null,
                    array: matches!(column.field_type, FieldType::Array(_)).then(|| column.field_type.clone()),
                    declared: (!facts.declared.is_free()).then(|| facts.declared.clone()),
                    default,
                    is_key: column.path.side == Side::Key,
                    is_generated: facts.generated.is_some(),
                    counts_always: facts.identity.as_ref().is_some_and(|identity| identity.always),
                });
            }
            for check in &facts.checks {
                checks.push((check.name.clone(), scope.expression(state, &check.condition.expr)?));
            }
        }
        let mut maker = RowMaker {
            mapping: mapping.clone(),
            writer,
            rules,
            generated,
            checks,
            row_ids: row_ids.clone(),
            schemas: schemas.clone(),
            zone: zone_of_changes(state.config_options()),
            rounds: dialect_of(state) == Dialect::Postgres,
        };
        for column in 0..maker.rules.len() {
            let value = match maker.rules.get(column).map(|rule| &rule.default) {
                Some(DefaultValue::Constant(value)) if !value.is_null() => value.clone(),
                _ => continue,
            };
            let value = maker.convert(column, value)?;
            if let Some(rule) = maker.rules.get_mut(column) {
                rule.default = DefaultValue::Constant(value);
            }
        }
        Ok(maker)
    }

    /// Whether numbers are rounded to the types of their columns, and values cast to texts, as in
    /// PostgreSQL.
    pub(crate) fn rounds(&self) -> bool {
        self.rounds
    }

    /// The mapping of the rows.
    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The writer of entries.
    pub(crate) fn writer(&self) -> &EntryWriter {
        &self.writer
    }

    /// Whether the column is computed from others.
    pub(crate) fn is_generated(&self, column: usize) -> bool {
        self.rules.get(column).is_some_and(|rule| rule.is_generated)
    }

    /// Fails if rows of COPY may not have a value for this column.
    pub(crate) fn check_copied(&self, column: usize) -> Result<(), SqlError> {
        if !self.is_generated(column) {
            return Ok(());
        }
        let text = format!("column {:?} is generated: COPY does not read or write it", self.column_name(column));
        Err(data_error(text).with_sqlstate("42P10"))
    }

    /// Fails if statements may not set this column.
    pub(crate) fn check_target(&self, column: usize) -> Result<(), SqlError> {
        let Some(rule) = self.rules.get(column) else { return Ok(()) };
        let name = self.column_name(column);
        if rule.is_generated {
            let text = format!("column {name:?} is generated: a value cannot be given to it, but DEFAULT can");
            return Err(data_error(text).with_sqlstate("428C9"));
        }
        if rule.counts_always {
            let text = format!("column {name:?} is GENERATED ALWAYS AS IDENTITY: a value cannot be given to it");
            return Err(data_error(text).with_sqlstate("428C9"));
        }
        Ok(())
    }

    /// Fails if a column does not accept values of a field. Dialects other than PostgreSQL convert
    /// at run time where they can.
    pub(crate) fn check_type(&self, column: usize, source: &Field) -> Result<(), SqlError> {
        if self.rounds { assignment::check(&self.mapping, column, source) } else { Ok(()) }
    }

    /// Fails if a column does not accept a literal. A text in quotes and NULL are of any type.
    pub(crate) fn check_constant(&self, column: usize, value: &Value<'_>) -> Result<(), SqlError> {
        let data_type = match value {
            Value::Int64(_) => DataType::Int64,
            Value::Decimal(_) => DataType::Decimal128(38, 0),
            Value::Float64(_) => DataType::Float64,
            Value::Boolean(_) => DataType::Boolean,
            _ => return Ok(()),
        };
        self.check_type(column, &Field::new("", data_type, true))
    }

    /// Whether values of a field are cast to a text column as in PostgreSQL.
    pub(crate) fn becomes_text(&self, column: usize, source: &Field) -> bool {
        self.rounds && assignment::becomes_text(&self.mapping, column, source)
    }

    /// Plans the value that a column is set to. `DEFAULT` is resolved here where that is possible
    /// before the statement runs.
    pub(crate) fn assigned(
        &self,
        column: usize,
        expr: &Expr,
        scope: &RowScope,
        state: &SessionState,
    ) -> Result<RowValue, SqlError> {
        if is_default(expr) {
            return Ok(RowValue::Constant(self.default_value(column, None)?));
        }
        self.check_target(column)?;
        let value = scope.value(state, expr)?;
        if let RowValue::Constant(constant) = &value {
            self.check_constant(column, constant)?;
        }
        let Some(field) = scope.field(&value) else { return Ok(value) };
        self.check_type(column, field)?;
        if self.becomes_text(column, field) {
            return scope.value(state, &assignment::as_text(expr));
        }
        Ok(value)
    }

    /// Converts a value to its column's type.
    #[inline]
    pub(crate) fn convert<'v>(&self, column: usize, value: Value<'v>) -> Result<Value<'v>, SqlError> {
        let value = match (&self.zone, self.mapping.columns.get(column)) {
            (Some(zone), Some(to)) if self.is_cast_to_text(to, &value) => {
                Value::Text(cast_to_text(&value, zone).into())
            }
            (Some(zone), Some(to)) if may_be_timestamp(&value) => timestamp_of_column(value, &to.field_type, zone)?,
            _ => value,
        };
        let Some(rule) = self.rules.get(column) else { return self.writer.convert(column, value) };
        let value = match value {
            number @ (Value::Decimal(_) | Value::Float64(_) | Value::Float32(_)) => self.number(column, number)?,
            Value::Text(text) if self.rounds => self.text(column, text)?,
            value => value,
        };
        let value = match &rule.array {
            None => self.writer.convert(column, value)?,
            Some(field_type) => {
                let value = if self.rounds { self.items(value, field_type)? } else { value };
                literals::convert(value, field_type, rule.declared.as_ref(), self.zone.as_ref()).map_err(|error| {
                    SqlError { message: format!("column {:?}: {}", self.column_name(column), error.message), ..error }
                })?
            }
        };
        let value = match &rule.declared {
            Some(declared) => fit(declared, self.column_name(column), value)?,
            None => value,
        };
        Ok(if rule.is_key { canonical_key(value) } else { value })
    }

    /// Converts the elements of an array to their column's type, as PostgreSQL assigns single
    /// values.
    fn items<'v>(&self, value: Value<'v>, to: &FieldType) -> Result<Value<'v>, SqlError> {
        let item = if let FieldType::Array(item) = to { item } else { to };
        Ok(match (value, &self.zone) {
            (Value::Array(items), _) => {
                Value::Array(items.into_iter().map(|value| self.items(value, item)).collect::<Result<_, _>>()?)
            }
            (text @ (Value::Text(_) | Value::Null), _) => text,
            (value, Some(zone)) if *to == FieldType::Varchar => Value::Text(cast_to_text(&value, zone).into()),
            (number @ (Value::Decimal(_) | Value::Float64(_) | Value::Float32(_)), _) => numbers::assigned(number, to)?,
            (value, _) => value,
        })
    }

    /// Whether a value is cast to the type of a table's column, `text`, as in PostgreSQL.
    #[inline]
    fn is_cast_to_text(&self, column: &MappingColumn, value: &Value<'_>) -> bool {
        column.field_type == FieldType::Varchar
            && !matches!(value, Value::Text(_) | Value::Null)
            && self.mapping.table.is_some()
    }

    /// Parses a text for its column, for types with more text formats than in other dialects.
    fn text<'v>(&self, column: usize, text: Cow<'v, str>) -> Result<Value<'v>, SqlError> {
        Ok(match self.mapping.columns.get(column).map(|column| &column.field_type) {
            Some(FieldType::Boolean) => truth_of(&text).map_or(Value::Text(text), Value::Boolean),
            Some(FieldType::Binary) => Value::Bytes(bytes_of_text(&text)?.into()),
            Some(field_type @ (FieldType::Real | FieldType::Double)) => {
                numbers::check_range(&text, field_type)?;
                Value::Text(text)
            }
            _ => Value::Text(text),
        })
    }

    /// Converts a number with a fraction to its column's type: rounded in PostgreSQL's dialect, and
    /// rejected in others if digits would be lost.
    fn number<'v>(&self, column: usize, number: Value<'v>) -> Result<Value<'v>, SqlError> {
        let Some(field_type) = self.mapping.columns.get(column).map(|column| &column.field_type) else {
            return Ok(number);
        };
        let number = if self.rounds { numbers::assigned(number, field_type)? } else { number };
        if let (Value::Decimal(digits), FieldType::Decimal(None)) = (&number, field_type)
            && let Some(place) = place_beyond(digits)
        {
            let text = format!(
                "column {:?}: a number has more than {DECIMAL_SCALE} digits {place} the point, which is what numeric can have",
                self.column_name(column)
            );
            return Err(data_error(text).with_sqlstate("22003"));
        }
        Ok(number)
    }

    /// Converts a value that may belong to an untyped field to its column's type.
    pub(crate) fn convert_field<'v>(
        &self,
        column: usize,
        value: Value<'v>,
        is_untyped: bool,
    ) -> Result<Value<'v>, SqlError> {
        let value = match (value, self.mapping.columns.get(column)) {
            (Value::Json(document), Some(column)) if is_untyped => value_of_field(&document, &column.field_type),
            (value, _) => value,
        };
        self.convert(column, value)
    }

    /// The default value of a column.
    pub(crate) fn default_value(
        &self,
        column: usize,
        execution: Option<&Execution>,
    ) -> Result<Value<'static>, SqlError> {
        let now = || execution.map_or_else(Utc::now, Execution::transaction_began);
        let Some(rule) = self.rules.get(column) else { return Ok(Value::Null) };
        let value = match &rule.default {
            DefaultValue::Constant(value) => return Ok(value.clone()),
            DefaultValue::Next(sequence) => Value::Int64(sequence.next()?),
            DefaultValue::RowId => return Ok(Value::Int64(self.row_ids.next())),
            DefaultValue::Now => Value::TimestampTz(now().fixed_offset()),
            DefaultValue::Today => Value::Date(self.date_at(now())),
            DefaultValue::RandomUuid => Value::Uuid(Uuid::new_v4()),
            DefaultValue::Computed(expression) => {
                let value = expression.evaluate(&Inputs { execution, ..Inputs::default() })?;
                return self.convert_field(column, value, expression.is_untyped());
            }
        };
        self.convert(column, value)
    }

    /// The date in the session's time zone.
    fn date_at(&self, now: DateTime<Utc>) -> NaiveDate {
        let seconds = self.zone.as_ref().map_or(0, |zone| zone.offset_at(now.timestamp_micros()));
        let local = now.naive_utc().checked_add_signed(TimeDelta::seconds(i64::from(seconds)));
        local.unwrap_or_else(|| now.naive_utc()).date()
    }

    /// Fills in the missing values of a new row. `given` says which columns have a value.
    pub(crate) fn complete(
        &self,
        row: &mut [Value<'_>],
        given: &[bool],
        execution: &Execution,
    ) -> Result<(), SqlError> {
        for (index, given) in given.iter().enumerate() {
            if !given && let Some(place) = row.get_mut(index) {
                *place = self.default_value(index, Some(execution))?;
            }
        }
        self.check(row, execution)
    }

    /// Computes generated columns and checks constraints of a complete row.
    pub(crate) fn check(&self, row: &mut [Value<'_>], execution: &Execution) -> Result<(), SqlError> {
        for (index, expression) in &self.generated {
            let value = expression.evaluate(&Inputs::row(row, execution))?;
            let value = self.convert_field(*index, value, expression.is_untyped())?;
            if let Some(place) = row.get_mut(*index) {
                *place = value;
            }
        }
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.not_null && row.get(index).is_none_or(Value::is_null) {
                let column = self.column_name(index);
                let text = format!(
                    "null value in column {column:?} of relation {:?} violates not-null constraint",
                    self.mapping.name
                );
                let violated = Violated { column: Some(column.to_owned()), ..self.violated(self.shown_row(row)) };
                return Err(data_error(text).with_sqlstate("23502").violating(violated));
            }
        }
        for (name, condition) in &self.checks {
            if condition.evaluate(&Inputs::row(row, execution))? == Value::Boolean(false) {
                let text = format!("new row for relation {:?} violates check constraint {name:?}", self.mapping.name);
                let violated = Violated { constraint: Some(name.clone()), ..self.violated(self.shown_row(row)) };
                return Err(data_error(text).with_sqlstate("23514").violating(violated));
            }
        }
        Ok(())
    }

    /// The entry of a row: its key and its value.
    pub(crate) fn entry(&self, row: &[Value<'_>]) -> Result<(Blob, Blob), SqlError> {
        Ok((self.writer.key(row)?, self.writer.value(row)?))
    }

    /// The error of a row with a key that exists.
    pub(crate) fn duplicate(&self, key: &[u8]) -> SqlError {
        let Some(facts) = &self.mapping.table else { return super::apply::duplicate_key() };
        let of_key = |name: &String| self.mapping.columns.iter().find(|column| column.name == *name);
        let paths = facts.primary_key.iter().filter_map(|name| Some(of_key(name)?.path.clone())).collect();
        let formats = Formats { schemas: self.schemas.clone(), key_layout: None, value_layout: None };
        let mut values = Vec::new();
        // Unreadable values are omitted.
        let _ = FieldReader::new(paths, formats).read(key, &[], &mut |_, value| values.push(self.shown(&value)));
        let of_key = format!("ey ({})=({}) already exists", facts.primary_key.join(", "), values.join(", "));
        let name = &facts.primary_key_name;
        let text = format!("duplicate key value violates unique constraint {name:?}");
        // PostgreSQL tells the key apart from the message.
        let text = if self.rounds { text } else { format!("{text}: k{of_key}") };
        let violated = Violated { constraint: Some(name.clone()), ..self.violated(format!("K{of_key}.")) };
        data_error(text).with_sqlstate("23505").violating(violated)
    }

    /// A constraint of this table.
    fn violated(&self, detail: String) -> Violated {
        let (schema, table) = filbert_dialect::schema_of(&self.mapping.name);
        let (schema, table) = (schema.map(str::to_owned), table.to_owned());
        Violated { schema, table, detail: Some(detail), ..Violated::default() }
    }

    /// A row that violates a constraint, as PostgreSQL shows it.
    fn shown_row(&self, row: &[Value<'_>]) -> String {
        let columns = self.mapping.columns.iter().zip(row).filter(|(column, _)| !column.hidden);
        let values = columns.map(|(_, value)| match value {
            Value::Null => "null".to_owned(),
            value => {
                let mut text = self.shown(value);
                if let Some((end, _)) = text.char_indices().find(|(at, char)| at + char.len_utf8() > SHOWN_BYTES_MAX) {
                    text.truncate(end);
                    text.push_str("...");
                }
                text
            }
        });
        format!("Failing row contains ({}).", values.collect::<Vec<_>>().join(", "))
    }

    fn shown(&self, value: &Value<'_>) -> String {
        match (&self.zone, value) {
            (Some(_), Value::Boolean(value)) => String::from(if *value { "t" } else { "f" }),
            (Some(zone), value) => cast_to_text(value, zone),
            (None, value) => value.to_string(),
        }
    }

    fn column_name(&self, column: usize) -> &str {
        self.mapping.columns.get(column).map_or("", |column| column.name.as_str())
    }
}

/// The fastest form of a default. A constant is still to be converted to the column's type.
///
/// # Errors
/// The expression cannot be planned, uses a column, or the column does not accept its values.
fn default_of(
    expr: &Expr,
    mapping: &Mapping,
    column: usize,
    scope: &RowScope,
    state: &SessionState,
) -> Result<DefaultValue, SqlError> {
    let is_postgres = dialect_of(state) == Dialect::Postgres;
    if let Some(value) = constant(expr, dialect_of(state)) {
        return Ok(DefaultValue::Constant(value));
    }
    let is_moment = mapping.columns.get(column).is_some_and(|column| {
        matches!(column.field_type, FieldType::Date | FieldType::Timestamp | FieldType::TimestampTz)
    });
    match function_name(expr).as_deref() {
        Some("now" | "current_timestamp" | "transaction_timestamp") if is_moment => return Ok(DefaultValue::Now),
        Some("current_date") if is_moment => return Ok(DefaultValue::Today),
        Some("gen_random_uuid" | "gen_random_text_uuid" | "uuid_generate_v4") => return Ok(DefaultValue::RandomUuid),
        _ => {}
    }
    let mut expression = scope.expression(state, expr)?;
    if expression.reads_row() {
        let text = format!("cannot use column reference in DEFAULT expression: {expr}");
        return Err(data_error(text).with_sqlstate("0A000"));
    }
    if is_postgres {
        assignment::check(mapping, column, expression.field())?;
        if assignment::becomes_text(mapping, column, expression.field()) {
            expression = scope.expression(state, &assignment::as_text(expr))?;
        }
    }
    Ok(DefaultValue::Computed(expression))
}

/// The name of a function that is called without arguments.
fn function_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => function_name(inner),
        Expr::Function(function) => {
            let is_bare = match &function.args {
                FunctionArguments::None => true,
                FunctionArguments::List(list) => list.args.is_empty(),
                FunctionArguments::Subquery(_) => false,
            };
            let name = function.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
            is_bare.then_some(name)
        }
        _ => None,
    }
}
