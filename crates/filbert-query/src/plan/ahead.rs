//! Limits how far a query computes ahead of the reader of its rows.
//!
//! Where several threads produce the rows of a result, each thread puts its batches into a channel
//! and produces the next one. If a cursor is not fetched from, or a client does not read, each
//! thread would keep some batches that no budget counts. Therefore a thread produces a batch only
//! while the reader waits for one, or while few bytes wait for the reader. It first reserves the
//! size of its last batch from the member's buffer budget. If the budget has no room, one thread at
//! a time continues without a reservation, and only for a reader that waits. A reader thus always
//! gets all rows.
//!
//! ```text
//!  Reader ─ polls ─► merge (CoalescePartitionsExec) ─ tasks ─► Producers, one for each partition
//!    └─────────────────────── Ahead: reader waits? bytes that wait? ───────────────┘
//! ```

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use filbert_functions::ending;
use filbert_grid::{Exhausted, MemoryBudget, Reservation};
use futures::Stream;
use parking_lot::Mutex;

/// The bytes of waiting batches from which producers pause: many batches of short rows, one batch
/// of long rows.
const AHEAD_BYTES: usize = 1 << 20;

/// The assumed size of the first batch of a partition, in bytes.
const FIRST_BYTES: usize = 64 << 10;

/// The plan with one partition that computes no further ahead of its reader than the budget allows.
pub(crate) fn counted(plan: Arc<dyn ExecutionPlan>, budget: &MemoryBudget) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.output_partitioning().partition_count() {
        0 | 1 => counted_below(plan, budget),
        _ => over_merge(&(Arc::new(CoalescePartitionsExec::new(plan)) as Arc<dyn ExecutionPlan>), budget),
    }
}

/// Finds the merge below operators that take a batch and return a batch. Where rows are sorted, the
/// sort accounts for them.
fn counted_below(plan: Arc<dyn ExecutionPlan>, budget: &MemoryBudget) -> Result<Arc<dyn ExecutionPlan>> {
    let any = plan.as_ref() as &dyn std::any::Any;
    if any.is::<CoalescePartitionsExec>() {
        return over_merge(&plan, budget);
    }
    if any.is::<ProjectionExec>() || any.is::<GlobalLimitExec>() || any.is::<CooperativeExec>() {
        let below = plan.children().into_iter().map(|below| counted_below(Arc::clone(below), budget));
        let below = below.collect::<Result<Vec<_>>>()?;
        return plan.replace_children(below, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep));
    }
    Ok(plan)
}

fn over_merge(merge: &Arc<dyn ExecutionPlan>, budget: &MemoryBudget) -> Result<Arc<dyn ExecutionPlan>> {
    let are_together = merge.exists(|node| Ok((node.as_ref() as &dyn std::any::Any).is::<HashJoinExec>()))?;
    let ahead = Arc::new(Ahead { are_together, state: Mutex::new(State::new(budget)) });
    let producers = |below: &Arc<dyn ExecutionPlan>| Node::over(Arc::clone(below), &ahead, false);
    let below = merge.children().into_iter().map(producers).collect();
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let merge = Arc::clone(merge).replace_children(below, options)?;
    Ok(Node::over(merge, &ahead, true))
}

/// The state of a batch without a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credit {
    Begun,
    Waits,
}

/// The permission to produce a batch.
#[derive(Clone, Copy, Debug)]
struct Permit {
    /// Bytes that are reserved already.
    room: usize,
    kind: Kind,
}

/// The reason for the permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The budget has room for the batch.
    Usual,
    /// The reader waits, and gets the batch at once.
    Credit,
    /// Other partitions wait for this one.
    Together,
}

/// The state shared by a reader and its producers.
#[derive(Debug)]
struct Ahead {
    /// Whether partitions wait for each other before their first batch, like those of a join. Then
    /// either all of them produce it, or none can. If there is no room for the batches that the
    /// reader does not get at once, the query fails.
    are_together: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Whether the reader waits for a batch.
    reader_waits: bool,
    /// Bytes of the batches that wait for the reader.
    waiting: usize,
    /// The reservation for these batches, and for the batches being produced.
    room: Reservation,
    /// The batch without a reservation.
    credit: Option<Credit>,
    /// Producers that wait for the reader.
    paused: Vec<Waker>,
}

impl State {
    fn new(budget: &MemoryBudget) -> State {
        State { reader_waits: false, waiting: 0, room: budget.empty(), credit: None, paused: Vec::new() }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.room.grow(bytes)
    }

    fn give_back(&mut self, bytes: usize) {
        let left = self.room.bytes().saturating_sub(bytes);
        self.room.shrink(left);
    }
}

