//! The cost of an index lookup over 271 partitions: in all partitions, and only in the partitions
//! that may contain the key.
//!
//! `cargo bench --profile release -p filbert-grid --bench lookup`. 300,000 entries of 64-bit
//! numbers.
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a bench may fail")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use filbert_data::{ToBlob, Value};
use filbert_grid::{
    Caller, Change, Environment, Expiry, Grid, GridConfig, IndexConfig, IndexKind, PartitionId, Probe, PutMode,
    SystemClock,
};

const ENTRIES: i64 = 300_000;

fn benches(criterion: &mut Criterion) {
    let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 1 };
    let grid = Grid::new(GridConfig::default(), environment).expect("the default configuration is valid");
    let map = grid.map("bench").expect("a map");
    for number in 0..ENTRIES {
        let key = number.to_blob().expect("a number");
        let value = (number * 7).to_blob().expect("a number");
        let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
        map.change(map.partition_of(&key), Caller::default(), change, |_| ()).expect("no one has locked the key");
    }
    let attributes = vec!["this".to_owned()];
    map.add_index(IndexConfig { kind: IndexKind::Hash, attributes, ..IndexConfig::default() }).expect("an index");
    let id = map.layout().indexes[0].id;
    let mut at = 0;
    let mut next = move || {
        at = (at + 7_919) % ENTRIES;
        let mut key = Vec::new();
        Value::Int64(at * 7).append_index_key(&mut key);
        Probe::Equal(key)
    };
    let probe_in = |partition: PartitionId, probe: &Probe| {
        map.probe(partition, id, probe, &mut |_, value| {
            black_box(value.len());
            true
        });
    };
    let mut group = criterion.benchmark_group("lookup by an index of 300,000 entries");
    group.bench_function("all partitions", |bencher| {
        bencher.iter(|| {
            let probe = next();
            (0..map.partition_count()).for_each(|partition| probe_in(PartitionId(partition), &probe));
        });
    });
    group.bench_function("partitions that may have it", |bencher| {
        bencher.iter(|| {
            let probe = next();
            map.probe_partitions(id, &probe).iter().for_each(|partition| probe_in(partition, &probe));
        });
    });
    let mut at = 0;
    group.bench_function("get, beside it", |bencher| {
        bencher.iter(|| {
            at = (at + 7_919) % ENTRIES;
            let key = at.to_blob().expect("a number");
            map.get(map.partition_of(&key), &key, |value| black_box(value.map(<[u8]>::len)))
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
