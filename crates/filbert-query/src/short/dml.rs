//! Changes of entries by their keys as short plans: constants or parameters, one entry each.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, SetExpr, UnaryOperator, Value as SqlValue};
use filbert_data::{Blob, FieldPath, FieldReader, Side, Value};
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{Caller, Change, Expiry, Grid, Map, PutMode, Refused};

use crate::catalog::Mapping;
use crate::dialect::{Delete, Insert, Parsed, Update};
use crate::dml::apply::{Outcome, duplicate_key, outcome};
use crate::dml::writer::EntryWriter;
use crate::dml::{column_index, target_columns};
use crate::error::data_error;
use crate::scan::access::Operand;
use crate::scan::rows::key_text;
use crate::scan::table::MapTable;
use crate::tables::{Mapped, Tables};

/// Rows that one statement writes in place.
const ROWS_IN_PLACE_MAX: usize = 1_000;
/// How often an entry is read again that others change meanwhile.
const ROUNDS_MAX: usize = 100;

/// A change of entries that needs no planning any more.
pub(crate) struct ShortDml {
    mapping: Arc<Mapping>,
    table: Arc<MapTable>,
    writer: EntryWriter,
    /// Reads the columns that a value is made of, by their numbers in the mapping.
    reader: FieldReader,
    read: Vec<usize>,
    what: What,
}

enum What {
    Write { sink: bool, targets: Vec<usize>, rows: Vec<Vec<Operand>> },
    Delete { key: Operand },
    Update { key: Operand, assignments: Vec<(usize, Operand)> },
}

impl ShortDml {
    /// The short plan of a statement, if it has that shape.
    pub(crate) fn of(tables: &Tables, parsed: &Parsed) -> Result<Option<ShortDml>, SqlError> {
        let name = match parsed {
            Parsed::Insert(Insert { table, .. })
            | Parsed::Update(Update { table, .. })
            | Parsed::Delete(Delete { table, .. }) => table,
            _ => return Ok(None),
        };
        let Some(Mapped { mapping, table }) = tables.find(name)? else { return Err(tables.not_found(name)) };
        let what = match parsed {
            Parsed::Insert(insert) => write(&mapping, insert)?,
            Parsed::Update(update) => update_by_key(&mapping, &table, update)?,
            Parsed::Delete(delete) => key_of(&mapping, &table, delete.alias.as_deref(), delete.selection.as_ref())
                .map(|key| What::Delete { key }),
            _ => None,
        };
        let Some(what) = what else { return Ok(None) };
        let grid: Arc<Grid> = tables.grid()?;
        let writer = EntryWriter::new(&mapping, grid.schemas())?;
        let columns = mapping.columns.iter().enumerate();
        let of_value = columns.filter(|(_, column)| column.path.side == Side::Value && !column.hidden);
        let (read, fields) = of_value.map(|(index, column)| (index, column.path.clone())).unzip();
        let reader = FieldReader::new(fields, table.formats().clone());
        Ok(Some(ShortDml { mapping, table, writer, reader, read, what }))
    }

    /// One line for EXPLAIN.
    pub(crate) fn describe(&self) -> String {
        let (what, rows) = match &self.what {
            What::Write { sink: true, rows, .. } => ("ShortSink", rows.len()),
            What::Write { sink: false, rows, .. } => ("ShortInsert", rows.len()),
            What::Delete { .. } => ("ShortDelete", 1),
            What::Update { .. } => ("ShortUpdate", 1),
        };
        format!("{what}: map={}, access=one key, rows={rows}", self.table.name())
    }

