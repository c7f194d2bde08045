//! Visits the literals of a statement.

use super::{Body, Expr, Item, Join, Literal, Query, Source, Statement};

/// Calls `each` for every literal.
pub(crate) fn each_literal(statement: &mut Statement, each: &mut dyn FnMut(&mut Literal)) {
    match statement {
        Statement::Query(query) => in_query(query, each),
        Statement::Insert { rows, conflict, returning, .. } => {
            in_query(rows, each);
            if let Some(conflict) = conflict {
                conflict.set.iter_mut().for_each(|(_, expr)| in_expr(expr, each));
                conflict.filter.iter_mut().for_each(|expr| in_expr(expr, each));
            }
            in_items(returning, each);
        }
        Statement::Update { set, from, filter, returning, .. } => {
            set.iter_mut().for_each(|(_, expr)| in_expr(expr, each));
            from.iter_mut().for_each(|source| in_source(source, each));
            filter.iter_mut().for_each(|expr| in_expr(expr, each));
            in_items(returning, each);
        }
        Statement::Delete { using, filter, returning, .. } => {
            using.iter_mut().for_each(|source| in_source(source, each));
            filter.iter_mut().for_each(|expr| in_expr(expr, each));
            in_items(returning, each);
        }
    }
}

fn in_items(items: &mut [Item], each: &mut dyn FnMut(&mut Literal)) {
    items.iter_mut().for_each(|item| in_expr(&mut item.expr, each));
}

fn in_expr(expr: &mut Expr, each: &mut dyn FnMut(&mut Literal)) {
    match expr {
        Expr::Literal(literal) => each(literal),
        Expr::Word { .. } => {}
        Expr::Apply { operands, .. } => operands.iter_mut().for_each(|operand| in_expr(operand, each)),
        Expr::Nested { operands, query, .. } => {
            operands.iter_mut().for_each(|operand| in_expr(operand, each));
            in_query(query, each);
        }
    }
}

fn in_query(query: &mut Query, each: &mut dyn FnMut(&mut Literal)) {
    for common in &mut query.with {
        in_query(&mut common.query, each);
        common.again.iter_mut().for_each(|again| in_query(again, each));
    }
    query.order.iter_mut().for_each(|(expr, _)| in_expr(expr, each));
    match &mut query.body {
        Body::Select(select) => {
            in_items(&mut select.items, each);
            select.from.iter_mut().for_each(|source| in_source(source, each));
            select.filter.iter_mut().chain(&mut select.having).for_each(|expr| in_expr(expr, each));
            let keys = select.group.iter_mut().flat_map(|group| &mut group.keys);
            keys.for_each(|expr| in_expr(expr, each));
        }
        Body::Values(rows) => rows.iter_mut().flatten().for_each(|expr| in_expr(expr, each)),
        Body::Set { left, right, .. } => {
            in_query(left, each);
            in_query(right, each);
        }
    }
}

fn in_source(source: &mut Source, each: &mut dyn FnMut(&mut Literal)) {
    match source {
        Source::Table { .. } => {}
        Source::Query { query, .. } => in_query(query, each),
        Source::Function { call, .. } => in_expr(call, each),
        Source::Join { left, right, on, .. } => {
            in_source(left, each);
            in_source(right, each);
            if let Join::On(condition) = on {
                in_expr(condition, each);
            }
        }
    }
}
