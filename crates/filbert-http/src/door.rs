//! The listening socket and the tasks of its connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{fmt, net::SocketAddr};

use axum::Router;
use filbert_grid::Grid;
use filbert_listen::{ListenError, Listener, Port};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::config::HttpConfig;
use crate::shared::Shared;
use crate::{connection, routes};

/// The clients that the door serves, for errors.
const CLIENTS: &str = "HTTP";

/// A listening door. [`HttpDoor::run`] serves its clients.
pub struct HttpDoor {
    listener: Listener,
    shared: Arc<Shared>,
}

impl fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDoor").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

/// The statistics of a door at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HttpDoorStatistics {
    /// The number of open connections.
    pub connections: usize,
    /// The number of connections that were accepted since the start.
    pub accepted: u64,
    /// The number of connections that were refused since the start because there were too many.
    pub refused: u64,
    /// The number of requests since the start.
    pub requests: u64,
    /// Bytes of bodies that are being received or processed.
    pub body_bytes: usize,
}

/// Reads the statistics of a running door.
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
    /// The current statistics.
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
    /// Reserves exactly the configured port, for a listener that is handed to
    /// [`HttpDoor::with_listener`].
    ///
    /// # Errors
    ///
    /// The port is not free, or the address does not belong to this machine.
    pub fn reserve(config: &HttpConfig) -> Result<Port, ListenError> {
        Port::reserve(config.listen, CLIENTS)
    }

    /// Listens on the first free port of the configured range.
    ///
    /// # Errors
    ///
    /// No port is free, or the address does not belong to this machine.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[allow(clippy::unused_async, reason = "a listening socket needs the runtime that the caller awaits in")]
    pub async fn bind(grid: Arc<Grid>, config: HttpConfig) -> Result<HttpDoor, ListenError> {
        let ports = if config.port_auto_increment { config.port_count } else { 1 };
        let listener = Listener::bind(config.listen, ports, CLIENTS)?;
        Ok(HttpDoor::with_listener(grid, config, listener))
    }

    /// A door with an existing listener.
    pub fn with_listener(grid: Arc<Grid>, config: HttpConfig, listener: Listener) -> HttpDoor {
        let shared = Arc::new(Shared::new(grid, HttpConfig { listen: listener.address(), ..config }));
        shared.grid.metrics().add_door(&shared);
        HttpDoor { listener, shared }
    }

    /// The address of the listening socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.address()
    }

    /// A monitor of the door, for use while the door runs.
    pub fn monitor(&self) -> HttpMonitor {
        HttpMonitor { shared: self.shared.clone() }
    }

    /// Serves clients until `shutdown` is ready. Then no more connections are accepted. Requests
    /// that were read are answered if this takes no longer than the close timeout. Then the
    /// connections are closed.
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
                Some(finished) = tasks.join_next() => report(finished),
                (stream, peer) = self.listener.accept() => self.admit(&mut tasks, stream, peer, &router, &closing),
            }
        }
        self.shared.stopping.store(true, Ordering::Release);
        let HttpDoor { listener, shared } = self;
        drop(listener);
        debug!("closing {} connections of HTTP", tasks.len());
        close.send_replace(true);
        let all = async {
            while let Some(finished) = tasks.join_next().await {
                report(finished)
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
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let open = OpenConnection(self.shared.clone());
        let serving = connection::serve(self.shared.clone(), router.clone(), stream, closing.clone());
        tasks.spawn(async move {
            let _open = open;
            serving.await;
        });
    }
}

/// Counts one open connection until it is dropped.
struct OpenConnection(Arc<Shared>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn report(finished: Result<(), tokio::task::JoinError>) {
    if let Err(error) = finished {
        tracing::error!("a connection's task failed: {error}");
    }
}
