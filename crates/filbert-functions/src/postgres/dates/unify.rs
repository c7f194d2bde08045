//! Common types of dates and timestamps beside `timestamptz`, and windows ordered by intervals,
//! before type coercion.
//!
//! DataFusion converts a date and a `timestamptz` to timestamps without a zone, and has no windows
//! over intervals. A rule applies PostgreSQL's types first.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InSubquery, Placeholder};
use datafusion::logical_expr::logical_plan::Union;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Values, cast};
use datafusion::optimizer::AnalyzerRule;
use filbert_dialect::calls::{COMPARE_ALL, COMPARE_ANY};

use super::super::keys::sorts;
use super::cells::Kind;
use super::operators::{common as common_kind, unify};
use crate::named::{map_named, schema_within, with_types_of_inputs};
use crate::numbers::is_shift;
use crate::types::{innermost, with_innermost};

/// Gives expressions that are combined PostgreSQL's common type.
#[derive(Debug)]
pub struct CommonTypes;

impl AnalyzerRule for CommonTypes {
    fn name(&self) -> &str {
        "common_types_of_dates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !is_concerned(&plan)? {
            return Ok(plan);
        }
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let plan = expressions(plan)?;
            Ok(Transformed::yes(match plan {
                LogicalPlan::Union(union) => united(union)?,
                LogicalPlan::Values(values) => LogicalPlan::Values(listed(values)?),
                other => other.recompute_schema()?,
            }))
        })?;
        Ok(transformed.data)
    }
}

