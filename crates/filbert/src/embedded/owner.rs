//! Who owns the locks of an embedded member: a thread, or whatever an async program says.

use std::sync::atomic::{AtomicI64, Ordering};

/// The owner of locks within one member.
///
/// The sync API owns locks by thread, as Java does. Async tasks wander between threads, so each
/// [`asynchronous`](crate::Map::asynchronous) view is an owner of its own; its clones are the same owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockOwner(i64);

/// Numbers are given once per process, so that no two threads or views are taken for each other.
static NEXT: AtomicI64 = AtomicI64::new(1);

thread_local! {
    static THREAD: LockOwner = LockOwner::new();
}

impl LockOwner {
    /// An owner that nobody else is.
    #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
    pub fn new() -> LockOwner {
        LockOwner(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The owner that the calling thread is.
    pub fn of_this_thread() -> LockOwner {
        THREAD.with(|owner| *owner)
    }

    pub(super) fn thread_id(self) -> i64 {
        self.0
    }
}
