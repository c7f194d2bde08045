//! Commands on their way to the replicator: the commands of one batch of requests, in one
//! submission for each group.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Encoder, LogCommand};

use crate::cell::CellState;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::groups::GroupId;
use crate::map::Map;
use crate::replicator::{Answers, InFlight, PendingAnswer};
use crate::shared::Shared;

/// The commands that a batch of requests submits. Each command is copied once.
/// [`Submissions::send`] sends them at the end of the batch. Dropping sends them too.
pub struct Submissions {
    shared: Arc<Shared>,
    /// Unordered, because a batch rarely has commands for many groups.
    open: Vec<Open>,
    in_flight: Option<Arc<InFlight>>,
}

struct Open {
    group: GroupId,
    commands: Encoder,
    answers: Answers,
}

impl Open {
    /// Records the last written command, which starts at `before`. Its bytes count as the member's
    /// memory until it was applied or has failed.
    fn note(&mut self, shared: &Shared, partition: PartitionId, before: usize, answer: PendingAnswer) {
        let bytes = self.commands.as_bytes().len() - before;
        shared.memory.maps.fetch_add(bytes, Ordering::Relaxed);
        self.answers.push(partition, bytes, answer);
    }
}

impl fmt::Debug for Submissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submissions").field("groups", &self.open.len()).finish_non_exhaustive()
    }
}

impl Grid {
    /// Whether changes go through logs.
    pub fn is_replicated(&self) -> bool {
        self.shared.replication.is_some()
    }

    /// Creates submissions for a connection, which counts its changes in flight.
    pub fn submissions(&self, in_flight: Arc<InFlight>) -> Submissions {
        let mut submissions = Submissions::new(&self.shared);
        submissions.in_flight = Some(in_flight);
        submissions
    }
}

impl Map {
    /// Creates submissions that no connection counts.
    pub fn submissions(&self) -> Submissions {
        Submissions::new(&self.shared)
    }
}

impl Submissions {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Submissions { shared: shared.clone(), open: Vec::new(), in_flight: None }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Bytes of commands that are not sent yet.
    pub fn bytes(&self) -> usize {
        self.open.iter().map(|open| open.commands.as_bytes().len()).sum()
    }

    /// Adds a command. If there is no log or the command cannot be encoded, returns the pending
    /// answer with an error.
    pub(crate) fn push(
        &mut self,
        partition: PartitionId,
        command: &LogCommand<'_>,
        answer: PendingAnswer,
    ) -> Result<(), (PendingAnswer, GridError)> {
        let Some(replication) = &self.shared.replication else {
            return Err((answer, GridError::Internal("a command for a log that is not there".to_owned())));
        };
        let group = replication.group_of(partition);
        let (shared, in_flight) = (&self.shared, &self.in_flight);
        let place = match self.open.iter().position(|open| open.group == group) {
            Some(place) => place,
            None => {
                let answers = Answers::new(shared.clone(), group, in_flight.clone());
                self.open.push(Open { group, commands: Encoder::default(), answers });
                self.open.len() - 1
            }
        };
        let Some(open) = self.open.get_mut(place) else { return Ok(()) };
        if let Some(map) = answer.map()
            && !map.is_created_in(partition)
            && !matches!(command, LogCommand::CreateMap { .. })
        {
            // If another member has created it meanwhile, this command has no effect.
            let make = LogCommand::CreateMap { map: map.id, settings: map.settings.clone() };
            let before = open.commands.as_bytes().len();
            if open.commands.push(partition, &make).is_ok() {
                open.note(shared, partition, before, PendingAnswer::Nothing);
            }
        }
        let before = open.commands.as_bytes().len();
        if let Err(too_long) = open.commands.push(partition, command) {
            return Err((answer, GridError::IllegalArgument(too_long.to_string())));
        }
        open.note(shared, partition, before, answer);
        Ok(())
    }

    /// As [`Submissions::push`], for commands of the member itself: it also handles a failure.
    pub(crate) fn push_own(
        &mut self,
        partition: PartitionId,
        command: &LogCommand<'_>,
        answer: PendingAnswer,
        state: &mut CellState,
    ) {
        if let Err((answer, error)) = self.push(partition, command, answer) {
            answer.fail(&self.shared, partition, &error, Some(state));
        }
    }

    /// Sends all commands. Must not be called under a partition's lock.
    pub fn send(&mut self) {
        self.send_holding(None);
    }

    /// Sends all commands. `held` is the partition that the caller has locked.
    pub(crate) fn send_holding(&mut self, mut held: Option<(PartitionId, &mut CellState)>) {
        let Some(replication) = &self.shared.replication else { return };
        for Open { group, mut commands, answers } in std::mem::take(&mut self.open) {
            if answers.is_empty() {
                continue;
            }
            if let Err(mut refused) = replication.replicator.submit(group, commands.take(), answers) {
                let held = held.as_mut().map(|(partition, state)| (*partition, &mut **state));
                refused.answers.fail(&refused.why.into(), held);
            }
        }
    }
}

impl Drop for Submissions {
    fn drop(&mut self) {
        self.send();
    }
}
