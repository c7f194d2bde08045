//! Changes of one key. They are made in place, or parked in the grid until the key's lock is free,
//! and answered then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use filbert_grid::replication::WhenLocked;
use filbert_grid::{Change, ErrorKind, GridError, ParkedReply, PartitionId, Refused, Reply};
use filbert_wire::table::map::{try_lock, try_put, try_remove};
use filbert_wire::{CorrelationId, Message, MessageId, Request};
use parking_lot::Mutex;

use crate::{
    client_link::ClientLink,
    failure::{Failure, Outcome},
    relay::RepeatableRequest,
    session::Session,
};

/// The time for which a change waits for a key that is locked by another caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until the call timeout. Then the request fails.
    Call,
    /// Until the key is free or the client disconnects.
    Ever,
    /// For this number of milliseconds. Then the reply is `false`. Zero or less: no wait.
    OrFalse(i64),
}

/// The common fields of a request about one key, for [`change`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfKey<'a> {
    pub(crate) map: &'a str,
    pub(crate) thread: i64,
    pub(crate) wait: Wait,
}

/// Makes a change and appends the reply, which `answer` encodes. If the key is locked by another
/// caller, parks the change.
#[inline]
pub(crate) fn change<A>(
    session: &mut Session,
    message: &Message<'_>,
    of: OfKey<'_>,
    change: Change<'_>,
    answer: A,
) -> Outcome
where
    A: FnOnce(Reply<'_>, CorrelationId, &mut Vec<u8>) -> Outcome + Copy + Send + 'static,
{
    let correlation = message.correlation_id();
    let partition = session.partition(change.key().unwrap_or_default());
    let caller = session.caller(of.thread);
    if session.is_replicated {
        return submit(session, message, of, partition, change, answer);
    }
    let map = session.handles.find(&session.grid, of.map)?;
    let out = &mut session.out;
    match map.change(partition, caller, change, |reply| answer(reply, correlation, out)) {
        Ok(outcome) => outcome,
        Err(Refused::Locked { .. }) => submit(session, message, of, partition, change, answer),
        Err(Refused::Error(error)) => Err(error.into()),
    }
}

/// Submits a change that is not answered immediately: its key is locked, or it goes through the log
/// at the end of this batch of requests.
#[cold]
#[inline(never)]
fn submit<A>(
    session: &mut Session,
    message: &Message<'_>,
    of: OfKey<'_>,
    partition: PartitionId,
    change: Change<'_>,
    answer: A,
) -> Outcome
where
    A: FnOnce(Reply<'_>, CorrelationId, &mut Vec<u8>) -> Outcome + Copy + Send + 'static,
{
    let (caller, when_locked) = (session.caller(of.thread), when_locked(session, of.wait));
    let reply = answer_later(session, message, partition, of.wait, answer);
    let map = session.handles.find(&session.grid, of.map)?;
    match map.submit(&mut session.submissions, partition, caller, change, when_locked, reply) {
        Ok(_) => Ok(()),
        Err(Refused::Locked { .. }) => answer(Reply::Flag(false), message.correlation_id(), &mut session.out),
        Err(Refused::Error(error)) => Err(error.into()),
    }
}

/// A copy of a request that waits for a key for a limited time. Its timeout is reduced by the time
/// that it has already waited. `None` for other requests.
pub(crate) fn having_waited(message: &Message<'_>, waited: Duration) -> Option<Vec<u8>> {
    let (correlation, partition, mut bytes) = (message.correlation_id(), message.partition_id(), Vec::new());
    let left = |timeout: i64| timeout.saturating_sub(millis(waited)).max(0);
    match message.id() {
        try_lock::ID => {
            let request: try_lock::Request<'_> = message.decode().ok()?;
            try_lock::Request { timeout: left(request.timeout), ..request }.encode(correlation, partition, &mut bytes);
        }
        try_put::ID => {
            let request: try_put::Request<'_> = message.decode().ok()?;
            try_put::Request { timeout: left(request.timeout), ..request }.encode(correlation, partition, &mut bytes);
        }
        try_remove::ID => {
            let request: try_remove::Request<'_> = message.decode().ok()?;
            try_remove::Request { timeout: left(request.timeout), ..request }.encode(
                correlation,
                partition,
                &mut bytes,
            );
        }
        _ => return None,
    }
    Some(bytes)
}

fn when_locked(session: &Session, wait: Wait) -> WhenLocked {
    let from_now = |wait_ms| WhenLocked::Wait(Some(session.grid.now().plus(wait_ms)));
    match wait {
        Wait::Call => from_now(millis(session.config.call_timeout)),
        Wait::Ever => WhenLocked::Wait(None),
        Wait::OrFalse(wait_ms) if wait_ms <= 0 => WhenLocked::Answer,
        Wait::OrFalse(wait_ms) => from_now(wait_ms),
    }
}

/// The function that answers a request. Any thread with the reply may call it.
fn answer_later<A>(
    session: &Session,
    message: &Message<'_>,
    partition: PartitionId,
    wait: Wait,
    answer: A,
) -> ParkedReply
where
    A: FnOnce(Reply<'_>, CorrelationId, &mut Vec<u8>) -> Outcome + Send + 'static,
{
    let (id, correlation, link) = (message.id(), message.correlation_id(), session.link.clone());
    let repeatable = session.repeatable(message, Some(partition));
    Box::new(move |result: Result<Reply<'_>, GridError>| {
        if let (Err(error), Some(repeatable)) = (&result, repeatable)
            && repeatable.may_repeat_after(error.kind())
        {
            repeatable.fail(&Box::<Failure>::from(error.clone()));
            return;
        }
        link.outbox.append_answer(|out| {
            let start = out.len();
            let outcome = match result {
                Ok(Reply::Locked { .. }) => answer(Reply::Flag(false), correlation, out),
                Ok(reply) => answer(reply, correlation, out),
                Err(GridError::LockTimeout { .. }) if wait != Wait::Call => {
                    answer(Reply::Flag(false), correlation, out)
                }
                Err(GridError::LockTimeout { map }) => Err(timed_out(id, &map)),
                Err(error) => Err(error.into()),
            };
            if let Err(failure) = outcome {
                out.truncate(start);
                failure.encode(correlation, out);
            }
        });
    })
}

fn timed_out(id: MessageId, map: &str) -> Box<Failure> {
    Failure::new(ErrorKind::Timeout, format!("{id} timed out: the key is locked by someone else (map {map:?})"))
}

/// The previous value, from the reply to a change that returns it.
#[inline]
pub(crate) fn previous<'r>(reply: &'r Reply<'_>) -> Result<Option<&'r [u8]>, Box<Failure>> {
    match reply {
        Reply::Previous(value) => Ok(value.as_deref()),
        reply => Err(misfit(reply)),
    }
}

/// Whether the change had an effect, from the reply to a change that returns this.
#[inline]
pub(crate) fn flag(reply: &Reply<'_>) -> Result<bool, Box<Failure>> {
    match reply {
        Reply::Flag(flag) => Ok(*flag),
        reply => Err(misfit(reply)),
    }
}

/// Checks that the change was made, whatever its reply contains.
#[inline]
pub(crate) fn done(reply: &Reply<'_>) -> Outcome {
    match reply {
        Reply::Done | Reply::Flag(_) | Reply::Previous(_) | Reply::Count(_) => Ok(()),
        reply => Err(misfit(reply)),
    }
}

#[cold]
fn misfit(reply: &Reply<'_>) -> Box<Failure> {
    match reply {
        Reply::NotOwner { owner } => {
            GridError::NotLockOwner { owner: owner.map(|owner| (owner.client, owner.thread)) }.into()
        }
        reply => GridError::Internal(format!("a change was answered with {reply:?}")).into(),
    }
}

/// A request that changes many keys and has one reply. Keys that are locked by other callers are
/// waited for separately, while other keys are already changed. As in Hazelcast, the whole is not
/// atomic.
pub(crate) struct Batch {
    shared: Arc<BatchState>,
    /// Whether a change was parked, so the reply may come from another thread.
    parked: bool,
}

struct BatchState {
    link: Arc<ClientLink>,
    correlation: CorrelationId,
    id: MessageId,
    /// The number of parked changes, plus one for the request itself while it is being read.
    pending: AtomicUsize,
    /// The first error of a parked change. An error for an unknown outcome replaces it.
    failed: Mutex<Option<Box<Failure>>>,
    /// The request, for a repetition in a cluster.
    repeatable: Mutex<Option<RepeatableRequest>>,
    answer: fn(CorrelationId, &mut Vec<u8>),
}

impl Batch {
    /// Begins a batch. `answer` encodes its reply.
    pub(crate) fn new(session: &Session, message: &Message<'_>, answer: fn(CorrelationId, &mut Vec<u8>)) -> Self {
        let shared = Arc::new(BatchState {
            link: session.link.clone(),
            correlation: message.correlation_id(),
            id: message.id(),
            pending: AtomicUsize::new(1),
            failed: Mutex::new(None),
            repeatable: Mutex::new(session.repeatable(message, session.partition_in_header(message))),
            answer,
        });
        Self { shared, parked: false }
    }

    /// Makes one change, or parks it. An error ends the batch. Changes that were made remain.
    pub(crate) fn change(&mut self, session: &mut Session, map: &str, change: Change<'_>) -> Outcome {
        let partition = session.partition(change.key().unwrap_or_default());
        let nobody = session.caller(0);
        let deadline = session.grid.now().plus(millis(session.config.call_timeout));
        if session.is_replicated {
            return self.submit(session, map, partition, change);
        }
        let map = session.map(map)?;
        // The request names no thread. A lock of the same client must not block the client's own
        // write, so the thread that holds the lock counts as the caller.
        let holder = |key| map.lock_state(partition, key).map(|lock| lock.owner);
        let caller = match map.change(partition, nobody, change, |reply| done(&reply)) {
            Err(Refused::Locked { .. }) => {
                change.key().and_then(holder).filter(|owner| owner.client == nobody.client).unwrap_or(nobody)
            }
            Ok(outcome) => return outcome,
            Err(Refused::Error(error)) => return Err(error.into()),
        };
        match map.change(partition, caller, change, |reply| done(&reply)) {
            Ok(outcome) => outcome,
            Err(Refused::Error(error)) => Err(error.into()),
            Err(Refused::Locked { .. }) => {
                map.change_when_free(partition, caller, change.to_owned(), Some(deadline), self.expect_one());
                Ok(())
            }
        }
    }

    /// Submits one change, which goes through the log.
    #[cold]
    fn submit(&mut self, session: &mut Session, map: &str, partition: PartitionId, change: Change<'_>) -> Outcome {
        let nobody = session.caller(0);
        let deadline = session.grid.now().plus(millis(session.config.call_timeout));
        let map = session.handles.find(&session.grid, map)?;
        let holder = change.key().and_then(|key| map.lock_state(partition, key)).map(|lock| lock.owner);
        // As above: a thread of the same client that holds the lock counts as the caller.
        let caller = holder.filter(|owner| owner.client == nobody.client).unwrap_or(nobody);
        let when_locked = WhenLocked::Wait(Some(deadline));
        let reply = self.expect_one();
        match map.submit(&mut session.submissions, partition, caller, change, when_locked, reply) {
            Ok(_) => Ok(()),
            Err(Refused::Error(error)) => Err(error.into()),
            Err(Refused::Locked { .. }) => Err(GridError::Internal("a change did not wait".to_owned()).into()),
        }
    }

    /// The function that handles the reply to a later change.
    fn expect_one(&mut self) -> ParkedReply {
        self.parked = true;
        self.shared.pending.fetch_add(1, Ordering::AcqRel);
        let shared = self.shared.clone();
        Box::new(move |result: Result<Reply<'_>, GridError>| shared.parked_change_done(result))
    }

    /// Answers the request, or leaves the reply to the last parked change.
    pub(crate) fn finish(self, session: &mut Session) {
        if self.parked {
            self.shared.finish_one();
        } else {
            (self.shared.answer)(self.shared.correlation, &mut session.out);
        }
    }
}

impl BatchState {
    fn parked_change_done(&self, result: Result<Reply<'_>, GridError>) {
        let outcome = match result {
            Ok(reply) => done(&reply),
            Err(GridError::LockTimeout { map }) => Err(timed_out(self.id, &map)),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = outcome {
            let mut failed = self.failed.lock();
            if failure.kind == ErrorKind::Indeterminate {
                *failed = Some(failure);
            } else {
                failed.get_or_insert(failure);
            }
        }
        self.finish_one();
    }

    fn finish_one(&self) {
        if self.pending.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let (failed, repeatable) = (self.failed.lock().take(), self.repeatable.lock().take());
        if let (Some(failure), Some(repeatable)) = (&failed, repeatable)
            && repeatable.may_repeat_after(failure.kind)
        {
            repeatable.fail(failure);
            return;
        }
        self.link.outbox.append_answer(|out| match failed {
            Some(failure) => failure.encode(self.correlation, out),
            None => (self.answer)(self.correlation, out),
        });
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_waits_for_the_remaining_time() {
        let key: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 7];
        let mut bytes = Vec::new();
        let request = try_lock::Request { name: "m", key, thread_id: 3, lease: 4, timeout: 1_000, reference_id: 5 };
        request.encode(CorrelationId(9), 11, &mut bytes);
        let left = |waited_ms| {
            let waited = Duration::from_millis(waited_ms);
            let bytes = having_waited(&Message::parse(&bytes).unwrap(), waited).unwrap();
            let message = Message::parse(&bytes).unwrap();
            assert_eq!((message.correlation_id(), message.partition_id()), (CorrelationId(9), 11));
            let request: try_lock::Request<'_> = message.decode().unwrap();
            assert_eq!((request.name, request.key, request.thread_id), ("m", key, 3));
            assert_eq!((request.lease, request.reference_id), (4, 5));
            request.timeout
        };
        assert_eq!([0, 300, 1_000, 5_000].map(left), [1_000, 700, 0, 0]);
    }
}
