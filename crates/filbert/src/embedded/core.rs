//! One map below its types: changes of blobs that wait for locked keys, sync and async.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use filbert_data::{DataError, FromBlob, PartitionId, ToBlob};
use filbert_grid::{Caller, Change, Grid, GridError, Refused, Reply};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::events::Listeners;
use super::lifetime::millis;
use super::{Error, LockOwner};

/// A map of an embedded member, without types.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) grid: Arc<Grid>,
    pub(super) map: Arc<filbert_grid::Map>,
    /// The client UUID under which the embedded API acts.
    pub(super) instance: Uuid,
    pub(super) listeners: Arc<Listeners>,
}

/// How long a change waits for a key that someone else has locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    /// Until the key is free or the member is shut down.
    Ever,
    /// This many milliseconds.
    Millis(i64),
}

/// What a change answers, whether it was made at once or later on another thread.
pub(super) enum Answer<'a> {
    Done,
    Flag(bool),
    Previous(Option<&'a [u8]>),
    NotOwner,
}

/// An [`Answer`] on its way between threads.
enum Outcome {
    Done,
    Flag(bool),
    Previous(Option<Vec<u8>>),
    NotOwner,
}

/// A change that is made, or waits for its key.
pub(super) enum Started<R> {
    Ready(R),
    Waiting(Waiting<R>),
}

/// A change that waits for a locked key.
pub(super) struct Waiting<R> {
    core: Core,
    outcome: oneshot::Receiver<Result<Outcome, GridError>>,
    decode: Decode<R>,
}

impl<R> Started<R> {
    /// The result, waiting for it without blocking the thread.
    ///
    /// Cancel safety: a future that is dropped while it waits leaves its change to be made when the key is free.
    pub(super) async fn finish(self) -> Result<R, Error> {
        match self {
            Started::Ready(result) => Ok(result),
            Started::Waiting(Waiting { core, outcome, decode }) => {
                core.finish(outcome.await.unwrap_or(Err(GridError::NotActive)), decode)
            }
        }
    }

    /// The result, waiting for it on this thread.
    pub(super) fn wait(self) -> Result<R, Error> {
        match self {
            Started::Ready(result) => Ok(result),
            waiting => block_on(waiting.finish()),
        }
    }
}

impl Started<bool> {
    /// As [`Started::finish`]; a wait that was in vain is `false`.
    pub(super) async fn finish_or_false(self) -> Result<bool, Error> {
        match self.finish().await {
            Err(Error::Grid(GridError::LockTimeout { .. })) => Ok(false),
            result => result,
        }
    }

    /// As [`Started::wait`]; a wait that was in vain is `false`.
    pub(super) fn wait_or_false(self) -> Result<bool, Error> {
        block_on(self.finish_or_false())
    }
}

