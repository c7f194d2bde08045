//! Connected clients: who they are, and what goes when they go.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_store::{Change, MapId};
use parking_lot::RwLock;
use uuid::Uuid;

use crate::errors::GridError;
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::replication::Submissions;

/// Names a connection for as long as the member lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Who a client says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The client's UUID: one for all of its connections, and the owner of its locks.
    pub uuid: Uuid,
    /// The kind of client, for example `PYH`.
    pub kind: String,
    /// The client library's version.
    pub version: String,
    /// The instance's name.
    pub name: String,
    /// Labels that its user gave it.
    pub labels: Vec<String>,
    /// Where this connection comes from; `None` for one within the process.
    pub address: Option<SocketAddr>,
}

/// What is known of a connected client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientView {
    /// Who it says it is, as of its latest connection.
    pub info: ClientInfo,
    /// Number of its connections.
    pub connections: usize,
    /// The statistics that it sent last, if it sends any.
    pub statistics: Option<String>,
}

struct Client {
    info: ClientInfo,
    connections: usize,
    statistics: Option<String>,
    may_leave_traces: bool,
}

/// The registry of connected clients.
pub struct Clients {
    by_uuid: RwLock<HashMap<Uuid, Client>>,
    next_connection: AtomicU64,
    statistics_bytes_max: usize,
}

impl Clients {
    pub(crate) fn new(statistics_bytes_max: usize) -> Self {
        Clients { by_uuid: RwLock::default(), next_connection: AtomicU64::new(1), statistics_bytes_max }
    }

    pub(crate) fn add(&self, info: ClientInfo) -> ConnectionId {
        let mut clients = self.by_uuid.write();
        let client = clients.entry(info.uuid).or_insert_with(|| Client {
            info: info.clone(),
            connections: 0,
            statistics: None,
            may_leave_traces: false,
        });
        client.info = info;
        client.connections += 1;
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes one connection of a client away; `true` if it was the last and the client may hold locks or wait for some.
    fn remove(&self, uuid: Uuid) -> bool {
        let mut clients = self.by_uuid.write();
        let Some(client) = clients.get_mut(&uuid) else { return false };
        client.connections -= 1;
        if client.connections > 0 {
            return false;
        }
        clients.remove(&uuid).is_some_and(|client| client.may_leave_traces)
    }

    /// Remembers that a client may hold locks or wait for some; whether it is connected at all.
    pub(crate) fn may_leave_traces(&self, uuid: Uuid) -> bool {
        match self.by_uuid.read().get(&uuid) {
            None => return false,
            Some(client) if client.may_leave_traces => return true,
            Some(_) => {}
        }
        let mut clients = self.by_uuid.write();
        let Some(client) = clients.get_mut(&uuid) else { return false };
        client.may_leave_traces = true;
        true
    }

    /// Whether a client has a connection to this member, its own or one that another member has made for it.
    pub fn is_connected(&self, uuid: Uuid) -> bool {
        self.by_uuid.read().contains_key(&uuid)
    }

    /// Keeps the statistics that a client sent.
    ///
    /// # Errors
    /// The text is longer than the settings allow.
    pub fn set_statistics(&self, uuid: Uuid, statistics: &str) -> Result<(), GridError> {
        if statistics.len() > self.statistics_bytes_max {
            return Err(GridError::IllegalArgument(format!(
                "client statistics of {} bytes, expected at most {} (client_statistics_bytes_max)",
                statistics.len(),
                self.statistics_bytes_max
            )));
        }
        if let Some(client) = self.by_uuid.write().get_mut(&uuid) {
            client.statistics = Some(statistics.to_owned());
        }
        Ok(())
    }

    /// All connected clients, in no order.
    pub fn list(&self) -> Vec<ClientView> {
        let view = |client: &Client| ClientView {
            info: client.info.clone(),
            connections: client.connections,
            statistics: client.statistics.clone(),
        };
        self.by_uuid.read().values().map(view).collect()
    }

    /// Number of clients.
    pub fn client_count(&self) -> usize {
        self.by_uuid.read().len()
    }

    /// Number of connections of all clients.
    pub fn connection_count(&self) -> usize {
        self.by_uuid.read().values().map(|client| client.connections).sum()
    }
}

/// A connection of a client. Dropping it removes the connection's listeners; with a client's last connection go its parked
/// changes and its locks. In a cluster the client may be connected to other members still, and its locks go when no member has a
/// connection of it: the members see to that, by [`Grid::lock_owners_elsewhere`] and [`Grid::release_locks`].
pub struct ClientConnection {
    grid: Arc<Grid>,
    id: ConnectionId,
    client: Uuid,
}

impl ClientConnection {
    pub(crate) fn new(grid: Arc<Grid>, id: ConnectionId, client: Uuid) -> Self {
        ClientConnection { grid, id, client }
    }

    /// The connection's id, by which its listeners are registered.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The client's UUID.
    pub fn client(&self) -> Uuid {
        self.client
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let shared = self.grid.shared();
        let watched = |map: &&Arc<MapCore>| map.is_watched();
        let maps: Vec<_> = shared.maps.read().by_id.values().filter(watched).cloned().collect();
        for map in maps {
            let removed = map.listeners.remove_connection(self.id) + map.near_caches.remove_connection(self.id);
            if removed > 0 {
                shared.listeners.fetch_sub(removed, Ordering::AcqRel);
            }
        }
        self.grid.objects().remove_connection(self.id);
        if !shared.clients.remove(self.client) {
            return;
        }
        let now = shared.now();
        let is_in_cluster = shared.replication.is_some() && shared.cluster.get().is_some();
        let mut to = Submissions::new(&self.grid.shared);
        for (partition, cell) in shared.partitions() {
            let mut state = cell.lock();
            // It may have connected again meanwhile: what is left is its own then, until it goes for good.
            if shared.clients.may_leave_traces(self.client) {
                return;
            }
            for (_, waiter) in state.waiters.take_client(self.client) {
                shared.answer(waiter, Err(GridError::ClientGone { client: self.client }));
            }
            if is_in_cluster {
                continue;
            }
            let release = Change::ReleaseLocks { client: self.client };
            if shared.replication.is_some() {
                to.push_until_taken(partition, MapId(0), shared.itself(), release);
            } else {
                shared.apply_to_all(cell, &mut state, now, release);
            }
        }
        to.send();
        tracing::debug!(client = %self.client, "locks and parked changes of a client released");
    }
}
