//! Applies changes to entries: changes one key in place, and waits for keys that others hold.

use std::time::Duration;

use filbert_functions::ending::Limits;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::replication::SubmitError;
use filbert_grid::{Caller, Change, GridError, Map, ParkedReply, Reply};
use tokio::sync::oneshot;

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The change was made.
    Made,
    /// The entry was not as expected, and nothing was changed.
    Differs,
}

/// The pause between two attempts while leaders change.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Whether nothing was changed and the same change may succeed soon: leaders of a cluster change,
/// or are overloaded.
pub(crate) fn is_passing(error: &GridError) -> bool {
    matches!(error, GridError::Submit(SubmitError::NotLeader { .. } | SubmitError::Overloaded { .. }))
}

/// Waits for keys that others have locked or claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<'m> {
    pub(crate) map: &'m Map,
    /// The limits that may end the statement before it changes rows, if any.
    pub(crate) limits: Option<&'m Limits>,
    /// The maximum waiting time in milliseconds, counted from the start of each wait.
    pub(crate) wait_ms: i64,
}

impl Waiting<'_> {
    /// Waits until a key is free.
    ///
    /// # Errors
    /// The wait took too long, or the member is shutting down.
    pub(crate) async fn until_free(self, key: &[u8]) -> Result<(), SqlError> {
        let (sender, receiver) = oneshot::channel();
        // If the statement was cancelled, nobody receives the reply.
        self.park(key, Box::new(move |reply| _ = sender.send(reply.map(|_| ()))));
        match receiver.await.unwrap_or(Err(GridError::NotActive)) {
            // The leader that knew the waiting statements has lost its leadership: the next leader
            // is asked.
            Err(error) if is_passing(&error) => {
                tokio::time::sleep(PAUSE).await;
                Ok(())
            }
            waited => waited.map_err(not_free),
        }
    }

    /// Blocks this thread until a key is free.
    ///
    /// # Errors
    /// Like [`Waiting::until_free`].
    pub(crate) fn block_until_free(self, key: &[u8]) -> Result<(), SqlError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.park(key, Box::new(move |reply| _ = sender.send(reply.map(|_| ()))));
        match receiver.recv().unwrap_or(Err(GridError::NotActive)) {
            Err(error) if is_passing(&error) => {
                std::thread::sleep(PAUSE);
                Ok(())
            }
            waited => waited.map_err(not_free),
        }
    }

    fn park(self, key: &[u8], reply: ParkedReply) {
        let partition = self.map.partition_of(key);
        let change = Change::Await { key }.to_owned();
        self.map.change_within(partition, Caller::default(), change, self.wait_ms, reply);
    }
}

/// The error for a key that did not become free.
pub(crate) fn not_free(error: GridError) -> SqlError {
    match error {
        GridError::LockTimeout { .. } => SqlError::from(error).with_sqlstate("55P03"),
        error => error.into(),
    }
}

pub(crate) fn outcome(reply: &Reply<'_>) -> Outcome {
    match reply {
        Reply::Flag(false) | Reply::Previous(Some(_)) => Outcome::Differs,
        _ => Outcome::Made,
    }
}

/// The error of an INSERT with a key that exists.
pub(crate) fn duplicate_key() -> SqlError {
    SqlError::new(SqlErrorCode::Generic, "Duplicate key").with_sqlstate("23505")
}