    /// Makes the changes in the caller's thread; `None` if it would have to wait for a locked key. Nothing has been changed then.
    pub(crate) fn run_in_place(&self, parameters: &[Value<'_>]) -> Option<Result<u64, SqlError>> {
        match self.run(parameters) {
            Ok(Some(count)) => Some(Ok(count)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn run(&self, parameters: &[Value<'_>]) -> Result<Option<u64>, SqlError> {
        match &self.what {
            What::Write { sink, targets, rows } => self.write(*sink, targets, rows, parameters),
            What::Delete { key } => {
                let Some(key) = self.key(key, parameters)? else { return Ok(Some(0)) };
                Ok(self.change(Change::Delete { key: &key })?.map(|done| u64::from(done == Outcome::Made)))
            }
            What::Update { key, assignments } => {
                let Some(key) = self.key(key, parameters)? else { return Ok(Some(0)) };
                self.update(&key, assignments, parameters)
            }
        }
    }

    fn write(
        &self,
        sink: bool,
        targets: &[usize],
        rows: &[Vec<Operand>],
        parameters: &[Value<'_>],
    ) -> Result<Option<u64>, SqlError> {
        let mut entries: Vec<(Blob, Blob)> = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = vec![Value::Null; self.mapping.columns.len()];
            for (operand, &target) in row.iter().zip(targets) {
                if let Some(place) = values.get_mut(target) {
                    *place = self.writer.convert(target, operand.value(parameters)?.clone())?;
                }
            }
            entries.push((self.writer.key(&values)?, self.writer.value(&values)?));
        }
        let mode = if sink { PutMode::Set } else { PutMode::IfAbsent };
        // Only the first can be given back as not done: what follows a change cannot start anew.
        if entries.len() > 1 && entries.iter().any(|(key, _)| self.is_locked(key)) {
            return Ok(None);
        }
        for (done, (key, value)) in entries.iter().enumerate() {
            let change = Change::Put { key, value, expiry: Expiry::DEFAULT, mode };
            match self.change(change)? {
                Some(Outcome::Made) => {}
                Some(Outcome::Differs) => return Err(duplicate_key()),
                None if done == 0 => return Ok(None),
                None => {
                    let text = format!("a key was locked by a client after {done} rows were written");
                    return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03"));
                }
            }
        }
        Ok(Some(u64::try_from(entries.len()).unwrap_or(u64::MAX)))
    }

    fn update(
        &self,
        key: &Blob,
        assignments: &[(usize, Operand)],
        parameters: &[Value<'_>],
    ) -> Result<Option<u64>, SqlError> {
        let map = self.map();
        for _ in 0..ROUNDS_MAX {
            let partition = map.partition_of(key);
            let old = map.entry_view(partition, key, |view| view.map(|view| Blob::from(view.value)));
            let Some(old) = old else { return Ok(Some(0)) };
            let mut values = self.read(key, &old)?;
            for (target, operand) in assignments {
                if let Some(place) = values.get_mut(*target) {
                    *place = self.writer.convert(*target, operand.value(parameters)?.clone().into_owned())?;
                }
            }
            let new = self.writer.value(&values)?;
            match self.change(Change::ReplaceIfSame { key, expected: &old, value: &new })? {
                None => return Ok(None),
                Some(Outcome::Made) => return Ok(Some(1)),
                Some(Outcome::Differs) => {}
            }
        }
        let text = format!("the entry was changed by others {ROUNDS_MAX} times while the statement ran");
        Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
    }

    /// The columns of an entry that its value is made of; hidden ones are left null.
    fn read(&self, key: &[u8], value: &[u8]) -> Result<Vec<Value<'static>>, SqlError> {
        let mut values = vec![Value::Null; self.mapping.columns.len()];
        let mut failure = None;
        let read = self.reader.read(key, value, &mut |field, found| {
            let Some(&index) = self.read.get(field) else { return };
            match self.writer.convert(index, found) {
                Ok(found) => {
                    if let Some(place) = values.get_mut(index) {
                        *place = found.into_owned();
                    }
                }
                Err(error) => failure = failure.take().or(Some(error.message)),
            }
        });
        match read.map_err(|error| error.to_string()).err().or(failure) {
            None => Ok(values),
            Some(error) => Err(data_error(format!("entry with the key {}: {error}", key_text(key)))),
        }
    }

    fn key(&self, operand: &Operand, parameters: &[Value<'_>]) -> Result<Option<Blob>, SqlError> {
        let value = operand.value(parameters)?;
        if value.is_null() { Ok(None) } else { self.table.key_blob(value) }
    }

    fn map(&self) -> &Map {
        self.table.map()
    }

    fn is_locked(&self, key: &[u8]) -> bool {
        self.map().is_locked(self.map().partition_of(key), key)
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

fn write(mapping: &Mapping, insert: &Insert) -> Result<Option<What>, SqlError> {
    let query = &insert.source;
    let bare =
        query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Values(values) = &*query.body else { return Ok(None) };
    if !bare || values.rows.len() > ROWS_IN_PLACE_MAX {
        return Ok(None);
    }
    let targets = target_columns(mapping, &insert.columns)?;
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        let row: &[Expr] = row;
        if row.len() != targets.len() {
            // The general way says what is wrong.
            return Ok(None);
        }
        let Some(operands) = row.iter().map(operand_of).collect::<Option<Vec<_>>>() else { return Ok(None) };
        rows.push(operands);
    }
    Ok(Some(What::Write { sink: insert.sink, targets, rows }))
}

fn update_by_key(mapping: &Mapping, table: &MapTable, update: &Update) -> Result<Option<What>, SqlError> {
    let Some(key) = key_of(mapping, table, update.alias.as_deref(), update.selection.as_ref()) else { return Ok(None) };
    let mut assignments = Vec::with_capacity(update.assignments.len());
    for (name, expr) in &update.assignments {
        let index = column_index(mapping, name)?;
        let of_value = mapping.columns.get(index).is_some_and(|column| column.path.side == Side::Value);
        let twice = assignments.iter().any(|(known, _)| *known == index);
        match operand_of(expr) {
            Some(operand) if of_value && !twice => assignments.push((index, operand)),
            _ => return Ok(None),
        }
    }
    Ok(Some(What::Update { key, assignments }))
}

/// The constant of `WHERE <key> = <constant>`.
fn key_of(mapping: &Mapping, table: &MapTable, alias: Option<&str>, selection: Option<&Expr>) -> Option<Operand> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = selection? else { return None };
    let key = mapping.columns.iter().find(|column| column.path == FieldPath::KEY)?;
    if !table.writes_key_as(&key.field_type) {
        return None;
    }
    let is_key = |expr: &Expr| match expr {
        Expr::Identifier(name) => name.value == key.name,
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [relation, name] => relation.value == alias.unwrap_or(&mapping.name) && name.value == key.name,
            _ => false,
        },
        _ => false,
    };
    match (is_key(left), is_key(right)) {
        (true, false) => operand_of(right),
        (false, true) => operand_of(left),
        _ => None,
    }
}

/// A constant or a parameter.
fn operand_of(expr: &Expr) -> Option<Operand> {
    match expr {
        Expr::Nested(inner) => operand_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match operand_of(expr)? {
            Operand::Constant(Value::Int64(number)) => Some(Operand::Constant(Value::Int64(number.checked_neg()?))),
            Operand::Constant(Value::Decimal(number)) => Some(Operand::Constant(Value::Decimal(-number))),
            Operand::Constant(Value::Float64(number)) => Some(Operand::Constant(Value::Float64(-number))),
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            SqlValue::Number(text, _) => number(text).map(Operand::Constant),
            SqlValue::SingleQuotedString(text) => Some(Operand::Constant(Value::Text(text.clone().into()))),
            SqlValue::Boolean(value) => Some(Operand::Constant(Value::Boolean(*value))),
            SqlValue::Null => Some(Operand::Constant(Value::Null)),
            SqlValue::Placeholder(name) => {
                let number: usize = name.strip_prefix('$')?.parse().ok()?;
                Some(Operand::Parameter(number.checked_sub(1)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A number as statements write it: whole, decimal, or with an exponent a double.
fn number(text: &str) -> Option<Value<'static>> {
    if text.contains(['e', 'E']) {
        return text.parse().ok().map(Value::Float64);
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Int64(whole));
    }
    text.parse::<BigDecimal>().ok().map(Value::Decimal)
}
