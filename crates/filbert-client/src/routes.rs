//! The routes of calls: the connection to the owner of each partition.

use std::sync::Arc;

use crate::connection::Connection;

/// The routes of a client. Rebuilt when the view of the cluster or the connections change; read by
/// every call.
#[derive(Default)]
pub(crate) struct Routes {
    /// The connection to the owner of each partition; `None` if there is none.
    pub(crate) owners: Vec<Option<Arc<Connection>>>,
    /// All connections.
    pub(crate) all: Vec<Arc<Connection>>,
    pub(crate) partition_count: u32,
}
