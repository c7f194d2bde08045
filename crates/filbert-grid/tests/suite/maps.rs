//! Maps as a whole: expiry, eviction, memory limits, listeners, invalidation, distributed objects.

use std::sync::{Arc, Mutex};

use crate::common::*;
use filbert_data::Blob;
use filbert_grid::{
    Change, EventKinds, EvictionConfig, EvictionPolicy, GridConfig, GridError, Invalidation, ListenerId, ListenerSpec,
    MapConfig, MaxSizePolicy, ObjectEvent,
};
use uuid::Uuid;

fn all() -> ListenerSpec {
    ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None }
}

#[test]
fn entries_expire_and_give_their_memory_back_without_a_read() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let mut emptied = Vec::new();
    for _ in 0..2 {
        for n in 0..5_000 {
            put_ttl(&map, n, &[7; 1_000], 1_000);
        }
        assert!(member.grid.statistics().memory_bytes > 5_000_000);
        member.clock.advance(1_000);
        assert_eq!(map.size(), 0);
        member.run_expiry();
        emptied.push(member.grid.statistics().memory_bytes);
    }
    // The memory that each partition keeps for a map after its entries have expired stays.
    assert_eq!(emptied[0], emptied[1]);
    assert!(emptied[0] < 271 * 1_000, "{emptied:?}");
    assert_eq!(map.statistics().expirations, 10_000);
}

#[test]
fn a_clock_that_jumps_back_neither_expires_nor_breaks_anything() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put_ttl(&map, 1, b"v", 1_000);
    member.clock.advance(-10_000_000);
    member.run_expiry();
    assert_eq!(get(&map, 1), Some(b"v".to_vec()));
    put_ttl(&map, 2, b"v", 1_000);
    member.clock.advance(1_000);
    member.run_expiry();
    assert_eq!((get(&map, 1).is_some(), get(&map, 2)), (true, None));
    member.clock.advance(i64::MAX / 2);
    member.run_expiry();
    assert_eq!(map.size(), 0);
}

fn bounded(policy: EvictionPolicy, max_size_policy: MaxSizePolicy, size: u32) -> MapConfig {
    MapConfig { eviction: EvictionConfig { policy, max_size_policy, size }, ..MapConfig::default() }
}

#[test]
fn per_node_is_kept_exactly_by_every_policy() {
    for policy in [EvictionPolicy::Lru, EvictionPolicy::Lfu, EvictionPolicy::Random] {
        let member = member_with_map(bounded(policy, MaxSizePolicy::PerNode, 100));
        let map = member.grid.map("m").unwrap();
        for n in 0..1_000 {
            put(&map, caller(1, 1), n, b"v");
            assert_eq!(map.size(), (n as usize + 1).min(100), "{policy:?}");
            assert!(get(&map, n).is_some(), "the newcomer stays");
        }
        assert_eq!(map.statistics().evictions, 900);
    }
}

#[test]
fn lru_keeps_what_is_read() {
    let member = member_with_map(bounded(EvictionPolicy::Lru, MaxSizePolicy::PerPartition, 20));
    let map = member.grid.map("m").unwrap();
    let same_partition: Vec<u32> =
        (0..100_000).filter(|n| map.partition_of(&key(*n)) == map.partition_of(&key(0))).take(100).collect();
    for (at, n) in same_partition.iter().enumerate() {
        put(&map, caller(1, 1), *n, b"v");
        member.clock.advance(1_000);
        assert!(get(&map, 0).is_some(), "read all the time, gone after {at}");
    }
    assert_eq!(map.size(), 20);
}

#[test]
fn used_bytes_are_kept() {
    let member = member_with_map(bounded(EvictionPolicy::Lru, MaxSizePolicy::UsedHeapSize, 1));
    let map = member.grid.map("m").unwrap();
    for n in 0..5_000 {
        put(&map, caller(1, 1), n, &[1; 1_000]);
        assert!(map.statistics().bytes_owned <= 1 << 20);
    }
    assert!(map.size() > 500);
}

