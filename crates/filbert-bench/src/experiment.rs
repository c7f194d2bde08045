//! The experiments: servers, workloads, their order, and the conclusions.
//!
//! All experiments follow one pattern: start the servers, load them, measure them in turn (A B C, A
//! B C, ...), check every result, and report medians over the rounds and ratios within each round.
//! So a temporary slowdown of the machine affects all servers alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{BenchError, Result};
use crate::load::{Load, Workload};
use crate::server::Server;
use crate::session::Session;

pub mod cluster;
pub mod ingest;
pub mod memory;
pub mod pipelining;
pub mod put_set;
pub mod query;
pub mod rebalance;
pub mod report;

use report::Report;

/// The heap of a measured Hazelcast member. It is several times larger than any workload here, so
/// that garbage collection is cheap.
const MEMBER_HEAP_BYTES: u64 = 2 << 30;

/// The heap of a Java driver.
const DRIVER_HEAP_BYTES: u64 = 1 << 30;

/// The options of an experiment.
#[derive(Debug, Clone)]
pub struct Options {
    /// A tenth of the work or less: a functional test; its figures mean little.
    pub quick: bool,
    /// The output directory.
    pub results: PathBuf,
    /// The `filbert` program. `None`: next to the running executable.
    pub filbert: Option<PathBuf>,
    /// Skips everything that needs a JVM.
    pub no_java: bool,
    /// The number of members of the Hazelcast cluster that experiment S measures next to a single
    /// member, and of the clusters of experiment cluster. 1 means no cluster in experiment S, and
    /// three members in experiment cluster.
    pub members: usize,
    /// The number of rounds. `None`: the default of the experiment.
    pub rounds: Option<u32>,
    /// The fraction of the published number of entries (experiment Q). `None`: all entries, but
    /// only a tenth of the largest map.
    pub scale: Option<f64>,
    /// The value formats (experiment Q).
    pub formats: Vec<query::Format>,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Options {
    /// Returns the output directory. Creates it if necessary.
    fn results(&self) -> Result<&Path> {
        fs::create_dir_all(&self.results)
            .map_err(BenchError::io(format!("creating the directory {}", self.results.display())))?;
        Ok(&self.results)
    }

    /// The number of rounds.
    fn rounds(&self, full: u32) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { full }).max(1)
    }
}

/// The experiments, with their names on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Pipelining: gets one by one and at depth 5, 10 and 100.
    P,
    /// Put compared with set, embedded and through a client.
    S,
    /// Queries: SQL and predicates, in four formats.
    Q,
    /// The ingest game: bulk inserts over HTTP with cr8 and with our own loader, then queries.
    C,
    /// Resident memory per entry.
    Memory,
    /// Sets, gets and putAll on a cluster.
    Cluster,
    /// A member joins a serving cluster: time, bytes, memory, and latencies during the join.
    Rebalance,
}

/// Runs an experiment, writes its file and returns the report.
pub fn run(experiment: Experiment, options: &Options) -> Result<Report> {
    let report = match experiment {
        Experiment::P => pipelining::run(options)?,
        Experiment::S => put_set::run(options)?,
        Experiment::Q => query::run(options)?,
        Experiment::C => ingest::run(options)?,
        Experiment::Memory => memory::run(options)?,
        Experiment::Cluster => cluster::run(options)?,
        Experiment::Rebalance => rebalance::run(options)?,
    };
    report.write(options.results()?)?;
    Ok(report)
}

/// A progress bar over the steps of an experiment.
fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg} (eta {eta})") {
        bar.set_style(style);
    }
    // The elapsed time must advance during long steps too.
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Sets every key of a map once, then checks the number of entries.
fn fill(server: &Server, workload: Workload) -> Result<()> {
    let (map, keys) = (workload.map.clone(), workload.keys);
    Load::connect(server.target(), workload)?.run(0, crate::load::Limit::Operations(keys))?;
    expect_size(server, &map, keys)
}

/// Checks the number of entries of a map.
fn expect_size(server: &Server, map: &str, entries: u64) -> Result<()> {
    let found = Session::open(server.target())?.map_size(map)?;
    if found == entries {
        return Ok(());
    }
    Err(BenchError::Wrong {
        target: server.target().name.clone(),
        what: format!("map {map} has {found} entries, expected {entries}"),
    })
}
