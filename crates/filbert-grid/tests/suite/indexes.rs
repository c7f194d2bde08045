//! Indexes of maps: declared before and after their entries, dropped, used while they are built,
//! and their limits.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::common::{caller, member, member_with, member_with_map};
use filbert_data::{FieldPath, IdsLayout, Json, ToBlob, Value};
use filbert_grid::*;

const ANYONE: u128 = 7;

fn put(map: &Map, key: i32, value: impl ToBlob) {
    put_expiring(map, key, value, Expiry::DEFAULT);
}

fn put_expiring(map: &Map, key: i32, value: impl ToBlob, expiry: Expiry) {
    let (key, value) = (key.to_blob().unwrap(), value.to_blob().unwrap());
    let change = Change::Put { key: &key, value: &value, expiry, mode: PutMode::Set };
    map.change(map.partition_of(&key), caller(ANYONE, 1), change, |_| ()).unwrap();
}

fn remove(map: &Map, key: i32) {
    let key = key.to_blob().unwrap();
    map.change(map.partition_of(&key), caller(ANYONE, 1), Change::Delete { key: &key }, |_| ()).unwrap();
}

fn person(age: i32, city: &str) -> Json {
    Json::new(format!(r#"{{"age": {age}, "address": {{"city": "{city}"}}, "tags": ["a{}", "b"]}}"#, age % 3))
}

fn index(kind: IndexKind, attributes: &[&str]) -> IndexConfig {
    let attributes = attributes.iter().map(|&attribute| attribute.to_owned()).collect();
    IndexConfig { kind, attributes, ..IndexConfig::default() }
}

fn encoded(values: &[Value<'_>]) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        value.append_index_key(&mut key);
    }
    key
}

fn key_of(blob: &[u8]) -> i32 {
    filbert_data::FromBlob::from_blob(blob).unwrap()
}

/// The keys of the entries that an index finds over all partitions.
fn found(map: &Map, name: &str, probe: &Probe) -> BTreeSet<i32> {
    let layout = map.layout();
    let index = layout.indexes.iter().find(|index| index.name == name).unwrap();
    assert!(index.ready);
    let mut keys = BTreeSet::new();
    for partition in 0..map.partition_count() {
        let by_index = map.probe(PartitionId(partition), index.id, probe, &mut |key, _| keys.insert(key_of(key)));
        assert!(by_index);
    }
    keys
}

#[test]
fn an_index_finds_entries_that_were_there_before_it_and_those_that_come_after() {
    let member = member();
    let map = member.grid.map("people").unwrap();
    for key in 0..100 {
        put(&map, key, person(key, "Ulm"));
    }
    map.add_index(index(IndexKind::Sorted, &["age"])).unwrap();
    map.add_index(index(IndexKind::Hash, &["address.city", "__key"])).unwrap();
    map.add_index(index(IndexKind::Bitmap, &["tags[any]"])).unwrap();
    for key in 100..200 {
        put(&map, key, person(key, "Bonn"));
    }
    put(&map, 5, person(1_000, "Bonn"));
    remove(&map, 6);
    let by_age = |from: i32, to: i32| {
        let bound = |age| Bound::Included(encoded(&[Value::Int32(age)]));
        found(&map, "people_sorted_age", &Probe::Range { from: bound(from), to: bound(to), descending: false })
    };
    assert_eq!(by_age(4, 8), BTreeSet::from([4, 7, 8]));
    assert_eq!(by_age(198, 2_000), BTreeSet::from([5, 198, 199]));
    let of_city = |city, key| {
        let probe = Probe::Equal(encoded(&[Value::text(city), Value::Int32(key)]));
        found(&map, "people_hash_address.city___key", &probe)
    };
    assert_eq!(of_city("Bonn", 5), BTreeSet::from([5]));
    assert_eq!(of_city("Ulm", 5), BTreeSet::new());
    let tagged = |tag| found(&map, "people_bitmap_tags[any]", &Probe::Equal(encoded(&[Value::text(tag)])));
    assert_eq!(tagged("a0").len(), (0..200).filter(|key| key % 3 == 0 && *key != 6 && *key != 5).count());
    assert_eq!(tagged("b").len(), 199);
    let statistics = map.index_statistics(map.layout().indexes[0].id).unwrap();
    assert_eq!((statistics.entries, statistics.nulls), (199, 0));
    assert_eq!(statistics.min, Some(encoded(&[Value::Int32(0)])));
    assert_eq!(statistics.max, Some(encoded(&[Value::Int32(1_000)])));
    assert!(map.statistics().index_bytes >= 199 * 40);
}

#[test]
fn several_indexes_together_find_what_each_of_them_finds() {
    let member = member();
    let map = member.grid.map("people").unwrap();
    map.add_index(index(IndexKind::Sorted, &["age"])).unwrap();
    map.add_index(index(IndexKind::Hash, &["address.city"])).unwrap();
    for key in 0..100 {
        put(&map, key, person(key % 10, if key < 50 { "Ulm" } else { "Bonn" }));
    }
    let layout = map.layout();
    let probes = [
        (layout.indexes[0].id, Probe::Equal(encoded(&[Value::Int64(3)]))),
        (layout.indexes[1].id, Probe::In(vec![encoded(&[Value::text("Bonn")]), encoded(&[Value::text("Rom")])])),
    ];
    let mut keys = BTreeSet::new();
    for partition in 0..map.partition_count() {
        assert!(map.probe_all_of(PartitionId(partition), &probes, &mut |key, _| keys.insert(key_of(key))));
    }
    assert_eq!(keys, BTreeSet::from([53, 63, 73, 83, 93]));
}

#[test]
fn an_index_of_the_configuration_is_there_from_the_beginning() {
    let indexes = vec![index(IndexKind::Sorted, &["this"])];
    let member = member_with_map(MapConfig { indexes, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    for key in 0..10 {
        put(&map, key, i64::from(key * 10));
    }
    let probe = Probe::In(vec![encoded(&[Value::Int32(30)]), encoded(&[Value::Float64(50.0)])]);
    assert_eq!(found(&map, "m_sorted_this", &probe), BTreeSet::from([3, 5]));
}

#[test]
fn declaring_an_index_again_changes_nothing_and_a_dropped_one_is_gone() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let version = map.layout().version;
    for _ in 0..3 {
        map.add_index(index(IndexKind::Hash, &["age"])).unwrap();
    }
    put(&map, 1, person(1, "Ulm"));
    assert_eq!(map.indexes().len(), 1);
    let layout = map.layout();
    assert!(layout.version > version);
    assert!(map.drop_index("m_hash_age").unwrap());
    assert!(!map.drop_index("m_hash_age").unwrap());
    assert!(map.layout().version > layout.version);
    assert_eq!(map.index_statistics(layout.indexes[0].id), None);
    assert_eq!(map.statistics().index_bytes, 0);
    // A query that still uses the dropped index gets all entries.
    let mut keys = BTreeSet::new();
    let mut by_index = false;
    for partition in 0..map.partition_count() {
        let probe = Probe::Equal(Vec::new());
        by_index |=
            map.probe(PartitionId(partition), layout.indexes[0].id, &probe, &mut |key, _| keys.insert(key_of(key)));
    }
    assert!(!by_index);
    assert_eq!(keys, BTreeSet::from([1]));
}

#[test]
fn limits_hold_for_indexes() {
    // Each partition uses some 600 bytes for a map, beside its entries.
    let config = GridConfig { indexes_max: 1, memory_bytes_max: Some(400_000 + 271 * 600), ..GridConfig::default() };
    let member = member_with(config);
    let map = member.grid.map("m").unwrap();
    for key in 0..1_000 {
        put(&map, key, format!("{key} is a number, and this text makes it a long one, {}", "x".repeat(150)));
    }
    let error = map.add_index(index(IndexKind::Sorted, &["this"])).unwrap_err();
    assert!(matches!(error, GridError::OutOfMemory { .. }), "{error}");
    assert!(map.layout().is_empty());
    assert_eq!(map.statistics().index_bytes, 0);
    assert_eq!(member.grid.statistics().memory_bytes, map.statistics().bytes_owned);
    map.clear(caller(ANYONE, 1)).unwrap();
    map.add_index(index(IndexKind::Sorted, &["this"])).unwrap();
    assert!(matches!(map.add_index(index(IndexKind::Hash, &["a"])), Err(GridError::LimitReached { limit: 1, .. })));
    assert!(map.add_index(index(IndexKind::Hash, &["a["])).is_err());
    member.destroy_map("m");
    assert!(matches!(map.add_index(index(IndexKind::Hash, &["b"])), Err(GridError::Destroyed { .. })));
    assert_eq!(member.grid.statistics().memory_bytes, 0);
}

#[test]
fn expired_entries_are_neither_found_nor_counted() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    map.add_index(index(IndexKind::Hash, &["this"])).unwrap();
    put(&map, 1, 5);
    put_expiring(&map, 2, 5, Expiry { ttl_ms: 100, max_idle_ms: -1 });
    let five = Probe::Equal(encoded(&[Value::Int32(5)]));
    assert_eq!(found(&map, "m_hash_this", &five), BTreeSet::from([1, 2]));
    member.clock.advance(1_000);
    assert_eq!(found(&map, "m_hash_this", &five), BTreeSet::from([1]));
    let id = map.layout().indexes[0].id;
    let mut count = 0;
    for partition in 0..map.partition_count() {
        map.probe_keys(PartitionId(partition), id, &five, &mut |_, entries| {
            count += entries;
            true
        });
    }
    assert_eq!(count, 1);
}

#[test]
fn a_declared_layout_makes_indexes_see_into_values() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    map.add_index(index(IndexKind::Hash, &["id"])).unwrap();
    let mut blob = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe, 1, 0, 0, 0, 3, 0, 0, 0, 4];
    blob.extend_from_slice(&77i32.to_be_bytes());
    let key = 1.to_blob().unwrap();
    let change = Change::Put { key: &key, value: &blob, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    map.change(map.partition_of(&key), caller(ANYONE, 1), change, |_| ()).unwrap();
    let probe = Probe::Equal(encoded(&[Value::Int32(77)]));
    // The index keys of an unreadable value are unknown, so it is always among the candidates.
    let other = Probe::Equal(encoded(&[Value::Int32(78)]));
    let unread = |map: &Map| map.index_statistics(map.layout().indexes[0].id).unwrap().unread;
    assert_eq!((found(&map, "m_hash_id", &other), unread(&map)), (BTreeSet::from([1]), 1));
    let fields = vec![("id".to_owned(), filbert_data::FieldType::Integer)];
    let layout = Arc::new(IdsLayout { factory_id: 3, class_id: 4, fields });
    map.set_ids_layouts(None, Some(layout)).unwrap();
    assert_eq!(found(&map, "m_hash_id", &probe), BTreeSet::from([1]));
    assert_eq!((found(&map, "m_hash_id", &other), unread(&map)), (BTreeSet::new(), 0));
    remove(&map, 1);
    assert_eq!(map.index_statistics(map.layout().indexes[0].id).unwrap().entries, 0);
}

#[test]
fn an_index_that_is_built_while_entries_change_misses_none() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    for key in 0..20_000 {
        put(&map, key, key % 100);
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for key in (0..30_000).step_by(3) {
                put(&map, key, 1_000 + key % 100);
            }
        });
        map.add_index(index(IndexKind::Sorted, &["this"])).unwrap();
        map.add_index(index(IndexKind::Hash, &["__key"])).unwrap();
        writer.join().unwrap();
    });
    let mut by_scan = BTreeSet::new();
    map.for_each(&mut |key, value| {
        if <i32 as filbert_data::FromBlob>::from_blob(value).unwrap() >= 1_000 {
            by_scan.insert(key_of(key));
        }
    });
    let from = Bound::Included(encoded(&[Value::Int32(1_000)]));
    let probe = Probe::Range { from, to: Bound::Unbounded, descending: true };
    assert_eq!(found(&map, "m_sorted_this", &probe), by_scan);
    assert_eq!(by_scan.len(), 10_000);
}

