//! Columns of set operations that are string literals, NULLs or parameters without types on both
//! sides. As in PostgreSQL they are `text`, whatever further sides have there.
//!
//! Rows of a `VALUES` determine the types of their columns among themselves before.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, SelectItem, SetExpr, Value, ValueWithSpan, Values};

use crate::client_context::ParameterTypes;

/// Casts an item of each such column to `text`.
pub(super) fn settled(body: &mut SetExpr, types: &ParameterTypes) {
    let _ = unknown_columns(body, types);
}

/// For each column of a side, whether its type is unknown. `None` = the columns are not known.
fn unknown_columns(body: &mut SetExpr, types: &ParameterTypes) -> Option<Vec<bool>> {
    match body {
        SetExpr::Select(select) => select.projection.iter().map(|item| is_unknown_item(item, types)).collect(),
        SetExpr::Query(query) => unknown_columns(&mut query.body, types),
        SetExpr::Values(values) => Some(settled_rows(values, types)),
        SetExpr::SetOperation { left, right, .. } => {
            let sides = (unknown_columns(left, types)?, unknown_columns(right, types)?);
            let width = sides.0.len();
            for (at, _) in std::iter::zip(sides.0, sides.1).enumerate().filter(|(_, unknown)| unknown.0 && unknown.1) {
                make_text(left, at);
            }
            Some(vec![false; width])
        }
        _ => None,
    }
}

/// Determines the columns of a `VALUES` that have no type.
fn settled_rows(values: &mut Values, types: &ParameterTypes) -> Vec<bool> {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..width {
        let mut cells = values.rows.iter().map(|row| row.content.get(at));
        if cells.all(|cell| cell.is_some_and(|cell| is_unknown(cell, types)))
            && let Some(cell) = values.rows.first_mut().and_then(|row| row.content.get_mut(at))
        {
            *cell = as_text(cell);
        }
    }
    vec![false; width]
}

/// Casts a column of a side to `text`. The dialect named its items before.
fn make_text(body: &mut SetExpr, at: usize) {
    match body {
        SetExpr::Select(select) => {
            if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
                select.projection.get_mut(at)
            {
                *expr = as_text(expr);
            }
        }
        SetExpr::Query(query) => make_text(&mut query.body, at),
        _ => {}
    }
}

fn as_text(expression: &Expr) -> Expr {
    let expr = Box::new(expression.clone());
    Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Text, array: false, format: None }
}

/// `None` for items that are any number of columns.
fn is_unknown_item(item: &SelectItem, types: &ParameterTypes) -> Option<bool> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(is_unknown(expr, types)),
        _ => None,
    }
}

fn is_unknown(expression: &Expr, types: &ParameterTypes) -> bool {
    match expression {
        Expr::Nested(inner) => is_unknown(inner, types),
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::Null
            | Value::SingleQuotedString(_)
            | Value::EscapedStringLiteral(_)
            | Value::DollarQuotedString(_) => true,
            Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                let declared = number.and_then(|number| types.get(number.checked_sub(1)?));
                !declared.is_some_and(Option::is_some)
            }
            _ => false,
        },
        _ => false,
    }
}
