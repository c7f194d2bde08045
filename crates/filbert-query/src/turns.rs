//! Fair shares of the query threads: statements that have computed for long take turns.
//!
//! A thread runs ready tasks in the order in which they became ready. With a hundred long
//! statements, a short statement would wait for a step of each of them before each of its own
//! steps. A statement that has used its free time therefore computes within a turn only. There are
//! fewer turns than threads, and statements get them in the order in which they wait for them. A
//! thread without a turn is left for the steps of short statements.
//!
//! A turn lasts for a slice of time. Operators that read maps, and joins, ask for its end between
//! two batches and yield then: otherwise a task would compute until a whole map is read.
//!
//! A task holds a turn while it is polled, never while it waits. Statements can therefore not wait
//! for each other.

use std::any::Any;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use filbert_functions::ending::{self, Limits};
use futures::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The time that a statement may compute before it takes turns. Not a setting, as [`SLICE`]: longer
/// times make short statements wait, shorter ones only cost switches.
const FREE: Duration = Duration::from_millis(5);

/// The time after which operators yield. The wait of a short statement is a few of these.
const SLICE: Duration = Duration::from_millis(5);

tokio::task_local! {
    static SHARE: Share;
}

thread_local! {
    /// The end of the slice of the task that this thread polls.
    static SLICE_END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether the slice of the current task is over. An operator then keeps what it has, wakes the
/// task and returns `Pending`.
pub(crate) fn is_slice_over() -> bool {
    SLICE_END.get().is_some_and(|end| Instant::now() >= end)
}

/// The turns of the threads of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

impl Turns {
    /// So many turns, at least one.
    pub(crate) fn new(count: usize) -> Turns {
        Turns(Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// The share of a new statement.
    pub(crate) fn share(&self) -> Share {
        Share { turns: self.clone(), used_ns: Arc::default() }
    }
}

/// The share of a statement: the time that all its tasks have computed.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    turns: Turns,
    used_ns: Arc<AtomicU64>,
}

impl Share {
    /// Whether the statement takes turns.
    fn is_used(&self) -> bool {
        self.used_ns.load(Ordering::Relaxed) > FREE.as_nanos() as u64
    }

    fn note(&self, used: Duration) {
        self.used_ns.fetch_add(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Runs a task of a statement. It sees the end of the statement, and takes turns with the tasks of
/// other statements.
pub(crate) fn run<T>(limits: Limits, share: Share, work: impl Future<Output = T>) -> impl Future<Output = T> {
    Taking { share: share.clone(), turn: None, work: Box::pin(SHARE.scope(share, ending::ended_by(limits, work))) }
}

/// Runs another task of the statement of the current task, if it has one.
pub(crate) fn run_beside<T: 'static>(work: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
    match (ending::limits(), current()) {
        (Some(limits), Some(share)) => Box::pin(run(limits, share, work)),
        (Some(limits), None) => Box::pin(ending::ended_by(limits, work)),
        (None, _) => Box::pin(work),
    }
}

/// The share of the statement of the current task.
pub(crate) fn current() -> Option<Share> {
    SHARE.try_with(Share::clone).ok()
}

/// From now on, a task that an operator starts works for the statement of the task that starts it.
/// This holds for the whole process.
pub(crate) fn follow_operators() {
    // Another tracer of the process stays: tasks of operators then take no turns.
    let _ = set_join_set_tracer(&Operators);
}

/// The tasks that DataFusion's operators start.
struct Operators;

impl JoinSetTracer for Operators {
    fn trace_future(&self, work: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> {
        run_beside(work)
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        work
    }
}

type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A task that takes turns.
struct Taking<F> {
    share: Share,
    /// The wait for the next turn.
    turn: Option<Turn>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Taking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Taking { share, turn, work } = &mut *self;
        let held = if share.is_used() {
            let wait = turn.get_or_insert_with(|| Box::pin(share.turns.0.clone().acquire_owned()));
            let held = ready!(wait.as_mut().poll(context));
            *turn = None;
            // Nobody closes the semaphore.
            held.ok()
        } else {
            None
        };
        let slice = Slice::begin();
        let polled = work.as_mut().poll(context);
        share.note(slice.started.elapsed());
        drop(held);
        polled
    }
}

/// The slice of the task that this thread polls.
struct Slice {
    started: Instant,
    /// The end of the slice of the task that polls this one.
    outer: Option<Instant>,
}

impl Slice {
    fn begin() -> Slice {
        let started = Instant::now();
        Slice { started, outer: SLICE_END.replace(Some(started + SLICE)) }
    }
}

impl Drop for Slice {
    /// Also after a panic of the task.
    fn drop(&mut self) {
        SLICE_END.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::task::yield_now;

    use super::*;

    fn taking<T>(share: Share, work: impl Future<Output = T>) -> impl Future<Output = T> {
        run(Limits::new(None), share, work)
    }

    /// Computes for the time that is free, and longer.
    fn compute() {
        let started = Instant::now();
        while started.elapsed() <= FREE {
            std::hint::spin_loop();
        }
    }

    #[tokio::test]
    async fn a_short_statement_passes_long_ones() {
        let turns = Turns::new(1);
        let steps = Arc::new(AtomicUsize::new(0));
        let mut long = Vec::new();
        for _ in 0..20 {
            let steps = steps.clone();
            long.push(tokio::spawn(taking(turns.share(), async move {
                for _ in 0..10 {
                    compute();
                    steps.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            })));
        }
        // All long statements have used their free time.
        while steps.load(Ordering::Relaxed) < 20 {
            yield_now().await;
        }
        let before = steps.load(Ordering::Relaxed);
        let short = tokio::spawn(taking(turns.share(), async {
            for _ in 0..10 {
                tokio::spawn(async {}).await.unwrap();
            }
        }));
        short.await.unwrap();
        // Without turns, each of its steps would come after a step of each of the twenty.
        let passed = steps.load(Ordering::Relaxed) - before;
        assert!(passed <= 40, "{passed} steps of long statements came between");
        for task in long {
            task.await.unwrap();
        }
        assert_eq!(steps.load(Ordering::Relaxed), 200);
    }

    #[tokio::test]
    async fn a_slice_ends_and_the_next_one_begins() {
        assert!(!is_slice_over());
        taking(Turns::new(1).share(), async {
            for _ in 0..3 {
                assert!(!is_slice_over());
                compute();
                assert!(is_slice_over());
                yield_now().await;
            }
        })
        .await;
        assert!(!is_slice_over());
    }

    #[tokio::test]
    async fn the_tasks_of_a_statement_wait_for_each_other_without_an_end_of_turns() {
        let share = Turns::new(1).share();
        compute();
        share.note(FREE * 2);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waits = tokio::spawn(taking(share.clone(), receiver));
        let sends = tokio::spawn(taking(share, async move {
            yield_now().await;
            sender.send(7).unwrap();
        }));
        sends.await.unwrap();
        assert_eq!(waits.await.unwrap(), Ok(7));
    }
}