impl Ahead {
    /// Lets a producer produce a batch, or wakes it later. `last` is the size of its last batch. No
    /// batch is produced before the reader's first request.
    fn begin(&self, last: Option<usize>, context: &Context<'_>) -> Option<Permit> {
        let mut state = self.state.lock();
        let expected = last.unwrap_or(FIRST_BYTES);
        let is_wanted = state.reader_waits || (last.is_some() && state.waiting < AHEAD_BYTES);
        if is_wanted && state.take(expected).is_ok() {
            return Some(Permit { room: expected, kind: Kind::Usual });
        }
        if state.reader_waits && last.is_none() && self.are_together {
            return Some(Permit { room: 0, kind: Kind::Together });
        }
        if state.reader_waits && state.credit.is_none() {
            state.credit = Some(Credit::Begun);
            return Some(Permit { room: 0, kind: Kind::Credit });
        }
        if !state.paused.iter().any(|paused| paused.will_wake(context.waker())) {
            state.paused.push(context.waker().clone());
        }
        None
    }

    /// Records a produced batch. Bytes beyond the expected size count in any case, which stops
    /// other producers from going ahead.
    ///
    /// # Errors
    /// The batch was produced for other partitions, and the budget has no room for it.
    fn made(&self, bytes: usize, permit: Permit) -> Result<()> {
        let mut state = self.state.lock();
        match permit.kind {
            Kind::Together => match state.take(bytes) {
                Err(exhausted) if !state.reader_waits => {
                    return Err(DataFusionError::ResourcesExhausted(exhausted.to_string()));
                }
                Err(_) => state.room.count(bytes),
                Ok(()) => {}
            },
            Kind::Usual | Kind::Credit => {
                state.room.count(bytes.saturating_sub(permit.room));
                state.give_back(permit.room.saturating_sub(bytes));
            }
        }
        if permit.kind == Kind::Credit {
            state.credit = Some(Credit::Waits);
        }
        state.waiting += bytes;
        Ok(())
    }

    /// Records the end of a partition instead of a batch.
    fn ended(&self, permit: Permit) {
        let mut state = self.state.lock();
        state.give_back(permit.room);
        if permit.kind == Kind::Credit {
            state.credit = None;
        }
        let paused = mem::take(&mut state.paused);
        drop(state);
        paused.into_iter().for_each(Waker::wake);
    }

    /// Records a request of the reader.
    fn ask(&self) {
        self.state.lock().reader_waits = true;
    }

    /// Records the result of a request: a batch of this size, the end, or that the reader must
    /// wait.
    fn asked(&self, got: Option<usize>) {
        let mut state = self.state.lock();
        if let Some(bytes) = got {
            state.reader_waits = false;
            state.waiting = state.waiting.saturating_sub(bytes);
            state.give_back(bytes);
            if state.waiting == 0 && state.credit == Some(Credit::Waits) {
                state.credit = None;
            }
        }
        let paused = mem::take(&mut state.paused);
        drop(state);
        paused.into_iter().for_each(Waker::wake);
    }
}

/// The operator below the merge, and the one above it.
#[derive(Debug)]
struct Node {
    below: Arc<dyn ExecutionPlan>,
    ahead: Arc<Ahead>,
    is_reader: bool,
}

impl Node {
    fn over(below: Arc<dyn ExecutionPlan>, ahead: &Arc<Ahead>, is_reader: bool) -> Arc<dyn ExecutionPlan> {
        Arc::new(Node { below, ahead: Arc::clone(ahead), is_reader })
    }
}

impl DisplayAs for Node {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Node {
    fn name(&self) -> &str {
        if self.is_reader { "Reader" } else { "Producers" }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.below.properties()
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
        Ok(Node::over(below, &self.ahead, self.is_reader))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let ahead = Arc::clone(&self.ahead);
        if self.is_reader {
            let below = self.below.execute(partition, context)?;
            return Ok(Box::pin(Reader { below, ahead }));
        }
        let below = self.below.execute(partition, context)?;
        Ok(Box::pin(Producer { below, ahead, last: None, permit: None }))
    }
}

/// The batches of one partition.
struct Producer {
    below: SendableRecordBatchStream,
    ahead: Arc<Ahead>,
    /// The size of the last batch, in bytes.
    last: Option<usize>,
    /// The permission for the batch being produced.
    permit: Option<Permit>,
}

impl Stream for Producer {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(permit) = self.permit.or_else(|| self.ahead.begin(self.last, context)) else { return Poll::Pending };
        self.permit = Some(permit);
        let next = ready!(self.below.as_mut().poll_next(context));
        self.permit = None;
        Poll::Ready(match next {
            Some(Ok(batch)) => {
                // Many statements may each have made a batch in one step before their readers run.
                if let Err(error) = ending::check_batch() {
                    self.ahead.ended(permit);
                    return Poll::Ready(Some(Err(error)));
                }
                let bytes = batch.get_array_memory_size();
                self.last = Some(bytes);
                Some(self.ahead.made(bytes, permit).map(|()| batch))
            }
            end => {
                self.ahead.ended(permit);
                end
            }
        })
    }
}

