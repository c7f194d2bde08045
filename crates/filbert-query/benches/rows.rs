//! The cost of inserting rows into a table: with the bulk writer, and with one statement for each
//! row.
//!
//! `cargo bench -p filbert-query --bench rows`
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench that cannot go on stops")]

#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use chrono::DateTime;
use common::Member;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use filbert_data::Value;
use filbert_grid::query::{Dialect, WriteMode};

/// The number of rows that are written before the table is emptied.
const ROWS: u32 = 100_000;
/// The number of rows in one call of the writer.
const CHUNK: usize = 1_000;
/// The number of columns of a row.
const WIDTH: usize = 5;

fn member() -> Member {
    let member = Member::of(Dialect::Crate);
    member
        .change("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL, n INT, x DOUBLE PRECISION, at TIMESTAMP)");
    member
}

fn rows(names: &[String]) -> Vec<Value<'_>> {
    let mut values = Vec::with_capacity(names.len() * WIDTH);
    for (number, name) in (0_i32..).zip(names) {
        values.push(Value::Int64(i64::from(number)));
        values.push(Value::text(name));
        values.push(Value::Int64(i64::from(number % 100)));
        values.push(Value::Float64(f64::from(number) / 3.0));
        let moment = DateTime::from_timestamp_millis(1_700_000_000_000 + i64::from(number)).unwrap();
        values.push(Value::Timestamp(moment.naive_utc()));
    }
    values
}

/// The time of `write` for all rows, into an empty table.
fn timed(member: &Member, iterations: u64, mut write: impl FnMut()) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..iterations {
        member.change("TRUNCATE TABLE t");
        let start = Instant::now();
        write();
        total += start.elapsed();
    }
    total
}

fn writers(criterion: &mut Criterion) {
    let names: Vec<String> = (0..ROWS).map(|number| format!("name of {number}")).collect();
    let values = rows(&names);
    let member = member();
    let mut group = criterion.benchmark_group("rows of five columns");
    group.throughput(Throughput::Elements(u64::from(ROWS)));
    group.sample_size(10);
    let insert = "INSERT INTO t (id, name, n, x, at) VALUES (?, ?, ?, ?, ?)";
    for (name, mode) in [("row writer, each", WriteMode::Each), ("row writer, all", WriteMode::All)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                timed(&member, iterations, || {
                    let mut writer = member.row_writer(insert, mode).unwrap();
                    for chunk in values.chunks(CHUNK * WIDTH) {
                        writer.write(chunk, &mut |outcome| assert!(outcome.is_ok()));
                    }
                    writer.finish().unwrap();
                })
            });
        });
    }
    group.bench_function("one statement for each", |bencher| {
        bencher.iter_custom(|iterations| {
            timed(&member, iterations, || {
                for row in values.chunks(WIDTH) {
                    member.change_with(insert, row);
                }
            })
        });
    });
    group.finish();
}

criterion_group!(benches, writers);
criterion_main!(benches);
