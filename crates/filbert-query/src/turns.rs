//! Fair shares of the query threads: long statements take turns.
//!
//! A thread runs ready tasks in the order in which they became ready. With a hundred long
//! statements, a short statement would wait for a step of each of them before each of its own
//! steps. A statement that has used its free time therefore computes within a turn only. There are
//! fewer turns than threads. A thread without a turn is left for the steps of short statements.
//!
//! The next turn goes to the statement that has computed least, as in the multilevel feedback queue
//! of operating systems. The remaining time of a statement is unknown, and a statement that has
//! computed little is likely to end soon. Times that differ by less than a factor of two count as
//! equal. Some turns go to the task that has waited longest, so that every task progresses.
//!
//! A turn lasts for a slice of time. Operators that read maps, and joins, ask for its end between
//! two batches and yield then: otherwise a task would compute until a whole map is read.
//!
//! A task holds a turn while it is polled, never while it waits. Therefore statements cannot block
//! each other.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use filbert_functions::ending::{self, Limits};
use filbert_grid::threads;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

/// The processor time that a statement may use before it takes turns. Not a setting, as [`SLICE`]:
/// longer times make short statements wait, shorter ones only cost switches. A hundred statements
/// that begin together use it before any other gets on.
const FREE: Duration = Duration::from_millis(1);

/// The processor time that a statement may use before its threads give way to all others.
const PROMPT: Duration = Duration::from_millis(5);

/// The time after which operators yield. The wait of a short statement is a few of these.
const SLICE: Duration = Duration::from_millis(5);

/// The time to plan each KiB of a text: between release builds and builds for tests.
const PLANNING: Duration = Duration::from_millis(1);

/// The same for an INSERT. Most of a long one is values, which are parsed and not planned.
const PLANNING_OF_INSERT: Duration = Duration::from_micros(125);

/// The planning of a text that takes longer is long.
const LONG_PLANNING: Duration = Duration::from_millis(8);

/// Of this number of turns, one goes to the task that has waited longest.
const TURNS_PER_OLDEST: u64 = 8;

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

/// The estimated time to plan a text, if it is long: planning does not yield.
pub(crate) fn long_planning(text: &str) -> Option<Duration> {
    let first = text.trim_start().as_bytes().get(..6);
    let is_insert = first.is_some_and(|word| word.eq_ignore_ascii_case(b"insert"));
    let of_one = if is_insert { PLANNING_OF_INSERT } else { PLANNING };
    let planning = of_one.saturating_mul(u32::try_from(text.len()).unwrap_or(u32::MAX)) / 1_024;
    (planning > LONG_PLANNING).then_some(planning)
}

/// The turns of the threads of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Mutex<Queue>>);

impl Turns {
    /// So many turns, at least one.
    pub(crate) fn new(count: usize) -> Turns {
        Turns(Arc::new(Mutex::new(Queue { free: count.max(1), ..Queue::default() })))
    }

    /// The share of a new statement.
    pub(crate) fn share(&self) -> Share {
        Share { turns: self.clone(), used_ns: Arc::default() }
    }

    /// The share of a new statement with this text. If its planning is long, the time counts as
    /// used: the statement takes turns from the start, because the steps of others would wait for
    /// it on every thread, and statements that have computed less come first.
    pub(crate) fn share_for(&self, text: &str) -> Share {
        let share = self.share();
        if let Some(planning) = long_planning(text) {
            share.note(planning);
        }
        share
    }
}

/// The share of a statement: the processor time that all its tasks have used.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    turns: Turns,
    used_ns: Arc<AtomicU64>,
}

impl Share {
    /// How often the statement has used its free time, as a power of two: 0 for once. `None` if it
    /// has time left, and takes no turns.
    fn level(&self) -> Option<u32> {
        (self.used_ns.load(Ordering::Relaxed) / FREE.as_nanos() as u64).checked_ilog2()
    }

    fn is_prompt(&self) -> bool {
        self.used_ns.load(Ordering::Relaxed) < PROMPT.as_nanos() as u64
    }

