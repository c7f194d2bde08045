//! The early end of a statement: cancelled, timed out, or its connection was closed.
//!
//! DataFusion plans without any await, so a task cannot be dropped meanwhile. Plans and functions
//! are shared by many statements. Each task therefore stores the statement that it works for, and
//! the code checks between two steps whether it has ended: each rule of the analyzer and the
//! optimizer before each node, operators during planning, and functions of constants.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use datafusion::common::{DataFusionError, Result as PlanResult};
use filbert_grid::query::{SqlError, SqlErrorCode};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::carried;

/// The limits that end a statement early.
#[derive(Clone, Debug)]
pub struct Limits {
    cancelled: Arc<(AtomicBool, Notify)>,
    stage: Arc<Stage>,
    deadline: Option<(Instant, Duration)>,
}

impl Limits {
    /// The limits of a statement that begins now, with its timeout.
    pub fn new(timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        Limits { cancelled: Arc::default(), stage: Arc::default(), deadline }
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

/// Runs a task's work with these limits.
pub async fn ended_by<T>(limits: Limits, work: impl Future<Output = T>) -> T {
    STATEMENT.scope(Ending { limits, refusal: RefCell::default() }, work).await
}

/// The limits of this task's statement, if it has one.
pub fn limits() -> Option<Limits> {
    STATEMENT.try_with(|ending| ending.limits.clone()).ok()
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
/// 57014 if it has ended early, or the error that it was refused with.
pub fn check() -> PlanResult<()> {
    let over = STATEMENT.try_with(|ending| {
        let is_over = ending.limits.are_over();
        if is_over { Some(ending.limits.why_over()) } else { ending.refusal.borrow().clone() }
    });
    over.ok().flatten().map_or(Ok(()), |error| Err(carried(error)))
}
