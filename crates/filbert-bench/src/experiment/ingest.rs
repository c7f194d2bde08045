//! Experiment C, the ingest game: `crash` creates a table, `cr8 insert-fake-data` fills it over
//! HTTP in several runs, and queries read it. Then our own bulk loader, which is not limited by
//! Python, inserts rows of the same kind.
//!
//! After each run all acknowledged rows are counted immediately, without a refresh. A query for a
//! prefix of a name runs twice. The first run must be as fast as the second, because there is no
//! cache to warm up.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use indicatif::ProgressBar;

use crate::error::{BenchError, Result};
use crate::http::Endpoint;
use crate::java::bench_directory;
use crate::process::{Usage, UsagePerOperation};
use crate::python;
use crate::server::{Server, find_filbert};

use super::report::{Must, Report, Sample, grouped};
use super::{Options, progress};

mod loader;

const FILBERT: &str = "filbert";
const CR8: &str = "cr8";
const OWN: &str = "own loader";

/// The number of rows per request, for both loaders. It is the default of cr8.
const BULK_ROWS: u64 = 1_000;
/// The number of concurrent requests of cr8, its default.
const CONCURRENCY: u32 = 25;
/// The number of repetitions of each query after the first two.
const QUERY_ROUNDS: u32 = 10;

const CREATE: &str = "CREATE TABLE users (id STRING PRIMARY KEY, name STRING, email STRING, city STRING, age INTEGER) \
                      CLUSTERED INTO 3 SHARDS WITH (number_of_replicas = 0, refresh_interval = 0)";

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Size {
    runs: u32,
    rows: u64,
}

impl Size {
    fn of(options: &Options) -> Size {
        let scale = options.scale.unwrap_or(if options.quick { 0.02 } else { 1.0 });
        let rows = ((1_000_000.0 * scale).round() as u64).max(BULK_ROWS);
        Size { runs: options.rounds.unwrap_or(if options.quick { 2 } else { 7 }).max(1), rows }
    }
}

/// The state of a run.
struct Run {
    size: Size,
    server: Server,
    endpoint: Endpoint,
    report: Report,
    bar: ProgressBar,
}

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    let size = Size::of(options);
    let results = options.results()?;
    let requirements = bench_directory("crate", "requirements.txt")?.join("requirements.txt");
    let tools = python::environment(&results.join("crate-python"), &requirements)?;
    let (server, http) = Server::filbert_with_http(&find_filbert(options.filbert.as_deref())?, results)?;
    let settings = [
        ("rows", format!("{} in each of {} runs", grouped(size.rows as f64), size.runs)),
        (
            "requests",
            format!("{BULK_ROWS} rows each; cr8 has {CONCURRENCY} under way, our loader one on each of 2 connections"),
        ),
        ("seed", options.seed.to_string()),
        ("quick", options.quick.to_string()),
    ];
    let bar = progress(u64::from(size.runs) * 2 + 2);
    let mut run = Run { size, server, endpoint: Endpoint::new(http), report: Report::new("c", &settings), bar };
    run.make_table(&tools, http)?;
    for round in 1..=size.runs {
        run.cr8(&tools, http, round)?;
    }
    run.queries("users")?;
    run.endpoint.sql(&CREATE.replacen("users", "loaded", 1))?;
    for round in 1..=size.runs {
        run.own(options.seed, round)?;
    }
    run.queries("loaded")?;
    run.bar.finish_and_clear();
    Ok(run.judged())
}

impl Run {
    /// Creates the table with CrateDB's shell.
    fn make_table(&mut self, tools: &Path, http: SocketAddr) -> Result<()> {
        let mut crash = Command::new(tools.join("crash"));
        crash.args(["--hosts", &format!("http://{http}"), "--command", CREATE]);
        python::run(&mut crash).map(drop)
    }

    fn cr8(&mut self, tools: &Path, http: SocketAddr, round: u32) -> Result<()> {
        self.bar.set_message(format!("cr8, run {round}"));
        let mut cr8 = Command::new(tools.join("cr8"));
        cr8.args(["insert-fake-data", "--hosts", &http.to_string(), "--table", "doc.users"]);
        cr8.args(["--num-records", &self.size.rows.to_string(), "--bulk-size", &BULK_ROWS.to_string()]);
        cr8.args(["--concurrency", &CONCURRENCY.to_string()]);
        let before = self.server.usage()?;
        let begun = Instant::now();
        python::run(&mut cr8)?;
        self.ran(CR8, "users", round, begun.elapsed().as_secs_f64(), before)
    }