/// A lookup with a summary of other entries would miss partitions.
#[test]
fn a_lookup_finds_what_a_snapshot_brought_into_a_large_index() {
    let (brings, takes) = (member(), member());
    for (member, first) in [(&brings, 0), (&takes, 100_000)] {
        let map = member.grid.map("m").unwrap();
        map.add_index(index(IndexKind::Hash, &["this"])).unwrap();
        (first..first + 30_000).for_each(|key| put(&map, key, key));
        member.clock.advance(1_000);
        member.run_expiry();
    }
    let map = takes.grid.map("m").unwrap();
    let id = map.layout().indexes[0].id;
    let probe = |value: i32| Probe::Equal(encoded(&[Value::Int32(value)]));
    assert!(map.probe_partitions(id, &probe(100_000)).iter().count() < 10);
    // Without a log, all partitions are in group 0.
    for group in (0..24).map(replication::GroupId) {
        let mut export = brings.grid.begin_export(group).unwrap();
        let mut import = takes.grid.begin_import(group).unwrap();
        while let Some(page) = export.page(1 << 20) {
            import.page(&page).unwrap();
        }
        takes.grid.install(import);
    }
    let found = |value: i32| {
        let partition = map.partition_of(&value.to_blob().unwrap());
        let mut keys = Vec::new();
        if map.probe_partitions(id, &probe(value)).contains(partition) {
            map.probe(partition, id, &probe(value), &mut |key, _| {
                keys.push(key_of(key));
                true
            });
        }
        keys
    };
    assert!((0..30_000).all(|value| found(value) == [value]));
    assert!((100_000..130_000).all(|value| found(value).is_empty()));
    assert_eq!(takes.grid.statistics().memory_bytes, map.statistics().bytes_owned);
    // A new summary was built.
    assert!(map.probe_partitions(id, &probe(1)).iter().count() < 10);
}

