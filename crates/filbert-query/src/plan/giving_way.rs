//! An operator that yields to other tasks of its thread after some batches of its input.
//!
//! DataFusion's `CooperativeExec` consumes the task's budget before it polls its input. A chain of
//! more such operators than the budget has units (128) never completes: each turn starts at the top
//! of the chain, and the budget is used up before the bottom. This operator consumes budget for the
//! batches that it passes on. If the budget is used up, it keeps the batch until the next turn, so
//! each turn makes progress.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use filbert_functions::ending;
use futures::Stream;
use tokio::task::coop;

use crate::turns::is_slice_over;

/// The input, with yields.
#[derive(Debug)]
pub(super) struct GivingWay {
    below: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl GivingWay {
    pub(super) fn over(below: Arc<dyn ExecutionPlan>) -> GivingWay {
        let properties = PlanProperties::clone(below.properties()).with_scheduling_type(SchedulingType::Cooperative);
        GivingWay { below, properties: Arc::new(properties) }
    }
}

impl DisplayAs for GivingWay {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivingWay")
    }
}

impl ExecutionPlan for GivingWay {
    fn name(&self) -> &str {
        "GivingWay"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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
        Ok(Arc::new(GivingWay::over(below)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let below = self.below.execute(partition, context)?;
        Ok(Box::pin(Batches { below, held: None }))
    }
}

/// The batches that are passed on.
struct Batches {
    below: SendableRecordBatchStream,
    /// The result that was found before the budget was used up: the next batch, or the end.
    held: Option<Option<Result<RecordBatch>>>,
}

impl Stream for Batches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.held.is_none() {
            ending::check_batch()?;
            let next = ready!(self.below.as_mut().poll_next(context));
            self.held = Some(next);
        }
        if is_slice_over() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // If the budget is used up, this wakes the task for its next turn.
        ready!(pin!(coop::consume_budget()).poll(context));
        Poll::Ready(self.held.take().flatten())
    }
}

impl RecordBatchStream for Batches {
    fn schema(&self) -> SchemaRef {
        self.below.schema()
    }
}
