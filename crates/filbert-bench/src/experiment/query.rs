//! Experiment Q: SQL and predicates over maps of four formats, compared with Hazelcast; column
//! scans compared with DuckDB; a result of a million rows; puts and gets during scans.
//!
//! For one format after the other, the maps are filled on both servers, measured in turn and
//! removed. The Java client runs all queries and compares every result with the loaded data. So
//! both servers return the same results, or the run ends. If a server rejects a query, the report
//! names the query and a verdict fails.

use std::collections::{BTreeMap, BTreeSet};

use indicatif::ProgressBar;

use crate::duckdb;
use crate::error::{BenchError, Result};
use crate::java::{Answer, Driver, JavaProject};
use crate::process::{Usage, UsagePerOperation};
use crate::server::{Server, find_filbert};

use super::report::{Must, Report, Sample, grouped};
use super::{DRIVER_HEAP_BYTES, Options, progress};

mod beside;
mod cases;
mod verdicts;

pub use cases::Format;
use cases::{COLUMN_QUERIES, DUCKDB_QUERIES, QUERIES, Query, Table};

/// The names of the targets.
const FILBERT: &str = "filbert";
const COLUMNS: &str = "filbert columns";
const HAZELCAST: &str = "hazelcast";
const DUCKDB: &str = "duckdb";

/// The fraction of the 10,000,000 entries of the published lookup, if no scale is given. Loading
/// all of them would take most of the time.
const INDEX_SHARE: f64 = 0.1;

/// The heap of an empty Hazelcast member, and the heap per entry. By default a member stores the
/// position of each item of a JSON array, some 1,200 bytes per value here.
const HEAP_BYTES_MIN: u64 = 2 << 30;
const HEAP_BYTES_PER_ENTRY: u64 = 600;
const HEAP_BYTES_PER_JSON_ENTRY: u64 = 2_200;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Size {
    rounds: u32,
    /// The number of rounds of puts and gets during scans. The 99th percentile of a few seconds
    /// varies more than any median.
    beside_rounds: u32,
    select: u64,
    scan: u64,
    index: u64,
    /// The minimum duration of a closed loop, in seconds.
    closed: f64,
    /// The duration at a fixed rate, in seconds.
    fixed: f64,
}

impl Size {
    fn of(options: &Options) -> Result<Size> {
        let scale = options.scale.unwrap_or(if options.quick { 0.02 } else { 1.0 });
        if !(scale > 0.0 && scale <= 100.0) {
            return Err(BenchError::Setting(format!("--scale {scale}: expected more than 0 and at most 100")));
        }
        let entries = |published: f64| (published * scale).round().max(100.0) as u64;
        let share = if options.scale.is_some() { 1.0 } else { INDEX_SHARE };
        Ok(Size {
            rounds: options.rounds(2),
            beside_rounds: options.rounds(5),
            select: entries(100_000.0),
            scan: entries(1_000_000.0),
            index: entries(10_000_000.0 * share),
            closed: if options.quick { 0.1 } else { 0.7 },
            fixed: if options.quick { 0.3 } else { 1.5 },
        })
    }

    fn entries(&self, table: Table) -> u64 {
        match table {
            Table::Select => self.select,
            Table::Scan | Table::Columns => self.scan,
            Table::Index => self.index,
        }
    }

    /// Fixed rates are measured only in every second round: they take the most time and vary the
    /// least.
    fn is_fixed_round(&self, round: u32) -> bool {
        round % 2 == 1
    }
}

/// A server, with the Java client that queries it.
#[derive(Debug)]
struct Side {
    server: Server,
    driver: Driver,
}

impl Side {
    fn start(java: &JavaProject, server: Server, options: &Options) -> Result<Side> {
        let target = server.target();
        let arguments = [target.address.to_string(), target.cluster.clone(), target.name.clone()];
        let name = format!("the Java client of {}", target.name);
        let log = options.results()?.join(format!("java-client-{}.log", target.name));
        let driver = java.driver(&name, "filbert.bench.QueryDriver", &arguments, DRIVER_HEAP_BYTES, &log)?;
        Ok(Side { server, driver })
    }

    fn name(&self) -> String {
        self.server.target().name.clone()
    }
}

