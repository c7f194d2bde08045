//! Comparison by keys: intervals are compared by length, documents by value, and orders and
//! partitions ignore the sign of zero.
//!
//! Arrow compares intervals by their parts and documents as texts, and puts -0 before 0. A rule
//! replaces values by their keys in comparisons, groups, joins and orders. It keeps the first value
//! of each group for display.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions::unicode;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, InList, InSubquery, ScalarFunction, Sort,
};
use datafusion::logical_expr::logical_plan::Distinct;
use datafusion::logical_expr::{
    Aggregate, Between, BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    WindowFunctionDefinition, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::super::numbers;
use super::array_order;
use super::compared_items::Items;
use super::dates::{extreme_of, is_of_intervals, length_of, total};
use super::marked::marked_as;
use super::operators::call;
use super::unserved;
use crate::error::{carried, parsing_error};
use crate::named::{map_named, schema_within};
use crate::types::{JSONB, Mark, pg_type_of};

/// Replaces compared values by their keys.
#[derive(Debug)]
pub struct Keys;

impl AnalyzerRule for Keys {
    fn name(&self) -> &str {
        "keys_of_values"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_keyed(&plan)? {
            return Ok(plan);
        }
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let plan = compared(plan)?;
            node(plan)
        })?;
        Ok(transformed.data)
    }
}

/// Whether a plan has values with keys; most plans have none.
fn has_keyed(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        found |= plan.schema().fields().iter().any(|field| Kind::of(field).is_some());
        if !found {
            let schema = schema_within(plan)?;
            plan.apply_expressions(|expression| {
                found |=
                    expression.exists(|inner| Ok(kind(inner, &schema).is_some() || orders_zeros(inner, &schema)))?;
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
            found |= match plan {
                LogicalPlan::Sort(sort) => has_zeros_before_others(&sort.expr, &schema),
                LogicalPlan::Distinct(Distinct::On(on)) => {
                    on.on_expr.iter().any(|expression| is_float(expression, &schema))
                        || on.sort_expr.as_ref().is_some_and(|order| has_zeros_before_others(order, &schema))
                }
                _ => false,
            };
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether an expression has an order or a comparison of its own that would distinguish zeros.
fn orders_zeros(expression: &Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::Case(Case { expr: Some(compared), .. }) => is_float(compared, schema),
        Expr::AggregateFunction(function) => has_zeros_before_others(&function.params.order_by, schema),
        Expr::WindowFunction(window) => {
            let peers = window.params.order_by.iter().map(|sort| &sort.expr);
            peers.chain(&window.params.partition_by).any(|expression| is_float(expression, schema))
        }
        _ => false,
    }
}

/// Whether floating-point numbers come before a further key of an order.
fn has_zeros_before_others(order: &[Sort], schema: &DFSchema) -> bool {
    order.split_last().is_some_and(|(_, before)| before.iter().any(|sort| is_float(&sort.expr, schema)))
}

/// Types that Arrow compares differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// By length.
    Interval,
    /// By value, independent of the notation of numbers.
    Document,
    /// With nulls as the greatest elements; only orders need a key.
    Array,
    /// With elements that Arrow compares differently, see [`Items`].
    ArrayOf(Items),
}

impl Kind {
    fn of(field: &Field) -> Option<Kind> {
        match field.data_type() {
            DataType::List(_) => Some(Items::of(field).map_or(Kind::Array, Kind::ArrayOf)),
            data_type if is_of_intervals(data_type) => Some(Kind::Interval),
            _ if pg_type_of(field) == Some(JSONB) => Some(Kind::Document),
            _ => None,
        }
    }

    /// The key of a value, if it differs from the value.
    fn key(self, value: Expr) -> Expr {
        match self {
            Kind::Interval => length_of(value),
            Kind::Document => call("jsonb_order", vec![value.clone()]).unwrap_or(value),
            Kind::Array => value,
            Kind::ArrayOf(_) => array_order::key(value),
        }
    }

    /// Whether values of this type are compared by a key.
    fn is_keyed(self) -> bool {
        self != Kind::Array
    }

    /// Whether no kernel of the libraries finds the greatest of such values.
    fn has_no_extreme(self) -> bool {
        matches!(self, Kind::ArrayOf(Items::Intervals | Items::Documents))
    }
}

/// The key function of a field, if its values are compared by keys, and a key that no value has.
pub fn key_of(field: &Field) -> Option<(impl Fn(Expr) -> Expr, ScalarValue)> {
    let of = Kind::of(field)?;
    let none = match of {
        Kind::Interval => ScalarValue::Decimal128(Some(0), 38, 0),
        Kind::Document => ScalarValue::BinaryView(Some(Vec::new())),
        Kind::ArrayOf(_) => ScalarValue::Binary(Some(Vec::new())),
        Kind::Array => return None,
    };
    Some((move |value| of.key(value), none))
}

fn kind(expression: &Expr, schema: &DFSchema) -> Option<Kind> {
    // The name of a field is the text of its expression, and conditions are long.
    if is_condition(expression) {
        return None;
    }
    let (_, field) = expression.to_field(schema).ok()?;
    Kind::of(&field)
}

fn is_condition(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_logic_operator() || is_comparison(*op),
        Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::InList(_) | Expr::Between(_) | Expr::Like(_) => {
            true
        }
        _ => false,
    }
}

/// Whether a value is compared by a key.
fn is_keyed(expression: &Expr, schema: &DFSchema) -> bool {
    kind(expression, schema).is_some_and(Kind::is_keyed)
}

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    kind(expression, schema) == Some(Kind::Interval)
}

