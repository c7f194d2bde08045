//! The order of a subquery's rows, where it matters to the enclosing query.
//!
//! DataFusion does not preserve the order of subqueries. PostgreSQL's users rely on it in three
//! places: `LIMIT` takes the first rows, `array_agg` and similar aggregates take rows in order, and
//! a result is shown in order. In these places the order becomes a sort above the subquery, or the
//! order of the aggregate.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, FetchType, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SkipType,
    SortExpr, SubqueryAlias, lit,
};
use filbert_functions::distinct;

/// Aggregates with a result that depends on the order of their rows.
const ORDERED: [&str; 12] = [
    "array_agg",
    "first_value",
    "json_agg",
    "json_array_from",
    "json_object_agg",
    "json_object_from",
    "jsonb_agg",
    "jsonb_object_agg",
    "last_value",
    "nth_value",
    "string_agg",
    "xmlagg",
];

/// Applies the order of subqueries where it matters.
pub(crate) fn keep(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut is_sorted, mut is_distinct) = (false, false);
    plan.apply_with_subqueries(|plan| {
        is_sorted |= matches!(plan, LogicalPlan::Sort(_));
        is_distinct |= matches!(plan, LogicalPlan::Aggregate(aggregate)
            if aggregate.aggr_expr.iter().any(|item| contains(item, is_distinct_list)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let plan = match is_distinct {
        true => plan.transform_up_with_subqueries(of_distinct)?.data,
        false => plan,
    };
    if !is_sorted {
        return Ok(plan);
    }
    let plan = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        LogicalPlan::Limit(limit) => of_limit(limit),
        other => Ok(Transformed::no(other)),
    })?;
    of_result(plan.data)
}

/// A plan that has the columns of its order, and the order.
struct Ordered {
    plan: LogicalPlan,
    keys: Vec<SortExpr>,
}

/// The order of a plan's rows, if it has one. Columns may be appended to the plan's own columns.
fn ordered(plan: &LogicalPlan) -> Result<Option<Ordered>> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let mut items: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
            let width = items.len();
            let keys = sort.expr.iter().map(|key| match &key.expr {
                Expr::Column(_) => key.clone(),
                other => {
                    let name = format!("$key{}", items.len());
                    items.push(other.clone().alias(&name));
                    key.with_expr(Expr::Column(Column::new_unqualified(name)))
                }
            });
            let keys = keys.collect();
            let plan = match items.len() == width {
                true => plan.clone(),
                false => LogicalPlan::Projection(Projection::try_new(items, Arc::new(plan.clone()))?),
            };
            Ok(Some(Ordered { plan, keys }))
        }
        LogicalPlan::Filter(filter) => {
            let Some(Ordered { plan, keys }) = ordered(&filter.input)? else { return Ok(None) };
            let plan = LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(plan))?);
            Ok(Some(Ordered { plan, keys }))
        }
        LogicalPlan::Limit(limit) => {
            let Some(Ordered { plan, keys }) = ordered(&limit.input)? else { return Ok(None) };
            let plan = LogicalPlan::Limit(Limit { input: Arc::new(plan), ..limit.clone() });
            Ok(Some(Ordered { plan, keys }))
        }
        LogicalPlan::Projection(projection) => {
            if projection
                .expr
                .iter()
                .any(|item| item.exists(|inner| Ok(matches!(inner, Expr::Unnest(_)))).unwrap_or(true))
            {
                return Ok(None);
            }
            let Some(Ordered { plan, keys }) = ordered(&projection.input)? else { return Ok(None) };
            let mut items = projection.expr.clone();
            let mut known = projection.schema.columns();
            let keys = keys.into_iter().map(|key| {
                let at = items.iter().position(|item| item.clone().unalias() == key.expr);
                let column = match at.and_then(|at| known.get(at)) {
                    Some(column) => column.clone(),
                    None => {
                        let name = format!("$order{}", items.len());
                        items.push(key.expr.clone().alias(&name));
                        known.push(Column::new_unqualified(&name));
                        Column::new_unqualified(name)
                    }
                };
                key.with_expr(Expr::Column(column))
            });
            let keys: Vec<SortExpr> = keys.collect();
            let plan = LogicalPlan::Projection(Projection::try_new(items, Arc::new(plan))?);
            Ok(Some(Ordered { plan, keys }))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some(Ordered { plan, keys }) = ordered(&alias.input)? else { return Ok(None) };
            let requalified = keys.iter().map(|key| match &key.expr {
                Expr::Column(column) => {
                    Some(key.with_expr(Expr::Column(Column::new(Some(alias.alias.clone()), &column.name))))
                }
                _ => None,
            });
            let Some(keys) = requalified.collect::<Option<Vec<_>>>() else { return Ok(None) };
            let plan = SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?;
            // Above an alias, one of two columns with the same name is renamed.
            let is_there = |key: &SortExpr| match &key.expr {
                Expr::Column(column) => plan.schema.has_column(column),
                _ => false,
            };
            if !keys.iter().all(is_there) {
                return Ok(None);
            }
            Ok(Some(Ordered { plan: LogicalPlan::SubqueryAlias(plan), keys }))
        }
        _ => Ok(None),
    }
}