/// Runs a future on this thread. Unlike a runtime's way to block, it may be called from within an async program.
pub(super) fn block_on<R>(future: impl Future<Output = R>) -> R {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Reads what a change answered.
pub(super) type Decode<R> = fn(&Core, Answer<'_>) -> Result<R, Error>;

impl Core {
    /// Makes a change, or begins to wait for its key where someone else has locked it.
    pub(super) fn change<R>(
        &self,
        owner: LockOwner,
        change: Change<'_>,
        wait: Wait,
        decode: Decode<R>,
    ) -> Result<Started<R>, Error> {
        match self.change_now(owner, change, decode) {
            Some(result) => result.map(Started::Ready),
            None => {
                Ok(Started::Waiting(Waiting { core: self.clone(), outcome: self.park(owner, change, wait), decode }))
            }
        }
    }

    /// Makes a change that gives up, with `false`, when the key stays locked for `wait`.
    pub(super) fn try_change(
        &self,
        owner: LockOwner,
        change: Change<'_>,
        wait: Duration,
    ) -> Result<Started<bool>, Error> {
        if wait.is_zero() {
            return self.change_now(owner, change, decode::flag).unwrap_or(Ok(false)).map(Started::Ready);
        }
        self.change(owner, change, Wait::Millis(millis(wait)), decode::flag)
    }

    /// Makes a change at once; `None` when someone else has locked the key.
    pub(super) fn change_now<R>(
        &self,
        owner: LockOwner,
        change: Change<'_>,
        decode: Decode<R>,
    ) -> Option<Result<R, Error>> {
        let partition = self.partition(change.key().unwrap_or_default());
        match self.map.change(partition, self.caller(owner), change, |reply| self.read(reply, decode)) {
            Ok(result) => Some(result),
            Err(Refused::Locked { .. }) => None,
            Err(Refused::Error(error)) => Some(Err(error.into())),
        }
    }

    fn read<R>(&self, reply: Reply<'_>, decode: Decode<R>) -> Result<R, Error> {
        match reply {
            Reply::Done => decode(self, Answer::Done),
            Reply::Flag(flag) => decode(self, Answer::Flag(flag)),
            Reply::Previous(value) => decode(self, Answer::Previous(value.as_deref())),
            Reply::NotOwner { .. } => decode(self, Answer::NotOwner),
            reply => Err(unexpected(&reply)),
        }
    }

    fn park(&self, owner: LockOwner, change: Change<'_>, wait: Wait) -> oneshot::Receiver<Result<Outcome, GridError>> {
        let deadline = match wait {
            Wait::Ever => None,
            Wait::Millis(wait_ms) => Some(self.grid.now().plus(wait_ms)),
        };
        let (sender, receiver) = oneshot::channel();
        let reply = move |reply: Result<Reply<'_>, GridError>| {
            // A receiver that has gone does not want to know.
            let _ = sender.send(reply.and_then(own));
        };
        let partition = self.partition(change.key().unwrap_or_default());
        self.map.change_when_free(partition, self.caller(owner), change.to_owned(), deadline, Box::new(reply));
        receiver
    }

    fn finish<R>(&self, outcome: Result<Outcome, GridError>, decode: Decode<R>) -> Result<R, Error> {
        match outcome? {
            Outcome::Done => decode(self, Answer::Done),
            Outcome::Flag(flag) => decode(self, Answer::Flag(flag)),
            Outcome::Previous(value) => decode(self, Answer::Previous(value.as_deref())),
            Outcome::NotOwner => decode(self, Answer::NotOwner),
        }
    }

    pub(super) fn partition(&self, key: &[u8]) -> PartitionId {
        self.map.partition_of(key)
    }

    pub(super) fn caller(&self, owner: LockOwner) -> Caller {
        Caller { client: self.instance, thread: owner.thread_id() }
    }

    /// Writes a key for the time of a call.
    pub(super) fn with_key<R>(
        &self,
        key: &(impl ToBlob + ?Sized),
        use_key: impl FnOnce(&[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        scratch::with(&scratch::KEY, |bytes| {
            key.write_blob(bytes).map_err(|source| self.data_error("a key", source))?;
            use_key(bytes)
        })
    }

    /// Writes a key and a value for the time of a call.
    pub(super) fn with_entry<R>(
        &self,
        key: &(impl ToBlob + ?Sized),
        value: &(impl ToBlob + ?Sized),
        use_entry: impl FnOnce(&[u8], &[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.with_key(key, |key| {
            scratch::with(&scratch::VALUE, |bytes| {
                value.write_blob(bytes).map_err(|source| self.data_error("a value", source))?;
                use_entry(key, bytes)
            })
        })
    }

    pub(super) fn key<K: FromBlob>(&self, blob: &[u8]) -> Result<K, Error> {
        K::from_blob(blob).map_err(|source| self.data_error("a key", source))
    }

    pub(super) fn value<V: FromBlob>(&self, blob: &[u8]) -> Result<V, Error> {
        V::from_blob(blob).map_err(|source| self.data_error("a value", source))
    }

    pub(super) fn data_error(&self, what: &'static str, source: DataError) -> Error {
        Error::Data { what, map: self.map.name().to_owned(), source }
    }
}

fn own(reply: Reply<'_>) -> Result<Outcome, GridError> {
    Ok(match reply {
        Reply::Done => Outcome::Done,
        Reply::Flag(flag) => Outcome::Flag(flag),
        Reply::Previous(value) => Outcome::Previous(value.map(|value| value.to_vec())),
        Reply::NotOwner { .. } => Outcome::NotOwner,
        reply => return Err(GridError::Internal(format!("a change was answered with {reply:?}"))),
    })
}

fn unexpected(reply: &Reply<'_>) -> Error {
    Error::Grid(GridError::Internal(format!("a change was answered with {reply:?}")))
}

/// The ways to read an answer. One that does not fit its change is a defect of the grid, told as such.
pub(super) mod decode {
    use super::{Answer, Core, Error, FromBlob, GridError};

    pub(in crate::embedded) fn done(core: &Core, answer: Answer<'_>) -> Result<(), Error> {
        match answer {
            Answer::Done | Answer::Flag(_) | Answer::Previous(_) => Ok(()),
            Answer::NotOwner => Err(Error::NotLockOwner { map: core.map.name().to_owned() }),
        }
    }

    pub(in crate::embedded) fn flag(_: &Core, answer: Answer<'_>) -> Result<bool, Error> {
        match answer {
            Answer::Flag(flag) => Ok(flag),
            _ => Err(misfit("a flag")),
        }
    }

    pub(in crate::embedded) fn previous<V: FromBlob>(core: &Core, answer: Answer<'_>) -> Result<Option<V>, Error> {
        match answer {
            Answer::Previous(value) => value.map(|blob| core.value(blob)).transpose(),
            _ => Err(misfit("a value")),
        }
    }

    fn misfit(expected: &str) -> Error {
        Error::Grid(GridError::Internal(format!("a change was not answered with {expected}")))
    }
}

/// Buffers that are used again, so that a small key or value costs no allocation on its way into the grid.
mod scratch {
    use std::cell::Cell;
    use std::thread::LocalKey;

    /// What a thread keeps between calls; a larger buffer goes back to the allocator.
    const KEPT_BYTES_MAX: usize = 64 << 10;

    thread_local! {
        pub(super) static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        pub(super) static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    /// Lends an empty buffer. A call within the call gets another one.
    pub(super) fn with<R>(slot: &'static LocalKey<Cell<Vec<u8>>>, use_buffer: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut buffer = slot.take();
        buffer.clear();
        let result = use_buffer(&mut buffer);
        if buffer.capacity() <= KEPT_BYTES_MAX {
            slot.set(buffer);
        }
        result
    }
}
