//! The handling of commands that were not applied on this member.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::Change;

use crate::cell::{Cell, CellState};
use crate::errors::{ErrorKind, GridError};
use crate::replicator::{PendingAnswer, Submitter};
use crate::shared::Shared;

impl PendingAnswer {
    /// Handles the failure of a command that was not applied on this member. `held` is the state of
    /// the command's partition, if the caller has locked it.
    pub(crate) fn fail(self, shared: &Shared, partition: PartitionId, error: &GridError, held: Option<&mut CellState>) {
        let Some(cell) = shared.cell(partition) else { return };
        match self {
            PendingAnswer::Reply { map, reply, .. } => {
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                reply(Err(error.clone()));
            }
            PendingAnswer::Waiter { map, waiter } => {
                let key = waiter.change.key().unwrap_or_default();
                let others = with_state(cell, held, |state| state.waiters.take_queue(map.id, key));
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                shared.answer(*waiter, Err(error.clone()));
                others.into_iter().for_each(|waiter| shared.answer(waiter, Err(error.clone())));
            }
            PendingAnswer::Evicted { map, weight } => {
                map.evicting.fetch_sub(weight, Ordering::AcqRel);
                with_state(cell, held, |state| state.evicting.retain(|evicting| *evicting != map.id));
            }
            PendingAnswer::Swept => cell.due_by(shared.now().plus(shared.config.expiry_interval_ms_max)),
            // The new leader releases the locks of clients. It does not know which statements have
            // ended.
            PendingAnswer::Released { retry }
                if error.kind() == ErrorKind::NotLeader && !matches!(retry.change.borrow(), Change::Unclaim) => {}
            PendingAnswer::Released { retry } => shared.retries.lock().push(*retry),
            PendingAnswer::Nothing => {}
        }
    }
}

impl Submitter for Shared {
    fn not_applied(
        &self,
        partition: PartitionId,
        bytes: usize,
        answer: PendingAnswer,
        error: &GridError,
        held: Option<&mut CellState>,
    ) {
        answer.fail(self, partition, error, held);
        self.memory.maps.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn with_state<R>(cell: &Cell, held: Option<&mut CellState>, use_it: impl FnOnce(&mut CellState) -> R) -> R {
    match held {
        Some(state) => use_it(state),
        None => use_it(&mut cell.lock()),
    }
}
