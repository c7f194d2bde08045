//! The pending answers of a submission. They stay on the proposing member, beside the commands,
//! which do not contain them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Caller, MapId, Millis, OwnedChange};

use super::InFlight;
use crate::cell::CellState;
use crate::errors::GridError;
use crate::groups::{GroupId, SubmitError};
use crate::map_core::MapCore;
use crate::waiters::{ParkedReply, Waiter};

/// The handling of a change with a key that another caller has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLocked {
    /// It is answered with [`Reply::Locked`](filbert_store::Reply::Locked).
    Answer,
    /// It waits for the key, until this deadline if there is one.
    Wait(Option<Millis>),
}

/// A command that is proposed again until a log accepts it, because its locks or claims would
/// otherwise never be released.
pub(crate) struct RetryCommand {
    pub(crate) partition: PartitionId,
    pub(crate) map: MapId,
    pub(crate) caller: Caller,
    pub(crate) change: OwnedChange,
}

/// The handling of the answer to one command.
pub(crate) enum PendingAnswer {
    /// A caller receives the answer.
    Reply { map: Arc<MapCore>, when_locked: WhenLocked, reply: ParkedReply },
    /// A waiter of the key receives the answer, or waits again.
    Waiter { map: Arc<MapCore>, waiter: Box<Waiter> },
    /// Ends an eviction: subtracts `weight` (entries, or their bytes) from the evictions in flight.
    Evicted { map: Arc<MapCore>, weight: usize },
    /// More entries may have expired: proposes another expiry.
    Swept,
    /// Locks or claims are released. If the command fails, it is proposed again.
    Released { retry: Box<RetryCommand> },
    /// The answer is ignored.
    Nothing,
}

impl PendingAnswer {
    /// A caller receives the answer to a change of a map. The change counts as in flight from now
    /// on.
    pub(crate) fn reply(map: &Arc<MapCore>, when_locked: WhenLocked, reply: ParkedReply) -> PendingAnswer {
        map.in_flight.fetch_add(1, Ordering::SeqCst);
        PendingAnswer::Reply { map: map.clone(), when_locked, reply }
    }

    /// The map of a change that may be the first change of the map in a partition.
    pub(crate) fn map(&self) -> Option<&Arc<MapCore>> {
        match self {
            PendingAnswer::Reply { map, .. } | PendingAnswer::Waiter { map, .. } => Some(map),
            _ => None,
        }
    }

    /// Drops a change that was not submitted. The caller is informed in another way.
    pub(crate) fn give_up(self) {
        if let PendingAnswer::Reply { map, .. } = self {
            map.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The submitter of commands, which handles their failures.
pub(crate) trait Submitter: Send + Sync {
    /// Handles the failure of a command of `bytes` bytes, which was not applied on this member.
    /// `held` is the state of the command's partition, if the caller has locked it.
    fn not_applied(
        &self,
        partition: PartitionId,
        bytes: usize,
        answer: PendingAnswer,
        error: &GridError,
        held: Option<&mut CellState>,
    );
}

/// The pending answers of a submission. Dropping them reports that the outcome is unknown.
pub struct Answers {
    submitter: Arc<dyn Submitter>,
    group: GroupId,
    commands: Vec<InFlightCommand>,
    in_flight: Option<Arc<InFlight>>,
}

struct InFlightCommand {
    partition: PartitionId,
    bytes: usize,
    /// `None` after it was answered.
    answer: Option<PendingAnswer>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("group", &self.group).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Answers {
    pub(crate) fn new(submitter: Arc<dyn Submitter>, group: GroupId, in_flight: Option<Arc<InFlight>>) -> Self {
        Answers { submitter, group, commands: Vec::new(), in_flight }
    }

    /// The number of commands of the submission.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Answers all commands with an error: the submission was not applied on this member. Must not
    /// be called under a partition's lock.
    pub fn refuse(mut self, why: SubmitError) {
        self.fail(&why.into(), None);
    }

    /// Adds a command of `bytes` bytes, which the submitter has added to its memory account.
    pub(crate) fn push(&mut self, partition: PartitionId, bytes: usize, answer: PendingAnswer) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.begin(partition, bytes);
        }
        self.commands.push(InFlightCommand { partition, bytes, answer: Some(answer) });
    }

    /// Takes the pending answer of the command at a place. Call [`Answers::completed`] after it was
    /// answered.
    pub(crate) fn take(&mut self, place: usize) -> Option<PendingAnswer> {
        self.commands.get_mut(place)?.answer.take()
    }

    /// The size of the command at a place, in bytes.
    pub(crate) fn bytes_of(&self, place: usize) -> usize {
        self.commands.get(place).map_or(0, |command| command.bytes)
    }

    /// Records that the command at a place is no longer in flight. Called after it was answered and
    /// its bytes were subtracted from the submitter's account, so that a thread woken by this call
    /// finds the answer.
    pub(crate) fn completed(&self, place: usize) {
        if let Some(command) = self.commands.get(place) {
            self.end_in_flight(command.partition, command.bytes);
        }
    }

    /// Answers all remaining commands with an error. `held` is the partition that the caller has
    /// locked.
    pub(crate) fn fail(&mut self, error: &GridError, mut held: Option<(PartitionId, &mut CellState)>) {
        for command in std::mem::take(&mut self.commands) {
            let Some(answer) = command.answer else { continue };
            let state = match &mut held {
                Some((partition, state)) if *partition == command.partition => Some(&mut **state),
                _ => None,
            };
            self.submitter.not_applied(command.partition, command.bytes, answer, error, state);
            self.end_in_flight(command.partition, command.bytes);
        }
    }

    fn end_in_flight(&self, partition: PartitionId, bytes: usize) {
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
