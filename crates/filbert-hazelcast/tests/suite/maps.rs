//! The map messages: reads, changes, bulk messages, iteration.

use std::collections::BTreeSet;

use crate::common::{Client, Server};
use filbert_wire::{
    structure::SimpleEntryView,
    table::{client::destroy_proxy, map::*},
};

/// An always-true predicate as stock clients serialize it.
const TRUE_PREDICATE: [u8; 17] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe, 1, 0xff, 0xff, 0xff, 0xec, 0, 0, 0, 14];

const NAME: &str = "m";

fn do_put(client: &mut Client, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let reply = client.ok(&put::Request { name: NAME, key, value, thread_id: 1, ttl: -1 });
    reply.decode::<put::Response<'_>>().response.map(<[u8]>::to_vec)
}

fn do_get(client: &mut Client, key: &[u8]) -> Option<Vec<u8>> {
    let reply = client.ok(&get::Request { name: NAME, key, thread_id: 1 });
    reply.decode::<get::Response<'_>>().response.map(<[u8]>::to_vec)
}

fn do_size(client: &mut Client) -> i32 {
    client.ok(&size::Request { name: NAME }).decode::<size::Response>().response
}

fn some(value: &[u8]) -> Option<Vec<u8>> {
    Some(value.to_vec())
}

