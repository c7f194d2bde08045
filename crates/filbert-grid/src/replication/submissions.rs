//! Commands on their way to the replicator: those of one batch of requests, one submission for each group.

use std::fmt;
use std::sync::Arc;

use filbert_data::PartitionId;
use filbert_store::{Encoder, LogCommand};

use super::awaited::{Answers, Awaited};
use super::{GroupId, InFlight};
use crate::cell::CellState;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::map::Map;
use crate::shared::Shared;

/// What a batch of requests submits. Each command is copied into it once; [`Submissions::send`] at the end of the batch.
/// Dropping it sends as well.
pub struct Submissions {
    shared: Arc<Shared>,
    /// In no order: a batch seldom is about many groups.
    open: Vec<Open>,
    in_flight: Option<Arc<InFlight>>,
}

struct Open {
    group: GroupId,
    commands: Encoder,
    answers: Answers,
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

    /// For the changes of a connection, which are counted while they are on their way.
    pub fn submissions(&self, in_flight: Arc<InFlight>) -> Submissions {
        let mut submissions = Submissions::new(&self.shared);
        submissions.in_flight = Some(in_flight);
        submissions
    }
}

impl Map {
    /// For changes that nobody counts.
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

    /// Adds a command; gives back what was awaited where there is nobody to submit to, or the command cannot be written.
    pub(crate) fn push(
        &mut self,
        partition: PartitionId,
        command: &LogCommand<'_>,
        awaited: Awaited,
    ) -> Result<(), (Awaited, GridError)> {
        let Some(replication) = &self.shared.replication else {
            return Err((awaited, GridError::Internal("a command for a log that is not there".to_owned())));
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
        if let Some(map) = awaited.map()
            && !map.is_made_in(partition)
            && !matches!(command, LogCommand::CreateMap { .. })
        {
            // Made anew where others have made it meanwhile: that changes nothing.
            let make = LogCommand::CreateMap { map: map.id, settings: map.settings.clone() };
            let before = open.commands.as_bytes().len();
            if open.commands.push(partition, &make).is_ok() {
                open.answers.push(partition, open.commands.as_bytes().len() - before, Awaited::Nothing);
            }
        }
        let before = open.commands.as_bytes().len();
        if let Err(too_long) = open.commands.push(partition, command) {
            return Err((awaited, GridError::IllegalArgument(too_long.to_string())));
        }
        open.answers.push(partition, open.commands.as_bytes().len() - before, awaited);
        Ok(())
    }

    /// As [`Submissions::push`], for what the member does by itself: a failure is dealt with here.
    pub(crate) fn push_own(
        &mut self,
        partition: PartitionId,
        command: &LogCommand<'_>,
        awaited: Awaited,
        state: &mut CellState,
    ) {
        if let Err((awaited, error)) = self.push(partition, command, awaited) {
            awaited.fail(&self.shared, partition, &error, Some(state));
        }
    }

    /// Sends what there is. Not to be called under a partition's lock.
    pub fn send(&mut self) {
        self.send_holding(None);
    }

    /// Sends what there is, while a partition is locked.
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
