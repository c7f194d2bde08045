//! Locks, waiting for locks, and messages without a request: entry events, invalidations, journals,
//! objects.

use std::{collections::HashMap, time::Duration};

use crate::common::{Client, Server, wait_until};
use filbert_grid::{EventJournalConfig, GridConfig, MapConfig};
use filbert_hazelcast::DoorConfig;
use filbert_wire::{
    structure::{FieldDescriptor, Schema},
    table::{
        client::{
            add_distributed_object_listener, add_migration_listener, create_proxies, destroy_proxy, fetch_schema,
            remove_distributed_object_listener, remove_migration_listener, send_all_schemas, send_schema,
        },
        map::*,
    },
};

const NAME: &str = "m";
const KEY: &[u8] = b"key";

fn lock(thread_id: i64, reference_id: i64) -> lock::Request<'static> {
    lock::Request { name: NAME, key: KEY, thread_id, ttl: -1, reference_id }
}

fn unlock(thread_id: i64, reference_id: i64) -> unlock::Request<'static> {
    unlock::Request { name: NAME, key: KEY, thread_id, reference_id }
}

fn put(value: &'static [u8]) -> put::Request<'static> {
    put::Request { name: NAME, key: KEY, value, thread_id: 1, ttl: -1 }
}

fn is_locked(client: &mut Client) -> bool {
    client.ok(&is_locked::Request { name: NAME, key: KEY }).decode::<is_locked::Response>().response
}

fn wait_for_parked(server: &Server, count: usize) {
    wait_until("a request waits", || server.grid.statistics().parked_changes == count);
}

#[test]
fn a_lock_is_reentrant_by_thread_and_keeps_others_out() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    client.ok(&lock(1, 2));
    let attempt = |thread_id, reference_id| try_lock::Request {
        name: NAME,
        key: KEY,
        thread_id,
        lease: -1,
        timeout: 0,
        reference_id,
    };
    assert!(!client.ok(&attempt(2, 3)).decode::<try_lock::Response>().response);
    assert!(!other.ok(&attempt(1, 1)).decode::<try_lock::Response>().response);
    client.ok(&unlock(1, 4));
    assert!(is_locked(&mut other));
    client.ok(&unlock(1, 5));
    assert!(!is_locked(&mut other));
    let (code, class, _) = client.error(&unlock(1, 6));
    assert_eq!((code, class.as_str()), (26, "java.lang.IllegalMonitorStateException"));
}

#[test]
fn a_put_of_a_locked_key_waits_and_later_requests_do_not() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    let waiting = other.send(&put(b"waited"));
    // The same connection is served in the meantime, and reads do not wait.
    let reply = other.ok(&get::Request { name: NAME, key: KEY, thread_id: 1 });
    assert_eq!(reply.decode::<get::Response<'_>>().response, None);
    client.ok(&put(b"owner's"));
    wait_for_parked(&server, 1);
    client.ok(&unlock(1, 2));
    let reply = other.reply_to(waiting);
    assert_eq!(reply.decode::<put::Response<'_>>().response, Some(b"owner's".as_slice()));
}

#[test]
fn a_put_that_waits_too_long_fails_with_a_timeout() {
    let server = Server::with_door(|door| door.call_timeout = Duration::from_millis(50));
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    let (code, class, text) = other.error(&put(b"late"));
    assert_eq!((code, class.as_str()), (38, "com.hazelcast.core.OperationTimeoutException"));
    assert!(text.contains("Map.put timed out"), "{text}");
    other.ok(&size::Request { name: NAME });
}

#[test]
fn tries_answer_false_when_their_time_is_over() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    for timeout in [0, 20] {
        let request = try_put::Request { name: NAME, key: KEY, value: b"v", thread_id: 1, timeout };
        assert!(!other.ok(&request).decode::<try_put::Response>().response);
        let request = try_remove::Request { name: NAME, key: KEY, thread_id: 1, timeout };
        assert!(!other.ok(&request).decode::<try_remove::Response>().response);
        let request =
            try_lock::Request { name: NAME, key: KEY, thread_id: 1, lease: -1, timeout, reference_id: timeout };
        assert!(!other.ok(&request).decode::<try_lock::Response>().response);
    }
}

#[test]
fn a_lease_ends_and_a_forced_unlock_ends_any_lock() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock::Request { ttl: 50, ..lock(1, 1) });
    let waiting = other.send(&lock(1, 1));
    other.reply_to(waiting).decode::<lock::Response>();
    client.ok(&force_unlock::Request { name: NAME, key: KEY, reference_id: 9 });
    assert!(!is_locked(&mut client));
}

