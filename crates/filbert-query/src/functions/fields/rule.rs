//! The rule that resolves untyped fields in plans, before types are coerced.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Distinct;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::function::What;
use super::resolve::{resolve_all, untyped};

/// Resolves untyped fields.
#[derive(Debug)]
pub(crate) struct Fields;

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
            // What a plan is over may have got other types, or marks.
            Ok(Transformed::yes(resolved.recompute_schema()?))
        })?;
        Ok(transformed.data)
    }
}

/// Whether there is anything to resolve: fields come from objects only.
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
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let plan = plan
        .map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(resolve_all(expr, &schema)?.update_data(|expr| name.restore(expr)))
        })?
        .data;
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            sort.expr = order(sort.expr, &schema).data;
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.sort_expr = on.sort_expr.map(|sorts| order(sorts, &schema).data);
            LogicalPlan::Distinct(Distinct::On(on))
        }
        other => other,
    })
}

/// What rows are ordered by.
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
