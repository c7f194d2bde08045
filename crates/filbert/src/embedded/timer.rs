//! The timer of a member: processes expired entries, expired leases and lock timeouts when they are
//! due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use filbert_grid::{Clock, Grid};

/// A thread that sweeps the grid when work is due. Dropping the timer stops the thread.
pub(super) struct Timer {
    thread: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
}

impl Timer {
    /// Starts the thread. `clock` must be the clock of the grid.
    pub(super) fn start(grid: Arc<Grid>, clock: Arc<dyn Clock>) -> io::Result<Timer> {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = stopped.clone();
        let swept = grid.clone();
        let thread = thread::Builder::new().name("filbert-timer".to_owned()).spawn(move || {
            while !seen.load(Ordering::Acquire) {
                let due = swept.run_expiry();
                let wait_ms = due.0.saturating_sub(clock.now().0).max(0);
                thread::park_timeout(Duration::from_millis(wait_ms.unsigned_abs()));
            }
        })?;
        let handle = thread.thread().clone();
        grid.on_due(move |_| handle.unpark());
        Ok(Timer { thread: Some(thread), stopped })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread ends by itself. The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}
