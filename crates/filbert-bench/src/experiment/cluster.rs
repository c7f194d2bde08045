//! Experiment cluster: set, get and putAll through our own client, on clusters of Filbert and of
//! Hazelcast, and on a single Filbert member.
//!
//! The client sends every call to the leader or owner of the partition. Filbert acknowledges a set
//! when a majority of three replicas has it, Hazelcast when the single backup has it.

use crate::cluster::Cluster;
use crate::error::{BenchError, Result};
use crate::java::JavaProject;
use crate::process::{Usage, UsagePerOperation};
use crate::rust_client::{Calls, Kind, RustClient};
use crate::server::{Server, find_filbert};

use super::report::{Case, Must, Report, Sample, figure};
use super::{Options, progress};

const MAP: &str = "bench-cluster";
const ENTRIES: u64 = 50_000;
const VALUE_CHARACTERS: usize = 500;
const DRIVER: &str = "filbert-client";
/// The default number of members of a cluster.
const MEMBERS: usize = 3;
/// The number of Hazelcast's backups of each entry, in addition to the owner's copy.
const BACKUPS: usize = 1;
/// The heap of each Hazelcast member. Its share of the data is some ten megabytes.
const MEMBER_HEAP_BYTES: u64 = 512 << 20;

/// The cases: name, kind of call, and concurrency.
const CASES: [(&str, Kind, Calls); 5] = [
    ("set, 8 callers", Kind::Set { characters: VALUE_CHARACTERS }, Calls::OneByOne { callers: 8 }),
    ("set, depth 100", Kind::Set { characters: VALUE_CHARACTERS }, Calls::Pipelined { depth: 100 }),
    ("get, 8 callers", Kind::Get, Calls::OneByOne { callers: 8 }),
    ("get, depth 100", Kind::Get, Calls::Pipelined { depth: 100 }),
    ("putAll of 1,000", Kind::PutAll { characters: VALUE_CHARACTERS, entries: 1_000 }, Calls::OneByOne { callers: 1 }),
];

