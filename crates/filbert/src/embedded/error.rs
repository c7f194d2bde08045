//! What can go wrong with an embedded member, in one type.

use filbert_data::DataError;
use filbert_grid::GridError;
use filbert_grid::query::SqlError;
use filbert_hazelcast::ListenError;
use filbert_postgres::PostgresDoorError;
use thiserror::Error;

/// An error of the embedded API.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting cannot be used.
    #[error("wrong configuration")]
    Configuration(#[source] GridError),
    /// Clients cannot be served on the address asked for.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// PostgreSQL's drivers cannot be served: the address asked for, a certificate or a user's verifier is wrong.
    #[error(transparent)]
    ListenPostgres(#[from] PostgresDoorError),
    /// The member cannot be one of the cluster.
    #[error(transparent)]
    Cluster(#[from] filbert_member::MemberError),
    /// A thread of the member could not be started.
    #[error("cannot start a thread of the member")]
    Thread(#[from] std::io::Error),
    /// The member refused an operation.
    #[error(transparent)]
    Grid(GridError),
    /// A key or value could not be written as a client would write it, or what is stored is not of the map's types.
    #[error("cannot convert {what} of map {map:?}")]
    Data {
        /// `a key` or `a value`.
        what: &'static str,
        /// The map's name.
        map: String,
        /// What is wrong with it.
        #[source]
        source: DataError,
    },
    /// An unlock by someone who does not hold the lock.
    #[error("the key of map {map:?} is not locked by this thread or owner")]
    NotLockOwner {
        /// The map's name.
        map: String,
    },
    /// A statement is wrong, or a value of it cannot be computed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The member was shut down while the operation waited.
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
