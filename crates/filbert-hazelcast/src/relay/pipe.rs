//! What is on its way from one client's connection to one other member: bytes that wait to be sent, and who awaits which answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_grid::metrics::OperationKind;
use filbert_grid::{ErrorKind, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid, table};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::DoorConfig;
use crate::failure::Failure;
use crate::kinds::kind_of;
use crate::link::Link;

/// A request that may wait for others and is longer than this counts like any other.
const WAIT_BYTES_MAX: usize = 4096;

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
    /// The client, as it is.
    Client,
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
    waiting: HashMap<CorrelationId, Waiting>,
    /// Number of the last request that was pushed, and of the last one that may have been sent.
    pushed: u64,
    taken: u64,
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
        let waiting = Waiting { id, partition, bytes: bytes.len(), waits, number: state.pushed, to };
        self.traffic.begin(self.member, &waiting);
        state.waiting.insert(correlation, waiting);
        state.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// What there is to send.
    pub(super) fn next(&self) -> Next {
        let mut state = self.state.lock();
        if state.broken {
            return Next::Close;
        }
        if !state.bytes.is_empty() {
            state.taken = state.pushed;
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
        let waiting = self.state.lock().waiting.remove(&message.correlation_id());
        let Some(waiting) = waiting else { return };
        self.traffic.end(&waiting);
        match waiting.to {
            To::Client => outbox.append_answer(|out| out.extend_from_slice(bytes)),
            To::Taker(take) => {
                take(Ok(&message), bytes);
                outbox.poke();
            }
            To::Nobody => outbox.poke(),
        }
    }

    /// The connection to the member is over: whoever awaits an answer is told, by what may have become of the request.
    pub(super) fn fail(&self, why: &str) {
        let (waiting, taken) = {
            let mut state = self.state.lock();
            state.broken = true;
            state.bytes = Vec::new();
            (std::mem::take(&mut state.waiting), state.taken)
        };
        for (correlation, waiting) in waiting {
            self.traffic.end(&waiting);
            let failure = match waiting.number > taken || may_be_sent_again(waiting.id) {
                true => self.not_sent(why),
                false => {
                    let text = format!(
                        "the connection to member {} ended while {} was on its way there, its outcome is not known: {why}",
                        self.member, waiting.id
                    );
                    Failure::new(ErrorKind::Indeterminate, text)
                }
            };
            match waiting.to {
                To::Client => self.traffic.link.outbox.append_answer(|out| failure.encode(correlation, out)),
                To::Taker(take) => take(Err(failure), &[]),
                To::Nobody => {}
            }
        }
        self.traffic.link.outbox.poke();
        self.filled.notify_one();
    }

    fn not_sent(&self, why: &str) -> Box<Failure> {
        let text = format!("no answer from member {}, the request can be sent again: {why}", self.member);
        Failure::new(ErrorKind::NotLeader, text)
    }
}

/// Whether a request that may have been done can be done once more.
fn may_be_sent_again(id: MessageId) -> bool {
    use OperationKind::{Contains, Get, GetAll, Iterate, Journal, Size};
    matches!(kind_of(id), Get | GetAll | Contains | Size | Iterate | Journal)
        || table::find(id).is_some_and(|spec| spec.retryable)
}
