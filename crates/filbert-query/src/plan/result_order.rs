//! Keeps the order of a result: DataFusion's rules keep it where an operator above requires it, and
//! nothing is above the last operator.
//!
//! A `char(n)` is padded by a projection above the sort. The rules spread the sorted rows over
//! several partitions to compute the projection in parallel, and a cursor reads partitions as they
//! come.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The rule. It must be the last one.
#[derive(Debug)]
pub(super) struct ResultOrder;

impl PhysicalOptimizerRule for ResultOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        in_order(plan)
    }

    fn name(&self) -> &str {
        "result_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan without a repartitioning of ordered rows between its last operator and the operator
/// that orders them.
fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let input = match plan.children().as_slice() {
        [input] => Arc::clone(input),
        _ => return Ok(plan),
    };
    let is_ordered = input.output_ordering().is_some() && input.output_partitioning().partition_count() == 1;
    if is_ordered && (plan.as_ref() as &dyn Any).is::<RepartitionExec>() {
        return in_order(input);
    }
    if plan.maintains_input_order() != [true] {
        return Ok(plan);
    }
    let ordered = in_order(Arc::clone(&input))?;
    if Arc::ptr_eq(&ordered, &input) {
        return Ok(plan);
    }
    plan.replace_children(vec![ordered], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
