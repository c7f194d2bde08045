//! The memory of empty maps, and of maps with one entry: as the member counts it, and as the
//! allocator counts it. The binary has only this test, because other tests would allocate memory at
//! the same time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "suite/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Member, caller, member, settle};
use filbert_data::{FieldPath, FieldType, Json, ToBlob};
use filbert_grid::*;

const MAPS: usize = 1_000;
/// The maximum memory of a map without entries, with 271 partitions, in bytes.
const EMPTY_BYTES_MAX: usize = 8 << 10;
/// The maximum memory of each index or column, once for all partitions, in bytes.
const DECLARED_BYTES_MAX: usize = 2_560;
/// The maximum memory of a map's first entry, in bytes: its partition's share of the map, of two
/// indexes and of two columns.
const FIRST_ENTRY_BYTES_MAX: usize = 8 << 10;

/// The system allocator with a counter of allocated bytes.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls are forwarded to the system allocator. The counter does not change its
// behavior.
#[expect(unsafe_code, reason = "an allocator can be told by no safe code")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

fn allocated() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

fn index(kind: IndexKind, attribute: &str) -> IndexConfig {
    IndexConfig { kind, attributes: vec![attribute.to_owned()], ..IndexConfig::default() }
}

/// Creates a map with a number of indexes of different kinds, and optionally with columns.
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
    // Warms up the memory that all maps share: the tables of their names grow, and keep their size.
    (0..4).flat_map(names).for_each(|name| make(&member, &name, 3, true));
    (0..4).flat_map(names).for_each(|name| assert!(member.destroy_map(&name)));
    let (counted_first, allocated_first) = (counted(), allocated());
    for (kind, (indexes, has_columns)) in [(0, false), (3, false), (0, true), (2, true)].into_iter().enumerate() {
        let (counted_before, allocated_before) = (counted(), allocated());
        names(kind).for_each(|name| make(&member, &name, indexes, has_columns));
        let (each, allocated_each) = ((counted() - counted_before) / MAPS, (allocated() - allocated_before) / MAPS);
        println!("{indexes} indexes, columns {has_columns}: {each} bytes counted, {allocated_each} allocated");
        assert!((271 * 16..EMPTY_BYTES_MAX).contains(&each), "{each} bytes");
        let declared = indexes + if has_columns { 2 } else { 0 };
        assert!(allocated_each < EMPTY_BYTES_MAX + declared * DECLARED_BYTES_MAX, "{allocated_each} bytes");
        assert!(declared > 0 || each * 4 / 3 > allocated_each, "{each} bytes of {allocated_each} are counted");
        let statistics = member.grid.map(&names(kind).next().unwrap()).unwrap().statistics();
        assert!(statistics.bytes_owned.abs_diff(each) < 16, "{statistics:?}, but {each}");
    }
    let (counted_before, allocated_before) = (counted(), allocated());
    let (key, value) = (7.to_blob().unwrap(), Json::new(r#"{"age": 7, "name": "x", "town": "y"}"#).to_blob().unwrap());
    for name in names(3) {
        let map = member.grid.map(&name).unwrap();
        let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
        map.change(map.partition_of(&key), caller(1, 1), change, |_| ()).unwrap();
    }
    let (added, allocated_added) = ((counted() - counted_before) / MAPS, (allocated() - allocated_before) / MAPS);
    println!("the first entry: {added} bytes counted, {allocated_added} allocated");
    assert!(added < FIRST_ENTRY_BYTES_MAX && allocated_added < FIRST_ENTRY_BYTES_MAX, "{added}, {allocated_added}");
    (0..4).flat_map(names).for_each(|name| assert!(member.destroy_map(&name)));
    assert_eq!(counted(), counted_first);
    let left = allocated().saturating_sub(allocated_first) / MAPS;
    assert!(left < 100, "each map has left {left} bytes");
}