    fn note(&self, used: Duration) {
        self.used_ns.fetch_add(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// The place of a task in the order of arrival.
type Ticket = u64;

/// The tasks that wait for a turn. No turn is free while a task waits.
#[derive(Debug, Default)]
struct Queue {
    /// The turns that nobody has.
    free: usize,
    waiting: BTreeMap<Ticket, Waiter>,
    /// The same tasks, the next one first: by the level of their statement, then by arrival.
    order: BTreeSet<(u32, Ticket)>,
    /// The tasks that were given a turn and have not been polled since.
    given: BTreeSet<Ticket>,
    arrivals: Ticket,
    /// The number of turns that were passed on.
    passed: u64,
}

#[derive(Debug)]
struct Waiter {
    level: u32,
    waker: Waker,
}

impl Queue {
    /// A turn for a task that arrives, or its ticket.
    fn enter(&mut self, level: u32, waker: &Waker) -> Option<Ticket> {
        if self.free > 0 {
            self.free -= 1;
            return None;
        }
        let ticket = self.arrivals;
        self.arrivals += 1;
        self.waiting.insert(ticket, Waiter { level, waker: waker.clone() });
        self.order.insert((level, ticket));
        Some(ticket)
    }

    /// Whether the task has got its turn. Otherwise the waker is kept.
    fn has_turn(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        if let Some(waiter) = self.waiting.get_mut(&ticket) {
            waiter.waker.clone_from(waker);
            return false;
        }
        let given = self.given.remove(&ticket);
        debug_assert!(given, "the task with the ticket {ticket} neither waits nor has a turn");
        true
    }

    /// A task that waited is gone. Returns whom to wake, as [`Queue::pass_on`].
    fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        match self.waiting.remove(&ticket) {
            Some(waiter) => {
                self.order.remove(&(waiter.level, ticket));
                None
            }
            None if self.given.remove(&ticket) => self.pass_on(),
            None => None,
        }
    }

    /// Gives the turn that ends to the next task, and returns its waker.
    fn pass_on(&mut self) -> Option<Waker> {
        debug_assert!(self.free == 0 || self.waiting.is_empty(), "a turn was free while tasks waited");
        self.passed += 1;
        let oldest = || self.waiting.keys().next().copied();
        let least = || self.order.first().map(|(_, ticket)| *ticket);
        let next = if self.passed.is_multiple_of(TURNS_PER_OLDEST) { oldest() } else { least() };
        let Some((ticket, waiter)) = next.and_then(|ticket| self.waiting.remove_entry(&ticket)) else {
            self.free += 1;
            return None;
        };
        self.order.remove(&(waiter.level, ticket));
        self.given.insert(ticket);
        Some(waiter.waker)
    }
}

/// A turn. It is passed on when the value is dropped, also by a panic.
struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Woken without the lock, which the woken task takes first.
        let next = self.0.0.lock().pass_on();
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// The wait of a task for its turn.
struct Wait {
    turns: Turns,
    ticket: Option<Ticket>,
}

impl Wait {
    fn poll(&mut self, level: u32, context: &Context<'_>) -> Poll<()> {
        let mut queue = self.turns.0.lock();
        match self.ticket {
            None => self.ticket = queue.enter(level, context.waker()),
            Some(ticket) if queue.has_turn(ticket, context.waker()) => self.ticket = None,
            Some(_) => {}
        }
        if self.ticket.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let next = self.turns.0.lock().leave(ticket);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// Runs a task of a statement. It sees the end of the statement, and takes turns with the tasks of
/// other statements.
pub(crate) fn run<T>(limits: Limits, share: Share, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let wait = Wait { turns: share.turns.clone(), ticket: None };
    Taking { share: share.clone(), wait, work: Box::pin(SHARE.scope(share, ending::ended_by(limits, work))) }
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

/// A task that takes turns.
struct Taking<F> {
    share: Share,
    wait: Wait,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Taking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Taking { share, wait, work } = &mut *self;
        let _turn = match share.level() {
            Some(level) if wait.poll(level, context).is_pending() => return Poll::Pending,
            Some(_) => Some(Turn(&share.turns)),
            None => None,
        };
        if share.is_prompt() {
            threads::keep_processor(|| share.poll(work.as_mut(), context))
        } else {
            share.poll(work.as_mut(), context)
        }
    }
}

impl Share {
    /// Polls a task for a slice of time, and records the processor time that it has used.
    fn poll<F: Future>(&self, work: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _slice = Slice::begin();
        let before = processor_time();
        let polled = work.poll(context);
        self.note(processor_time().saturating_sub(before));
        polled
    }
}

/// The processor time that the calling thread has used. Time in which other threads ran counts for
/// these.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The slice of the task that this thread polls.
struct Slice {
    /// The end of the slice of the task that polls this one.
    outer: Option<Instant>,
}

impl Slice {
    fn begin() -> Slice {
        Slice { outer: SLICE_END.replace(Some(Instant::now() + SLICE)) }
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
        let before = processor_time();
        while processor_time() - before <= FREE {
            std::hint::spin_loop();
        }
    }

    /// The order in which waiting tasks get the only turn. Each is given by its level.
    fn order(levels: &[u32]) -> Vec<usize> {
        let mut queue = Queue { free: 1, ..Queue::default() };
        assert_eq!(queue.enter(0, Waker::noop()), None);
        let tickets: Vec<Ticket> = levels.iter().map(|level| queue.enter(*level, Waker::noop()).unwrap()).collect();
        let order = levels.iter().map(|_| {
            queue.pass_on().unwrap();
            let has_turn = |ticket: &Ticket| !queue.waiting.contains_key(ticket) && queue.given.contains(ticket);
            let next = tickets.iter().position(has_turn).unwrap();
            assert!(queue.has_turn(tickets[next], Waker::noop()));
            next
        });
        let order = order.collect();
        assert!(queue.pass_on().is_none());
        assert_eq!((queue.free, queue.order.len(), queue.given.len()), (1, 0, 0));
        order
    }

    #[test]
    fn the_statement_that_has_computed_least_is_next() {
        assert_eq!(order(&[3, 1, 2, 1, 0]), [4, 1, 3, 2, 0]);
    }

    #[test]
    fn statements_with_long_texts_take_turns_from_the_start() {
        let turns = Turns::new(1);
        assert_eq!(turns.share_for("SELECT 1").level(), None);
        assert_eq!(turns.share_for(&"x".repeat(8 << 10)).level(), None);
        assert_eq!(turns.share_for(&"x".repeat((8 << 10) + 1)).level(), Some(3));
        assert_eq!(turns.share_for(&"x".repeat(1 << 20)).level(), Some(10));
        assert_eq!(turns.share_for(&format!(" insert {}", "x".repeat(60 << 10))).level(), None);
        assert_eq!(turns.share_for(&format!("INSERT {}", "x".repeat(64 << 10))).level(), Some(3));
    }

    #[test]
    fn one_of_eight_turns_goes_to_the_task_that_has_waited_longest() {
        assert_eq!(order(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [1, 2, 3, 4, 5, 6, 7, 0, 8, 9]);
    }

    #[test]
    fn a_task_that_is_gone_leaves_its_turn_to_the_next() {
        let turns = Turns::new(1);
        let mut waits = [(); 3].map(|()| Wait { turns: turns.clone(), ticket: None });
        let context = Context::from_waker(Waker::noop());
        let [first, second, third] = &mut waits;
        assert!(first.poll(0, &context).is_ready());
        let turn = Turn(&turns);
        assert!(second.poll(0, &context).is_pending());
        assert!(third.poll(0, &context).is_pending());
        drop(turn);
        // The second task has the turn and is not polled. The third one gets it.
        assert!(third.poll(0, &context).is_pending());
        let [first, second, mut third] = waits;
        drop((first, second));
        assert!(third.poll(0, &context).is_ready());
        drop(Turn(&turns));
        assert_eq!(turns.0.lock().free, 1);
    }

    #[test]
    fn a_task_that_is_gone_while_it_waits_is_not_given_a_turn() {
        let turns = Turns::new(1);
        let mut wait = Wait { turns: turns.clone(), ticket: None };
        let context = Context::from_waker(Waker::noop());
        let turn = turns.0.lock().enter(0, Waker::noop());
        assert_eq!(turn, None);
        assert!(wait.poll(0, &context).is_pending());
        drop(wait);
        drop(Turn(&turns));
        let queue = turns.0.lock();
        assert_eq!((queue.free, queue.waiting.len(), queue.order.len()), (1, 0, 0));
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
                let begun = Instant::now();
                while begun.elapsed() <= SLICE {
                    std::hint::spin_loop();
                }
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