#[test]
fn free_memory_is_kept() {
    let mut config = GridConfig { memory_bytes_max: Some(4 << 20), ..GridConfig::default() };
    config.maps.insert("m", bounded(EvictionPolicy::Random, MaxSizePolicy::FreeHeapPercentage, 50));
    let member = member_with(config);
    let map = member.grid.map("m").unwrap();
    for n in 0..5_000 {
        assert_eq!(put(&map, caller(1, 1), n, &[1; 1_000]), Said::Previous(None));
        assert!(member.grid.statistics().memory_bytes <= 2 << 20);
    }
}

#[test]
fn over_the_memory_limit_writes_are_refused_and_reads_and_removals_go_on() {
    let member = member_with(GridConfig { memory_bytes_max: Some(4 << 20), ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let refused = (0..10_000).find(|n| !matches!(put(&map, caller(1, 1), *n, &[1; 1_000]), Said::Previous(_))).unwrap();
    let Said::Error(GridError::OutOfMemory { max, used, .. }) = put(&map, caller(1, 1), refused, &[1; 1_000]) else {
        panic!("expected an error that tells the numbers")
    };
    assert_eq!(max, 4 << 20);
    assert!(used <= max);
    assert!(get(&map, 0).is_some());
    assert_eq!(put(&map, caller(1, 1), 0, &[2; 1_000]), Said::Previous(Some(vec![1; 1_000])));
    for n in 0..10 {
        assert_eq!(change(&map, caller(1, 1), Change::Delete { key: &key(n) }), Said::Flag(true));
    }
    assert_eq!(put(&map, caller(1, 1), refused, &[1; 1_000]), Said::Previous(None));
}

#[test]
fn listeners_receive_the_kinds_they_requested() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let (everything, no_values, one_key, removals) =
        (Heard::default(), Heard::default(), Heard::default(), Heard::default());
    map.add_listener(all(), everything.sink()).unwrap();
    map.add_listener(ListenerSpec { filter: None, include_value: false, ..all() }, no_values.sink()).unwrap();
    map.add_listener(ListenerSpec { key: Some(Blob::from(key(2))), ..all() }, one_key.sink()).unwrap();
    map.add_listener(ListenerSpec { kinds: EventKinds::REMOVED, ..all() }, removals.sink()).unwrap();
    let me = caller(1, 1);
    put(&map, me, 1, b"a");
    put(&map, me, 1, b"b");
    put(&map, me, 2, b"c");
    change(&map, me, Change::Remove { key: &key(1) });
    change(&map, me, Change::Evict { key: &key(2) });
    put_ttl(&map, 3, b"d", 10);
    member.clock.advance(10);
    member.run_expiry();
    put(&map, me, 4, b"e");
    put(&map, me, 5, b"f");
    map.clear(me).unwrap();
    assert_eq!(
        everything.take(),
        [
            "Added 1 ->a 1",
            "Updated 1 a>b 1",
            "Added 2 ->c 1",
            "Removed 1 b>- 1",
            "Evicted 2 c>- 1",
            "Added 3 ->d 1",
            "Expired 3 d>- 1",
            "Added 4 ->e 1",
            "Added 5 ->f 1",
            "Cleared * ->- 2",
        ]
    );
    assert_eq!(no_values.take()[..2], ["Added 1 ->- 1", "Updated 1 ->- 1"]);
    assert_eq!(one_key.take(), ["Added 2 ->c 1", "Evicted 2 c>- 1", "Cleared * ->- 2"]);
    assert_eq!(removals.take(), ["Removed 1 b>- 1"]);
}

#[test]
fn listeners_go_when_removed_or_with_their_connection() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let (removed, with_connection) = (Heard::default(), Heard::default());
    let id = map.add_listener(all(), removed.sink()).unwrap();
    let connection = client(&member, 1);
    map.add_listener(ListenerSpec { connection: Some(connection.id()), ..all() }, with_connection.sink()).unwrap();
    assert_eq!(member.grid.statistics().listeners, 2);
    assert!(map.remove_listener(id));
    assert!(!map.remove_listener(id));
    put(&map, caller(1, 1), 1, b"a");
    assert_eq!(with_connection.take().len(), 1);
    drop(connection);
    put(&map, caller(1, 1), 1, b"b");
    assert_eq!((removed.take().len(), with_connection.take().len()), (0, 0));
    assert_eq!(member.grid.statistics().listeners, 0);
}

