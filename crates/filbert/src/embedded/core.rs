//! An untyped map: changes of blobs that wait for locked keys, sync and async.

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

/// An untyped map of an embedded member.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) grid: Arc<Grid>,
    pub(super) map: Arc<filbert_grid::Map>,
    /// The client UUID of the embedded API.
    pub(super) instance: Uuid,
    pub(super) listeners: Arc<Listeners>,
}

/// How long a change waits for a key that another owner has locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    /// Until the key is unlocked or the member is shut down.
    Ever,
    /// This number of milliseconds.
    Millis(i64),
}

/// The result of a change, which was executed immediately or later on another thread.
pub(super) enum Answer<'a> {
    Done,
    Flag(bool),
    Previous(Option<&'a [u8]>),
    NotOwner,
}

/// An owned [`Answer`], to send between threads.
enum Outcome {
    Done,
    Flag(bool),
    Previous(Option<Vec<u8>>),
    NotOwner,
}

/// A change that was executed or waits for its key.
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
    /// Returns the result. Waits for it without blocking the thread.
    ///
    /// Cancel safety: if the future is dropped while it waits, its change is still applied when the
    /// key is unlocked.
    pub(super) async fn finish(self) -> Result<R, Error> {
        match self {
            Started::Ready(result) => Ok(result),
            Started::Waiting(Waiting { core, outcome, decode }) => {
                core.finish(outcome.await.unwrap_or(Err(GridError::NotActive)), decode)
            }
        }
    }

    /// Returns the result. Blocks this thread until it is there.
    pub(super) fn wait(self) -> Result<R, Error> {
        match self {
            Started::Ready(result) => Ok(result),
            waiting => block_on(waiting.finish()),
        }
    }
}

impl Started<bool> {
    /// As [`Started::finish`], but a lock timeout is `false`.
    pub(super) async fn finish_or_false(self) -> Result<bool, Error> {
        match self.finish().await {
            Err(Error::Grid(GridError::LockTimeout { .. })) => Ok(false),
            result => result,
        }
    }

    /// As [`Started::wait`], but a lock timeout is `false`.
    pub(super) fn wait_or_false(self) -> Result<bool, Error> {
        block_on(self.finish_or_false())
    }
}

/// Runs a future on this thread. Unlike the blocking functions of a runtime, it may be called
/// inside an async program.
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

/// Converts the result of a change.
pub(super) type Decode<R> = fn(&Core, Answer<'_>) -> Result<R, Error>;

impl Core {
    /// Executes a change, or starts to wait for its key if another owner has locked it.
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

    /// Executes a change. The result is `false` if the key stays locked for `wait`.
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

    /// Executes a change immediately. Returns `None` if another owner has locked the key.
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
            // The caller may have dropped the receiver.
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

    /// Serializes a key into a buffer that is valid during the call.
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

    /// Serializes a key and a value into buffers that are valid during the call.
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

/// Decoders of results. A result that does not fit its change is a bug of the grid and is reported
/// as an internal error.
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

/// Reusable buffers. They avoid allocations for small keys and values on the way into the grid.
mod scratch {
    use std::cell::Cell;
    use std::thread::LocalKey;

    /// The maximum size of a buffer that a thread keeps between calls. A larger buffer is freed.
    const KEPT_BYTES_MAX: usize = 64 << 10;

    thread_local! {
        pub(super) static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        pub(super) static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    /// Provides an empty buffer. A nested call gets a different buffer.
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
