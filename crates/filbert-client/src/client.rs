//! The client as its user sees it: connecting, maps, the cluster's members, shutting down.

use std::{sync::Arc, time::Duration};

use filbert_data::{Blob, PartitionId};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use uuid::Uuid;

use crate::{
    ClientConfig, ClientError, ListenerId, Map, Member, Routing,
    handshake::{connect, connect_any},
    inner::Inner,
    keeper::keep,
    registration,
};

/// A client of one cluster. Cheap to clone; all clones share the connections. When the last clone, and the last map
/// made from one, is dropped, the connections are closed.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    /// Closes the connections when the last handle goes.
    _last: Arc<CloseWithLast>,
}

struct CloseWithLast(Arc<Inner>);

impl Drop for CloseWithLast {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Client {
    /// Connects to the first of the configured addresses that answers, and then to the other members.
    ///
    /// # Errors
    ///
    /// A member refuses the client, or none is reached within
    /// [`cluster_connect_timeout`](ClientConfig::cluster_connect_timeout).
    pub async fn connect(config: ClientConfig) -> Result<Client, ClientError> {
        if config.addresses.is_empty() {
            return Err(ClientError::NoAddress);
        }
        let inner = Arc::new(Inner::new(config));
        let client = Client { _last: Arc::new(CloseWithLast(inner.clone())), inner };
        client.reach_cluster().await?;
        if client.inner.config.routing == Routing::AllMembers {
            client.reach_members().await;
        }
        let changed = client.inner.changed.clone();
        tokio::spawn(keep(Arc::downgrade(&client.inner), changed, client.inner.config.heartbeat_interval));
        Ok(client)
    }

    async fn reach_cluster(&self) -> Result<(), ClientError> {
        let config = &self.inner.config;
        let deadline = Instant::now() + config.cluster_connect_timeout;
        let mut attempt = 0;
        loop {
            let error = match connect_any(&self.inner, &config.addresses).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if error.is_refusal() {
                return Err(error);
            }
            let pause = config.reconnect.pause(attempt, self.inner.random());
            if Instant::now() + pause >= deadline {
                return Err(ClientError::NoMemberReached {
                    addresses: config.addresses.join(", "),
                    timeout: config.cluster_connect_timeout,
                    last: Box::new(error),
                });
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// Connects to the members that the first one named. Those that cannot be reached are left to the keeper.
    async fn reach_members(&self) {
        let mut attempts = JoinSet::new();
        for member in self.members() {
            if self.inner.cluster.lock().connections.contains_key(&member.uuid) {
                continue;
            }
            let inner = self.inner.clone();
            attempts.spawn(async move { connect(&inner, &member.address()).await });
        }
        while attempts.join_next().await.is_some() {}
    }

    /// A map with keys `K` and values `V`, shared with whoever uses the same name. Nothing is sent: a map comes into
    /// being with its first use.
    pub fn map<K, V>(&self, name: &str) -> Map<K, V> {
        Map::new(self.clone(), name)
    }

    /// A map whose keys and values are serialized already, for tools that do not know their types.
    pub fn raw_map(&self, name: &str) -> Map<Blob, Blob> {
        self.map(name)
    }

    /// The client's identity: owner of its locks and source of its events.
    pub fn uuid(&self) -> Uuid {
        self.inner.uuid
    }

    /// The client's name in the members' logs.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The identity of the cluster; none before the first connection.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.inner.cluster.lock().id
    }

    /// The members, as last heard from the cluster.
    pub fn members(&self) -> Vec<Member> {
        self.inner.cluster.lock().members.clone()
    }

    /// Members that the client is connected to at the moment.
    pub fn connected_members(&self) -> Vec<Uuid> {
        let cluster = self.inner.cluster.lock();
        let open = cluster.connections.iter().filter(|(_, connection)| !connection.is_closed());
        open.map(|(member, _)| *member).collect()
    }

    /// Number of partitions of the cluster.
    pub fn partition_count(&self) -> u32 {
        self.inner.routes.read().partition_count
    }

    /// The partition that a serialized key belongs to.
    pub fn partition_of(&self, key: &[u8]) -> PartitionId {
        self.inner.partition_of(key)
    }

    /// A thread id that nobody else of this client has, see [`Map::on_thread`].
    pub fn new_thread(&self) -> i64 {
        self.inner.new_thread()
    }

    /// Stops a listener and waits until the members have confirmed it. False if it was stopped before.
    pub async fn remove_listener(&self, id: ListenerId) -> bool {
        registration::remove(&self.inner, id).await
    }

    /// Refuses new calls, waits for those in flight up to [`shutdown_timeout`](ClientConfig::shutdown_timeout), then
    /// closes the connections. Calls that are still waiting end with [`ClientError::Shutdown`].
    pub async fn shutdown(&self) {
        self.inner.begin_shutdown();
        self.inner.drain(self.inner.config.shutdown_timeout).await;
        self.inner.close();
    }

    /// Waits until the client is connected to `members` members, for programs that start together with their cluster.
    /// False if that took longer than `at_most`.
    pub async fn wait_for_members(&self, members: usize, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while self.connected_members().len() < members {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(Duration::from_millis(5)).await;
        }
        true
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.inner.name).field("uuid", &self.inner.uuid).finish_non_exhaustive()
    }
}
