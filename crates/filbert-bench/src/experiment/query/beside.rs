//! Further claims of experiment Q: a large result needs no memory, and scans do not disturb puts
//! and gets.

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

/// The interval between readings of a server's memory.
const LOOK: Duration = Duration::from_millis(5);

/// The maximum memory growth for a result with ten times the rows. One page for each of a few
/// cursors is far less.
const STREAM_MIB_MAX: f64 = 32.0;

const MIB: f64 = 1_048_576.0;

/// The maximum number of attempts to take a window that the host does not disturb.
const ATTEMPTS: u32 = 4;
/// The maximum fraction of the processor time that the host may steal during a window.
const STOLEN_MAX: f64 = 0.005;

const LOAD_MAP: &str = "q_load";
const LOAD_KEYS: u64 = 100_000;
const LOAD_CHARACTERS: usize = 100;
/// The calls per second during scans: some percent of the capacity of a core, so that a server has
/// time for both.
const LOAD_RATE: f64 = 2_000.0;
const LOAD_CONNECTIONS: usize = 4;
const LOAD_DEPTH: usize = 256;

/// A measurement of some seconds of gets or puts.
struct Window {
    sample: Sample,
    /// The duration of the window.
    seconds: f64,
    /// The processor time that the host gave to other guests during the window.
    stolen: Option<Duration>,
}

impl Window {
    /// Whether the host took so much processor time that it determines the slowest calls.
    fn is_disturbed(&self) -> bool {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.stolen.is_some_and(|stolen| stolen.as_secs_f64() > STOLEN_MAX * self.seconds * processors as f64)
    }
}

impl Run {
    /// Reads every row of a small and of a large map through SQL, and observes the memory of the
    /// server. An allocator may keep freed memory, so the verdict uses the difference between the
    /// two peaks.
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

    /// Reads a map as one result. Returns the peak memory in bytes, or `None` if the query was
    /// rejected.
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

    /// Makes gets and puts at a fixed rate, without other load and during repeated sums.
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
                        // The target has the server's own name, so that it is compared with the
                        // same quiet figure.
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

    /// Takes a window. If the host disturbed it, takes another one. The last window counts.
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

    /// Reports a window and its disturbance by the host.
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

    /// Runs the load while the Java client repeatedly sums a table. Returns `None` if the client
    /// cannot do so.
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
        // Slightly longer than the load with its warm-up.
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

/// Runs `work`. Returns its result with the peak resident memory of the process, in bytes.
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
