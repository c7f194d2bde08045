//! Appends to one member, in a stream: many in flight at once, with answers in order.
//!
//! openraft sends each commit index to followers by a request without entries, unless entries are
//! sent at the same time: under load that is a second request, a wake-up on both sides and an
//! answer for each entry. Only reads at a follower wait for the commit index. Therefore such a
//! request is held for a while ([`commit_hold_ms`](crate::GroupSettings::commit_hold_ms)), and
//! replaced by the next entries, which carry the commit index as well. A read point sends it at
//! once.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::stream::{self, Fuse, FuturesOrdered};
use futures_util::{Stream, StreamExt};
use openraft::async_runtime::Select2;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, StreamAppendError, StreamAppendResult};
use openraft::{AsyncRuntime, OptionalSend};

use crate::consensus_link::{ConsensusLink, Failed, another_answer};
use crate::state_machine::StateMachine;
use crate::transport::Lane;
use crate::types::{LogId, Types};
use crate::urgent_commits::UrgentCommits;

/// The maximum number of appends to one member that are in flight.
const APPENDS_MAX: usize = 8;

type Append<R> = AppendEntriesRequest<Types<R>>;
type Answer<R> = Result<StreamAppendResult<Types<R>>, Failed<R>>;
/// The answer to an append, and whether the stream continues after it.
type Appended<R> = (Answer<R>, bool);

/// A held request with only a commit index, and the sleep that ends the hold.
struct Held<R: AsyncRuntime> {
    request: Append<R>,
    sleep: Pin<Box<R::Sleep>>,
}

/// The stream of appends to one member.
pub(crate) struct Appending<R: AsyncRuntime, S, I> {
    link: ConsensusLink<S>,
    lane: Lane,
    input: Fuse<I>,
    calls: FuturesOrdered<BoxFuture<'static, Appended<R>>>,
    /// The end of the log that the member has acknowledged in this stream.
    matched: Option<LogId>,
    /// The end of the log that this stream has sent or asked about. An answer that differs ends the
    /// stream.
    sent: Option<LogId>,
    held: Option<Held<R>>,
    urgent_commits: Arc<UrgentCommits>,
}

/// The next event of the stream.
enum Event<R: AsyncRuntime> {
    Request(Option<Append<R>>),
    Answered(Option<Appended<R>>),
    HeldEnough,
}

impl<R: AsyncRuntime, S: StateMachine, I> Appending<R, S, I>
where
    I: Stream<Item = Append<R>> + OptionalSend + Unpin + 'static,
{
    pub(crate) fn new(link: ConsensusLink<S>, input: I) -> Self {
        // The input of replication has no known end. A caller with exactly one request sends a
        // heartbeat.
        let lane = if input.size_hint() == (1, Some(1)) { Lane::Heartbeats } else { Lane::Data };
        let urgent_commits = Arc::clone(&link.context.urgent_commits);
        Appending {
            link,
            lane,
            input: input.fuse(),
            calls: FuturesOrdered::new(),
            matched: None,
            sent: None,
            held: None,
            urgent_commits,
        }
    }

    /// The answers, in order. The first answer that is not a full success is the last one.
    pub(crate) fn answers<'s>(self) -> BoxStream<'s, Answer<R>> {
        Box::pin(stream::unfold(Some(self), |appending| async {
            let mut appending = appending?;
            let (mut answer, goes_on) = appending.next_answer().await?;
            match &answer {
                Ok(Ok(upto)) => appending.matched = appending.matched.max(*upto),
                // The append overtook the previous append in flight. The member has the log that it
                // has acknowledged.
                Ok(Err(StreamAppendError::Conflict(at))) if Some(*at) <= appending.matched => {
                    answer = Err(RPCError::Network(NetworkError::from_string("an append overtook another one")));
                }
                _ => {}
            }
            Some((answer, goes_on.then_some(appending)))
        }))
    }

    async fn next_answer(&mut self) -> Option<Appended<R>> {
        loop {
            match self.next_event().await {
                Event::Request(Some(request)) if self.has_only_commit_index(&request) => self.hold(request),
                Event::Request(Some(request)) => {
                    // It carries the same commit index as the held request, or a later one.
                    self.held = None;
                    self.send(request);
                }
                Event::HeldEnough | Event::Request(None) if self.held.is_some() => {
                    if let Some(held) = self.held.take() {
                        self.send(held.request);
                    }
                }
                Event::HeldEnough => {}
                Event::Request(None) => return self.calls.next().await,
                Event::Answered(answered) => return answered,
            }
        }
    }

    async fn next_event(&mut self) -> Event<R> {
        if self.calls.len() >= APPENDS_MAX {
            return Event::Answered(self.calls.next().await);
        }
        let (calls, held, urgent_commits) = (&mut self.calls, &mut self.held, &self.urgent_commits);
        let answered = pin!(async {
            // Without calls, it would complete immediately.
            if calls.is_empty() { pending().await } else { calls.next().await }
        });
        let held_enough = pin!(async {
            let Some(Held { request, sleep }) = held else { return pending().await };
            let wanted = pin!(urgent_commits.wait_until_urgent(request.leader_commit.map_or(0, |last| last.index)));
            R::select2(sleep.as_mut(), wanted).await;
        });
        let others = pin!(R::select2(answered, held_enough));
        match R::select2(self.input.next(), others).await {
            Select2::First(request) => Event::Request(request),
            Select2::Second(Select2::First(answered)) => Event::Answered(answered),
            Select2::Second(Select2::Second(())) => Event::HeldEnough,
        }
    }

    /// Whether a request carries only the commit index: no entries, and no check of the previous
    /// log id.
    fn has_only_commit_index(&self, request: &Append<R>) -> bool {
        self.lane == Lane::Data
            && request.entries.is_empty()
            && self.sent.is_some()
            && request.prev_log_id <= self.sent
            && !self.link.context.commit_hold.is_zero()
    }

    fn hold(&mut self, request: Append<R>) {
        match &mut self.held {
            // A renewed request does not restart the hold.
            Some(held) => held.request = request,
            None => {
                let sleep = Box::pin(R::sleep(self.link.context.commit_hold));
                self.held = Some(Held { request, sleep });
            }
        }
    }

    fn send(&mut self, request: Append<R>) {
        let (first, last) = (request.prev_log_id, request.entries.last().map(|entry| entry.log_id));
        let last = last.or(first);
        self.sent = self.sent.max(last);
        let call = self.link.append(self.lane, request);
        self.calls.push_back(Box::pin(async move { stream_answer(call.await, first, last) }));
    }
}

/// Returns the stream's answer for the answer to a request that begins and ends with these ids.
fn stream_answer<R: AsyncRuntime>(
    answer: Result<AppendEntriesResponse<Types<R>>, Failed<R>>,
    first: Option<LogId>,
    last: Option<LogId>,
) -> Appended<R> {
    match answer {
        Ok(AppendEntriesResponse::Conflict) if first.is_none() => (Err(another_answer()), false),
        Ok(answer) => {
            let is_whole = match &answer {
                AppendEntriesResponse::Success => true,
                AppendEntriesResponse::PartialSuccess(upto) => *upto == last,
                AppendEntriesResponse::Conflict | AppendEntriesResponse::HigherVote(_) => false,
            };
            (Ok(answer.into_stream_result(first, last)), is_whole)
        }
        Err(error) => (Err(error), false),
    }
}
