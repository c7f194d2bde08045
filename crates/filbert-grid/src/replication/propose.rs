//! The writing side: what who leads decides before a change goes into the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Caller, Change, Command, Millis, OwnedChange, Reply};

use super::awaited::Awaited;
use super::{Forwards, Pending, Replication, Submissions, is_led_elsewhere, leading};
use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::map::{Map, Refused};
use crate::map_core::MapCore;
use crate::waiters::{ParkedReply, Waiter};

/// How long a change waits at most for a key that is locked at another member, in milliseconds; it can be asked again.
const FORWARDED_WAIT_MS_MAX: u64 = 600_000;

/// What becomes of a change whose key someone else has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLocked {
    /// It is answered by [`Reply::Locked`].
    Answer,
    /// It waits, until this moment if there is one.
    Wait(Option<Millis>),
}

/// Where a change is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It was answered.
    Answered,
    /// It is among what is to be sent.
    Proposed,
    /// It waits for its key.
    Parked,
}

impl Map {
    /// Makes a change of one key, at once or through the log: then it is added to `to`, and made after that is sent. `reply` is
    /// called exactly once, under the partition's lock, on whichever thread.
    ///
    /// # Errors
    /// It cannot be made; `reply` is not called then. [`Refused::Locked`] only for [`WhenLocked::Answer`].
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
                self.change(partition, caller, change, |answer| reply(Ok(answer)))?;
                Ok(Submitted::Answered)
            }
            (None, WhenLocked::Wait(deadline)) => {
                self.change_when_free(partition, caller, change.to_owned(), deadline, reply);
                Ok(Submitted::Answered)
            }
        }
    }

    /// The change through the log, waiting for its answer.
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
        let (tell, pending) = Pending::new();
        let mut to = self.submissions();
        let proposed = self.propose(replication, &mut to, partition, caller, change, WhenLocked::Answer, tell);
        to.send();
        let mut answer = proposed.and_then(|_| Ok(pending.wait()?));
        if is_led_elsewhere(&answer) {
            let (tell, pending) = Pending::new();
            self.forward(partition, caller, change, None, tell);
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
        // The reply is told what keeps the change from being made, by whichever way it comes.
        let reply = std::sync::Arc::new(parking_lot::Mutex::new(Some(reply)));
        let tell = {
            let reply = reply.clone();
            Box::new(move |answer: Result<Reply<'_>, GridError>| {
                if let Some(reply) = reply.lock().take() {
                    reply(answer);
                }
            })
        };
        let when = WhenLocked::Wait(deadline);
        let submitted = self.propose(replication, &mut to, partition, caller, change.borrow(), when, tell);
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

    /// Has whoever leads the partition make the change.
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
        // It is counted first: whoever holds the map waits for what was counted before.
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
        let pushed = to.push(partition, &command.into(), Awaited::reply(core, when_locked, reply));
        drop(counted);
        pushed.map_err(|(awaited, error)| {
            awaited.give_up();
            error
        })?;
        Ok(Submitted::Proposed)
    }

    /// Whether a change has to stand behind those who wait for its key: when the lock is free, as far as that is known. Lets the
    /// first of them go, if nothing holds it up.
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
        if !minds_locks(change) || lock.as_ref().is_some_and(|lock| lock.owner == caller) {
            return None;
        }
        if state.waiters.is_proposed_by(core.id, key, caller) {
            // The same request, sent again: it follows the first one through the log, and is answered alike.
            return None;
        }
        if lock.is_none() {
            // A lease has ended unseen.
            let mut first = Submissions::new(shared);
            leading::propose_waiter(shared, cell, partition, state, core, key, &mut first);
            first.send_holding(Some((partition, &mut *state)));
        }
        Some(lock.and_then(|lock| lock.lease_until))
    }
}

/// A change that is about to be on its way.
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

/// Whether a change is held up by someone else's lock of its key.
fn minds_locks(change: &Change<'_>) -> bool {
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
