//! Subqueries that are one value: DataFusion plans them where they refer to the outer row only if they aggregate.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArguments, GroupByExpr, Ident,
    LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan,
    Visit, Visitor,
};
use filbert_grid::query::SqlError;

use super::super::json::call;
use super::{refuse, taken};
use crate::catalogs;

/// Aggregates: a SELECT list with one of them is one row.
const AGGREGATES: [&str; 24] = [
    "any_value",
    "arbitrary",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "first_value",
    "json_agg",
    "jsonb_agg",
    "json_array_from",
    "json_object_from",
    "last_value",
    "max",
    "max_by",
    "min",
    "percentile",
    "stddev",
    "string_agg",
    "sum",
    "variance",
];

/// Whether a query reads a relation that never has rows, so that it has none either.
pub(super) fn is_always_empty(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let reads_nothing = |factor: &TableFactor| match factor {
        TableFactor::Table { name, args: None, .. } => match name.0.as_slice() {
            [schema, name] => {
                schema.as_ident().is_some_and(|schema| schema.value == catalogs::PG_CATALOG)
                    && name.as_ident().is_some_and(|name| catalogs::is_always_empty(&name.value))
            }
            _ => false,
        },
        _ => false,
    };
    is_plain(select) && select.from.iter().any(|from| reads_nothing(&from.relation))
}

/// A scalar subquery that aggregates nothing, as the only item of its rows' array.
pub(super) fn single(query: &mut Query) -> Option<Expr> {
    let is_one_row = match &query.limit_clause {
        None => false,
        Some(LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), offset: None, limit_by }) => {
            limit_by.is_empty() && matches!(&limit.value, Value::Number(digits, _) if digits == "1")
        }
        Some(_) => return None,
    };
    let is_empty = is_always_empty(query);
    let order = query.order_by.clone();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if select.from.is_empty() || !is_plain(select) {
        return None;
    }
    let no_rows = is_empty
        && !select.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => aggregates(value),
            _ => false,
        });
    if no_rows {
        return Some(Expr::value(Value::Null));
    }
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
        select.projection.as_mut_slice()
    else {
        return None;
    };
    if aggregates(value) {
        return None;
    }
    let order = match order.map(|order| order.kind) {
        Some(OrderByKind::Expressions(order)) if is_one_row => order,
        _ => Vec::new(),
    };
    let function = if is_one_row { "first_value" } else { "array_agg" };
    let aggregate = call(function, vec![taken(value)], order, None);
    select.projection = vec![SelectItem::ExprWithAlias { expr: aggregate, alias: Ident::with_quote('"', "$single") }];
    query.order_by = None;
    query.limit_clause = None;
    let subquery = Expr::Subquery(Box::new(query.clone()));
    Some(if is_one_row { subquery } else { call("only_item", vec![subquery], Vec::new(), None) })
}

/// Whether a SELECT neither groups nor leaves rows out after the fact.
fn is_plain(select: &Select) -> bool {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    !is_grouped && select.having.is_none() && select.distinct.is_none()
}

fn aggregates(expression: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Function(function) => {
                    let name = function.name.to_string().to_ascii_lowercase();
                    let is_one = AGGREGATES.contains(&name.as_str()) && function.over.is_none();
                    if is_one { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expression.visit(&mut Finder).is_break()
}

/// The query of `ARRAY(SELECT ..)`.
pub(super) fn array_query(function: &mut Function) -> Option<Box<Query>> {
    let is_array = matches!(function.name.0.as_slice(),
        [name] if name.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case("array")));
    if !is_array {
        return None;
    }
    match std::mem::replace(&mut function.args, FunctionArguments::None) {
        FunctionArguments::Subquery(query) => Some(query),
        other => {
            function.args = other;
            None
        }
    }
}

/// `ARRAY(SELECT x ..)` as a query of one aggregate.
pub(super) fn aggregated(expression: &mut Expr, mut query: Query) -> ControlFlow<SqlError> {
    if is_always_empty(&query) {
        *expression = no_texts();
        return ControlFlow::Continue(());
    }
    if let Some(array) = of_array(&query) {
        *expression = array;
        return ControlFlow::Continue(());
    }
    let order = query.order_by.take();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return refuse("ARRAY(..) takes a SELECT of one column", "0A000");
    };
    let value = match select.projection.as_mut_slice() {
        [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] => taken(value),
        _ => return refuse("subquery must return only one column", "42601"),
    };
    let by_number =
        |expression: &Expr| matches!(expression, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }));
    let mut order: Vec<OrderByExpr> = match order.map(|order| order.kind) {
        Some(OrderByKind::Expressions(order)) => order,
        _ => Vec::new(),
    };
    for item in order.iter_mut().filter(|item| by_number(&item.expr)) {
        item.expr = value.clone();
    }
    let aggregate = call("array_agg", vec![value], order, None);
    let alias = Ident::with_quote('"', "array");
    select.projection = vec![SelectItem::ExprWithAlias { expr: aggregate, alias }];
    *expression = Expr::Subquery(Box::new(query));
    ControlFlow::Continue(())
}

/// An array without items.
fn no_texts() -> Expr {
    let item = Box::new(DataType::Text);
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Array(Array { elem: Vec::new(), named: true })),
        data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)),
        array: false,
        format: None,
    }
}

/// `ARRAY(SELECT x FROM unnest(array) AS x)` is the array, and with `'text' || x` its items behind a text: the rows of an array of the
/// outer row are not planned otherwise.
fn of_array(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::UNNEST { array_exprs, alias: Some(alias), .. } = &from.relation else { return None };
    let ([array], true) = (array_exprs.as_slice(), from.joins.is_empty() && select.selection.is_none()) else {
        return None;
    };
    let column = &alias.columns.first()?.name.value;
    let is_item = |expression: &Expr| matches!(expression, Expr::Identifier(name) if name.value == *column);
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] = select.projection.as_slice()
    else {
        return None;
    };
    match value {
        value if is_item(value) => Some(array.clone()),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } if is_item(right) => {
            let prefix = matches!(left.as_ref(), Expr::Value(_)).then(|| left.as_ref().clone())?;
            Some(call("array_prefixed", vec![prefix, array.clone()], Vec::new(), None))
        }
        _ => None,
    }
}
