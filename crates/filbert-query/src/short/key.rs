//! The key in a condition: `WHERE key = ..`, or all columns of a composite key.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use filbert_data::{Blob, FieldPath, Side, Value};
use filbert_grid::query::SqlError;

use super::dml::operand_of;
use crate::catalog::Mapping;
use crate::dml::rows::RowMaker;
use crate::scan::access::Operand;
use crate::scan::table::MapTable;

/// One key.
pub(crate) enum Key {
    /// The value of a key with one column.
    Whole(Operand),
    /// The values of its columns, by column number.
    Columns(Vec<(usize, Operand)>),
}

impl Key {
    /// The key in a condition, if the condition compares the key and nothing else. The table has
    /// the name `alias` in it.
    pub(crate) fn of(mapping: &Mapping, table: &MapTable, alias: &str, selection: &Expr) -> Option<Key> {
        let mut found = Vec::new();
        collect(mapping, alias, selection, &mut found)?;
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

    /// The key's bytes; `None` if no row can have the key.
    ///
    /// # Errors
    /// A parameter has no value.
    pub(crate) fn blob(
        &self,
        table: &MapTable,
        maker: &RowMaker,
        parameters: &[Value<'_>],
    ) -> Result<Option<Blob>, SqlError> {
        match self {
            Key::Whole(operand) => {
                let value = operand.value(parameters)?;
                if value.is_null() { Ok(None) } else { table.key_blob(value) }
            }
            Key::Columns(columns) => {
                let mut row = vec![Value::Null; maker.mapping().columns.len()];
                for (index, operand) in columns {
                    let value = operand.value(parameters)?;
                    // No row has a value that cannot be converted to the column's type.
                    let Ok(value) = maker.convert(*index, value.clone()) else { return Ok(None) };
                    if value.is_null() {
                        return Ok(None);
                    }
                    if let Some(place) = row.get_mut(*index) {
                        *place = value;
                    }
                }
                maker.writer().key(&row).map(Some)
            }
        }
    }
}

/// The columns of `column = constant AND ..`; `None` for any other condition.
fn collect(mapping: &Mapping, alias: &str, expr: &Expr, found: &mut Vec<(usize, Operand)>) -> Option<()> {
    match expr {
        Expr::Nested(inner) => collect(mapping, alias, inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect(mapping, alias, left, found)?;
            collect(mapping, alias, right, found)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let (column, operand) = match (column_of(mapping, alias, left), column_of(mapping, alias, right)) {
                (Some(column), None) => (column, operand_of(right)?),
                (None, Some(column)) => (column, operand_of(left)?),
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
