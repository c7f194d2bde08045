//! Connected clients: their identities, their statistics, and whether they may own locks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use uuid::Uuid;

use crate::errors::GridError;

/// The id of a connection. Unique during the lifetime of the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The identity of a client, as it has sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The client's UUID. All its connections have the same one, and it owns the client's locks.
    pub uuid: Uuid,
    /// The kind of client, for example `PYH`.
    pub kind: String,
    /// The client library's version.
    pub version: String,
    /// The name of the client instance.
    pub name: String,
    /// The labels from the client's configuration.
    pub labels: Vec<String>,
    /// The remote address of this connection; `None` for a connection within the process.
    pub address: Option<SocketAddr>,
}

/// A connected client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientView {
    /// The identity from its latest connection.
    pub info: ClientInfo,
    /// The number of its connections.
    pub connections: usize,
    /// The statistics that it sent last, if it has sent any.
    pub statistics: Option<String>,
}

struct Client {
    info: ClientInfo,
    connections: usize,
    statistics: Option<String>,
    may_hold_locks: bool,
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
            may_hold_locks: false,
        });
        client.info = info;
        client.connections += 1;
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes one connection of a client. `true` if it was the last one, and the client may hold
    /// locks or wait for locks.
    pub(crate) fn remove(&self, uuid: Uuid) -> bool {
        let mut clients = self.by_uuid.write();
        let Some(client) = clients.get_mut(&uuid) else { return false };
        client.connections -= 1;
        if client.connections > 0 {
            return false;
        }
        clients.remove(&uuid).is_some_and(|client| client.may_hold_locks)
    }

    /// Records that a client may hold locks or wait for locks. Returns whether the client is
    /// connected.
    pub(crate) fn mark_may_hold_locks(&self, uuid: Uuid) -> bool {
        match self.by_uuid.read().get(&uuid) {
            None => return false,
            Some(client) if client.may_hold_locks => return true,
            Some(_) => {}
        }
        let mut clients = self.by_uuid.write();
        let Some(client) = clients.get_mut(&uuid) else { return false };
        client.may_hold_locks = true;
        true
    }

    /// Whether a client has a connection to this member: its own, or one that another member has
    /// opened for it.
    pub fn is_connected(&self, uuid: Uuid) -> bool {
        self.by_uuid.read().contains_key(&uuid)
    }

    /// Stores the statistics that a client has sent.
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

    /// All connected clients, unordered.
    pub fn list(&self) -> Vec<ClientView> {
        let view = |client: &Client| ClientView {
            info: client.info.clone(),
            connections: client.connections,
            statistics: client.statistics.clone(),
        };
        self.by_uuid.read().values().map(view).collect()
    }

    /// The number of clients.
    pub fn client_count(&self) -> usize {
        self.by_uuid.read().len()
    }

    /// The number of connections of all clients.
    pub fn connection_count(&self) -> usize {
        self.by_uuid.read().values().map(|client| client.connections).sum()
    }
}
