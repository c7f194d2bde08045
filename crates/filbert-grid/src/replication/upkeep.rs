//! Commands of the member itself: the creation of maps, the sweep, and commands that must be
//! proposed again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, LogCommand, MapId, Millis, Reply};

use super::leading::{propose_expiry, propose_waiter};
use super::{Forwards, Pending, Submissions};
use crate::cell::Cell;
use crate::errors::{ErrorKind, GridError};
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::replicator::{PendingAnswer, Replication, RetryCommand, WhenLocked};
use crate::shared::Shared;

/// The maximum wait for the creation of a map in the partitions that this member leads: longer than
/// a round trip between members, and short enough for a thread for which other threads wait.
const CREATION_WAIT_MAX: Duration = Duration::from_secs(1);

impl Shared {
    /// Creates a map in the partitions that this member leads. If `waits`, blocks until that is
    /// done, but for at most [`CREATION_WAIT_MAX`]. In a partition of another leader, that leader
    /// or the first change of the partition creates it.
    pub(crate) fn create_where_leading(self: &Arc<Self>, map: &Arc<MapCore>, waits: bool) {
        let Some(replication) = &self.replication else { return };
        let led = |partition: &PartitionId| !map.is_created_in(*partition) && replication.lease_of(*partition).is_ok();
        let partitions = self.partitions().map(|(partition, _)| partition).filter(led);
        let command = LogCommand::CreateMap { map: map.id, settings: map.settings.clone() };
        if waits {
            let until = Instant::now() + CREATION_WAIT_MAX;
            for pending in self.submit_to_each(map, partitions, &command) {
                // If a command is refused or late, the first change creates the map.
                let _made = pending.wait_until(until);
            }
            return;
        }
        let mut to = Submissions::new(self);
        for partition in partitions {
            if let Err((answer, error)) = to.push(partition, &command, PendingAnswer::Nothing) {
                answer.fail(self, partition, &error, None);
            }
        }
        to.send();
    }

    /// Blocks until a map has no changes in flight. The map must refuse new ones.
    pub(crate) fn settle(self: &Arc<Self>, map: &Arc<MapCore>) -> Result<(), GridError> {
        let Some(replication) = &self.replication else { return Ok(()) };
        let mut firsts: Vec<PartitionId> = self.partitions().map(|(partition, _)| partition).collect();
        firsts.sort_by_key(|partition| (replication.group_of(*partition), *partition));
        firsts.dedup_by_key(|partition| replication.group_of(*partition));
        while map.in_flight.load(Ordering::SeqCst) > 0 {
            // All earlier submissions are applied before this command. It has no effect, because no
            // statement uses this caller.
            let nobody = Caller::default();
            let command = Command { map: map.id, now: self.now(), caller: nobody, change: Change::Unclaim };
            self.submit_to_all(map, firsts.iter().copied(), &command.into())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Submits a command to partitions, and blocks until all have answered.
    fn submit_to_all(
        self: &Arc<Self>,
        map: &Arc<MapCore>,
        partitions: impl Iterator<Item = PartitionId>,
        command: &LogCommand<'_>,
    ) -> Result<(), GridError> {
        let submitted = self.submit_to_each(map, partitions, command);
        let answers: Vec<_> = submitted.into_iter().map(Pending::wait).collect();
        answers.into_iter().try_for_each(|answer| answer.map(|_| ()))
    }

    /// Submits a command to partitions, and returns the pending answers.
    fn submit_to_each(
        self: &Arc<Self>,
        map: &Arc<MapCore>,
        partitions: impl Iterator<Item = PartitionId>,
        command: &LogCommand<'_>,
    ) -> Vec<Pending> {
        let (mut to, mut submitted) = (Submissions::new(self), Vec::new());
        for partition in partitions {
            let (reply, pending) = Pending::new();
            let answer = PendingAnswer::reply(map, WhenLocked::Answer, reply);
            if let Err((answer, error)) = to.push(partition, command, answer) {
                answer.fail(self, partition, &error, None);
            }
            submitted.push(pending);
        }
        to.send();
        submitted
    }

    /// Proposes commands again that were not accepted.
    pub(crate) fn propose_retries(self: &Arc<Self>) {
        let (mut to, mut forwards) = (Submissions::new(self), Forwards::new(self, None));
        for RetryCommand { partition, map, caller, change } in std::mem::take(&mut *self.retries.lock()) {
            match change.borrow() {
                Change::Unclaim => self.push_unclaim(&mut to, &mut forwards, partition, map, caller),
                change => to.push_with_retry(partition, map, caller, change),
            }
        }
        to.send();
        forwards.send();
    }

    /// Whether this member leads a partition, as far as it knows.
    pub(crate) fn leads(&self, partition: PartitionId) -> bool {
        self.replication.as_ref().is_none_or(|replication| replication.lease_of(partition).is_ok())
    }

    /// Adds the release of a statement's claims in a partition. It is proposed again until the
    /// partition's leader has accepted it.
    pub(super) fn push_unclaim(
        self: &Arc<Self>,
        to: &mut Submissions,
        forwards: &mut Forwards,
        partition: PartitionId,
        map: MapId,
        caller: Caller,
    ) {
        if self.leads(partition) {
            return to.push_with_retry(partition, map, caller, Change::Unclaim);
        }
        let command = Command { map, now: self.now(), caller, change: Change::Unclaim };
        let shared = self.clone();
        let taken = move |answer: Result<Reply<'_>, GridError>| {
            if answer.is_err_and(|error| !matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::BeingReplaced)) {
                let change = Change::Unclaim.to_owned();
                shared.retries.lock().push(RetryCommand { partition, map, caller, change });
            }
        };
        forwards.push(partition, &command.into(), Box::new(taken));
    }
}