#[test]
fn a_lookup_in_a_large_index_asks_few_partitions_and_none_too_few() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    map.add_index(index(IndexKind::Hash, &["this"])).unwrap();
    let id = map.layout().indexes[0].id;
    let partitions_of = |value: i32| map.probe_partitions(id, &Probe::Equal(encoded(&[Value::Int32(value)])));
    let check = |values: std::ops::Range<i32>, partitions_max: usize| {
        let mut probed = 0;
        for value in values.clone() {
            let partitions = partitions_of(value);
            assert!(partitions.contains(map.partition_of(&value.to_blob().unwrap())), "{value}");
            probed += partitions.iter().count();
        }
        assert!(probed <= partitions_max * values.len(), "{probed} partitions for {} lookups", values.len());
    };
    let range_probe = Probe::All { descending: false };
    assert_eq!(map.probe_partitions(id, &range_probe).iter().count(), 271);
    (0..1_000).for_each(|key| put(&map, key, key));
    check(0..1_000, 271);
    for round in 1..=6 {
        (0..round * 10_000).for_each(|key| put(&map, key, key));
        member.clock.advance(1_000);
        member.run_expiry();
        check(0..round * 10_000, if round == 1 { 271 } else { 8 });
        assert_eq!(member.grid.statistics().memory_bytes, map.statistics().bytes_owned);
    }
    put(&map, 70_000, Json::new("{"));
    put(&map, 70_001, 70_001);
    check(70_001..70_002, 10);
    map.add_index(index(IndexKind::Sorted, &["this"])).unwrap();
    let sorted = map.layout().indexes[1].id;
    let probe = Probe::In(vec![encoded(&[Value::Int32(7)]), encoded(&[Value::Int32(30_000)])]);
    assert!(map.probe_partitions(sorted, &probe).iter().count() < 10);
    map.drop_index("m_hash_this").unwrap();
    assert_eq!(partitions_of(1).iter().count(), 271);
    member.destroy_map("m");
    assert_eq!(member.grid.statistics().memory_bytes, 0);
}

