//! The state that all connections of a door share: the grid, the settings, the users, the open
//! sessions, and whether the door closes.
//!
//! It must not know how a connection is served.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use filbert_grid::{
    Grid, MemoryBudget,
    metrics::{DoorFigures, DoorMetrics},
};
use filbert_listen::Guesses;
use tokio_rustls::TlsAcceptor;

use crate::{config::PostgresConfig, registry::Registry, scram::Users};

/// The state that all connections of a door share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) grid: Arc<Grid>,
    pub(crate) config: PostgresConfig,
    pub(crate) address: SocketAddr,
    /// The number of connections that were refused because there were too many.
    pub(crate) refused: AtomicU64,
    pub(crate) users: Users,
    pub(crate) tls: Option<Acceptor>,
    pub(crate) registry: Arc<Registry>,
    /// The memory of requests that are not complete yet.
    pub(crate) budget: MemoryBudget,
    /// The counts of wrong passwords and of wrong cancel keys, by address.
    pub(crate) passwords: Guesses,
    pub(crate) keys: Guesses,
}

impl DoorMetrics for Shared {
    fn figures(&self) -> DoorFigures {
        DoorFigures {
            name: "postgres",
            address: self.address,
            connections: self.registry.open(),
            accepted: self.registry.total(),
            refused: self.refused.load(Ordering::Relaxed),
            buffer_bytes: self.budget.used(),
        }
    }
}

/// Accepts TLS handshakes.
pub(crate) struct Acceptor(pub(crate) TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

/// Whether the door is about to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The door stays open.
    NotYet,
    /// Sessions end when they are idle and have no open transaction.
    WhenDone,
    /// Sessions end at once.
    Now,
}
