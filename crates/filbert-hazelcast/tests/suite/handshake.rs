//! The beginning and the end of connections.

use std::time::Duration;

use crate::common::{Client, Server, wait_until};
use filbert_hazelcast::{Authentication, Door, DoorConfig};
use filbert_wire::{
    CorrelationId, MessageId, PREAMBLE, Uuid,
    structure::Address,
    table::{
        client::{
            add_cluster_view_listener, authentication, authentication_custom, create_proxy, get_distributed_objects,
            local_backup_listener, ping, statistics,
        },
        map,
    },
};

fn status(client: &mut Client, request: &authentication::Request<'_>) -> u8 {
    client.call(request).decode::<authentication::Response<'_>>().status
}

#[test]
fn an_authenticated_client_receives_the_whole_cluster() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let reply = client.call(&client.authentication());
    let response: authentication::Response<'_> = reply.decode();
    let member = server.grid.member_uuid();
    let port = i32::from(server.address.port());
    assert_eq!(response.status, 0);
    assert_eq!(response.address, Some(Address { host: "127.0.0.1", port }));
    assert_eq!(response.member_uuid, Some(member));
    assert_eq!(response.serialization_version, 1);
    assert_eq!(response.server_hazelcast_version, "5.7.0");
    assert_eq!(response.partition_count, 271);
    assert_eq!(response.cluster_id, server.grid.cluster_id());
    assert!(!response.failover_supported);
    assert_eq!(response.member_infos.len(), 1);
    assert_eq!(response.member_infos[0].uuid, member);
    assert_eq!(response.partitions, [(member, (0..271).collect())]);
    assert_eq!(response.key_value_pairs, [("clusterVersion", "5.7")]);
    assert_eq!(server.grid.clients().client_count(), 1);
}

#[test]
fn a_preamble_and_a_message_may_come_byte_by_byte() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    let (correlation, bytes) = client.encode(&client.authentication(), -1);
    for byte in PREAMBLE.into_iter().chain(bytes) {
        client.write(&[byte]);
    }
    assert_eq!(client.reply_to(correlation).decode::<authentication::Response<'_>>().status, 0);
}

#[test]
fn a_wrong_cluster_name_is_refused_by_a_normal_response_and_the_connection_is_closed() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let request = authentication::Request { cluster_name: "other", ..client.authentication() };
    let reply = client.call(&request);
    let response: authentication::Response<'_> = reply.decode();
    assert_eq!((response.status, response.address, response.member_uuid), (1, None, None));
    assert_eq!(response.cluster_id, Uuid::nil());
    assert!(client.receive().is_none());
    assert_eq!(server.grid.clients().client_count(), 0);
}

#[test]
fn another_serialization_version_is_refused() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let request = authentication::Request { serialization_version: 2, ..client.authentication() };
    assert_eq!(status(&mut client, &request), 2);
}

#[test]
fn users_and_passwords_are_required_when_some_are_configured() {
    let users = vec![("ann".to_owned(), "secret".to_owned()), ("bob".to_owned(), "hush".to_owned())];
    let server = Server::with_door(|door| door.authentication = Authentication::Users(users));
    for (username, password, expected) in [
        (Some("ann"), Some("secret"), 0),
        (Some("bob"), Some("hush"), 0),
        (Some("bob"), Some("secret"), 1),
        (Some("bob"), None, 1),
        (None, None, 1),
    ] {
        let mut client = Client::raw(server.address);
        client.write(&PREAMBLE);
        let request = authentication::Request { username, password, ..client.authentication() };
        assert_eq!(status(&mut client, &request), expected, "{username:?} {password:?}");
    }
}

#[test]
fn credentials_where_none_are_required_are_refused_as_in_hazelcast() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let request =
        authentication::Request { username: Some("ann"), password: Some("secret"), ..client.authentication() };
    assert_eq!(status(&mut client, &request), 1);
}

