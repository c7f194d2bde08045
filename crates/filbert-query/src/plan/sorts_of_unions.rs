//! Corrects the sorts of unions.
//!
//! DataFusion sorts each query of a union separately. It removes columns from the order that cannot
//! change it: columns that are constant in this query, or equal to an earlier column.
//! - With a limit, the partitions share the last row that still counts. The constants of two
//!   queries may differ. Without them in the order, a partition drops rows that come before the
//!   rows of another one:
//!   `SELECT 2 AS kind, a FROM t UNION ALL SELECT 1, a FROM u ORDER BY kind, a LIMIT 1`.
//! - Columns that are equal in each query are not known to be equal in the union. So the rows of
//!   the union do not count as ordered, and the plan is rejected:
//!   `SELECT a, a AS b FROM t UNION ALL SELECT a, a FROM u ORDER BY a, b`.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::AcrossPartitions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::inputs::with_inputs;

/// The rule. Sorts must be in their final places, and orders are not checked yet.
#[derive(Debug)]
pub(super) struct SortsOfUnions;

impl PhysicalOptimizerRule for SortsOfUnions {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = of_partitions(&plan).unwrap_or(plan);
        Ok(plan.transform_down(with_corrected_inputs)?.data)
    }

    fn name(&self) -> &str {
        "sorts_of_unions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_corrected_inputs(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let inputs = plan.children().into_iter();
    let corrected: Vec<_> = match downcast::<SortPreservingMergeExec>(&plan) {
        Some(merge) => inputs.map(|input| below_merge(input, merge)).collect::<Result<_>>()?,
        None => inputs.map(of_partitions).collect(),
    };
    with_inputs(plan, corrected)
}

/// The input of a merge, sorted by the whole order of the merge; `None` if the input is correct.
fn below_merge(
    plan: &Arc<dyn ExecutionPlan>,
    merge: &SortPreservingMergeExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let order = merge.expr();
    let (input, limit) = match limited(plan) {
        Some((sort, limit)) if sort.expr() != order => (sort.input(), Some(limit)),
        Some(_) => return Ok(None),
        None if plan.equivalence_properties().ordering_satisfy(order.clone())? => return Ok(None),
        None => (plan, merge.fetch()),
    };
    let sort = SortExec::new(order.clone(), Arc::clone(input)).with_preserve_partitioning(true);
    Ok(Some(Arc::new(sort.with_fetch(limit))))
}

/// A sort with an incomplete order keeps the rows of each partition. `None` for other plans.
fn of_partitions(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let (sort, limit) = limited(plan)?;
    Some(Arc::new(LocalLimitExec::new(Arc::new(sort.with_fetch(None)), limit)))
}

/// A sort of partitions with a limit, which may lack constants in its order, and the limit.
fn limited(plan: &Arc<dyn ExecutionPlan>) -> Option<(&SortExec, usize)> {
    let sort = downcast::<SortExec>(plan)?;
    let limit = sort.fetch()?;
    (sort.preserve_partitioning() && differs_between_partitions(sort.input())).then_some((sort, limit))
}

fn downcast<T: 'static>(plan: &Arc<dyn ExecutionPlan>) -> Option<&T> {
    (plan.as_ref() as &dyn Any).downcast_ref()
}

/// Whether an expression is constant in each partition, and not in all partitions together.
fn differs_between_partitions(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let constants = plan.equivalence_properties().constants();
    constants.iter().any(|constant| constant.across_partitions == AcrossPartitions::Heterogeneous)
}
