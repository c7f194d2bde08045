//! Intervals by their length: a month is 30 days and a day 24 hours where intervals are compared, grouped, joined or ordered.
//!
//! Arrow compares intervals by their parts. A rule puts their lengths in the place of whatever is compared, and keeps the first
//! interval of each group for what is shown of it.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, InList, InSubquery, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Distinct;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Between, BinaryExpr, Case, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    Operator, ScalarFunctionArgs, ScalarUDF, WindowFunctionDefinition, lit,
};
use datafusion::optimizer::AnalyzerRule;
use filbert_data::{FieldType, Interval};

use super::super::super::row::{Function, wrong_arguments};
use super::casts::call;
use super::cells::{Cell, Kind, compute, compute_all};
use super::refused;
use super::totals::total;

static LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf(
        "interval_length",
        intervals,
        |_| Ok(FieldType::Decimal(Some((38, 0)))),
        |args| {
            compute(args, |cells| match cells {
                [Cell::Interval(interval)] => Ok(Cell::Decimal(length(interval))),
                _ => Ok(Cell::Null),
            })
        },
    ))
});
static GREATEST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("interval_greatest", intervals, |_| Ok(FieldType::Interval), |args| extreme(args, false)))
});
static LEAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("interval_least", intervals, |_| Ok(FieldType::Interval), |args| extreme(args, true)))
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&LENGTH, &GREATEST, &LEAST].map(|function| Arc::clone(function)).to_vec()
}

/// Microseconds of an interval, as PostgreSQL compares them.
pub(super) fn length(interval: &Interval) -> i128 {
    interval.length().div_euclid(1_000)
}

fn intervals(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |data_type: &DataType| matches!(Kind::of(data_type), Kind::Interval | Kind::Unknown);
    if types.is_empty() || !types.iter().all(fits) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![Kind::Interval.arrow(); types.len()])
}

fn extreme(args: &ScalarFunctionArgs, is_least: bool) -> Result<ColumnarValue> {
    compute_all(args, false, |cells| {
        let mut best: Option<Interval> = None;
        for cell in cells {
            let Cell::Interval(interval) = cell else { continue };
            let is_better = best.is_none_or(|best| match is_least {
                true => length(interval) < length(&best),
                false => length(interval) > length(&best),
            });
            if is_better {
                best = Some(*interval);
            }
        }
        Ok(best.map_or(Cell::Null, Cell::Interval))
    })
}

/// Puts lengths in the place of intervals that are compared.
#[derive(Debug)]
pub(crate) struct Intervals;

impl AnalyzerRule for Intervals {
    fn name(&self) -> &str {
        "intervals"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_intervals(&plan)? {
            return Ok(plan);
        }
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let plan = compared(plan)?;
            node(plan)
        })?;
        Ok(transformed.data)
    }
}

/// Most plans have no intervals that anything could be compared with.
fn has_intervals(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        found |= plan.schema().fields().iter().any(|field| Kind::of(field.data_type()) == Kind::Interval);
        if !found {
            let schema = merge_schema(&plan.inputs());
            plan.apply_expressions(|expression| {
                found |= expression.exists(|inner| Ok(is_interval(inner, &schema)))?;
                Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
            })?;
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    expression.get_type(schema).is_ok_and(|data_type| Kind::of(&data_type) == Kind::Interval)
}

fn key(expression: Expr) -> Expr {
    call(&LENGTH, vec![expression])
}

fn keyed(expression: Expr, schema: &DFSchema) -> Expr {
    if is_interval(&expression, schema) { key(expression) } else { expression }
}

#[allow(clippy::boxed_local, reason = "what it is called with is boxed")]
fn boxed(expression: Box<Expr>, schema: &DFSchema) -> Box<Expr> {
    Box::new(keyed(*expression, schema))
}

pub(super) fn sorts(order: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
    order.into_iter().map(|sort| Sort { expr: keyed(sort.expr, schema), ..sort }).collect()
}

/// The expressions of a plan's node.
fn compared(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let transformed = plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let transformed = expression.transform_up(|expression| comparison(expression, &schema))?;
        Ok(transformed.update_data(|expression| name.restore(expression)))
    })?;
    if transformed.transformed { transformed.data.recompute_schema() } else { Ok(transformed.data) }
}

