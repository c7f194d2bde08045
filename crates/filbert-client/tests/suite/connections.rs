//! Tests of connecting, routing, and changes of connections and members.

use std::time::Duration;

use crate::support::{Act, FakeMember, PARTITIONS, encode, eventually};
use filbert_client::{Client, ClientConfig, ClientError, Refusal, ToBlob};
use filbert_wire::{
    CorrelationId, Event, Message,
    table::{client, map},
};
use uuid::Uuid;

#[tokio::test]
async fn a_client_learns_the_cluster_from_the_first_member() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    assert_eq!(client.members().len(), 1);
    assert_eq!(client.members()[0].uuid, member.uuid);
    assert_eq!(client.connected_members(), [member.uuid]);
    assert_eq!(client.partition_count(), PARTITIONS as u32);
    assert_eq!(member.received(client::add_cluster_view_listener::ID).len(), 1);
    let received = member.received(client::authentication::ID);
    let request = Message::parse(&received[0].bytes).unwrap();
    let request = request.decode::<client::authentication::Request<'_>>().unwrap();
    assert_eq!(request.uuid, Some(client.uuid()));
    assert_eq!(request.client_name, client.name());
}

#[tokio::test]
async fn calls_go_to_the_member_that_owns_their_key() {
    let (a, b) = (FakeMember::usual().await, FakeMember::usual().await);
    let (of_a, of_b): (Vec<i32>, Vec<i32>) = (0..PARTITIONS).partition(|partition| partition % 2 == 0);
    a.set_view(&[&a, &b], vec![(a.uuid, of_a.clone()), (b.uuid, of_b.clone())], 1);
    let client = Client::connect(a.config()).await.unwrap();
    assert_eq!(client.connected_members().len(), 2);
    let map = client.map::<i32, String>("m");
    for key in 0..100 {
        map.get(&key).await.unwrap();
    }
    for (member, owned) in [(&a, &of_a), (&b, &of_b)] {
        let received = member.received(map::get::ID);
        assert!(!received.is_empty());
        assert!(received.iter().all(|received| owned.contains(&received.partition)));
    }
    assert_eq!(a.received(map::get::ID).len() + b.received(map::get::ID).len(), 100);
}

#[tokio::test]
async fn a_key_of_an_unconnected_owner_goes_to_any_member() {
    let member = FakeMember::usual().await;
    member.set_view(&[&member], vec![(Uuid::new_v4(), (0..PARTITIONS).collect())], 1);
    let client = Client::connect(member.config()).await.unwrap();
    assert_eq!(client.map::<i32, i32>("m").get(&1).await.unwrap(), None);
    let partition = client.partition_of(&1i32.to_blob().unwrap());
    assert_eq!(member.received(map::get::ID)[0].partition, partition.0 as i32);
}

#[tokio::test]
async fn a_wrong_cluster_name_is_refused_at_once() {
    let member = FakeMember::usual().await;
    let config = ClientConfig { cluster_name: "prod".to_owned(), ..member.config() };
    let error = Client::connect(config).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { refusal: Refusal::Credentials, .. }), "{error}");
    assert_eq!(member.received(client::authentication::ID).len(), 1);
}

#[tokio::test]
async fn addresses_at_which_nobody_listens_are_passed_over() {
    let member = FakeMember::usual().await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut config = member.config();
    config.addresses.insert(0, nobody.to_string());
    let client = Client::connect(config).await.unwrap();
    assert_eq!(client.connected_members(), [member.uuid]);

    let config = ClientConfig {
        addresses: vec![nobody.to_string()],
        cluster_connect_timeout: Duration::from_millis(20),
        ..member.config()
    };
    let error = Client::connect(config).await.unwrap_err();
    assert!(matches!(error, ClientError::NoMemberReached { .. }), "{error}");
    assert!(error.to_string().contains(&nobody.to_string()), "{error}");
    let error = Client::connect(ClientConfig { addresses: vec![], ..member.config() }).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAddress), "{error}");
}

