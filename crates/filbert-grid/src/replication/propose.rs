//! Proposals: the checks of the leader before a change goes into the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Caller, Change, Command, Millis, OwnedChange, Reply};

use super::{Forwards, Pending, Submissions, is_led_elsewhere, leading};
use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::map::{Map, Refused};
use crate::map_core::MapCore;
use crate::replicator::{PendingAnswer, Replication, WhenLocked};
use crate::waiters::{ParkedReply, Waiter};

/// The maximum time, in milliseconds, for which a forwarded change waits for a locked key on
/// another member. The caller can send it again.
const FORWARDED_WAIT_MS_MAX: u64 = 600_000;

/// The state of a submitted change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It was answered. Without a log, it may also wait for its key.
    Answered,
    /// It was added to the submissions, which are not sent yet.
    Proposed,
    /// It waits for its key.
    Parked,
}

impl Map {
    /// Submits a change of one key. Without a log, it is applied directly. With a log, it is added
    /// to `to`, and applied after `to` is sent. `reply` is called exactly once, under the
    /// partition's lock, on any thread.
    ///
    /// # Errors
    /// The change cannot be applied; `reply` is not called then. [`Refused::Locked`] is returned
    /// only with [`WhenLocked::Answer`].
    pub fn submit(
        &self,
        to: &mut Submissions,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        when_locked: WhenLocked,
        reply: ParkedReply,
    ) -> Result<Submitted, Refused> {
        match (&self.shared.replication, when_locked) {
            (Some(replication), _) => self.propose(replication, to, partition, caller, change, when_locked, reply),
            (None, WhenLocked::Answer) => {
                self.change_here(partition, caller, change, |answer| reply(Ok(answer)))?;
                Ok(Submitted::Answered)
            }
            (None, WhenLocked::Wait(deadline)) => {
                self.change_here_when_free(partition, caller, change.to_owned(), deadline, reply);
                Ok(Submitted::Answered)
            }
        }
    }

