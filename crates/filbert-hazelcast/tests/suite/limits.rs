//! Limits of the memory that clients can occupy in a member: names, query caches, and unread
//! replies.

use std::sync::Arc;

use crate::common::{Client, Server, wait_until};
use filbert_grid::{GridConfig, MAP_SERVICE, NAME_BYTES_MAX};
use filbert_hazelcast::DoorConfig;
use filbert_test_engine::Engine;
use filbert_wire::{
    structure::{FieldDescriptor, IndexConfig, Schema},
    table::{
        client::{create_proxies, create_proxy, destroy_proxy, send_schema},
        continuous_query::{add_listener, publisher_create_with_value},
        map::{
            add_entry_listener, add_index, aggregate_with_predicate, entries_with_predicate, entry_set, get, get_all,
            get_entry_view, key_set, key_set_with_predicate, project_with_predicate, remove, remove_all, set, size,
            values, values_with_predicate,
        },
    },
};

fn start() -> Server {
    with_buffers(None)
}

fn with_buffers(buffers_bytes_max: Option<usize>) -> Server {
    let grid = GridConfig { buffers_bytes_max, ..GridConfig::default() };
    let server = Server::with(DoorConfig::default(), grid);
    assert!(server.grid.serve_queries(Arc::new(Engine::default())));
    server
}

fn create_cache<'a>(map_name: &'a str, cache_name: &'a str) -> publisher_create_with_value::Request<'a> {
    publisher_create_with_value::Request {
        map_name,
        cache_name,
        predicate: b"",
        batch_size: 1,
        buffer_size: i32::MAX,
        delay_seconds: i64::MAX,
        populate: false,
        coalesce: false,
    }
}

#[test]
fn names_without_end_are_refused_however_they_come() {
    let server = start();
    let mut client = server.client();
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    let before = server.grid.statistics();
    let check = |(code, class, text): (i32, String, String)| {
        assert_eq!((code, class.as_str()), (23, "java.lang.IllegalArgumentException"), "{text}");
        assert!(text.contains("name of 1025 bytes, expected at most 1024") && text.len() < 2_000, "{text}");
    };
    check(client.error(&set::Request { name: &long, key: b"key", value: b"value", thread_id: 1, ttl: -1 }));
    check(client.error(&size::Request { name: &long }));
    check(client.error(&create_proxy::Request { name: &long, service_name: MAP_SERVICE }));
    check(client.error(&create_proxy::Request { name: "m", service_name: &long }));
    check(client.error(&create_proxies::Request { proxies: vec![(&long, MAP_SERVICE)] }));
    check(client.error(&create_cache(&long, "cache")));
    check(client.error(&add_listener::Request { listener_name: &long, local_only: false }));
    let listen = add_entry_listener::Request { name: &long, include_value: true, listener_flags: 1, local_only: true };
    check(client.error(&listen));
    let fields = vec![FieldDescriptor { field_name: &long, kind: 8 }];
    check(client.error(&send_schema::Request { schema: Schema { type_name: "person", fields } }));
    check(client.error(&send_schema::Request { schema: Schema { type_name: &long, fields: Vec::new() } }));
    assert_eq!(server.grid.statistics().objects, before.objects);
    assert_eq!(server.grid.budget().used(), 0);

    let index = |name, attributes| add_index::Request {
        name: "m",
        index_config: IndexConfig { name, kind: 0, attributes, bitmap_index_options: None, b_tree_index_config: None },
    };
    check(client.error(&index(Some(long.as_str()), vec!["a"])));
    check(client.error(&index(None, vec![&long])));
    check(client.error(&create_cache("m", &long)));
    assert_eq!(server.grid.map("m").unwrap().indexes().len(), 0);
    // The longest allowed names work like other names.
    let longest = &long[1..];
    client.ok(&set::Request { name: longest, key: b"key", value: b"value", thread_id: 1, ttl: -1 });
    client.ok(&index(Some(longest), vec!["a"]));
    client.ok(&create_cache("m", longest));
    server.assert_serves();
}

