//! The sqllogictest files: one test for each file and door.
//!
//! With `FILBERT_SLT=update`, the tests within the process write what they get into the files
//! instead. `cargo xtask fix --expectations` does so; the changes are then read like any other.

use std::path::{Path, PathBuf};

use filbert::Dialect;
use libtest_mimic::{Failed, Trial};
use sqllogictest::{DB, MakeConnection, QueryExpect, Runner, default_normalizer, default_validator};

use crate::database::{Database, Embedded, Logic, Wire};
use crate::postgres::Postgres;
use crate::values::Kind;

/// The tests of all files.
pub(crate) fn trials() -> Vec<Trial> {
    let updates = std::env::var("FILBERT_SLT").is_ok_and(|mode| mode == "update");
    let mut trials = Vec::new();
    for path in files() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let dialect = dialect_of(&path);
        let mut add = |door: &str, test: fn(&Path, Dialect) -> Result<(), Failed>| {
            let path = path.clone();
            trials.push(Trial::test(format!("{name}::{door}"), move || test(&path, dialect)));
        };
        if updates {
            add("update", |path, dialect| update(path, within(dialect)));
            continue;
        }
        add("within_the_process", |path, dialect| check(path, within(dialect)));
        add("over_postgresqls_protocol", |path, dialect| check(path, Postgres::start(dialect)));
        // Hazelcast's protocol supports only Hazelcast's dialect.
        if dialect == Dialect::Hazelcast {
            add("over_hazelcasts_protocol", |path, _| check(path, Wire::start()));
        }
    }
    trials
}

fn within(dialect: Dialect) -> Embedded {
    if dialect == Dialect::Hazelcast { Embedded::start() } else { Embedded::of(dialect) }
}

/// The files, sorted by name.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "slt")).collect();
    files.sort();
    files
}

/// The dialect in the first line of a file, such as `# dialect: postgres`. The default is
/// Hazelcast's dialect. Errors of the other dialects have the form `SQLSTATE: text`.
fn dialect_of(path: &Path) -> Dialect {
    let text = std::fs::read_to_string(path).unwrap();
    match text.lines().next().and_then(|line| line.strip_prefix("# dialect: ")) {
        None => Dialect::Hazelcast,
        Some("crate") => Dialect::Crate,
        Some("postgres") => Dialect::Postgres,
        Some(other) => panic!("{}: there is no dialect {other:?}", path.display()),
    }
}

/// Returns the statement of a record that expects several rows in an undefined order. Such a record
/// would fail occasionally, because several threads read a table.
fn order_missing<T: sqllogictest::ColumnType>(record: &sqllogictest::Record<T>) -> Option<&str> {
    /// The parts of statements that define an order, or that produce rows in a single stream.
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

fn runner<D: Database + Send + 'static>(database: D) -> Runner<Logic<D>, impl MakeConnection<Conn = Logic<D>>> {
    let mut database = Some(Logic(database));
    let mut runner = Runner::new(move || std::future::ready(Ok(database.take().unwrap())));
    runner.with_column_validator(fits::<D>);
    runner
}

/// Whether columns have the kinds that a file expects, as far as the protocol distinguishes them.
#[allow(clippy::ptr_arg, reason = "the signature is sqllogictest's")]
fn fits<D: Database>(actual: &Vec<Kind>, expected: &Vec<Kind>) -> bool {
    let told: Vec<Kind> = expected.iter().map(|kind| D::told(*kind)).collect();
    Kind::fits(actual, &told)
}

/// Runs all records of a file. Reports all failures, not only the first.
fn check<D: Database + Send + 'static>(path: &Path, database: D) -> Result<(), Failed>
where
    Logic<D>: DB<ColumnType = Kind>,
{
    let mut runner = runner(database);
    let mut failures = Vec::new();
    let records = sqllogictest::parse_file(path)?;
    let count = records.len();
    for record in records {
        if let Some(sql) = order_missing(&record) {
            failures.push(format!("no ORDER BY and no rowsort, so the rows may come in any order: {sql}"));
        }
        if let Err(error) = runner.run(record) {
            failures.push(error.display(false).to_string());
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        failures => Err(format!("{} of {count} records failed\n\n{}", failures.len(), failures.join("\n\n")).into()),
    }
}

/// Writes the results into a file.
fn update<D: Database + Send + 'static>(path: &Path, database: D) -> Result<(), Failed>
where
    Logic<D>: DB<ColumnType = Kind>,
{
    let mut runner = runner(database);
    let updated = runner.update_test_file(path, " ", default_validator, default_normalizer, fits::<D>);
    futures::executor::block_on(updated).map_err(|error| Failed::from(error.to_string()))
}
