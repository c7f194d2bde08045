//! The error type of the embedded API.

use filbert_data::DataError;
use filbert_grid::GridError;
use filbert_grid::query::SqlError;
#[cfg(feature = "server")]
use filbert_hazelcast::ListenError;
#[cfg(feature = "server")]
use filbert_postgres::PostgresDoorError;
use thiserror::Error;

/// An error of the embedded API.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid setting.
    #[error("wrong configuration")]
    Configuration(#[source] GridError),
    /// The member cannot listen for clients on the requested address.
    #[cfg(feature = "server")]
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// PostgreSQL's drivers cannot be served: the address, a certificate or a user's verifier is
    /// invalid.
    #[cfg(feature = "server")]
    #[error(transparent)]
    ListenPostgres(#[from] PostgresDoorError),
    /// The member cannot join the cluster.
    #[cfg(feature = "server")]
    #[error(transparent)]
    Cluster(#[from] filbert_member::MemberError),
    /// A thread of the member could not be started.
    #[error("cannot start a thread of the member")]
    Thread(#[from] std::io::Error),
    /// The member rejected an operation.
    #[error(transparent)]
    Grid(GridError),
    /// A key or value cannot be serialized, or a stored key or value is not of the map's types.
    #[error("cannot convert {what} of map {map:?}")]
    Data {
        /// `a key` or `a value`.
        what: &'static str,
        /// The map's name.
        map: String,
        /// The conversion error.
        #[source]
        source: DataError,
    },
    /// An unlock by a caller that does not hold the lock.
    #[error("the key of map {map:?} is not locked by this thread or owner")]
    NotLockOwner {
        /// The map's name.
        map: String,
    },
    /// An invalid SQL statement, or a value that cannot be computed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The member was shut down during a wait.
    #[error("the member was shut down while an operation waited for a locked key")]
    ShutDown,
}

impl From<GridError> for Error {
    fn from(error: GridError) -> Error {
        match error {
            error @ (GridError::InvalidConfiguration(_) | GridError::AmbiguousPattern { .. }) => {
                Error::Configuration(error)
            }
            GridError::NotActive => Error::ShutDown,
            error => Error::Grid(error),
        }
    }
}
