//! What else experiment Q shows: a large result takes no memory, and scans leave puts and gets alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::distribution::Operation;
use crate::error::{BenchError, Result};
use crate::experiment::fill;
use crate::experiment::report::{Must, Sample};
use crate::load::{Limit, Load, Pace, Workload};
use crate::process::{Usage, stolen};
use crate::requests::ValueShape;
use crate::server::Server;

use super::cases::Table;
use super::{COLUMNS, FILBERT, Format, Run, Side, sample};

/// Between two looks at a server's memory.
const LOOK: Duration = Duration::from_millis(5);

/// More than this a result of ten times the rows must not take. One page for each of a few cursors is far less.
const STREAM_MIB_MAX: f64 = 32.0;

const MIB: f64 = 1_048_576.0;

/// How often a window is taken that the host disturbs.
const ATTEMPTS: u32 = 4;
/// The part of the processors' time that the host may take of a window.
const STOLEN_MAX: f64 = 0.005;

const LOAD_MAP: &str = "q_load";
const LOAD_KEYS: u64 = 100_000;
const LOAD_CHARACTERS: usize = 100;
/// Calls per second while scans run: some percent of what a core can do, so that a server has time for both.
const LOAD_RATE: f64 = 2_000.0;
const LOAD_CONNECTIONS: usize = 4;
const LOAD_DEPTH: usize = 256;

/// Some seconds of gets or puts.
struct Window {
    sample: Sample,
    /// How long it was.
    seconds: f64,
    /// How much of the processors' time the host gave to others meanwhile.
    stolen: Option<Duration>,
}

impl Window {
    /// Whether the host took so much of the processors' time that the slowest calls tell of nothing else.
    fn is_disturbed(&self) -> bool {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.stolen.is_some_and(|stolen| stolen.as_secs_f64() > STOLEN_MAX * self.seconds * processors as f64)
    }
}

impl Run {
    /// Reads every row of a small and of a large map through SQL, with the server's memory looked at meanwhile. An
    /// allocator returns memory when it likes; what a result takes shows in how much the two differ.
    pub(super) fn stream(&mut self, format: Format, sides: &mut [Side]) -> Result<()> {
        let mut growth = Vec::new();
        for round in 1..=self.size.rounds {
            for side in sides.iter_mut() {
                let small = self.read_all(format, Table::Select, round, side)?;
                let large = self.read_all(format, Table::Scan, round, side)?;
                if let Some((small, large)) = small.zip(large).filter(|_| side.name() == FILBERT) {
                    growth.push((large as f64 - small as f64) / MIB);
                }
            }
            self.bar.inc(1);
        }
        let claim = "one result of ten times the rows: MiB that the server's peak grows";
        self.report.verdict(claim, &growth, Must::AtMost, STREAM_MIB_MAX);
        Ok(())
    }

    /// Reads a map as one result; the most memory meanwhile, in bytes, unless it was refused.
    fn read_all(&mut self, format: Format, table: Table, round: u32, side: &mut Side) -> Result<Option<u64>> {
        let (target, map, rows) = (side.name(), table.map(format), self.size.entries(table));
        let case = format!("{}, rows of one result of {rows}", format.name());
        self.bar.set_message(format!("round {round}: {case}, {target}"));
        let before = side.server.usage()?;
        let command = format!("closed sql-select {map} {rows} 1 1 0");
        let (answer, peak) = watched(side.server.pid(), || self.tell(side, &case, &command))?;
        let Some(mut answer) = answer? else { return Ok(None) };
        let after = side.server.usage()?;
        answer.calls = rows;
        answer.latency = None;
        self.report.samples.push(sample("sql", &case, &target, round, &answer, Some((before, after))));
        self.report.notes.push(format!(
            "{case}, {target}, round {round}: resident {:.1} MiB before, {:.1} at most meanwhile, {:.1} after",
            before.resident_bytes as f64 / MIB,
            peak as f64 / MIB,
            after.resident_bytes as f64 / MIB
        ));
        Ok(Some(peak))
    }

    /// Gets and puts at a fixed rate, quiet and while sums run back to back.
    pub(super) fn interference(&mut self, format: Format, sides: &mut [Side]) -> Result<()> {
        let shape = ValueShape::Text(LOAD_CHARACTERS);
        for side in sides.iter() {
            fill(&side.server, Workload::load(LOAD_MAP, LOAD_KEYS, shape))?;
        }
        for round in 1..=self.size.beside_rounds {
            for operation in [Operation::Get, Operation::Put] {
                for side in sides.iter_mut() {
                    let name = side.name();
                    self.bar.set_message(format!("round {round}: {} beside scans, {name}", operation.name()));
                    self.undisturbed(|run| run.load(&side.server, operation, round, "quiet", &name).map(Some))?;
                    self.undisturbed(|run| run.beside_scans(format, Table::Scan, operation, round, side, &name))?;
                    if name == FILBERT {
                        // Under the server's own name, so that it is compared with the same quiet figure.
                        self.undisturbed(|run| {
                            run.beside_scans(format, Table::Columns, operation, round, side, COLUMNS)
                        })?;
                    }
                }
            }
            self.bar.inc(1);
        }
        Ok(())
    }

