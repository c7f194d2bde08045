//! DataFusion's rule for projections, except for joins with conditional expressions.
//!
//! The rule computes parts of a nested loop join's condition below the join, for all rows of one
//! side, if they depend on that side alone. Within a `CASE`, such a part applies only to the rows
//! that reach its branch, and may fail for other rows. A guard of the condition would be lost
//! ([`guards`](filbert_functions::guards)).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CaseExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::remove_unnecessary_projections;

/// The name of DataFusion's rule.
pub(super) const NAME: &str = "ProjectionPushdown";

/// DataFusion's rule.
#[derive(Debug)]
pub(super) struct Projections(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for Projections {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if joins_by_choice(&plan)? {
            return plan.transform_down(remove_unnecessary_projections).data();
        }
        self.0.optimize(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether a condition of a nested loop join has a `CASE`.
fn joins_by_choice(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        let join = (node.as_ref() as &dyn std::any::Any).downcast_ref::<NestedLoopJoinExec>();
        if let Some(filter) = join.and_then(NestedLoopJoinExec::filter) {
            found |= has_choice(filter.expression())?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn has_choice(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let mut found = false;
    expression.apply(|inner| {
        found |= (inner.as_ref() as &dyn std::any::Any).is::<CaseExpr>();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