#[test]
fn a_put_all_waits_for_its_locked_keys_only() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    let entries = vec![(b"a".as_slice(), b"1".as_slice()), (KEY, b"2"), (b"b", b"3")];
    let waiting = other.send(&put_all::Request { name: NAME, entries, trigger_map_loader: false });
    wait_for_parked(&server, 1);
    assert_eq!(client.ok(&size::Request { name: NAME }).decode::<size::Response>().response, 2);
    client.ok(&unlock(1, 2));
    other.reply_to(waiting).decode::<put_all::Response>();
    assert_eq!(client.ok(&size::Request { name: NAME }).decode::<size::Response>().response, 3);
}

#[test]
fn who_waits_when_the_door_closes_is_let_go() {
    let mut server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.ok(&lock(1, 1));
    other.send(&put(b"never"));
    wait_for_parked(&server, 1);
    server.stop();
    assert!(other.read_to_end().len() <= 1);
    assert_eq!(server.grid.statistics().parked_changes, 0);
}

fn listen(client: &mut Client, include_value: bool, listener_flags: i32) -> uuid::Uuid {
    let request = add_entry_listener::Request { name: NAME, include_value, listener_flags, local_only: true };
    client.ok(&request).decode::<add_entry_listener::Response>().response
}

/// Kind, key, value and old value of the next event.
type Heard = (i32, Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>);

fn hear(client: &mut Client) -> Heard {
    let reply = client.event();
    let event: add_entry_listener::EntryEvent<'_> = reply.decode();
    let own = |data: Option<&[u8]>| data.map(<[u8]>::to_vec);
    (event.event_type, own(event.key), own(event.value), own(event.old_value))
}

#[test]
fn a_listener_hears_of_every_change_with_values() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    listen(&mut listener, true, 1023);
    client.ok(&put(b"1"));
    client.ok(&put(b"2"));
    client.ok(&remove::Request { name: NAME, key: KEY, thread_id: 1 });
    client.ok(&put(b"3"));
    client.ok(&evict::Request { name: NAME, key: KEY, thread_id: 1 });
    client.ok(&put::Request { ttl: 1, ..put(b"4") });
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(hear(&mut listener), (1, some(KEY), some(b"1"), None));
    assert_eq!(hear(&mut listener), (4, some(KEY), some(b"2"), some(b"1")));
    assert_eq!(hear(&mut listener), (2, some(KEY), None, some(b"2")));
    assert_eq!(hear(&mut listener), (1, some(KEY), some(b"3"), None));
    assert_eq!(hear(&mut listener), (8, some(KEY), None, some(b"3")));
    assert_eq!(hear(&mut listener), (1, some(KEY), some(b"4"), None));
    assert_eq!(hear(&mut listener), (16, some(KEY), None, some(b"4")));
}

#[test]
fn a_cleared_map_is_one_event_with_the_number_of_entries() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    for key in 0..50_u8 {
        client.ok(&put::Request { key: &[key], ..put(b"v") });
    }
    listen(&mut listener, true, 64 | 32);
    client.ok(&clear::Request { name: NAME });
    client.ok(&put(b"v"));
    client.ok(&evict_all::Request { name: NAME });
    for (kind, entries) in [(64, 50), (32, 1)] {
        let reply = listener.event();
        let event: add_entry_listener::EntryEvent<'_> = reply.decode();
        assert_eq!((event.event_type, event.number_of_affected_entries, event.key), (kind, entries, None));
        assert_eq!(event.uuid, server.grid.member_uuid());
    }
}

#[test]
fn a_listener_receives_the_requested_events_until_it_is_removed() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    let id = listen(&mut listener, false, 4);
    client.ok(&put(b"1"));
    client.ok(&put(b"2"));
    assert_eq!(hear(&mut listener), (4, Some(KEY.to_vec()), None, None));
    for expected in [true, false] {
        let reply = listener.call(&remove_entry_listener::Request { name: NAME, registration_id: id });
        assert_eq!(reply.decode::<remove_entry_listener::Response>().response, expected);
    }
    client.ok(&put(b"3"));
    assert_eq!(server.grid.statistics().listeners, 0);
}

