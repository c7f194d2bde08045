//! Establishes a connection: connects to an address, authenticates the client, registers listeners,
//! and takes over the view of the cluster.

use std::sync::{Arc, Weak};

use filbert_wire::{
    CorrelationId, Message, MessageId, Request, WireError,
    table::client::{add_cluster_view_listener, authentication, authentication_custom},
};
use tokio::{net::TcpStream, time::timeout};
use uuid::Uuid;

use crate::{
    ClientError, Credentials, Refusal, Routing,
    connection::{Connection, EventHandler},
    error::refuse_error,
    inner::Inner,
    io,
    schemas::announce_all,
};

/// The client type in the members' lists of clients. Hazelcast's own clients have types of three
/// letters.
const CLIENT_TYPE: &str = "RST";
const SERIALIZATION_VERSION: u8 = 1;
const DEFAULT_PORT: u16 = 5701;

/// The response to an authentication: data about the member and its cluster. The same for both
/// authentication methods.
struct AuthenticationResponse<'a> {
    status: u8,
    member: Option<Uuid>,
    cluster: Uuid,
    partition_count: i32,
    members: (i32, Vec<filbert_wire::structure::MemberInfo<'a>>),
    partitions: (i32, Vec<(Uuid, Vec<i32>)>),
}

/// Connects to the first address that accepts the client.
pub(crate) async fn connect_any(client: &Arc<Inner>, addresses: &[String]) -> Result<(), ClientError> {
    let mut failure = ClientError::NoAddress;
    for address in addresses {
        match connect(client, address).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                tracing::debug!(%address, %error, "a member could not be connected to");
                // A refusal is more useful to the user than the error of an unreachable address.
                if !failure.is_refusal() {
                    failure = error;
                }
            }
        }
    }
    Err(failure)
}

/// Connects to a member and makes the connection available to calls.
pub(crate) async fn connect(client: &Arc<Inner>, address: &str) -> Result<(), ClientError> {
    let limit = client.config.connect_timeout;
    match timeout(limit, connect_without_timeout(client, address)).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::ConnectTimeout { address: address.to_owned(), timeout: limit }),
    }
}

/// Closes a connection when its handshake fails or is cancelled.
struct HandshakeGuard(Option<Arc<Connection>>);

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.close("the handshake failed");
        }
    }
}

async fn connect_without_timeout(client: &Arc<Inner>, address: &str) -> Result<(), ClientError> {
    let failed = |source| ClientError::Connect { address: address.to_owned(), source: Arc::new(source) };
    let stream = TcpStream::connect(with_port(address)).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let connection = io::open(stream, address.into(), client.config.limits, client.changed.clone());
    let mut guard = HandshakeGuard(Some(connection.clone()));
    let member = authenticate(client, &connection).await?;
    listen_to_view(client, &connection).await?;
    let (cluster_id, knows_schemas) = {
        let cluster = client.cluster.lock();
        (cluster.id, cluster.schemas_known_to == cluster.id)
    };
    if !knows_schemas {
        announce_all(client, &connection).await?;
        client.cluster.lock().schemas_known_to = cluster_id;
    }
    loop {
        let missing: Vec<_> = {
            let mut cluster = client.cluster.lock();
            if client.is_shut_down() {
                return Err(ClientError::Shutdown);
            }
            let missing =
                cluster.registrations.values().filter(|registration| !registration.is_on(connection.id)).cloned();
            let missing: Vec<_> = missing.collect();
            if missing.is_empty() {
                // The member may already be connected through another address. The first connection
                // is kept.
                if cluster.connections.get(&member).is_none_or(|present| present.is_closed()) {
                    cluster.connections.insert(member, connection.clone());
                    guard.0 = None;
                }
                client.publish(&cluster);
                return Ok(());
            }
            missing
        };
        for registration in missing {
            registration.register(&connection).await?;
        }
    }
}

/// Adds the default port to an address without a port. Accepts `host`, `host:port`, and IPv6
/// addresses with or without brackets.
fn with_port(address: &str) -> String {
    let has_port = match address.rsplit_once(':') {
        Some((host, port)) => port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')),
        None => false,
    };
    match has_port {
        true => address.to_owned(),
        false if address.contains(':') && !address.starts_with('[') => format!("[{address}]:{DEFAULT_PORT}"),
        false => format!("{address}:{DEFAULT_PORT}"),
    }
}

/// Authenticates the client. Returns the member's UUID.
async fn authenticate(client: &Inner, connection: &Arc<Connection>) -> Result<Uuid, ClientError> {
    let (id, request) = encode_authentication(client);
    let answer = connection.call(request, None).await.map_err(|reason| ClientError::Disconnected {
        request: id,
        address: connection.address.clone(),
        reason,
    })?;
    let message = Message::parse(&answer)?;
    refuse_error(id, &message)?;
    let response = match client.config.credentials {
        Credentials::Token(_) => {
            let decoded = message.decode::<authentication_custom::Response<'_>>()?;
            AuthenticationResponse {
                status: decoded.status,
                member: decoded.member_uuid,
                cluster: decoded.cluster_id,
                partition_count: decoded.partition_count,
                members: (decoded.member_list_version, decoded.member_infos.unwrap_or_default()),
                partitions: (decoded.partition_list_version, decoded.partitions.unwrap_or_default()),
            }
        }
        Credentials::None | Credentials::Password { .. } => {
            let decoded = message.decode::<authentication::Response<'_>>()?;
            AuthenticationResponse {
                status: decoded.status,
                member: decoded.member_uuid,
                cluster: decoded.cluster_id,
                partition_count: decoded.partition_count,
                members: (decoded.member_list_version, decoded.member_infos),
                partitions: (decoded.partition_list_version, decoded.partitions),
            }
        }
    };
    accept_authentication(client, connection, &response)
        .map_err(|refusal| ClientError::Refused { address: connection.address.to_string(), refusal })
}

