//! Connections of clients, and the release of their resources: listeners, parked changes and locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_store::{Change, MapId};
use uuid::Uuid;

use crate::clients::{ClientInfo, ConnectionId};
use crate::errors::GridError;
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::replication::Submissions;

impl Grid {
    /// Registers a connection of a client. Dropping it releases its resources.
    pub fn connect(self: &Arc<Self>, info: ClientInfo) -> ClientConnection {
        let id = self.shared.clients.add(info.clone());
        ClientConnection { grid: self.clone(), id, client: info.uuid }
    }
}

/// A connection of a client. Dropping it removes the connection's listeners. Dropping a client's
/// last connection also removes its parked changes and releases its locks. In a cluster, the client
/// may still be connected to other members, and its locks are released when no member has a
/// connection of it. The members do that by [`Grid::lock_owners_elsewhere`] and
/// [`Grid::release_locks`].
pub struct ClientConnection {
    grid: Arc<Grid>,
    id: ConnectionId,
    client: Uuid,
}

impl ClientConnection {
    /// The connection's id. Listeners are registered with it.
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
            // The client may have connected again meanwhile. The remaining resources belong to it
            // until it disconnects for good.
            if shared.clients.mark_may_hold_locks(self.client) {
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
                to.push_with_retry(partition, MapId(0), shared.own_caller(), release);
            } else {
                shared.apply_to_all(cell, &mut state, now, release);
            }
        }
        to.send();
        tracing::debug!(client = %self.client, "locks and parked changes of a client released");
    }
}
