//! Part (ii) of experiment S: single calls over loopback, with the generator and with the stock
//! Java client.

use super::super::report::{Report, Sample};
use super::super::{DRIVER_HEAP_BYTES, MEMBER_HEAP_BYTES, Options, expect_size, fill, progress};
use super::{CONNECTIONS, ENTRIES, OPERATIONS, VALUE_CHARACTERS};
use crate::distribution::{Distribution, Operation};
use crate::error::Result;
use crate::java::{Driver, JavaProject};
use crate::load::{Limit, Load, Workload};
use crate::process::UsagePerOperation;
use crate::requests::ValueShape;
use crate::server::{Server, find_filbert};

/// The drivers that make the calls.
pub(super) const DRIVERS: [&str; 2] = ["native", "java client"];
/// Each driver uses a separate map, because their values differ.
const NATIVE_MAP: &str = "bench-s";
const JAVA_MAP: &str = "bench-s-java";
const CHECK_EVERY: u64 = 50;
/// The heap of each member of a cluster. Its share of the data is some ten megabytes.
const CLUSTER_MEMBER_HEAP_BYTES: u64 = 512 << 20;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) rounds: u32,
    /// The number of calls of a measurement. The Java client makes a quarter of them: its warm-up
    /// takes longer than its measurement.
    pub(super) calls: u64,
}

impl Size {
    fn java_calls(self) -> u64 {
        self.calls / 4
    }
}

/// A server or a cluster, with the connected Java client.
struct Peer {
    /// The generator calls the first member.
    members: Vec<Server>,
    java_client: Option<Driver>,
}

impl Peer {
    fn name(&self) -> String {
        self.members.first().map_or(String::new(), |server| server.target().name.clone())
    }

    /// The CPU time per call in user mode and in the kernel, and the resident memory. Both are sums
    /// over all members.
    fn used(before: &[crate::process::Usage], after: &[crate::process::Usage], calls: u64) -> (f64, u64) {
        before
            .iter()
            .zip(after)
            .map(|(before, after)| UsagePerOperation::between(before, after, calls))
            .fold((0.0, 0), |(cpu, resident), used| (cpu + used.cpu_us(), resident + used.resident_bytes))
    }

    fn usage(&self) -> Result<Vec<crate::process::Usage>> {
        self.members.iter().map(Server::usage).collect()
    }
}

pub(super) fn client_case(operation: Operation, connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("{}, {connections} thread{plural}", operation.name())
}

/// Measures Filbert, Hazelcast and, if requested, a Hazelcast cluster. Only the Java client
/// measures the cluster, because it sends every call to the owner of the key. The generator
/// connects to one member.
pub(super) fn run(report: &mut Report, options: &Options, java: Option<&JavaProject>, size: Size) -> Result<()> {
    let mut peers = start(options, java, size)?;
    let steps = OPERATIONS.len() * CONNECTIONS.len() * peers.len();
    let bar = progress(u64::from(size.rounds) * DRIVERS.len() as u64 * steps as u64);
    for round in 1..=size.rounds {
        for operation in OPERATIONS {
            for connections in CONNECTIONS {
                let case = client_case(operation, connections);
                for peer in &mut peers {
                    bar.set_message(format!("round {round}: {case}, {}", peer.name()));
                    if let [server] = peer.members.as_slice() {
                        report.samples.push(native(server, operation, connections, round, size)?);
                    }
                    bar.inc(1);
                }
                for peer in &mut peers {
                    bar.set_message(format!("round {round}: Java client, {case}, {}", peer.name()));
                    report.samples.extend(java_client(peer, operation, connections, round, size)?);
                    bar.inc(1);
                }
            }
        }
    }
    bar.finish_and_clear();
    for peer in &peers {
        let [server] = peer.members.as_slice() else { continue };
        expect_size(server, NATIVE_MAP, ENTRIES)?;
        if peer.java_client.is_some() {
            expect_size(server, JAVA_MAP, ENTRIES)?;
        }
    }
    Ok(())
}

