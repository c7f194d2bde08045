//! Keys of `GROUP BY` that are lists of keys: `(a, b)` stands for both, and `()` for none.
//!
//! A query that groups by nothing is one group, even without rows. The same holds for a query with
//! `HAVING` alone. If no aggregate makes it one group, a condition on the group does.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Select, SelectItem};
use datafusion::sql::sqlparser::parser::Parser;
use filbert_dialect::{grammar, is_aggregate, walk};
use filbert_grid::query::Dialect;

/// Expands keys that are lists, and makes a group of a query that is one without an aggregate.
pub(super) fn write_out(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
    let has_lists = keys.iter().any(|key| matches!(key, Expr::Tuple(_)));
    if has_lists {
        *keys = std::mem::take(keys).into_iter().flat_map(keys_of).collect();
    }
    let is_one_group = keys.is_empty() && (has_lists || select.having.is_some());
    if is_one_group && !aggregates(select) {
        let condition = of_group();
        select.having = match select.having.take() {
            Some(having) => condition.map(|condition| both(having, condition)),
            None => condition,
        };
    }
}

fn keys_of(key: Expr) -> Vec<Expr> {
    match key {
        Expr::Tuple(keys) => keys.into_iter().flat_map(keys_of).collect(),
        key => vec![key],
    }
}

/// A condition that every group satisfies.
fn of_group() -> Option<Expr> {
    let mut parser = Parser::new(grammar(Dialect::Postgres)).try_with_sql("count(*) >= 0").ok()?;
    parser.parse_expr().ok()
}

fn both(left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(Expr::Nested(Box::new(left))), Box::new(right));
    Expr::BinaryOp { left, op: BinaryOperator::And, right }
}

/// Whether a query has an aggregate of its own.
pub(super) fn aggregates(select: &Select) -> bool {
    let has_one = |expr: &Expr| {
        walk::own_expressions(expr, |inner| match inner {
            Expr::Function(function) if is_aggregate(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    };
    let items = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_one(expr),
        _ => false,
    });
    items || select.having.as_ref().is_some_and(has_one)
}
