//! Experiment P: random gets, one by one and through pipelines of depth 5, 10 and 100.

use crate::distribution::Operation;
use crate::error::Result;
use crate::java::{Driver, JavaProject};
use crate::load::{Limit, Load, Workload};
use crate::process::UsagePerOperation;
use crate::requests::ValueShape;
use crate::rust_client::RustClient;
use crate::server::{Server, find_filbert};

use super::report::{Case, Must, Report, Sample, figure};
use super::{DRIVER_HEAP_BYTES, MEMBER_HEAP_BYTES, Options, fill, progress};

const MAP: &str = "bench-p";
const ENTRIES: u64 = 100_000;
const CALLS_PER_ITERATION: u64 = 1_000;
const ITERATIONS: u64 = 500;
const DEPTHS: [usize; 4] = [1, 5, 10, 100];
/// Every n-th value is compared during the measurement. The comparison is rare enough to have no
/// measurable cost, and frequent enough to detect wrong results within half a million calls.
const CHECK_EVERY: u64 = 50;
/// The number of characters of most values. The values are the keys 0 to 99,999 as text. The echo
/// server returns values of this length.
const VALUE_CHARACTERS: usize = 5;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Size {
    rounds: u32,
    iterations: u64,
    java_iterations: u64,
    warm_up: u64,
    /// The minimum time of a native measurement, in seconds. Its iterations are repeated to reach
    /// it.
    seconds_min: f64,
}

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    let size = Size {
        rounds: options.rounds(5),
        iterations: if options.quick { ITERATIONS / 25 } else { ITERATIONS },
        java_iterations: if options.quick { ITERATIONS / 25 } else { ITERATIONS / 5 },
        warm_up: if options.quick { 20_000 } else { 300_000 },
        seconds_min: if options.quick { 0.3 } else { 2.0 },
    };
    let mut report = Report::new(
        "p",
        &[
            ("entries", ENTRIES.to_string()),
            (
                "iterations",
                format!(
                    "{} of {CALLS_PER_ITERATION} gets, native; {} with the Java client",
                    size.iterations, size.java_iterations
                ),
            ),
            ("rounds", size.rounds.to_string()),
            ("seed", options.seed.to_string()),
            ("quick", options.quick.to_string()),
        ],
    );
    let servers = start(options, size)?;
    report.notes.push(format!("first login after the start: {}", started(&servers.all)));
    let mut java_clients = servers.java_clients(options, size)?;
    let drivers = 2 * servers.all.len() + java_clients.len();
    let bar = progress(u64::from(size.rounds) * (drivers * DEPTHS.len()) as u64);
    for round in 1..=size.rounds {
        for depth in DEPTHS {
            for server in &servers.all {
                bar.set_message(format!("round {round}: native, depth {depth}, {}", server.target().name));
                report.samples.push(native(server, depth, round, size, options.seed)?);
                bar.inc(1);
            }
        }
        for depth in DEPTHS {
            for server in &servers.all {
                bar.set_message(format!("round {round}: filbert-client, depth {depth}, {}", server.target().name));
                report.samples.push(rust(server, depth, round, size, options.seed)?);
                bar.inc(1);
            }
        }
        for depth in DEPTHS {
            for (server, driver) in &mut java_clients {
                bar.set_message(format!("round {round}: Java client, depth {depth}, {}", server.target().name));
                report.samples.push(java(server, driver, depth, round, size, options.seed)?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    report.summarize();
    judge(&mut report);
    Ok(report)
}

/// The name of a case.
fn case(depth: usize) -> String {
    if depth == 1 { "get, one by one".to_owned() } else { format!("get, depth {depth}") }
}

fn started(servers: &[Server]) -> String {
    let texts: Vec<String> =
        servers.iter().map(|s| format!("{} {:.0} ms", s.target().name, s.started_in().as_secs_f64() * 1e3)).collect();
    texts.join(", ")
}

/// The loaded and warmed-up servers of the experiment.
struct Servers {
    all: Vec<Server>,
    java: Option<JavaProject>,
}

fn start(options: &Options, size: Size) -> Result<Servers> {
    let results = options.results()?;
    let java = if options.no_java { None } else { Some(JavaProject::build()?) };
    let mut all = vec![Server::echo(VALUE_CHARACTERS, results)?];
    all.push(Server::filbert(&find_filbert(options.filbert.as_deref())?, results)?);
    if let Some(java) = &java {
        all.push(Server::hazelcast(java, MEMBER_HEAP_BYTES, results)?);
    }
    for server in &all {
        if server.target().name != "echo" {
            fill(server, Workload::load(MAP, ENTRIES, ValueShape::KeyText))?;
        }
        // A JVM compiles frequently executed code. Without this warm-up the first round would
        // measure its interpreter.
        for depth in [100, 1] {
            let mut load = Load::connect(server.target(), workload(server, depth, options.seed))?;
            load.run(0, Limit::Operations(if depth == 1 { size.warm_up / 4 } else { size.warm_up }))?;
        }
    }
    Ok(Servers { all, java })
}

impl Servers {
    /// Starts a stock Java client for each server with data.
    fn java_clients(&self, options: &Options, size: Size) -> Result<Vec<(&Server, Driver)>> {
        let Some(java) = &self.java else { return Ok(Vec::new()) };
        let mut clients = Vec::new();
        for server in self.all.iter().filter(|server| server.target().name != "echo") {
            let target = server.target();
            let arguments = [target.address.to_string(), target.cluster.clone(), MAP.to_owned()];
            let name = format!("the Java client of {}", target.name);
            let log = options.results()?.join(format!("java-client-{}.log", target.name));
            let mut driver = java.driver(&name, "filbert.bench.ClientDriver", &arguments, DRIVER_HEAP_BYTES, &log)?;
            for depth in [100, 1] {
                let iterations = (size.warm_up / CALLS_PER_ITERATION).max(1) / if depth == 1 { 4 } else { 1 };
                driver.command(&format!("get {depth} {iterations} {CALLS_PER_ITERATION} {ENTRIES} 1"))?;
            }
            clients.push((server, driver));
        }
        Ok(clients)
    }
}

fn workload(server: &Server, depth: usize, seed: u64) -> Workload {
    let echo = server.target().name == "echo";
    Workload {
        depth,
        iteration: Some(CALLS_PER_ITERATION),
        check_every: if echo { 0 } else { CHECK_EVERY },
        seed,
        server_pid: Some(server.pid()),
        ..Workload::new(MAP, Operation::Get, ENTRIES, ValueShape::KeyText)
    }
}

/// Makes one measurement with the generator.
fn native(server: &Server, depth: usize, round: u32, size: Size, seed: u64) -> Result<Sample> {
    let calls = size.iterations * CALLS_PER_ITERATION;
    let mut load = Load::connect(server.target(), workload(server, depth, seed.wrapping_add(u64::from(round))))?;
    let warm = load.run(0, Limit::Operations(calls / 20))?;
    // CPU time is counted in ticks of 10 ms. If calls are cheap, all calls are repeated several
    // times.
    let passes = (size.seconds_min * warm.operations_per_second / calls as f64).ceil().clamp(1.0, 50.0) as u64;
    let report = load.run(calls, Limit::Operations(calls * passes))?;
    Ok(Sample::of("native", &case(depth), round, &report))
}

/// Makes one measurement with our own client, over a new connection. The client's tasks run only
/// during calls, so the server would close a connection that is idle for minutes.
fn rust(server: &Server, depth: usize, round: u32, size: Size, seed: u64) -> Result<Sample> {
    let seed = seed.wrapping_add(u64::from(round));
    let client = RustClient::connect(server.target(), MAP, server.target().name != "echo")?;
    let warm = client.gets(depth, (size.iterations / 20).max(1), CALLS_PER_ITERATION, ENTRIES, seed)?;
    let per_iteration = warm.elapsed.as_secs_f64() / warm.calls as f64 * CALLS_PER_ITERATION as f64;
    let passes = (size.seconds_min / per_iteration / size.iterations as f64).ceil().clamp(1.0, 50.0) as u64;
    let before = server.usage()?;
    let gets = client.gets(depth, size.iterations * passes, CALLS_PER_ITERATION, ENTRIES, seed)?;
    let used = UsagePerOperation::between(&before, &server.usage()?, gets.calls);
    Ok(Sample {
        driver: "filbert-client".to_owned(),
        case: case(depth),
        target: server.target().name.clone(),
        round,
        operations: gets.calls,
        seconds: gets.elapsed.as_secs_f64(),
        latency: gets.latencies.map(|latencies| latencies.summary()),
        server_cpu_us: Some(used.cpu_us()),
        resident_bytes: Some(used.resident_bytes),
    })
}

/// Makes one measurement with the stock Java client.
fn java(server: &Server, driver: &mut Driver, depth: usize, round: u32, size: Size, seed: u64) -> Result<Sample> {
    let before = server.usage()?;
    let seed = seed.wrapping_add(u64::from(round));
    let iterations = size.java_iterations;
    let answer = driver.command(&format!("get {depth} {iterations} {CALLS_PER_ITERATION} {ENTRIES} {seed}"))?;
    let used = UsagePerOperation::between(&before, &server.usage()?, answer.calls);
    Ok(Sample {
        driver: "java client".to_owned(),
        case: case(depth),
        target: server.target().name.clone(),
        round,
        operations: answer.calls,
        seconds: answer.elapsed().as_secs_f64(),
        latency: answer.latency,
        server_cpu_us: Some(used.cpu_us()),
        resident_bytes: Some(used.resident_bytes),
    })
}

fn judge(report: &mut Report) {
    let (one, deep) = (case(1), case(100));
    for driver in ["native", "filbert-client"] {
        let deep_echo = Case::targets(driver, &deep, "filbert", "echo");
        let deep_hazelcast = Case::targets(driver, &deep, "filbert", "hazelcast");
        let one_echo = Case::targets(driver, &one, "filbert", "echo");
        let claim = |text: &str| format!("{driver}, {text}");
        report.judge(&claim("depth 100: rate / echo's rate"), &deep_echo, figure::rate, Must::AtLeast, 0.70);
        report.judge(&claim("depth 100: CPU per call / echo's"), &deep_echo, figure::cpu, Must::AtMost, 1.6);
        report.judge(&claim("depth 100: CPU per call / Hazelcast's"), &deep_hazelcast, figure::cpu, Must::AtMost, 0.25);
        report.judge(&claim("one call in flight: p50 / echo's p50"), &one_echo, figure::p50, Must::AtMost, 1.3);
    }
}
