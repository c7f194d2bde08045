//! Changes that are applied directly in the calling thread: under the lock of the key's cell, or in
//! one partition after the other. Callers must check before that the member has no logs.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, EventKind, Millis, OwnedChange, Reply};
use parking_lot::MutexGuard;

use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::eviction;
use crate::map::{Map, Refused};
use crate::waiters::{ParkedReply, Waiter};

impl Map {
    /// As [`Map::change`], applied directly.
    #[inline]
    pub(crate) fn change_here<R>(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        let shared = &*self.shared;
        let cell = shared.cell_of(partition, change.key().unwrap_or_default());
        let mut state = cell.lock();
        let result = self.change_in(cell, &mut state, caller, change, reply);
        if self.core.evicts && result.is_ok() && eviction::may_need_eviction(&change) {
            self.make_room(partition, state, cell, change.key());
        }
        result
    }

    fn make_room(&self, partition: PartitionId, state: MutexGuard<'_, CellState>, cell: &Cell, spared: Option<&[u8]>) {
        let (shared, core, mut state) = (&*self.shared, &*self.core, state);
        let has_room = eviction::make_room_here(shared, core, cell, &mut state, spared);
        drop(state);
        if !has_room {
            eviction::make_room_elsewhere(shared, core, partition, spared);
        }
    }

    /// Applies the change under the cell's lock.
    #[inline]
    fn change_in<R>(
        &self,
        cell: &Cell,
        state: &mut CellState,
        caller: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> Result<R, Refused> {
        let (shared, core) = (&*self.shared, &*self.core);
        shared.check_active()?;
        core.check_held()?;
        let Some(key) = change.key() else {
            return Err(GridError::IllegalArgument("a change of a whole map is not one of a key".to_owned()).into());
        };
        let command = Command { map: core.id, now: shared.now(), caller, change };
        if !state.waiters.is_empty() {
            self.let_waiters_go_first(cell, state, key, command.now);
        }
        core.check_memory(shared, &state.partition, &command)?;
        let result = shared.apply(cell, state, core, &command, |answer| match answer {
            Reply::Locked { free_at } => Err(Refused::Locked { free_at }),
            Reply::Refused(error) => Err(Refused::Error(core.refusal(error))),
            answer => Ok(reply(answer)),
        })?;
        core.note_locks(shared, &change, caller);
        core.note_deadlines(shared, cell, &change, command.now);
        Ok(result)
    }

    /// Runs the waiters of a key before a new change: a lease may have ended before the sweep has
    /// noticed, and the waiters were first.
    #[cold]
    fn let_waiters_go_first(&self, cell: &Cell, state: &mut CellState, key: &[u8], now: Millis) {
        let map = self.core.id;
        let is_free = !state.partition.is_locked(map, key, now) && !state.waiters.is_in_turn(map, key, now);
        if state.waiters.any_for(map, key) && is_free {
            self.shared.run_freed(cell, state, vec![(map, Some(key.into()))]);
        }
    }

    /// As [`Map::change_when_free`], applied directly, or when the key is released.
    pub(crate) fn change_here_when_free(
        &self,
        partition: PartitionId,
        caller: Caller,
        change: OwnedChange,
        deadline: Option<Millis>,
        reply: ParkedReply,
    ) {
        let shared = &*self.shared;
        let cell = shared.cell_of(partition, change.key().unwrap_or_default());
        let mut reply = Some(reply);
        let mut state = cell.lock();
        let outcome = self.change_in(cell, &mut state, caller, change.borrow(), |answer| {
            if let Some(reply) = reply.take() {
                reply(Ok(answer));
            }
        });
        match (outcome, reply) {
            (Err(Refused::Locked { free_at }), Some(reply)) => {
                let deadline = deadline.unwrap_or(Millis::MAX);
                shared.park(&self.core, cell, &mut state, Waiter { caller, change, deadline, reply }, free_at);
                drop(state);
                if !shared.active.load(Ordering::Acquire) {
                    // The member was shut down meanwhile. The shutdown may have missed this waiter.
                    shared.dismiss_all();
                }
            }
            (Err(Refused::Error(error)), Some(reply)) => reply(Err(error)),
            _ => {
                if self.core.evicts && eviction::may_need_eviction(&change.borrow()) {
                    self.make_room(partition, state, cell, change.key());
                }
            }
        }
    }

    /// Removes all entries of the map directly. Returns their number.
    pub(crate) fn empty_here(&self, caller: Caller, kind: EventKind) -> Result<usize, GridError> {
        let shared = &*self.shared;
        let change = if kind == EventKind::Cleared { Change::Clear } else { Change::EvictAll };
        shared.check_active()?;
        if self.is_destroyed() {
            return Err(self.core.destroyed_error());
        }
        let mut affected = 0;
        for (partition, cell) in shared.partitions() {
            let mut state = cell.lock();
            self.core.check_held()?;
            let command = Command { map: self.core.id, now: shared.now(), caller, change };
            affected += shared.apply(cell, &mut state, &self.core, &command, |reply| match reply {
                Reply::Count(count) => count,
                _ => 0,
            });
            if self.core.listeners.any() {
                self.core.listeners.partition_emptied(kind, partition, true);
            }
        }
        if self.core.listeners.any() {
            shared.notify_whole_map(&self.core, kind, affected);
        }
        Ok(affected)
    }
}