#[test]
fn a_listener_of_a_key_hears_of_that_key() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    let request = add_entry_listener_to_key::Request {
        name: NAME,
        key: KEY,
        include_value: true,
        listener_flags: 1023,
        local_only: true,
    };
    listener.ok(&request).decode::<add_entry_listener_to_key::Response>();
    client.ok(&put::Request { key: b"other", ..put(b"1") });
    client.ok(&put(b"2"));
    let reply = listener.event();
    let event: add_entry_listener_to_key::EntryEvent<'_> = reply.decode();
    assert_eq!((event.event_type, event.key, event.value), (1, Some(KEY), Some(b"2".as_slice())));
}

#[test]
fn near_caches_hear_of_changes_with_gapless_sequences() {
    let server = Server::start();
    let (mut client, mut near) = (server.client(), server.client());
    let request = add_near_cache_invalidation_listener::Request { name: NAME, listener_flags: 256, local_only: true };
    near.ok(&request).decode::<add_near_cache_invalidation_listener::Response>();
    for _ in 0..3 {
        client.ok(&put(b"v"));
    }
    let (mut partition_uuid, mut heard) = (None, Vec::new());
    for _ in 0..3 {
        let reply = near.event();
        let event: add_near_cache_invalidation_listener::IMapInvalidationEvent<'_> = reply.decode();
        assert_eq!((event.key, event.source_uuid), (Some(KEY), client.uuid));
        heard.push(event.sequence);
        assert_eq!(*partition_uuid.get_or_insert(event.partition_uuid), event.partition_uuid);
    }
    assert!(heard.windows(2).all(|pair| pair[1] == pair[0] + 1), "{heard:?}");
    let request =
        fetch_near_cache_invalidation_metadata::Request { names: vec![NAME, "none"], uuid: server.grid.member_uuid() };
    let reply = near.ok(&request);
    let metadata: fetch_near_cache_invalidation_metadata::Response<'_> = reply.decode();
    let uuids: HashMap<_, _> = metadata.partition_uuid_list.iter().copied().collect();
    assert_eq!(uuids.len(), 271);
    assert_eq!(metadata.name_partition_sequence_list.len(), 1);
    let (name, sequences) = &metadata.name_partition_sequence_list[0];
    assert_eq!((*name, sequences.len()), (NAME, 271));
    let of_key = sequences.iter().filter(|(_, sequence)| Some(sequence) == heard.last());
    let partitions: Vec<_> = of_key.map(|(partition, _)| *partition).collect();
    assert_eq!(partitions.len(), 1);
    assert_eq!(uuids.get(&partitions[0]), partition_uuid.as_ref());
}

fn journal_server() -> Server {
    let mut grid = GridConfig::default();
    let journal = EventJournalConfig { capacity: 271 * 4, ..EventJournalConfig::default() };
    grid.maps.insert(NAME, MapConfig { event_journal: Some(journal), ..MapConfig::default() });
    Server::with(DoorConfig { journal_waits_max: 2, ..DoorConfig::default() }, grid)
}

fn read(start_sequence: i64, min_size: i32) -> event_journal_read::Request<'static> {
    event_journal_read::Request {
        name: NAME,
        start_sequence,
        min_size,
        max_size: 10,
        predicate: None,
        projection: None,
    }
}

/// Puts a value under a key whose header binds it to partition 3.
fn put_at(client: &mut Client, value: &'static [u8]) {
    client.ok(&put::Request { key: b"\0\0\0\x03key", ..put(value) });
}

#[test]
fn a_journal_is_read_from_any_sequence_and_says_what_was_lost() {
    let server = journal_server();
    let mut client = server.client();
    for value in [b"1", b"2", b"3", b"4", b"5", b"6"] {
        put_at(&mut client, value);
    }
    let correlation = client.send_to(&event_journal_subscribe::Request { name: NAME }, 3);
    let state: event_journal_subscribe::Response = client.reply_to(correlation).decode();
    assert_eq!((state.oldest_sequence, state.newest_sequence), (2, 5));
    // Start, sequences read, whether events were lost, next sequence.
    for (from, sequences, lost) in [(0, vec![2, 3, 4, 5], 1), (4, vec![4, 5], 0), (6, vec![], 0), (99, vec![], 0)] {
        let correlation = client.send_to(&read(from, 0), 3);
        let reply = client.reply_to(correlation);
        let page: event_journal_read::Response<'_> = reply.decode();
        assert_eq!(page.read_count as usize, sequences.len());
        assert_eq!((page.item_seqs.as_deref(), page.next_seq), (Some(sequences.as_slice()), 6));
        let marks: u8 = page.items.iter().map(|item| *item.last().unwrap()).sum();
        assert_eq!(marks, lost, "from {from}");
    }
}