fn of_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let needs_order = |expression: &Expr| {
        expression
            .exists(|inner| Ok(matches!(inner, Expr::AggregateFunction(function) if takes_order(function))))
            .unwrap_or(false)
    };
    if !aggregate.aggr_expr.iter().any(needs_order) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Some(Ordered { plan, keys }) = ordered(&aggregate.input)? else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    };
    let names = NamePreserver::new_for_projection();
    let before = aggregate.schema.clone();
    let rewritten = aggregate.aggr_expr.into_iter().map(|expression| {
        let name = names.save(&expression);
        let transformed = expression.transform_up(|inner| match inner {
            Expr::AggregateFunction(mut function) if takes_order(&function) => {
                function.params.order_by.clone_from(&keys);
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(name.restore(transformed.data))
    });
    let rewritten = rewritten.collect::<Result<Vec<_>>>()?;
    let plan = Aggregate::try_new(Arc::new(plan), aggregate.group_expr, rewritten)?;
    if plan.schema.fields().len() != before.fields().len() {
        return Err(datafusion::common::DataFusionError::Internal(
            "an order adds no columns to an aggregate".to_owned(),
        ));
    }
    Ok(Transformed::yes(LogicalPlan::Aggregate(plan)))
}

fn contains(expression: &Expr, wanted: fn(&AggregateFunction) -> bool) -> bool {
    expression
        .exists(|inner| Ok(matches!(inner, Expr::AggregateFunction(function) if wanted(function))))
        .unwrap_or(false)
}

fn is_distinct_list(function: &AggregateFunction) -> bool {
    let params = &function.params;
    params.distinct && matches!(function.func.name(), "array_agg" | "string_agg")
}

/// `array_agg(DISTINCT x)`: PostgreSQL sorts to find distinct values, and returns them sorted.
fn of_distinct(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
    if !aggregate.aggr_expr.iter().any(|item| contains(item, is_distinct_list)) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let names = NamePreserver::new_for_projection();
    let rewritten = aggregate.aggr_expr.into_iter().map(|expression| {
        let name = names.save(&expression);
        let transformed = expression.transform_up(|inner| match inner {
            Expr::AggregateFunction(mut function) if is_distinct_list(&function) => {
                if function.params.order_by.is_empty() {
                    let key = function.params.args.first().map(|argument| argument.clone().sort(true, false));
                    function.params.order_by.extend(key);
                }
                function.func = distinct(function.func);
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(name.restore(transformed.data))
    });
    let rewritten = rewritten.collect::<Result<Vec<_>>>()?;
    let plan = Aggregate::try_new(aggregate.input, aggregate.group_expr, rewritten)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(plan)))
}

fn takes_order(function: &AggregateFunction) -> bool {
    function.params.order_by.is_empty() && !function.params.distinct && ORDERED.contains(&function.func.name())
}

fn of_limit(limit: Limit) -> Result<Transformed<LogicalPlan>> {
    let is_last = matches!(limit.get_fetch_type()?, FetchType::Literal(None));
    if !is_last && matches!(limit.input.as_ref(), LogicalPlan::Sort(_) | LogicalPlan::Limit(_)) {
        return Ok(Transformed::no(LogicalPlan::Limit(limit)));
    }
    match ordered(&limit.input)? {
        None => Ok(Transformed::no(LogicalPlan::Limit(limit))),
        Some(found) => {
            let before = limit.input.schema().columns();
            if let (FetchType::Literal(None), SkipType::Literal(skip @ 1..)) =
                (limit.get_fetch_type()?, limit.get_skip_type()?)
            {
                return beyond(found, skip, before).map(Transformed::yes);
            }
            let sorted = LogicalPlanBuilder::from(found.plan).sort(found.keys)?.build()?;
            let plan = LogicalPlan::Limit(Limit { input: Arc::new(sorted), ..limit });
            without_keys(plan, before).map(Transformed::yes)
        }
    }
}

/// All rows of an order except the first ones. DataFusion keeps an order for `OFFSET` only with a
/// `LIMIT`, or for the final result.
fn beyond(found: Ordered, skip: usize, before: Vec<Column>) -> Result<LogicalPlan> {
    let Ordered { plan, keys } = found;
    let number = "$place";
    let mut items: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let numbered = row_number().order_by(keys.clone()).build()?;
    items.push(Expr::Column(Column::new_unqualified(numbered.schema_name().to_string())).alias(number));
    let first = u64::try_from(skip).unwrap_or(u64::MAX);
    let beyond = Expr::Column(Column::new_unqualified(number)).gt(lit(first));
    let plan = LogicalPlanBuilder::from(plan).window([numbered])?.project(items)?.filter(beyond)?;
    plan.sort(keys)?.project(before.into_iter().map(Expr::Column))?.build()
}

/// A plan that produces the final result.
fn of_result(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_subquery = matches!(&plan, LogicalPlan::Projection(projection)
        if matches!(projection.input.as_ref(), LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_)));
    let found = if is_subquery { ordered(&plan)? } else { None };
    match found {
        None => Ok(plan),
        Some(found) => {
            let before = plan.schema().columns();
            let sorted = LogicalPlanBuilder::from(found.plan).sort(found.keys)?.build()?;
            without_keys(sorted, before)
        }
    }
}

fn without_keys(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}