#[test]
fn a_token_is_required_when_one_is_configured() {
    let server = Server::with_door(|door| door.authentication = Authentication::Token(b"token".to_vec()));
    for (credentials, expected) in [(b"token".as_slice(), 0), (b"other", 1), (b"", 1)] {
        let mut client = Client::raw(server.address);
        client.write(&PREAMBLE);
        let request = authentication_custom::Request {
            cluster_name: "dev",
            credentials,
            uuid: Some(client.uuid),
            serialization_version: 1,
            ..authentication_custom::Request::default()
        };
        let reply = client.call(&request);
        assert_eq!(reply.decode::<authentication_custom::Response<'_>>().status, expected, "{credentials:?}");
    }
}

#[test]
fn any_other_first_message_is_answered_with_an_error_and_the_connection_is_closed() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let (code, class, text) = client.error(&map::size::Request { name: "m" });
    assert_eq!((code, class.as_str()), (3, "com.hazelcast.client.AuthenticationException"));
    assert!(text.contains("Map.size came before authentication"), "{text}");
    assert!(client.receive().is_none());
}

#[test]
fn a_strangers_protocol_is_closed_without_a_word() {
    let server = Server::start();
    for greeting in ["GET / HTTP/1.1\r\n\r\n", "CP1", "HZC", "C2"] {
        let mut client = Client::raw(server.address);
        client.write(greeting.as_bytes());
        assert!(client.receive().is_none(), "{greeting}");
    }
    server.assert_serves();
}

#[test]
fn the_cluster_view_comes_before_the_response_of_its_registration() {
    let server = Server::start();
    let mut client = server.client();
    let correlation = client.send(&add_cluster_view_listener::Request {});
    let messages: Vec<_> = (0..5).map(|_| client.receive().unwrap()).collect();
    let ids: Vec<_> = messages.iter().map(|reply| reply.message().id().0).collect();
    assert_eq!(ids, [0x00_03_02, 0x00_03_03, 0x00_03_04, 0x00_03_05, 0x00_03_01]);
    for reply in &messages {
        assert_eq!(reply.message().correlation_id(), CorrelationId(correlation));
    }
    let members: add_cluster_view_listener::MembersViewEvent<'_> = messages[0].decode();
    assert_eq!(members.version, 1);
    assert_eq!(members.member_infos[0].uuid, server.grid.member_uuid());
    let partitions: add_cluster_view_listener::PartitionsViewEvent = messages[1].decode();
    assert_eq!(partitions.partitions[0].1.len(), 271);
}

#[test]
fn what_stock_clients_send_by_themselves_is_answered() {
    let server = Server::start();
    let mut client = server.client();
    client.ok(&ping::Request {});
    client.ok(&local_backup_listener::Request {});
    client.ok(&create_proxy::Request { name: "m", service_name: "hz:impl:mapService" });
    client.ok(&statistics::Request { timestamp: 1, client_attributes: "a=1", metrics_blob: &[1] });
    let reply = client.ok(&get_distributed_objects::Request {});
    let objects: get_distributed_objects::Response<'_> = reply.decode();
    assert_eq!(objects.response[0].name, "m");
    assert_eq!(server.grid.clients().list()[0].statistics.as_deref(), Some("a=1"));
}

#[test]
fn a_proxy_of_a_service_that_is_not_there_is_refused_by_name() {
    let server = Server::start();
    let (code, class, text) =
        server.client().error(&create_proxy::Request { name: "l", service_name: "hz:impl:listService" });
    assert_eq!((code, class.as_str()), (61, "java.lang.UnsupportedOperationException"));
    assert!(text.contains("hz:impl:listService"), "{text}");
}

#[test]
fn a_silent_client_is_disconnected() {
    let server = Server::with_door(|door| door.heartbeat_timeout = Duration::from_millis(100));
    let mut client = server.client();
    assert!(client.receive().is_none());
    wait_until("the client is forgotten", || server.grid.clients().client_count() == 0);
}