    /// Applies a change through the log. Blocks until its answer arrives.
    #[cold]
    #[inline(never)]
    pub(crate) fn change_by_log<R>(
        &self,
        replication: &Replication,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        let (callback, pending) = Pending::new();
        let mut to = self.submissions();
        let proposed = self.propose(replication, &mut to, partition, caller, change, WhenLocked::Answer, callback);
        to.send();
        let mut answer = proposed.and_then(|_| Ok(pending.wait()?));
        if is_led_elsewhere(&answer) {
            let (callback, pending) = Pending::new();
            self.forward(partition, caller, change, None, callback);
            answer = Ok(pending.wait()?);
        }
        match answer? {
            Reply::Locked { free_at } => Err(Refused::Locked { free_at }),
            answer => Ok(reply(answer)),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn change_by_log_when_free(
        &self,
        replication: &Replication,
        partition: PartitionId,
        caller: Caller,
        change: &OwnedChange,
        deadline: Option<Millis>,
        reply: ParkedReply,
    ) {
        let mut to = self.submissions();
        // Both a failed proposal and the log's answer may call the reply. The first one takes it.
        let reply = std::sync::Arc::new(parking_lot::Mutex::new(Some(reply)));
        let callback = {
            let reply = reply.clone();
            Box::new(move |answer: Result<Reply<'_>, GridError>| {
                if let Some(reply) = reply.lock().take() {
                    reply(answer);
                }
            })
        };
        let when = WhenLocked::Wait(deadline);
        let submitted = self.propose(replication, &mut to, partition, caller, change.borrow(), when, callback);
        to.send();
        if is_led_elsewhere(&submitted) {
            if let Some(reply) = reply.lock().take() {
                let left = deadline.map_or(i64::MAX, |deadline| deadline.0.saturating_sub(self.shared.now().0));
                let wait = Duration::from_millis(u64::try_from(left).unwrap_or_default().min(FORWARDED_WAIT_MS_MAX));
                self.forward(partition, caller, change.borrow(), Some(wait), reply);
            }
            return;
        }
        let error = match submitted {
            Ok(_) => return,
            Err(Refused::Error(error)) => error,
            Err(Refused::Locked { .. }) => GridError::Internal("a change that waits was told of a lock".to_owned()),
        };
        let reply = reply.lock().take();
        if let Some(reply) = reply {
            reply(Err(error));
        }
    }

    /// Sends a change to the leader of its partition.
    fn forward(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        wait: Option<Duration>,
        reply: ParkedReply,
    ) {
        let mut forwards = Forwards::new(&self.shared, wait);
        let command = Command { map: self.core.id, now: self.shared.now(), caller, change };
        forwards.push(partition, &command.into(), reply);
        forwards.send();
    }

    #[allow(clippy::too_many_arguments, reason = "they are what a change consists of")]
    fn propose(
        &self,
        replication: &Replication,
        to: &mut Submissions,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        when_locked: WhenLocked,
        reply: ParkedReply,
    ) -> Result<Submitted, Refused> {
        let (shared, core) = (&self.shared, &self.core);
        let Some(key) = change.key() else { return Err(not_of_a_key().into()) };
        let partition = match shared.cell(partition) {
            Some(_) => partition,
            None => partition_of(key, shared.config.partition_count),
        };
        let cell = shared.cell_of(partition, key);
        // Counted before the check of `held`: a thread that holds the map waits for all changes
        // that were counted before.
        let counted = Counted::new(core);
        shared.check_active()?;
        core.check_held()?;
        if self.is_destroyed() {
            return Err(core.destroyed_error().into());
        }
        replication.lease_of(partition).map_err(GridError::from)?;
        let mut state = cell.lock();
        let now = shared.now();
        if state.waiters.any_for(core.id, key)
            && let Some(free_at) = self.must_queue(cell, partition, &mut state, caller, &change, now)
        {
            let WhenLocked::Wait(deadline) = when_locked else { return Err(Refused::Locked { free_at }) };
            let deadline = deadline.unwrap_or(Millis::MAX);
            let waiter = Waiter { caller, change: change.to_owned(), deadline, reply };
            shared.park(core, cell, &mut state, waiter, free_at);
            drop(state);
            if !shared.active.load(Ordering::Acquire) {
                shared.dismiss_all();
            }
            return Ok(Submitted::Parked);
        }
        let command = Command { map: core.id, now, caller, change };
        core.check_memory(shared, &state.partition, &command)?;
        drop(state);
        core.note_locks(shared, &change, caller);
        let pushed = to.push(partition, &command.into(), PendingAnswer::reply(core, when_locked, reply));
        drop(counted);
        pushed.map_err(|(answer, error)| {
            answer.give_up();
            error
        })?;
        Ok(Submitted::Proposed)
    }

    /// Whether a change must wait behind the waiters of its key. `None` = it need not wait.
    /// Otherwise, contains the known end of the lock's lease, if there is one. Proposes the first
    /// waiter if the key is free.
    fn must_queue(
        &self,
        cell: &Cell,
        partition: PartitionId,
        state: &mut CellState,
        caller: Caller,
        change: &Change<'_>,
        now: Millis,
    ) -> Option<Option<Millis>> {
        let (shared, core) = (&self.shared, &self.core);
        let key = change.key()?;
        let lock = state.partition.lock_state(core.id, key, now);
        if !respects_locks(change) || lock.as_ref().is_some_and(|lock| lock.owner == caller) {
            return None;
        }
        if state.waiters.is_proposed_by(core.id, key, caller) {
            // The same request, sent again: it follows the first one through the log, and gets the
            // same answer.
            return None;
        }
        if lock.is_none() {
            // A lease has ended, and the sweep has not noticed it yet.
            let mut first = Submissions::new(shared);
            leading::propose_waiter(shared, cell, partition, state, core, key, &mut first);
            first.send_holding(Some((partition, &mut *state)));
        }
        Some(lock.and_then(|lock| lock.lease_until))
    }
}

/// Counts a change as in flight while it is checked.
struct Counted<'m>(&'m MapCore);

impl<'m> Counted<'m> {
    fn new(map: &'m MapCore) -> Self {
        map.in_flight.fetch_add(1, Ordering::SeqCst);
        Counted(map)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

fn not_of_a_key() -> GridError {
    GridError::IllegalArgument("a change of a whole map is not one of a key".to_owned())
}

/// Whether another caller's lock of the key blocks the change.
fn respects_locks(change: &Change<'_>) -> bool {
    matches!(
        change,
        Change::Put { .. }
            | Change::ReplaceIfSame { .. }
            | Change::Remove { .. }
            | Change::Delete { .. }
            | Change::RemoveIfSame { .. }
            | Change::SetTtl { .. }
            | Change::Lock { .. }
            | Change::Await { .. }
    )
}
