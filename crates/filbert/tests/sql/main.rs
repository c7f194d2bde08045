//! SQL as users write it: files of sqllogictest over the embedded API, Hazelcast's protocol and PostgreSQL's, SQLite's public tests, TPC-H beside
//! DuckDB, and the examples of the SQL reference. Every file begins with an empty member.
//!
//! Expectations come from the SQL standard and from Hazelcast's documentation; where Filbert differs on purpose, the SQL
//! reference says so. `values.rs` tells how values are written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panics and tell figures"
)]

mod database;
mod limits;
mod postgres;
mod reference;
mod sqlite;
mod tpch;
mod values;

use std::path::{Path, PathBuf};

use filbert::Dialect;
use sqllogictest::{QueryExpect, Runner};

use crate::database::{Database, Embedded, Logic, Wire};
use crate::postgres::Postgres;
use crate::values::Kind;

/// The files, by name. `FILBERT_SLT=part` takes those whose name contains `part`.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let wanted = std::env::var("FILBERT_SLT").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no file of sqllogictest is of the name {wanted:?}");
    files
}

/// The dialect that the first line of a file names, such as `# dialect: postgres`; Hazelcast's without one. Errors of the other
/// dialects are told as `SQLSTATE: text`.
fn dialect_of(path: &Path) -> Dialect {
    let text = std::fs::read_to_string(path).unwrap();
    match text.lines().next().and_then(|line| line.strip_prefix("# dialect: ")) {
        None => Dialect::Hazelcast,
        Some("crate") => Dialect::Crate,
        Some("postgres") => Dialect::Postgres,
        Some(other) => panic!("{}: there is no dialect {other:?}", path.display()),
    }
}

/// The statement of a record that expects several rows in an order that nothing sets. It would fail now and then, as several threads read
/// a table.
fn order_missing<T: sqllogictest::ColumnType>(record: &sqllogictest::Record<T>) -> Option<&str> {
    /// What sets an order, or makes rows one after another in a single stream.
    const ORDERS: [&str; 5] = ["order by", "generate_", "unnest", "returning", "explain"];
    const STARTS: [&str; 2] = ["show", "values"];
    let sqllogictest::Record::Query { sql, expected: QueryExpect::Results { sort_mode: None, results, .. }, .. } =
        record
    else {
        return None;
    };
    let lower = sql.to_lowercase();
    let is_ordered =
        ORDERS.iter().any(|word| lower.contains(word)) || STARTS.iter().any(|word| lower.starts_with(word));
    (results.len() > 1 && !is_ordered).then_some(sql)
}

/// Runs every record of every file whose dialect the database speaks, and tells all that went wrong, not only the first.
fn check<D: Database + Send + 'static>(start: fn(Dialect) -> Option<D>) {
    let mut failures = Vec::new();
    let (mut records, mut failed) = (0, 0);
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(database) = start(dialect_of(&path)) else { continue };
        let mut database = Some(Logic(database));
        let mut runner = Runner::new(move || std::future::ready(Ok(database.take().unwrap())));
        runner.with_column_validator(|actual, expected| {
            let told: Vec<Kind> = expected.iter().map(|kind| D::told(*kind)).collect();
            Kind::fits(actual, &told)
        });
        for record in sqllogictest::parse_file(&path).unwrap() {
            records += 1;
            if let Some(sql) = order_missing(&record) {
                failures.push(format!("{name}: no ORDER BY and no rowsort, so the rows may come in any order: {sql}"));
            }
            if let Err(error) = runner.run(record) {
                failed += 1;
                failures.push(format!("{name}: {}", error.display(false)));
            }
        }
    }
    assert!(failures.is_empty(), "{failed} of {records} records failed\n\n{}", failures.join("\n\n"));
}

#[test]
fn every_file_holds_within_the_process() {
    check(|dialect| Some(if dialect == Dialect::Hazelcast { Embedded::start() } else { Embedded::of(dialect) }));
}

#[test]
fn every_file_holds_over_hazelcasts_protocol() {
    // It speaks Hazelcast's dialect alone.
    check(|dialect| (dialect == Dialect::Hazelcast).then(Wire::start));
}

#[test]
fn every_file_holds_over_postgresqls_protocol() {
    check(|dialect| Some(Postgres::start(dialect)));
}