    fn own(&mut self, seed: u64, round: u32) -> Result<()> {
        self.bar.set_message(format!("our loader, run {round}"));
        let rows = loader::Rows { seed, first: u64::from(round - 1) * self.size.rows, count: self.size.rows };
        let bodies = loader::bodies("loaded", &rows, BULK_ROWS);
        let before = self.server.usage()?;
        let seconds = loader::send(&self.endpoint, bodies)?;
        self.ran(OWN, "loaded", round, seconds, before)
    }

    /// Counts the rows immediately and records the figures of a run.
    fn ran(&mut self, driver: &str, table: &str, round: u32, seconds: f64, before: Usage) -> Result<()> {
        let used = UsagePerOperation::between(&before, &self.server.usage()?, self.size.rows);
        let expected = u64::from(round) * self.size.rows;
        self.expect(&format!("SELECT count(*) FROM {table}"), expected)?;
        self.report.samples.push(Sample {
            driver: driver.to_owned(),
            case: "insert, one row".to_owned(),
            target: FILBERT.to_owned(),
            round,
            operations: self.size.rows,
            seconds,
            latency: None,
            server_cpu_us: Some(used.cpu_us()),
            resident_bytes: Some(used.resident_bytes),
        });
        self.bar.inc(1);
        Ok(())
    }

    /// Runs the query for a prefix of a name repeatedly, as a count, and once with its rows.
    fn queries(&mut self, table: &str) -> Result<()> {
        self.bar.set_message(format!("queries on {table}"));
        let text = format!("SELECT count(*) FROM {table} WHERE name LIKE 'Dr. Paul%'");
        let mut seconds = Vec::new();
        let mut counts = Vec::new();
        for _ in 0..2 + QUERY_ROUNDS {
            let begun = Instant::now();
            counts.push(self.endpoint.count(&text)?);
            seconds.push(begun.elapsed().as_secs_f64());
        }
        if counts.windows(2).any(|pair| pair.first() != pair.last()) {
            return Err(self.wrong(format!("{text} answered {counts:?}, expected the same each time")));
        }
        let rows = self.endpoint.rows(&format!("SELECT name FROM {table} WHERE name LIKE 'Dr. Paul%'"))?;
        if Some(&rows) != counts.first() {
            return Err(self.wrong(format!("{rows} rows of {table} begin with 'Dr. Paul', the count was {counts:?}")));
        }
        let total = u64::from(self.size.runs) * self.size.rows;
        self.expect(&format!("SELECT count(DISTINCT id) FROM {table}"), total)?;
        for (round, seconds) in (1..).zip(&seconds) {
            let case = match round {
                1 => "LIKE, the first time",
                2 => "LIKE, the second time",
                _ => "LIKE, later",
            };
            self.report.samples.push(Sample {
                driver: format!("{table}, {} rows", grouped(total as f64)),
                case: case.to_owned(),
                target: FILBERT.to_owned(),
                round: if round <= 2 { 1 } else { round - 2 },
                operations: 1,
                seconds: *seconds,
                latency: None,
                server_cpu_us: None,
                resident_bytes: None,
            });
        }
        if let [first, second, ..] = seconds.as_slice() {
            let claim = format!(
                "{table}: the first LIKE takes no longer than the second (times, 1.5 for the plan of a new text)"
            );
            self.report.verdict(&claim, &[first / second.max(1e-9)], Must::AtMost, 1.5);
        }
        self.bar.inc(1);
        Ok(())
    }

    fn expect(&self, query: &str, expected: u64) -> Result<()> {
        match self.endpoint.count(query)? {
            found if found == expected => Ok(()),
            found => Err(self.wrong(format!("{query} answered {found}, expected {expected}"))),
        }
    }

    fn wrong(&self, what: String) -> BenchError {
        BenchError::Wrong { target: FILBERT.to_owned(), what }
    }

    fn judged(mut self) -> Report {
        let rates = |driver: &str| -> Vec<f64> {
            let of_driver = self.report.samples.iter().filter(|sample| sample.driver == driver);
            of_driver.map(Sample::rate).collect()
        };
        // The best published run, on three nodes.
        const PUBLISHED_ROWS_PER_SECOND: f64 = 1_000_000.0 / 18.0;
        let own: Vec<f64> = rates(OWN).iter().map(|rate| rate / PUBLISHED_ROWS_PER_SECOND).collect();
        let cr8: Vec<f64> = rates(CR8).iter().map(|rate| rate / PUBLISHED_ROWS_PER_SECOND).collect();
        self.report.summarize();
        self.report.verdict(
            "rows/s of our loader, times the best published run of CrateDB's",
            &own,
            Must::AtLeast,
            10.0,
        );
        let claim = "rows/s of cr8, bound by Python, times the best published run of CrateDB's";
        self.report.verdict(claim, &cr8, Must::AtLeast, 0.1);
        self.report
    }
}
