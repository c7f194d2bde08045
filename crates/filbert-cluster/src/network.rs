//! The consensus requests to another member over a link: votes, appends in a stream, snapshots page
//! by page, and hand-over of leadership.

use std::future::Future;
use std::time::Duration;

use futures_util::Stream;
use openraft::alias::SnapshotOf;
use openraft::async_runtime::Select2;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AsyncRuntime, Instant, OptionalSend, RaftNetworkV2};

use crate::MemberId;
use crate::appending::Appending;
use crate::consensus_link::{ConsensusLink, Failed, LinkContext, another_answer};
use crate::counters::add;
use crate::snapshot::SnapshotData;
use crate::state_machine::StateMachine;
use crate::transport::Lane;
use crate::types::{Types, Vote};
use crate::wire::{Request, Response};

/// The maximum number of attempts to send one page before the snapshot is restarted.
pub(crate) const PAGE_TRIES_MAX: u32 = 5;

impl<R: AsyncRuntime, S: StateMachine> RaftNetworkFactory<Types<R>> for LinkContext<S> {
    type Network = ConsensusLink<S>;

    async fn new_client(&mut self, target: MemberId, _: &openraft::EmptyNode) -> ConsensusLink<S> {
        ConsensusLink { context: self.clone(), target }
    }
}

impl<R: AsyncRuntime, S: StateMachine> RaftNetworkV2<Types<R>> for ConsensusLink<S> {
    type SnapshotData = SnapshotData<S>;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types<R>>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types<R>>, Failed<R>> {
        self.append(Lane::Data, rpc).await
    }

    /// Several appends in flight. The answers arrive in order. The first answer that is not a full
    /// success ends the stream.
    fn stream_append<'s, I>(
        &'s mut self,
        input: I,
        _: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types<R>>, Failed<R>>>, Failed<R>>>
    where
        I: Stream<Item = AppendEntriesRequest<Types<R>>> + OptionalSend + Unpin + 'static,
    {
        let answers = Appending::new(self.clone(), input).answers();
        Box::pin(async move { Ok(answers) })
    }

    async fn vote(&mut self, rpc: VoteRequest<Types<R>>, _: RPCOption) -> Result<VoteResponse<Types<R>>, Failed<R>> {
        match self.call(Lane::Control, RPCTypes::Vote, &Request::Vote(rpc)).await? {
            (_, Response::Vote(answer)) => Ok(answer),
            _ => Err(another_answer()),
        }
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<Types<R>>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types<R>>, Failed<R>> {
        match self.call(Lane::Control, RPCTypes::Vote, &Request::PreVote(rpc)).await? {
            (_, Response::Vote(answer)) => Ok(answer),
            _ => Err(another_answer()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<Types<R>, SnapshotData<S>>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types<R>>, StreamingError<Types<R>>> {
        let sending = Box::pin(self.send_snapshot::<R>(vote, snapshot.snapshot));
        match R::select2(Box::pin(cancel), sending).await {
            Select2::First(closed) => Err(closed.into()),
            Select2::Second(sent) => sent.map_err(|error| match error {
                RPCError::Timeout(error) => error.into(),
                RPCError::Unreachable(error) => error.into(),
                RPCError::Network(error) => error.into(),
                RPCError::RemoteError(error) => NetworkError::new(&error).into(),
            }),
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<Types<R>>,
        _: RPCOption,
    ) -> Result<TransferLeaderResponse<Types<R>>, Failed<R>> {
        let (vote, last) = (*req.from_leader(), req.last_log_id().copied());
        match self.call(Lane::Control, RPCTypes::TransferLeader, &Request::Transfer(req)).await? {
            (_, Response::Transfer { accepted: true }) => Ok(Ok(())),
            (_, Response::Transfer { accepted: false }) if last.is_some() => {
                Ok(Err(TransferLeaderError::LogNotFlushed { expected: last, actual: None }))
            }
            (_, Response::Transfer { .. }) => {
                Ok(Err(TransferLeaderError::VoteChanged { expected: vote, actual: vote }))
            }
            _ => Err(another_answer()),
        }
    }
}

impl<S: StateMachine> ConsensusLink<S> {
    /// The time that bytes of a snapshot take at the allowed rate.
    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / self.context.bytes_per_s_max)
    }

    async fn send_snapshot<R: AsyncRuntime>(
        &self,
        vote: Vote,
        snapshot: SnapshotData<S>,
    ) -> Result<SnapshotResponse<Types<R>>, Failed<R>> {
        let SnapshotData::Making(Some(mut making)) = snapshot else {
            // Another member is receiving a snapshot. Its turn ends with a time limit.
            R::sleep(self.context.timeout).await;
            return Err(RPCError::Network(NetworkError::from_string("another snapshot of the group is being made")));
        };
        let mut free_at = R::Instant::now();
        for number in 0.. {
            R::sleep_until(free_at).await;
            let page = making.next_page(self.context.page_bytes);
            add(&self.context.counting.snapshot_bytes_sent, page.len());
            // Delays are not made up for: the rate limit holds at each instant.
            free_at = R::Instant::now() + self.time_of(page.len());
            // The last page is empty.
            let timeout = if page.is_empty() { self.context.install_timeout } else { self.context.timeout };
            let snapshot = making.number;
            let request = Request::Page { vote, snapshot, number, page };
            let mut tries = 0;
            let answer = loop {
                tries += 1;
                match self.call_within::<R>(timeout, Lane::Snapshots, RPCTypes::InstallSnapshot, &request).await {
                    Err(_) if tries < PAGE_TRIES_MAX => {}
                    answer => break answer?.1,
                }
            };
            match answer {
                Response::NextPage(next) if next == number + 1 => {}
                Response::Installed(vote) => return Ok(SnapshotResponse::new(vote)),
                Response::NextPage(0) if number == 0 => {
                    // The export is dropped during the wait, because it keeps old state of entries
                    // that change meanwhile.
                    drop(making);
                    R::sleep(self.context.timeout).await;
                    return Err(RPCError::Network(NetworkError::from_string("the member has no room for it yet")));
                }
                Response::NextPage(_) => {
                    return Err(RPCError::Network(NetworkError::from_string("the member wants another page")));
                }
                _ => return Err(another_answer()),
            }
        }
        Err(another_answer())
    }
}
