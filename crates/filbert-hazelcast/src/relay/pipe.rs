//! What is on its way from one client's connection to one other member: bytes that wait to be sent, and who awaits which answer.
//!
//! A request ends by its answer, with the connection, or when another member leads its partition. What was not sent, or changes nothing,
//! is made again then (`held.rs`); the outcome of another request is unknown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filbert_grid::metrics::OperationKind;
use filbert_grid::{ErrorKind, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid, table};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::held::Again;
use crate::DoorConfig;
use crate::failure::Failure;
use crate::kinds::kind_of;
use crate::link::Link;

/// A request that may wait for others and is longer than this counts like any other.
const WAIT_BYTES_MAX: usize = 4096;

/// After so long without a sign of life from a member that was sent something, its connection counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// How long a change is waited for at a member that does not lead its partition any more: who hands over in order answers by then.
const MOVED_MAX: Duration = Duration::from_secs(1);

/// What is on its way to all other members of one client's connection.
pub(crate) struct Traffic {
    pub(super) link: Arc<Link>,
    pub(super) config: Arc<DoorConfig>,
    /// Bytes of requests that are not answered, but for those that wait for others.
    bytes: AtomicUsize,
    /// Requests that wait for others.
    waits: AtomicUsize,
    /// Requests that are not answered by partition, and the member that they went to.
    partitions: Mutex<HashMap<PartitionId, (Uuid, usize)>>,
    /// The client has read replies.
    pub(super) drained: Notify,
    /// A connection to a member has ended, some time ago.
    broken: AtomicBool,
}

