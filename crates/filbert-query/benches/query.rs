//! The cost of statements without a network: lookups with a cached plan, and scans of columns and
//! of rows.
//!
//! `cargo bench -p filbert-query`
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench that cannot go on stops"
)]

#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::hint::black_box;

use common::Member;
use criterion::{Criterion, criterion_group, criterion_main};
use filbert_data::Value;

/// The number of entries of each map. Scans read all of them.
const ROWS: i64 = 1_000_000;
/// The number of entries that one statement inserts.
const CHUNK: i64 = 50_000;

const JSON: &str = "'valueFormat'='json-flat'";
const COMPACT: &str = "'valueFormat'='compact', 'valueCompactTypeName'='row'";

fn filled(format: &str, more: &str) -> Member {
    let member = Member::start();
    member.change(&format!(
        "CREATE MAPPING m (__key INT, n BIGINT, g INT) TYPE IMap OPTIONS ('keyFormat'='int', {format}{more})"
    ));
    for begin in (0..ROWS).step_by(CHUNK as usize) {
        let series = format!("TABLE(generate_series({begin}, {}))", begin + CHUNK - 1);
        member.change(&format!("INSERT INTO m SELECT CAST(v AS INT), v, CAST(v % 100 AS INT) FROM {series}"));
    }
    member
}

fn lookups(criterion: &mut Criterion) {
    let member = filled(COMPACT, "");
    member.change("CREATE INDEX by_n ON m (n) TYPE HASH");
    let mut next = 0_i32;
    for (name, text) in
        [("lookup by key", "SELECT n FROM m WHERE __key = ?"), ("lookup by index", "SELECT g FROM m WHERE n = ?")]
    {
        criterion.bench_function(name, |bench| {
            bench.iter(|| {
                next = (next + 7_919) % ROWS as i32;
                black_box(member.rows_with(text, &[Value::Int32(next)]))
            });
        });
    }
}

fn scans(criterion: &mut Criterion) {
    for (name, format, more) in
        [("columns", COMPACT, ", 'columnar'='true'"), ("rows of Compact", COMPACT, ""), ("rows of JSON", JSON, "")]
    {
        let member = filled(format, more);
        for (what, text) in [("sum", "SELECT sum(n) FROM m"), ("group", "SELECT g, sum(n) FROM m GROUP BY g")] {
            criterion.bench_function(&format!("{what} of {ROWS} over {name}"), |bench| {
                bench.iter(|| black_box(member.rows(text)));
            });
        }
    }
}

fn documents(criterion: &mut Criterion) {
    let member = filled(JSON, "");
    let options = "'keyFormat'='int', 'valueFormat'='json'";
    member.change(&format!("CREATE MAPPING d EXTERNAL NAME m (__key INT, this JSON) TYPE IMap OPTIONS ({options})"));
    criterion.bench_function(&format!("JSON_VALUE of {ROWS} documents"), |bench| {
        bench.iter(|| black_box(member.rows("SELECT sum(JSON_VALUE(this, '$.n' RETURNING INTEGER)) FROM d")));
    });
}

criterion_group!(
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = lookups, scans, documents
);
criterion_main!(benches);