impl Submissions {
    /// Adds a command that the sweep proposes again until it is accepted.
    pub(crate) fn push_with_retry(&mut self, partition: PartitionId, map: MapId, caller: Caller, change: Change<'_>) {
        let command = Command { map, now: self.shared().now(), caller, change };
        let retry = Box::new(RetryCommand { partition, map, caller, change: change.to_owned() });
        if let Err((answer, error)) = self.push(partition, &command.into(), PendingAnswer::Released { retry }) {
            answer.fail(&self.shared().clone(), partition, &error, None);
        }
    }
}

impl Grid {
    /// Sweeps a partition: proposes the removal of expired entries, and answers waiters with passed
    /// deadlines.
    pub(crate) fn sweep_by_log(&self, replication: &Replication, partition: PartitionId, cell: &Cell, now: Millis) {
        let shared = &self.shared;
        let mut state = cell.lock();
        cell.nothing_due();
        shared.answer_late(&mut state, now);
        if replication.lease_of(partition).is_err() {
            // The leader sweeps. This member looks for due work when it gets the lease, see
            // `Grid::lease_gained`. Its waiters time out without a lease, too.
            cell.due_by(state.waiters.first_deadline().unwrap_or(Millis::MAX));
            return;
        }
        let ended = state.waiters.take_ended_turns(now);
        let expiry = state.partition.next_expiry();
        let deadline = state.waiters.first_deadline();
        let due = expiry.filter(|expiry| *expiry > now).into_iter().chain(deadline).min();
        cell.due_by(due.unwrap_or(Millis::MAX));
        let mut to = Submissions::new(shared);
        for (map, key) in ended {
            if let Some(map) = shared.map_by_id(map) {
                propose_waiter(shared, cell, partition, &mut state, &map, &key, &mut to);
            }
        }
        if expiry.is_some_and(|expiry| expiry <= now) {
            propose_expiry(shared, partition, &mut state, &mut to);
        }
        to.send_holding(Some((partition, &mut *state)));
    }
}
