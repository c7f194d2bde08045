//! The requests in flight from one client's connection to one other member: bytes to be sent, and
//! the receivers of the replies.
//!
//! A request ends with its reply, with the connection, or when another member leads its partition.
//! In the last two cases, a request that was not sent, or that changes nothing, is repeated
//! (`held.rs`). The outcome of other requests is unknown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filbert_grid::metrics::OperationKind;
use filbert_grid::{ErrorKind, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid, table};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::held::RepeatableRequest;
use crate::client_link::ClientLink;
use crate::config::DoorConfig;
use crate::failure::Failure;
use crate::kinds::kind_of;

/// A longer request that may wait for other clients counts like any other request.
const WAIT_BYTES_MAX: usize = 4096;

/// The time after which a silent member's connection counts as lost: bytes were sent to the member,
/// and none were received.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The time for which the reply to a change is awaited from a member that no longer leads the
/// partition. A member that hands its leadership over in order replies within this time.
const MOVED_MAX: Duration = Duration::from_secs(1);

/// The requests in flight from one client's connection to all other members.
pub(crate) struct Traffic {
    pub(super) link: Arc<ClientLink>,
    pub(super) config: Arc<DoorConfig>,
    /// Bytes of unanswered requests, without requests that wait for other clients.
    bytes: AtomicUsize,
    /// The number of requests that wait for other clients, for a lock or a journal event.
    waits: AtomicUsize,
    /// By partition: the member that its unanswered requests were sent to, and their number.
    partitions: Mutex<HashMap<PartitionId, (Uuid, usize)>>,
    /// Notified when the client has read replies.
    pub(super) drained: Notify,
    /// Whether listeners must be checked: a connection to a member has ended, or a registration has
    /// failed.
    broken: AtomicBool,
}

impl Traffic {
    pub(super) fn new(link: Arc<ClientLink>, config: Arc<DoorConfig>) -> Self {
        Self {
            link,
            config,
            bytes: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            partitions: Mutex::default(),
            drained: Notify::new(),
            broken: AtomicBool::new(false),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Acquire) > 0
    }

    /// The member that has not answered requests for a partition yet.
    pub(super) fn busy_at(&self, partition: PartitionId) -> Option<Uuid> {
        if self.bytes() == 0 {
            return None;
        }
        self.partitions.lock().get(&partition).map(|(member, _)| *member)
    }