fn encode_authentication(client: &Inner) -> (MessageId, Vec<u8>) {
    let mut out = Vec::new();
    let config = &client.config;
    let labels: Vec<&str> = config.labels.iter().map(String::as_str).collect();
    let routing_mode = u8::from(config.routing == Routing::AllMembers);
    if let Credentials::Token(token) = &config.credentials {
        let request = authentication_custom::Request {
            cluster_name: &config.cluster_name,
            credentials: token,
            uuid: Some(client.uuid),
            client_type: CLIENT_TYPE,
            serialization_version: SERIALIZATION_VERSION,
            client_hazelcast_version: env!("CARGO_PKG_VERSION"),
            client_name: &client.name,
            labels,
            routing_mode,
            cp_direct_to_leader_routing: false,
        };
        request.encode(CorrelationId(0), -1, &mut out);
        return (authentication_custom::ID, out);
    }
    let (username, password) = match &config.credentials {
        Credentials::Password { user, password } => (Some(user.as_str()), Some(password.as_str())),
        _ => (None, None),
    };
    let request = authentication::Request {
        cluster_name: &config.cluster_name,
        username,
        password,
        uuid: Some(client.uuid),
        client_type: CLIENT_TYPE,
        serialization_version: SERIALIZATION_VERSION,
        client_hazelcast_version: env!("CARGO_PKG_VERSION"),
        client_name: &client.name,
        labels,
        routing_mode,
        cp_direct_to_leader_routing: false,
    };
    request.encode(CorrelationId(0), -1, &mut out);
    (authentication::ID, out)
}

/// Checks the authentication response and takes over its view of the cluster.
fn accept_authentication(
    client: &Inner,
    connection: &Connection,
    response: &AuthenticationResponse<'_>,
) -> Result<Uuid, Refusal> {
    match response.status {
        0 => {}
        1 => return Err(Refusal::Credentials),
        2 => return Err(Refusal::SerializationVersion),
        3 => return Err(Refusal::NotAllowed),
        status => return Err(Refusal::Other(status)),
    }
    let mut cluster = client.cluster.lock();
    let count = u32::try_from(response.partition_count).ok().filter(|count| *count > 0);
    let expected = cluster.partition_count;
    let count = count.ok_or(Refusal::PartitionCount { expected, found: response.partition_count })?;
    // Requests that wait for a retry contain partition ids. They would be wrong in a cluster with
    // another number of partitions.
    if expected != 0 && count != expected {
        return Err(Refusal::PartitionCount { expected, found: response.partition_count });
    }
    if cluster.id != Some(response.cluster) {
        cluster.remove_closed();
        if !cluster.connections.is_empty() {
            return Err(Refusal::NotAllowed);
        }
        cluster.reset(response.cluster, count);
    }
    if cluster.view_source.is_none() {
        cluster.set_view_source(connection.id);
        cluster.set_members(response.members.0, &response.members.1);
        cluster.set_partitions(response.partitions.0, &response.partitions.1);
    }
    // Members before 5.3 send their UUID only in member lists. A connection with a random UUID
    // serves any call, but owns no partition.
    Ok(response.member.unwrap_or_else(Uuid::new_v4))
}

/// Registers for changes of the cluster's view, if this connection is the source of the view.
pub(crate) async fn listen_to_view(client: &Arc<Inner>, connection: &Arc<Connection>) -> Result<(), ClientError> {
    if client.cluster.lock().view_source != Some(connection.id) {
        return Ok(());
    }
    let mut request = Vec::new();
    add_cluster_view_listener::Request {}.encode(CorrelationId(0), -1, &mut request);
    let handler = view_handler(Arc::downgrade(client), connection);
    let answer = connection.call(request, Some(handler)).await.map_err(|reason| ClientError::Disconnected {
        request: add_cluster_view_listener::ID,
        address: connection.address.clone(),
        reason,
    })?;
    refuse_error(add_cluster_view_listener::ID, &Message::parse(&answer)?)
}

fn view_handler(client: Weak<Inner>, connection: &Connection) -> EventHandler {
    let source = connection.id;
    Arc::new(move |event| {
        let Some(client) = client.upgrade() else { return };
        let mut cluster = client.cluster.lock();
        if cluster.view_source != Some(source) {
            return;
        }
        let read = (|| -> Result<(), WireError> {
            if event.id() == add_cluster_view_listener::ID.part(2) {
                let view = event.decode::<add_cluster_view_listener::MembersViewEvent<'_>>()?;
                cluster.set_members(view.version, &view.member_infos);
            } else if event.id() == add_cluster_view_listener::ID.part(3) {
                let view = event.decode::<add_cluster_view_listener::PartitionsViewEvent>()?;
                cluster.set_partitions(view.version, &view.partitions);
            }
            Ok(())
        })();
        if let Err(error) = read {
            tracing::warn!(%error, "a view of the cluster could not be read; the one before is kept");
        }
        client.publish(&cluster);
        drop(cluster);
        client.changed.notify_one();
    })
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn an_address_without_a_port_gets_the_usual_one() {
        assert_eq!(with_port("localhost"), "localhost:5701");
        assert_eq!(with_port("10.0.0.1:5702"), "10.0.0.1:5702");
        assert_eq!(with_port("::1"), "[::1]:5701");
        assert_eq!(with_port("[::1]"), "[::1]:5701");
        assert_eq!(with_port("[::1]:5702"), "[::1]:5702");
    }
}