#[test]
fn puts_answer_what_their_flavour_answers() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(do_put(&mut client, b"k", b"1"), None);
    assert_eq!(do_put(&mut client, b"k", b"2"), some(b"1"));
    client.ok(&set::Request { name: NAME, key: b"k", value: b"3", thread_id: 1, ttl: -1 }).decode::<set::Response>();
    let reply = client.ok(&put_if_absent::Request { name: NAME, key: b"k", value: b"4", thread_id: 1, ttl: -1 });
    assert_eq!(reply.decode::<put_if_absent::Response<'_>>().response, Some(b"3".as_slice()));
    client
        .ok(&put_transient::Request { name: NAME, key: b"k", value: b"5", thread_id: 1, ttl: -1 })
        .decode::<put_transient::Response>();
    let reply = client.ok(&try_put::Request { name: NAME, key: b"k", value: b"6", thread_id: 1, timeout: 0 });
    assert!(reply.decode::<try_put::Response>().response);
    let reply = client.ok(&replace::Request { name: NAME, key: b"k", value: b"7", thread_id: 1 });
    assert_eq!(reply.decode::<replace::Response<'_>>().response, Some(b"6".as_slice()));
    let reply = client.ok(&replace::Request { name: NAME, key: b"none", value: b"7", thread_id: 1 });
    assert_eq!(reply.decode::<replace::Response<'_>>().response, None);
    for (test_value, expected) in [(b"1", false), (b"7", true)] {
        let request = replace_if_same::Request { name: NAME, key: b"k", test_value, value: b"8", thread_id: 1 };
        assert_eq!(client.ok(&request).decode::<replace_if_same::Response>().response, expected);
    }
    assert_eq!(do_get(&mut client, b"k"), some(b"8"));
    assert_eq!(do_get(&mut client, b"none"), None);
}

#[test]
fn puts_with_max_idle_answer_as_those_without() {
    let server = Server::start();
    let mut client = server.client();
    let (name, key, thread_id, ttl, max_idle) = (NAME, b"k".as_slice(), 1, -1, 60_000);
    let reply = client.ok(&put_with_max_idle::Request { name, key, value: b"1", thread_id, ttl, max_idle });
    assert_eq!(reply.decode::<put_with_max_idle::Response<'_>>().response, None);
    let reply = client.ok(&set_with_max_idle::Request { name, key, value: b"2", thread_id, ttl, max_idle });
    reply.decode::<set_with_max_idle::Response<'_>>();
    let request = put_if_absent_with_max_idle::Request { name, key, value: b"3", thread_id, ttl, max_idle };
    let reply = client.ok(&request);
    assert_eq!(reply.decode::<put_if_absent_with_max_idle::Response<'_>>().response, Some(b"2".as_slice()));
    let request = put_transient_with_max_idle::Request { name, key, value: b"4", thread_id, ttl, max_idle };
    client.ok(&request).decode::<put_transient_with_max_idle::Response<'_>>();
    let reply = client.ok(&get_entry_view::Request { name, key, thread_id });
    let response: get_entry_view::Response<'_> = reply.decode();
    assert_eq!(response.max_idle, 60_000);
    assert_eq!(response.response.unwrap().value, b"4");
}

#[test]
fn removals_answer_what_their_flavour_answers() {
    let server = Server::start();
    let mut client = server.client();
    let (name, thread_id) = (NAME, 1);
    for key in [b"a", b"b", b"c", b"d", b"e"] {
        do_put(&mut client, key, b"v");
    }
    let reply = client.ok(&remove::Request { name, key: b"a", thread_id });
    assert_eq!(reply.decode::<remove::Response<'_>>().response, Some(b"v".as_slice()));
    for (value, expected) in [(b"w", false), (b"v", true)] {
        let reply = client.ok(&remove_if_same::Request { name, key: b"b", value, thread_id });
        assert_eq!(reply.decode::<remove_if_same::Response>().response, expected);
    }
    for expected in [true, false] {
        let reply = client.ok(&delete::Request { name, key: b"c", thread_id });
        assert_eq!(reply.decode::<delete::Response>().response, expected);
        let reply = client.ok(&try_remove::Request { name, key: b"d", thread_id, timeout: 0 });
        assert_eq!(reply.decode::<try_remove::Response>().response, expected);
        let reply = client.ok(&evict::Request { name, key: b"e", thread_id });
        assert_eq!(reply.decode::<evict::Response>().response, expected);
    }
    assert_eq!(do_size(&mut client), 0);
}

#[test]
fn figures_and_questions_are_answered() {
    let server = Server::start();
    let mut client = server.client();
    let name = NAME;
    assert!(client.ok(&is_empty::Request { name }).decode::<is_empty::Response>().response);
    do_put(&mut client, b"k", b"v");
    assert!(!client.ok(&is_empty::Request { name }).decode::<is_empty::Response>().response);
    assert_eq!(do_size(&mut client), 1);
    for (key, expected) in [(b"k", true), (b"x", false)] {
        let reply = client.ok(&contains_key::Request { name, key, thread_id: 1 });
        assert_eq!(reply.decode::<contains_key::Response>().response, expected);
    }
    for (value, expected) in [(b"v", true), (b"x", false)] {
        let reply = client.ok(&contains_value::Request { name, value });
        assert_eq!(reply.decode::<contains_value::Response>().response, expected);
    }
    let reply = client.ok(&get_entry_view::Request { name, key: b"x", thread_id: 1 });
    assert_eq!(reply.decode::<get_entry_view::Response<'_>>().response, None);
}

#[test]
fn an_entry_with_a_time_to_live_goes_and_set_ttl_changes_it() {
    let server = Server::start();
    let mut client = server.client();
    let name = NAME;
    client.ok(&put::Request { name, key: b"short", value: b"v", thread_id: 1, ttl: 1 });
    crate::common::wait_until("the entry expires", || server.grid.map(name).unwrap().statistics().entries == 0);
    assert_eq!(do_get(&mut client, b"short"), None);

    do_put(&mut client, b"k", b"v");
    for (key, expected) in [(b"k", true), (b"x", false)] {
        let reply = client.ok(&set_ttl::Request { name, key, ttl: 60_000 });
        assert_eq!(reply.decode::<set_ttl::Response>().response, expected);
    }
    let reply = client.ok(&get_entry_view::Request { name, key: b"k", thread_id: 1 });
    let view = reply.decode::<get_entry_view::Response<'_>>().response.unwrap();
    assert_eq!(view.ttl, 60_000);
    assert!(view.expiration_time < i64::MAX);
}

#[test]
fn bulk_messages_write_and_list_all_entries() {
    let server = Server::start();
    let mut client = server.client();
    let name = NAME;
    let data: Vec<(Vec<u8>, Vec<u8>)> =
        (0..500_u16).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; usize::from(n) % 7])).collect();
    let entries = data.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
    client.ok(&put_all::Request { name, entries, trigger_map_loader: true }).decode::<put_all::Response>();
    assert_eq!(do_size(&mut client), 500);

    let all: BTreeSet<_> = data.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
    let reply = client.ok(&entry_set::Request { name });
    assert_eq!(reply.decode::<entry_set::Response<'_>>().response.into_iter().collect::<BTreeSet<_>>(), all);
    let reply = client.ok(&key_set::Request { name });
    let keys: BTreeSet<_> = reply.decode::<key_set::Response<'_>>().response.into_iter().collect();
    assert_eq!(keys, all.iter().map(|(key, _)| *key).collect());
    let reply = client.ok(&values::Request { name });
    assert_eq!(reply.decode::<values::Response<'_>>().response.len(), 500);

    let wanted = vec![data[3].0.as_slice(), b"none", data[9].0.as_slice()];
    let reply = client.ok(&get_all::Request { name, keys: wanted });
    let found: BTreeSet<_> = reply.decode::<get_all::Response<'_>>().response.into_iter().collect();
    assert_eq!(found, [&data[3], &data[9]].map(|(key, value)| (key.as_slice(), value.as_slice())).into());

    client.ok(&load_all::Request { name, replace_existing_values: true });
    client.ok(&load_given_keys::Request { name, keys: vec![b"x"], replace_existing_values: true });
    client.ok(&flush::Request { name });
    assert_eq!(do_size(&mut client), 500);
    client.ok(&clear::Request { name });
    assert_eq!(do_size(&mut client), 0);
    do_put(&mut client, b"k", b"v");
    client.ok(&evict_all::Request { name });
    assert_eq!(do_size(&mut client), 0);
}

#[test]
fn an_entry_put_with_its_metadata_keeps_it() {
    let server = Server::start();
    let mut client = server.client();
    let entry = SimpleEntryView {
        key: b"k",
        value: b"v",
        creation_time: 1_600_000_000_000,
        last_update_time: 1_600_000_001_000,
        last_access_time: 1_600_000_002_000,
        expiration_time: i64::MAX,
        hits: 7,
        version: 3,
        ttl: i64::MAX,
        max_idle: i64::MAX,
        ..SimpleEntryView::default()
    };
    client.ok(&put_all_with_metadata::Request { name: NAME, entries: vec![entry.clone()] });
    let reply = client.ok(&get_entry_view::Request { name: NAME, key: b"k", thread_id: 1 });
    let view = reply.decode::<get_entry_view::Response<'_>>().response.unwrap();
    assert_eq!(SimpleEntryView { cost: 0, ..view }, entry);
}

#[test]
fn remove_all_takes_the_predicate_that_is_always_true_and_no_other() {
    let server = Server::start();
    let mut client = server.client();
    do_put(&mut client, b"k", b"v");
    let mut other = TRUE_PREDICATE;
    other[16] = 13;
    for predicate in [other.as_slice(), &TRUE_PREDICATE[..16], b"", b"no predicate"] {
        let (code, _, text) = client.error(&remove_all::Request { name: NAME, predicate });
        assert_eq!(code, 61);
        assert!(text.contains("Map.removeAll"), "{text}");
    }
    assert_eq!(do_size(&mut client), 1);
    client.ok(&remove_all::Request { name: NAME, predicate: &TRUE_PREDICATE }).decode::<remove_all::Response>();
    assert_eq!(do_size(&mut client), 0);
}

/// Iterates over one partition as stock clients do. Returns the keys.
fn iterate(client: &mut Client, partition: i32, batch: i32, mut between: impl FnMut(&mut Client)) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut pointers = vec![(i32::MAX, -1)];
    while pointers.last().unwrap().0 >= 0 {
        let request = fetch_keys::Request { name: NAME, iteration_pointers: pointers, batch };
        let correlation = client.send_to(&request, partition);
        let reply = client.reply_to(correlation);
        let response: fetch_keys::Response<'_> = reply.decode();
        if response.keys.is_empty() {
            break;
        }
        keys.extend(response.keys.iter().map(|key| key.to_vec()));
        pointers = response.iteration_pointers;
        between(client);
    }
    keys
}

#[test]
fn iteration_finds_every_entry_once_while_the_map_changes() {
    let server = Server::start();
    let mut client = server.client();
    let put_at = |client: &mut Client, key: &[u8]| {
        let request = put::Request { name: NAME, key, value: b"v", thread_id: 1, ttl: -1 };
        client.ok(&request).decode::<put::Response<'_>>();
    };
    // The header of each key binds it to one partition.
    let bound = |key: u32| [5u32.to_be_bytes(), key.to_be_bytes()].concat();
    for key in 0..2000_u32 {
        put_at(&mut client, &bound(key));
    }
    let mut fresh = 10_000_u32;
    let keys = iterate(&mut client, 5, 50, |client| {
        for _ in 0..100 {
            put_at(client, &bound(fresh));
            fresh += 1;
        }
    });
    let unique: BTreeSet<_> = keys.iter().cloned().collect();
    assert_eq!(unique.len(), keys.len(), "a key came twice");
    assert!((0..2000_u32).all(|key| unique.contains(&bound(key))), "a key is missing");
    assert!(iterate(&mut client, 6, 50, |_| {}).is_empty());
}

#[test]
fn fetch_entries_brings_values_along() {
    let server = Server::start();
    let mut client = server.client();
    let key = b"\0\0\0\x03key";
    client.ok(&put::Request { name: NAME, key, value: b"v", thread_id: 1, ttl: -1 });
    let request = fetch_entries::Request { name: NAME, iteration_pointers: vec![(i32::MAX, -1)], batch: 10 };
    let correlation = client.send_to(&request, 3);
    let reply = client.reply_to(correlation);
    let response: fetch_entries::Response<'_> = reply.decode();
    assert_eq!(response.entries, [(key.as_slice(), b"v".as_slice())]);
    assert!(response.iteration_pointers[0].0 < 0);
}

#[test]
fn an_iteration_that_makes_no_sense_is_refused() {
    let server = Server::start();
    let mut client = server.client();
    for (pointers, batch, partition) in
        [(vec![], 10, 1), (vec![(i32::MAX, -1)], 0, 1), (vec![(i32::MAX, -1)], 10, -1), (vec![(3, 16)], 10, 1)]
    {
        let request = fetch_keys::Request { name: NAME, iteration_pointers: pointers, batch };
        let correlation = client.send_to(&request, partition);
        let (code, class, text) = client.reply_to(correlation).error();
        assert_eq!((code, class.as_str()), (23, "java.lang.IllegalArgumentException"));
        assert!(text.starts_with("Map.fetchKeys: "), "{text}");
    }
}

#[test]
fn a_destroyed_map_is_recreated_on_its_next_use() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    do_put(&mut client, b"k", b"v");
    other.ok(&destroy_proxy::Request { name: NAME, service_name: "hz:impl:mapService" });
    assert_eq!(do_get(&mut client, b"k"), None);
    assert_eq!(do_put(&mut client, b"k", b"w"), None);
    assert_eq!(do_get(&mut other, b"k"), some(b"w"));
}

#[test]
fn more_maps_than_a_connection_keeps_handles_of_are_served() {
    let server = Server::with_door(|door| door.handles_max = 4);
    let mut client = server.client();
    let names: Vec<String> = (0..20).map(|n| format!("map {n}")).collect();
    for round in 0..2 {
        for name in &names {
            let request = put::Request { name, key: b"k", value: name.as_bytes(), thread_id: 1, ttl: -1 };
            let reply = client.ok(&request);
            let expected = (round == 1).then_some(name.as_bytes());
            assert_eq!(reply.decode::<put::Response<'_>>().response, expected);
        }
    }
}

#[test]
fn a_thousand_pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    let mut client = server.client();
    let mut batch = Vec::new();
    let mut correlations = Vec::new();
    for key in 0..1000_u32 {
        let key = key.to_be_bytes();
        let request = put::Request { name: NAME, key: &key, value: &key, thread_id: 1, ttl: -1 };
        let (correlation, bytes) = client.encode(&request, -1);
        batch.extend_from_slice(&bytes);
        correlations.push(correlation);
    }
    client.write(&batch);
    for correlation in correlations {
        client.reply_to(correlation).decode::<put::Response<'_>>();
    }
    assert_eq!(do_size(&mut client), 1000);
}

#[test]
fn a_reply_beyond_the_limit_is_refused_and_iteration_goes_on() {
    let server = Server::with_door(|door| door.reply_bytes_max = 10_000);
    let mut client = server.client();
    for key in 0..20_u8 {
        do_put(&mut client, &[key], &[7; 1000]);
    }
    assert_eq!(client.ok(&key_set::Request { name: NAME }).decode::<key_set::Response<'_>>().response.len(), 20);
    let (code, class, text) = client.error(&entry_set::Request { name: NAME });
    assert_eq!((code, class.as_str()), (20, "com.hazelcast.core.HazelcastOverloadException"));
    assert!(text.contains("Map.entrySet") && text.contains("reply_bytes_max"), "{text}");
    let found: usize = (0..271).map(|partition| iterate(&mut client, partition, 10, |_| {}).len()).sum();
    assert_eq!(found, 20);
}

#[test]
fn a_key_is_where_its_hash_says_whatever_the_header_does() {
    let server = Server::start();
    let mut client = server.client();
    // A key with the hash of another key in its header. Clients send such keys to keep entries
    // together.
    let bound = [&7i32.to_be_bytes()[..], b"\xff\xff\xff\xf5together"].concat();
    for key in [b"\0\0\0\0\xff\xff\xff\xf5plain".as_slice(), &bound] {
        let own = filbert_data::partition_of(key, 271).0 as i32;
        let others = [(own + 1) % 271, (own + 100) % 271];
        for (number, partition) in others.into_iter().chain([own, -1, 271, i32::MAX]).enumerate() {
            let value = number.to_string();
            let request = put::Request { name: NAME, key, value: value.as_bytes(), thread_id: 1, ttl: -1 };
            let correlation = client.send_to(&request, partition);
            client.reply_to(correlation).decode::<put::Response<'_>>();
            assert_eq!(do_size(&mut client), 1);
            for partition in [own, others[0], -1] {
                let correlation = client.send_to(&get::Request { name: NAME, key, thread_id: 1 }, partition);
                let reply = client.reply_to(correlation);
                assert_eq!(reply.decode::<get::Response<'_>>().response, Some(value.as_bytes()));
                let request = get_all::Request { name: NAME, keys: vec![key] };
                let correlation = client.send_to(&request, partition);
                assert_eq!(client.reply_to(correlation).decode::<get_all::Response<'_>>().response.len(), 1);
            }
        }
        let map = server.grid.map(NAME).unwrap();
        assert!(map.contains_key(map.partition_of(key), key));
        let correlation = client.send_to(&delete::Request { name: NAME, key, thread_id: 1 }, others[1]);
        client.reply_to(correlation).decode::<delete::Response>();
        assert_eq!(do_size(&mut client), 0);
    }
}
