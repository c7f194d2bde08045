//! Set-returning functions outside a FROM clause: in the SELECT list, their rows become rows of the
//! result.

use std::ops::ControlFlow;

use filbert_grid::query::{SqlError, parsing_error};
use sqlparser::ast::{Expr, OrderByKind, Query, SelectItem, SetExpr, Value, VisitorMut};

use super::super::json::call;
use super::{taken, values};
use crate::walk;

/// Turns set-returning functions of a SELECT item into rows, wherever they occur in it.
pub(super) fn as_rows(item: &mut Expr) {
    let _ = walk::change(item, &mut Rows { queries: 0 });
}

/// Lets ORDER BY refer to items of the SELECT list by position where both call a set-returning
/// function: one call gives the rows.
///
/// # Errors
/// Such a function is called in VALUES, or in ORDER BY alone.
pub(super) fn place(query: &mut Query) -> Result<(), SqlError> {
    match query.body.as_ref() {
        SetExpr::Values(values) => match values.rows.iter().flat_map(|row| &row.content).any(is_found) {
            true => Err(not_allowed("VALUES")),
            false => Ok(()),
        },
        SetExpr::Select(select) => {
            let Some(order) = &mut query.order_by else { return Ok(()) };
            let OrderByKind::Expressions(keys) = &mut order.kind else { return Ok(()) };
            for key in keys.iter_mut().filter(|key| is_found(&key.expr)) {
                let is_key = |item: &SelectItem| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => *expr == key.expr,
                    _ => false,
                };
                let is_counted =
                    |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
                match select.projection.iter().position(is_key) {
                    Some(at) if select.projection.iter().take(at).all(is_counted) => {
                        key.expr = Expr::value(Value::Number((at + 1).to_string(), false));
                    }
                    _ => return Err(not_allowed("ORDER BY unless they are in the SELECT list")),
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn not_allowed(place: &str) -> SqlError {
    parsing_error(format!("set-returning functions are not allowed in {place}")).with_sqlstate("0A000")
}

/// Whether an expression calls a set-returning function outside its subqueries.
fn is_found(expression: &Expr) -> bool {
    walk::own_expressions(expression, |expression| match expression {
        Expr::Function(function) if values::is_of_rows(&function.name.to_string().to_ascii_lowercase()) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Visits the set-returning functions of a SELECT item.
struct Rows {
    /// The number of enclosing subqueries. Their lists are handled separately.
    queries: usize,
}

impl VisitorMut for Rows {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0 {
            series_of_rows(expression);
        }
        ControlFlow::Continue(())
    }
}

fn series_of_rows(expression: &mut Expr) {
    let Expr::Function(function) = &mut *expression else { return };
    let name = function.name.to_string().to_ascii_lowercase();
    if name != "unnest" && values::is_of_rows(&name) {
        let array = taken(expression);
        let rows = call("unnest", vec![array], Vec::new(), None);
        *expression = match name.as_str() {
            "jsonb_array_elements" => call("cast_jsonb", vec![rows], Vec::new(), None),
            _ => rows,
        };
    }
}
