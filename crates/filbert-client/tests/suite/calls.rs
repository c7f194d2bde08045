//! Tests of calls: errors, retries, limits, large responses.

use std::time::Duration;

use crate::support::{Act, FakeMember, PARTITIONS, encode, error, eventually};
use filbert_client::{Blob, Client, ClientConfig, ClientError, ClientLimits, Json, Pipelining, ToBlob, code};
use filbert_wire::{Message, encode_fragmented, table::map};

#[tokio::test]
async fn an_error_of_the_member_says_what_it_is() {
    let member = FakeMember::start(|received| match received.id {
        map::unlock::ID => error(received, 26, "java.lang.IllegalMonitorStateException", "not the owner"),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let failed = client.map::<i32, i32>("m").unlock(&1).await.unwrap_err();
    assert_eq!(failed.code(), Some(code::ILLEGAL_MONITOR_STATE));
    assert_eq!(failed.to_string(), "Map.unlock: IllegalMonitorStateException: not the owner");
    assert_eq!(member.received(map::unlock::ID).len(), 1);
}

#[tokio::test]
async fn transient_errors_are_retried_even_for_writes() {
    let mut left = 3;
    let member = FakeMember::start(move |received| {
        if received.id == map::set::ID && left > 0 {
            left -= 1;
            return error(received, code::PARTITION_MIGRATING, "com.hazelcast.PartitionMigratingException", "moving");
        }
        Act::Usual
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    client.map::<i32, i32>("m").set(&1, &1).await.unwrap();
    let received = member.received(map::set::ID);
    assert_eq!(received.len(), 4);
    let after_ids = |bytes: &[u8]| bytes[18..].to_vec();
    assert!(received.iter().all(|retry| after_ids(&retry.bytes) == after_ids(&received[0].bytes)));
}

#[tokio::test]
async fn a_permanent_error_ends_in_a_timeout_that_names_it() {
    let member = FakeMember::start(|received| match received.id {
        map::get::ID => error(received, code::TARGET_NOT_MEMBER, "com.hazelcast.TargetNotMemberException", "gone"),
        _ => Act::Usual,
    })
    .await;
    let config = ClientConfig { invocation_timeout: Duration::from_millis(50), ..member.config() };
    let client = Client::connect(config).await.unwrap();
    let failed = client.map::<i32, i32>("m").get(&1).await.unwrap_err();
    assert!(matches!(failed, ClientError::Timeout { .. }), "{failed}");
    assert!(failed.to_string().ends_with("Map.get: TargetNotMemberException: gone"), "{failed}");
    assert!(member.received(map::get::ID).len() > 1);
}

#[tokio::test]
async fn a_call_beyond_the_limit_waits_for_others_to_finish() {
    let member = FakeMember::start(|received| if received.id == map::size::ID { Act::Wait } else { Act::Usual }).await;
    let limits = ClientLimits { calls_in_flight_max: 1, ..ClientLimits::default() };
    let client = Client::connect(ClientConfig { limits, ..member.config() }).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let first = map.size();
    let second = tokio::spawn({
        let map = map.clone();
        async move { map.get(&1).await }
    });
    let received = member.wait_for(map::size::ID, 1).await;
    assert!(member.received(map::get::ID).is_empty());
    member.send(received[0].connection, encode(&received[0], &map::size::Response { response: 9 }));
    assert_eq!(first.await.unwrap(), 9);
    assert_eq!(second.await.unwrap().unwrap(), None);
}

#[tokio::test]
async fn a_dropped_call_frees_its_slot() {
    let member = FakeMember::start(|received| if received.id == map::size::ID { Act::Wait } else { Act::Usual }).await;
    let limits = ClientLimits { calls_in_flight_max: 1, ..ClientLimits::default() };
    let client = Client::connect(ClientConfig { limits, ..member.config() }).await.unwrap();
    let map = client.map::<i32, i32>("m");
    drop(map.size());
    assert_eq!(map.get(&1).await.unwrap(), None);
}

#[tokio::test]
async fn values_above_the_limit_are_not_sent() {
    let member = FakeMember::usual().await;
    let limits = ClientLimits { value_bytes_max: 100, ..ClientLimits::default() };
    let client = Client::connect(ClientConfig { limits, ..member.config() }).await.unwrap();
    let map = client.map::<i32, String>("m");
    let failed = map.set(&1, "x".repeat(89).as_str()).await.unwrap_err();
    assert!(matches!(failed, ClientError::TooLarge { bytes: 101, limit: 100, .. }), "{failed}");
    map.set(&1, "x".repeat(88).as_str()).await.unwrap();
    assert_eq!(member.received(map::set::ID).len(), 1);
}

#[tokio::test]
async fn a_large_answer_in_fragments_is_put_together() {
    let value = vec![7u8; 1_000_000];
    let blob = value.to_blob().unwrap();
    let member = FakeMember::start(move |received| {
        if received.id != map::get_all::ID {
            return Act::Usual;
        }
        let key = 1i32.to_blob().unwrap();
        let entries = vec![(&*key, &*blob); 3];
        let whole = encode(received, &map::get_all::Response { response: entries });
        let mut fragments = Vec::new();
        encode_fragmented(&whole, 5, 1_000_100, &mut fragments).unwrap();
        Act::Send(fragments)
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let entries = client.map::<i32, Vec<u8>>("m").get_all(&[1]).await.unwrap();
    assert_eq!(entries, vec![(1, value); 3]);
}

#[tokio::test]
async fn an_answer_of_another_type_is_an_error_and_not_a_wrong_value() {
    let member = FakeMember::start(|received| match received.id {
        map::get::ID => {
            let text = "seven".to_blob().unwrap();
            Act::Send(encode(received, &map::get::Response { response: Some(&text) }))
        }
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let failed = client.map::<i32, i32>("m").get(&1).await.unwrap_err();
    assert_eq!(failed.to_string(), "a serialized text (-11) where int (-7) is expected");
    let raw: Option<Blob> = client.raw_map("m").get(&1i32.to_blob().unwrap()).await.unwrap();
    assert_eq!(raw, Some("seven".to_blob().unwrap()));
}

#[tokio::test]
async fn a_pipeline_keeps_the_order_and_never_exceeds_its_depth() {
    let member = FakeMember::start(|received| {
        if received.id != map::get::ID {
            return Act::Usual;
        }
        let request = Message::parse(&received.bytes).unwrap();
        let key = request.decode::<map::get::Request<'_>>().unwrap().key.to_vec();
        Act::Send(encode(received, &map::get::Response { response: Some(&key) }))
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    for depth in [1, 5, 100] {
        let mut pipeline = Pipelining::new(depth);
        for key in 0..1000 {
            pipeline.add(map.get(&key)).await;
            assert!(pipeline.in_flight() < depth);
        }
        let results: Vec<Option<i32>> = pipeline.results().await.into_iter().map(Result::unwrap).collect();
        assert_eq!(results, (0..1000).map(Some).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_dropped_guard_releases_its_lock_under_the_thread_that_took_it() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<String, Json>("m");
    let (one, two) = (map.locked("a").await.unwrap(), map.locked("b").await.unwrap());
    assert_ne!(one.map().thread(), two.map().thread());
    assert_ne!(one.map().thread(), map.thread());
    let thread = one.map().thread();
    drop(one);
    two.unlock().await.unwrap();
    let received = member.wait_for(map::unlock::ID, 2).await;
    let first = Message::parse(&received[0].bytes).unwrap();
    assert_eq!(first.decode::<map::unlock::Request<'_>>().unwrap().thread_id, thread);
}

#[tokio::test]
async fn iteration_goes_through_all_partitions_batch_by_batch() {
    let member = FakeMember::start(|received| {
        if received.id != map::fetch_keys::ID {
            return Act::Usual;
        }
        let request = Message::parse(&received.bytes).unwrap();
        let request = request.decode::<map::fetch_keys::Request<'_>>().unwrap();
        assert_eq!(request.batch, 2);
        // Two batches per partition. The second starts at the position that the first returned.
        let is_first = request.iteration_pointers == [(i32::MAX, -1)];
        let number = received.partition * 3 + if is_first { 0 } else { 2 };
        let keys: Vec<Blob> =
            (number..number + if is_first { 2 } else { 1 }).map(|key| key.to_blob().unwrap()).collect();
        let response = map::fetch_keys::Response {
            iteration_pointers: if is_first { vec![(i32::MAX, -1), (5, 64)] } else { vec![(-1, 64)] },
            keys: keys.iter().map(|key| &**key).collect(),
        };
        Act::Send(encode(received, &response))
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let keys = client.map::<i32, i32>("m").iter_keys().with_batch(2).collect().await.unwrap();
    assert_eq!(keys, (0..PARTITIONS * 3).collect::<Vec<_>>());
}

#[tokio::test]
async fn events_beyond_the_limit_are_counted_and_dropped() {
    use filbert_wire::Event;
    let member = FakeMember::usual().await;
    let limits = ClientLimits { events_waiting_max: 3, ..ClientLimits::default() };
    let client = Client::connect(ClientConfig { limits, ..member.config() }).await.unwrap();
    let mut events = client.map::<i32, i32>("m").listen().await.unwrap();
    let received = member.received(map::add_entry_listener::ID)[0].clone();
    let mut out = Vec::new();
    for affected in 0..10 {
        let event = map::add_entry_listener::EntryEvent {
            key: None,
            value: None,
            old_value: None,
            merging_value: None,
            event_type: 64,
            uuid: member.uuid,
            number_of_affected_entries: affected,
        };
        event.encode(received.correlation, -1, &mut out);
    }
    member.send(received.connection, out);
    eventually(|| events.lost() == 7).await;
    for affected in 0..3 {
        assert_eq!(events.next().await.unwrap().unwrap().affected, affected);
    }
}

#[tokio::test]
async fn a_listener_removed_during_its_registration_is_removed_from_the_member() {
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let events = client.map::<i32, i32>("m").listen().await.unwrap();
    member.set_script(|received| if received.id == map::add_entry_listener::ID { Act::Wait } else { Act::Usual });
    member.cut_all();
    let repeated = member.wait_for(map::add_entry_listener::ID, 2).await[1].clone();
    drop(events);
    let response = map::add_entry_listener::Response { response: uuid::Uuid::from_u128(5) };
    member.send(repeated.connection, encode(&repeated, &response));
    let removed = member.wait_for(map::remove_entry_listener::ID, 1).await;
    let removed = Message::parse(&removed[0].bytes).unwrap();
    let removed = removed.decode::<map::remove_entry_listener::Request<'_>>().unwrap();
    assert_eq!(removed.registration_id, uuid::Uuid::from_u128(5));
}

#[tokio::test]
async fn a_listener_that_panics_costs_its_connection_and_not_the_client() {
    use filbert_client::{EntryKinds, Listening};
    use filbert_wire::Event;
    let member = FakeMember::usual().await;
    let client = Client::connect(member.config()).await.unwrap();
    let map = client.map::<i32, i32>("m");
    let what = Listening::<i32> { kinds: EntryKinds::ALL, key: None, predicate: None, include_value: false };
    map.add_listener(what, |_| panic!("on purpose")).await.unwrap();
    let received = member.received(map::add_entry_listener::ID)[0].clone();
    let event = map::add_entry_listener::EntryEvent {
        key: None,
        value: None,
        old_value: None,
        merging_value: None,
        event_type: 64,
        uuid: member.uuid,
        number_of_affected_entries: 1,
    };
    let mut out = Vec::new();
    event.encode(received.correlation, -1, &mut out);
    member.send(received.connection, out);
    member.wait_for(map::add_entry_listener::ID, 2).await;
    assert_eq!(map.get(&1).await.unwrap(), None);
}
