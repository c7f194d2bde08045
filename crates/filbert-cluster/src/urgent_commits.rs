//! Waiters that need followers to learn of commits at once, so that the commit index is not held
//! back.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The index of the log up to which followers must learn of commits at once.
#[derive(Default)]
pub(crate) struct UrgentCommits {
    index: AtomicU64,
    changed: Notify,
}

impl UrgentCommits {
    /// Requests that followers learn at once of commits up to an index.
    pub(crate) fn request_up_to(&self, index: u64) {
        if self.index.fetch_max(index, Ordering::SeqCst) < index {
            self.changed.notify_waiters();
        }
    }

    /// Waits until a waiter needs the commit of an index.
    pub(crate) async fn wait_until_urgent(&self, index: u64) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if index <= self.index.load(Ordering::SeqCst) {
                return;
            }
            changed.await;
        }
    }
}
