//! Plans with some inputs replaced, for the rules of this module.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

/// The plan with these inputs, in their order; an input stays where there is `None`.
pub(super) fn with_inputs(
    plan: Arc<dyn ExecutionPlan>,
    inputs: Vec<Option<Arc<dyn ExecutionPlan>>>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if inputs.iter().all(Option::is_none) {
        return Ok(Transformed::no(plan));
    }
    let inputs = inputs.into_iter().zip(plan.children());
    let inputs = inputs.map(|(replaced, input)| replaced.unwrap_or_else(|| Arc::clone(input))).collect();
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(inputs, options).map(Transformed::yes)
}
