//! Mark joins for subqueries with unused columns. A mark join marks the rows that have a match in
//! the subquery.
//!
//! A subquery over the outer row alone may lose all columns: `x >= ALL (SELECT NOT EXISTS (..))`.
//! DataFusion's column rule requires a column there, and names the mark after it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::logical_plan::{Join, JoinType, Projection};
use datafusion::logical_expr::{LogicalPlan, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rule that gives such subqueries a column.
pub(super) fn columns() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Columns)
}

#[derive(Debug)]
struct Columns;

impl OptimizerRule for Columns {
    fn name(&self) -> &str {
        "columns_of_marked_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if join.join_type == JoinType::LeftMark && is_without_columns(&join.right) => {
                // The name of the subquery, which the nodes above use to find the mark.
                let relation = match join.right.as_ref() {
                    LogicalPlan::SubqueryAlias(subquery) => Some(subquery.alias.clone()),
                    _ => join.schema.iter().last().and_then(|(relation, _)| relation.cloned()),
                };
                let column = lit(true).alias_qualified(relation, "any_row");
                let right = Projection::try_new(vec![column], join.right)?;
                let join = LogicalPlan::Join(Join { right: Arc::new(LogicalPlan::Projection(right)), ..join });
                Ok(Transformed::yes(join.recompute_schema()?))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

fn is_without_columns(plan: &LogicalPlan) -> bool {
    plan.schema().fields().is_empty()
}
