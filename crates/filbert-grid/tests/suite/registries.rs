//! The registries of a member: schemas, connections and statistics of clients; and listeners under
//! concurrency.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{Said, caller, change, client, key, member, member_with, put};
use filbert_data::compact::{FieldDescriptor, FieldKind, Schema};
use filbert_grid::{
    Change, EntryEvent, EventKind, EventKinds, Expiry, GridConfig, GridError, Invalidation, ListenerSpec, MAP_SERVICE,
    Metadata, NAME_BYTES_MAX, PutMode,
};
use parking_lot::Mutex;
use uuid::Uuid;

fn schema(name: &str, fields: usize) -> Schema {
    let field = |n: usize| FieldDescriptor { name: format!("f{n}"), kind: FieldKind::Int32 };
    Schema::new(name, (0..fields).map(field))
}

#[test]
fn a_schema_is_kept_once_and_found_by_its_fingerprint() {
    let member = member();
    let schemas = member.grid.schemas();
    let id = schemas.put(schema("person", 2)).unwrap();
    assert_eq!(schemas.put(schema("person", 2)), Ok(id));
    assert_eq!(id, schema("person", 2).fingerprint());
    assert_eq!(schemas.get(id).unwrap().type_name(), "person");
    assert_ne!(schemas.put(schema("person", 3)), Ok(id));
    assert_eq!((schemas.all().len(), member.grid.statistics().schemas), (2, 2));
}

#[test]
fn schemas_and_their_fields_are_bounded() {
    let member = member_with(GridConfig { schemas_max: 2, schema_fields_max: 3, ..GridConfig::default() });
    let schemas = member.grid.schemas();
    let refused = |schema| matches!(schemas.put(schema), Err(GridError::LimitReached { .. }));
    assert!(refused(schema("wide", 4)));
    assert!(!refused(schema("a", 3)));
    assert!(!refused(schema("b", 3)));
    assert!(refused(schema("c", 3)));
    assert!(!refused(schema("a", 3)), "one that is there already needs no room");
}

#[test]
fn names_without_end_are_refused_and_leave_nothing() {
    let member = member();
    let (grid, long) = (&member.grid, "n".repeat(NAME_BYTES_MAX + 1));
    let before = grid.statistics();
    let refused = |error: GridError| match error {
        GridError::IllegalArgument(text) => {
            assert!(text.contains("name of 1025 bytes, expected at most 1024"), "{text}")
        }
        error => panic!("{error}"),
    };
    refused(grid.map(&long).unwrap_err());
    refused(grid.create_object(MAP_SERVICE, &long).unwrap_err());
    refused(grid.create_object(&long, "m").unwrap_err());
    refused(grid.schemas().put(schema(&long, 1)).unwrap_err());
    let fields = [FieldDescriptor { name: long.clone(), kind: FieldKind::Int32 }];
    refused(grid.schemas().put(Schema::new("person", fields)).unwrap_err());
    assert_eq!(grid.statistics(), before);
    // A name of the maximum length is valid.
    let map = grid.map(&long[1..]).unwrap();
    refused(grid.succeed(&map, &long).unwrap_err());
    assert_eq!(grid.map_names(), [&long[1..]]);
}

#[test]
fn clients_are_listed_with_their_connections_and_their_latest_statistics() {
    let member = member_with(GridConfig { client_statistics_bytes_max: 10, ..GridConfig::default() });
    let (first, second, other) = (client(&member, 1), client(&member, 1), client(&member, 2));
    assert_ne!(first.id(), second.id());
    let clients = member.grid.clients();
    clients.set_statistics(first.client(), "up=1").unwrap();
    clients.set_statistics(first.client(), "up=2").unwrap();
    assert!(clients.set_statistics(first.client(), "far too long").is_err());
    clients.set_statistics(Uuid::from_u128(9), "up=1").unwrap();
    let mut listed: Vec<_> = clients.list().into_iter().map(|c| (c.info.name, c.connections, c.statistics)).collect();
    listed.sort();
    assert_eq!(listed, [("client 1".to_owned(), 2, Some("up=2".to_owned())), ("client 2".to_owned(), 1, None)]);
    drop((first, other));
    assert_eq!((clients.client_count(), clients.connection_count()), (1, 1));
}

