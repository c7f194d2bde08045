//! Query caches: their initial content, later changes, resending of changes, and their end.

use std::{sync::Arc, time::Duration};

use crate::common::{Client, Server, wait_until};
use filbert_grid::GridConfig;
use filbert_hazelcast::DoorConfig;
use filbert_test_engine::Engine;
use filbert_wire::{
    MessageId, Uuid,
    table::{continuous_query::*, map},
};

const MAP: &str = "m";
const CACHE: &str = "cache";

fn start() -> Server {
    with(|_| ())
}

fn with(change: impl FnOnce(&mut DoorConfig)) -> Server {
    let mut door = DoorConfig::default();
    change(&mut door);
    let server = Server::with(door, GridConfig::default());
    assert!(server.grid.serve_queries(Arc::new(Engine::default())));
    server
}

fn put(client: &mut Client, key: &str, value: &str) {
    let (key, value) = (key.as_bytes(), value.as_bytes());
    client.ok(&map::put::Request { name: MAP, key, value, thread_id: 1, ttl: -1 });
}

fn remove(client: &mut Client, key: &str) {
    client.ok(&map::remove::Request { name: MAP, key: key.as_bytes(), thread_id: 1 });
}

fn create() -> publisher_create_with_value::Request<'static> {
    publisher_create_with_value::Request {
        map_name: MAP,
        cache_name: CACHE,
        predicate: b"a",
        batch_size: 1,
        buffer_size: 16,
        delay_seconds: 0,
        populate: true,
        coalesce: false,
    }
}

fn listen(client: &mut Client) -> Uuid {
    let reply = client.ok(&add_listener::Request { listener_name: CACHE, local_only: false });
    reply.decode::<add_listener::Response>().response
}

/// Creates a cache as the stock clients do. Returns its initial content.
fn open(client: &mut Client, create: &publisher_create_with_value::Request<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    listen(client);
    let reply = client.ok(create);
    let response: publisher_create_with_value::Response<'_> = reply.decode();
    let content = response.response.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    let reply = client.ok(&made_publishable::Request { map_name: MAP, cache_name: CACHE });
    assert!(reply.decode::<made_publishable::Response>().response);
    content
}

/// A received change: kind, key, value, sequence.
type Heard = (i32, Option<String>, Option<String>, i64);