/// The state of a run.
#[derive(Debug)]
struct Run {
    size: Size,
    seed: u64,
    report: Report,
    bar: ProgressBar,
    /// Rejected commands, by server. They are not repeated.
    refused: BTreeSet<(String, String)>,
    /// The rejected queries, by server and reason.
    reasons: BTreeMap<(String, String), Vec<String>>,
}

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    if options.no_java {
        return Err(BenchError::Setting(
            "experiment q is driven by the Java client, --no-java leaves nothing".to_owned(),
        ));
    }
    let size = Size::of(options)?;
    let results = options.results()?;
    let java = JavaProject::build()?;
    let json = options.formats.contains(&Format::Json);
    let heap_per_entry = if json { HEAP_BYTES_PER_JSON_ENTRY } else { HEAP_BYTES_PER_ENTRY };
    let heap = HEAP_BYTES_MIN + heap_per_entry * (size.select + size.scan + size.index);
    let mut sides =
        vec![Side::start(&java, Server::filbert(&find_filbert(options.filbert.as_deref())?, results)?, options)?];
    sides.push(Side::start(&java, Server::hazelcast_sql(&java, heap, results)?, options)?);
    let mut duckdb = duckdb::driver(&results.join("duckdb-python"), &results.join("duckdb.log"))?;
    duckdb.command(&format!("load {}", size.scan))?;

    let mut run = Run {
        size,
        seed: options.seed,
        report: Report::new("q", &settings(options, size, heap)),
        bar: progress(steps(options, size)),
        refused: BTreeSet::new(),
        reasons: BTreeMap::new(),
    };
    for (index, format) in options.formats.iter().enumerate() {
        run.format(*format, &mut sides, &mut duckdb)?;
        if index == 0 {
            run.stream(*format, &mut sides)?;
            run.interference(*format, &mut sides)?;
        }
        for side in &mut sides {
            for table in [Table::Select, Table::Scan, Table::Index, Table::Columns] {
                side.driver.command(&format!("drop {}", table.map(*format))).or_else(refusal)?;
            }
        }
    }
    run.bar.finish_and_clear();
    let refused = run.refused.len() as f64;
    let mut report = run.report;
    for ((target, why), what) in run.reasons {
        report.notes.push(format!("REFUSED by {target}: {}: {why}", what.join("; ")));
    }
    report.summarize();
    verdicts::judge(&mut report, &options.formats);
    report.verdict("queries that a server refused", &[refused], Must::AtMost, 0.0);
    Ok(report)
}

fn settings(options: &Options, size: Size, heap: u64) -> Vec<(&'static str, String)> {
    let formats: Vec<&str> = options.formats.iter().map(|format| format.name()).collect();
    vec![
        (
            "entries",
            format!(
                "{} read as a whole, {} scanned, {} with an index",
                grouped(size.select as f64),
                grouped(size.scan as f64),
                grouped(size.index as f64)
            ),
        ),
        ("values", "a long, a text of 6 or 7 (32 different ones), int[20]".to_owned()),
        ("formats", formats.join(", ")),
        ("rounds", format!("{}, beside scans {}", size.rounds, size.beside_rounds)),
        ("seconds", format!("{} closed loop, {} at a fixed rate", size.closed, size.fixed)),
        ("hazelcast heap", format!("{} MiB", heap >> 20)),
        ("duckdb", "2 threads, a table in memory, prepared statements, within its own process".to_owned()),
        ("seed", options.seed.to_string()),
        ("quick", options.quick.to_string()),
    ]
}

fn steps(options: &Options, size: Size) -> u64 {
    let per_format = 2 + u64::from(size.rounds) * (QUERIES.len() as u64 + 1);
    per_format * options.formats.len() as u64 + u64::from(size.rounds) + u64::from(size.beside_rounds)
}

/// A rejected command does not end the run. All other errors do.
fn refusal(error: BenchError) -> Result<Answer> {
    match error {
        BenchError::Command { .. } => Ok(Answer::default()),
        error => Err(error),
    }
}

impl Run {
    /// Fills the maps of a format, then measures the format in all rounds.
    fn format(&mut self, format: Format, sides: &mut [Side], duckdb: &mut Driver) -> Result<()> {
        for side in sides.iter_mut() {
            self.bar.set_message(format!("{}: filling {}", format.name(), side.name()));
            self.fill(format, side)?;
            self.warm_up(format, side)?;
            self.bar.inc(1);
        }
        for round in 1..=self.size.rounds {
            for query in QUERIES.iter().filter(|query| query.is_for(format)) {
                for side in sides.iter_mut() {
                    self.closed(format, query, round, side)?;
                }
                for side in sides.iter_mut() {
                    self.fixed(format, query, round, side)?;
                }
                self.bar.inc(1);
            }
            self.bar.set_message(format!("{}, round {round}: columns", format.name()));
            for query in &COLUMN_QUERIES {
                for side in sides.iter_mut().filter(|side| side.name() == FILBERT) {
                    self.closed(format, query, round, side)?;
                }
            }
            for (word, name) in DUCKDB_QUERIES {
                let answer = duckdb.command(&format!("closed {word} 5 {}", self.size.closed))?;
                let case = format!("{}, {name}", format.name());
                self.report.samples.push(sample("sql", &case, DUCKDB, round, &answer, None));
            }
            self.bar.inc(1);
        }
        Ok(())
    }

    fn fill(&mut self, format: Format, side: &mut Side) -> Result<()> {
        let columns = (side.name() == FILBERT).then_some(Table::Columns);
        for table in [Table::Select, Table::Scan, Table::Index].into_iter().chain(columns) {
            let (name, map) = (format.name(), table.map(format));
            let form = if table == Table::Columns { "columns" } else { "rows" };
            let entries = self.size.entries(table);
            self.tell(side, &format!("mapping of {map}"), &format!("mapping {name} {map} {form}"))?;
            // Loading must succeed: without its entries no result of a map can be right.
            let loaded = side.driver.command(&format!("load {name} {map} {entries}"))?;
            // Tables of the same form differ only in size.
            if matches!(table, Table::Scan | Table::Columns) {
                let case = format!("{name}, fill by putAll, {form}");
                self.report.samples.push(sample("map", &case, &side.name(), 1, &loaded, None));
            }
            if table == Table::Index {
                self.tell(side, &format!("index of {map}"), &format!("index {map}"))?;
            }
        }
        Ok(())
    }

