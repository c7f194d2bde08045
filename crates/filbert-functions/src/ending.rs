//! The end of a statement: cancelled, late, or of a connection that is gone.
//!
//! DataFusion plans in one go, without a moment at which a task could be dropped. Plans and functions are made for many statements,
//! therefore each task tells which statement it plans, and whoever comes by between two steps looks whether it is still wanted: each rule
//! of the analyzer and the optimizer before each node, operators while a text becomes a plan, functions of constants.

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

/// What ends a statement early.
#[derive(Clone, Debug)]
pub struct Limits {
    cancelled: Arc<(AtomicBool, Notify)>,
    stage: Arc<Stage>,
    deadline: Option<(Instant, Duration)>,
}

impl Limits {
    /// Limits of a statement that begins now, with the time that it may take.
    pub fn new(timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        Limits { cancelled: Arc::default(), stage: Arc::default(), deadline }
    }

    /// Ends the statement.
    pub fn cancel(&self) {
        self.cancelled.0.store(true, Ordering::Release);
        self.cancelled.1.notify_waiters();
        self.cancelled.1.notify_one();
    }

    /// Whether the statement was cancelled, or is late.
    pub fn are_over(&self) -> bool {
        self.cancelled.0.load(Ordering::Acquire)
            || self.deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline)
    }

    /// The error of a statement that is over.
    pub fn why_over(&self) -> SqlError {
        match self.deadline {
            Some((_, timeout)) if !self.cancelled.0.load(Ordering::Acquire) => timed_out(timeout),
            _ => {
                SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled by the user").with_sqlstate("57014")
            }
        }
    }

    /// The statement is about to change rows: it is not ended early any more, unless it turns out that it has to wait.
    ///
    /// # Errors
    /// It was ended early: it must not change anything.
    pub fn begin_changes(&self) -> Result<Changing<'_>, SqlError> {
        match self.stage.go(CHANGING) {
            Ok(_) | Err(CHANGING) => Ok(Changing(&self.stage)),
            Err(_) => Err(self.why_over()),
        }
    }

    /// Runs something until it is done, cancelled, or out of time. What is changing rows is done soon.
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
            // Asked for before the look at the stage, it misses no change of it.
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

/// Whether a statement may still be ended, is ended, or is changing rows.
#[derive(Debug, Default)]
struct Stage {
    at: AtomicU8,
    /// Told when a statement that was changing rows turns out to have changed none.
    opened: Notify,
}

impl Stage {
    /// From open to another stage, or the stage that it is at instead.
    fn go(&self, to: u8) -> Result<u8, u8> {
        self.at.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

const OPEN: u8 = 0;
const CHANGING: u8 = 1;
const ENDED: u8 = 2;

/// A statement that is changing rows. Dropped, it has changed nothing.
pub struct Changing<'l>(&'l Stage);

impl Changing<'_> {
    /// The rows are changed: what is told of the statement is that.
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

/// What ends the statement of a task.
struct Ending {
    limits: Limits,
    /// Why it was refused.
    refusal: RefCell<Option<SqlError>>,
}

/// Runs a task's work, which ends with these limits.
pub async fn ended_by<T>(limits: Limits, work: impl Future<Output = T>) -> T {
    STATEMENT.scope(Ending { limits, refusal: RefCell::default() }, work).await
}

/// What ends the statement of this task, if it has one.
pub fn limits() -> Option<Limits> {
    STATEMENT.try_with(|ending| ending.limits.clone()).ok()
}

/// Notes that a part of the statement takes too much. The planner takes the error of a constant for one that may never show, and computes
/// the constant again with each of its rules; the statement ends at the next [`check`] instead.
pub fn refuse(error: SqlError) -> DataFusionError {
    // Outside of a statement nobody looks.
    let _ = STATEMENT.try_with(|ending| ending.refusal.replace(Some(error.clone())));
    carried(error)
}

/// Looks whether the statement of this task is to go on.
///
/// # Errors
/// 57014: nobody wants it any more. What it was refused for.
pub fn check() -> PlanResult<()> {
    let over = STATEMENT.try_with(|ending| {
        let is_over = ending.limits.are_over();
        if is_over { Some(ending.limits.why_over()) } else { ending.refusal.borrow().clone() }
    });
    over.ok().flatten().map_or(Ok(()), |error| Err(carried(error)))
}
