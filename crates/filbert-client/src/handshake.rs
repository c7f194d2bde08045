//! From an address to a connection that calls can use: connect, authenticate, register listeners, take over the view.

use std::sync::{Arc, Weak};

use filbert_wire::{
    CorrelationId, Message, MessageId, Request, WireError,
    error_message::ErrorMessage,
    table::client::{add_cluster_view_listener, authentication, authentication_custom},
};
use tokio::{net::TcpStream, time::timeout};
use uuid::Uuid;

use crate::{
    ClientError, Credentials, Refusal, Routing, ServerError,
    connection::{Connection, EventHandler},
    inner::Inner,
    schemas::announce_all,
};

/// The kind of client that members list; the stock clients have names of three letters.
const CLIENT_TYPE: &str = "RST";
const SERIALIZATION_VERSION: u8 = 1;
const DEFAULT_PORT: u16 = 5701;

/// What a member says about itself and the cluster when it lets a client in; the same for both ways to authenticate.
struct Welcome<'a> {
    status: u8,
    member: Option<Uuid>,
    cluster: Uuid,
    partition_count: i32,
    members: (i32, Vec<filbert_wire::structure::MemberInfo<'a>>),
    partitions: (i32, Vec<(Uuid, Vec<i32>)>),
}

/// Connects to the first of the addresses that lets the client in.
pub(crate) async fn connect_any(client: &Arc<Inner>, addresses: &[String]) -> Result<(), ClientError> {
    let mut failure = ClientError::NoAddress;
    for address in addresses {
        match connect(client, address).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                tracing::debug!(%address, %error, "a member could not be connected to");
                // A refusal tells the user more than an address at which nobody listens.
                if !failure.is_refusal() {
                    failure = error;
                }
            }
        }
    }
    Err(failure)
}

/// Connects to a member and makes the connection known to the calls.
pub(crate) async fn connect(client: &Arc<Inner>, address: &str) -> Result<(), ClientError> {
    let limit = client.config.connect_timeout;
    match timeout(limit, connect_patiently(client, address)).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::ConnectTimeout { address: address.to_owned(), timeout: limit }),
    }
}

/// Closes a connection that did not get through the handshake, also when the handshake is cut off.
struct Unfinished(Option<Arc<Connection>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.close("the handshake failed");
        }
    }
}

async fn connect_patiently(client: &Arc<Inner>, address: &str) -> Result<(), ClientError> {
    let failed = |source| ClientError::Connect { address: address.to_owned(), source: Arc::new(source) };
    let stream = TcpStream::connect(with_port(address)).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let connection = Connection::open(stream, address.into(), client.config.limits, client.changed.clone());
    let mut unfinished = Unfinished(Some(connection.clone()));
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
            let missing = cluster.registrations.values().filter(|it| !it.is_on(connection.id)).cloned();
            let missing: Vec<_> = missing.collect();
            if missing.is_empty() {
                // Another address of a member that is connected already: the first connection stays.
                if cluster.connections.get(&member).is_none_or(|present| present.is_closed()) {
                    cluster.connections.insert(member, connection.clone());
                    unfinished.0 = None;
                }
                cluster.publish(client);
                return Ok(());
            }
            missing
        };
        for registration in missing {
            registration.register(&connection).await?;
        }
    }
}

/// The address with a port: `host`, `host:port`, an IPv6 address with or without brackets.
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

/// Tells the member who connects; returns the member's UUID.
async fn authenticate(client: &Inner, connection: &Arc<Connection>) -> Result<Uuid, ClientError> {
    let (id, request) = encode_authentication(client);
    let answer = connection.call(request, None).await.map_err(|reason| ClientError::Disconnected {
        request: id,
        address: connection.address.clone(),
        reason,
    })?;
    let message = Message::parse(&answer)?;
    refuse_error(id, &message)?;
    let welcome = match client.config.credentials {
        Credentials::Token(_) => {
            let it = message.decode::<authentication_custom::Response<'_>>()?;
            Welcome {
                status: it.status,
                member: it.member_uuid,
                cluster: it.cluster_id,
                partition_count: it.partition_count,
                members: (it.member_list_version, it.member_infos.unwrap_or_default()),
                partitions: (it.partition_list_version, it.partitions.unwrap_or_default()),
            }
        }
        Credentials::None | Credentials::Password { .. } => {
            let it = message.decode::<authentication::Response<'_>>()?;
            Welcome {
                status: it.status,
                member: it.member_uuid,
                cluster: it.cluster_id,
                partition_count: it.partition_count,
                members: (it.member_list_version, it.member_infos),
                partitions: (it.partition_list_version, it.partitions),
            }
        }
    };
    enter(client, connection, &welcome)
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

/// Checks the welcome and takes over what it says of the cluster.
fn enter(client: &Inner, connection: &Connection, welcome: &Welcome<'_>) -> Result<Uuid, Refusal> {
    match welcome.status {
        0 => {}
        1 => return Err(Refusal::Credentials),
        2 => return Err(Refusal::SerializationVersion),
        3 => return Err(Refusal::NotAllowed),
        status => return Err(Refusal::Other(status)),
    }
    let mut cluster = client.cluster.lock();
    let count = u32::try_from(welcome.partition_count).ok().filter(|count| *count > 0);
    let expected = cluster.partition_count;
    let count = count.ok_or(Refusal::PartitionCount { expected, found: welcome.partition_count })?;
    // Requests that wait to be sent again carry partition ids, which a cluster divided otherwise would misread.
    if expected != 0 && count != expected {
        return Err(Refusal::PartitionCount { expected, found: welcome.partition_count });
    }
    if cluster.id != Some(welcome.cluster) {
        cluster.reap();
        if !cluster.connections.is_empty() {
            return Err(Refusal::NotAllowed);
        }
        cluster.start_over(welcome.cluster, count);
    }
    if cluster.view_source.is_none() {
        cluster.listen_on(connection.id);
        cluster.set_members(welcome.members.0, &welcome.members.1);
        cluster.set_partitions(welcome.partitions.0, &welcome.partitions.1);
    }
    // Members before 5.3 say who they are only in lists; such a connection serves any call, but owns nothing.
    Ok(welcome.member.unwrap_or_else(Uuid::new_v4))
}

/// Asks the member to tell about changes of the cluster, if this is the connection that listens to them.
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
        cluster.publish(&client);
        drop(cluster);
        client.changed.notify_one();
    })
}

/// The error if the answer is one.
pub(crate) fn refuse_error(request: MessageId, answer: &Message<'_>) -> Result<(), ClientError> {
    if answer.id() != MessageId::ERROR {
        return Ok(());
    }
    let error = answer.decode::<ErrorMessage<'_>>()?;
    Err(ClientError::Server(Box::new(ServerError::new(request, &error))))
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
