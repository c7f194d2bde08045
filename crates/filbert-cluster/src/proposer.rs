//! The task that writes submissions to the log: submissions that arrive while entries are in flight
//! are merged into the next entry.

use std::sync::Arc;

use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use openraft::{AsyncRuntime, Instant};

use crate::counters::add;
use crate::replica::Replica;
use crate::shared::Shared;
use crate::state_machine::StateMachine;
use crate::types::{Batch, Committed, OnResult, Types};
use crate::waiting::{EntryInFlight, Waits};
use crate::wire::{BatchEntry, Submission, write_batch};
use crate::{GroupSettings, MemberId, SubmitError};

/// Dropped when an entry has its result: its waiters do not wait any longer. Waiters that were not
/// answered when the entry was applied are dropped, as the outcome is unknown.
struct ReleaseOnResult<S: StateMachine, T: Instant> {
    replica: Arc<Replica<S, T>>,
    ticket: u64,
}

impl<S: StateMachine, T: Instant> Drop for ReleaseOnResult<S, T> {
    fn drop(&mut self) {
        drop(self.replica.awaiting.take(self.ticket));
    }
}

/// Proposes waiting submissions until the group stops.
pub(crate) async fn run<R: AsyncRuntime, S: StateMachine>(group: Arc<Shared<R, S>>) {
    let waiting = Arc::clone(&group.waiting);
    while !group.has_stopped() {
        let GroupSettings { entry_bytes_max, entries_on_way_max, .. } = group.settings;
        match waiting.take_entry(entry_bytes_max, entries_on_way_max) {
            Some((taken, in_flight)) => propose(&group, taken, in_flight).await,
            None => waiting.changed().await,
        }
    }
    for waits in waiting.take_left() {
        let (member, id) = (group.member, group.replica.group);
        if let Some(awaits) = waits.awaits {
            awaits.refuse(&group.replica.state, SubmitError::NotLeader { member, group: id, leader: None });
        }
    }
}

async fn propose<R: AsyncRuntime, S: StateMachine>(
    group: &Arc<Shared<R, S>>,
    taken: Vec<Waits<S, R::Instant>>,
    in_flight: EntryInFlight<S, R::Instant>,
) {
    let (member, id) = (group.member, group.replica.group);
    let (term, leader) = {
        let metrics = group.raft.metrics();
        let now = metrics.borrow_watched();
        (now.current_term, now.current_leader)
    };
    if leader != Some(member) {
        for awaits in taken.into_iter().filter_map(|waits| waits.awaits) {
            awaits.refuse(&group.replica.state, SubmitError::NotLeader { member, group: id, leader });
        }
        return;
    }
    group.replica.reporting.record_own_term(term);
    // Reads do not pass this time until the entry is applied.
    let stamp = group.clock.stamp(term);
    let time = stamp.time;
    let requirement = group.replica.state.requirement();
    let (mut submissions, mut awaiting) = (Vec::with_capacity(taken.len()), Vec::with_capacity(taken.len()));
    for Waits { source, commands, awaits, .. } in taken {
        let touches = group.replica.state.touches_for(&commands, time);
        submissions.push(Submission { source, touches, commands });
        awaiting.push(awaits);
    }
    let ticket = group.replica.awaiting.add(awaiting, R::Instant::now());
    let release = ReleaseOnResult { replica: Arc::clone(&group.replica), ticket };
    let on_result = move |result: ClientWriteResult<Types<R>>| {
        let _in_flight = (in_flight, stamp);
        if let Err(ClientWriteError::ForwardToLeader(forward)) = result {
            let leader: Option<MemberId> = forward.leader_id;
            for awaits in release.replica.awaiting.take(ticket).into_iter().flatten() {
                awaits.refuse(&release.replica.state, SubmitError::NotLeader { member, group: id, leader });
            }
        }
    };
    let responder = OnResult(Box::new(on_result));
    add(&group.counting.proposals, 1);
    let bytes = write_batch(&BatchEntry { stamp: time, requirement, submissions });
    let write = group.raft.write(Batch { bytes, ticket });
    if let Err(error) = write.with_leader(Committed::new(term)).responder(responder).await {
        tracing::debug!(group = id.0, "a proposal was dropped: {error}");
    }
}