#[test]
fn a_client_that_sends_pings_stays() {
    let server = Server::with_door(|door| door.heartbeat_timeout = Duration::from_secs(2));
    let mut client = server.client();
    // Longer than the timeout in total, with much shorter pauses.
    for _ in 0..60 {
        client.ok(&ping::Request {});
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_connection_that_does_not_authenticate_is_closed() {
    let server = Server::with_door(|door| door.unauthenticated_timeout = Duration::from_millis(100));
    let mut silent = Client::raw(server.address);
    let mut halfway = Client::raw(server.address);
    halfway.write(&PREAMBLE[..2]);
    assert!(silent.receive().is_none());
    assert!(halfway.receive().is_none());
    server.wait_until_idle(0);
}

#[test]
fn connections_beyond_the_limit_are_turned_away_until_others_go() {
    let server = Server::with_door(|door| door.connections_max = 2);
    let first = server.client();
    let mut second = server.client();
    let mut third = Client::raw(server.address);
    assert!(third.receive().is_none());
    second.ok(&ping::Request {});
    first.close();
    wait_until("the first connection is forgotten", || server.monitor.statistics().connections == 1);
    server.client().ok(&ping::Request {});
}

#[test]
fn a_door_that_closes_answers_what_was_read_and_then_hangs_up() {
    let mut server = Server::start();
    let mut client = server.client();
    let mut idle = server.client();
    let mut batch = Vec::new();
    for key in 0..1000_u32 {
        let request = map::put::Request { name: "m", key: &key.to_be_bytes(), value: b"v", thread_id: 1, ttl: -1 };
        batch.extend_from_slice(&client.encode(&request, -1).1);
    }
    client.write(&batch);
    let first = client.receive().unwrap();
    assert_ne!(first.message().id(), MessageId::ERROR);
    server.begin_to_stop();
    let answered = 1 + client.read_to_end().len();
    assert!(idle.read_to_end().is_empty());
    // Every executed put was answered, and every answered put was executed.
    let map = server.grid.map("m").unwrap();
    assert_eq!(map.size(), answered);
    server.stop();
    assert_eq!(server.grid.clients().client_count(), 0);
}

#[test]
fn a_port_that_is_taken_is_skipped_or_named() {
    let server = Server::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = DoorConfig { listen: server.address, port_auto_increment: false, ..DoorConfig::default() };
    let error = runtime.block_on(Door::bind(server.grid.clone(), config.clone())).unwrap_err();
    assert_eq!((error.address, error.tried), (server.address, 1));
    assert!(error.to_string().contains(&server.address.to_string()), "{error}");

    let config = DoorConfig { port_auto_increment: true, ..config };
    let door = runtime.block_on(Door::bind(server.grid.clone(), config)).unwrap();
    assert!(door.local_addr().port() > server.address.port());
}

#[test]
fn a_client_that_goes_leaves_no_locks_and_no_listeners() {
    let server = Server::start();
    let mut client = server.client();
    client.ok(&map::lock::Request { name: "m", key: b"key", thread_id: 1, ttl: -1, reference_id: 1 });
    client.ok(&map::add_entry_listener::Request {
        name: "m",
        include_value: true,
        listener_flags: 1023,
        local_only: true,
    });
    assert_eq!(server.grid.statistics().listeners, 1);
    let mut other = server.client();
    let waiting = other.send(&map::lock::Request { name: "m", key: b"key", thread_id: 9, ttl: -1, reference_id: 1 });
    wait_until("the lock is waited for", || server.grid.statistics().parked_changes == 1);
    client.close();
    other.reply_to(waiting).decode::<map::lock::Response>();
    wait_until("the listener is gone", || server.grid.statistics().listeners == 0);
}

#[test]
fn a_lock_outlives_one_of_two_connections_of_its_client() {
    let server = Server::start();
    let first = server.client();
    let mut second = Client::connect_as(server.address, first.uuid);
    second.ok(&map::lock::Request { name: "m", key: b"key", thread_id: 1, ttl: -1, reference_id: 1 });
    first.close();
    wait_until("one connection is forgotten", || server.monitor.statistics().connections == 1);
    let reply = second.ok(&map::is_locked::Request { name: "m", key: b"key" });
    assert!(reply.decode::<map::is_locked::Response>().response);
}
