//! The listening socket, the tasks of its connections, and the watch, which ends silent
//! connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{collections::HashMap, fmt, net::SocketAddr, sync::Arc, time::Duration};

use filbert_grid::metrics::{DoorFigures, DoorMetrics};
use filbert_grid::{Cluster, Grid, MemoryBudget};
use filbert_listen::{Guesses, ListenError, Listener, Port};
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tracing::{debug, warn};

use crate::{
    client_link::ClientLink, config::DoorConfig, connection::Connection, handlers::continuous_query, outbox::End,
    query_cache::QueryCaches, session::Session, views::Views,
};

/// The clients that the door serves, for errors.
const CLIENTS: &str = "Hazelcast's clients";

/// The minimum and the maximum interval between two checks of the connections.
const WATCH_INTERVAL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// The time for which changes of the cluster are collected before clients are notified: a member
/// that leaves moves many partitions at once.
const VIEW_PAUSE: Duration = Duration::from_millis(50);

/// The open connections, by number.
type Links = HashMap<u64, Watched>;

struct Watched {
    link: Arc<ClientLink>,
    /// The value of [`ClientLink::reads`] at the last check. `since` is the time of its last
    /// change.
    reads: u64,
    since: Instant,
    opened: Instant,
    closing_since: Option<Instant>,
}

/// A listening door. [`Door::run`] serves clients through it.
pub struct Door {
    listener: Listener,
    grid: Arc<Grid>,
    config: Arc<DoorConfig>,
    links: Arc<Mutex<Links>>,
    counts: Arc<Counts>,
    caches: Arc<QueryCaches>,
    views: Arc<Views>,
    /// The share of the memory budget for events that wait for clients.
    events: MemoryBudget,
    /// The share of the memory budget for replies that are being built or wait for clients.
    replies: MemoryBudget,
    guesses: Arc<Guesses>,
}

/// The door's counters for the member's metrics.
struct Counts {
    monitor: Monitor,
    address: SocketAddr,
    accepted: AtomicU64,
    refused: AtomicU64,
}

impl DoorMetrics for Counts {
    fn figures(&self) -> DoorFigures {
        let DoorStatistics { connections, buffer_bytes } = self.monitor.statistics();
        let [accepted, refused] = [&self.accepted, &self.refused].map(|count| count.load(Ordering::Relaxed));
        DoorFigures { name: "hazelcast", address: self.address, connections, accepted, refused, buffer_bytes }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

/// The statistics of a door at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DoorStatistics {
    /// The number of open connections.
    pub connections: usize,
    /// Bytes of the connections' buffers: incomplete requests, and unread replies and events.
    pub buffer_bytes: usize,
}

/// Reads the statistics of a running door from outside.
#[derive(Clone)]
pub struct Monitor {
    links: Arc<Mutex<Links>>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.statistics()).finish()
    }
}

impl Monitor {
    /// The current statistics. Visits every connection.
    pub fn statistics(&self) -> DoorStatistics {
        let links = self.links.lock();
        DoorStatistics {
            connections: links.len(),
            buffer_bytes: links.values().map(|watched| watched.link.held_bytes()).sum(),
        }
    }
}

impl Door {
    /// Reserves exactly the configured port, for a listener that is handed to
    /// [`Door::with_listener`].
    ///
    /// # Errors
    ///
    /// The port is not free, or the address does not belong to this machine.
    pub fn reserve(config: &DoorConfig) -> Result<Port, ListenError> {
        Port::reserve(config.listen, CLIENTS)
    }

    /// Listens on the first free port of the configured ones.
    ///
    /// # Errors
    ///
    /// No port is free, or the address does not belong to this machine.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    #[allow(clippy::unused_async, reason = "a listening socket needs the runtime that the caller awaits in")]
    pub async fn bind(grid: Arc<Grid>, config: DoorConfig) -> Result<Door, ListenError> {
        let ports = if config.port_auto_increment { config.port_count } else { 1 };
        let listener = Listener::bind(config.listen, ports, CLIENTS)?;
        Ok(Door::with_listener(grid, config, listener))
    }

    /// A door with an existing listener.
    pub fn with_listener(grid: Arc<Grid>, config: DoorConfig, listener: Listener) -> Door {
        let links: Arc<Mutex<Links>> = Arc::default();
        let caches = Arc::new(QueryCaches::new(grid.budget()));
        let (monitor, address) = (Monitor { links: links.clone() }, listener.address());
        let counts = Counts { monitor, address, accepted: AtomicU64::new(0), refused: AtomicU64::new(0) };
        let counts = Arc::new(counts);
        grid.metrics().add_door(&counts);
        let views = Arc::default();
        // Half of the budget is reserved for other buffers, even if no client reads its events.
        let events_bytes_max = config.events_bytes_max.min(grid.budget().bytes_max() / 2);
        let events = grid.budget().share(events_bytes_max, "events_bytes_max");
        let replies =
            grid.budget().share(grid.budget().bytes_max() / 2, "buffers_bytes_max, of which replies have half");
        let guesses = Arc::new(Guesses::new(config.guesses));
        Door { listener, grid, config: Arc::new(config), links, counts, caches, views, events, replies, guesses }
    }

