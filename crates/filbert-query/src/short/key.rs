//! The key in a condition: `WHERE key = ..`, or all columns of a composite key.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use filbert_data::{Blob, FieldPath, FieldType, Side, Value};
use filbert_dialect::DeclaredType;
use filbert_functions::types::BPCHAR;
use filbert_grid::query::{Dialect, SqlError};

use super::dml::operand_of;
use crate::catalog::Mapping;
use crate::client_context::ParameterTypes;
use crate::dml::rows::RowMaker;
use crate::scan::access::Operand;
use crate::scan::table::MapTable;

/// The key that a short plan finds for its parameters.
pub(crate) enum Found {
    /// The key's bytes.
    Key(Blob),
    /// No row can have the key: a part of it is NULL.
    NoRow,
    /// A value is not of its column's type. The general plan reports it, or finds no row.
    NotOfType,
}

/// One key.
pub(crate) enum Key {
    /// The value of a key with one column.
    Whole(Operand),
    /// The values of its columns, by column number.
    Columns(Vec<(usize, Operand)>),
}

impl Key {
    /// The key in a condition, if the condition compares the key and nothing else. The table has
    /// the name `alias` in it, and the client declared parameters of these types.
    ///
    /// In PostgreSQL's dialect a comparison has a type of its own, texts are read in the
    /// session's time zone, and blanks at the end of `char(n)` do not count. There, only keys and
    /// operands of types that are equal where their bytes are equal have this form.
    pub(crate) fn of(
        mapping: &Mapping,
        table: &MapTable,
        (alias, types): (&str, &ParameterTypes),
        selection: &Expr,
        dialect: Dialect,
    ) -> Option<Key> {
        let mut found = Vec::new();
        collect(mapping, (alias, dialect), selection, &mut found)?;
        let of_bytes = dialect == Dialect::Postgres;
        if of_bytes && !found.iter().all(|(index, operand)| is_compared_by_bytes(mapping, *index, operand, types)) {
            return None;
        }
        if let [(index, operand)] = found.as_slice()
            && let Some(column) = mapping.columns.get(*index)
            && column.path == FieldPath::KEY
        {
            return table.writes_key_as(&column.field_type).then(|| Key::Whole(operand.clone()));
        }
        // Every column of the key occurs exactly once.
        mapping.table.as_ref()?;
        let columns = mapping.columns.iter().enumerate().filter(|(_, column)| column.path.side == Side::Key);
        let mut of_key = 0;
        for (index, column) in columns {
            of_key += 1;
            let given = found.iter().filter(|(found, _)| *found == index).count();
            if given != 1 || !table.writes_key_as(&column.field_type) {
                return None;
            }
        }
        (of_key == found.len()).then_some(Key::Columns(found))
    }

    /// Finds the key for the values of the parameters.
    ///
    /// # Errors
    /// A parameter has no value.
    pub(crate) fn find(&self, table: &MapTable, maker: &RowMaker, parameters: &[Value<'_>]) -> Result<Found, SqlError> {
        match self {
            Key::Whole(operand) => {
                let value = operand.value(parameters)?;
                if value.is_null() {
                    return Ok(Found::NoRow);
                }
                Ok(table.key_blob(value)?.map_or(Found::NotOfType, Found::Key))
            }
            Key::Columns(columns) => {
                let mut row = vec![Value::Null; maker.mapping().columns.len()];
                for (index, operand) in columns {
                    let value = operand.value(parameters)?;
                    let converted = match maker.mapping().columns.get(*index) {
                        // Neither rounded nor cut: that would be another value.
                        Some(column) if maker.rounds() => value.clone().convert(&column.field_type).ok(),
                        _ => maker.convert(*index, value.clone()).ok(),
                    };
                    let Some(value) = converted else { return Ok(Found::NotOfType) };
                    if value.is_null() {
                        return Ok(Found::NoRow);
                    }
                    if let Some(place) = row.get_mut(*index) {
                        *place = value;
                    }
                }
                maker.writer().key(&row).map(Found::Key)
            }
        }
    }
}

/// Whether `column = operand` holds in PostgreSQL's dialect exactly if the bytes of both are equal,
/// once the operand is converted to the column's type. Anything else is compared by the general
/// plan, which also reports texts that are no values of the type.
fn is_compared_by_bytes(mapping: &Mapping, index: usize, operand: &Operand, types: &ParameterTypes) -> bool {
    let Some(column) = mapping.columns.get(index) else { return false };
    let declared = mapping.table.as_ref().and_then(|facts| facts.columns.get(index)).map(|facts| &facts.declared);
    if matches!(declared, Some(DeclaredType::Character(_) | DeclaredType::Ip)) {
        return false;
    }
    let is_whole = |field_type: &FieldType| {
        matches!(field_type, FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt)
    };
    match operand {
        Operand::Constant(Value::Null) => true,
        Operand::Constant(value) => match (&column.field_type, value) {
            (FieldType::Boolean, Value::Boolean(_)) | (FieldType::Varchar, Value::Text(_)) => true,
            (FieldType::Uuid, value @ (Value::Text(_) | Value::Uuid(_))) => {
                value.clone().convert(&FieldType::Uuid).is_ok()
            }
            (of_column, Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_)) => is_whole(of_column),
            _ => false,
        },
        Operand::Parameter(number) => match (&column.field_type, types.get(*number).and_then(Option::as_ref)) {
            // A parameter without a declared type has the column's.
            (of_column, None) => {
                is_whole(of_column) || matches!(of_column, FieldType::Boolean | FieldType::Varchar | FieldType::Uuid)
            }
            (FieldType::Boolean | FieldType::Uuid, Some(given)) => given.field_type == column.field_type,
            (FieldType::Varchar, Some(given)) => {
                given.field_type == FieldType::Varchar && given.pg_type != Some(BPCHAR)
            }
            (of_column, Some(given)) => is_whole(of_column) && is_whole(&given.field_type),
        },
    }
}

/// The columns of `column = constant AND ..`; `None` for any other condition.
fn collect(
    mapping: &Mapping,
    (alias, dialect): (&str, Dialect),
    expr: &Expr,
    found: &mut Vec<(usize, Operand)>,
) -> Option<()> {
    match expr {
        Expr::Nested(inner) => collect(mapping, (alias, dialect), inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect(mapping, (alias, dialect), left, found)?;
            collect(mapping, (alias, dialect), right, found)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let (column, operand) = match (column_of(mapping, alias, left), column_of(mapping, alias, right)) {
                (Some(column), None) => (column, operand_of(right, dialect)?),
                (None, Some(column)) => (column, operand_of(left, dialect)?),
                _ => return None,
            };
            found.push((column, operand));
            Some(())
        }
        _ => None,
    }
}

fn column_of(mapping: &Mapping, alias: &str, expr: &Expr) -> Option<usize> {
    let name = match expr {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [relation, name] if relation.value == alias => name,
            _ => return None,
        },
        _ => return None,
    };
    mapping.columns.iter().position(|column| column.name == name.value)
}