impl Traffic {
    pub(super) fn new(link: Arc<Link>, config: Arc<DoorConfig>) -> Self {
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

    /// The member at which requests about a partition are not answered yet.
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

    fn begin(&self, member: Uuid, waiting: &Waiting) {
        if waiting.waits {
            self.waits.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if let Some(partition) = waiting.partition {
            self.partitions.lock().entry(partition).or_insert((member, 0)).1 += 1;
        }
        self.bytes.fetch_add(waiting.bytes, Ordering::SeqCst);
    }

    /// Before the answer is told: by then the connection looks for what may go on.
    fn end(&self, waiting: &Waiting) {
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

/// Takes the answer that a member gives to a request, or the reason why there is none.
pub(super) type Taker = Box<dyn FnOnce(Result<&Message<'_>, Box<Failure>>, &[u8]) + Send>;

/// Whom an answer is for.
pub(super) enum To {
    /// The client, as it is; unless the request is to be made again.
    Client(Again),
    /// Whoever takes it here.
    Taker(Taker),
    /// Nobody.
    Nobody,
}

struct Waiting {
    id: MessageId,
    partition: Option<PartitionId>,
    bytes: usize,
    /// Whether its end is up to others.
    waits: bool,
    number: u64,
    /// When its outcome counts as unknown, as another member leads its partition.
    ends_at: Option<Instant>,
    to: To,
}

/// A request on its way.
pub(super) struct Parcel<'a> {
    /// Of the request that the client sent.
    pub(super) id: MessageId,
    pub(super) correlation: CorrelationId,
    pub(super) partition: Option<PartitionId>,
    pub(super) bytes: &'a [u8],
    pub(super) to: To,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// Numbers of the requests in them, and where each ends.
    unsent: Vec<(u64, usize)>,
    waiting: HashMap<CorrelationId, Waiting>,
    /// Number of the last request that was pushed, and of the last one that may have been sent.
    pushed: u64,
    taken: u64,
    /// Since when the member was sent something and has shown no sign of life.
    asked: Option<Instant>,
    /// Nothing is read from the member, as the client does not read.
    is_paused: bool,
    closed: bool,
    broken: bool,
}

/// One way to one member.
pub(crate) struct Pipe {
    pub(super) traffic: Arc<Traffic>,
    pub(super) member: Uuid,
    state: Mutex<State>,
    pub(super) filled: Notify,
}

/// What the task of a pipe has to do next.
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

    /// Takes a request. Whoever pushes calls [`Notify::notify_one`] of `filled` when a batch is over.
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
        let waiting = Waiting { id, partition, bytes: bytes.len(), waits, number: state.pushed, ends_at: None, to };
        self.traffic.begin(self.member, &waiting);
        state.waiting.insert(correlation, waiting);
        state.bytes.extend_from_slice(bytes);
        let sent = (state.pushed, state.bytes.len());
        state.unsent.push(sent);
        Ok(())
    }

    /// Something was sent to the member, or it took more of it.
    pub(super) fn sent(&self, progress: bool) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if progress || state.asked.is_none() {
            state.asked = Some(now);
        }
    }

    /// The member has shown a sign of life.
    pub(super) fn heard(&self) {
        self.state.lock().asked = None;
    }

    /// Whether nothing is read from the member.
    pub(super) fn set_paused(&self, is_paused: bool) {
        let mut state = self.state.lock();
        state.is_paused = is_paused;
        state.asked = None;
    }

    /// Looks at the time: changes whose partitions have moved are not waited for any longer. Whether the member is silent.
    pub(super) fn look(&self, now: Instant) -> bool {
        let is_silent = {
            let state = self.state.lock();
            let asked = state.asked.filter(|_| !state.is_paused);
            asked.is_some_and(|asked| now.saturating_duration_since(asked) >= SILENCE_MAX)
        };
        let is_over = |waiting: &Waiting| waiting.ends_at.is_some_and(|at| at <= now);
        self.end_some(is_over, "another member leads its partition");
        is_silent
    }

    /// Whether an answer is awaited.
    pub(super) fn is_awaited(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// Follows who leads: requests about partitions that others lead are made again where they may be, and changes are not waited for
    /// much longer.
    pub(super) fn follow(&self, has_moved: impl Fn(PartitionId) -> bool, now: Instant) {
        let mut state = self.state.lock();
        let State { waiting, taken, .. } = &mut *state;
        let mut any = false;
        for waiting in waiting.values_mut() {
            let moved = waiting.partition.is_some_and(&has_moved);
            if !moved || !matches!(waiting.to, To::Client(_)) {
                waiting.ends_at = None;
            } else if waiting.number > *taken || may_be_sent_again(waiting.id) {
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

    fn end_some(&self, is_over: impl Fn(&Waiting) -> bool, why: &str) {
        let mut state = self.state.lock();
        let over: Vec<_> = state.waiting.extract_if(|_, waiting| is_over(waiting)).collect();
        if over.is_empty() {
            return;
        }
        state.forget_unsent(over.iter().map(|(_, waiting)| waiting.number).collect());
        let taken = state.taken;
        self.end(over, taken, why, state);
    }

    /// What there is to send.
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

    /// The client is gone: what it sent goes out, and no answer is awaited.
    pub(super) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.filled.notify_one();
    }

    /// Takes a message that the member sent.
    pub(super) fn arrived(&self, bytes: &[u8]) {
        // Sound: the splitter found its frames.
        let Ok(message) = Message::parse(bytes) else { return };
        let outbox = &self.traffic.link.outbox;
        if message.is_event() {
            outbox.append(|out| out.extend_from_slice(bytes));
            return;
        }
        let waiting = {
            let mut state = self.state.lock();
            state.asked = None;
            state.waiting.remove(&message.correlation_id())
        };
        let Some(mut waiting) = waiting else { return };
        match std::mem::replace(&mut waiting.to, To::Nobody) {
            To::Client(again) if again.may_follow_answer(&message) => {
                // Before the next one of its partition may go on.
                let _waits = again.hold(bytes.to_vec());
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

    /// The connection to the member is over: whoever awaits an answer is told, by what may have become of the request.
    pub(super) fn fail(&self, why: &str) {
        let mut state = self.state.lock();
        state.broken = true;
        state.bytes = Vec::new();
        state.unsent = Vec::new();
        let (waiting, taken) = (state.waiting.drain().collect(), state.taken);
        self.end(waiting, taken, why, state);
        self.filled.notify_one();
    }

    /// Ends requests without an answer. Those that are made again wait for that before anybody sees that the way is lost.
    fn end(&self, mut waiting: Vec<(CorrelationId, Waiting)>, taken: u64, why: &str, state: MutexGuard<'_, State>) {
        waiting.sort_unstable_by_key(|(_, waiting)| waiting.number);
        let mut told = Vec::new();
        for (correlation, mut waiting) in waiting {
            let failure = match waiting.number > taken || may_be_sent_again(waiting.id) {
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
                To::Client(again) if again.may_follow(failure.kind) => again.fail(&failure),
                to => told.push((correlation, to, failure)),
            }
            self.traffic.end(&waiting);
        }
        drop(state);
        let outbox = &self.traffic.link.outbox;
        for (correlation, to, failure) in told {
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
    /// Takes requests out of what is to be sent.
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

/// Whether a request that may have been done can be done once more.
pub(super) fn may_be_sent_again(id: MessageId) -> bool {
    use OperationKind::{Contains, Get, GetAll, Iterate, Journal, Size};
    matches!(kind_of(id), Get | GetAll | Contains | Size | Iterate | Journal)
        || table::find(id).is_some_and(|spec| spec.retryable)
}
