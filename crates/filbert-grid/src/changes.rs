//! Changes of a map for callers: applied directly, or through the log of the partition's group.

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, EventKind, Millis, OwnedChange, Reply};

use crate::errors::GridError;
use crate::map::{Map, Refused};
use crate::waiters::ParkedReply;

impl Map {
    /// Applies a change of one key: calls `reply` under the partition's lock and returns its
    /// result. With a log, it blocks until the answer arrives, and then calls `reply`. Callers that
    /// must not block use [`Map::submit`].
    ///
    /// # Errors
    /// [`Refused::Locked`] if another caller has locked the key. Other refusals contain the reason.
    /// Nothing was changed then.
    #[inline]
    pub fn change<R>(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        match &self.shared.replication {
            Some(replication) => self.change_by_log(replication, partition, caller, change, reply),
            None => self.change_here(partition, caller, change, reply),
        }
    }

    /// Applies a change of one key when no other caller holds its lock, or gives up at `deadline`.
    /// `reply` is called exactly once: immediately if the key is free, otherwise by the thread that
    /// releases the key.
    pub fn change_when_free(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: OwnedChange,
        deadline: Option<Millis>,
        reply: ParkedReply,
    ) {
        match &self.shared.replication {
            Some(replication) => {
                self.change_by_log_when_free(replication, partition, caller, &change, deadline, reply);
            }
            None => self.change_here_when_free(partition, caller, change, deadline, reply),
        }
    }

    /// As [`Map::change_when_free`], with a deadline `wait_ms` milliseconds from now.
    pub fn change_within(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: OwnedChange,
        wait_ms: i64,
        reply: ParkedReply,
    ) {
        let deadline = self.shared.now().plus(wait_ms);
        self.change_when_free(partition, caller, change, Some(deadline), reply);
    }

    /// Removes all entries except those of locked keys. Returns their number. Listeners receive one
    /// event.
    ///
    /// # Errors
    /// The member is shutting down, or the map was destroyed.
    pub fn clear(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, EventKind::Cleared)
    }

    /// As [`Map::clear`], reported to listeners as an eviction.
    ///
    /// # Errors
    /// The member is shutting down, or the map was destroyed.
    pub fn evict_all(&self, caller: Caller) -> Result<usize, GridError> {
        self.empty(caller, EventKind::EvictedAll)
    }

    fn empty(&self, caller: Caller, kind: EventKind) -> Result<usize, GridError> {
        if self.is_replicated() { self.emptied_by_log(caller, kind) } else { self.empty_here(caller, kind) }
    }
}
