//! The early end of a statement: cancelled, timed out, its connection was closed, or it holds too
//! much memory.
//!
//! DataFusion plans without any await, so a task cannot be dropped meanwhile. Plans and functions
//! are shared by many statements. Each task therefore stores the statement that it works for, and
//! the code checks between two steps whether it has ended: each rule of the analyzer and the
//! optimizer before each node, operators during planning, and functions of constants.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::common::{DataFusionError, Result as PlanResult};
use filbert_grid::allocation;
use filbert_grid::query::{SqlError, SqlErrorCode};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::carried;
use crate::measured::{Ahead, Measured, MeasuredTotal};

/// The limits that end a statement early.
#[derive(Clone, Debug)]
pub struct Limits {
    cancelled: Arc<(AtomicBool, Notify)>,
    stage: Arc<Stage>,
    deadline: Option<(Instant, Duration)>,
    memory: Option<Arc<Measured>>,
}

impl Limits {
    /// The limits of a statement that begins now, with its timeout.
    pub fn new(timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        Limits { cancelled: Arc::default(), stage: Arc::default(), deadline, memory: None }
    }

    /// Also limits the memory that the statement holds.
    pub fn measured(self, total: Arc<MeasuredTotal>) -> Self {
        Limits { memory: Some(Arc::new(Measured::new(total))), ..self }
    }

    /// The memory that the statement holds, if it is measured.
    pub fn memory(&self) -> Option<&Measured> {
        self.memory.as_deref()
    }

    /// Checks the memory that the statement holds; within one of its tasks. A statement that
    /// changes rows gives them to maps, and is not checked.
    fn check_memory(&self) -> Result<(), SqlError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        measure(memory);
        if self.stage.at.load(Ordering::Acquire) == OPEN { memory.check() } else { Ok(()) }
    }

    /// Also checks whether the statement has ended early. A statement that already changes rows
    /// continues.
    fn check_batch(&self) -> Result<(), SqlError> {
        if self.stage.at.load(Ordering::Acquire) != CHANGING && self.are_over() {
            return Err(self.why_over());
        }
        self.check_memory()
    }

    /// Cancels the statement.
    pub fn cancel(&self) {
        self.cancelled.0.store(true, Ordering::Release);
        self.cancelled.1.notify_waiters();
        self.cancelled.1.notify_one();
    }

    /// Whether the statement was cancelled or has timed out.
    pub fn are_over(&self) -> bool {
        self.cancelled.0.load(Ordering::Acquire)
            || self.deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline)
    }

    /// The error of a statement that has ended early.
    pub fn why_over(&self) -> SqlError {
        match self.deadline {
            Some((_, timeout)) if !self.cancelled.0.load(Ordering::Acquire) => timed_out(timeout),
            _ => {
                SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled by the user").with_sqlstate("57014")
            }
        }
    }

    /// Marks the start of changing rows. From now on the statement is not ended early, unless it
    /// turns out that it has to wait.
    ///
    /// # Errors
    /// The statement was ended early, and must not change anything.
    pub fn begin_changes(&self) -> Result<Changing<'_>, SqlError> {
        match self.stage.go(CHANGING) {
            Ok(_) | Err(CHANGING) => Ok(Changing(&self.stage)),
            Err(_) => Err(self.why_over()),
        }
    }

    /// Runs a future until it completes, is cancelled, or times out. If it is changing rows, it is
    /// awaited, because that takes little time.
    pub async fn run<T>(&self, work: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
        let cancelled = async {
            if !self.cancelled.0.load(Ordering::Acquire) {
                self.cancelled.1.notified().await;
            }
        };
        let late = async {
            match self.deadline {
                Some((deadline, timeout)) => {
                    tokio::time::sleep_until(deadline).await;
                    timeout
                }
                None => std::future::pending().await,
            }
        };
        let mut work = pin!(work);
        let over = tokio::select! {
            biased;
            () = cancelled => self.why_over(),
            timeout = late => timed_out(timeout),
            done = &mut work => return done,
        };
        loop {
            // Registered before the stage is read, it misses no change.
            let opened = self.stage.opened.notified();
            match self.stage.go(ENDED) {
                Err(CHANGING) => tokio::select! {
                    biased;
                    done = &mut work => return done,
                    () = opened => {}
                },
                _ => return Err(over),
            }
        }
    }
}

/// The stage of a statement: it may be ended, has ended, or is changing rows.
#[derive(Debug, Default)]
struct Stage {
    at: AtomicU8,
    /// Notified when a statement that was changing rows turns out to have changed none.
    opened: Notify,
}

impl Stage {
    /// Moves from the open stage to another one, or returns the current stage.
    fn go(&self, to: u8) -> Result<u8, u8> {
        self.at.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

const OPEN: u8 = 0;
const CHANGING: u8 = 1;
const ENDED: u8 = 2;

/// A statement that is changing rows. Dropping it means that nothing was changed.
pub struct Changing<'l>(&'l Stage);

impl Changing<'_> {
    /// The rows are changed, so the statement reports success.
    pub fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.at.store(OPEN, Ordering::Release);
        self.0.opened.notify_waiters();
    }
}

