//! Experiment rebalance: a member joins a serving cluster.
//!
//! Three members hold the entries and serve gets and sets at a fixed rate. Each member receives a
//! part of the calls, regardless of the leader of the key, as from a client that knows only one
//! member. The latency of a call starts at its due time, so a pause affects all calls that it
//! delays. Then a fourth member joins, and the same calls continue until every member holds its
//! share of the groups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::distribution::Operation;
use crate::error::{BenchError, Result};
use crate::latency::Latencies;
use crate::load::{Limit, Load, Pace, Workload};
use crate::requests::ValueShape;
use crate::server::find_filbert;
use crate::session::Session;

use super::report::{Case, Must, Report, Sample, figure};
use super::{Options, progress};

const MAP: &str = "bench-rebalance";
const ENTRIES: u64 = 1_000_000;
const VALUE_CHARACTERS: usize = 500;
const MEMBERS: usize = 3;
const DRIVER: &str = "native";
/// The number of calls of each kind per second, over all members. It is a tenth or less of the
/// capacity of two processors, so that the latencies show delays and not an existing queue.
const RATE: f64 = 600.0;
/// The time for which a connection makes calls before it waits for their replies and checks whether
/// to continue.
const WINDOW: Duration = Duration::from_millis(500);
/// Every n-th read value is compared.
const CHECK_EVERY: u64 = 10;
const KINDS: [(Operation, &str); 2] = [(Operation::Get, "get"), (Operation::Set, "set")];
const QUIET: &str = "quiet";
const JOINING: &str = "a member joins";

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    let rounds = options.rounds(3);
    let entries = if options.quick { ENTRIES / 20 } else { ENTRIES };
    let quiet = Duration::from_secs(if options.quick { 2 } else { 15 });
    let mut report = Report::new(
        "rebalance",
        &[
            ("entries", entries.to_string()),
            ("value", format!("a text of {VALUE_CHARACTERS} characters")),
            ("members", format!("{MEMBERS}, and one that joins")),
            ("calls", format!("{RATE} gets and {RATE} sets in a second")),
            ("rounds", rounds.to_string()),
            ("seed", options.seed.to_string()),
            ("quick", options.quick.to_string()),
        ],
    );
    report.notes.push("memory is that of the members that were there before, all together".to_owned());
    let bar = progress(u64::from(rounds) * 3);
    let mut memory = Vec::new();
    for round in 1..=rounds {
        bar.set_message(format!("round {round}: loading"));
        let mut cluster = Cluster::start(&find_filbert(options.filbert.as_deref())?, MEMBERS, options.results()?)?;
        load(&cluster, entries, options.seed)?;
        let mut traffic = Traffic::connect(&cluster, entries, options.seed)?;
        // Before the measurement the logs must be full, so that the members' memory is stable.
        traffic.during(|| wait(quiet / 3))?;
        bar.inc(1);
        bar.set_message(format!("round {round}: {QUIET}"));
        let (calls, memory_quiet) = cluster.peak_while(|_| traffic.during(|| wait(quiet)))?;
        report.samples.extend(calls.samples(QUIET, &cluster, round, memory_quiet));
        bar.inc(1);
        bar.set_message(format!("round {round}: {JOINING}"));
        let snapshots = "filbert_group_snapshot_received_bytes_total";
        let (before, begun) = (cluster.metric(snapshots)?, Instant::now());
        let mut served = Duration::ZERO;
        let (calls, memory_joining) = cluster.peak_while(|cluster| {
            traffic.during(|| {
                cluster.join()?;
                served = begun.elapsed();
                cluster.await_spread()
            })
        })?;
        report.samples.extend(calls.samples(JOINING, &cluster, round, memory_joining));
        let moved = (cluster.metric(snapshots)? - before) / 1e6;
        report.notes.push(format!(
            "round {round}: the member served after {:.2} s, had its share after {:.2} s; snapshots of {moved:.0} MB were received",
            served.as_secs_f64(),
            calls.elapsed.as_secs_f64()
        ));
        memory.push(memory_joining as f64 / memory_quiet.max(1) as f64);
        expect_all(&cluster, entries)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.summarize();
    let name = format!("filbert x {MEMBERS}");
    for (_, kind) in KINDS {
        let (joining, quiet) = (case(kind, JOINING), case(kind, QUIET));
        let case = Case { name: &joining, other_name: &quiet, ..Case::targets(DRIVER, &joining, &name, &name) };
        let claim = format!("{kind}: p99 while a member joins / quiet");
        report.judge(&claim, &case, figure::p99, Must::AtMost, 3.0);
    }
    report.verdict("most memory while a member joins / quiet", &memory, Must::AtMost, 1.15);
    Ok(report)
}

