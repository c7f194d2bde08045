//! What maps cost that have nothing in them, or one entry: as the member counts it, and as the system does. One test alone in its
//! binary, as others would take memory meanwhile.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Member, caller, member, settle};
use filbert_data::{FieldPath, FieldType, Json, ToBlob};
use filbert_grid::*;

const MAPS: usize = 1_000;
/// What a map without entries may take on 271 partitions.
const EMPTY_BYTES_MAX: usize = 8 << 10;
/// What the first entry of a map may add: its partition's share of the map, of two indexes and of two columns.
const FIRST_ENTRY_BYTES_MAX: usize = 8 << 10;

/// What stays in memory of the process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

fn index(kind: IndexKind, attribute: &str) -> IndexConfig {
    IndexConfig { kind, attributes: vec![attribute.to_owned()], ..IndexConfig::default() }
}

/// A map, with so many indexes of different kinds, and columns if it is to have any.
fn make(member: &Member, name: &str, indexes: usize, has_columns: bool) {
    let map = member.grid.map(name).unwrap();
    settle();
    let all = [index(IndexKind::Sorted, "age"), index(IndexKind::Hash, "name"), index(IndexKind::Bitmap, "town")];
    for index in all.into_iter().take(indexes) {
        map.add_index(index).unwrap();
    }
    if has_columns {
        let column = |field: &str, field_type| ColumnConfig { field: FieldPath::parse(field).unwrap(), field_type };
        map.set_columns(vec![column("age", FieldType::BigInt), column("name", FieldType::Varchar)]).unwrap();
    }
    assert_eq!((map.size(), map.get(PartitionId(0), b"key", |value| value.is_some())), (0, false));
    map.clear(caller(1, 1)).unwrap();
}

fn names(kind: usize) -> impl Iterator<Item = String> {
    (0..MAPS).map(move |number| format!("map {kind} {number}"))
}

#[test]
fn empty_maps_cost_little_and_give_it_back() {
    let member = member();
    let counted = || member.grid.statistics().memory_bytes;
    // What maps take together once, as the tables of names.
    names(9).for_each(|name| make(&member, &name, 3, true));
    names(9).for_each(|name| assert!(member.destroy_map(&name)));
    let (counted_first, resident_first) = (counted(), resident());
    for (kind, (indexes, has_columns)) in [(0, false), (3, false), (0, true), (2, true)].into_iter().enumerate() {
        let (counted_before, resident_before) = (counted(), resident());
        names(kind).for_each(|name| make(&member, &name, indexes, has_columns));
        let (each, each_resident) =
            ((counted() - counted_before) / MAPS, resident().saturating_sub(resident_before) / MAPS);
        println!("{indexes} indexes, columns {has_columns}: {each} bytes counted, {each_resident} resident");
        assert!((271 * 16..EMPTY_BYTES_MAX).contains(&each), "{each} bytes");
        assert!(each_resident < EMPTY_BYTES_MAX, "{each_resident} bytes");
        let statistics = member.grid.map(&names(kind).next().unwrap()).unwrap().statistics();
        assert!(statistics.bytes_owned.abs_diff(each) < 16, "{statistics:?}, but {each}");
    }
    let (counted_before, resident_before) = (counted(), resident());
    let (key, value) = (7.to_blob().unwrap(), Json::new(r#"{"age": 7, "name": "x", "town": "y"}"#).to_blob().unwrap());
    for name in names(3) {
        let map = member.grid.map(&name).unwrap();
        let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
        map.change(map.partition_of(&key), caller(1, 1), change, |_| ()).unwrap();
    }
    let added = (counted() - counted_before) / MAPS;
    let added_resident = resident().saturating_sub(resident_before) / MAPS;
    println!("the first entry: {added} bytes counted, {added_resident} resident");
    assert!(added < FIRST_ENTRY_BYTES_MAX && added_resident < FIRST_ENTRY_BYTES_MAX, "{added}, {added_resident}");
    // What is given back serves the next maps.
    (0..4).flat_map(names).for_each(|name| assert!(member.destroy_map(&name)));
    assert_eq!(counted(), counted_first);
    let most = resident();
    for round in 0..5 {
        names(round).for_each(|name| make(&member, &name, 2, true));
        names(round).for_each(|name| assert!(member.destroy_map(&name)));
        assert_eq!(counted(), counted_first);
    }
    assert!(resident() < most + (2 << 20), "{} after {most}, which began with {resident_first}", resident());
}
