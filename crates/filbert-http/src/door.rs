//! The listening socket and the tasks of its connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{fmt, io, net::SocketAddr};

use axum::Router;
use filbert_grid::Grid;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::shared::Shared;
use crate::{HttpConfig, connection, routes};

/// Connections that the system may keep for us until they are accepted: a whole pool of clients that reconnects at once
/// after a restart.
const BACKLOG: u32 = 4096;

/// How long accepting pauses when the system has no more descriptors or memory for connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HttpDoorError {
    /// None of the ports could be listened on.
    #[error("cannot listen on {address} for HTTP{}", more_ports(.tried))]
    Listen {
        /// The first address tried.
        address: SocketAddr,
        /// How many ports were tried, from that of `address` on.
        tried: u16,
        /// What the system said to the last one.
        source: io::Error,
    },
}

fn more_ports(tried: &u16) -> String {
    if *tried > 1 { format!(" nor on the {} ports after it", tried - 1) } else { String::new() }
}

/// A listening door. [`HttpDoor::run`] serves clients through it.
pub struct HttpDoor {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDoor").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Figures of a door at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HttpDoorStatistics {
    /// Open connections.
    pub connections: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections turned away since the start, since there were too many.
    pub refused: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Bytes of bodies that are being received or worked on.
    pub body_bytes: usize,
}

/// Looks at a door from outside while it runs.
#[derive(Clone)]
pub struct HttpMonitor {
    shared: Arc<Shared>,
}

impl fmt::Debug for HttpMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpMonitor").field(&self.statistics()).finish()
    }
}

impl HttpMonitor {
    /// The figures now.
    pub fn statistics(&self) -> HttpDoorStatistics {
        let counters = &self.shared.counters;
        HttpDoorStatistics {
            connections: counters.connections.load(Ordering::Relaxed),
            accepted: counters.accepted.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
            body_bytes: self.shared.body_bytes(),
        }
    }
}

impl HttpDoor {
    /// Listens on the first free port of the configured ones.
    ///
    /// # Errors
    ///
    /// No port is free, or the address is not one of this machine.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[allow(clippy::unused_async, reason = "a listening socket needs the runtime that the caller awaits in")]
    pub async fn bind(grid: Arc<Grid>, config: HttpConfig) -> Result<HttpDoor, HttpDoorError> {
        let first = config.listen;
        // Port 0 is any free port: there is no next one.
        let tries = if config.port_auto_increment && first.port() != 0 { config.port_count.max(1) } else { 1 };
        let mut tried = 0;
        loop {
            let mut address = first;
            address.set_port(first.port().saturating_add(tried));
            tried += 1;
            match listen(address) {
                Ok(listener) => {
                    let error = |source| HttpDoorError::Listen { address, tried, source };
                    let address = listener.local_addr().map_err(error)?;
                    debug!("listening on {address} for HTTP");
                    let shared = Arc::new(Shared::new(grid, HttpConfig { listen: address, ..config }));
                    shared.grid.metrics().add_door(&shared);
                    return Ok(HttpDoor { listener, address, shared });
                }
                Err(source) => {
                    let is_taken = source.kind() == io::ErrorKind::AddrInUse;
                    if !is_taken || tried >= tries || address.port() == u16::MAX {
                        return Err(HttpDoorError::Listen { address: first, tried, source });
                    }
                    info!("port {} is taken, trying the next one", address.port());
                }
            }
        }
    }

    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// To look at the door while it runs.
    pub fn monitor(&self) -> HttpMonitor {
        HttpMonitor { shared: self.shared.clone() }
    }

    /// Serves clients until `shutdown` is ready. Then no more connections are accepted, requests that were read are
    /// answered if that takes no longer than the close timeout, and connections are closed.
    ///
    /// Cancel safety: dropping the future closes all connections at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        let (close, closing) = watch::channel(false);
        let router = routes::router(&self.shared);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(finished) = tasks.join_next() => forget(finished),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(&mut tasks, stream, peer, &router, &closing),
                    Err(error) => {
                        // Errors of one connection are over with it; a lack of descriptors is not.
                        warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        self.shared.stopping.store(true, Ordering::Release);
        let HttpDoor { listener, shared, .. } = self;
        drop(listener);
        debug!("closing {} connections of HTTP", tasks.len());
        close.send_replace(true);
        let all = async {
            while let Some(finished) = tasks.join_next().await {
                forget(finished)
            }
        };
        if tokio::time::timeout(shared.config.close_timeout, all).await.is_err() {
            warn!("{} connections of HTTP are cut off: they did not finish within close_timeout", tasks.len());
            tasks.shutdown().await;
        }
    }

    fn admit(
        &self,
        tasks: &mut JoinSet<()>,
        stream: TcpStream,
        peer: SocketAddr,
        router: &Router,
        closing: &watch::Receiver<bool>,
    ) {
        let counters = &self.shared.counters;
        if counters.connections.load(Ordering::Relaxed) >= self.shared.config.connections_max {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            let limit = self.shared.config.connections_max;
            warn!(%peer, "connection refused: there are {limit} already, see connections_max");
            return;
        }
        // Answers are written in large pieces, so there is nothing to gain from delaying them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, "connection broken: {error}");
            return;
        }
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(self.shared.clone());
        let serving = connection::serve(self.shared.clone(), router.clone(), stream, closing.clone());
        tasks.spawn(async move {
            let _place = place;
            serving.await;
        });
    }
}

/// One of the connections that there may be, until it is dropped.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn forget(finished: Result<(), tokio::task::JoinError>) {
    if let Err(error) = finished {
        tracing::error!("a connection's task failed: {error}");
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A member restarted on its port must come up at once, while connections of the last one time out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
