//! The listening socket and the tasks of its connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use filbert_grid::Grid;
use filbert_listen::{Guesses, ListenError, Listener, Port};
use tokio::{net::TcpStream, sync::watch, task::JoinSet};
use tracing::{debug, warn};

use crate::{
    config::PostgresConfig,
    connection,
    scram::{BrokenVerifier, Users},
    shared::{Acceptor, Ending, Shared},
    tls::{self, TlsError},
};

/// The clients that the door serves, for errors.
const CLIENTS: &str = "PostgreSQL's clients";

/// The number of connections beyond `connections_max` that are still accepted: to report the limit
/// to the client, or to cancel a statement of another connection.
const RESERVE: usize = 256;

/// The reason why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresDoorError {
    /// Listening failed on all of the ports.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A user's verifier cannot be used.
    #[error(transparent)]
    Verifier(#[from] BrokenVerifier),
}

/// The statistics of a door at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostgresStatistics {
    /// The number of open sessions.
    pub connections: usize,
    /// The number of sessions that were opened since the door was opened.
    pub connections_total: u64,
    /// Bytes of long requests that are not complete yet.
    pub request_bytes: usize,
}

/// Reads the statistics of a running door.
#[derive(Clone, Debug)]
pub struct PostgresMonitor(Arc<Shared>);

impl PostgresMonitor {
    /// The current statistics.
    pub fn statistics(&self) -> PostgresStatistics {
        let Shared { registry, budget, .. } = &*self.0;
        PostgresStatistics {
            connections: registry.open(),
            connections_total: registry.total(),
            request_bytes: budget.used(),
        }
    }
}

/// A listening door for PostgreSQL's clients. [`PostgresDoor::run`] serves them.
#[derive(Debug)]
pub struct PostgresDoor {
    listener: Listener,
    shared: Arc<Shared>,
}

impl PostgresDoor {
    /// Reserves exactly the configured port, for a listener that is handed to
    /// [`PostgresDoor::with_listener`].
    ///
    /// # Errors
    ///
    /// The port is not free, or the address does not belong to this machine.
    pub fn reserve(config: &PostgresConfig) -> Result<Port, ListenError> {
        Port::reserve(config.listen, CLIENTS)
    }

    /// Listens on the first free port of the configured range.
    ///
    /// # Errors
    ///
    /// No port is free, the address does not belong to this machine, or a certificate or verifier
    /// cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[allow(clippy::unused_async, reason = "a listening socket needs the runtime that the caller awaits in")]
    pub async fn bind(grid: Arc<Grid>, config: PostgresConfig) -> Result<PostgresDoor, PostgresDoorError> {
        let ports = if config.port_auto_increment { config.port_count } else { 1 };
        let listener = Listener::bind(config.listen, ports, CLIENTS)?;
        PostgresDoor::with_listener(grid, config, listener)
    }

    /// A door with an existing listener.
    ///
    /// # Errors
    ///
    /// A certificate or verifier cannot be used.
    pub fn with_listener(
        grid: Arc<Grid>,
        config: PostgresConfig,
        listener: Listener,
    ) -> Result<PostgresDoor, PostgresDoorError> {
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?.map(Acceptor);
        let users = Users::new(&config.users)?;
        let budget = grid.budget().share(config.requests_bytes_max, "requests_bytes_max");
        let (passwords, keys) = (Guesses::new(config.guesses), Guesses::new(config.key_guesses));
        let (address, refused, registry) = (listener.address(), AtomicU64::new(0), Arc::default());
        let shared = Arc::new(Shared { grid, config, address, refused, users, tls, registry, budget, passwords, keys });
        shared.grid.metrics().add_door(&shared);
        Ok(PostgresDoor { listener, shared })
    }

    /// The address of the listening socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.address()
    }

    /// A monitor of the door, for use while the door runs.
    pub fn monitor(&self) -> PostgresMonitor {
        PostgresMonitor(self.shared.clone())
    }

    /// Serves clients until `shutdown` is ready. Then no more connections are accepted. Running
    /// statements and open transactions may finish within the close timeout. After it they are
    /// cancelled. All clients are informed that the member stops (SQLSTATE 57P01).
    ///
    /// Cancel safety: dropping the future closes all connections at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (ending, watch) = watch::channel(Ending::NotYet);
        let mut tasks = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(finished) = tasks.join_next() => report(finished),
                (stream, peer) = self.listener.accept() => self.admit(&mut tasks, stream, peer, &watch),
            }
        }
        debug!("closing {} connections to {}", tasks.len(), self.listener.address());
        drop(self.listener);
        ending.send_replace(Ending::WhenDone);
        let wait = self.shared.config.close_timeout;
        if tokio::time::timeout(wait, finish(&mut tasks)).await.is_err() {
            ending.send_replace(Ending::Now);
            self.shared.registry.stop_all();
            // Tasks that still run are dropped with the set.
            let _ = tokio::time::timeout(wait, finish(&mut tasks)).await;
        }
    }

    fn admit(&self, tasks: &mut JoinSet<()>, stream: TcpStream, peer: SocketAddr, ending: &watch::Receiver<Ending>) {
        if tasks.len() >= self.shared.config.connections_max.saturating_add(RESERVE) {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            warn!(%peer, "connection refused: there are {} already, see connections_max", tasks.len());
            return;
        }
        tasks.spawn(connection::serve(self.shared.clone(), stream, peer, ending.clone()));
    }
}

async fn finish(tasks: &mut JoinSet<()>) {
    while let Some(finished) = tasks.join_next().await {
        report(finished);
    }
}

fn report(finished: Result<(), tokio::task::JoinError>) {
    if let Err(error) = finished {
        tracing::error!("a connection's task failed: {error}");
    }
}