impl RecordBatchStream for Producer {
    fn schema(&self) -> SchemaRef {
        self.below.schema()
    }
}

/// The batches above the merge.
struct Reader {
    below: SendableRecordBatchStream,
    ahead: Arc<Ahead>,
}

impl Stream for Reader {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ahead.ask();
        let next = self.below.as_mut().poll_next(context);
        let bytes = |next: &Option<Result<RecordBatch>>| match next {
            Some(Ok(batch)) => batch.get_array_memory_size(),
            Some(Err(_)) | None => 0,
        };
        self.ahead.asked(match &next {
            Poll::Ready(next) => Some(bytes(next)),
            Poll::Pending => None,
        });
        next
    }
}

impl RecordBatchStream for Reader {
    fn schema(&self) -> SchemaRef {
        self.below.schema()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use arrow_array::Int64Array;
    use arrow_schema::{DataType, Field, Schema};
    use datafusion::physical_plan::execute_stream;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
    use datafusion::prelude::SessionContext;
    use futures::StreamExt;

    use super::*;

    /// A partition of a hundred batches of one MiB each. It counts the batches that it has
    /// produced.
    #[derive(Debug)]
    struct Partition {
        schema: SchemaRef,
        made: Arc<AtomicUsize>,
    }

    impl PartitionStream for Partition {
        fn schema(&self) -> &SchemaRef {
            &self.schema
        }

        fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
            let (schema, made) = (self.schema.clone(), self.made.clone());
            let batches = futures::stream::iter(0..100).map(move |_| {
                made.fetch_add(1, Ordering::SeqCst);
                let numbers = Arc::new(Int64Array::from_iter_values(0..131_072));
                RecordBatch::try_new(schema.clone(), vec![numbers]).map_err(Into::into)
            });
            Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
        }
    }

    /// The rows of four partitions with this much room, the number of produced batches, and the
    /// budget.
    fn rows(bytes_max: usize) -> (SendableRecordBatchStream, Arc<AtomicUsize>, MemoryBudget) {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let made = Arc::new(AtomicUsize::new(0));
        let partition = || {
            let (schema, made) = (schema.clone(), made.clone());
            Arc::new(Partition { schema, made }) as Arc<dyn PartitionStream>
        };
        let partitions = (0..4).map(|_| partition()).collect();
        let plan = StreamingTableExec::try_new(schema.clone(), partitions, None, [], false, None).unwrap();
        let budget = MemoryBudget::new(bytes_max, "max");
        let plan = counted(Arc::new(plan), &budget).unwrap();
        (execute_stream(plan, SessionContext::new().task_ctx()).unwrap(), made, budget)
    }

    /// Waits until no more batches are produced.
    async fn settled(made: &AtomicUsize) -> usize {
        loop {
            let before = made.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if made.load(Ordering::SeqCst) == before {
                return before;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_made_before_it_is_asked_for_and_little_before_it_is_asked_for_again() {
        let (mut rows, made, budget) = rows(usize::MAX);
        assert_eq!(settled(&made).await, 0);
        rows.next().await.unwrap().unwrap();
        // One batch from each partition while the reader waited, and one that began while few bytes
        // waited.
        let ahead = settled(&made).await;
        assert!(ahead <= 8, "{ahead} batches made, one was read");
        assert!(budget.used() >= (ahead - 1) << 20, "{ahead} batches, {} bytes counted", budget.used());
        drop(rows);
        assert_eq!((settled(&made).await, budget.used()), (ahead, 0));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_reads_gets_all_rows_also_where_there_is_no_room() {
        for bytes_max in [usize::MAX, 3 << 20, 0] {
            let (mut rows, made, budget) = rows(bytes_max);
            let mut count = 0;
            while let Some(batch) = rows.next().await {
                count += batch.unwrap().num_rows();
            }
            assert_eq!((count, made.load(Ordering::SeqCst)), (400 * 131_072, 400), "{bytes_max}");
            assert_eq!(budget.used(), 0, "{bytes_max}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn without_room_nothing_is_made_ahead() {
        let (mut rows, made, _) = rows(0);
        rows.next().await.unwrap().unwrap();
        let ahead = settled(&made).await;
        assert_eq!(ahead, 1, "batches made of which one was read");
    }
}
