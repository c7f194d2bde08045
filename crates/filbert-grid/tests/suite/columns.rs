//! Columns of maps: declared before and after their entries, by configuration and by mappings, and
//! read while they change.

use crate::common::{caller, member, member_with_map};
use filbert_data::{FieldPath, FieldType, Json, ToBlob};
use filbert_grid::*;

fn put(map: &Map, key: i32, value: impl ToBlob, expiry: Expiry) {
    let (key, value) = (key.to_blob().unwrap(), value.to_blob().unwrap());
    let change = Change::Put { key: &key, value: &value, expiry, mode: PutMode::Set };
    map.change(map.partition_of(&key), caller(7, 1), change, |_| ()).unwrap();
}

fn person(age: i32) -> Json {
    Json::new(format!(r#"{{"age": {age}, "name": "person number {age}"}}"#))
}

fn column(field: &str, field_type: FieldType) -> ColumnConfig {
    ColumnConfig { field: FieldPath::parse(field).unwrap(), field_type }
}

/// The columns of a partition. With a log, a sweep must first remove expired entries.
fn columns_of(map: &Map, partition: PartitionId) -> Columns {
    loop {
        match map.scan_columns(partition) {
            Some(columns) => return columns,
            None => assert!(map.is_replicated()),
        }
        std::thread::yield_now();
    }
}

/// The sum, the count and the number of broken values of a field's column.
fn sum(map: &Map, field: &str) -> (i64, usize, usize) {
    let layout = map.layout();
    let path = FieldPath::parse(field).unwrap();
    let info = layout.columns.iter().find(|column| column.field == path).unwrap();
    assert!(info.ready);
    let (mut total, mut count, mut broken) = (0, 0, 0);
    for partition in 0..map.partition_count() {
        let columns = columns_of(map, PartitionId(partition));
        let position = columns.position(info.id).unwrap();
        for chunk in columns.chunks() {
            let Some(ColumnView::Int64(values)) = chunk.column(position) else { panic!() };
            for (slot, value) in values.iter().enumerate().filter(|(slot, _)| chunk.is_live(*slot)) {
                let is_valid = chunk.validity(position).is_none_or(|bits| bits[slot / 64] >> (slot % 64) & 1 == 1);
                if is_valid {
                    total += value;
                    count += 1;
                }
            }
            broken += chunk.broken_count(position);
        }
    }
    (total, count, broken)
}

#[test]
fn columns_hold_entries_that_were_there_before_them_and_those_that_come_after() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    assert!(map.scan_columns(PartitionId(0)).is_none());
    (0..1_000).for_each(|key| put(&map, key, person(key), Expiry::DEFAULT));
    map.set_columns(vec![column("age", FieldType::BigInt), column("name", FieldType::Varchar)]).unwrap();
    (1_000..2_000).for_each(|key| put(&map, key, person(key), Expiry::DEFAULT));
    assert_eq!(sum(&map, "age"), (1_999 * 1_000, 2_000, 0));
    put(&map, 0, Json::new(r#"{"age": "old"}"#), Expiry::DEFAULT);
    put(&map, 1, Json::new(r#"{}"#), Expiry::DEFAULT);
    assert_eq!(sum(&map, "age"), (1_999 * 1_000 - 1, 1_998, 1));
    assert!(map.statistics().column_bytes > 2_000 * 40);
    map.clear(caller(7, 1)).unwrap();
    assert_eq!(sum(&map, "age"), (0, 0, 0));
    assert_eq!(map.statistics().column_bytes, 0);
    map.set_columns(Vec::new()).unwrap();
    assert!(map.scan_columns(PartitionId(0)).is_none());
    assert_eq!(member.grid.statistics().memory_bytes, map.statistics().bytes_owned);
}

#[test]
fn columns_of_the_configuration_stay_whatever_a_mapping_declares() {
    let columns = vec![column("age", FieldType::BigInt)];
    let member = member_with_map(MapConfig { columns, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    put(&map, 1, person(5), Expiry::DEFAULT);
    assert_eq!(sum(&map, "age"), (5, 1, 0));
    let version = map.layout().version;
    map.set_columns(vec![column("age", FieldType::BigInt)]).unwrap();
    assert_eq!(map.layout().version, version);
    map.set_columns(vec![column("name", FieldType::Varchar)]).unwrap();
    assert_eq!(map.layout().columns.len(), 2);
    map.set_columns(Vec::new()).unwrap();
    assert_eq!(sum(&map, "age"), (5, 1, 0));
}

#[test]
fn a_snapshot_of_columns_holds_no_expired_entry_and_stays_as_it_was() {
    let columns = vec![column("__key", FieldType::BigInt)];
    let member = member_with_map(MapConfig { columns, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    put(&map, 1, 0, Expiry::DEFAULT);
    put(&map, 2, 0, Expiry { ttl_ms: 100, max_idle_ms: -1 });
    assert_eq!(sum(&map, "__key"), (3, 2, 0));
    member.clock.advance(1_000);
    if map.is_replicated() {
        member.grid.run_expiry();
    }
    assert_eq!(sum(&map, "__key"), (1, 1, 0));
    let snapshot = columns_of(&map, map.partition_of(&1.to_blob().unwrap()));
    map.clear(caller(7, 1)).unwrap();
    assert_eq!((snapshot.rows(), sum(&map, "__key").1), (1, 0));
}

#[test]
fn what_cannot_be_a_column_is_refused() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    for (column, expected) in [
        (column("tags[any]", FieldType::Varchar), "its path has an [any]"),
        (column("id", FieldType::Uuid), "there are no columns of type UUID"),
        (column("price", FieldType::Decimal(None)), "there are no columns of type DECIMAL"),
    ] {
        let error = map.set_columns(vec![column]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
