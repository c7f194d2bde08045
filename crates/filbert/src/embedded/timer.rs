//! The clockwork of a member: expired entries, ended leases and lock waits are dealt with when they are due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use filbert_grid::{Clock, Grid};

/// A thread that sweeps the grid whenever something is due. Dropping the timer ends the thread.
pub(super) struct Timer {
    thread: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
}

impl Timer {
    /// Starts the thread; `clock` is the one that the grid reads.
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
            // The thread ends by itself; a panic in it was reported by the panic hook already.
            let _ = thread.join();
        }
    }
}