fn comparison(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && (is_interval(&left, schema) || is_interval(&right, schema)) =>
        {
            let (left, right) = (boxed(left, schema), boxed(right, schema));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(between) if is_interval(&between.expr, schema) => {
            let Between { expr, negated, low, high } = between;
            let (expr, low, high) = (boxed(expr, schema), boxed(low, schema), boxed(high, schema));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr, schema) => {
            let list = list.into_iter().map(|item| keyed(item, schema)).collect();
            Transformed::yes(Expr::InList(InList { expr: boxed(expr, schema), list, negated }))
        }
        Expr::InSubquery(InSubquery { expr, mut subquery, negated }) if is_interval(&expr, schema) => {
            let columns = subquery.subquery.schema().columns();
            let keys = columns.into_iter().map(|column| {
                let name = column.name.clone();
                key(Expr::Column(column)).alias(name)
            });
            let keys: Vec<Expr> = keys.collect();
            let inner = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery)).project(keys)?.build()?;
            subquery.subquery = Arc::new(inner);
            Transformed::yes(Expr::InSubquery(InSubquery { expr: boxed(expr, schema), subquery, negated }))
        }
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) if is_interval(&expr, schema) => {
            let arms = when_then_expr.into_iter().map(|(when, then)| (boxed(when, schema), then)).collect();
            Transformed::yes(Expr::Case(Case { expr: Some(boxed(expr, schema)), when_then_expr: arms, else_expr }))
        }
        Expr::ScalarFunction(function) if function.args.iter().any(|arg| is_interval(arg, schema)) => {
            match (function.name(), function.args.as_slice()) {
                ("nullif", [one, other]) => {
                    let same = key(one.clone()).eq(keyed(other.clone(), schema));
                    let none = lit(ScalarValue::try_from(Kind::Interval.arrow())?);
                    let arms = vec![(Box::new(same), Box::new(none))];
                    Transformed::yes(Expr::Case(Case::new(None, arms, Some(Box::new(one.clone())))))
                }
                ("greatest", args) => Transformed::yes(call(&GREATEST, args.to_vec())),
                ("least", args) => Transformed::yes(call(&LEAST, args.to_vec())),
                _ => Transformed::no(Expr::ScalarFunction(function)),
            }
        }
        Expr::AggregateFunction(function) => aggregate(function, schema)?,
        Expr::WindowFunction(mut window) => {
            let params = &mut window.params;
            let is_of_interval = params.args.first().is_some_and(|arg| is_interval(arg, schema));
            params.partition_by = std::mem::take(&mut params.partition_by)
                .into_iter()
                .map(|expression| keyed(expression, schema))
                .collect();
            params.order_by = sorts(std::mem::take(&mut params.order_by), schema);
            if let (WindowFunctionDefinition::AggregateUDF(function), true) = (&window.fun, is_of_interval)
                && let Some(function) = total(function.name())
            {
                window.fun = WindowFunctionDefinition::AggregateUDF(function);
            }
            Transformed::yes(Expr::WindowFunction(window))
        }
        other => Transformed::no(other),
    })
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// An aggregate of intervals, or in the order of some.
fn aggregate(function: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let AggregateFunction { func, params } = function;
    let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = params;
    let order_by = sorts(order_by, schema);
    let is_of_interval = args.first().is_some_and(|arg| is_interval(arg, schema));
    let (func, args, distinct) = match (func.name(), is_of_interval) {
        ("count", true) if distinct => (func, args.into_iter().map(|arg| keyed(arg, schema)).collect(), true),
        (name, true) if distinct && !matches!(name, "min" | "max") => {
            let message = format!("{name}(DISTINCT interval) is not served: take it of a query that has them once");
            return Err(refused(message, "0A000"));
        }
        (name, true) => match total(name) {
            Some(total) => (total, args, false),
            None => (func, args, distinct),
        },
        _ => (func, args, distinct),
    };
    let params = AggregateFunctionParams { args, distinct, filter, order_by, null_treatment };
    Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
}

/// A plan's node that compares whole rows.
fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            sort.expr = sorts(sort.expr, &schema);
            Transformed::yes(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
            let pairs = std::mem::take(&mut join.on).into_iter();
            join.on = pairs.map(|(one, other)| (keyed(one, &left), keyed(other, &right))).collect();
            Transformed::yes(LogicalPlan::Join(join))
        }
        LogicalPlan::Aggregate(aggregate) => Transformed::yes(grouped(aggregate)?),
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            Transformed::yes(grouped(Aggregate::try_new(input, columns, Vec::new())?)?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = Arc::clone(on.input.schema());
            on.on_expr = on.on_expr.into_iter().map(|expression| keyed(expression, &schema)).collect();
            on.sort_expr = on.sort_expr.map(|order| sorts(order, &schema));
            Transformed::yes(LogicalPlan::Distinct(Distinct::On(on)))
        }
        other => Transformed::no(other),
    })
}

fn has_interval(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| Kind::of(field.data_type()) == Kind::Interval)
}

/// Groups by lengths, with the first interval of each group.
fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = Arc::clone(aggregate.input.schema());
    let is_of_intervals = |expression: &Expr| is_interval(expression, &schema);
    if !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)) || is_of_intervals(group)) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let mut groups = Vec::with_capacity(aggregate.group_expr.len());
    let mut values = Vec::new();
    for (at, group) in aggregate.group_expr.iter().enumerate() {
        match group {
            Expr::GroupingSet(sets) if sets.distinct_expr().into_iter().any(is_of_intervals) => {
                return Err(refused(
                    "grouping sets of intervals are not served: group by one list of columns",
                    "0A000",
                ));
            }
            group if is_of_intervals(group) => {
                let name = format!("$length{at}");
                groups.push(key(group.clone()).alias(name));
                let params = AggregateFunctionParams {
                    args: vec![group.clone()],
                    distinct: false,
                    filter: None,
                    order_by: Vec::new(),
                    null_treatment: None,
                };
                let first = Expr::AggregateFunction(AggregateFunction { func: first_value_udaf(), params });
                values.push((at, first.alias(format!("$interval{at}"))));
            }
            group => groups.push(group.clone()),
        }
    }
    if values.is_empty() {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let mut aggregates = aggregate.aggr_expr.clone();
    aggregates.extend(values.iter().map(|(_, first)| first.clone()));
    let inner = Aggregate::try_new(Arc::clone(&aggregate.input), groups, aggregates)?;
    let columns = inner.schema.columns();
    let shown = aggregate.schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let is_interval = values.iter().any(|(place, _)| *place == at);
        let column = match (is_interval, columns.get(at)) {
            (false, Some(column)) => column.clone(),
            _ => Column::from_name(format!("$interval{at}")),
        };
        Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
    });
    let shown: Vec<Expr> = shown.collect();
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(inner)).project(shown)?.build()
}