    /// Runs every query several times, because a JVM compiles frequently executed code.
    fn warm_up(&mut self, format: Format, side: &mut Side) -> Result<()> {
        let columns = if side.name() == FILBERT { &COLUMN_QUERIES[..] } else { &[] };
        for query in QUERIES.iter().chain(columns).filter(|query| query.is_for(format)) {
            let seconds = self.size.closed * if query.table == Table::Index { 2.0 } else { 0.3 };
            let command = self.closed_command(format, query, 1, seconds);
            side.driver.command(&command).or_else(refusal)?;
        }
        Ok(())
    }

    fn closed_command(&self, format: Format, query: &Query, calls_min: u32, seconds: f64) -> String {
        let (map, entries) = (query.table.map(format), self.size.entries(query.table));
        format!("closed {} {map} {entries} {calls_min} 10000000 {seconds}", query.word)
    }

    fn closed(&mut self, format: Format, query: &Query, round: u32, side: &mut Side) -> Result<()> {
        let case = query.case(format);
        let command = self.closed_command(format, query, 2, self.size.closed);
        self.ask(query, round, side, case, &command)
    }

    fn fixed(&mut self, format: Format, query: &Query, round: u32, side: &mut Side) -> Result<()> {
        let Some(rate) = query.rate.filter(|_| self.size.is_fixed_round(round)) else { return Ok(()) };
        let (map, entries) = (query.table.map(format), self.size.entries(query.table));
        let command = format!("fixed {} {map} {entries} {rate} {} {}", query.word, self.size.fixed, query.threads);
        self.ask(query, round, side, query.case_at(format, rate), &command)
    }

    /// Makes one measurement, unless the query was rejected before.
    fn ask(&mut self, query: &Query, round: u32, side: &mut Side, case: String, command: &str) -> Result<()> {
        let target = if query.table == Table::Columns { COLUMNS.to_owned() } else { side.name() };
        let driver = query.driver();
        self.bar.set_message(format!("round {round}: {driver}, {case}, {target}"));
        let before = side.server.usage()?;
        if let Some(answer) = self.tell(side, &format!("{driver} {case}"), command)? {
            let used = Some((before, side.server.usage()?));
            self.report.samples.push(sample(driver, &case, &target, round, &answer, used));
        }
        Ok(())
    }

    /// Sends a command. Returns `None` if it is or was rejected. A rejection is recorded once.
    fn tell(&mut self, side: &mut Side, what: &str, command: &str) -> Result<Option<Answer>> {
        let key = (side.name(), command.to_owned());
        if self.refused.contains(&key) {
            return Ok(None);
        }
        match side.driver.command(command) {
            Ok(answer) => Ok(Some(answer)),
            Err(BenchError::Command { what: why, .. }) => {
                let why: String = why.chars().take(300).collect();
                self.reasons.entry((side.name(), why)).or_default().push(what.to_owned());
                self.refused.insert(key);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn sample(driver: &str, case: &str, target: &str, round: u32, answer: &Answer, used: Option<(Usage, Usage)>) -> Sample {
    let used = used.map(|(before, after)| UsagePerOperation::between(&before, &after, answer.calls));
    Sample {
        driver: driver.to_owned(),
        case: case.to_owned(),
        target: target.to_owned(),
        round,
        operations: answer.calls,
        seconds: answer.elapsed().as_secs_f64(),
        latency: answer.latency,
        server_cpu_us: used.map(|used| used.cpu_us()),
        resident_bytes: used.map(|used| used.resident_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(quick: bool, scale: Option<f64>) -> Result<Size> {
        Size::of(&Options {
            quick,
            results: "results".into(),
            filbert: None,
            no_java: false,
            members: 1,
            rounds: None,
            scale,
            formats: Format::ALL.to_vec(),
            seed: 1,
        })
    }

    #[test]
    fn a_scale_of_one_gives_the_published_sizes() {
        let entries = |size: Size| [size.select, size.scan, size.index];
        assert_eq!(entries(size(false, Some(1.0)).unwrap()), [100_000, 1_000_000, 10_000_000]);
        assert_eq!(entries(size(false, None).unwrap()), [100_000, 1_000_000, 1_000_000]);
        assert_eq!(entries(size(true, None).unwrap()), [2_000, 20_000, 20_000]);
    }

    #[test]
    fn a_scale_that_is_no_size_is_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(size(false, Some(scale)).is_err(), "{scale}");
        }
    }

    #[test]
    fn queries_of_one_driver_have_names_of_their_own() {
        for queries in [&QUERIES[..], &COLUMN_QUERIES[..]] {
            let names: BTreeSet<(&str, String)> =
                queries.iter().map(|query| (query.driver(), query.case(Format::Json))).collect();
            assert_eq!(names.len(), queries.len());
        }
    }
}
