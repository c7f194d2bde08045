//! `unnest` of an array of several dimensions. PostgreSQL returns its innermost elements;
//! DataFusion's plan would return inner arrays.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan};
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::is_nested;

use super::planner::unaliased;

/// Functions that return a set of arrays. Their plan is an `unnest` of the array of all of them.
const OF_ARRAYS: [&str; 1] = ["regexp_matches"];

/// Rejects a plan that would return inner arrays.
///
/// # Errors
/// SQLSTATE 0A000.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Unnest(unnest) = node else { return Ok(TreeNodeRecursion::Continue) };
        let fields = unnest.input.schema().fields();
        let items = match unnest.input.as_ref() {
            LogicalPlan::Projection(projection) => projection.expr.as_slice(),
            _ => &[],
        };
        let is_set = |item: &Expr| {
            matches!(unaliased(item), Expr::ScalarFunction(call) if OF_ARRAYS.contains(&call.func.name()))
        };
        let mut columns = unnest.list_type_columns.iter().map(|(column, _)| *column);
        let returns_arrays = |column: usize| {
            fields.get(column).is_some_and(|field| is_nested(field.data_type()))
                && !items.get(column).is_some_and(is_set)
        };
        if columns.any(returns_arrays) {
            let text = "unnest of an array of several dimensions is not served";
            return Err(carried(parsing_error(text).with_sqlstate("0A000")));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