/// Whether a plan has a `timestamptz`, or an interval that may order a window.
fn is_concerned(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        let mut is_one = |schema: &DFSchema| {
            let kinds = schema.fields().iter().map(|field| Kind::of(innermost(field.data_type())));
            found |= kinds.into_iter().any(|kind| matches!(kind, Kind::Timestamptz | Kind::Timestamp | Kind::Interval));
        };
        is_one(plan.schema());
        plan.inputs().into_iter().for_each(|input| is_one(input.schema()));
        let mut has_timestamp = false;
        plan.apply_expressions(|expression| {
            has_timestamp |= expression.exists(|inner| {
                let kind = match inner {
                    Expr::Cast(cast) => Kind::of(innermost(cast.field.data_type())),
                    Expr::Placeholder(Placeholder { field: Some(field), .. }) => Kind::of(innermost(field.data_type())),
                    Expr::Literal(value, _) => Kind::of(innermost(&value.data_type())),
                    _ => Kind::Unknown,
                };
                Ok(matches!(kind, Kind::Timestamptz | Kind::Timestamp))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        found |= has_timestamp;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn expressions(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = schema_within(&plan)?;
    let transformed = map_named(plan, |expression| expression.transform_up(|expression| common(expression, &schema)))?;
    Ok(transformed.data)
}

fn common(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let results = results.chain(case.else_expr.as_deref_mut()).collect();
            let mut is_changed = unify(results, schema);
            if let Some(compared) = &mut case.expr {
                let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                is_changed |= unify(std::iter::once(&mut **compared).chain(others).collect(), schema);
            }
            if is_changed { Transformed::yes(Expr::Case(case)) } else { Transformed::no(Expr::Case(case)) }
        }
        Expr::Between(mut between) => {
            let is_changed = unify(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema);
            if is_changed { Transformed::yes(Expr::Between(between)) } else { Transformed::no(Expr::Between(between)) }
        }
        Expr::InList(mut list) => {
            let all = std::iter::once(&mut *list.expr).chain(&mut list.list).collect();
            let is_changed = unify(all, schema);
            if is_changed { Transformed::yes(Expr::InList(list)) } else { Transformed::no(Expr::InList(list)) }
        }
        Expr::BinaryExpr(mut binary) if is_comparison(binary.op) => {
            let is_changed = unify(vec![&mut *binary.left, &mut *binary.right], schema);
            if is_changed {
                Transformed::yes(Expr::BinaryExpr(binary))
            } else {
                Transformed::no(Expr::BinaryExpr(binary))
            }
        }
        Expr::ScalarFunction(mut call) if call.name() == "make_array" => {
            let is_changed = unify(call.args.iter_mut().collect(), schema);
            if is_changed {
                Transformed::yes(Expr::ScalarFunction(call))
            } else {
                Transformed::no(Expr::ScalarFunction(call))
            }
        }
        Expr::ScalarFunction(mut call) if matches!(call.name(), COMPARE_ANY | COMPARE_ALL) => {
            let is_changed = match call.args.as_mut_slice() {
                [_, item, array] => with_items(item, array, schema),
                _ => false,
            };
            if is_changed {
                Transformed::yes(Expr::ScalarFunction(call))
            } else {
                Transformed::no(Expr::ScalarFunction(call))
            }
        }
        Expr::InSubquery(among) => within(among, schema)?,
        Expr::WindowFunction(mut window) => {
            window.params.order_by = sorts(std::mem::take(&mut window.params.order_by), schema);
            if is_shift(&window.fun)
                && let [value, _, default] = window.params.args.as_mut_slice()
            {
                unify(vec![value, default], schema);
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

/// Casts a value and the array that it is compared with to their common type; returns whether one
/// was cast. The session's zone counts where the other is a `timestamptz`.
fn with_items(item: &mut Expr, array: &mut Expr, schema: &DFSchema) -> bool {
    let (Ok(of_item), Ok(of_array)) = (item.get_type(schema), array.get_type(schema)) else { return false };
    let kinds = [Kind::of(&of_item), Kind::of(innermost(&of_array))];
    let is_one = |kind: Kind| matches!(kind, Kind::Date | Kind::Timestamp | Kind::Timestamptz);
    let Some(wanted) = common_kind(kinds.into_iter()).filter(|_| kinds.into_iter().all(is_one)) else { return false };
    if kinds[0] != wanted {
        *item = cast(item.clone(), wanted.arrow());
    }
    if kinds[1] != wanted && matches!(of_array, DataType::List(_)) {
        *array = cast(array.clone(), with_innermost(&of_array, &wanted.arrow()));
    }
    kinds[0] != kinds[1]
}

/// A date or timestamp in `IN` with a subquery.
fn within(mut among: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let column =
        among.subquery.subquery.schema().columns().into_iter().zip(among.subquery.subquery.schema().fields()).next();
    let (Some((column, field)), Ok(found)) = (column, among.expr.get_type(schema)) else {
        return Ok(Transformed::no(Expr::InSubquery(among)));
    };
    let (of_value, of_column) = (Kind::of(&found), Kind::of(field.data_type()));
    let wanted = common_kind([of_value, of_column].into_iter());
    let Some(wanted) = wanted.filter(|_| of_value != of_column) else {
        return Ok(Transformed::no(Expr::InSubquery(among)));
    };
    let is_other = |kind: Kind| matches!(kind, Kind::Date | Kind::Timestamp) && kind != wanted;
    if is_other(of_value) {
        among.expr = Box::new(cast(*among.expr, wanted.arrow()));
    }
    if is_other(of_column) {
        let name = column.name.clone();
        let items = vec![cast(Expr::Column(column), wanted.arrow()).alias(name)];
        let plan = LogicalPlanBuilder::from(Arc::clone(&among.subquery.subquery)).project(items)?.build()?;
        among.subquery.subquery = Arc::new(plan);
    }
    Ok(Transformed::yes(Expr::InSubquery(among)))
}

/// Rows of `VALUES`. DataFusion would use nanoseconds where dates are beside timestamps.
fn listed(values: Values) -> Result<Values> {
    let Values { schema, values: mut rows } = values;
    let is_nanoseconds = |data_type: &DataType| matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let none = DFSchema::empty();
    let mut fields = Vec::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        let plain = |row: &Vec<Expr>| match row.get(at) {
            Some(Expr::Cast(outer)) if is_nanoseconds(outer.field.data_type()) => Some(outer.expr.as_ref().clone()),
            other => other.cloned(),
        };
        let kind = |value: &Expr| value.get_type(&none).map_or(Kind::Unknown, |found| Kind::of(&found));
        let given: Vec<Expr> = rows.iter().filter_map(plain).collect();
        let Some(wanted) = common_kind(given.iter().map(kind)).filter(|_| is_nanoseconds(field.data_type())) else {
            fields.push((None, Arc::clone(field)));
            continue;
        };
        for (row, value) in rows.iter_mut().zip(given) {
            if let Some(place) = row.get_mut(at) {
                *place = cast(value, wanted.arrow());
            }
        }
        fields.push((None, Arc::new(field.as_ref().clone().with_data_type(wanted.arrow()))));
    }
    let schema = DFSchema::new_with_metadata(fields, schema.metadata().clone())?;
    Ok(Values { schema: Arc::new(schema), values: rows })
}

/// A union in which a column is a `timestamptz` in some queries, and a date or timestamp in others.
fn united(union: Union) -> Result<LogicalPlan> {
    let union = with_types_of_inputs(union)?;
    let kinds = |at: usize| {
        let fields = union.inputs.iter().filter_map(move |input| input.schema().fields().get(at));
        fields.map(|field| Kind::of(field.data_type()))
    };
    // The common type of a column's dates and timestamps.
    let wanted = |at: usize| {
        let common = common_kind(kinds(at))?;
        kinds(at).any(|kind| kind != common && matches!(kind, Kind::Date | Kind::Timestamp)).then_some(common)
    };
    let width = union.schema.fields().len();
    if (0..width).all(|at| wanted(at).is_none()) {
        return Ok(LogicalPlan::Union(union));
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        let columns = input.schema().columns().into_iter().zip(input.schema().fields()).enumerate();
        let items = columns.map(|(at, (column, field))| {
            let name = column.name.clone();
            let column = Expr::Column(column);
            let is_one = matches!(Kind::of(field.data_type()), Kind::Date | Kind::Timestamp);
            let column = match wanted(at).filter(|_| is_one) {
                Some(wanted) => cast(column, wanted.arrow()),
                None => column,
            };
            column.alias(name)
        });
        let items: Vec<Expr> = items.collect();
        inputs.push(Arc::new(LogicalPlanBuilder::from(Arc::clone(input)).project(items)?.build()?));
    }
    Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union)
}
