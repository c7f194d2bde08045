//! The columns that statements write.

use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::Side;
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;

use crate::catalog::{Mapping, unknown_column};

/// The columns that an INSERT writes, by number: the named columns, or all that are not hidden.
pub(crate) fn target_columns(mapping: &Mapping, names: &[String]) -> Result<Vec<usize>, SqlError> {
    if names.is_empty() {
        let visible = mapping.columns.iter().enumerate().filter(|(_, column)| !column.hidden);
        return Ok(visible.map(|(index, _)| index).collect());
    }
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let target = column_index(mapping, name)?;
        if targets.contains(&target) {
            let text = format!("column {name:?} is to be written twice, expected once");
            return Err(parsing_error(text).with_sqlstate("42701"));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// If a statement names no columns, a row of a table may have fewer values. The other columns get
/// their defaults.
pub(crate) fn fit_targets(mapping: &Mapping, named: &[String], targets: &mut Vec<usize>, width: usize) {
    if named.is_empty() && mapping.table.is_some() {
        targets.truncate(width);
    }
}

/// The columns that a SET writes, by number, with their new values. `keys` says whether it may
/// write key columns of tables.
pub(crate) fn assigned_columns<'u>(
    mapping: &Mapping,
    assignments: &'u [(String, Expr)],
    keys: bool,
) -> Result<Vec<(usize, &'u Expr)>, SqlError> {
    let mut assigned: Vec<(usize, &Expr)> = Vec::with_capacity(assignments.len());
    for (name, expr) in assignments {
        let index = column_index(mapping, name)?;
        let is_key = mapping.columns.get(index).is_some_and(|column| column.path.side == Side::Key);
        if is_key && !(keys && mapping.table.is_some()) {
            return Err(parsing_error(format!("cannot update {name:?}: keys do not change")).with_sqlstate("0A000"));
        }
        if assigned.iter().any(|(target, _)| *target == index) {
            let text = format!("column {name:?} is assigned twice, expected once");
            return Err(parsing_error(text).with_sqlstate("42601"));
        }
        assigned.push((index, expr));
    }
    Ok(assigned)
}

/// The number of a column.
pub(crate) fn column_index(mapping: &Mapping, name: &str) -> Result<usize, SqlError> {
    mapping.columns.iter().position(|column| column.name == name).ok_or_else(|| unknown_column(mapping, name))
}
