//! The threads of queries. They are separate from the threads that serve connections, and have a
//! lower priority.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use filbert_functions::error::panicked;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{GridError, allocation, threads};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::release::{self, Ended};
use crate::turns::{self, Turns};

/// Runs a part of a statement. A panic becomes an error of the statement and has no other effect.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// Like [`caught`], on the caller's thread.
pub(crate) fn caught_here<T>(work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// The error of a task that did not complete.
pub(crate) fn ended_early(error: tokio::task::JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(panic) => panicked(panic.as_ref()),
        Err(_) => SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled").with_sqlstate("57014"),
    }
}

/// Threads for queries. They end with the last clone of this value.
#[derive(Clone)]
pub(crate) struct Threads {
    handle: Handle,
    count: usize,
    turns: Turns,
    /// For statements that may take long to plan.
    planning: Arc<Semaphore>,
    ended: Ended,
    _runtime: Arc<Held>,
}

/// A runtime that shuts down in the background, so it can be dropped anywhere, even in one of its
/// own tasks.
struct Held(Mutex<Option<Runtime>>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.lock().take() {
            runtime.shutdown_background();
        }
    }
}

/// Threads in addition to the threads of long statements. There is one turn of a long statement for
/// each configured thread, so the additional threads remain for the steps of short statements.
const THREADS_FOR_SHORT: usize = 2;

impl Threads {
    /// Starts the threads. Long statements use `count` of them at a time.
    pub(crate) fn start(count: usize) -> Result<Threads, GridError> {
        let workers = count.max(1) + THREADS_FOR_SHORT;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("filbert-query")
            // Plans of deeply nested expressions are walked recursively.
            .thread_stack_size(8 << 20)
            .on_thread_start(threads::compute_behind_clients)
            .enable_time()
            .build()
            .map_err(|error| GridError::Internal(format!("threads for queries cannot be started: {error}")))?;
        let ended = Ended::default();
        if allocation::has_release() {
            drop(runtime.spawn(release::run(workers, ended.clone())));
        }
        Ok(Threads {
            handle: runtime.handle().clone(),
            count: count.max(1),
            turns: Turns::new(count.max(1)),
            planning: Arc::new(Semaphore::new(count.div_ceil(2).max(1))),
            ended,
            _runtime: Arc::new(Held(Mutex::new(Some(runtime)))),
        })
    }

    /// Runs a task.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let ended = self.ended.guard();
        drop(self.handle.spawn(async move {
            task.await;
            drop(ended);
        }));
    }

    /// The turns that long statements take.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Waits until a statement with long planning may be planned. Planning does not yield: were all
    /// threads to plan, no other statement would get a turn for seconds.
    pub(crate) async fn may_plan(&self, text: &str) -> Option<SemaphorePermit<'_>> {
        turns::long_planning(text)?;
        // The semaphore is never closed.
        self.planning.acquire().await.ok()
    }

    /// The number of threads that compute at a time.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Runs a part of a statement on the threads, in parallel with others. It ends with the
    /// statement of the calling task.
    pub(crate) fn run_part<T, F>(&self, part: F) -> impl Future<Output = Result<T, SqlError>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        let ended = self.ended.guard();
        let part = caught(async move {
            let result = part.await;
            drop(ended);
            result
        });
        // The part starts now, not on its first poll.
        let running = self.handle.spawn(turns::run_beside(part));
        async move {
            match running.await {
                Ok(result) => result,
                Err(error) => Err(ended_early(error)),
            }
        }
    }

    /// Runs a long computation that does not yield.
    pub(crate) fn spawn_blocking(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.handle.spawn_blocking(job));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_thread_releases_memory_after_a_task_has_ended() {
        static RELEASED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        allocation::set_release(|| {
            RELEASED.lock().insert(format!("{:?}", thread::current().id()));
        });
        let threads = Threads::start(2).unwrap();
        while RELEASED.lock().len() < 2 + THREADS_FOR_SHORT {
            threads.spawn(async {});
            thread::sleep(Duration::from_millis(1));
        }
    }
}
