//! The number of requests of clients that this member has passed on or parked, and not answered: a
//! member that leaves waits for them, because clients close their connections when it is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The counter of a member. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct PendingRequests(Arc<AtomicUsize>);

/// A request, which counts until this value is dropped.
#[derive(Debug)]
pub struct PendingRequest(PendingRequests);

impl PendingRequests {
    /// Counts one more request.
    #[must_use]
    pub fn begin(&self) -> PendingRequest {
        self.0.fetch_add(1, Ordering::SeqCst);
        PendingRequest(self.clone())
    }

    /// The number of requests that are not answered.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a request was counted before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_until_it_is_dropped() {
        let requests = PendingRequests::default();
        let (first, second) = (requests.begin(), requests.clone().begin());
        assert_eq!(requests.count(), 2);
        drop(first);
        drop(second);
        assert_eq!(requests.count(), 0);
    }
}
