//! Set-returning functions outside a FROM clause: in the SELECT list, their rows become rows of the
//! result.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, TableFactor, Value, VisitorMut};
use sqlparser::parser::Parser;

use super::super::json::call;
use super::{taken, values};
use crate::grammar::grammar;
use crate::names::REPEATED;
use crate::walk;

/// The relation of the rows of a SELECT list with keys of ORDER BY beside its items.
const ROWS: &str = "$list";

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

/// Lets ORDER BY use values that are no items of a SELECT list with rows of a function. DataFusion
/// adds such values below a sort, but not below those rows. The list computes them as further
/// items, and a query around it leaves them out. Runs after [`as_rows`].
pub(super) fn order(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    // With DISTINCT, each key is an item.
    if select.distinct.is_some() || !select.projection.iter().any(has_rows) {
        return;
    }
    let Some(items) = select.projection.iter().map(named).collect::<Option<Vec<_>>>() else { return };
    let mut further = Vec::new();
    for key in keys.iter_mut().filter(|key| !matches!(key.expr, Expr::Value(_))) {
        match place_of(&key.expr, &items) {
            Some(at) => key.expr = Expr::value(Value::Number((at + 1).to_string(), false)),
            None => {
                let name = Ident::with_quote('"', format!("$key{}", further.len()));
                let column = Expr::CompoundIdentifier(vec![Ident::with_quote('"', ROWS), name.clone()]);
                let expr = std::mem::replace(&mut key.expr, column);
                further.push(SelectItem::ExprWithAlias { expr, alias: name });
            }
        }
    }
    if further.is_empty() {
        return;
    }
    let Some(mut around) = around() else { return };
    let (mut inner, mut outer) = (Vec::new(), Vec::new());
    for (at, (item, name)) in items.iter().enumerate() {
        // Names are unique within a plan.
        let is_repeated = items.iter().take(at).any(|(_, other)| other.value == name.value);
        let name = match is_repeated {
            true => Ident::with_quote('"', format!("{}{REPEATED}{at}", name.value)),
            false => name.clone(),
        };
        // A string literal may take the type of a column that it is written to.
        let expr = match item {
            Expr::Value(_) => item.clone(),
            _ => Expr::CompoundIdentifier(vec![Ident::with_quote('"', ROWS), name.clone()]),
        };
        inner.push(SelectItem::ExprWithAlias { expr: item.clone(), alias: name.clone() });
        outer.push(SelectItem::ExprWithAlias { expr, alias: name });
    }
    select.projection = inner.into_iter().chain(further).collect();
    std::mem::swap(&mut query.body, &mut around);
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    select.projection = outer;
    if let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation) {
        subquery.body = around;
    }
}

/// `SELECT 1 FROM (SELECT 1) AS "$list"`.
fn around() -> Option<Box<SetExpr>> {
    let text = format!("SELECT 1 FROM (SELECT 1) AS \"{ROWS}\"");
    Some(Parser::new(grammar(Dialect::Postgres)).try_with_sql(&text).ok()?.parse_query().ok()?.body)
}

fn has_rows(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_found(expr),
        _ => false,
    }
}

/// An item of a SELECT list and its name; `None` for `*`.
fn named(item: &SelectItem) -> Option<(Expr, Ident)> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((expr.clone(), alias.clone())),
        SelectItem::UnnamedExpr(expr) => match expr {
            Expr::Identifier(name) => Some((expr.clone(), name.clone())),
            Expr::CompoundIdentifier(names) => Some((expr.clone(), names.last()?.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// The place of the item that a key of ORDER BY is: a name refers to an item first.
fn place_of(key: &Expr, items: &[(Expr, Ident)]) -> Option<usize> {
    let is_called = |(_, name): &(Expr, Ident)| matches!(key, Expr::Identifier(key) if key.value == name.value);
    items.iter().position(is_called).or_else(|| items.iter().position(|(item, _)| item == key))
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