#[test]
fn invalidations_are_numbered_without_a_gap() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"before anyone listens");
    let partition = map.partition_of(&key(1)).0;
    let sequence = |member: &Member| member.grid.invalidation_metadata(["m"]).sequences[0].1[partition as usize].1;
    let before = sequence(&member);
    type Seen = (u32, Option<Vec<u8>>, Uuid, Uuid, i64);
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let sink = seen.clone();
    map.add_invalidation_listener(
        None,
        Arc::new(move |i: &Invalidation<'_>| {
            let key = i.key.map(<[u8]>::to_vec);
            sink.lock().unwrap().push((i.partition.0, key, i.source, i.partition_uuid, i.sequence));
        }),
    )
    .unwrap();
    put(&map, caller(7, 1), 1, b"a");
    change(&map, caller(8, 1), Change::Delete { key: &key(1) });
    put(&map, caller(7, 1), 1, b"b");
    map.clear(caller(9, 1)).unwrap();
    let metadata = member.grid.invalidation_metadata(["m", "no such map"]);
    let uuid = metadata.partition_uuids[partition as usize].1;
    let of_partition: Vec<Seen> = seen.lock().unwrap().iter().filter(|(p, ..)| *p == partition).cloned().collect();
    assert_eq!(
        of_partition,
        [
            (partition, Some(key(1)), Uuid::from_u128(7), uuid, before + 1),
            (partition, Some(key(1)), Uuid::from_u128(8), uuid, before + 2),
            (partition, Some(key(1)), Uuid::from_u128(7), uuid, before + 3),
            (partition, None, Uuid::from_u128(9), uuid, before + 4),
        ]
    );
    assert_eq!(metadata.partition_uuids.len(), 271);
    assert_eq!(metadata.sequences.len(), 1);
    assert_eq!(metadata.sequences[0].1.len(), 271);
    assert_eq!(sequence(&member), before + 4);
}

/// A near cache takes a lower sequence for an old invalidation, and would not notice missed ones.
#[test]
fn a_later_map_of_the_same_name_has_greater_sequences() {
    let member = member();
    let all = || member.grid.invalidation_metadata(["m"]).sequences[0].1.clone();
    let map = member.grid.map("m").unwrap();
    (0..100).for_each(|_| _ = put(&map, caller(1, 1), 1, b"v"));
    let first = all();
    let mut replacement = member.grid.succeed(&map, "m").unwrap();
    replacement.put_in_place().unwrap();
    drop(replacement);
    let second = all();
    assert!(first.iter().zip(&second).all(|((_, first), (_, second))| second > &(first + 1)));
    assert!(member.destroy_map("m"));
    member.grid.map("m").unwrap();
    assert!(second.iter().zip(&all()).all(|((_, second), (_, third))| third > &(second + 1)));
}

