//! The rule that resolves untyped fields in plans, before type coercion.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::logical_plan::{Distinct, Union};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::optimizer::AnalyzerRule;

use super::function::What;
use super::resolve::{as_type, resolve_all, untyped};
use crate::named::{map_named, schema_within};
use crate::types::is_untyped;

/// Resolves untyped fields.
#[derive(Debug)]
pub struct Fields;

impl AnalyzerRule for Fields {
    fn name(&self) -> &str {
        "untyped_fields"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_fields(&plan)? {
            return Ok(plan);
        }
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let resolved = resolved(plan)?;
            // The inputs may have new types or marks.
            Ok(Transformed::yes(resolved.recompute_schema()?))
        })?;
        Ok(transformed.data)
    }
}

/// Whether a plan may have untyped fields, which come from objects only.
fn has_fields(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| {
                Ok(matches!(expr, Expr::ScalarFunction(call) if call.func.name().starts_with("object")))
            })?;
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

fn resolved(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = schema_within(&plan)?;
    let plan = map_named(plan, |expr| resolve_all(expr, &schema))?.data;
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            sort.expr = order(sort.expr, &schema).data;
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.sort_expr = on.sort_expr.map(|sorts| order(sorts, &schema).data);
            LogicalPlan::Distinct(Distinct::On(on))
        }
        LogicalPlan::Union(union) => united(union)?,
        other => other,
    })
}

/// A union in which a column is untyped in some queries and typed in others: the fields are read in
/// that type.
fn united(union: Union) -> Result<LogicalPlan> {
    let of_column = |at: usize| union.inputs.iter().filter_map(move |input| input.schema().fields().get(at));
    let has_fields = |at: usize| of_column(at).any(|field| is_untyped(field));
    let typed = |at: usize| of_column(at).find(|field| !is_untyped(field) && !field.data_type().is_null()).cloned();
    let mut inputs = Vec::with_capacity(union.inputs.len());
    let mut changed = false;
    for input in &union.inputs {
        let columns = input.schema().columns();
        let mut expressions = Vec::with_capacity(columns.len());
        for (at, (column, field)) in columns.into_iter().zip(input.schema().fields()).enumerate() {
            let name = column.name.clone();
            let column = Expr::Column(column);
            let read = match typed(at).filter(|_| has_fields(at)) {
                Some(other) if is_untyped(field) => as_type(column, other.data_type()),
                // Nulls beside untyped fields are untyped.
                None if has_fields(at) && field.data_type().is_null() => {
                    What::Mark.call(vec![cast(column, DataType::Utf8View)])
                }
                _ => {
                    expressions.push(column);
                    continue;
                }
            };
            changed = true;
            expressions.push(read.alias(name));
        }
        inputs.push((Arc::clone(input), expressions));
    }
    if !changed {
        return Ok(LogicalPlan::Union(union));
    }
    let inputs = inputs
        .into_iter()
        .map(|(input, expressions)| LogicalPlanBuilder::from(input).project(expressions)?.build().map(Arc::new));
    Union::try_new_with_loose_types(inputs.collect::<Result<Vec<_>>>()?).map(LogicalPlan::Union)
}

/// Sort expressions.
pub(super) fn order(sorts: Vec<Sort>, schema: &DFSchema) -> Transformed<Vec<Sort>> {
    let mut changed = false;
    let ordered = sorts.into_iter().map(|sort| {
        if !untyped(&sort.expr, schema) {
            return sort;
        }
        changed = true;
        Sort { expr: What::Key.call(vec![sort.expr]), ..sort }
    });
    let ordered: Vec<Sort> = ordered.collect();
    if changed { Transformed::yes(ordered) } else { Transformed::no(ordered) }
}