#[test]
fn listeners_are_bounded_and_their_place_is_given_back() {
    let member = member_with(GridConfig { listeners_max: 1, ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let listen = || {
        let spec =
            ListenerSpec { key: None, filter: None, include_value: false, kinds: EventKinds::ALL, connection: None };
        map.add_listener(spec, Arc::new(|_: &EntryEvent<'_>| {}))
    };
    let id = listen().unwrap();
    assert!(matches!(listen(), Err(GridError::LimitReached { setting: "listeners_max", .. })));
    assert!(map.remove_listener(id));
    assert!(!map.remove_listener(id));
    assert!(listen().is_ok());
}

#[test]
fn each_kind_of_event_reaches_only_the_listeners_that_requested_it() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let heard: Arc<Mutex<HashMap<u32, Vec<EventKind>>>> = Arc::default();
    let kinds = [1u32, 2, 4, 8, 16, 32, 64, 512];
    for kind in kinds {
        let heard = heard.clone();
        let spec =
            ListenerSpec { key: None, filter: None, include_value: false, kinds: EventKinds(kind), connection: None };
        let sink = move |event: &EntryEvent<'_>| heard.lock().entry(kind).or_default().push(event.kind);
        map.add_listener(spec, Arc::new(sink)).unwrap();
    }
    let who = caller(1, 1);
    put(&map, who, 1, b"v");
    put(&map, who, 1, b"w");
    change(&map, who, Change::Remove { key: &key(1) });
    put(&map, who, 2, b"v");
    change(&map, who, Change::Evict { key: &key(2) });
    let ttl = Change::Put { key: &key(3), value: b"v", expiry: Expiry::ttl(10), mode: PutMode::Set };
    change(&map, who, ttl);
    member.clock.advance(10);
    member.run_expiry();
    let now = member.grid.now().0;
    let metadata = Metadata {
        created_ms: now,
        updated_ms: now,
        accessed_ms: now,
        expires_ms: i64::MAX,
        hits: 0,
        version: 0,
        expiry: Expiry::NEVER,
    };
    let load = Change::Put { key: &key(4), value: b"v", expiry: Expiry::NEVER, mode: PutMode::Metadata(metadata) };
    change(&map, who, load);
    assert_eq!(map.evict_all(who), Ok(1));
    put(&map, who, 5, b"v");
    assert_eq!(map.clear(who), Ok(1));

    let heard = heard.lock();
    let of = |kind: u32| heard.get(&kind).cloned().unwrap_or_default();
    assert_eq!(of(1), [EventKind::Added; 4]);
    assert_eq!(of(2), [EventKind::Removed]);
    assert_eq!(of(4), [EventKind::Updated]);
    assert_eq!(of(8), [EventKind::Evicted]);
    assert_eq!(of(16), [EventKind::Expired]);
    assert_eq!(of(32), [EventKind::EvictedAll]);
    assert_eq!(of(64), [EventKind::Cleared]);
    assert_eq!(of(512), [EventKind::Loaded]);
}

#[test]
fn nothing_is_lost_or_stuck_when_eight_threads_write_under_listeners_that_come_and_go() {
    let member = member_with(GridConfig { partition_count: 5, ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let newest = || -> Vec<i64> {
        let metadata = member.grid.invalidation_metadata(["m", "unknown"]);
        assert_eq!((metadata.sequences.len(), metadata.partition_uuids.len()), (1, 5));
        metadata.sequences[0].1.iter().map(|(_, sequence)| *sequence).collect()
    };
    let before = newest();
    let heard = Arc::new(AtomicUsize::new(0));
    let sequences: Arc<Mutex<HashMap<u32, Vec<i64>>>> = Arc::default();
    let count = heard.clone();
    let spec = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    let sink = move |event: &EntryEvent<'_>| {
        count.fetch_add(event.affected, Ordering::Relaxed);
    };
    map.add_listener(spec.clone(), Arc::new(sink)).unwrap();
    let numbers = sequences.clone();
    let sink = move |invalidation: &Invalidation<'_>| {
        numbers.lock().entry(invalidation.partition.0).or_default().push(invalidation.sequence);
    };
    map.add_invalidation_listener(None, Arc::new(sink)).unwrap();

    thread::scope(|scope| {
        for thread in 0..8u32 {
            let (map, member, spec) = (&map, &member, &spec);
            scope.spawn(move || {
                for n in 0..500 {
                    let said = put(map, caller(u128::from(thread), 1), thread * 1_000 + n, b"v");
                    assert_eq!(said, Said::Previous(None));
                    if n % 50 == 0 {
                        let connection = client(member, 100 + u128::from(thread));
                        let spec = ListenerSpec { connection: Some(connection.id()), ..spec.clone() };
                        map.add_listener(spec, Arc::new(|_: &EntryEvent<'_>| {})).unwrap();
                        member.run_expiry();
                    }
                }
            });
        }
    });
    assert_eq!(heard.load(Ordering::Relaxed), 4_000);
    assert_eq!(member.grid.statistics().listeners, 2);
    for (partition, sequences) in sequences.lock().iter() {
        let first = before[*partition as usize] + 1;
        assert!(sequences.iter().copied().eq(first..first + sequences.len() as i64), "partition {partition}");
    }
    let changes: i64 = newest().iter().zip(&before).map(|(newest, before)| newest - before).sum();
    assert_eq!(changes, 4_000);
}
