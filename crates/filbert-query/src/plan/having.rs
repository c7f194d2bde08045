//! Conditions about no column, over aggregates that have a row without any input: `HAVING (SELECT false)`,
//! `SELECT .. FROM (SELECT count(*) ..) WHERE random() < 0.5`; also about a column that is a constant.
//!
//! DataFusion moves such a condition below the aggregate, as one about its keys, where it takes the rows from the aggregate but not the
//! aggregate's own row. A limit that takes no row away keeps it above.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

/// More rows than there are; a plan's limits are signed.
const ROWS_MAX: usize = usize::MAX >> 1;

/// Keeps conditions about no column above aggregates.
pub(crate) fn keep_above(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut has_condition, mut has_aggregate) = (false, false);
    let (mut has_any_condition, mut has_constant) = (false, false);
    plan.apply_with_subqueries(|node| {
        has_aggregate |= matches!(node, LogicalPlan::Aggregate(aggregate) if has_always_a_row(aggregate));
        // A condition about a column that is a constant comes to be about none.
        has_constant |= match node {
            LogicalPlan::Projection(projection) => projection.expr.iter().any(|item| item.column_refs().is_empty()),
            _ => false,
        };
        has_any_condition |= match node {
            LogicalPlan::Filter(_) => true,
            LogicalPlan::Join(join) => join.filter.is_some() || !join.on.is_empty(),
            _ => false,
        };
        has_condition |= match node {
            LogicalPlan::Filter(filter) => is_about_nothing(&filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_ref().is_some_and(is_about_nothing),
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    has_condition |= has_any_condition && has_constant;
    if !has_condition || !has_aggregate {
        return Ok(plan);
    }
    let kept = plan.transform_up_with_subqueries(|node| match &node {
        // An aggregate over rows of an outer row becomes one with keys.
        LogicalPlan::Aggregate(aggregate) if has_always_a_row(aggregate) && node.all_out_ref_exprs().is_empty() => {
            let rows_max = if aggregate.group_expr.is_empty() { 1 } else { ROWS_MAX };
            LogicalPlanBuilder::from(node).limit(0, Some(rows_max))?.build().map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(kept.data)
}

/// Whether one of the terms of a condition names no column.
fn is_about_nothing(condition: &Expr) -> bool {
    let is_constant = |term: &&Expr| term.column_refs().is_empty() && !matches!(term, Expr::Literal(..));
    split_conjunction(condition).iter().any(is_constant)
}

/// Whether an aggregate has a row without any input.
fn has_always_a_row(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
}