#[tokio::test]
async fn a_read_survives_the_loss_of_its_connection() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let mut cut = false;
    member.set_script(move |received| {
        if received.id == map::get::ID && !std::mem::replace(&mut cut, true) { Act::Cut } else { Act::Usual }
    });
    assert_eq!(client.map::<i32, i32>("m").get(&1).await.unwrap(), None);
    let received = member.received(map::get::ID);
    assert_eq!(received.len(), 2);
    assert_ne!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn a_write_is_sent_twice_after_a_lost_connection_only_with_redo_operation() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let redo = Client::connect(ClientConfig { redo_operation: true, ..member.config() }).await.unwrap();
    member.set_script(|received| if received.id == map::set::ID { Act::Cut } else { Act::Usual });
    let error = client.map::<i32, i32>("m").set(&1, &1).await.unwrap_err();
    assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");
    assert_eq!(error.to_string().split(':').next().unwrap(), "Map.set");
    assert_eq!(member.received(map::set::ID).len(), 1);

    let mut cuts = 2;
    member.set_script(move |received| {
        if received.id == map::set::ID && cuts > 0 {
            cuts -= 1;
            return Act::Cut;
        }
        Act::Usual
    });
    redo.map::<i32, i32>("m").set(&1, &1).await.unwrap();
    assert_eq!(member.received(map::set::ID).len(), 4);
}

#[tokio::test]
async fn calls_made_while_no_member_is_there_wait_for_one() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    member.accept(false);
    member.cut_all();
    eventually(|| client.connected_members().is_empty()).await;
    let map = client.map::<i32, i32>("m");
    let call = tokio::spawn({
        let map = map.clone();
        async move { map.set(&1, &1).await }
    });
    // A write that was never sent may be retried.
    member.accept(true);
    call.await.unwrap().unwrap();
    assert_eq!(member.received(map::set::ID).len(), 1);
}

#[tokio::test]
async fn new_members_are_connected_and_departed_ones_disconnected() {
    let (a, b) = (FakeMember::usual().await, FakeMember::usual().await);
    let client = Client::connect(a.config()).await.unwrap();
    let all: Vec<i32> = (0..PARTITIONS).collect();
    a.set_view(&[&a, &b], vec![(b.uuid, all.clone())], 2);
    eventually(|| client.connected_members().len() == 2).await;
    let map = client.map::<i32, i32>("m");
    map.get(&1).await.unwrap();
    assert_eq!(b.received(map::get::ID).len(), 1);

    a.set_view(&[&a], vec![(a.uuid, all)], 3);
    eventually(|| client.connected_members() == [a.uuid]).await;
    map.get(&1).await.unwrap();
    assert_eq!(a.received(map::get::ID).len(), 1);
    assert_eq!(client.members().len(), 1);
}

#[tokio::test]
async fn the_view_is_listened_to_on_another_connection_when_its_own_is_lost() {
    let (a, b) = (FakeMember::usual().await, FakeMember::usual().await);
    let all: Vec<i32> = (0..PARTITIONS).collect();
    for member in [&a, &b] {
        member.set_view(&[&a, &b], vec![(a.uuid, all.clone())], 1);
    }
    let client = Client::connect(a.config()).await.unwrap();
    assert_eq!(client.connected_members().len(), 2);
    a.accept(false);
    a.cut_all();
    b.wait_for(client::add_cluster_view_listener::ID, 1).await;
    b.set_view(&[&b], vec![(b.uuid, all)], 1);
    eventually(|| client.members().len() == 1).await;
    assert_eq!(client.map::<i32, i32>("m").get(&1).await.unwrap(), None);
}

#[tokio::test]
async fn a_silent_member_is_disconnected() {
    let member = FakeMember::usual().await;
    let config = ClientConfig {
        heartbeat_interval: Duration::from_millis(10),
        heartbeat_timeout: Duration::from_millis(200),
        ..member.config()
    };
    let client = Client::connect(config).await.unwrap();
    member.wait_for(client::ping::ID, 3).await;
    member.set_script(|received| match received.id {
        map::set::ID | client::ping::ID => Act::Wait,
        _ => Act::Usual,
    });
    let error = client.map::<i32, i32>("m").set(&1, &1).await.unwrap_err();
    let ClientError::Disconnected { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.starts_with("no byte came for"), "{reason}");
    member.set_script(|_| Act::Usual);
    client.map::<i32, i32>("m").set(&1, &1).await.unwrap();
}

#[tokio::test]
async fn bytes_that_are_no_message_end_the_connection_and_the_client_goes_on() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    member.set_script(|received| match received.id {
        map::set::ID => Act::Send(vec![1, 0, 0, 0, 0, 0, 9, 9]),
        _ => Act::Usual,
    });
    let map = client.map::<i32, i32>("m");
    let error = map.set(&1, &1).await.unwrap_err();
    assert!(error.to_string().contains("a frame claims 1 bytes"), "{error}");
    assert_eq!(map.get(&1).await.unwrap(), None);
}