#[test]
fn a_read_of_a_journal_waits_for_events() {
    let server = journal_server();
    let (mut client, mut reader) = (server.client(), server.client());
    put_at(&mut client, b"1");
    let waiting = reader.send_to(&read(0, 3), 3);
    reader.send_to(&read(5, 1), 4);
    // At most two reads may wait on one connection.
    let third = reader.send_to(&read(0, 1), 5);
    let (code, _, text) = reader.reply_to(third).error();
    assert_eq!(code, 20);
    assert!(text.contains("journal_waits_max"), "{text}");
    put_at(&mut client, b"2");
    put_at(&mut client, b"3");
    let reply = reader.reply_to(waiting);
    assert_eq!(reply.decode::<event_journal_read::Response<'_>>().read_count, 3);
    reader.close();
    wait_until("nothing listens any more", || server.grid.statistics().listeners == 0);
}

#[test]
fn journals_that_are_not_there_and_reads_with_predicates_are_refused() {
    let server = journal_server();
    let mut client = server.client();
    let correlation = client.send_to(&event_journal_subscribe::Request { name: "other" }, 3);
    assert_eq!(client.reply_to(correlation).error().0, 61);
    let correlation = client.send_to(&event_journal_read::Request { predicate: Some(b"p"), ..read(0, 0) }, 3);
    assert_eq!(client.reply_to(correlation).error().0, 61);
    let correlation = client.send_to(&read(0, 11), 3);
    assert_eq!(client.reply_to(correlation).error().0, 23);
}

#[test]
fn objects_are_announced_when_they_come_and_go() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    let reply = listener.ok(&add_distributed_object_listener::Request { local_only: false });
    let id = reply.decode::<add_distributed_object_listener::Response>().response;
    client.ok(&create_proxies::Request { proxies: vec![(NAME, "hz:impl:mapService")] });
    client.ok(&destroy_proxy::Request { name: NAME, service_name: "hz:impl:mapService" });
    for kind in ["CREATED", "DESTROYED"] {
        let reply = listener.event();
        let event: add_distributed_object_listener::DistributedObjectEvent<'_> = reply.decode();
        assert_eq!((event.name, event.service_name, event.event_type), (NAME, "hz:impl:mapService", kind));
    }
    for expected in [true, false] {
        let reply = listener.ok(&remove_distributed_object_listener::Request { registration_id: id });
        assert_eq!(reply.decode::<remove_distributed_object_listener::Response>().response, expected);
    }
}

#[test]
fn listeners_for_what_never_happens_are_taken_and_removed() {
    let server = Server::start();
    let mut client = server.client();
    let reply = client.ok(&add_migration_listener::Request { local_only: false });
    let id = reply.decode::<add_migration_listener::Response>().response;
    let reply = client.ok(&remove_migration_listener::Request { registration_id: id });
    assert!(reply.decode::<remove_migration_listener::Response>().response);
    let reply = client.ok(&add_partition_lost_listener::Request { name: NAME, local_only: false });
    let lost = reply.decode::<add_partition_lost_listener::Response>().response;
    assert_ne!(lost, id);
    let reply = client.ok(&remove_partition_lost_listener::Request { name: NAME, registration_id: id });
    assert!(!reply.decode::<remove_partition_lost_listener::Response>().response);
}

#[test]
fn a_schema_that_one_client_sends_another_fetches() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    // Kind 8 is a 32-bit integer.
    let fields = vec![FieldDescriptor { field_name: "age", kind: 8 }];
    let schema = Schema { type_name: "person", fields };
    let reply = client.ok(&send_schema::Request { schema: schema.clone() });
    assert_eq!(reply.decode::<send_schema::Response>().replicated_members, [server.grid.member_uuid()]);
    client.ok(&send_all_schemas::Request { schemas: vec![schema.clone()] });
    let id = server.grid.schemas().all()[0].fingerprint();
    let reply = other.ok(&fetch_schema::Request { schema_id: id.0 });
    assert_eq!(reply.decode::<fetch_schema::Response<'_>>().schema, Some(schema));
    let reply = other.ok(&fetch_schema::Request { schema_id: id.0 + 1 });
    assert_eq!(reply.decode::<fetch_schema::Response<'_>>().schema, None);

    let fields = vec![FieldDescriptor { field_name: "age", kind: 999 }];
    let (code, _, text) = client.error(&send_schema::Request { schema: Schema { type_name: "odd", fields } });
    assert_eq!(code, 21);
    assert!(text.contains("\"odd\"") && text.contains("\"age\""), "{text}");
}
