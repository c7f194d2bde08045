//! The handling of consensus requests from other members, and the end of a replica.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::RaftError;
use openraft::raft::VoteResponse;
use openraft::{AsyncRuntime, Instant, ServerState};

use crate::counters::add;
use crate::shared::Shared;
use crate::snapshot::{Received, SnapshotData, Taking};
use crate::state_machine::StateMachine;
use crate::types::{LogId, Vote};
use crate::wire::{Removal, Request, Response};
use crate::{MemberId, RequestError};

impl<R: AsyncRuntime, S: StateMachine> Shared<R, S> {
    /// Stops the replica.
    pub(crate) async fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.lease.withdraw();
        self.waiting.wake();
        if self.raft.shutdown().await.is_err() {
            tracing::warn!(group = self.replica.group.0, "the group did not stop in order");
        }
    }

    /// Handles a request of another member.
    pub(crate) async fn handle(&self, request: Request<R>) -> Result<Response<R>, RequestError> {
        let raft = &self.raft;
        match request {
            Request::Append(append) => {
                self.record_other_leader(append.vote, append.leader_commit);
                raft.append_entries(append).await.map(Response::Append)
            }
            Request::Vote(request) | Request::PreVote(request) if self.vote_limit.holds() => {
                let vote = self.log.vote().unwrap_or(request.vote);
                Ok(Response::Vote(VoteResponse::new(vote, self.log.last(), false)))
            }
            Request::Vote(vote) => raft.vote(vote).await.map(Response::Vote),
            Request::PreVote(vote) => raft.pre_vote(vote).await.map(Response::Vote),
            Request::Removed { member } => Ok(Response::Removed(self.removal_of(member).await)),
            Request::Transfer(transfer) => {
                // A leader that hands over has applied all of its log, and reported the changes.
                self.record_other_leader(*transfer.from_leader(), transfer.last_log_id().copied());
                let handled = raft.handle_transfer_leader(transfer).await;
                handled.map(|accepted| Response::Transfer { accepted: accepted.is_ok() }).map_err(RaftError::Fatal)
            }
            Request::Page { vote, snapshot, number, page } => {
                return self.take_page(vote, snapshot, number, page).await;
            }
        }
        .map_err(|error| self.has_failed(&error))
    }

    /// Records that another member leads, and its commit index, before its request is handled.
    fn record_other_leader(&self, vote: Vote, committed: Option<LogId>) {
        let own = || self.raft.metrics().borrow_watched().local_committed.map(|last| last.index);
        self.replica.reporting.record_other_term(vote.leader_id.term, committed.map(|last| last.index), own);
    }

    /// Confirms that a member was removed from the group, if this member leads and the latest
    /// configuration is committed. Consensus itself is asked: its metrics may be late, and another
    /// configuration may already have its effects.
    async fn removal_of(&self, member: MemberId) -> Option<Removal> {
        let removal = self.raft.with_raft_state(move |state| {
            let (latest, committed) = (state.membership_state.effective(), state.membership_state.committed());
            let is_committed = latest.log_id() == committed.log_id() && latest.get_joint_config().len() == 1;
            let is_in = latest.nodes().any(|(id, _)| *id == member);
            let index = latest.log_id().as_ref()?.index;
            let confirms = state.server_state == ServerState::Leader && is_committed && !is_in;
            confirms.then(|| Removal { vote: *state.vote_ref(), index })
        });
        removal.await.ok().flatten()
    }

    fn has_failed(&self, error: &impl ToString) -> RequestError {
        RequestError::Stopped { group: self.replica.group, why: error.to_string() }
    }

    /// Takes a page over. A page that arrived before is acknowledged again. A page that cannot be
    /// used cancels the snapshot.
    async fn take_page(
        &self,
        vote: Vote,
        snapshot: u64,
        number: u64,
        page: Bytes,
    ) -> Result<Response<R>, RequestError> {
        let group = self.replica.group;
        add(&self.counting.snapshot_bytes_received, page.len());
        let brought = {
            let mut slot = self.taking.lock();
            if number == 0 && slot.as_ref().is_none_or(|taking| taking.snapshot != snapshot) {
                *slot = Some(Taking::new(vote, snapshot));
            }
            let Some(taking) = slot.as_mut().filter(|taking| (taking.snapshot, taking.vote) == (snapshot, vote)) else {
                let why = format!("page {number} of a snapshot that did not begin");
                return Err(RequestError::Snapshot { group, why });
            };
            taking.last_ns = self.nanoseconds(R::Instant::now());
            if number != taking.next {
                return Ok(Response::NextPage(taking.next));
            }
            match taking.page(&self.replica.state, page) {
                Ok(Received::Page) => return Ok(Response::NextPage(taking.next)),
                Ok(Received::NoRoom) => {
                    *slot = None;
                    return Ok(Response::NextPage(0));
                }
                Ok(Received::Whole(meta, taken)) => {
                    *slot = None;
                    (meta, taken)
                }
                Err(why) => {
                    *slot = None;
                    return Err(RequestError::Snapshot { group, why });
                }
            }
        };
        let (meta, taken) = brought;
        self.record_other_leader(vote, meta.last_log_id);
        let snapshot = openraft::Snapshot { meta, snapshot: SnapshotData::Taken(Box::new(taken)) };
        let installed = self.raft.install_full_snapshot(vote, snapshot).await;
        installed.map(|answer| Response::Installed(answer.vote)).map_err(|error| self.has_failed(&error))
    }
}