#[tokio::test]
async fn a_listener_is_registered_again_after_a_reconnection() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let mut events = client.map::<i32, String>("m").listen().await.unwrap();
    let added = |correlation: CorrelationId| {
        let (key, value) = (7i32.to_blob().unwrap(), "x".to_blob().unwrap());
        let event = map::add_entry_listener::EntryEvent {
            key: Some(&key),
            value: Some(&value),
            old_value: None,
            merging_value: None,
            event_type: 1,
            uuid: member.uuid,
            number_of_affected_entries: 1,
        };
        let mut out = Vec::new();
        event.encode(correlation, -1, &mut out);
        out
    };
    let first = member.wait_for(map::add_entry_listener::ID, 1).await[0].clone();
    member.send(first.connection, added(first.correlation));
    assert_eq!(events.next().await.unwrap().unwrap().key, Some(7));

    member.cut_all();
    let second = member.wait_for(map::add_entry_listener::ID, 2).await[1].clone();
    assert_ne!(first.connection, second.connection);
    eventually(|| client.connected_members() == [member.uuid]).await;
    member.send(second.connection, added(second.correlation));
    let event = events.next().await.unwrap().unwrap();
    assert_eq!((event.key, event.value.as_deref()), (Some(7), Some("x")));

    events.stop().await;
    let removed = member.received(map::remove_entry_listener::ID);
    let removed = Message::parse(&removed[0].bytes).unwrap();
    let removed = removed.decode::<map::remove_entry_listener::Request<'_>>().unwrap();
    assert_eq!(removed.registration_id, Uuid::from_u128(second.connection as u128 + 77));
}

#[tokio::test]
async fn shutting_down_ends_waiting_calls_and_refuses_new_ones() {
    let member = FakeMember::start(|received| if received.id == map::get::ID { Act::Wait } else { Act::Usual }).await;
    let config = ClientConfig { shutdown_timeout: Duration::from_millis(1), ..member.config() };
    let client = Client::connect(config).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let waiting = map.get(&1);
    client.shutdown().await;
    assert!(matches!(waiting.await, Err(ClientError::Shutdown)));
    assert!(matches!(map.get(&1).await, Err(ClientError::Shutdown)));
    assert!(matches!(map.listen().await, Err(ClientError::Shutdown)));
    assert!(client.connected_members().is_empty());
}

#[tokio::test]
async fn shutting_down_ends_streams_of_events_after_their_last_event() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let (mut buffered, mut waiting) = (map.listen().await.unwrap(), map.listen().await.unwrap());
    let received = member.wait_for(map::add_entry_listener::ID, 2).await[0].clone();
    let event = map::add_entry_listener::EntryEvent {
        key: None,
        value: None,
        old_value: None,
        merging_value: None,
        event_type: 64,
        uuid: member.uuid,
        number_of_affected_entries: 3,
    };
    let mut out = Vec::new();
    event.encode(received.correlation, -1, &mut out);
    // The response to the call follows the event on the same connection.
    member.send(received.connection, out);
    map.get(&1).await.unwrap();
    let waiting = tokio::spawn(async move { waiting.next().await });
    client.shutdown().await;
    let ended = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(matches!(ended, Ok(Ok(None))), "the stream waits after the shutdown");
    assert_eq!(buffered.next().await.unwrap().unwrap().affected, 3);
    assert!(buffered.next().await.is_none());
    assert!(!client.remove_listener(buffered.id()).await);
}

#[tokio::test]
async fn shutting_down_lets_calls_in_flight_finish() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let calls: Vec<_> = (0..100).map(|key| map.set(&key, &key)).collect();
    client.shutdown().await;
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(member.received(map::set::ID).len(), 100);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connections() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    drop(client);
    map.get(&1).await.unwrap();
    let waiting = {
        member.set_script(|_| Act::Wait);
        map.get(&1)
    };
    drop(map);
    assert!(matches!(waiting.await, Err(ClientError::Shutdown)));
}

#[tokio::test]
async fn responses_find_their_calls_in_any_order() {
    let mut held = None;
    let member = FakeMember::start(move |received| {
        if received.id != map::get::ID {
            return Act::Usual;
        }
        let request = Message::parse(&received.bytes).unwrap();
        let key = request.decode::<map::get::Request<'_>>().unwrap().key.to_vec();
        let answer = encode(received, &map::get::Response { response: Some(&key) });
        match held.take() {
            None => {
                held = Some(answer);
                Act::Wait
            }
            Some(first) => Act::Send([answer, first].concat()),
        }
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let (one, two) = (map.get(&1), map.get(&2));
    assert_eq!(one.await.unwrap(), Some(1));
    assert_eq!(two.await.unwrap(), Some(2));
}
