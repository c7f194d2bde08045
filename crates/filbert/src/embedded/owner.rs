//! Lock owners of an embedded member: threads, and views of async programs.

use std::sync::atomic::{AtomicI64, Ordering};

/// The owner of locks within one member.
///
/// In the sync API a lock belongs to a thread, as in Java. An async task may move between threads,
/// so each [`asynchronous`](crate::Map::asynchronous) view is a separate owner. Clones of a view
/// are the same owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockOwner(i64);

/// The next owner number. Numbers are unique within the process, so that owners cannot be confused.
static NEXT: AtomicI64 = AtomicI64::new(1);

thread_local! {
    static THREAD: LockOwner = LockOwner::new();
}

impl LockOwner {
    /// Creates a new owner, different from all others.
    #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
    pub fn new() -> LockOwner {
        LockOwner(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The owner that represents the calling thread.
    pub fn of_this_thread() -> LockOwner {
        THREAD.with(|owner| *owner)
    }

    pub(super) fn thread_id(self) -> i64 {
        self.0
    }
}
