//! Corrects wrong conclusions of DataFusion about the rows of outer joins and grouping sets.
//!
//! DataFusion knows which columns are constant and which are equal in the rows of an operator, and
//! leaves such columns out of orders and of the order of groups. Two operators replace values by
//! NULL, and DataFusion counts the columns as constant and as equal nevertheless:
//! - an outer join, in rows without a partner:
//!   `SELECT .. FROM t LEFT JOIN (SELECT id, 'x' AS c FROM u) q USING (id) ORDER BY q.c, t.id`
//!   sorted by `t.id` alone;
//! - grouping sets:
//!   `SELECT .. FROM (SELECT 'x' AS c, k FROM t) q GROUP BY CUBE (c, k) ORDER BY c, k`
//!   sorted by `k` alone.
//!
//! The inputs of these operators therefore pass through an operator that promises nothing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::inputs::with_inputs;

/// The rule. It must be the first rule, because other rules rely on the promises of operators about
/// their rows.
#[derive(Debug)]
pub(super) struct Promises;

impl PhysicalOptimizerRule for Promises {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(with_forgetting_inputs).data()
    }

    fn name(&self) -> &str {
        "promises_of_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_forgetting_inputs(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_nulled = nulled(plan.as_ref());
    let inputs = plan.children().into_iter().zip(is_nulled);
    let inputs = inputs.map(|(input, is_nulled)| {
        // A rule may make a constant later. Scans promise nothing.
        let may_promise = !input.children().is_empty();
        (is_nulled && may_promise).then(|| Arc::new(Forgetting::over(Arc::clone(input))) as Arc<dyn ExecutionPlan>)
    });
    let inputs = inputs.collect();
    with_inputs(plan, inputs)
}

/// Whether an operator replaces values of its inputs by NULL; of a join, the left input is first.
fn nulled(plan: &dyn ExecutionPlan) -> [bool; 2] {
    let any = plan as &dyn Any;
    let join = any.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let join = join.or_else(|| any.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()));
    let join = join.or_else(|| any.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type()));
    match join {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        Some(_) => [false, false],
        None => {
            let has_sets = |aggregate: &AggregateExec| !aggregate.group_expr().is_single();
            [any.downcast_ref::<AggregateExec>().is_some_and(has_sets), false]
        }
    }
}

/// Passes rows on. Nothing is promised of them but their partitioning.
#[derive(Debug)]
struct Forgetting {
    below: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Forgetting {
    fn over(below: Arc<dyn ExecutionPlan>) -> Forgetting {
        let nothing = EquivalenceProperties::new(below.schema());
        let properties = PlanProperties::clone(below.properties()).with_eq_properties(nothing);
        Forgetting { below, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Forgetting {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forgetting")
    }
}

impl ExecutionPlan for Forgetting {
    fn name(&self) -> &str {
        "Forgetting"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.below]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let below = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.below));
        Ok(Arc::new(Forgetting::over(below)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.below.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.below.schema()));
        Ok(inputs.first().map_or_else(unknown, Arc::clone))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }
}
