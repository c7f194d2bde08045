//! The cost of a set through a log in the same process: encoded, queued, decoded and applied by
//! another thread.
//!
//! `cargo bench --profile release -p filbert-grid --bench replicated`.
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a bench may fail")]

#[path = "../tests/suite/common/loopback.rs"]
mod loopback;

use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use filbert_grid::replication::{InFlight, WhenLocked};
use filbert_grid::{Caller, Change, Environment, Expiry, GridConfig, GridError, PutMode, Reply, SystemClock};
use loopback::{Loopback, Whims};

const KEYS: u32 = 50_000;
const BATCH: usize = 100;

fn key(n: u32) -> Vec<u8> {
    let mut blob = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9];
    blob.extend_from_slice(&n.to_be_bytes());
    blob
}

fn benches(criterion: &mut Criterion) {
    let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 1 };
    let whims = Whims { threads: 1, entry_max: 64, ..Whims::default() };
    let (grid, loopback) = Loopback::start(GridConfig::default(), environment, whims);
    let map = grid.map("bench").expect("a map");
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let value = vec![7u8; 512];
    let set = |key| Change::Put { key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    for key in &keys {
        map.change(map.partition_of(key), Caller::default(), set(key), |_| ()).expect("nothing is refused");
    }
    let mut at = 0;
    let mut next = move || {
        at = (at + 7_919) % KEYS as usize;
        at
    };
    let mut group = criterion.benchmark_group("through a log");
    group.bench_function("set, waiting", |bencher| {
        bencher.iter(|| {
            let key = &keys[next()];
            map.change(map.partition_of(key), Caller::default(), set(key), |_| ()).expect("nothing is refused");
        });
    });
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("100 sets in a batch", |bencher| {
        let in_flight = Arc::new(InFlight::new(|| {}));
        bencher.iter_batched(
            || grid.submissions(in_flight.clone()),
            |mut to| {
                for _ in 0..BATCH {
                    let key = &keys[next()];
                    let reply = Box::new(|_: Result<Reply<'_>, GridError>| {});
                    let (partition, caller) = (map.partition_of(key), Caller::default());
                    map.submit(&mut to, partition, caller, set(key), WhenLocked::Answer, reply).expect("it is taken");
                }
                to.send();
                loopback.settle();
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
