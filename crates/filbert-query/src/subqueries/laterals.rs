//! Conditions beside lateral joins. A condition over the left side alone holds before the right
//! side is computed for the row: `FROM t, jsonb_array_elements(t.list) AS item WHERE
//! jsonb_typeof(t.list) = 'array'` calls the function for arrays only, as PostgreSQL does.
//!
//! After the subquery has become a join, the right side is computed for all values of the left
//! side. So the conditions must be moved before that.
//!
//! Also determines the part of the left side that provides these values.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, JoinType, LogicalPlan, LogicalPlanBuilder};
use filbert_functions::{fallible, guards};

use super::is_lateral;

/// The plan with conditions at the sides that they are about.
pub(super) fn narrowed(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan
        .transform_down_with_subqueries(|node| {
            let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
            let LogicalPlan::Join(join) = filter.input.as_ref() else {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            };
            let keeps_left = matches!(join.join_type, JoinType::Inner | JoinType::Left);
            if !keeps_left || !is_lateral(&join.right) {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            }
            let left = join.left.schema();
            let is_of_left = |term: &Expr| {
                let columns = term.column_refs();
                !columns.is_empty()
                    && columns.iter().all(|column| left.has_column(column))
                    && !term.is_volatile()
                    && !term.contains_outer()
                    && !term.exists(|inner| Ok(is_subquery(inner))).unwrap_or(true)
            };
            let (of_left, others): (Vec<Expr>, Vec<Expr>) =
                split_conjunction_owned(filter.predicate.clone()).into_iter().partition(is_of_left);
            let Some(of_left) = guards::all_of(of_left) else {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            };
            let mut join = join.clone();
            join.left = Arc::new(LogicalPlanBuilder::from(join.left).filter(of_left)?.build()?);
            let join = LogicalPlan::Join(join);
            Ok(Transformed::yes(match guards::all_of(others) {
                Some(others) => LogicalPlan::Filter(Filter::try_new(others, Arc::new(join))?),
                None => join,
            }))
        })?
        .data)
}

/// The part of the left side that the right side takes its outer values from: the narrowest one
/// that has the columns. If it took them from the whole left side, each lateral join would double
/// the plan.
///
/// An inner join and a condition may drop rows. Without them, the right side would be computed for
/// the values of dropped rows too. Therefore they stay part of the values if the right side can
/// fail.
pub(super) fn values_from<'p>(left: &'p LogicalPlan, right: &LogicalPlan, columns: &[Column]) -> &'p LogicalPlan {
    let has_all = |plan: &LogicalPlan| columns.iter().all(|column| plan.schema().has_column(column));
    let may_drop = !can_fail(right);
    let (mut narrowest, mut plan) = (left, left);
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection)
                if projection.expr.iter().all(|item| matches!(item, Expr::Column(_))) && has_all(&projection.input) =>
            {
                &projection.input
            }
            LogicalPlan::Filter(filter) if may_drop => &filter.input,
            LogicalPlan::Join(join)
                if has_all(&join.left)
                    && (join.join_type == JoinType::Left || may_drop && join.join_type == JoinType::Inner) =>
            {
                narrowest = &join.left;
                &join.left
            }
            LogicalPlan::Join(join) if may_drop && join.join_type == JoinType::Inner && has_all(&join.right) => {
                narrowest = &join.right;
                &join.right
            }
            _ => return narrowest,
        };
    }
}

/// Aggregates with a result for all rows. Sums overflow, and a subquery with one value fails for
/// several rows.
const TOTAL: [&str; 3] = ["count", "max", "min"];

/// Whether an expression of a plan can fail for some rows.
fn can_fail(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let known = plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            let is_partial = |inner: &Expr| match inner {
                Expr::AggregateFunction(aggregate) => !TOTAL.contains(&aggregate.func.name()),
                Expr::WindowFunction(_) | Expr::ScalarSubquery(_) => true,
                _ => false,
            };
            found |= fallible::can_fail(expression, &schema) || expression.exists(|inner| Ok(is_partial(inner)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    found || known.is_err()
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}
