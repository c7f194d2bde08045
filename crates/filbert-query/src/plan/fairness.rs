//! Prevents a long query from blocking others: joins that multiply rows yield, and end with their
//! statement.
//!
//! DataFusion's operators yield when they read from a leaf. A cross join reads its leaves once and
//! then computes for long, within one poll if its condition accepts few rows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use filbert_functions::ending::Limits;
use filbert_functions::error::carried;

use crate::plan::giving_way::GivingWay;

/// The plan with joins that yield.
pub(crate) fn fair(plan: Arc<dyn ExecutionPlan>, limits: &Limits) -> Result<Arc<dyn ExecutionPlan>> {
    let fair = plan.transform_up(|node| {
        let any = node.as_ref() as &dyn std::any::Any;
        let join: Arc<dyn ExecutionPlan> = if let Some(join) = any.downcast_ref::<NestedLoopJoinExec>() {
            watched(join, limits)?.unwrap_or(node)
        } else if any.is::<CrossJoinExec>() || any.is::<HashJoinExec>() || any.is::<SortMergeJoinExec>() {
            node
        } else {
            return Ok(Transformed::no(node));
        };
        Ok(Transformed::yes(Arc::new(GivingWay::over(join)) as Arc<dyn ExecutionPlan>))
    });
    fair.map(|fair| fair.data)
}

/// The join with a watched condition; `None` if it has no condition.
fn watched(join: &NestedLoopJoinExec, limits: &Limits) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = join.filter() else { return Ok(None) };
    let condition = Arc::new(Watched::new(filter.expression().clone(), limits.clone()));
    let filter = JoinFilter::new(condition, filter.column_indices().to_vec(), filter.schema().clone());
    let projection = join.projection().as_ref().map(|projection| projection.to_vec());
    let (left, right) = (join.left().clone(), join.right().clone());
    let join = NestedLoopJoinExec::try_new(left, right, Some(filter), join.join_type(), projection)?;
    Ok(Some(Arc::new(join)))
}

/// The time for which a join keeps its thread, in milliseconds. When a join passes its other tasks
/// on, an idle thread is woken, or a new thread is started if no thread is idle.
const KEPT_MS: u64 = 5;

/// The condition of a join. It is evaluated for some thousand pairs at a time. Between these
/// batches other tasks get the thread, and an ended query stops.
#[derive(Debug)]
struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    limits: Limits,
    began: Instant,
    /// When the other tasks of the thread move to another one next, in milliseconds since then.
    next_ms: AtomicU64,
}

impl Watched {
    fn new(condition: Arc<dyn PhysicalExpr>, limits: Limits) -> Watched {
        Watched { condition, limits, began: Instant::now(), next_ms: AtomicU64::new(0) }
    }

    /// Whether the other tasks of the thread have waited long enough.
    fn hands_over(&self) -> bool {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_due = now >= self.next_ms.load(Ordering::Relaxed);
        if is_due {
            self.next_ms.store(now.saturating_add(KEPT_MS), Ordering::Relaxed);
        }
        is_due
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, input: &Schema) -> Result<DataType> {
        self.condition.data_type(input)
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.condition.nullable(input)
    }

    fn return_field(&self, input: &Schema) -> Result<FieldRef> {
        self.condition.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.limits.are_over() {
            return Err(carried(self.limits.why_over()));
        }
        if self.hands_over() {
            // Other tasks of this thread move to another thread meanwhile.
            return tokio::task::block_in_place(|| self.condition.evaluate(batch));
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.into_iter().next().unwrap_or_else(|| self.condition.clone());
        Ok(Arc::new(Watched::new(condition, self.limits.clone())))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
