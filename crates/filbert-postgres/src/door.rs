//! The listening socket, and the tasks of its connections.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use filbert_grid::Grid;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

use crate::{
    BrokenVerifier, PostgresConfig, TlsError,
    connection::{self, Ending},
    link::Budget,
    registry::Registry,
    scram::Users,
    tls,
};

/// Connections that the system may keep for us until they are accepted.
const BACKLOG: u32 = 4096;
/// How long accepting pauses when the system has no more descriptors or memory for connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections beyond `connections_max` that are taken in to be told so, or to cancel what another one runs.
const RESERVE: usize = 256;

/// Why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresDoorError {
    /// None of the ports could be listened on.
    #[error("cannot listen on {address}{} for PostgreSQL's clients", more_ports(.tried))]
    Listen {
        /// The first address tried.
        address: SocketAddr,
        /// How many ports were tried, from that of `address` on.
        tried: u16,
        /// What the system said to the last one.
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A user's verifier cannot be used.
    #[error(transparent)]
    Verifier(#[from] BrokenVerifier),
}

fn more_ports(tried: &u16) -> String {
    if *tried > 1 { format!(" nor on the {} ports after it", tried - 1) } else { String::new() }
}

/// What all connections of a door share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) grid: Arc<Grid>,
    pub(crate) config: PostgresConfig,
    pub(crate) users: Users,
    pub(crate) tls: Option<Acceptor>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) budget: Arc<Budget>,
}

/// What takes connections into TLS.
pub(crate) struct Acceptor(pub(crate) TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

/// Figures of a door at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostgresStatistics {
    /// Open sessions.
    pub connections: usize,
    /// Sessions that were opened since the door was.
    pub connections_total: u64,
}

/// Looks at a door from outside while it runs.
#[derive(Clone, Debug)]
pub struct PostgresMonitor(Arc<Registry>);

impl PostgresMonitor {
    /// The figures now.
    pub fn statistics(&self) -> PostgresStatistics {
        PostgresStatistics { connections: self.0.open(), connections_total: self.0.total() }
    }
}

/// A listening door for PostgreSQL's clients. [`PostgresDoor::run`] serves them through it.
#[derive(Debug)]
pub struct PostgresDoor {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl PostgresDoor {
    /// Listens on the first free port of the configured ones.
    ///
    /// # Errors
    ///
    /// No port is free, the address is not one of this machine, or a certificate or verifier cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[allow(clippy::unused_async, reason = "a listening socket needs the runtime that the caller awaits in")]
    pub async fn bind(grid: Arc<Grid>, config: PostgresConfig) -> Result<PostgresDoor, PostgresDoorError> {
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?.map(Acceptor);
        let users = Users::new(&config.users)?;
        let listener = listen_on_first(&config)?;
        let unknown = |source| PostgresDoorError::Listen { address: config.listen, tried: 1, source };
        let address = listener.local_addr().map_err(unknown)?;
        debug!("listening on {address} for PostgreSQL's clients");
        let budget = Arc::new(Budget::new(config.requests_bytes_max));
        let shared = Shared { grid, config, users, tls, registry: Arc::default(), budget };
        Ok(PostgresDoor { listener, address, shared: Arc::new(shared) })
    }

    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// To look at the door while it runs.
    pub fn monitor(&self) -> PostgresMonitor {
        PostgresMonitor(self.shared.registry.clone())
    }

    /// Serves clients until `shutdown` is ready. Then no more connections are accepted, statements that run may end within the close
    /// timeout, after which they are cancelled, and all clients are told that the member stops (SQLSTATE 57P01).
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
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(&mut tasks, stream, peer, &watch),
                    Err(error) => {
                        // Errors of one connection are over with it; a lack of descriptors is not.
                        warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(self.listener);
        debug!("closing {} connections to {}", tasks.len(), self.address);
        ending.send_replace(Ending::WhenDone);
        let wait = self.shared.config.close_timeout;
        if tokio::time::timeout(wait, finish(&mut tasks)).await.is_err() {
            ending.send_replace(Ending::Now);
            self.shared.registry.cancel_all();
            // What still does not end is dropped with the set.
            let _ = tokio::time::timeout(wait, finish(&mut tasks)).await;
        }
    }

    fn admit(&self, tasks: &mut JoinSet<()>, stream: TcpStream, peer: SocketAddr, ending: &watch::Receiver<Ending>) {
        if tasks.len() >= self.shared.config.connections_max.saturating_add(RESERVE) {
            warn!(%peer, "connection refused: there are {} already, see connections_max", tasks.len());
            return;
        }
        // Replies are written whole batches at a time, so there is nothing to gain from delaying them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, "connection broken: {error}");
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

fn listen_on_first(config: &PostgresConfig) -> Result<TcpListener, PostgresDoorError> {
    let first = config.listen;
    // Port 0 is any free port: there is no next one.
    let tries = if config.port_auto_increment && first.port() != 0 { config.port_count.max(1) } else { 1 };
    let mut tried = 0;
    loop {
        let mut address = first;
        address.set_port(first.port().saturating_add(tried));
        tried += 1;
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(source) => {
                let is_taken = source.kind() == io::ErrorKind::AddrInUse;
                if !is_taken || tried >= tries || address.port() == u16::MAX {
                    return Err(PostgresDoorError::Listen { address: first, tried, source });
                }
                info!("port {} is taken, trying the next one", address.port());
            }
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A member restarted on its port must come up at once, while connections of the last one time out.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it: clients whose machine is gone are noticed, sooner or later.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