/// The changes of the next event.
fn hear(client: &mut Client) -> Vec<Heard> {
    let event = client.event();
    let text = |data: Option<&[u8]>| data.map(|data| String::from_utf8(data.to_vec()).unwrap());
    let heard = |data: &filbert_wire::structure::QueryCacheEventData<'_>| {
        assert_eq!(data.map_name, MAP);
        assert_eq!(data.partition_id, event.message().partition_id());
        (data.event_type, text(data.data_key), text(data.data_new_value), data.sequence)
    };
    if event.message().id() == MessageId(0x16_04_02) {
        vec![heard(&event.decode::<add_listener::QueryCacheSingleEvent<'_>>().data)]
    } else {
        let batch: add_listener::QueryCacheBatchEvent<'_> = event.decode();
        assert!(batch.source.starts_with("[127.0.0.1]:"), "{}", batch.source);
        batch.events.iter().map(heard).collect()
    }
}

fn change(kind: i32, key: &str, value: Option<&str>, sequence: i64) -> Heard {
    (kind, Some(key.to_owned()), value.map(str::to_owned), sequence)
}

#[test]
fn a_cache_begins_with_what_is_there_and_hears_what_changes() {
    let server = start();
    let mut client = server.client();
    put(&mut client, "k1", "a1");
    put(&mut client, "k2", "b2");
    for predicate in [b"a".as_slice(), b"long:a"] {
        let mut client = server.client();
        let content = open(&mut client, &publisher_create_with_value::Request { predicate, ..create() });
        assert_eq!(content, [(b"k1".to_vec(), b"a1".to_vec())]);
        // One key, so that all changes belong to one partition.
        put(&mut client, "k2", "a3");
        put(&mut client, "k2", "a4");
        put(&mut client, "k2", "b5");
        remove(&mut client, "k2");
        put(&mut client, "k2", "b2");
        let mut heard = Vec::new();
        while heard.len() < 3 {
            heard.extend(hear(&mut client));
        }
        let expected = [change(1, "k2", Some("a3"), 1), change(4, "k2", Some("a4"), 2), change(2, "k2", None, 3)];
        assert_eq!(heard, expected);
        assert!(
            client
                .ok(&destroy_cache::Request { map_name: MAP, cache_name: CACHE })
                .decode::<destroy_cache::Response>()
                .response
        );
    }
}

#[test]
fn a_cache_of_keys_hears_no_values() {
    let server = start();
    let mut client = server.client();
    put(&mut client, "k1", "a1");
    listen(&mut client);
    let reply = client.ok(&publisher_create::Request {
        map_name: MAP,
        cache_name: CACHE,
        predicate: b"a",
        batch_size: 1,
        buffer_size: 16,
        delay_seconds: 0,
        populate: true,
        coalesce: false,
    });
    assert_eq!(reply.decode::<publisher_create::Response<'_>>().response, [b"k1"]);
    client.ok(&made_publishable::Request { map_name: MAP, cache_name: CACHE });
    put(&mut client, "k2", "a2");
    assert_eq!(hear(&mut client), [change(1, "k2", None, 1)]);
}

#[test]
fn changes_before_the_client_is_ready_are_sent_when_it_is() {
    let server = start();
    let mut client = server.client();
    listen(&mut client);
    client.ok(&create());
    put(&mut client, "k", "a1");
    put(&mut client, "k", "a2");
    client.ok(&made_publishable::Request { map_name: MAP, cache_name: CACHE });
    assert_eq!(hear(&mut client), [change(1, "k", Some("a1"), 1), change(4, "k", Some("a2"), 2)]);
}

#[test]
fn without_a_first_content_changes_are_sent_at_once() {
    let server = start();
    let mut client = server.client();
    put(&mut client, "k", "a1");
    listen(&mut client);
    let reply = client.ok(&publisher_create_with_value::Request { populate: false, ..create() });
    assert!(reply.decode::<publisher_create_with_value::Response<'_>>().response.is_empty());
    put(&mut client, "k", "a2");
    assert_eq!(hear(&mut client), [change(4, "k", Some("a2"), 1)]);
}

#[test]
fn batches_are_sent_when_full_or_late() {
    let server = start();
    let mut client = server.client();
    let create = publisher_create_with_value::Request { batch_size: 3, delay_seconds: 1, populate: false, ..create() };
    listen(&mut client);
    client.ok(&create);
    for value in ["a1", "a2", "a3", "a4"] {
        put(&mut client, "k", value);
    }
    let batch = hear(&mut client);
    assert_eq!(batch.iter().map(|heard| heard.3).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(hear(&mut client), [change(4, "k", Some("a4"), 4)]);
}

#[test]
fn lost_changes_can_be_resent_while_they_are_kept() {
    let server = start();
    let mut client = server.client();
    open(&mut client, &publisher_create_with_value::Request { buffer_size: 2, populate: false, ..create() });
    for value in ["a1", "a2", "a3"] {
        put(&mut client, "k", value);
        hear(&mut client);
    }
    let partition = filbert_data::partition_of(b"k", 271).0 as i32;
    let mut set = |sequence: i64| {
        let request = set_read_cursor::Request { map_name: MAP, cache_name: CACHE, sequence };
        let correlation = client.send_to(&request, partition);
        let reply = client.reply_to(correlation);
        reply.decode::<set_read_cursor::Response>().response
    };
    assert!(!set(1), "two are kept");
    assert!(!set(4));
    assert!(set(2));
    assert_eq!(hear(&mut client), [change(4, "k", Some("a2"), 2), change(4, "k", Some("a3"), 3)]);
}

#[test]
fn a_clear_is_sent_for_every_partition_between_its_changes() {
    let server = start();
    let mut client = server.client();
    open(&mut client, &publisher_create_with_value::Request { populate: false, ..create() });
    put(&mut client, "k", "a1");
    client.ok(&map::clear::Request { name: MAP });
    put(&mut client, "k", "a2");
    let partition = filbert_data::partition_of(b"k", 271).0 as i32;
    let mut of_key = Vec::new();
    let mut cleared = 0;
    while of_key.len() < 3 || cleared < 271 {
        let event = client.event();
        let data = event.decode::<add_listener::QueryCacheSingleEvent<'_>>().data;
        cleared += usize::from(data.event_type == 64);
        if data.partition_id == partition {
            of_key.push((data.event_type, data.sequence));
        }
    }
    assert_eq!(of_key, [(1, 1), (64, 2), (1, 3)]);
}

#[test]
fn a_cache_ends_when_it_is_destroyed_and_when_nobody_listens_for_long() {
    let server = with(|door| door.query_cache_orphan_timeout = Duration::from_millis(50));
    let listeners = || server.grid.statistics().listeners;
    let mut client = server.client();
    assert_eq!(listeners(), 0);
    open(&mut client, &create());
    assert_eq!(listeners(), 1);
    let destroy = destroy_cache::Request { map_name: MAP, cache_name: CACHE };
    assert!(client.ok(&destroy).decode::<destroy_cache::Response>().response);
    assert!(!client.ok(&destroy).decode::<destroy_cache::Response>().response);
    assert_eq!(listeners(), 0);

    client.ok(&create());
    client.close();
    wait_until("the cache of the client that went is gone", || listeners() == 0);
    server.assert_serves();
}

#[test]
fn a_listener_is_removed_by_the_message_for_map_listeners() {
    let server = start();
    let mut client = server.client();
    let registration_id = listen(&mut client);
    client.ok(&publisher_create_with_value::Request { populate: false, ..create() });
    let request = map::remove_entry_listener::Request { name: CACHE, registration_id };
    assert!(client.ok(&request).decode::<map::remove_entry_listener::Response>().response);
    assert!(!client.ok(&request).decode::<map::remove_entry_listener::Response>().response);
    put(&mut client, "k", "a1");
    assert!(client.ok(&map::size::Request { name: MAP }).decode::<map::size::Response>().response == 1);
}

#[test]
fn caches_have_a_limit_and_settings_are_checked() {
    let server = with(|door| door.query_caches_max = 1);
    let mut client = server.client();
    client.ok(&create());
    let (_, class, text) = client.error(&publisher_create_with_value::Request { cache_name: "other", ..create() });
    assert_eq!(class, "com.hazelcast.core.HazelcastOverloadException");
    assert!(text.contains("query_caches_max"), "{text}");
    // Another client has its own limit.
    server.client().ok(&publisher_create_with_value::Request { cache_name: "other", ..create() });
    for request in [
        publisher_create_with_value::Request { batch_size: 0, ..create() },
        publisher_create_with_value::Request { buffer_size: -1, ..create() },
        publisher_create_with_value::Request { delay_seconds: -1, ..create() },
    ] {
        assert_eq!(server.client().error(&request).0, 23);
    }
    let (code, ..) = server.client().error(&publisher_create_with_value::Request { predicate: b"broken", ..create() });
    assert_eq!(code, 21);
}
