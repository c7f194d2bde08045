//! Conditions beside lateral joins. A condition over the left side alone holds before the right
//! side is computed for the row: `FROM t, jsonb_array_elements(t.list) AS item WHERE
//! jsonb_typeof(t.list) = 'array'` calls the function for arrays only, as PostgreSQL does.
//!
//! The right side is computed for all values of the left side once it is no subquery any more, so
//! this has to happen before.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, Filter, JoinType, LogicalPlan, LogicalPlanBuilder};
use filbert_functions::guards;

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

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}
