//! The public client: connecting, cluster members, shutdown. The modules of maps and statements add
//! their own methods to [`Client`].

use std::{sync::Arc, time::Duration};

use filbert_data::{PartitionId, compact::Schema};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use uuid::Uuid;

use crate::{
    ClientConfig, ClientError, ListenerId, Member, Routing,
    connection_manager::maintain_connections,
    handshake::{connect, connect_any},
    inner::Inner,
    listeners, schemas,
};

/// A client of one cluster. Cheap to clone; all clones share the connections. The connections are
/// closed when the last clone and the last handle created from it, such as a map, are dropped.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    /// Closes the connections when the last handle is dropped.
    _last: Arc<CloseWithLast>,
}

struct CloseWithLast(Arc<Inner>);

impl Drop for CloseWithLast {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Client {
    /// Connects to the first configured address that accepts the client. With
    /// [`Routing::AllMembers`] it then connects to the other members.
    ///
    /// # Errors
    ///
    /// No address is configured, a member refuses the client, or no member is reached within
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
        tokio::spawn(maintain_connections(
            Arc::downgrade(&client.inner),
            changed,
            client.inner.config.heartbeat_interval,
        ));
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

    /// Connects to the other members in the member list. The connection manager retries members
    /// that cannot be reached.
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

    /// The UUID of the client. It identifies the owner of locks and the source of events.
    pub fn uuid(&self) -> Uuid {
        self.inner.uuid
    }

    /// The client's name in the members' logs.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The UUID of the cluster; `None` before the first connection.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.inner.cluster.lock().id
    }

    /// The most recent member list of the cluster.
    pub fn members(&self) -> Vec<Member> {
        self.inner.cluster.lock().members.clone()
    }

    /// The members with an open connection to the client.
    pub fn connected_members(&self) -> Vec<Uuid> {
        let cluster = self.inner.cluster.lock();
        let open = cluster.connections.iter().filter(|(_, connection)| !connection.is_closed());
        open.map(|(member, _)| *member).collect()
    }

    /// The number of partitions of the cluster.
    pub fn partition_count(&self) -> u32 {
        self.inner.routes.read().partition_count
    }

    /// The partition of a serialized key.
    pub fn partition_of(&self, key: &[u8]) -> PartitionId {
        self.inner.partition_of(key)
    }

    /// Returns a new thread id, unique within this client. See
    /// [`Map::on_thread`](crate::Map::on_thread).
    pub fn new_thread(&self) -> i64 {
        self.inner.new_thread()
    }

    /// Sends a Compact schema to the cluster, so that values of it can be stored and queried. A
    /// schema that this client has sent before is not sent again.
    ///
    /// # Errors
    ///
    /// The request fails.
    pub async fn send_schema(&self, schema: &Schema) -> Result<(), ClientError> {
        schemas::announce(&self.inner, schema).await
    }

    /// Removes a listener and waits for the members' confirmations. Returns false if there is no
    /// such listener.
    pub async fn remove_listener(&self, id: ListenerId) -> bool {
        listeners::remove(&self.inner, id).await
    }

    /// Refuses new calls, waits up to [`shutdown_timeout`](ClientConfig::shutdown_timeout) for
    /// calls in flight, then closes the connections. Calls that still wait for a response fail with
    /// [`ClientError::Shutdown`].
    pub async fn shutdown(&self) {
        self.inner.begin_shutdown();
        self.inner.drain(self.inner.config.shutdown_timeout).await;
        self.inner.close();
    }

    /// Waits until the client is connected to `members` members, for programs that start together
    /// with their cluster. Returns false if this takes longer than `at_most`.
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
