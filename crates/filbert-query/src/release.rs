//! The release of memory that one thread has allocated and another one has freed.
//!
//! The allocator gives such memory to others only when the thread that allocated it is active
//! again. A thread without work would keep it: 280 MiB after a statement that was planned on one
//! thread and dropped on another. Therefore each thread of queries is active for a moment after
//! statements have ended:
//!
//! ```text
//!  a task ends ──► Ended ──► rounds, every 200 ms ──► short tasks on all threads
//!                                                       each thread releases once in a round
//! ```

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use filbert_grid::allocation;
use tokio::sync::Notify;

/// The time between two rounds.
const INTERVAL: Duration = Duration::from_millis(200);
/// The rounds after the end of a task. The task's caller may drop results after the first one.
const ROUNDS: u32 = 2;
/// The tasks of a round for each thread. A thread that is awake may run several of them before
/// another one wakes.
const TASKS_PER_THREAD: usize = 4;

thread_local! {
    /// The last round in which this thread has released memory.
    static RELEASED: Cell<u64> = const { Cell::new(0) };
}

/// Tells that a task has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended(Arc<Notify>);

impl Ended {
    /// A value that tells the end of a task when it is dropped, also of a task that was cancelled.
    pub(crate) fn guard(&self) -> Guard {
        Guard(Arc::clone(&self.0))
    }
}

/// See [`Ended::guard`].
#[derive(Debug)]
pub(crate) struct Guard(Arc<Notify>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Releases memory on the threads of the calling runtime after tasks have ended, until it ends.
pub(crate) async fn run(threads: usize, ended: Ended) {
    let mut round = 0_u64;
    loop {
        ended.0.notified().await;
        for _ in 0..ROUNDS {
            tokio::time::sleep(INTERVAL).await;
            round = round.wrapping_add(1);
            for _ in 0..threads.saturating_mul(TASKS_PER_THREAD) {
                drop(tokio::spawn(async move { release_in(round) }));
            }
        }
    }
}

fn release_in(round: u64) {
    if RELEASED.replace(round) != round {
        allocation::release_memory_of_thread();
    }
}
