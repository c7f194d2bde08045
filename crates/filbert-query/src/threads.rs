//! The threads that queries run on, apart from those that serve connections and behind them in line for the processor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use filbert_functions::ending;
use filbert_functions::error::panicked;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{GridError, threads};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

/// Runs a part of a statement, whose panic is an error of the statement and of nothing else.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// As [`caught`], in the caller's thread.
pub(crate) fn caught_here<T>(work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// The error for a task that did not come to its end.
pub(crate) fn ended_early(error: tokio::task::JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(panic) => panicked(panic.as_ref()),
        Err(_) => SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled").with_sqlstate("57014"),
    }
}

/// Threads for queries. They end with the last clone of this.
#[derive(Clone)]
pub(crate) struct Threads {
    handle: Handle,
    count: usize,
    _runtime: Arc<Held>,
}

/// A runtime that ends in the background, so that it may be dropped anywhere, a task of its own included.
struct Held(Mutex<Option<Runtime>>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> Result<Threads, GridError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(count.max(1))
            .thread_name("filbert-query")
            // Plans of deeply nested expressions are walked recursively.
            .thread_stack_size(8 << 20)
            .on_thread_start(threads::compute_behind_clients)
            .enable_time()
            .build()
            .map_err(|error| GridError::Internal(format!("threads for queries cannot be started: {error}")))?;
        Ok(Threads {
            handle: runtime.handle().clone(),
            count: count.max(1),
            _runtime: Arc::new(Held(Mutex::new(Some(runtime)))),
        })
    }

    /// Runs a task.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(self.handle.spawn(task));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Runs a part of a statement beside others on the threads; it ends with the statement of the task that asks for it.
    pub(crate) fn run_part<T, F>(&self, part: F) -> impl Future<Output = Result<T, SqlError>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        let part = caught(part);
        // It starts now, not when it is waited for.
        let running = match ending::limits() {
            Some(limits) => self.handle.spawn(ending::ended_by(limits, part)),
            None => self.handle.spawn(part),
        };
        async move {
            match running.await {
                Ok(result) => result,
                Err(error) => Err(ended_early(error)),
            }
        }
    }

    /// Runs something that computes long without waiting.
    pub(crate) fn spawn_blocking(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.handle.spawn_blocking(job));
    }
}
