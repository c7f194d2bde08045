//! Appends to one member, in a stream: many on their way at once, their answers in order.
//!
//! openraft tells followers of each commit by a request without entries, unless entries go at that moment: under load that is a second request,
//! a wake-up on both sides and an answer for each entry. Nobody waits for such news but who reads at a follower. So it is held for a while
//! ([`commit_hold_ms`](crate::GroupSettings::commit_hold_ms)), and goes with the next entries, which tell it as well; a read point hurries it.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::{self, Fuse, FuturesOrdered};
use futures_util::{Stream, StreamExt};
use openraft::async_runtime::Select2;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, StreamAppendError, StreamAppendResult};
use openraft::{AsyncRuntime, OptionalSend};
use tokio::sync::Notify;

use crate::link::{Failed, Link, another_answer};
use crate::state_machine::StateMachine;
use crate::transport::Lane;
use crate::types::{LogId, Types};

/// Appends on their way to one member and not answered yet.
const APPENDS_MAX: usize = 8;

type Append<R> = AppendEntriesRequest<Types<R>>;
type Answer<R> = Result<StreamAppendResult<Types<R>>, Failed<R>>;
/// What is told of an append's answer, and whether the stream goes on after it.
type Appended<R> = (Answer<R>, bool);

/// Up to which index of the log somebody waits for followers to hear of commits.
#[derive(Default)]
pub(crate) struct Hurry {
    index: AtomicU64,
    later: Notify,
}

impl Hurry {
    /// Followers are to hear at once of commits up to an index.
    pub(crate) fn to(&self, index: u64) {
        if self.index.fetch_max(index, Ordering::SeqCst) < index {
            self.later.notify_waiters();
        }
    }

    /// Waits until somebody waits for the commit of an index.
    async fn wants(&self, index: u64) {
        loop {
            let mut later = pin!(self.later.notified());
            later.as_mut().enable();
            if index <= self.index.load(Ordering::SeqCst) {
                return;
            }
            later.await;
        }
    }
}

/// A request that tells of a commit alone, and what ends its waiting.
struct Held<R: AsyncRuntime> {
    request: Append<R>,
    sleep: Pin<Box<R::Sleep>>,
}

/// The stream to one member.
pub(crate) struct Appending<R: AsyncRuntime, S, I> {
    link: Link<S>,
    lane: Lane,
    input: Fuse<I>,
    calls: FuturesOrdered<BoxFuture<'static, Appended<R>>>,
    /// Up to where the member has said, in this stream, that it has the log.
    matched: Option<LogId>,
    /// Up to where this stream has asked or told it of the log. An answer that says otherwise ends the stream.
    sent: Option<LogId>,
    held: Option<Held<R>>,
    hurry: Arc<Hurry>,
}

/// What happens next.
enum Event<R: AsyncRuntime> {
    Request(Option<Append<R>>),
    Answered(Option<Appended<R>>),
    HeldEnough,
}

impl<R: AsyncRuntime, S: StateMachine, I> Appending<R, S, I>
where
    I: Stream<Item = Append<R>> + OptionalSend + Unpin + 'static,
{
    pub(crate) fn new(link: Link<S>, input: I) -> Self {
        // Replication goes on without an end that is known; who sends one request and no more sends a heartbeat.
        let lane = if input.size_hint() == (1, Some(1)) { Lane::Heartbeats } else { Lane::Data };
        let hurry = Arc::clone(&link.links.hurry);
        Appending {
            link,
            lane,
            input: input.fuse(),
            calls: FuturesOrdered::new(),
            matched: None,
            sent: None,
            held: None,
            hurry,
        }
    }

    /// The answers, in order. The first that is no full success is the last.
    pub(crate) fn answers<'s>(self) -> BoxStream<'s, Answer<R>> {
        Box::pin(stream::unfold(Some(self), |appending| async {
            let mut appending = appending?;
            let (mut answer, goes_on) = appending.next_answer().await?;
            match &answer {
                Ok(Ok(upto)) => appending.matched = appending.matched.max(*upto),
                // It overtook the append before it on the way. What a member has said to have, it has.
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
                Event::Request(Some(request)) if self.tells_the_commit_alone(&request) => self.hold(request),
                Event::Request(Some(request)) => {
                    // It tells of later commits than one that is held, or of the same.
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
        let (calls, held, hurry) = (&mut self.calls, &mut self.held, &self.hurry);
        let answered = pin!(async {
            // Without calls, it would be over at once.
            if calls.is_empty() { pending().await } else { calls.next().await }
        });
        let held_enough = pin!(async {
            let Some(Held { request, sleep }) = held else { return pending().await };
            let wanted = pin!(hurry.wants(request.leader_commit.map_or(0, |last| last.index)));
            R::select2(sleep.as_mut(), wanted).await;
        });
        let others = pin!(R::select2(answered, held_enough));
        match R::select2(self.input.next(), others).await {
            Select2::First(request) => Event::Request(request),
            Select2::Second(Select2::First(answered)) => Event::Answered(answered),
            Select2::Second(Select2::Second(())) => Event::HeldEnough,
        }
    }

    /// Whether a request brings nothing but how far the log is committed: no entries, and no question whether the member has what comes
    /// before.
    fn tells_the_commit_alone(&self, request: &Append<R>) -> bool {
        self.lane == Lane::Data
            && request.entries.is_empty()
            && self.sent.is_some()
            && request.prev_log_id <= self.sent
            && !self.link.links.commit_hold.is_zero()
    }

    fn hold(&mut self, request: Append<R>) {
        match &mut self.held {
            // It waits no longer for being renewed.
            Some(held) => held.request = request,
            None => {
                let sleep = Box::pin(R::sleep(self.link.links.commit_hold));
                self.held = Some(Held { request, sleep });
            }
        }
    }

    fn send(&mut self, request: Append<R>) {
        let (first, last) = (request.prev_log_id, request.entries.last().map(|entry| entry.log_id));
        let last = last.or(first);
        self.sent = self.sent.max(last);
        let call = self.link.append(self.lane, request);
        self.calls.push_back(Box::pin(async move { told(call.await, first, last) }));
    }
}

/// What is told of the answer to a request that begins and ends with these ids.
fn told<R: AsyncRuntime>(
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
