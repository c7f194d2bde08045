//! Scalar subqueries over empty system relations, and arrays of rows.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError};
use sqlparser::ast::{
    Array, ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArguments, GroupByExpr, Ident, OrderByExpr,
    OrderByKind, Query, Select, SelectItem, SetExpr, TableAliasColumnDef, TableFactor, TableWithJoins, Value,
    ValueWithSpan, Visitor,
};
use sqlparser::parser::Parser;

use super::super::grammar::grammar;
use super::super::json::call;
use super::super::rewrite::alias_of;
use super::{refuse, taken};
use crate::calls::ARRAY_OF_ROWS;
use crate::{system, walk, work};

/// Aggregates. A SELECT list with one of them returns one row.
const AGGREGATES: [&str; 60] = [
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "arbitrary",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "every",
    "first_value",
    "json_agg",
    "json_array_from",
    "json_object_agg",
    "json_object_from",
    "jsonb_agg",
    "jsonb_object_agg",
    "last_value",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "mode",
    "nth_value",
    "object_max",
    "object_min",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "quantile_cont",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
    "var_sample",
    "variance",
];

/// Whether a call is one of the aggregates, and not a window function.
pub fn is_aggregate(function: &Function) -> bool {
    function.over.is_none() && is_aggregate_name(&function.name.to_string().to_ascii_lowercase())
}

/// Whether a function with this name is an aggregate.
pub fn is_aggregate_name(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Whether a query reads a relation that never has rows, and thus returns none.
pub(super) fn is_always_empty(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let reads_nothing = |factor: &TableFactor| match factor {
        TableFactor::Table { name, args: None, .. } => match name.0.as_slice() {
            [schema, name] => {
                schema.as_ident().is_some_and(|schema| schema.value == system::PG_CATALOG)
                    && name.as_ident().is_some_and(|name| system::is_always_empty(&name.value))
            }
            _ => false,
        },
        _ => false,
    };
    is_plain(select) && select.from.iter().any(|from| reads_nothing(&from.relation))
}

/// A scalar subquery that never has a row, as null.
pub(super) fn empty(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let has_aggregate = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => aggregates(value),
        _ => false,
    });
    (is_always_empty(query) && !has_aggregate).then(|| Expr::value(Value::Null))
}

/// Whether a SELECT neither groups nor filters its result.
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
                Expr::Function(function) if is_aggregate(function) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(expression, &mut Finder).is_break()
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
    let is_whole = query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.with.is_none()
        && !is_sorted_by_constants(&query)
        && matches!(query.body.as_ref(), SetExpr::Select(select) if is_plain(select) && !unnests(select));
    if !is_whole {
        *expression = of_rows(query);
        return ControlFlow::Continue(());
    }
    let order = query.order_by.take();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return refuse("ARRAY(..) takes a SELECT of one column", "0A000");
    };
    let (value, name) = match select.projection.as_mut_slice() {
        [SelectItem::UnnamedExpr(value)] => {
            let name = match &*value {
                Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.clone()),
                _ => None,
            };
            (taken(value), name)
        }
        [SelectItem::ExprWithAlias { expr: value, alias }] => (taken(value), Some(alias.value.clone())),
        _ => return refuse("subquery must return only one column", "42601"),
    };
    let mut order: Vec<OrderByExpr> = match order.map(|order| order.kind) {
        Some(OrderByKind::Expressions(order)) => order,
        _ => Vec::new(),
    };
    for item in order.iter_mut().filter(|item| is_item(&item.expr, name.as_deref())) {
        if let Err(error) = work::copy(&value) {
            return ControlFlow::Break(error);
        }
        item.expr = value.clone();
    }
    let aggregate = call("array_agg", vec![value], order, None);
    let alias = Ident::with_quote('"', "array");
    select.projection = vec![SelectItem::ExprWithAlias { expr: aggregate, alias }];
    *expression = array_of(query);
    ControlFlow::Continue(())
}

/// Whether a sort key is a constant other than the position 1, which has its own rules.
fn is_sorted_by_constants(query: &Query) -> bool {
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind) else { return false };
    keys.iter().any(|key| match &key.expr {
        Expr::Nested(_) | Expr::UnaryOp { .. } => true,
        key @ Expr::Value(_) => !is_first(key),
        _ => false,
    })
}

fn is_first(key: &Expr) -> bool {
    matches!(key, Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) if digits == "1")
}

/// Whether a sort key is the only column of a query: its position, or its name.
fn is_item(key: &Expr, name: Option<&str>) -> bool {
    match key {
        Expr::Identifier(key) => name == Some(key.value.as_str()),
        key => is_first(key),
    }
}

/// Whether a SELECT list has a set-returning function, or an aggregate, which prevents another
/// aggregate.
fn unnests(select: &Select) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => {
            aggregates(value) || matches!(value, Expr::Function(function) if function.name.to_string() == "unnest")
        }
        _ => true,
    })
}

/// `array_of_rows((SELECT array_agg(item) FROM (query) AS rows(item)))`, which preserves the
/// query's order.
fn of_rows(query: Query) -> Expr {
    let item = Ident::with_quote('"', "$item");
    let mut alias = alias_of("$array");
    alias.columns.push(TableAliasColumnDef { name: item.clone(), data_type: None });
    let relation = TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None };
    let aggregate = call("array_agg", vec![Expr::Identifier(item)], Vec::new(), None);
    let parsed =
        Parser::new(grammar(Dialect::Postgres)).try_with_sql("SELECT 1").and_then(|mut parser| parser.parse_query());
    let Ok(mut outer) = parsed else { return Expr::value(Value::Null) };
    if let SetExpr::Select(select) = outer.body.as_mut() {
        select.projection = vec![SelectItem::ExprWithAlias { expr: aggregate, alias: Ident::with_quote('"', "array") }];
        select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    }
    array_of(*outer)
}

/// The array of a query of one aggregate; it is empty if there are no rows.
fn array_of(query: Query) -> Expr {
    call(ARRAY_OF_ROWS, vec![Expr::Subquery(Box::new(query))], Vec::new(), None)
}

/// An empty array.
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
