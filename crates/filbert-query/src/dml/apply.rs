//! Applying changes to entries from a query's threads, where waiting for a locked key is no harm.

use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{Caller, Change, Expiry, GridError, Map, Millis, PutMode, Refused, Reply};
use tokio::sync::oneshot;

/// How long a statement waits for a key that a client has locked.
const LOCK_WAIT_MS: i64 = 60_000;

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was made.
    Made,
    /// The entry was not as expected: nothing was changed.
    Differs,
}

/// Entries of one map, changed one by one.
pub(crate) struct Changes<'m> {
    map: &'m Map,
    now: Millis,
}

impl<'m> Changes<'m> {
    pub(crate) fn new(map: &'m Map, now: Millis) -> Self {
        Changes { map, now }
    }

    /// Writes an entry that is not there yet.
    pub(crate) async fn insert(&self, key: &[u8], value: &[u8]) -> Result<Outcome, SqlError> {
        self.change(Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::IfAbsent }).await
    }

    /// Writes a new value if the old one is still there.
    pub(crate) async fn replace(&self, key: &[u8], expected: &[u8], value: &[u8]) -> Result<Outcome, SqlError> {
        self.change(Change::ReplaceIfSame { key, expected, value }).await
    }

    /// Takes an entry out if its value is still the same.
    pub(crate) async fn remove(&self, key: &[u8], expected: &[u8]) -> Result<Outcome, SqlError> {
        self.change(Change::RemoveIfSame { key, expected }).await
    }

    /// Waits until a key that is locked is free.
    pub(crate) async fn until_free(&self, key: &[u8]) -> Result<(), SqlError> {
        // No value is without a header: nothing is removed.
        self.remove(key, &[]).await.map(|_| ())
    }

    /// Waits in this thread until a key that is locked is free.
    pub(crate) fn block_until_free(&self, key: &[u8]) -> Result<(), SqlError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = Box::new(move |reply: Result<Reply<'_>, GridError>| {
            let _ = sender.send(reply.map(|_| ()));
        });
        let deadline = Some(self.now.plus(LOCK_WAIT_MS));
        let nothing = Change::RemoveIfSame { key, expected: &[] }.to_owned();
        self.map.change_when_free(self.map.partition_of(key), Caller::default(), nothing, deadline, reply);
        match receiver.recv() {
            Ok(free) => Ok(free?),
            Err(_) => Err(GridError::NotActive.into()),
        }
    }

    async fn change(&self, change: Change<'_>) -> Result<Outcome, SqlError> {
        let key = change.key().unwrap_or_default();
        let partition = self.map.partition_of(key);
        match self.map.change(partition, Caller::default(), change, |reply| outcome(&reply)) {
            Ok(outcome) => Ok(outcome),
            Err(Refused::Error(error)) => Err(error.into()),
            Err(Refused::Locked { .. }) => {
                let (sender, receiver) = oneshot::channel();
                let deadline = Some(self.now.plus(LOCK_WAIT_MS));
                let reply = Box::new(move |reply: Result<Reply<'_>, GridError>| {
                    // Nobody waits any more if the statement was cancelled.
                    let _ = sender.send(reply.map(|reply| outcome(&reply)));
                });
                self.map.change_when_free(partition, Caller::default(), change.to_owned(), deadline, reply);
                match receiver.await {
                    Ok(outcome) => Ok(outcome?),
                    Err(_) => Err(GridError::NotActive.into()),
                }
            }
        }
    }
}

pub(crate) fn outcome(reply: &Reply<'_>) -> Outcome {
    match reply {
        Reply::Flag(false) | Reply::Previous(Some(_)) => Outcome::Differs,
        _ => Outcome::Made,
    }
}

/// The error of an INSERT of a key that is there.
pub(crate) fn duplicate_key() -> SqlError {
    SqlError::new(SqlErrorCode::Generic, "Duplicate key").with_sqlstate("23505")
}
