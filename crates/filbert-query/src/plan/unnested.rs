//! `unnest` of an array of several dimensions. PostgreSQL returns its innermost elements;
//! DataFusion's plan would return inner arrays.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::is_nested;

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
        let mut arrays = unnest.list_type_columns.iter().filter_map(|(column, _)| fields.get(*column));
        let is_set = |name: &str| OF_ARRAYS.iter().any(|function| name.contains(&format!("({function}(")));
        if arrays.any(|field| is_nested(field.data_type()) && !is_set(field.name())) {
            let text = "unnest of an array of several dimensions is not served";
            return Err(carried(parsing_error(text).with_sqlstate("0A000")));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