    /// Takes a window, and takes it again if the host has disturbed it; the last one counts.
    fn undisturbed(&mut self, mut take: impl FnMut(&mut Run) -> Result<Option<Window>>) -> Result<()> {
        for attempt in 1..=ATTEMPTS {
            let Some(window) = take(self)? else { return Ok(()) };
            if attempt == ATTEMPTS || !window.is_disturbed() {
                self.keep(window);
                break;
            }
        }
        Ok(())
    }

    /// Reports a window, and how much the host has disturbed it.
    fn keep(&mut self, window: Window) {
        let Window { sample, stolen, .. } = window;
        if let Some(stolen) = stolen {
            self.report.notes.push(format!(
                "round {}, {}, {}: the host took {} ms of the processors' time",
                sample.round,
                sample.case,
                sample.target,
                stolen.as_millis()
            ));
        }
        self.report.samples.push(sample);
    }

    fn load(&self, server: &Server, operation: Operation, round: u32, state: &str, target: &str) -> Result<Window> {
        let workload = Workload {
            connections: LOAD_CONNECTIONS,
            depth: LOAD_DEPTH,
            pace: Pace::Rate(LOAD_RATE),
            seed: self.seed,
            server_pid: Some(server.pid()),
            ..Workload::new(LOAD_MAP, operation, LOAD_KEYS, ValueShape::Text(LOAD_CHARACTERS))
        };
        let mut load = Load::connect(server.target(), workload)?;
        let warm = load.run(0, Limit::Time(Duration::from_secs_f64(self.size.fixed / 3.0)))?;
        let seconds = self.size.fixed * 2.0;
        let stolen_before = stolen();
        let report = load.run(warm.operations, Limit::Time(Duration::from_secs_f64(seconds)))?;
        let stolen = stolen().zip(stolen_before).map(|(after, before)| after.saturating_sub(before));
        let mut sample = Sample::of("native", &format!("{}, {state}", operation.name()), round, &report);
        sample.target = target.to_owned();
        Ok(Window { sample, seconds, stolen })
    }

    /// The load while the Java client sums a table over and over; `None` when it cannot.
    fn beside_scans(
        &mut self,
        format: Format,
        table: Table,
        operation: Operation,
        round: u32,
        side: &mut Side,
        target: &str,
    ) -> Result<Option<Window>> {
        let state = if table == Table::Columns { "beside scans of columns" } else { "beside scans of rows" };
        // Somewhat longer than the load with its warm-up.
        let seconds = self.size.fixed * 2.8;
        let (map, entries) = (table.map(format), self.size.entries(table));
        let command = format!("closed sql-sum {map} {entries} 1 10000000 {seconds}");
        let (server, driver) = (&side.server, &mut side.driver);
        let (window, scans) = std::thread::scope(|scope| {
            let scans = scope.spawn(move || driver.command(&command));
            std::thread::sleep(Duration::from_secs_f64(self.size.fixed / 5.0));
            let window = self.load(server, operation, round, state, if target == COLUMNS { FILBERT } else { target });
            (window, scans.join())
        });
        let ended = || BenchError::Setting("the thread that runs scans ended early".to_owned());
        match scans.map_err(|_| ended())? {
            Ok(answer) => {
                if let Some(latency) = answer.latency {
                    let calls = answer.calls;
                    self.report.notes.push(format!(
                        "round {round}, {}, {state}, {target}: {calls} scans, p50 {:.2} ms",
                        operation.name(),
                        latency.p50_us / 1e3
                    ));
                }
                Ok(Some(window?))
            }
            Err(BenchError::Command { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Does something and returns with it the most memory that the process had resident meanwhile, in bytes.
fn watched<T>(pid: u32, work: impl FnOnce() -> T) -> Result<(T, u64)> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = Usage::of(pid)?.resident_bytes.max(peak);
                std::thread::sleep(LOOK);
            }
            Ok(peak)
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        let ended = || BenchError::Setting("the thread that watches a server's memory ended early".to_owned());
        let peak = watcher.join().map_err(|_| ended())??;
        Ok((result, peak))
    })
}
