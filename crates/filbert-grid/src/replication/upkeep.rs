//! What the member itself has the logs do: the end of maps, the sweep, and what must be asked again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, LogCommand, MapId, Millis, OwnedChange, Reply};

use super::awaited::Awaited;
use super::leading::propose_expiry;
use super::{Forwards, Pending, Replication, Submissions, WhenLocked};
use crate::cell::Cell;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// How long making a map may take where its partitions are led: longer than a round among members, and little enough for a thread that
/// others wait for.
const MAKING_MAX: Duration = Duration::from_secs(1);

/// A command that must be taken some time, as what it gives back would be kept for ever.
pub(crate) struct Again {
    pub(super) partition: PartitionId,
    pub(super) map: MapId,
    pub(super) caller: Caller,
    pub(super) change: OwnedChange,
}

impl Shared {
    /// Makes a map in the partitions that this member leads; waits for that if `waits`, but for no longer than [`MAKING_MAX`]. The first
    /// change of a partition that another member leads makes it there, if that member does not come first.
    pub(crate) fn make_where_leading(self: &Arc<Self>, map: &Arc<MapCore>, waits: bool) {
        let Some(replication) = &self.replication else { return };
        let led = |partition: &PartitionId| !map.is_made_in(*partition) && replication.lease_of(*partition).is_ok();
        let partitions = self.partitions().map(|(partition, _)| partition).filter(led);
        let command = LogCommand::CreateMap { map: map.id, settings: map.settings.clone() };
        if waits {
            let until = Instant::now() + MAKING_MAX;
            for pending in self.ask_each(map, partitions, &command) {
                // What is refused, or not made by then, is made with the first change.
                let _made = pending.wait_until(until);
            }
            return;
        }
        let mut to = Submissions::new(self);
        for partition in partitions {
            if let Err((awaited, error)) = to.push(partition, &command, Awaited::Nothing) {
                awaited.fail(self, partition, &error, None);
            }
        }
        to.send();
    }

    /// Waits until no change of a map that takes no more of them is on its way.
    pub(crate) fn settle(self: &Arc<Self>, map: &Arc<MapCore>) -> Result<(), GridError> {
        let Some(replication) = &self.replication else { return Ok(()) };
        let mut firsts: Vec<PartitionId> = self.partitions().map(|(partition, _)| partition).collect();
        firsts.sort_by_key(|partition| (replication.group_of(*partition), *partition));
        firsts.dedup_by_key(|partition| replication.group_of(*partition));
        while map.in_flight.load(Ordering::SeqCst) > 0 {
            // What was submitted before this is applied before it, and nobody has claims under this name.
            let nobody = Caller::default();
            let command = Command { map: map.id, now: self.now(), caller: nobody, change: Change::Unclaim };
            self.ask_all(map, firsts.iter().copied(), &command.into())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Submits a command to partitions and waits for all of them.
    fn ask_all(
        self: &Arc<Self>,
        map: &Arc<MapCore>,
        partitions: impl Iterator<Item = PartitionId>,
        command: &LogCommand<'_>,
    ) -> Result<(), GridError> {
        let asked = self.ask_each(map, partitions, command);
        let answers: Vec<_> = asked.into_iter().map(Pending::wait).collect();
        answers.into_iter().try_for_each(|answer| answer.map(|_| ()))
    }

    /// Submits a command to partitions.
    fn ask_each(
        self: &Arc<Self>,
        map: &Arc<MapCore>,
        partitions: impl Iterator<Item = PartitionId>,
        command: &LogCommand<'_>,
    ) -> Vec<Pending> {
        let (mut to, mut asked) = (Submissions::new(self), Vec::new());
        for partition in partitions {
            let (reply, pending) = Pending::new();
            let awaited = Awaited::reply(map, WhenLocked::Answer, reply);
            if let Err((awaited, error)) = to.push(partition, command, awaited) {
                awaited.fail(self, partition, &error, None);
            }
            asked.push(pending);
        }
        to.send();
        asked
    }

    /// Proposes again what was not taken before.
    pub(crate) fn propose_again(self: &Arc<Self>) {
        let (mut to, mut forwards) = (Submissions::new(self), Forwards::new(self, None));
        for Again { partition, map, caller, change } in std::mem::take(&mut *self.again.lock()) {
            match change.borrow() {
                Change::Unclaim => self.push_unclaim(&mut to, &mut forwards, partition, map, caller),
                change => to.push_until_taken(partition, map, caller, change),
            }
        }
        to.send();
        forwards.send();
    }

    /// Whether this member leads a partition, as far as it knows.
    pub(crate) fn leads(&self, partition: PartitionId) -> bool {
        self.replication.as_ref().is_none_or(|replication| replication.lease_of(partition).is_ok())
    }

    /// Adds that a statement gives back what it has claimed, until whoever leads the partition has taken that.
    pub(super) fn push_unclaim(
        self: &Arc<Self>,
        to: &mut Submissions,
        forwards: &mut Forwards,
        partition: PartitionId,
        map: MapId,
        caller: Caller,
    ) {
        if self.leads(partition) {
            return to.push_until_taken(partition, map, caller, Change::Unclaim);
        }
        let command = Command { map, now: self.now(), caller, change: Change::Unclaim };
        let shared = self.clone();
        let taken = move |answer: Result<Reply<'_>, GridError>| {
            if matches!(answer, Err(GridError::Submit(_))) {
                let change = Change::Unclaim.to_owned();
                shared.again.lock().push(Again { partition, map, caller, change });
            }
        };
        forwards.push(partition, &command.into(), Box::new(taken));
    }
}

impl Submissions {
    /// Adds a command that is proposed again by the sweep as long as it is not taken.
    pub(crate) fn push_until_taken(&mut self, partition: PartitionId, map: MapId, caller: Caller, change: Change<'_>) {
        let command = Command { map, now: self.shared().now(), caller, change };
        let again = Box::new(Again { partition, map, caller, change: change.to_owned() });
        if let Err((awaited, error)) = self.push(partition, &command.into(), Awaited::Taken { again }) {
            awaited.fail(&self.shared().clone(), partition, &error, None);
        }
    }
}

impl Grid {
    /// One sweep of a partition: proposes that what has expired goes, and answers those who waited too long.
    pub(crate) fn sweep_by_log(&self, replication: &Replication, partition: PartitionId, cell: &Cell, now: Millis) {
        let shared = &self.shared;
        let mut state = cell.lock();
        cell.nothing_due();
        shared.answer_late(&mut state, now);
        if replication.lease_of(partition).is_err() {
            // Whoever leads sweeps; should that be this member, it will look at what is due.
            return;
        }
        let expiry = state.partition.next_expiry();
        let deadline = state.waiters.first_deadline();
        let due = expiry.filter(|expiry| *expiry > now).into_iter().chain(deadline).min();
        cell.due_by(due.unwrap_or(Millis::MAX));
        if expiry.is_some_and(|expiry| expiry <= now) {
            let mut to = Submissions::new(shared);
            propose_expiry(shared, partition, &mut state, &mut to);
            to.send_holding(Some((partition, &mut *state)));
        }
    }
}
