//! The cost of a get and a set through the grid, compared with one hash table under a lock.
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a bench may fail")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use criterion::{Criterion, criterion_group, criterion_main};
use filbert_grid::{Caller, Change, Environment, Expiry, Grid, GridConfig, PutMode, SystemClock};

const KEYS: u32 = 50_000;

fn key(n: u32) -> Vec<u8> {
    let mut blob = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9];
    blob.extend_from_slice(&n.to_be_bytes());
    blob
}

fn benches(criterion: &mut Criterion) {
    let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 1 };
    let grid = Grid::new(GridConfig::default(), environment).expect("the default configuration is valid");
    let map = grid.map("bench").expect("a map");
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let value = vec![7u8; 512];
    let set = |key: &[u8]| {
        let change = Change::Put { key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
        map.change(map.partition_of(key), Caller::default(), change, |_| ()).expect("no one has locked the key");
    };
    let table: Mutex<HashMap<Vec<u8>, Vec<u8>>> = Mutex::default();
    for key in &keys {
        set(key);
        table.lock().expect("no panic").insert(key.clone(), value.clone());
    }
    // A stride that visits all keys in a scattered order.
    let mut at = 0;
    let mut next = move || {
        at = (at + 7_919) % KEYS as usize;
        at
    };
    let mut group = criterion.benchmark_group("map");
    group.bench_function("get", |bencher| {
        bencher.iter(|| {
            let key = &keys[next()];
            map.get(map.partition_of(key), key, |value| black_box(value.map(<[u8]>::len)))
        });
    });
    group.bench_function("set", |bencher| bencher.iter(|| set(&keys[next()])));
    group.bench_function("locked hash table get", |bencher| {
        bencher.iter(|| table.lock().expect("no panic").get(&keys[next()]).map(|value| black_box(value.len())));
    });
    group.bench_function("locked hash table set", |bencher| {
        bencher.iter(|| table.lock().expect("no panic").insert(keys[next()].clone(), value.clone()));
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