fn start(options: &Options, java: Option<&JavaProject>, size: Size) -> Result<Vec<Peer>> {
    let results = options.results()?;
    let mut all = vec![vec![Server::filbert(&find_filbert(options.filbert.as_deref())?, results)?]];
    if let Some(java) = java {
        all.push(vec![Server::hazelcast(java, MEMBER_HEAP_BYTES, results)?]);
        if options.members > 1 {
            all.push(Server::hazelcast_cluster(java, CLUSTER_MEMBER_HEAP_BYTES, options.members, 0, results)?);
        }
    }
    let mut peers = Vec::new();
    for members in all {
        let mut peer = Peer { members, java_client: None };
        if let [server] = peer.members.as_slice() {
            warm_up(server, size)?;
        }
        if let Some((java, server)) = java.zip(peer.members.first()) {
            let target = server.target();
            let arguments = [target.address.to_string(), target.cluster.clone(), JAVA_MAP.to_owned()];
            let name = format!("the Java client of {}", target.name);
            let log = results.join(format!("java-client-{}.log", target.name.replace(' ', "-")));
            let mut driver = java.driver(&name, "filbert.bench.ClientDriver", &arguments, DRIVER_HEAP_BYTES, &log)?;
            driver.command(&format!("members {}", peer.members.len()))?;
            // Use every key at least once, and make enough calls for the compilers of both JVMs.
            for operation in OPERATIONS {
                driver.command(&command(operation, 8, size.java_calls().max(ENTRIES)))?;
            }
            peer.java_client = Some(driver);
        }
        peers.push(peer);
    }
    Ok(peers)
}

fn warm_up(server: &Server, size: Size) -> Result<()> {
    fill(server, Workload::load(NATIVE_MAP, ENTRIES, ValueShape::Text(VALUE_CHARACTERS)))?;
    for operation in OPERATIONS {
        Load::connect(server.target(), workload(server, operation, 8))?.run(0, Limit::Operations(size.calls))?;
    }
    Ok(())
}

fn workload(server: &Server, operation: Operation, connections: usize) -> Workload {
    Workload {
        connections,
        distribution: Distribution::Sequential,
        check_every: CHECK_EVERY,
        server_pid: Some(server.pid()),
        ..Workload::new(NATIVE_MAP, operation, ENTRIES, ValueShape::Text(VALUE_CHARACTERS))
    }
}

fn native(server: &Server, operation: Operation, connections: usize, round: u32, size: Size) -> Result<Sample> {
    let mut load = Load::connect(server.target(), workload(server, operation, connections))?;
    load.run(0, Limit::Operations(size.calls / 20))?;
    let measured = load.run(0, Limit::Operations(size.calls))?;
    Ok(Sample::of("native", &client_case(operation, connections), round, &measured))
}

/// The driver command for about `calls` calls by several threads.
fn command(operation: Operation, threads: usize, calls: u64) -> String {
    let per_thread = calls.div_ceil(threads as u64);
    format!("{} {threads} {per_thread} {ENTRIES} {VALUE_CHARACTERS}", operation.name())
}

fn java_client(
    peer: &mut Peer,
    operation: Operation,
    threads: usize,
    round: u32,
    size: Size,
) -> Result<Option<Sample>> {
    let before = peer.usage()?;
    let Some(driver) = &mut peer.java_client else { return Ok(None) };
    let answer = driver.command(&command(operation, threads, size.java_calls()))?;
    let (cpu_us, resident_bytes) = Peer::used(&before, &peer.usage()?, answer.calls);
    Ok(Some(Sample {
        driver: "java client".to_owned(),
        case: client_case(operation, threads),
        target: peer.name(),
        round,
        operations: answer.calls,
        seconds: answer.elapsed().as_secs_f64(),
        latency: answer.latency,
        server_cpu_us: Some(cpu_us),
        resident_bytes: Some(resident_bytes),
    }))
}
