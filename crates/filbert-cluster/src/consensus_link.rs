//! The link to one member over a [`Transport`]: encodes requests, and awaits answers within a time
//! limit. It records the times, leaders and commits that requests and answers carry.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use filbert_store::Millis;
use openraft::AsyncRuntime;
use openraft::errors::{NetworkError, RPCError, Timeout, Unreachable};
use openraft::network::RPCTypes;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};

use crate::acknowledged::Acknowledged;
use crate::clock::GroupClock;
use crate::counters::Counting;
use crate::reporting::Reporting;
use crate::state_machine::StateMachine;
use crate::transport::{Lane, Transport};
use crate::types::Types;
use crate::urgent_commits::UrgentCommits;
use crate::wire::{Head, Request, Response};
use crate::{GroupId, MemberId, TransportError};

/// The state that all links of a group share.
pub(crate) struct LinkContext<S> {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) member: MemberId,
    pub(crate) group: GroupId,
    pub(crate) clock: Arc<GroupClock>,
    /// The send times of requests that members have acknowledged, in nanoseconds.
    pub(crate) acknowledged_ns: Arc<Acknowledged<u64>>,
    /// The current time of the group's clock, in nanoseconds.
    pub(crate) now_ns: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) timeout: Duration,
    /// The time limit of the last page of a snapshot, which is answered after the installation.
    pub(crate) install_timeout: Duration,
    /// The maximum time for which a commit index waits for a request with entries.
    pub(crate) commit_hold: Duration,
    pub(crate) urgent_commits: Arc<UrgentCommits>,
    pub(crate) reporting: Arc<Reporting>,
    pub(crate) page_bytes: usize,
    /// The rate limit of a snapshot.
    pub(crate) bytes_per_s_max: u64,
    pub(crate) counting: Arc<Counting>,
    /// The state machine of the snapshots that are sent.
    pub(crate) state: PhantomData<fn() -> S>,
}

impl<S> Clone for LinkContext<S> {
    fn clone(&self) -> Self {
        LinkContext {
            transport: Arc::clone(&self.transport),
            clock: Arc::clone(&self.clock),
            acknowledged_ns: Arc::clone(&self.acknowledged_ns),
            now_ns: Arc::clone(&self.now_ns),
            member: self.member,
            group: self.group,
            timeout: self.timeout,
            install_timeout: self.install_timeout,
            commit_hold: self.commit_hold,
            urgent_commits: Arc::clone(&self.urgent_commits),
            reporting: Arc::clone(&self.reporting),
            page_bytes: self.page_bytes,
            bytes_per_s_max: self.bytes_per_s_max,
            counting: Arc::clone(&self.counting),
            state: PhantomData,
        }
    }
}

/// The link to one member.
pub(crate) struct ConsensusLink<S> {
    pub(crate) context: LinkContext<S>,
    pub(crate) target: MemberId,
}

impl<S> Clone for ConsensusLink<S> {
    fn clone(&self) -> Self {
        ConsensusLink { context: self.context.clone(), target: self.target }
    }
}

pub(crate) type Failed<R> = RPCError<Types<R>>;

impl<S: StateMachine> ConsensusLink<S> {
    /// Sends a request and awaits its answer, within the time limit of requests.
    pub(crate) fn call<R: AsyncRuntime>(
        &self,
        lane: Lane,
        action: RPCTypes,
        request: &Request<R>,
    ) -> impl Future<Output = Result<(Millis, Response<R>), Failed<R>>> + Send + use<R, S> {
        self.call_within(self.context.timeout, lane, action, request)
    }

    pub(crate) fn call_within<R: AsyncRuntime>(
        &self,
        timeout: Duration,
        lane: Lane,
        action: RPCTypes,
        request: &Request<R>,
    ) -> impl Future<Output = Result<(Millis, Response<R>), Failed<R>>> + Send + use<R, S> {
        let LinkContext { member, group, .. } = self.context;
        let (target, clock) = (self.target, Arc::clone(&self.context.clock));
        let head = Head { to: target, group, epoch: self.context.transport.epoch(), time: clock.known_time() };
        let call = R::timeout(timeout, self.context.transport.call(target, lane, request.write(&head)));
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
            // A vote counts only after the voter's time is recorded.
            clock.learn(time);
            Ok((time, answer))
        }
    }

    pub(crate) fn append<R: AsyncRuntime>(
        &self,
        lane: Lane,
        append: AppendEntriesRequest<Types<R>>,
    ) -> impl Future<Output = Result<AppendEntriesResponse<Types<R>>, Failed<R>>> + Send + use<R, S> {
        let (clock, target, term) = (Arc::clone(&self.context.clock), self.target, append.vote.leader_id.term);
        clock.promise();
        self.context.reporting.record_own_term(term);
        let (acknowledged_ns, sent_ns) = (Arc::clone(&self.context.acknowledged_ns), (self.context.now_ns)());
        let call = self.call(lane, RPCTypes::AppendEntries, &Request::Append(append));
        async move {
            let (time, answer) = match call.await? {
                (time, Response::Append(answer)) => (time, answer),
                _ => return Err(another_answer()),
            };
            // A member with a higher vote may have voted before it knew of the time.
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
