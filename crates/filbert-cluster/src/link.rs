//! Consensus over a [`Transport`]: what it asks of another member becomes requests, with a time limit, many on their way at once.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use filbert_store::Millis;
use futures_util::Stream;
use openraft::alias::SnapshotOf;
use openraft::async_runtime::Select2;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AsyncRuntime, Instant, OptionalSend, RaftNetworkV2};

use crate::acknowledged::Acknowledged;
use crate::appending::{Appending, Hurry};
use crate::clock::GroupClock;
use crate::counters::{Counting, add};
use crate::snapshot::SnapshotData;
use crate::state_machine::StateMachine;
use crate::telling::Telling;
use crate::transport::{Lane, Transport};
use crate::types::{Types, Vote};
use crate::wire::{Head, Request, Response};
use crate::{GroupId, MemberId, TransportError};

/// Tries of one page before the snapshot is begun anew.
const PAGE_TRIES_MAX: usize = 5;

/// What all links of a group share.
pub(crate) struct Links<S> {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) member: MemberId,
    pub(crate) group: GroupId,
    pub(crate) clock: Arc<GroupClock>,
    /// When requests were sent that members have acknowledged, in nanoseconds.
    pub(crate) acknowledged_ns: Arc<Acknowledged<u64>>,
    /// Nanoseconds of the group's clock.
    pub(crate) now_ns: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) timeout: Duration,
    /// Of the last page of a snapshot, which is answered when all is installed.
    pub(crate) install_timeout: Duration,
    /// How long news of a commit may wait for a request that goes anyway.
    pub(crate) commit_hold: Duration,
    pub(crate) hurry: Arc<Hurry>,
    pub(crate) telling: Arc<Telling>,
    pub(crate) page_bytes: usize,
    /// Of a snapshot.
    pub(crate) bytes_per_s_max: u64,
    pub(crate) counting: Arc<Counting>,
    /// Whose snapshots are sent.
    pub(crate) state: PhantomData<fn() -> S>,
}

impl<S> Clone for Links<S> {
    fn clone(&self) -> Self {
        Links {
            transport: Arc::clone(&self.transport),
            clock: Arc::clone(&self.clock),
            acknowledged_ns: Arc::clone(&self.acknowledged_ns),
            now_ns: Arc::clone(&self.now_ns),
            member: self.member,
            group: self.group,
            timeout: self.timeout,
            install_timeout: self.install_timeout,
            commit_hold: self.commit_hold,
            hurry: Arc::clone(&self.hurry),
            telling: Arc::clone(&self.telling),
            page_bytes: self.page_bytes,
            bytes_per_s_max: self.bytes_per_s_max,
            counting: Arc::clone(&self.counting),
            state: PhantomData,
        }
    }
}

/// The way to one member.
pub(crate) struct Link<S> {
    pub(crate) links: Links<S>,
    target: MemberId,
}

impl<S> Clone for Link<S> {
    fn clone(&self) -> Self {
        Link { links: self.links.clone(), target: self.target }
    }
}

impl<R: AsyncRuntime, S: StateMachine> RaftNetworkFactory<Types<R>> for Links<S> {
    type Network = Link<S>;

    async fn new_client(&mut self, target: MemberId, _: &openraft::EmptyNode) -> Link<S> {
        Link { links: self.clone(), target }
    }
}

pub(crate) type Failed<R> = RPCError<Types<R>>;

impl<S: StateMachine> Link<S> {
    /// Brings a request over and its answer back, within the time limit of requests.
    fn call<R: AsyncRuntime>(
        &self,
        lane: Lane,
        action: RPCTypes,
        request: &Request<R>,
    ) -> impl Future<Output = Result<(Millis, Response<R>), Failed<R>>> + Send + use<R, S> {
        self.call_within(self.links.timeout, lane, action, request)
    }