fn keyed(expression: Expr, schema: &DFSchema) -> Expr {
    match kind(&expression, schema) {
        Some(kind) => kind.key(expression),
        None => expression,
    }
}

#[allow(clippy::boxed_local, reason = "what it is called with is boxed")]
fn boxed(expression: Box<Expr>, schema: &DFSchema) -> Box<Expr> {
    Box::new(keyed(*expression, schema))
}

fn is_float(expression: &Expr, schema: &DFSchema) -> bool {
    expression.get_type(schema).is_ok_and(|data_type| matches!(data_type, DataType::Float32 | DataType::Float64))
}

/// An order by keys. The sign of zero matters only if further sort keys follow.
pub(super) fn sorts(order: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
    let last = order.len().saturating_sub(1);
    let keys = order.into_iter().enumerate().map(|(place, sort)| {
        let is_plain = place == last && is_float(&sort.expr, schema);
        if is_plain { sort } else { Sort { expr: ordered(sort.expr, schema), ..sort } }
    });
    keys.collect()
}

/// The sort or partition key of a value.
fn ordered(expression: Expr, schema: &DFSchema) -> Expr {
    match kind(&expression, schema) {
        Some(Kind::Array | Kind::ArrayOf(_)) => array_order::key(expression),
        None if is_float(&expression, schema) => match numbers::operators::function(numbers::ORDER) {
            Some(order) => Expr::ScalarFunction(ScalarFunction::new_udf(order, vec![expression])),
            None => expression,
        },
        _ => keyed(expression, schema),
    }
}

/// Rewrites the expressions of a plan's node.
fn compared(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = schema_within(&plan)?;
    let transformed =
        map_named(plan, |expression| expression.transform_up(|expression| comparison(expression, &schema)))?;
    if transformed.transformed { transformed.data.recompute_schema() } else { Ok(transformed.data) }
}