    pub(super) fn take_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) && self.broken.swap(false, Ordering::SeqCst)
    }

    pub(super) fn set_broken(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    fn begin(&self, member: Uuid, waiting: &PendingRequest) {
        if waiting.waits {
            self.waits.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if let Some(partition) = waiting.partition {
            self.partitions.lock().entry(partition).or_insert((member, 0)).1 += 1;
        }
        self.bytes.fetch_add(waiting.bytes, Ordering::SeqCst);
    }

    /// Called before the reply is delivered, which wakes the connection: it checks which requests
    /// may continue.
    fn end(&self, waiting: &PendingRequest) {
        if waiting.waits {
            self.waits.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        if let Some(partition) = waiting.partition {
            let mut partitions = self.partitions.lock();
            if let Some((_, count)) = partitions.get_mut(&partition) {
                *count -= 1;
                if *count == 0 {
                    partitions.remove(&partition);
                }
            }
        }
        self.bytes.fetch_sub(waiting.bytes, Ordering::SeqCst);
    }
}

/// Receives a member's reply to a request, or the failure.
pub(super) type Taker = Box<dyn FnOnce(Result<&Message<'_>, Box<Failure>>, &[u8]) + Send>;

/// The receiver of a reply.
pub(super) enum To {
    /// The client, which receives the reply unchanged, unless the request is repeated.
    Client(RepeatableRequest),
    /// A function in this member.
    Taker(Taker),
    /// None.
    Nobody,
}

struct PendingRequest {
    id: MessageId,
    partition: Option<PartitionId>,
    bytes: usize,
    /// Whether its end depends on other clients.
    waits: bool,
    number: u64,
    /// The end of the wait for the reply, because another member leads the partition.
    ends_at: Option<Instant>,
    to: To,
}

/// A request to be sent.
pub(super) struct Parcel<'a> {
    /// The id of the client's request.
    pub(super) id: MessageId,
    pub(super) correlation: CorrelationId,
    pub(super) partition: Option<PartitionId>,
    pub(super) bytes: &'a [u8],
    pub(super) to: To,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// The numbers of the requests in `bytes`, and the offset of the end of each.
    unsent: Vec<(u64, usize)>,
    waiting: HashMap<CorrelationId, PendingRequest>,
    /// The number of the last queued request. `taken` is that of the last request that may have
    /// been sent.
    pushed: u64,
    taken: u64,
    /// The time since which the member is silent although bytes were sent to it.
    silent_since: Option<Instant>,
    /// Whether nothing is read from the member, because the client does not read.
    is_paused: bool,
    closed: bool,
    broken: bool,
}

/// The connection to one member.
pub(crate) struct Pipe {
    pub(super) traffic: Arc<Traffic>,
    pub(super) member: Uuid,
    state: Mutex<State>,
    pub(super) filled: Notify,
}

/// The next step for the task of a pipe.
pub(super) enum Next {
    Send(Vec<u8>),
    Wait,
    Close,
}

impl Pipe {
    pub(super) fn new(traffic: Arc<Traffic>, member: Uuid) -> Self {
        Self { traffic, member, state: Mutex::default(), filled: Notify::new() }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state.lock().broken
    }

    /// Queues a request. The caller calls [`Notify::notify_one`] of `filled` at the end of a batch.
    pub(super) fn push(&self, parcel: Parcel<'_>) -> Result<(), Box<Failure>> {
        let Parcel { id, correlation, partition, bytes, to } = parcel;
        let may_wait = matches!(kind_of(id), OperationKind::Lock | OperationKind::Journal);
        let waits = may_wait && bytes.len() <= WAIT_BYTES_MAX;
        let mut state = self.state.lock();
        if state.broken {
            return Err(self.not_sent("it was lost"));
        }
        if state.waiting.contains_key(&correlation) {
            let text = format!("correlation id {} is of a request that is not answered yet", correlation.0);
            return Err(Failure::new(ErrorKind::IllegalArgument, text));
        }
        let limit = self.traffic.config.relayed_waits_max;
        if waits && self.traffic.waits.load(Ordering::Acquire) >= limit {
            let text = format!(
                "this connection already has {limit} requests that wait at other members, the most that relayed_waits_max allows"
            );
            return Err(Failure::new(ErrorKind::LimitReached, text));
        }
        state.pushed += 1;
        let waiting =
            PendingRequest { id, partition, bytes: bytes.len(), waits, number: state.pushed, ends_at: None, to };
        self.traffic.begin(self.member, &waiting);
        state.waiting.insert(correlation, waiting);
        state.bytes.extend_from_slice(bytes);
        let sent = (state.pushed, state.bytes.len());
        state.unsent.push(sent);
        Ok(())
    }

    /// Records that bytes were sent. `progress`: the member has accepted more of them.
    pub(super) fn sent(&self, progress: bool) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if progress || state.silent_since.is_none() {
            state.silent_since = Some(now);
        }
    }

    /// Records that bytes were received.
    pub(super) fn heard(&self) {
        self.state.lock().silent_since = None;
    }

    /// Sets whether nothing is read from the member. Its silence does not count then.
    pub(super) fn set_paused(&self, is_paused: bool) {
        let mut state = self.state.lock();
        state.is_paused = is_paused;
        state.silent_since = None;
    }

    /// Ends expired waits for changes of partitions that have moved. Returns whether the member is
    /// silent.
    pub(super) fn look(&self, now: Instant) -> bool {
        let is_silent = {
            let state = self.state.lock();
            let silent_since = state.silent_since.filter(|_| !state.is_paused);
            silent_since.is_some_and(|silent_since| now.saturating_duration_since(silent_since) >= SILENCE_MAX)
        };
        let is_over = |waiting: &PendingRequest| waiting.ends_at.is_some_and(|at| at <= now);
        self.end_some(is_over, "another member leads its partition");
        is_silent
    }

    /// Whether a reply is awaited.
    pub(super) fn is_awaited(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// Adapts to new leaders. Requests for partitions that moved to another member are repeated if
    /// they may be. Changes are awaited for a short time only.
    pub(super) fn follow(&self, has_moved: impl Fn(PartitionId) -> bool, now: Instant) {
        let mut state = self.state.lock();
        let State { waiting, taken, .. } = &mut *state;
        let mut any = false;
        for waiting in waiting.values_mut() {
            let moved = waiting.partition.is_some_and(&has_moved);
            if !moved || !matches!(waiting.to, To::Client(_)) {
                waiting.ends_at = None;
            } else if waiting.number > *taken || is_retryable(waiting.id) {
                waiting.ends_at = Some(now);
                any = true;
            } else {
                waiting.ends_at.get_or_insert(now + MOVED_MAX);
            }
        }
        drop(state);
        if any {
            self.end_some(|waiting| waiting.ends_at == Some(now), "another member leads its partition");
        }
    }

    fn end_some(&self, is_over: impl Fn(&PendingRequest) -> bool, why: &str) {
        let mut state = self.state.lock();
        let over: Vec<_> = state.waiting.extract_if(|_, waiting| is_over(waiting)).collect();
        if over.is_empty() {
            return;
        }
        state.forget_unsent(over.iter().map(|(_, waiting)| waiting.number).collect());
        let taken = state.taken;
        self.end(over, taken, why, state);
    }

    /// The next step: bytes to send, a wait, or the end.
    pub(super) fn next(&self) -> Next {
        let mut state = self.state.lock();
        if state.broken {
            return Next::Close;
        }
        if !state.bytes.is_empty() {
            state.taken = state.pushed;
            state.unsent.clear();
            return Next::Send(std::mem::take(&mut state.bytes));
        }
        if state.closed { Next::Close } else { Next::Wait }
    }

    /// The client has disconnected. Its requests are still sent, and replies are not awaited.
    pub(super) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.filled.notify_one();
    }

    /// Handles a message from the member.
    pub(super) fn arrived(&self, bytes: &[u8]) {
        // Cannot fail: the splitter has checked the frames.
        let Ok(message) = Message::parse(bytes) else { return };
        let outbox = &self.traffic.link.outbox;
        if message.is_event() {
            outbox.append(|out| out.extend_from_slice(bytes));
            return;
        }
        let waiting = {
            let mut state = self.state.lock();
            state.silent_since = None;
            state.waiting.remove(&message.correlation_id())
        };
        let Some(mut waiting) = waiting else { return };
        match std::mem::replace(&mut waiting.to, To::Nobody) {
            To::Client(repeatable) if repeatable.may_repeat_after_reply(&message) => {
                // Held before the next request of its partition may continue.
                let _waits = repeatable.hold(bytes.to_vec());
                self.traffic.end(&waiting);
                outbox.poke();
            }
            To::Client(_) => {
                self.traffic.end(&waiting);
                outbox.append_answer(|out| out.extend_from_slice(bytes));
            }
            To::Taker(take) => {
                self.traffic.end(&waiting);
                take(Ok(&message), bytes);
                outbox.poke();
            }
            To::Nobody => {
                self.traffic.end(&waiting);
                outbox.poke();
            }
        }
    }

    /// The connection to the member has ended. Pending requests are held, or answered with an error
    /// that says whether they may have been executed.
    pub(super) fn fail(&self, why: &str) {
        let mut state = self.state.lock();
        state.broken = true;
        state.bytes = Vec::new();
        state.unsent = Vec::new();
        let (waiting, taken) = (state.waiting.drain().collect(), state.taken);
        self.end(waiting, taken, why, state);
        self.filled.notify_one();
    }

    /// Ends requests without a reply. Requests to be repeated are held before the loss of the
    /// connection becomes visible.
    fn end(
        &self,
        mut waiting: Vec<(CorrelationId, PendingRequest)>,
        taken: u64,
        why: &str,
        state: MutexGuard<'_, State>,
    ) {
        waiting.sort_unstable_by_key(|(_, waiting)| waiting.number);
        let mut failed = Vec::new();
        for (correlation, mut waiting) in waiting {
            let failure = match waiting.number > taken || is_retryable(waiting.id) {
                true => self.not_sent(why),
                false => {
                    let text = format!(
                        "no answer from member {} to {} which was on its way there, its outcome is not known: {why}",
                        self.member, waiting.id
                    );
                    Failure::new(ErrorKind::Indeterminate, text)
                }
            };
            match std::mem::replace(&mut waiting.to, To::Nobody) {
                To::Client(repeatable) if repeatable.may_repeat_after(failure.kind) => repeatable.fail(&failure),
                to => failed.push((correlation, to, failure)),
            }
            self.traffic.end(&waiting);
        }
        drop(state);
        let outbox = &self.traffic.link.outbox;
        for (correlation, to, failure) in failed {
            match to {
                To::Client(_) => outbox.append_answer(|out| failure.encode(correlation, out)),
                To::Taker(take) => take(Err(failure), &[]),
                To::Nobody => {}
            }
        }
        outbox.poke();
    }

    fn not_sent(&self, why: &str) -> Box<Failure> {
        let text = format!("no answer from member {}, the request can be sent again: {why}", self.member);
        Failure::new(ErrorKind::NotLeader, text)
    }
}

impl State {
    /// Removes requests from the bytes to be sent.
    fn forget_unsent(&mut self, numbers: HashSet<u64>) {
        if !self.unsent.iter().any(|(number, _)| numbers.contains(number)) {
            return;
        }
        let (mut start, mut bytes, mut unsent) = (0, Vec::new(), Vec::new());
        for (number, end) in std::mem::take(&mut self.unsent) {
            if !numbers.contains(&number) {
                bytes.extend_from_slice(self.bytes.get(start..end).unwrap_or_default());
                unsent.push((number, bytes.len()));
            }
            start = end;
        }
        (self.bytes, self.unsent) = (bytes, unsent);
    }
}

/// Whether a request that may have been executed can be executed once more.
pub(super) fn is_retryable(id: MessageId) -> bool {
    use OperationKind::{Contains, Get, GetAll, Iterate, Journal, Size};
    matches!(kind_of(id), Get | GetAll | Contains | Size | Iterate | Journal)
        || table::find(id).is_some_and(|spec| spec.retryable)
}
