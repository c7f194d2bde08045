//! The threads that answer clients and other members.
//!
//! They allocate messages that other threads free. The allocator gives such memory to others only
//! when the thread that allocated it is active again. Each thread therefore releases it before it
//! sleeps, if the program has requested that:
//!
//! ```text
//!  the thread filbert-memory ──► request ──► a thread is about to sleep ──► it releases memory
//!                                   └──────► threads that sleep already wake up for a moment
//! ```

use std::io;
use std::time::Duration;

use filbert_grid::{allocation, threads};
use tokio::runtime::{Builder, Runtime};

/// The time between two looks for requests, for the sake of threads without work.
const INTERVAL: Duration = Duration::from_secs(1);

/// The empty tasks for each thread that wake all of them. A thread that is awake may run several
/// before another one wakes.
const TASKS_PER_THREAD: usize = 4;

/// Starts threads that answer. Without a number, there is one for each processor.
///
/// # Errors
/// The threads cannot be started.
pub(super) fn runtime(name: &str, count: Option<usize>) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(count) = count {
        builder.worker_threads(count.max(1));
    }
    let runtime = builder
        .thread_name(name)
        .on_thread_start(threads::answer_clients)
        .on_thread_park(allocation::release_if_requested)
        .enable_all()
        .build()?;
    if allocation::has_release() {
        drop(runtime.spawn(wake_when_requested(runtime.metrics().num_workers())));
    }
    Ok(runtime)
}

/// Wakes the threads of the calling runtime after each request.
async fn wake_when_requested(threads: usize) {
    let mut seen = allocation::release_requests();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let requests = allocation::release_requests();
        if requests != seen {
            seen = requests;
            for _ in 0..threads.saturating_mul(TASKS_PER_THREAD) {
                drop(tokio::spawn(async {}));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn threads_without_work_answer_a_request() {
        static RELEASED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        allocation::set_release(|| {
            let thread = thread::current();
            if thread.name() == Some("answering-test") {
                RELEASED.lock().unwrap().insert(format!("{:?}", thread.id()));
            }
        });
        let _runtime = runtime("answering-test", Some(3)).unwrap();
        while RELEASED.lock().unwrap().len() < 3 {
            allocation::request_release();
            thread::sleep(Duration::from_millis(100));
        }
    }
}