/// Single servers, or a Filbert cluster.
enum Peer {
    Servers(Vec<Server>),
    Cluster(Cluster),
}

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    let rounds = options.rounds(5);
    let size = if options.members > 1 { options.members } else { MEMBERS };
    let seconds = if options.quick { 0.3 } else { 3.0 };
    let mut report = Report::new(
        "cluster",
        &[
            ("entries", ENTRIES.to_string()),
            ("value", format!("a text of {VALUE_CHARACTERS} characters")),
            ("members", size.to_string()),
            (
                "copies",
                format!("three replicas, a majority of which acknowledges; Hazelcast: owner and {BACKUPS} backup"),
            ),
            ("rounds", rounds.to_string()),
            ("seed", options.seed.to_string()),
            ("quick", options.quick.to_string()),
        ],
    );
    report
        .notes
        .push("CPU per call is that of all members together; a call of putAll is one of 1,000 entries".to_owned());
    let peers = start(options, size)?;
    let bar = progress(u64::from(rounds) * (CASES.len() * peers.len()) as u64);
    for round in 1..=rounds {
        for (name, kind, calls) in CASES {
            for peer in &peers {
                bar.set_message(format!("round {round}: {name}, {}", peer.name()));
                let seed = options.seed.wrapping_add(u64::from(round));
                report.samples.push(peer.measure(name, kind, calls, round, seconds, seed)?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    report.summarize();
    judge(&mut report, size);
    Ok(report)
}

fn start(options: &Options, size: usize) -> Result<Vec<Peer>> {
    let results = options.results()?;
    let filbert = find_filbert(options.filbert.as_deref())?;
    let mut peers = vec![
        Peer::Servers(vec![Server::filbert(&filbert, results)?]),
        Peer::Cluster(Cluster::start(&filbert, size, results)?),
    ];
    if !options.no_java {
        let java = JavaProject::build()?;
        let members = Server::hazelcast_cluster(&java, MEMBER_HEAP_BYTES, size, BACKUPS, results)?;
        peers.push(Peer::Servers(members));
    }
    // Use every key, and make enough calls for the compilers of a JVM.
    let passes = if options.quick { 1 } else { 8 };
    for peer in &peers {
        let client = peer.client()?;
        for _ in 0..passes {
            client.fill(ENTRIES, VALUE_CHARACTERS)?;
            for (_, kind, calls) in CASES.iter().take(4) {
                client.calls(*kind, *calls, ENTRIES / 2, ENTRIES, options.seed)?;
            }
        }
        let found = client.size()?;
        if found != ENTRIES {
            let what = format!("map {MAP} has {found} entries, expected {ENTRIES}");
            return Err(BenchError::Wrong { target: peer.name(), what });
        }
    }
    Ok(peers)
}

impl Peer {
    fn servers(&self) -> Vec<&Server> {
        match self {
            Peer::Servers(servers) => servers.iter().collect(),
            Peer::Cluster(cluster) => cluster.servers().collect(),
        }
    }

    fn name(&self) -> String {
        self.servers().first().map_or(String::new(), |server| server.target().name.clone())
    }

    /// Opens a new connection: the server closes a connection that is idle for minutes.
    fn client(&self) -> Result<RustClient> {
        let servers = self.servers();
        let first = servers.first().ok_or_else(|| BenchError::Setting("a cluster without members".to_owned()))?;
        RustClient::connect(first.target(), MAP, false)
    }

    fn usage(&self) -> Result<Vec<Usage>> {
        self.servers().into_iter().map(Server::usage).collect()
    }

    fn measure(&self, name: &str, kind: Kind, calls: Calls, round: u32, seconds: f64, seed: u64) -> Result<Sample> {
        let client = self.client()?;
        let warm = client.calls(kind, calls, 200, ENTRIES, seed)?;
        let warm = client.calls(kind, calls, in_seconds(&warm, seconds / 10.0), ENTRIES, seed)?;
        let before = self.usage()?;
        let done = client.calls(kind, calls, in_seconds(&warm, seconds), ENTRIES, seed)?;
        let after = self.usage()?;
        let used =
            before.iter().zip(&after).map(|(before, after)| UsagePerOperation::between(before, after, done.calls));
        let (cpu_us, resident_bytes) =
            used.fold((0.0, 0), |(cpu, resident), used| (cpu + used.cpu_us(), resident + used.resident_bytes));
        Ok(Sample {
            driver: DRIVER.to_owned(),
            case: name.to_owned(),
            target: self.name(),
            round,
            operations: done.calls,
            seconds: done.elapsed.as_secs_f64(),
            latency: done.latencies.map(|latencies| latencies.summary()),
            server_cpu_us: Some(cpu_us),
            resident_bytes: Some(resident_bytes),
        })
    }
}

/// The number of calls that take about this time.
fn in_seconds(measured: &crate::rust_client::Done, seconds: f64) -> u64 {
    let rate = measured.calls as f64 / measured.elapsed.as_secs_f64().max(1e-6);
    (rate * seconds).clamp(20.0, 1e8) as u64
}

fn judge(report: &mut Report, size: usize) {
    let (ours, theirs) = (format!("filbert x {size}"), format!("hazelcast x {size}"));
    for (name, cpu_most, rate_least) in [("set, 8 callers", 0.8, 1.2), ("set, depth 100", 0.25, 3.0)] {
        let beside = Case::targets(DRIVER, name, &ours, &theirs);
        report.judge(
            &format!("{name}: CPU of all members / Hazelcast's"),
            &beside,
            figure::cpu,
            Must::AtMost,
            cpu_most,
        );
        report.judge(&format!("{name}: rate / Hazelcast's"), &beside, figure::rate, Must::AtLeast, rate_least);
    }
    for name in ["get, 8 callers", "get, depth 100"] {
        let beside = Case::targets(DRIVER, name, &ours, "filbert");
        report.judge(&format!("{name}: CPU of all members / one member's"), &beside, figure::cpu, Must::AtMost, 1.2);
    }
}
