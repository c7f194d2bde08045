//! The owners of claims: statements of this member, while they run.
//!
//! A claim can outlive its statement: the statement's member leaves, or the claim arrives behind
//! its release, over a connection that was replaced meanwhile. Therefore the leaders of partitions
//! ask the members which owners run, and release the claims of all others. The module must not know
//! how members ask each other.

use std::fmt;
use std::sync::Arc;

use filbert_store::Caller;

use crate::grid::Grid;
use crate::shared::Shared;

/// The owner of the claims of a statement. The statement counts as running until this is dropped.
pub(crate) struct ClaimOwner {
    shared: Arc<Shared>,
    caller: Caller,
}

impl ClaimOwner {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let caller = shared.new_owner();
        if shared.replication.is_some() {
            shared.running.lock().insert(caller.thread);
        }
        ClaimOwner { shared: shared.clone(), caller }
    }

    /// The caller of the statement's commands.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }
}

impl fmt::Debug for ClaimOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClaimOwner").field(&self.caller).finish()
    }
}

impl Drop for ClaimOwner {
    fn drop(&mut self) {
        if self.shared.replication.is_some() {
            self.shared.running.lock().remove(&self.caller.thread);
        }
    }
}

impl Grid {
    /// Which of these statements run on this member and may have claims. Statements are given by
    /// the threads of their [`Caller`]s.
    pub fn running_statements(&self, threads: &[i64]) -> Vec<i64> {
        let running = self.shared.running.lock();
        threads.iter().copied().filter(|thread| running.contains(thread)).collect()
    }
}