fn comparison(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        // For documents only the joins with outer values of a subquery. Comparisons in the
        // statement are by keys already.
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op)
                && (is_interval(&left, schema)
                    || is_interval(&right, schema)
                    || is_keyed(&left, schema) && is_keyed(&right, schema)) =>
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
        Expr::InSubquery(InSubquery { expr, mut subquery, negated }) if is_keyed(&expr, schema) => {
            let within = subquery.subquery.schema();
            let keys = within.columns().into_iter().map(|column| {
                let name = column.name.clone();
                keyed(Expr::Column(column), within).alias(name)
            });
            let keys: Vec<Expr> = keys.collect();
            let inner = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery)).project(keys)?.build()?;
            subquery.subquery = Arc::new(inner);
            Transformed::yes(Expr::InSubquery(InSubquery { expr: boxed(expr, schema), subquery, negated }))
        }
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })
            if is_keyed(&expr, schema) || is_float(&expr, schema) =>
        {
            let key = |value: Box<Expr>| Box::new(ordered(*value, schema));
            let arms = when_then_expr.into_iter().map(|(when, then)| (key(when), then)).collect();
            Transformed::yes(Expr::Case(Case { expr: Some(key(expr)), when_then_expr: arms, else_expr }))
        }
        Expr::ScalarFunction(function) => match function.args.iter().find_map(|arg| kind(arg, schema)) {
            Some(of) => match (function.name(), function.args.as_slice()) {
                ("nullif", [one, other]) if of != Kind::Array => {
                    let same = of.key(one.clone()).eq(keyed(other.clone(), schema));
                    let none = lit(ScalarValue::try_from(one.get_type(schema)?)?);
                    let arms = vec![(Box::new(same), Box::new(none))];
                    Transformed::yes(Expr::Case(Case::new(None, arms, Some(Box::new(one.clone())))))
                }
                (name @ ("greatest" | "least"), args) => {
                    let is_least = name == "least";
                    let ours = if is_least { "value_least" } else { "value_greatest" };
                    match of {
                        Kind::Interval => Transformed::yes(extreme_of(args.to_vec(), is_least)),
                        Kind::Document | Kind::Array | Kind::ArrayOf(_) => match call(ours, args.to_vec()) {
                            Some(extreme) => Transformed::yes(extreme),
                            None => Transformed::no(Expr::ScalarFunction(function)),
                        },
                    }
                }
                _ => Transformed::no(Expr::ScalarFunction(function)),
            },
            None => Transformed::no(Expr::ScalarFunction(function)),
        },
        Expr::AggregateFunction(function) => aggregate(function, schema)?,
        Expr::WindowFunction(mut window) => {
            check_extreme(window.fun.name(), &window.params.args, schema)?;
            let params = &mut window.params;
            let is_of_interval = params.args.first().is_some_and(|arg| is_interval(arg, schema));
            params.partition_by = std::mem::take(&mut params.partition_by)
                .into_iter()
                .map(|expression| match is_float(&expression, schema) {
                    true => ordered(expression, schema),
                    false => keyed(expression, schema),
                })
                .collect();
            let peers = std::mem::take(&mut params.order_by).into_iter();
            params.order_by = peers.map(|sort| Sort { expr: ordered(sort.expr, schema), ..sort }).collect();
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

/// Rejects `min` and `max` of documents, as in PostgreSQL, and of arrays of documents and of
/// intervals.
fn check_extreme(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    let is_of_documents = args.first().is_some_and(|arg| kind(arg, schema) == Some(Kind::Document));
    if is_of_documents && matches!(name, "min" | "max") {
        return Err(carried(parsing_error(format!("function {name}(jsonb) does not exist")).with_sqlstate("42883")));
    }
    let has_none = |arg| kind(arg, schema).is_some_and(Kind::has_no_extreme);
    if args.first().is_some_and(has_none) && matches!(name, "min" | "max") {
        return Err(unserved(format!("{name} of arrays of intervals and of jsonb is not served: order by them")));
    }
    Ok(())
}

/// An aggregate of intervals, or with an order by keys.
fn aggregate(function: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let AggregateFunction { func, params } = function;
    let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = params;
    // A distinct aggregate can only be ordered by its values.
    let is_array = |kind| matches!(kind, Kind::Array | Kind::ArrayOf(_));
    let is_own = distinct && args.first().is_some_and(|arg| kind(arg, schema).is_some_and(is_array));
    let order_by = if is_own { order_by } else { sorts(order_by, schema) };
    check_extreme(func.name(), &args, schema)?;
    let is_of_interval = args.first().is_some_and(|arg| is_interval(arg, schema));
    let (func, args, distinct) = match (func.name(), is_of_interval) {
        ("count", _) if distinct => (func, args.into_iter().map(|arg| keyed(arg, schema)).collect(), true),
        (name, true) if distinct && !matches!(name, "min" | "max") => {
            let message = format!("{name}(DISTINCT interval) is not served: take it of a query that has them once");
            return Err(unserved(message));
        }
        (name @ "array_agg", false)
            if distinct && args.first().is_some_and(|arg| kind(arg, schema) == Some(Kind::Document)) =>
        {
            let message = format!("{name}(DISTINCT jsonb) is not served: take it of a query that has them once");
            return Err(unserved(message));
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

/// Rewrites a plan's node that compares whole rows.
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
            join.on = pairs.map(|(one, other)| joined((one, &left), (other, &right))).collect();
            Transformed::yes(LogicalPlan::Join(join))
        }
        LogicalPlan::Aggregate(aggregate) => Transformed::yes(grouped(aggregate)?),
        LogicalPlan::Distinct(Distinct::All(input)) if has_keys(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            Transformed::yes(grouped(Aggregate::try_new(input, columns, Vec::new())?)?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = Arc::clone(on.input.schema());
            on.on_expr = on.on_expr.into_iter().map(|expression| ordered(expression, &schema)).collect();
            on.sort_expr = on.sort_expr.map(|order| sorts(order, &schema));
            Transformed::yes(LogicalPlan::Distinct(Distinct::On(on)))
        }
        other => Transformed::no(other),
    })
}

/// The keys of a join's pair of values. An array of texts may be beside one of fixed-length texts:
/// the type of the left side is the type of both, as in PostgreSQL.
fn joined((one, left): (Expr, &DFSchema), (other, right): (Expr, &DFSchema)) -> (Expr, Expr) {
    let of = |value: &Expr, schema: &DFSchema| kind(value, schema).filter(|kind| kind.is_keyed());
    match (of(&one, left), of(&other, right)) {
        (Some(of), None) => {
            let other = match one.to_field(left) {
                Ok((_, field)) => marked_as(other, Mark::of(&field)),
                Err(_) => other,
            };
            (of.key(one), of.key(other))
        }
        (None, Some(of)) => (of.key(one), of.key(other)),
        _ => (keyed(one, left), keyed(other, right)),
    }
}

fn has_keys(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| Kind::of(field).is_some_and(Kind::is_keyed))
}