fn set(client: &mut Client, name: &str, key: u32, value: &[u8]) {
    client.ok(&set::Request { name, key: &key.to_be_bytes(), value, thread_id: 1, ttl: -1 });
}

#[test]
fn query_caches_share_a_quarter_of_the_budget_and_go_with_their_client_and_their_map() {
    const BUFFERS_BYTES: usize = 8 << 20;
    /// The size of a cache without changes, for all partitions.
    const CACHE_BYTES: usize = 128 << 10;
    let server = with_buffers(Some(BUFFERS_BYTES));
    let used = || server.grid.budget().used();
    let mut other = server.client();
    let value = vec![7; 50_000];
    let mut fill = || (0..100).for_each(|key| set(&mut other, "m", key, &value));

    let mut first = server.client();
    let second = Client::connect_as(server.address, first.uuid);
    first.ok(&create_cache("m", "a"));
    first.ok(&create_cache("m", "b"));
    fill();
    assert!((BUFFERS_BYTES / 8..=BUFFERS_BYTES / 4).contains(&used()), "{}", used());
    first.close();
    wait_until("one connection is left", || server.monitor.statistics().connections == 2);
    assert!(used() > CACHE_BYTES, "{}", used());
    second.close();
    wait_until("changes go with the last connection", || used() <= CACHE_BYTES);
    fill();
    assert!(used() <= CACHE_BYTES, "{}", used());

    let mut client = server.client();
    client.ok(&create_cache("m", "c"));
    fill();
    assert!(used() > BUFFERS_BYTES / 8, "{}", used());
    client.ok(&destroy_proxy::Request { name: "m", service_name: MAP_SERVICE });
    assert!(used() <= CACHE_BYTES, "{}", used());
    server.assert_serves();
}

#[test]
fn queries_end_when_their_connection_is_gone() {
    let engine = Arc::new(Engine::default());
    let server = Server::start();
    assert!(server.grid.serve_queries(engine.clone()));
    let mut client = server.client();
    set(&mut client, "m", 1, b"value");
    let predicate: &[u8] = b"long:hang";
    let name = "m";
    client.send(&key_set_with_predicate::Request { name, predicate });
    client.send(&aggregate_with_predicate::Request { name, aggregator: b"count", predicate });
    client.send(&project_with_predicate::Request { name, projection: b"first", predicate });
    client.send(&remove_all::Request { name, predicate });
    client.send(&publisher_create_with_value::Request { predicate, populate: true, ..create_cache(name, "cache") });
    wait_until("all run", || engine.hanging() == 5);
    client.close();
    wait_until("none runs for a client that has gone", || engine.hanging() == 0);
    server.assert_serves();
}

/// Fills a map with values of 100,000 bytes. Returns their total size.
fn fill(server: &Server, entries: u32) -> usize {
    let mut client = server.client();
    let value = vec![7; 100_000];
    (0..entries).for_each(|key| set(&mut client, "m", key, &value));
    entries as usize * value.len()
}