fn case(kind: &str, when: &str) -> String {
    format!("{kind}, {when}")
}

fn wait(time: Duration) -> Result<()> {
    std::thread::sleep(time);
    Ok(())
}

fn values() -> ValueShape {
    ValueShape::Text(VALUE_CHARACTERS)
}

fn load(cluster: &Cluster, entries: u64, seed: u64) -> Result<()> {
    let server = cluster.servers().next().ok_or_else(|| BenchError::Setting("a cluster without members".to_owned()))?;
    let workload = Workload { seed, ..Workload::load(MAP, entries, values()) };
    Load::connect(server.target(), workload)?.run(0, Limit::Operations(entries))?;
    expect_all(cluster, entries)
}

/// Checks that every member reports all entries.
fn expect_all(cluster: &Cluster, entries: u64) -> Result<()> {
    for server in cluster.servers() {
        let found = Session::open(server.target())?.map_size(MAP)?;
        if found != entries {
            let what = format!("map {MAP} has {found} entries, expected {entries}");
            return Err(BenchError::Wrong { target: server.target().name.clone(), what });
        }
    }
    Ok(())
}

/// Connections to each initial member, one for each kind of call.
struct Traffic {
    lanes: Vec<(usize, Load)>,
    /// The number of the next call of every connection.
    next: u64,
}

/// The measured calls of a period.
struct Taken {
    /// Latencies by the index in [`KINDS`].
    latencies: Vec<Latencies>,
    elapsed: Duration,
}

impl Traffic {
    fn connect(cluster: &Cluster, entries: u64, seed: u64) -> Result<Traffic> {
        let mut lanes = Vec::new();
        for server in cluster.servers() {
            for (kind, (operation, _)) in KINDS.into_iter().enumerate() {
                let workload = Workload {
                    pace: Pace::Rate(RATE / MEMBERS as f64),
                    depth: 10_000,
                    check_every: if matches!(operation, Operation::Get) { CHECK_EVERY } else { 0 },
                    seed,
                    ..Workload::new(MAP, operation, entries, values())
                };
                lanes.push((kind, Load::connect(server.target(), workload)?));
            }
        }
        Ok(Traffic { lanes, next: 0 })
    }

    /// Makes calls while `work` runs on this thread, until it returns. Every failed call is an
    /// error.
    fn during(&mut self, work: impl FnOnce() -> Result<()>) -> Result<Taken> {
        let (stop, first, begun) = (AtomicBool::new(false), self.next, Instant::now());
        let mut taken = Taken { latencies: vec![Latencies::new()?, Latencies::new()?], elapsed: Duration::ZERO };
        std::thread::scope(|scope| {
            let stop = &stop;
            let running: Vec<_> = self
                .lanes
                .iter_mut()
                .map(|(kind, lane)| (*kind, scope.spawn(move || calls_until(lane, first, stop))))
                .collect();
            let worked = work();
            taken.elapsed = begun.elapsed();
            stop.store(true, Ordering::Release);
            let ended = |_| BenchError::Setting("a thread of the generator ended early".to_owned());
            for (kind, lane) in running {
                let (latencies, next) = lane.join().map_err(ended)??;
                self.next = self.next.max(next);
                if let Some(all) = taken.latencies.get_mut(kind) {
                    all.add(&latencies)?;
                }
            }
            worked
        })?;
        Ok(taken)
    }
}

fn calls_until(lane: &mut Load, mut next: u64, stop: &AtomicBool) -> Result<(Latencies, u64)> {
    let mut latencies = Latencies::new()?;
    while !stop.load(Ordering::Acquire) {
        let done = lane.run(next, Limit::Time(WINDOW))?;
        latencies.add(&done.latencies)?;
        next += done.operations;
    }
    Ok((latencies, next))
}

impl Taken {
    fn samples(&self, when: &str, cluster: &Cluster, round: u32, resident_bytes: u64) -> Vec<Sample> {
        let of_kind = |((_, kind), latencies): ((Operation, &str), &Latencies)| Sample {
            driver: DRIVER.to_owned(),
            case: case(kind, when),
            target: cluster.name().to_owned(),
            round,
            operations: latencies.len(),
            seconds: self.elapsed.as_secs_f64(),
            latency: Some(latencies.summary()),
            server_cpu_us: None,
            resident_bytes: Some(resident_bytes),
        };
        KINDS.into_iter().zip(&self.latencies).map(of_kind).collect()
    }
}