    /// The address on which the door accepts connections.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.address()
    }

    /// A monitor for the statistics of the door while it runs.
    pub fn monitor(&self) -> Monitor {
        Monitor { links: self.links.clone() }
    }

    /// Serves clients until `shutdown` is ready. Then no more connections are accepted, requests
    /// that were read are answered, replies are written as far as clients read them within the
    /// close timeout, and connections are closed. The close tells clients that they must look for
    /// another member.
    ///
    /// Cancel safety: dropping the future closes all connections at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        let mut watch = tokio::time::interval(self.watch_interval());
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shutdown = std::pin::pin!(shutdown);
        let mut number = 0;
        let mut tell_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = watch.tick() => {
                    self.views.attach(&self.grid);
                    self.check_links();
                }
                () = self.views.changed(), if tell_at.is_none() => tell_at = Some(Instant::now() + VIEW_PAUSE),
                () = tokio::time::sleep_until(tell_at.unwrap_or_else(Instant::now)), if tell_at.is_some() => {
                    tell_at = None;
                    self.follow_cluster();
                }
                Some(finished) = tasks.join_next() => self.forget(finished),
                (stream, peer) = self.listener.accept() => {
                    number += 1;
                    self.admit(&mut tasks, number, stream, peer);
                }
            }
        }
        debug!("closing {} connections to {}", tasks.len(), self.local_addr());
        self.close(&mut tasks, &mut watch).await;
    }

    /// Ends all connections and waits for their tasks.
    async fn close(&self, tasks: &mut JoinSet<u64>, watch: &mut tokio::time::Interval) {
        for watched in self.links.lock().values() {
            watched.link.end(End::Shutdown);
        }
        while !tasks.is_empty() {
            tokio::select! {
                biased;
                _ = watch.tick() => self.check_links(),
                Some(finished) = tasks.join_next() => self.forget(finished),
            }
        }
    }

    fn watch_interval(&self) -> Duration {
        let shortest =
            self.config.heartbeat_timeout.min(self.config.unauthenticated_timeout).min(self.config.close_timeout);
        let shortest = shortest.min(self.config.cursor_idle_timeout).min(self.config.query_cache_orphan_timeout);
        (shortest / 4).clamp(WATCH_INTERVAL.0, WATCH_INTERVAL.1)
    }

    fn admit(&self, tasks: &mut JoinSet<u64>, number: u64, stream: TcpStream, peer: SocketAddr) {
        let mut links = self.links.lock();
        if links.len() >= self.config.connections_max {
            drop(links);
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            warn!(%peer, "connection refused: there are {} already, see connections_max", self.config.connections_max);
            return;
        }
        let local = match stream.local_addr() {
            Ok(local) => local,
            Err(error) => {
                debug!(%peer, "connection broken: {error}");
                return;
            }
        };
        let link = Arc::new(ClientLink::new(peer, self.config.event_buffer_bytes_max, &self.events, &self.replies));
        let now = Instant::now();
        let watched = Watched { link: link.clone(), reads: 0, since: now, opened: now, closing_since: None };
        links.insert(number, watched);
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        drop(links);
        let address = self.config.public_address.clone().unwrap_or_else(|| local.into());
        let session = Session::new(
            self.grid.clone(),
            self.config.clone(),
            link,
            self.caches.clone(),
            self.views.clone(),
            self.guesses.clone(),
            address,
        );
        let connection = Connection::new(stream, session);
        tasks.spawn(async move {
            connection.serve().await;
            number
        });
    }

    fn forget(&self, finished: Result<u64, tokio::task::JoinError>) {
        match finished {
            Ok(number) => {
                self.links.lock().remove(&number);
            }
            Err(error) => {
                // The number of the connection is lost with its task. Links without another
                // reference belong to failed tasks.
                tracing::error!("a connection's task failed: {error}");
                self.links.lock().retain(|_, watched| Arc::strong_count(&watched.link) > 1);
            }
        }
    }

    /// Notifies clients of a change of the cluster, and lets their connections adapt to it.
    fn follow_cluster(&self) {
        self.views.send_changes(&self.grid);
        for watched in self.links.lock().values() {
            watched.link.outbox.poke();
        }
    }

    /// Checks the homes of query caches: other members, which may be lost, and this member, which
    /// is a home only as long as it receives all changes.
    fn check_caches(&self, cluster: &Arc<dyn Cluster>, now: std::time::Instant) {
        let (view, itself) = (cluster.view(), self.grid.member_uuid());
        for (map, standby) in self.caches.follow_homes(now, &view, itself, self.grid.partition_count()) {
            continuous_query::take_over(&self.grid, &self.config, &self.caches, &map, standby);
        }
        if self.caches.is_home() {
            let caches = self.caches.clone();
            cluster.catch_up(Box::new(move |caught_up| {
                // Errors are temporary: changes arrive later, and none is lost.
                if caught_up.is_ok_and(|view| !view.is_complete()) {
                    caches.end_all();
                }
            }));
        }
    }

    /// Ends connections that are silent, do not authenticate, or do not finish closing. Also closes
    /// idle cursors and abandoned query caches.
    fn check_links(&self) {
        let now = Instant::now();
        self.caches.sweep(now.into_std(), self.config.query_cache_orphan_timeout, self.grid.clients());
        if let Some(cluster) = self.grid.cluster() {
            self.check_caches(cluster, now.into_std());
        }
        for watched in self.links.lock().values_mut() {
            let link = &watched.link;
            let reads = link.reads();
            if reads != watched.reads {
                watched.reads = reads;
                watched.since = now;
            }
            link.cursors.close_idle(now.into_std(), self.config.cursor_idle_timeout);
            if link.is_closing() {
                let since = *watched.closing_since.get_or_insert(now);
                if now - since > self.config.close_timeout {
                    link.end(End::Abort);
                }
            } else if !link.is_authenticated() {
                if now - watched.opened > self.config.unauthenticated_timeout {
                    link.end(End::Unauthenticated);
                }
            } else if now - watched.since > self.config.heartbeat_timeout {
                link.end(End::Silent);
            }
        }
    }
}
