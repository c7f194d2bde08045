//! Compares the table with a plain map, for hashes that are good, share prefixes, or are all equal.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::record::Usage;

/// Computes hashes whose bits outside of `mask` are zero.
#[derive(Clone)]
struct Masked {
    mask: u64,
    state: FixedState,
}

struct MaskedHasher<H>(H, u64);

impl<H: Hasher> Hasher for MaskedHasher<H> {
    fn finish(&self) -> u64 {
        self.0.finish() & self.1
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
}

impl BuildHasher for Masked {
    type Hasher = MaskedHasher<<FixedState as BuildHasher>::Hasher>;

    fn build_hasher(&self) -> Self::Hasher {
        MaskedHasher(self.state.build_hasher(), self.mask)
    }
}

fn table(mask: u64) -> Table<Masked> {
    Table::new(Masked { mask, state: FixedState::with_seed(1) })
}

fn record(key: u32, value: u32) -> Record {
    Record::new(&key.to_be_bytes(), &value.to_be_bytes(), Usage::default(), None, None).unwrap()
}

fn put<S: BuildHasher>(table: &mut Table<S>, key: u32, value: u32) {
    let hash = table.hash(&key.to_be_bytes());
    match table.find(hash, &key.to_be_bytes()) {
        Some(place) => table.at_mut(place).unwrap().value_mut().copy_from_slice(&value.to_be_bytes()),
        None => table.insert(hash, record(key, value)),
    }
}

fn remove<S: BuildHasher>(table: &mut Table<S>, key: u32) -> bool {
    let hash = table.hash(&key.to_be_bytes());
    table.find(hash, &key.to_be_bytes()).and_then(|place| table.remove(place)).is_some()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

/// Checks all invariants on which lookups rely, and compares the content with the model.
fn check<S: BuildHasher>(table: &Table<S>, model: &BTreeMap<u32, u32>) {
    assert_eq!(table.len(), model.len());
    let content: Vec<(u32, u32)> = table.records().map(|r| (number(r.key()), number(r.value()))).collect();
    assert_eq!(content.len(), model.len());
    assert_eq!(content.into_iter().collect::<BTreeMap<_, _>>(), *model);
    for key in model.keys() {
        assert!(table.get(table.hash(&key.to_be_bytes()), &key.to_be_bytes()).is_some());
    }
    if model.is_empty() {
        assert_eq!(table.bytes(), 0);
        return;
    }
    assert_eq!(table.directory.len(), 1 << table.depth);
    assert_eq!(table.slots_allocated, table.segments.iter().map(|s| s.records.capacity()).sum::<usize>());
    assert_eq!(table.overflow_len, table.overflow.values().map(Vec::len).sum::<usize>());
    assert_eq!(table.deepest_count, table.segments.iter().filter(|s| s.depth() == table.depth).count());
    let mut covered = 0;
    for (index, segment) in table.segments.iter().enumerate() {
        let start = table.directory_start(segment.prefix, segment.depth());
        for entry in &table.directory[start..start + (1 << (table.depth - segment.depth()))] {
            assert_eq!(*entry as usize, index);
            covered += 1;
        }
        let range = segment.range();
        assert!(segment.records.iter().all(|r| (range.first..=range.last).contains(&table.hash(r.key()))));
        assert_eq!(segment.overflowed, table.overflow.range(range.first..=range.last).next().is_some());
    }
    assert_eq!(covered, table.directory.len());
}

#[test]
fn a_hundred_thousand_keys_come_and_go_and_leave_nothing() {
    let mut table = table(u64::MAX);
    let mut model = BTreeMap::new();
    for key in 0..100_000 {
        put(&mut table, key, key * 2);
        model.insert(key, key * 2);
    }
    check(&table, &model);
    assert!(table.overflow.is_empty());
    assert!(table.bytes() < 100_000 * 16, "{} bytes for 100,000 entries", table.bytes());
    let full = table.bytes();
    for key in 0..99_000 {
        assert!(remove(&mut table, key));
        model.remove(&key);
    }
    check(&table, &model);
    assert!(table.bytes() < full / 40, "{} bytes for 1,000 entries, {full} for 100,000", table.bytes());
    for key in 99_000..100_000 {
        assert!(remove(&mut table, key));
    }
    check(&table, &BTreeMap::new());
}

#[test]
fn one_entry_takes_little() {
    let mut table = table(u64::MAX);
    assert_eq!(table.bytes(), 0);
    put(&mut table, 1, 1);
    assert!(table.bytes() <= 64 + 4 + 32, "{} bytes", table.bytes());
}

#[test]
fn keys_with_long_equal_prefixes_overflow_instead_of_splitting_for_ever() {
    for mask in [0, 1, 0xff, u64::MAX >> 40, u64::MAX >> 20, 0xf000_0000_0000_00ff] {
        let mut table = table(mask);
        let mut model = BTreeMap::new();
        for key in 0..5_000 {
            put(&mut table, key, key);
            model.insert(key, key);
        }
        check(&table, &model);
        assert!(table.directory.len() <= DIRECTORY_RATIO_MAX * table.segments.len().max(2), "mask {mask:x}");
        assert!(table.segments.len() < 1_000, "mask {mask:x}: {} segments", table.segments.len());
        for key in 0..4_990 {
            assert!(remove(&mut table, key));
            model.remove(&key);
        }
        check(&table, &model);
        assert_eq!(table.take_all().len(), 10);
        check(&table, &BTreeMap::new());
    }
}

#[test]
fn a_walk_from_an_old_position_goes_on_where_it_was_after_segments_merged() {
    let mut table = table(u64::MAX);
    for key in 0..5_000 {
        put(&mut table, key, key);
    }
    let mut first = Vec::new();
    let mut count = 0;
    let position = table.walk(
        0,
        |r| first.push(number(r.key())),
        || {
            count += 1;
            count == 100
        },
    );
    let position = position.unwrap();
    for key in 100..5_000 {
        remove(&mut table, key);
    }
    assert!(table.range_at(position).first < position, "segments should have merged");
    let mut rest = Vec::new();
    assert_eq!(table.walk(position, |r| rest.push(number(r.key())), || false), None);
    let mut seen: Vec<u32> = first.into_iter().filter(|key| *key < 100).chain(rest).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_table_agrees_with_a_plain_map(
        mask in prop_oneof![Just(u64::MAX), Just(0), Just(0xffff), Just(0xe000_0000_0000_0003), any::<u64>()],
        steps in prop::collection::vec((0u32..600, any::<u32>(), 0u8..5), 0..3_000),
        shrink in any::<bool>(),
    ) {
        let mut table = table(mask);
        let mut model = BTreeMap::new();
        for (key, value, step) in steps {
            if step == 0 || (step < 3 && shrink && key > 100) {
                prop_assert_eq!(remove(&mut table, key), model.remove(&key).is_some());
            } else {
                put(&mut table, key, value);
                model.insert(key, value);
            }
        }
        check(&table, &model);
    }
}