/// The order that selects one of equal documents for display: the shortest, so every run shows the
/// same.
fn shown_first(value: &Expr, schema: &DFSchema) -> Vec<Sort> {
    match kind(value, schema) {
        Some(Kind::Document) => {
            let length = unicode::character_length().call(vec![value.clone()]);
            vec![length.sort(true, false), value.clone().sort(true, false)]
        }
        _ => Vec::new(),
    }
}

/// Groups by keys, with the first value of each group.
fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = Arc::clone(aggregate.input.schema());
    let has_key = |expression: &Expr| is_keyed(expression, &schema);
    if !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)) || has_key(group)) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let mut groups = Vec::with_capacity(aggregate.group_expr.len());
    let mut values = Vec::new();
    // A repeated group is one column.
    let mut known: Vec<&Expr> = Vec::new();
    for group in &aggregate.group_expr {
        if !known.contains(&group) {
            known.push(group);
        }
    }
    for (at, group) in known.into_iter().enumerate() {
        match group {
            Expr::GroupingSet(sets) if sets.distinct_expr().into_iter().any(has_key) => {
                return Err(unserved(
                    "grouping sets of intervals, of jsonb, and of arrays of these, of floating-point numbers and of char(n) are \
                     not served: group by one list of columns",
                ));
            }
            group if has_key(group) => {
                let name = format!("$key_of{at}");
                groups.push(keyed(group.clone(), &schema).alias(name));
                let params = AggregateFunctionParams {
                    args: vec![group.clone()],
                    distinct: false,
                    filter: None,
                    order_by: shown_first(group, &schema),
                    null_treatment: None,
                };
                let first = Expr::AggregateFunction(AggregateFunction { func: first_value_udaf(), params });
                values.push((at, first.alias(format!("$value{at}"))));
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
        let is_keyed = values.iter().any(|(place, _)| *place == at);
        let column = match (is_keyed, columns.get(at)) {
            (false, Some(column)) => column.clone(),
            _ => Column::from_name(format!("$value{at}")),
        };
        Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
    });
    let shown: Vec<Expr> = shown.collect();
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(inner)).project(shown)?.build()
}