    fn call_within<R: AsyncRuntime>(
        &self,
        timeout: Duration,
        lane: Lane,
        action: RPCTypes,
        request: &Request<R>,
    ) -> impl Future<Output = Result<(Millis, Response<R>), Failed<R>>> + Send + use<R, S> {
        let Links { member, group, .. } = self.links;
        let (target, clock) = (self.target, Arc::clone(&self.links.clock));
        let head = Head { to: target, group, epoch: self.links.transport.epoch(), time: clock.told() };
        let call = R::timeout(timeout, self.links.transport.call(target, lane, request.write(&head)));
        async move {
            let answered = call.await.map_err(|_| Timeout { action, id: member, target, timeout })?;
            let answer = answered.map_err(|error| match error {
                TransportError::Unreachable(_) => RPCError::Unreachable(Unreachable::new(&error)),
                TransportError::Broken(_)
                | TransportError::Overloaded(_)
                | TransportError::TooLong { .. }
                | TransportError::Refused { .. } => RPCError::Network(NetworkError::new(&error)),
            })?;
            let (time, answer) =
                Response::read(answer).map_err(|error| RPCError::Network(NetworkError::new(&error)))?;
            // A vote counts only after it is known how far the voter's time is.
            clock.learn(time);
            Ok((time, answer))
        }
    }

    pub(crate) fn append<R: AsyncRuntime>(
        &self,
        lane: Lane,
        append: AppendEntriesRequest<Types<R>>,
    ) -> impl Future<Output = Result<AppendEntriesResponse<Types<R>>, Failed<R>>> + Send + use<R, S> {
        let (clock, target, term) = (Arc::clone(&self.links.clock), self.target, append.vote.leader_id.term);
        clock.promise();
        self.links.telling.leads(term);
        let (acknowledged_ns, sent_ns) = (Arc::clone(&self.links.acknowledged_ns), (self.links.now_ns)());
        let call = self.call(lane, RPCTypes::AppendEntries, &Request::Append(append));
        async move {
            let (time, answer) = match call.await? {
                (time, Response::Append(answer)) => (time, answer),
                _ => return Err(another_answer()),
            };
            // Who has gone on to a higher vote may have voted before it knew of the time.
            if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
                clock.acknowledged(term, target, time);
                acknowledged_ns.note(term, target, sent_ns);
            }
            Ok(answer)
        }
    }
}

pub(crate) fn another_answer<R: AsyncRuntime>() -> Failed<R> {
    RPCError::Network(NetworkError::from_string("an answer to another request came"))
}

impl<R: AsyncRuntime, S: StateMachine> RaftNetworkV2<Types<R>> for Link<S> {
    type SnapshotData = SnapshotData<S>;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types<R>>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types<R>>, Failed<R>> {
        self.append(Lane::Data, rpc).await
    }

    /// Several appends on their way at once. The answers come in order; the first that is no full success ends the stream.
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

impl<S: StateMachine> Link<S> {
    /// The time that bytes of a snapshot take at the rate that is allowed.
    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / self.links.bytes_per_s_max)
    }

    async fn send_snapshot<R: AsyncRuntime>(
        &self,
        vote: Vote,
        snapshot: SnapshotData<S>,
    ) -> Result<SnapshotResponse<Types<R>>, Failed<R>> {
        let SnapshotData::Making(Some(mut making)) = snapshot else {
            // Another member is being brought one; its turn ends with a time limit.
            R::sleep(self.links.timeout).await;
            return Err(RPCError::Network(NetworkError::from_string("another snapshot of the group is being made")));
        };
        let mut free_at = R::Instant::now();
        for number in 0.. {
            R::sleep_until(free_at).await;
            let page = making.next_page(self.links.page_bytes);
            add(&self.links.counting.snapshot_bytes_sent, page.len());
            // What comes late is not made up for: the limit is one of every moment.
            free_at = R::Instant::now() + self.time_of(page.len());
            // The last page has no bytes.
            let timeout = if page.is_empty() { self.links.install_timeout } else { self.links.timeout };
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
                Response::NextPage(_) => {
                    return Err(RPCError::Network(NetworkError::from_string("the member wants another page")));
                }
                _ => return Err(another_answer()),
            }
        }
        Err(another_answer())
    }
}
