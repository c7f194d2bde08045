//! The hot paths of the store, compared with a locked hash table with the same bytes.
//!
//! `cargo bench --profile release -p filbert-store`. 100,000 entries with 12-byte keys and 112-byte
//! values, in a scattered order, so that lookups miss the caches as in production.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench may panic and has no users")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Cursor, Expiry, JournalSettings, MapId, MapSettings, Millis, NoObserver, Partition,
    PartitionSettings, PutMode,
};

const MAP: MapId = MapId(0);
const ENTRIES: u32 = 100_000;
const NOW: Millis = Millis(1_700_000_000_000);

/// An endless sequence of keys in a scattered order.
struct Keys(u32);

impl Keys {
    fn next(&mut self) -> [u8; 12] {
        self.0 = (self.0 + 61_681) % ENTRIES;
        key(self.0)
    }
}

fn key(number: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn apply(partition: &mut Partition, change: Change<'_>) {
    let command = Command { map: MAP, now: NOW, caller: Caller::default(), change };
    black_box(partition.apply(&command, &mut NoObserver));
}

fn put(partition: &mut Partition, key: &[u8], value: &[u8], mode: PutMode) {
    apply(partition, Change::Put { key, value, expiry: Expiry::DEFAULT, mode });
}

fn empty(settings: MapSettings) -> Partition {
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1, exact_read_times: false });
    partition.create_map(MAP, settings);
    partition
}

fn filled() -> Partition {
    let mut partition = empty(MapSettings::default());
    for number in 0..ENTRIES {
        put(&mut partition, &key(number), &[7; 112], PutMode::Set);
    }
    partition
}

fn filled_map() -> Mutex<HashMap<Vec<u8>, Vec<u8>>> {
    Mutex::new((0..ENTRIES).map(|number| (key(number).to_vec(), vec![7; 112])).collect())
}

fn reads(c: &mut Criterion) {
    let mut group = c.benchmark_group("get");
    let mut partition = filled();
    let mut keys = Keys(0);
    group.bench_function("store", |b| b.iter(|| black_box(partition.get(MAP, &keys.next(), NOW)).map(<[u8]>::len)));
    let locked = parking_lot::Mutex::new(filled());
    group.bench_function("store behind a parking_lot mutex", |b| {
        b.iter(|| locked.lock().get(MAP, &keys.next(), NOW).map(|value| black_box(value).len()))
    });
    let map = filled_map();
    group.bench_function("mutex of hash map", |b| {
        b.iter(|| map.lock().unwrap().get(keys.next().as_slice()).map(|value| black_box(value).len()))
    });
    group.finish();

    c.bench_function("fetch of 1,000 entries/store", |b| {
        b.iter(|| {
            let mut bytes = 0;
            partition.fetch(MAP, Cursor(1 << 20), 1_000, NOW, &mut |key, value| bytes += key.len() + value.len());
            bytes
        })
    });
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    let (mut partition, mut keys) = (filled(), Keys(0));
    group.bench_function("store: set of the same size", |b| {
        b.iter(|| put(&mut partition, &keys.next(), black_box(&[8; 112]), PutMode::Set))
    });
    let locked = parking_lot::Mutex::new(filled());
    group.bench_function("store: set of the same size, behind a parking_lot mutex", |b| {
        b.iter(|| put(&mut locked.lock(), &keys.next(), black_box(&[8; 112]), PutMode::Set))
    });
    let mut longer = false;
    group.bench_function("store: set of another size", |b| {
        b.iter(|| {
            longer = !longer;
            put(&mut partition, &keys.next(), black_box(&[8; 120][..if longer { 120 } else { 104 }]), PutMode::Set)
        })
    });
    group.bench_function("store: put", |b| {
        b.iter(|| put(&mut partition, &keys.next(), black_box(&[8; 112]), PutMode::Put))
    });
    group.bench_function("store: remove and set again", |b| {
        b.iter(|| {
            let key = keys.next();
            apply(&mut partition, Change::Remove { key: &key });
            put(&mut partition, &key, black_box(&[8; 112]), PutMode::Set);
        })
    });
    let map = filled_map();
    group.bench_function("mutex of hash map: insert", |b| {
        b.iter(|| map.lock().unwrap().insert(keys.next().to_vec(), black_box(&[8; 112]).to_vec()))
    });
    group.bench_function("mutex of hash map: remove and insert again", |b| {
        b.iter(|| {
            let key = keys.next();
            black_box(map.lock().unwrap().remove(key.as_slice()));
            map.lock().unwrap().insert(key.to_vec(), black_box(&[8; 112]).to_vec())
        })
    });
    group.finish();
}

/// The costs of reads and writes of entries that can expire.
fn lifetimes(c: &mut Criterion) {
    let mut group = c.benchmark_group("expiring");
    for (name, expiry) in [("ttl", Expiry::ttl(60_000)), ("max idle", Expiry { ttl_ms: 0, max_idle_ms: 60_000 })] {
        let (mut partition, mut keys) = (filled(), Keys(0));
        let set = |partition: &mut Partition, key: &[u8]| {
            apply(partition, Change::Put { key, value: black_box(&[8; 112]), expiry, mode: PutMode::Set });
        };
        (0..ENTRIES).for_each(|number| set(&mut partition, &key(number)));
        group.bench_function(format!("set, {name}"), |b| b.iter(|| set(&mut partition, &keys.next())));
        group.bench_function(format!("get, {name}"), |b| {
            b.iter(|| black_box(partition.get(MAP, &keys.next(), NOW)).map(<[u8]>::len))
        });
        group.bench_function(format!("remove and set again, {name}"), |b| {
            b.iter(|| {
                let key = keys.next();
                apply(&mut partition, Change::Remove { key: &key });
                set(&mut partition, &key);
            })
        });
    }
    group.finish();
}

/// Clearing a map. A journal requires the entries in order.
fn clearing(c: &mut Criterion) {
    let mut group = c.benchmark_group("clear of 1,000,000 entries");
    group.sample_size(10);
    for (name, capacity) in [("no journal", 0), ("a journal of 36 events", 36), ("a journal of 1,000,000", 1_000_000)] {
        let journal = (capacity > 0).then_some(JournalSettings { capacity, ttl_ms: 0 });
        let settings = MapSettings { journal, ..MapSettings::default() };
        let fill = || {
            let mut partition = empty(settings.clone());
            (0..10 * ENTRIES).for_each(|number| put(&mut partition, &key(number), &[7; 16], PutMode::Set));
            partition
        };
        let clear = |mut partition: Partition| {
            apply(&mut partition, Change::Clear);
            partition
        };
        group.bench_function(name, |b| b.iter_batched(fill, clear, BatchSize::PerIteration));
    }
    group.finish();
}

criterion_group!(benches, reads, writes, lifetimes, clearing);
criterion_main!(benches);