#[test]
fn answers_that_nobody_reads_are_built_one_after_the_other() {
    let server = start();
    let bytes = fill(&server, 100);
    // One reply and the rest of the one before it, without additional copies of either.
    let bytes_max = bytes + bytes / 2;
    let budget = server.grid.budget();
    let mut deaf = server.client();
    let mut batch = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..36 {
        let (correlation, request) = deaf.encode(&values::Request { name: "m" }, -1);
        sent.push(correlation);
        batch.extend_from_slice(&request);
    }
    deaf.write(&batch);
    wait_until("the first is built", || server.monitor.statistics().buffer_bytes > bytes / 2);
    server.assert_serves();
    let (used, held) = (budget.used(), server.monitor.statistics().buffer_bytes);
    assert!(used <= bytes_max && held <= bytes_max, "{used} and {held} bytes are held for {bytes}");
    // A client that reads receives all replies, in order.
    for correlation in sent {
        let reply = deaf.reply_to(correlation);
        assert_eq!(reply.decode::<values::Response<'_>>().response.len(), 100);
        let used = budget.used();
        assert!(used <= bytes_max, "{used} bytes are held for {bytes}");
    }
    wait_until("all room is given back", || budget.used() == 0);
    server.wait_until_idle(2);
}

#[test]
fn answers_that_there_is_no_room_for_are_refused_and_nobody_else_notices() {
    const BUFFERS_BYTES: usize = 16 << 20;
    for has_engine in [true, false] {
        let grid = GridConfig { buffers_bytes_max: Some(BUFFERS_BYTES), ..GridConfig::default() };
        let server = Server::with(DoorConfig::default(), grid);
        if has_engine {
            assert!(server.grid.serve_queries(Arc::new(Engine::default())));
        }
        let budget = server.grid.budget();
        let bytes = fill(&server, 60);
        wait_until("what was sent is gone", || budget.used() == 0);
        let held = budget.reserve(BUFFERS_BYTES - bytes / 2).unwrap();
        let mut client = server.client();
        let keys: Vec<[u8; 4]> = (0..60_u32).map(u32::to_be_bytes).collect();
        let keys = || keys.iter().map(<[u8; 4]>::as_slice).collect();
        let mut errors = vec![
            client.error(&values::Request { name: "m" }),
            client.error(&entry_set::Request { name: "m" }),
            client.error(&get_all::Request { name: "m", keys: keys() }),
        ];
        for predicate in [b"".as_slice(), b"long:"].into_iter().filter(|_| has_engine) {
            errors.push(client.error(&values_with_predicate::Request { name: "m", predicate }));
            errors.push(client.error(&entries_with_predicate::Request { name: "m", predicate }));
        }
        for (code, class, text) in errors {
            assert_eq!((code, class.as_str()), (74, "com.hazelcast.memory.NativeOutOfMemoryError"), "{text}");
            assert!(text.contains("buffers_bytes_max"), "{text}");
        }
        // A short reply fits, and all reservations are released.
        assert_eq!(client.ok(&key_set::Request { name: "m" }).decode::<key_set::Response<'_>>().response.len(), 60);
        server.assert_serves();
        assert_eq!(budget.used(), held.bytes());
        drop(held);
        assert_eq!(client.ok(&values::Request { name: "m" }).decode::<values::Response<'_>>().response.len(), 60);
        wait_until("all room is given back", || budget.used() == 0);

        // Half of the budget is reserved for other buffers.
        fill(&server, 90);
        let (code, _, text) = client.error(&values::Request { name: "m" });
        assert_eq!(code, 74, "{text}");
        assert!(text.contains("replies have half"), "{text}");
        wait_until("all room is given back", || budget.used() == 0);
    }
}

#[test]
fn long_values_that_are_read_have_room_of_the_budget() {
    const BUFFERS_BYTES: usize = 32 << 20;
    let server = with_buffers(Some(BUFFERS_BYTES));
    let budget = server.grid.budget();
    let value = vec![7; 5 << 20];
    let mut client = server.client();
    set(&mut client, "m", 1, &value);
    wait_until("its message is gone", || budget.used() == 0);
    let held = budget.reserve(BUFFERS_BYTES - (1 << 20)).unwrap();
    let key = 1_u32.to_be_bytes();
    let get = get::Request { name: "m", key: &key, thread_id: 1 };
    assert_eq!(client.error(&get).0, 74);
    assert_eq!(client.error(&get_entry_view::Request { name: "m", key: &key, thread_id: 1 }).0, 74);
    server.assert_serves();
    // A change is answered in any case.
    let remove = remove::Request { name: "m", key: &key, thread_id: 1 };
    assert!(client.ok(&remove).decode::<remove::Response<'_>>().response == Some(&value[..]));
    drop(held);
    set(&mut client, "m", 1, &value);
    assert!(client.ok(&get).decode::<get::Response<'_>>().response == Some(&value[..]));
    wait_until("all room is given back", || budget.used() == 0);
}
