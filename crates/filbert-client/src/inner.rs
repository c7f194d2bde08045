//! What all handles of one client share: its settings, the way from a partition to a connection, the cluster's view.

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
    slots::SlotId,
};

/// Where a call is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the owner of a partition, or to any member if the owner is not known or not connected: it passes the call on.
    Partition(PartitionId),
    /// To any member, in turn.
    Any,
    /// To the member at the other end of a connection, where a cursor lives.
    Connection(ConnectionId),
}

impl Target {
    /// The partition as a request's header has it.
    pub(crate) fn partition(self) -> i32 {
        match self {
            Target::Partition(partition) => i32::try_from(partition.0).unwrap_or(-1),
            Target::Any | Target::Connection(_) => -1,
        }
    }
}

/// Which connection leads to which partition's owner. Rebuilt when the cluster changes, read by every call.
#[derive(Default)]
pub(crate) struct Routes {
    /// By partition.
    pub(crate) owners: Vec<Option<Arc<Connection>>>,
    /// All connections.
    pub(crate) all: Vec<Arc<Connection>>,
    pub(crate) partition_count: u32,
}

/// See the module's head.
pub(crate) struct Inner {
    pub(crate) config: ClientConfig,
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) routes: RwLock<Routes>,
    pub(crate) cluster: Mutex<Cluster>,
    /// Tells the keeper task that a connection closed or the cluster's view changed.
    pub(crate) changed: Arc<Notify>,
    /// Compact schemas that this client has announced.
    pub(crate) schemas: Mutex<HashMap<SchemaId, Arc<Schema>>>,
    shut_down: AtomicBool,
    next_connection: AtomicUsize,
    next_thread: AtomicI64,
    next_reference: AtomicI64,
    random: AtomicU64,
}

/// The thread id of calls that choose none.
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

    /// Sends an encoded request and returns where its answer will come.
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

    /// The next of the open connections, and the member at its other end.
    pub(crate) fn next_connection(&self) -> Option<(ConnectionId, Uuid)> {
        let cluster = self.cluster.lock();
        let mut open: Vec<_> = cluster.connections.iter().filter(|(_, connection)| !connection.is_closed()).collect();
        open.sort_unstable_by_key(|(member, _)| **member);
        let at = self.next_connection.fetch_add(1, Ordering::Relaxed).checked_rem(open.len())?;
        open.get(at).map(|(member, connection)| (connection.id, **member))
    }

    /// The partition of a key.
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

    /// Ends all connections, and with them the calls in flight.
    pub(crate) fn close(&self) {
        self.begin_shutdown();
        let connections: Vec<_> = {
            let mut cluster = self.cluster.lock();
            *self.routes.write() = Routes::default();
            cluster.connections.drain().map(|(_, connection)| connection).collect()
        };
        connections.iter().for_each(|connection| connection.close("the client was shut down"));
        self.changed.notify_one();
    }

    /// Waits until no connection has a call in flight, or `at_most`.
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

    /// A thread id that no other lock owner of this client has.
    pub(crate) fn new_thread(&self) -> i64 {
        self.next_thread.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that makes a lock call recognizable when it is sent twice.
    pub(crate) fn new_reference(&self) -> i64 {
        self.next_reference.fetch_add(1, Ordering::Relaxed)
    }

    /// Random enough to spread retries: splitmix64, by Sebastiano Vigna.
    pub(crate) fn random(&self) -> u64 {
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
