//! What is to be done with the answers to a submission, beside its commands, which know nothing of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::Reply;

use super::{Again, GroupId, InFlight, SubmitError, WhenLocked};
use crate::cell::{Cell, CellState};
use crate::errors::{ErrorKind, GridError};
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::waiters::{ParkedReply, Waiter};

/// What is done with the answer to one command.
pub(crate) enum Awaited {
    /// Someone is told.
    Reply { map: Arc<MapCore>, when_locked: WhenLocked, reply: ParkedReply },
    /// Someone who has waited for the key is told, or goes on to wait.
    Waiter { map: Arc<MapCore>, waiter: Box<Waiter> },
    /// So many entries, or bytes of them, were counted as going.
    Evicted { map: Arc<MapCore>, weight: usize },
    /// More may have expired.
    Swept,
    /// Something was given back.
    Taken { again: Box<Again> },
    /// Nobody asks.
    Nothing,
}

impl Awaited {
    /// Someone is told of a change of a map, which counts as on its way from here on.
    pub(crate) fn reply(map: &Arc<MapCore>, when_locked: WhenLocked, reply: ParkedReply) -> Awaited {
        map.in_flight.fetch_add(1, Ordering::SeqCst);
        Awaited::Reply { map: map.clone(), when_locked, reply }
    }

    /// The map that is changed, where a change may be its first.
    pub(super) fn map(&self) -> Option<&Arc<MapCore>> {
        match self {
            Awaited::Reply { map, .. } | Awaited::Waiter { map, .. } => Some(map),
            _ => None,
        }
    }

    /// Forgets a change that was not submitted; whoever asked is told otherwise.
    pub(super) fn give_up(self) {
        if let Awaited::Reply { map, .. } = self {
            map.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Does what is left to do when the command was not applied here. `held` is the state of the command's partition, if the
    /// caller has it.
    pub(crate) fn fail(self, shared: &Shared, partition: PartitionId, error: &GridError, held: Option<&mut CellState>) {
        let Some(cell) = shared.cell(partition) else { return };
        match self {
            Awaited::Reply { map, reply, .. } => {
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                reply(Err(error.clone()));
            }
            Awaited::Waiter { map, waiter } => {
                let key = waiter.change.key().unwrap_or_default();
                let others = with_state(cell, held, |state| state.waiters.take_queue(map.id, key));
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                shared.answer(*waiter, Err(error.clone()));
                others.into_iter().for_each(|waiter| shared.answer(waiter, Err(error.clone())));
            }
            Awaited::Evicted { map, weight } => {
                map.evicting.fetch_sub(weight, Ordering::AcqRel);
                with_state(cell, held, |state| state.evicting.retain(|evicting| *evicting != map.id));
            }
            Awaited::Swept => cell.due_by(shared.now().plus(shared.config.expiry_interval_ms_max)),
            // Under another leader, it is for that one to see to.
            Awaited::Taken { .. } if error.kind() == ErrorKind::NotLeader => {}
            Awaited::Taken { again } => shared.again.lock().push(*again),
            Awaited::Nothing => {}
        }
    }
}

fn with_state<R>(cell: &Cell, held: Option<&mut CellState>, use_it: impl FnOnce(&mut CellState) -> R) -> R {
    match held {
        Some(state) => use_it(state),
        None => use_it(&mut cell.lock()),
    }
}

/// Who awaits what of a submission. Dropping it says that its fate is not known.
pub struct Answers {
    pub(super) shared: Arc<Shared>,
    pub(super) group: GroupId,
    awaited: Vec<OnWay>,
    in_flight: Option<Arc<InFlight>>,
}

struct OnWay {
    partition: PartitionId,
    bytes: usize,
    /// `None` once it is told.
    awaited: Option<Awaited>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("group", &self.group).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Answers {
    pub(super) fn new(shared: Arc<Shared>, group: GroupId, in_flight: Option<Arc<InFlight>>) -> Self {
        Answers { shared, group, awaited: Vec::new(), in_flight }
    }

    /// Number of commands of the submission.
    pub fn len(&self) -> usize {
        self.awaited.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Tells everyone that the submission was not applied here, and why. Not to be called under a partition's lock.
    pub fn refuse(mut self, why: SubmitError) {
        self.fail(&why.into(), None);
    }

    pub(super) fn push(&mut self, partition: PartitionId, bytes: usize, awaited: Awaited) {
        self.shared.memory_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(in_flight) = &self.in_flight {
            in_flight.begin(partition, bytes);
        }
        self.awaited.push(OnWay { partition, bytes, awaited: Some(awaited) });
    }

    /// Takes what is to be done with the answer to the command at a place. [`Answers::landed`] when that is done.
    pub(super) fn take(&mut self, place: usize) -> Option<Awaited> {
        self.awaited.get_mut(place)?.awaited.take()
    }

    /// Notes that the command at a place, whose answer was told, is no longer on its way: whoever is woken by that finds the answer.
    pub(super) fn landed(&self, place: usize) {
        if let Some(on_way) = self.awaited.get(place) {
            self.land(on_way.partition, on_way.bytes);
        }
    }

    /// Tells everyone who was not told yet. `held` is the partition that the caller has locked.
    pub(super) fn fail(&mut self, error: &GridError, mut held: Option<(PartitionId, &mut CellState)>) {
        for on_way in std::mem::take(&mut self.awaited) {
            let Some(awaited) = on_way.awaited else { continue };
            let state = match &mut held {
                Some((partition, state)) if *partition == on_way.partition => Some(&mut **state),
                _ => None,
            };
            awaited.fail(&self.shared, on_way.partition, error, state);
            self.land(on_way.partition, on_way.bytes);
        }
    }

    fn land(&self, partition: PartitionId, bytes: usize) {
        self.shared.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(in_flight) = &self.in_flight {
            in_flight.end(partition, bytes);
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let unknown = SubmitError::Unknown { group: self.group };
        self.fail(&unknown.into(), None);
    }
}

/// The answer to a change of a map, as its caller is told; `Locked` is for the caller to see.
pub(super) fn told<'p>(map: &MapCore, reply: Reply<'p>) -> Result<Reply<'p>, GridError> {
    match reply {
        Reply::Refused(error) => Err(map.refusal(error)),
        reply => Ok(reply),
    }
}
