//! The task that keeps a client connected: it replaces lost connections, follows the cluster's
//! view, and sends heartbeats.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use filbert_wire::{CorrelationId, Request, table::client::ping};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};
use uuid::Uuid;

use crate::{
    ClientError, Routing,
    connection::ConnectionId,
    handshake::{connect, connect_any, listen_to_view},
    inner::Inner,
};

/// The goal of a connection attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Goal {
    /// A connection to any member. Used when there is no connection.
    Cluster,
    /// A connection to this member.
    Member(Uuid),
}

/// The state of the attempts for one goal.
#[derive(Debug)]
struct Attempts {
    failed: u32,
    not_before: Instant,
    is_running: bool,
}

struct ConnectionManager {
    attempts: HashMap<Goal, Attempts>,
    running: JoinSet<(Goal, Result<(), ClientError>)>,
    /// The number of requests that each connection had sent at the last heartbeat.
    sent: HashMap<ConnectionId, u64>,
}

/// Runs until the client is shut down or dropped.
pub(crate) async fn maintain_connections(client: Weak<Inner>, changed: Arc<Notify>, heartbeat: std::time::Duration) {
    let mut manager = ConnectionManager { attempts: HashMap::new(), running: JoinSet::new(), sent: HashMap::new() };
    let mut heartbeats = interval(heartbeat.max(std::time::Duration::from_millis(1)));
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = {
            let Some(client) = client.upgrade().filter(|client| !client.is_shut_down()) else { return };
            manager.reconcile(&client).await
        };
        tokio::select! {
            () = changed.notified() => {}
            Some(done) = manager.running.join_next() => {
                if let Some(client) = client.upgrade() {
                    manager.finish(&client, done);
                }
            }
            () = async { if let Some(at) = next { sleep_until(at).await } else { std::future::pending().await } } => {}
            _ = heartbeats.tick() => {
                if let Some(client) = client.upgrade() {
                    manager.heartbeat(&client);
                }
            }
        }
    }
}

impl ConnectionManager {
    /// Starts the missing connection attempts. Returns the time of the next attempt, if one is
    /// planned.
    async fn reconcile(&mut self, client: &Arc<Inner>) -> Option<Instant> {
        let (goals, addresses, orphan) = self.goals(client);
        if let Some(connection) = orphan {
            match timeout(client.config.connect_timeout, listen_to_view(client, &connection)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => connection.close(&error.to_string()),
                Err(_) => connection.close("no answer to the registration of the cluster's view"),
            }
        }
        self.attempts.retain(|goal, attempts| attempts.is_running || goals.contains_key(goal));
        let now = Instant::now();
        for (goal, address) in goals {
            let attempts =
                self.attempts.entry(goal.clone()).or_insert(Attempts { failed: 0, not_before: now, is_running: false });
            if attempts.is_running || attempts.not_before > now {
                continue;
            }
            attempts.is_running = true;
            let (client, addresses) = (client.clone(), addresses.clone());
            self.running.spawn(async move {
                let result = match address {
                    Some(address) => connect(&client, &address).await,
                    None => connect_any(&client, &addresses).await,
                };
                (goal, result)
            });
        }
        self.attempts.values().filter(|attempts| !attempts.is_running).map(|attempts| attempts.not_before).min()
    }

    /// Returns the goals with the addresses of their members, the addresses to try for
    /// [`Goal::Cluster`], and the connection that becomes the source of the view, if the view has
    /// none.
    #[allow(clippy::type_complexity, reason = "used in one place")]
    fn goals(
        &self,
        client: &Inner,
    ) -> (HashMap<Goal, Option<String>>, Vec<String>, Option<Arc<crate::connection::Connection>>) {
        let mut cluster = client.cluster.lock();
        if cluster.remove_closed() {
            client.publish(&cluster);
        }
        let mut orphan = None;
        if cluster.view_source.is_none()
            && let Some(connection) = cluster.connections.values().next().cloned()
        {
            cluster.set_view_source(connection.id);
            orphan = Some(connection);
        }
        let mut goals = HashMap::new();
        let mut addresses = Vec::new();
        if cluster.connections.is_empty() {
            goals.insert(Goal::Cluster, None);
            let mut seen = HashSet::new();
            let members = match client.config.routing {
                Routing::AllMembers => cluster.members.iter().map(|member| member.address()).collect(),
                Routing::SingleMember => Vec::new(),
            };
            let all = members.into_iter().chain(client.config.addresses.iter().cloned());
            addresses.extend(all.filter(|address| seen.insert(address.clone())));
        } else if client.config.routing == Routing::AllMembers {
            let missing = cluster.members.iter().filter(|member| !cluster.connections.contains_key(&member.uuid));
            goals.extend(missing.map(|member| (Goal::Member(member.uuid), Some(member.address()))));
        }
        (goals, addresses, orphan)
    }

    fn finish(&mut self, client: &Inner, done: Result<(Goal, Result<(), ClientError>), tokio::task::JoinError>) {
        let Ok((goal, result)) = done else {
            // The shutdown of the runtime cancelled the attempt.
            return;
        };
        // After a success the goal disappears, and `reconcile` removes its attempts. The goal stays
        // if another member answered at the address. The pauses then limit the rate of the
        // attempts.
        let Some(attempts) = self.attempts.get_mut(&goal) else { return };
        attempts.is_running = false;
        attempts.not_before = Instant::now() + client.config.reconnect.pause(attempts.failed, client.random());
        attempts.failed = attempts.failed.saturating_add(1);
        match result {
            Ok(()) => tracing::debug!(?goal, "connected"),
            Err(error) if error.is_refusal() => {
                tracing::warn!(%error, "a member refuses the client; it goes on trying");
            }
            Err(error) => tracing::debug!(?goal, %error, "could not connect"),
        }
    }

    /// Closes connections that have been silent for too long. Sends a ping on connections without a
    /// request since the last heartbeat.
    fn heartbeat(&mut self, client: &Inner) {
        let connections: Vec<_> = client.cluster.lock().connections.values().cloned().collect();
        let mut sent_now = HashMap::new();
        for connection in connections {
            let silent = connection.silent_for();
            if silent > client.config.heartbeat_timeout {
                connection.close(&format!("no byte came for {} ms", silent.as_millis()));
                continue;
            }
            if self.sent.get(&connection.id) == Some(&connection.sent()) {
                let mut request = Vec::new();
                ping::Request {}.encode(CorrelationId(0), -1, &mut request);
                if let Ok(slot) = connection.send(&mut request, None) {
                    // Any received byte shows that the member is alive, see `silent_for`. The
                    // response itself is not needed.
                    connection.abandon(slot);
                }
            }
            sent_now.insert(connection.id, connection.sent());
        }
        self.sent = sent_now;
    }
}
