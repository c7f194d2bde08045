//! The state that all handles of one client share: its configuration, the routes, and the view of
//! the cluster.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use filbert_data::{
    PartitionId,
    compact::{Schema, SchemaId},
    partition_of,
};
use filbert_wire::MessageId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    ClientConfig, ClientError, SqlError,
    cluster::Cluster,
    connection::{Connection, ConnectionId, NotSent},
    routes::Routes,
    slots::SlotId,
};

/// The destination of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The owner of a partition, or any member if the owner is unknown or not connected. That
    /// member forwards the call.
    Partition(PartitionId),
    /// Any member, in rotation.
    Any,
    /// The member of this connection. Used for cursors, which belong to one member.
    Connection(ConnectionId),
}

impl Target {
    /// The partition id in the header of a request; -1 for none.
    pub(crate) fn partition(self) -> i32 {
        match self {
            Target::Partition(partition) => i32::try_from(partition.0).unwrap_or(-1),
            Target::Any | Target::Connection(_) => -1,
        }
    }
}

/// The shared state of a client.
pub(crate) struct Inner {
    pub(crate) config: ClientConfig,
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) routes: RwLock<Routes>,
    pub(crate) cluster: Mutex<Cluster>,
    /// Notifies the connection manager that a connection closed or the view of the cluster changed.
    pub(crate) changed: Arc<Notify>,
    /// The Compact schemas that this client has sent.
    pub(crate) schemas: Mutex<HashMap<SchemaId, Arc<Schema>>>,
    shut_down: AtomicBool,
    next_connection: AtomicUsize,
    next_thread: AtomicI64,
    next_reference: AtomicI64,
    random: AtomicU64,
}

/// The default thread id.
pub(crate) const DEFAULT_THREAD: i64 = 1;

impl Inner {
    pub(crate) fn new(config: ClientConfig) -> Self {
        let uuid = Uuid::new_v4();
        let name = config.name.clone().unwrap_or_else(|| format!("filbert-{}", uuid.simple()));
        Self {
            config,
            uuid,
            name,
            routes: RwLock::default(),
            cluster: Mutex::default(),
            changed: Arc::new(Notify::new()),
            schemas: Mutex::default(),
            shut_down: AtomicBool::new(false),
            next_connection: AtomicUsize::new(0),
            next_thread: AtomicI64::new(DEFAULT_THREAD + 1),
            next_reference: AtomicI64::new(1),
            random: AtomicU64::new(uuid.as_u64_pair().1),
        }
    }

    /// Sends an encoded request. Returns the connection and the slot of the response.
    #[inline]
    pub(crate) fn dispatch(
        &self,
        target: Target,
        id: MessageId,
        request: &mut [u8],
    ) -> Result<(Arc<Connection>, SlotId), ClientError> {
        let routes = self.routes.read();
        let mut refused = None;
        let owner = match target {
            Target::Partition(partition) => routes.owners.get(partition.0 as usize).and_then(Option::as_ref),
            Target::Any => None,
            Target::Connection(wanted) => {
                let Some(connection) = routes.all.iter().find(|connection| connection.id == wanted) else {
                    return Err(SqlError::connection_lost().into());
                };
                return match connection.send(request, None) {
                    Ok(slot) => Ok((connection.clone(), slot)),
                    Err(NotSent::Full) => {
                        Err(ClientError::Overloaded { request: id, address: connection.address.clone() })
                    }
                    Err(NotSent::Closed) => Err(SqlError::connection_lost().into()),
                };
            }
        };
        if let Some(connection) = owner {
            match connection.send(request, None) {
                Ok(slot) => return Ok((connection.clone(), slot)),
                Err(NotSent::Full) => refused = Some(connection),
                Err(NotSent::Closed) => {}
            }
        }
        if refused.is_none() {
            let first = self.next_connection.fetch_add(1, Ordering::Relaxed);
            for offset in 0..routes.all.len() {
                let at = first.wrapping_add(offset) % routes.all.len();
                let Some(connection) = routes.all.get(at) else { continue };
                match connection.send(request, None) {
                    Ok(slot) => return Ok((connection.clone(), slot)),
                    Err(NotSent::Full) => refused = Some(connection),
                    Err(NotSent::Closed) => {}
                }
            }
        }
        Err(match refused {
            Some(connection) => ClientError::Overloaded { request: id, address: connection.address.clone() },
            None => ClientError::NotConnected { request: id },
        })
    }

    /// Returns the next open connection, in rotation, and its member. Members with data come first:
    /// a member that leaves the cluster is shown as one without data.
    pub(crate) fn next_connection(&self) -> Option<(ConnectionId, Uuid)> {
        let cluster = self.cluster.lock();
        let mut open: Vec<_> = cluster.connections.iter().filter(|(_, connection)| !connection.is_closed()).collect();
        if open.iter().any(|(member, _)| cluster.holds_data(**member)) {
            open.retain(|(member, _)| cluster.holds_data(**member));
        }
        open.sort_unstable_by_key(|(member, _)| **member);
        let at = self.next_connection.fetch_add(1, Ordering::Relaxed).checked_rem(open.len())?;
        open.get(at).map(|(member, connection)| (connection.id, **member))
    }

    /// Updates the routes of new calls from the view of the cluster.
    pub(crate) fn publish(&self, cluster: &Cluster) {
        *self.routes.write() = cluster.routes();
    }

    /// The partition of a serialized key.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8]) -> PartitionId {
        partition_of(key, self.routes.read().partition_count)
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire)
    }

    /// Refuses new calls from now on.
    pub(crate) fn begin_shutdown(&self) {
        self.shut_down.store(true, Ordering::Release);
    }

    /// Closes all connections and drops all listeners. The calls in flight fail, and the streams
    /// of events end.
    pub(crate) fn close(&self) {
        self.begin_shutdown();
        let (connections, registrations) = {
            let mut cluster = self.cluster.lock();
            *self.routes.write() = Routes::default();
            let connections: Vec<_> = cluster.connections.drain().map(|(_, connection)| connection).collect();
            (connections, std::mem::take(&mut cluster.registrations))
        };
        connections.iter().for_each(|connection| connection.close("the client was shut down"));
        // Outside of the lock: a handler may own other handles of the client. The handler of a
        // stream owns the sender of its events.
        drop(registrations);
        self.changed.notify_one();
    }

    /// Waits until no connection has a call in flight, but no longer than `at_most`.
    pub(crate) async fn drain(&self, at_most: Duration) {
        let deadline = tokio::time::Instant::now() + at_most;
        while tokio::time::Instant::now() < deadline {
            let is_idle = self.cluster.lock().connections.values().all(|connection| connection.is_idle());
            if is_idle {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Returns a new thread id, unique within this client.
    pub(crate) fn new_thread(&self) -> i64 {
        self.next_thread.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a new reference id. It lets the member recognize a lock request that is sent twice.
    pub(crate) fn new_reference(&self) -> i64 {
        self.next_reference.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a pseudo-random number, good enough to spread retries: splitmix64, by Sebastiano
    /// Vigna.
    pub(crate) fn random(&self) -> u64 {
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