#[test]
fn objects_are_announced_listed_bounded_and_destroyed() {
    let member = member_with(GridConfig { objects_max: 2, ..GridConfig::default() });
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = heard.clone();
    let added = member.grid.objects().add_listener(
        ListenerId(Uuid::from_u128(1)),
        None,
        Arc::new(move |event: &ObjectEvent<'_>| {
            sink.lock().unwrap().push(format!("{} {}", event.kind.name(), event.name));
        }),
    );
    added.unwrap();
    let map = member.grid.map("a").unwrap();
    member.grid.map("a").unwrap();
    member.grid.map("b").unwrap();
    assert!(matches!(member.grid.map("c"), Err(GridError::LimitReached { limit: 2, .. })));
    put(&map, caller(1, 1), 1, b"v");
    assert!(member.destroy_map("a"));
    assert!(!member.destroy_map("a"));
    assert!(map.is_destroyed());
    assert_eq!(get(&map, 1), None);
    assert!(matches!(put(&map, caller(1, 1), 1, b"v"), Said::Error(GridError::Destroyed { .. })));
    let again = member.grid.map("a").unwrap();
    assert_eq!(get(&again, 1), None);
    assert_eq!(*heard.lock().unwrap(), ["CREATED a", "CREATED b", "DESTROYED a", "CREATED a"]);
    let names: Vec<String> = member.grid.objects().list().into_iter().map(|object| object.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn destroying_maps_gives_their_memory_back() {
    let member = member();
    let before = member.grid.statistics().memory_bytes;
    for round in 0..3 {
        let name = format!("map {round}");
        let map = member.grid.map(&name).unwrap();
        for n in 0..1_000 {
            put(&map, caller(1, 1), n, b"v");
        }
        member.destroy_map(&name);
        assert_eq!(member.grid.statistics().memory_bytes, before);
    }
}

#[test]
fn replace_if_same_from_many_threads_adds_up() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, &0u32.to_be_bytes());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let map = &map;
            scope.spawn(move || {
                let mut added = 0;
                while added < 500 {
                    let old = get(map, 1).unwrap();
                    let new = (u32::from_be_bytes(old.clone().try_into().unwrap()) + 1).to_be_bytes();
                    let replace = Change::ReplaceIfSame { key: &key(1), expected: &old, value: &new };
                    added += u32::from(change(map, caller(1, thread), replace) == Said::Flag(true));
                }
            });
        }
    });
    assert_eq!(get(&map, 1), Some(2_000u32.to_be_bytes().to_vec()));
}

#[test]
fn many_gets_answer_in_order_and_stop_on_request() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    for n in (0..1_000).step_by(2) {
        put(&map, caller(1, 1), n, &n.to_be_bytes());
    }
    let blobs: Vec<Vec<u8>> = (0..1_000).map(key).collect();
    let keys: Vec<_> = blobs.iter().map(|blob| (map.partition_of(blob), blob.as_slice())).collect();
    let mut found = Vec::new();
    let read = map.get_many(&keys, |index, value| {
        found.push((index as u32, value.map(<[u8]>::to_vec)));
        true
    });
    assert_eq!(read, 1_000);
    let expected: Vec<_> =
        (0..1_000).map(|n: u32| (n, n.is_multiple_of(2).then(|| n.to_be_bytes().to_vec()))).collect();
    assert_eq!(found, expected);
    let mut count = 0;
    let read = map.get_many(&keys, |_, _| {
        count += 1;
        count < 13
    });
    assert_eq!((read, count), (13, 13));
    assert_eq!(map.get_many(&[], |_, _| true), 0);
    let statistics = map.statistics();
    assert_eq!((statistics.gets, statistics.hits), (1_013, 507));
}

#[test]
fn many_gets_of_one_partition_and_from_many_threads_do_not_wait_for_each_other() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let blobs: Vec<Vec<u8>> = (0..64).map(key).collect();
    for n in 0..64 {
        put(&map, caller(1, 1), n, &n.to_be_bytes());
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (map, blobs) = (&map, &blobs);
            scope.spawn(move || {
                // Each thread uses a different order, and some keys several times in a row.
                let order: Vec<usize> = (0..64).map(|at| (at / 3 * (2 * thread + 7)) % 64).collect();
                let keys: Vec<_> =
                    order.iter().map(|at| (map.partition_of(&blobs[*at]), blobs[*at].as_slice())).collect();
                for _ in 0..2_000 {
                    let read = map.get_many(&keys, |index, value| {
                        assert_eq!(value, Some((order[index] as u32).to_be_bytes().as_slice()));
                        true
                    });
                    assert_eq!(read, 64);
                }
            });
        }
    });
}
