//! Changes of a whole map through the logs: one command for each partition, and one answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, EventKind, Reply};
use parking_lot::Mutex;

use super::awaited::Awaited;
use super::{Forwards, Pending, Submissions, WhenLocked};
use crate::errors::GridError;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::waiters::ParkedReply;

/// The answers of the partitions on their way to one.
struct Gathering {
    shared: Arc<Shared>,
    map: Arc<MapCore>,
    /// What listeners of the whole map hear in the end, if this is the whole map.
    told_as: Option<EventKind>,
    missing: AtomicUsize,
    affected: AtomicUsize,
    failed: Mutex<Option<GridError>>,
    reply: Mutex<Option<ParkedReply>>,
}

impl Gathering {
    fn tell(&self, answer: Result<Reply<'_>, GridError>) {
        match answer {
            Ok(Reply::Count(count)) => _ = self.affected.fetch_add(count, Ordering::AcqRel),
            Ok(_) => {}
            Err(error) => _ = self.failed.lock().get_or_insert(error),
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let affected = self.affected.load(Ordering::Acquire);
        if let Some(kind) = self.told_as
            && self.map.listeners.any()
        {
            self.shared.tell_whole_map(&self.map, kind, affected);
        }
        let failed = self.failed.lock().take();
        let reply = self.reply.lock().take();
        if let Some(reply) = reply {
            reply(failed.map_or(Ok(Reply::Count(affected)), Err));
        }
    }
}

impl Map {
    /// As [`Map::clear`], which may be made through the logs: `reply` is called once, with the count. It is sent at once.
    ///
    /// # Errors
    /// As [`Map::clear`]; `reply` is not called then.
    pub fn submit_clear(&self, caller: Caller, reply: ParkedReply) -> Result<(), GridError> {
        self.submit_emptying(caller, EventKind::Cleared, reply)
    }

    /// As [`Map::submit_clear`], told as an eviction.
    ///
    /// # Errors
    /// As [`Map::submit_clear`].
    pub fn submit_evict_all(&self, caller: Caller, reply: ParkedReply) -> Result<(), GridError> {
        self.submit_emptying(caller, EventKind::EvictedAll, reply)
    }

    /// As [`Map::submit_clear`] or, by the kind, [`Map::submit_evict_all`], of some partitions; their listeners hear of it by
    /// [`Map::tell_emptied`] only.
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

    /// Tells the listeners that the whole map was emptied, here and elsewhere.
    pub fn tell_emptied(&self, kind: EventKind, affected: usize) {
        if self.core.listeners.any() {
            self.shared.tell_whole_map(&self.core, kind, affected);
        }
    }

    fn submit_emptying(&self, caller: Caller, kind: EventKind, reply: ParkedReply) -> Result<(), GridError> {
        if self.is_replicated() {
            return self.empty_by_log(caller, kind, reply);
        }
        let affected = self.empty(caller, kind)?;
        reply(Ok(Reply::Count(affected)));
        Ok(())
    }

    /// Takes everything out of the map, waiting for the answers.
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
        told_as: Option<EventKind>,
        reply: ParkedReply,
    ) -> Result<(), GridError> {
        self.empty_these(partitions, caller, kind, told_as, false, reply)
    }

    /// As [`Map::empty_these_by_log`]; `forwards` says whether those of other leaders go to them.
    fn empty_these(
        &self,
        partitions: &[PartitionId],
        caller: Caller,
        kind: EventKind,
        told_as: Option<EventKind>,
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
        let gathering = Arc::new(Gathering {
            shared: shared.clone(),
            map: core.clone(),
            told_as,
            // One more, so that the last answer comes when all are asked for, or none is.
            missing: AtomicUsize::new(partitions.len() + 1),
            affected: AtomicUsize::new(0),
            failed: Mutex::default(),
            reply: Mutex::new(Some(reply)),
        });
        let (mut to, mut others) = (Submissions::new(shared), Forwards::new(shared, None));
        for &partition in partitions {
            let gathering = gathering.clone();
            let reply: ParkedReply = Box::new(move |answer| gathering.tell(answer));
            let command = Command { map: core.id, now: shared.now(), caller, change };
            if forwards {
                others.push(partition, &command.into(), reply);
                continue;
            }
            let awaited = Awaited::reply(core, WhenLocked::Answer, reply);
            if let Err((awaited, error)) = to.push(partition, &command.into(), awaited) {
                awaited.fail(shared, partition, &error, None);
            }
        }
        to.send();
        others.send();
        gathering.tell(Ok(Reply::Done));
        Ok(())
    }
}