#[test]
fn a_lookup_finds_what_was_put_before_it_while_summaries_are_rebuilt() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    map.add_index(index(IndexKind::Sorted, &["this"])).unwrap();
    let id = map.layout().indexes[0].id;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let map = &map;
                scope.spawn(move || {
                    for number in 0..60_000 {
                        let key = number * 2 + writer;
                        put(map, key, key);
                        let probe = Probe::Equal(encoded(&[Value::Int32(key)]));
                        let mut found = 0;
                        for partition in map.probe_partitions(id, &probe).iter() {
                            map.probe(partition, id, &probe, &mut |_, _| {
                                found += 1;
                                true
                            });
                        }
                        assert_eq!(found, 1, "{key}");
                        if number % 7 == 0 {
                            remove(map, key);
                        }
                    }
                })
            })
            .collect();
        let sweeper = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                member.clock.advance(1_000);
                member.run_expiry();
                std::thread::yield_now();
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        sweeper.join().unwrap();
        assert!(results.iter().all(Result::is_ok));
    });
    let few = map.probe_partitions(id, &Probe::Equal(encoded(&[Value::Int32(1)])));
    assert!(few.iter().count() < 100);
    assert_eq!(member.grid.statistics().memory_bytes, map.statistics().bytes_owned);
}

#[test]
fn fields_are_those_that_attributes_name() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    map.add_index(index(IndexKind::Sorted, &["this.a.b", "__key#id"])).unwrap();
    let fields = &map.layout().indexes[0].fields;
    assert_eq!(*fields, [FieldPath::parse("a.b").unwrap(), FieldPath::parse("__key.id").unwrap()]);
}
