//! Changes of a whole map through the logs: one command for each partition, and one common answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, EventKind, Reply};
use parking_lot::Mutex;

use super::{Forwards, Pending, Submissions};
use crate::errors::GridError;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::replicator::{PendingAnswer, WhenLocked};
use crate::shared::Shared;
use crate::waiters::ParkedReply;

/// Collects the answers of the partitions for one common answer.
struct EmptyingCollector {
    shared: Arc<Shared>,
    map: Arc<MapCore>,
    /// The event for listeners of the whole map; `None` if only some partitions are emptied.
    whole_map_event: Option<EventKind>,
    missing: AtomicUsize,
    affected: AtomicUsize,
    failed: Mutex<Option<GridError>>,
    reply: Mutex<Option<ParkedReply>>,
}

impl EmptyingCollector {
    fn collect(&self, answer: Result<Reply<'_>, GridError>) {
        match answer {
            Ok(Reply::Count(count)) => _ = self.affected.fetch_add(count, Ordering::AcqRel),
            Ok(_) => {}
            Err(error) => _ = self.failed.lock().get_or_insert(error),
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let affected = self.affected.load(Ordering::Acquire);
        if let Some(kind) = self.whole_map_event
            && self.map.listeners.any()
        {
            self.shared.notify_whole_map(&self.map, kind, affected);
        }
        let failed = self.failed.lock().take();
        let reply = self.reply.lock().take();
        if let Some(reply) = reply {
            reply(failed.map_or(Ok(Reply::Count(affected)), Err));
        }
    }
}

impl Map {
    /// As [`Map::clear`], possibly through the logs: `reply` is called once, with the number of
    /// removed entries. Sends its commands immediately.
    ///
    /// # Errors
    /// As [`Map::clear`]; `reply` is not called then.
    pub fn submit_clear(&self, caller: Caller, reply: ParkedReply) -> Result<(), GridError> {
        self.submit_emptying(caller, EventKind::Cleared, reply)
    }

    /// As [`Map::submit_clear`], reported to listeners as an eviction.
    ///
    /// # Errors
    /// As [`Map::submit_clear`].
    pub fn submit_evict_all(&self, caller: Caller, reply: ParkedReply) -> Result<(), GridError> {
        self.submit_emptying(caller, EventKind::EvictedAll, reply)
    }

    /// As [`Map::submit_clear`] or [`Map::submit_evict_all`], depending on `kind`, for some
    /// partitions. Listeners receive the event of the whole map only by [`Map::notify_emptied`].
    ///
    /// # Errors
    /// As [`Map::submit_clear`].
    pub fn submit_emptying_of(
        &self,
        partitions: &[PartitionId],
        caller: Caller,
        kind: EventKind,
        reply: ParkedReply,
    ) -> Result<(), GridError> {
        self.empty_these_by_log(partitions, caller, kind, None, reply)
    }

    /// Notifies the listeners that the whole map was emptied, on all members.
    pub fn notify_emptied(&self, kind: EventKind, affected: usize) {
        if self.core.listeners.any() {
            self.shared.notify_whole_map(&self.core, kind, affected);
        }
    }

    fn submit_emptying(&self, caller: Caller, kind: EventKind, reply: ParkedReply) -> Result<(), GridError> {
        if self.is_replicated() {
            return self.empty_by_log(caller, kind, reply);
        }
        let affected = self.empty_here(caller, kind)?;
        reply(Ok(Reply::Count(affected)));
        Ok(())
    }

    /// Removes all entries of the map. Blocks until all answers have arrived.
    #[cold]
    pub(crate) fn emptied_by_log(&self, caller: Caller, kind: EventKind) -> Result<usize, GridError> {
        let (reply, pending) = Pending::new();
        let all: Vec<PartitionId> = self.shared.partitions().map(|(partition, _)| partition).collect();
        self.empty_these(&all, caller, kind, Some(kind), self.forwards(), reply)?;
        match pending.wait()? {
            Reply::Count(count) => Ok(count),
            reply => Err(GridError::Internal(format!("emptying a map was answered by {reply:?}"))),
        }
    }

    fn empty_by_log(&self, caller: Caller, kind: EventKind, reply: ParkedReply) -> Result<(), GridError> {
        let all: Vec<PartitionId> = self.shared.partitions().map(|(partition, _)| partition).collect();
        self.empty_these_by_log(&all, caller, kind, Some(kind), reply)
    }

    fn empty_these_by_log(
        &self,
        partitions: &[PartitionId],
        caller: Caller,
        kind: EventKind,
        whole_map_event: Option<EventKind>,
        reply: ParkedReply,
    ) -> Result<(), GridError> {
        self.empty_these(partitions, caller, kind, whole_map_event, false, reply)
    }

    /// As [`Map::empty_these_by_log`]. `forwards` = commands for partitions of other leaders are
    /// sent to them.
    fn empty_these(
        &self,
        partitions: &[PartitionId],
        caller: Caller,
        kind: EventKind,
        whole_map_event: Option<EventKind>,
        forwards: bool,
        reply: ParkedReply,
    ) -> Result<(), GridError> {
        let (shared, core) = (&self.shared, &self.core);
        shared.check_active()?;
        core.check_held()?;
        if self.is_destroyed() {
            return Err(core.destroyed_error());
        }
        let change = if kind == EventKind::Cleared { Change::Clear } else { Change::EvictAll };
        let collector = Arc::new(EmptyingCollector {
            shared: shared.clone(),
            map: core.clone(),
            whole_map_event,
            // One more than partitions, so that the last answer comes after all commands were
            // submitted, or immediately if there are none.
            missing: AtomicUsize::new(partitions.len() + 1),
            affected: AtomicUsize::new(0),
            failed: Mutex::default(),
            reply: Mutex::new(Some(reply)),
        });
        let (mut to, mut others) = (Submissions::new(shared), Forwards::new(shared, None));
        for &partition in partitions {
            let collector = collector.clone();
            let reply: ParkedReply = Box::new(move |answer| collector.collect(answer));
            let command = Command { map: core.id, now: shared.now(), caller, change };
            if forwards {
                others.push(partition, &command.into(), reply);
                continue;
            }
            let answer = PendingAnswer::reply(core, WhenLocked::Answer, reply);
            if let Err((answer, error)) = to.push(partition, &command.into(), answer) {
                answer.fail(shared, partition, &error, None);
            }
        }
        to.send();
        others.send();
        collector.collect(Ok(Reply::Done));
        Ok(())
    }
}
