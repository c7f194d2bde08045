//! Limits that DataFusion pushes into `DISTINCT`, so that it ends after enough rows.
//!
//! DataFusion does this before it knows the order of the rows below. If these are ordered, its
//! `DISTINCT` treats the limit as that of an `ORDER BY .. LIMIT` and fails. The limit is removed
//! there; the limit above stays.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// The plan without limits that fail at run time.
pub(crate) fn runnable(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let runnable = plan.transform_up(|node| {
        let any = node.as_ref() as &dyn std::any::Any;
        let Some(aggregate) = any.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let Some(limit) = aggregate.limit_options() else { return Ok(Transformed::no(node)) };
        let has_direction = limit.descending().is_some() || aggregate.get_minmax_desc().is_some();
        if has_direction || aggregate.is_unordered_unfiltered_group_by_distinct() {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(Arc::new(aggregate.with_new_limit_options(None)) as Arc<dyn ExecutionPlan>))
    });
    runnable.map(|runnable| runnable.data)
}