fn timed_out(timeout: Duration) -> SqlError {
    let text = format!("the statement did not end within its timeout of {} ms", timeout.as_millis());
    SqlError::new(SqlErrorCode::Timeout, text).with_sqlstate("57014")
}

tokio::task_local! {
    static STATEMENT: Ending;
}

/// The limits of a task's statement.
struct Ending {
    limits: Limits,
    /// The reason for a refusal.
    refusal: RefCell<Option<SqlError>>,
}

thread_local! {
    /// The thread's balance of memory when the statement that it works for was measured last.
    static MEASURED_AT: Cell<isize> = const { Cell::new(0) };
}

/// Measures the statement that a thread works for, from its creation until it is dropped.
struct Measuring<'m> {
    memory: &'m Measured,
    /// The balance at the beginning.
    begun: isize,
    /// The balance at the last measurement of the enclosing work.
    outer: isize,
}

impl<'m> Measuring<'m> {
    fn begin(memory: &'m Measured) -> Self {
        let begun = allocation::balance();
        Measuring { memory, begun, outer: MEASURED_AT.replace(begun) }
    }
}

impl Drop for Measuring<'_> {
    /// Also after a panic.
    fn drop(&mut self) {
        measure(self.memory);
        // The memory that was measured here must not be measured again by the enclosing work.
        let measured = MEASURED_AT.get().wrapping_sub(self.begun);
        MEASURED_AT.set(self.outer.wrapping_add(measured));
    }
}

/// Records the bytes that the thread has allocated and freed since the last measurement.
fn measure(memory: &Measured) {
    let balance = allocation::balance();
    memory.note(balance.wrapping_sub(MEASURED_AT.replace(balance)));
}

/// Runs a task's work with these limits. The memory of the work is measured while it is polled and
/// dropped.
pub fn ended_by<T>(limits: Limits, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let memory = limits.memory.clone();
    let work = STATEMENT.scope(Ending { limits, refusal: RefCell::default() }, work);
    MeasuredWork { memory, work: Some(Box::pin(work)) }
}

struct MeasuredWork<F> {
    memory: Option<Arc<Measured>>,
    /// The work; `None` once it is dropped.
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for MeasuredWork<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let MeasuredWork { memory, work } = &mut *self;
        let _measuring = memory.as_deref().map(Measuring::begin);
        match work {
            Some(work) => work.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for MeasuredWork<F> {
    fn drop(&mut self) {
        let _measuring = self.memory.as_deref().map(Measuring::begin);
        self.work = None;
    }
}

/// The limits of this task's statement, if it has one.
pub fn limits() -> Option<Limits> {
    STATEMENT.try_with(|ending| ending.limits.clone()).ok()
}

/// The bytes that this task's statement holds now; 0 if they are not measured.
pub fn held() -> usize {
    let held = STATEMENT.try_with(|ending| {
        let memory = ending.limits.memory.as_deref()?;
        measure(memory);
        Some(memory.held())
    });
    held.ok().flatten().unwrap_or(0)
}

/// Records that this task's statement has received memory that another owner has allocated, and
/// will free it.
pub fn received(bytes: usize) {
    // Outside of a statement nothing is measured.
    let _ = STATEMENT.try_with(|ending| {
        if let Some(memory) = ending.limits.memory.as_deref() {
            memory.note(isize::try_from(bytes).unwrap_or(isize::MAX));
        }
    });
}

/// Records that a part of the statement takes too much memory. The planner treats the error of a
/// constant as one that may never occur, and computes the constant again with each rule. The
/// statement therefore ends at the next [`check`].
pub fn refuse(error: SqlError) -> DataFusionError {
    // Outside of a statement nothing checks for it.
    let _ = STATEMENT.try_with(|ending| ending.refusal.replace(Some(error.clone())));
    carried(error)
}

/// Checks whether this task's statement may continue.
///
/// # Errors
/// 57014 if it has ended early, 53200 if it holds too much memory, or the error that it was refused
/// with.
pub fn check() -> PlanResult<()> {
    let over = STATEMENT.try_with(|ending| {
        if ending.limits.are_over() {
            return Some(ending.limits.why_over());
        }
        ending.refusal.borrow().clone().or_else(|| ending.limits.check_memory().err())
    });
    over.ok().flatten().map_or(Ok(()), |error| Err(carried(error)))
}

/// Checks whether this task's statement may take `bytes` more bytes in its next step. They count
/// for all statements until the result is dropped; `None` if memory is not measured.
///
/// # Errors
/// 53200: it would hold too much memory.
pub fn ahead(bytes: usize) -> Result<Option<Ahead>, SqlError> {
    let ahead = STATEMENT.try_with(|ending| {
        let Some(memory) = &ending.limits.memory else { return Ok(None) };
        measure(memory);
        memory.ahead(bytes).map(Some)
    });
    ahead.unwrap_or(Ok(None))
}

/// Checks whether this task's statement may continue with its next batch of rows, or may hold more
/// of them. Operators check it: most of them are dropped when the statement is ended early, but
/// some take many batches in one step.
///
/// # Errors
/// 57014 if the statement has ended early, 53200 if it holds too much memory. None while it changes
/// rows.
pub fn check_batch() -> PlanResult<()> {
    let over = STATEMENT.try_with(|ending| ending.limits.check_batch());
    over.unwrap_or(Ok(())).map_err(carried)
}
