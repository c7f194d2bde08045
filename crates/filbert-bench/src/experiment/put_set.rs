//! Experiment S: put, which returns the old value, compared with set, which returns nothing;
//! embedded and through a client.

use std::path::Path;

use crate::distribution::Operation;
use crate::error::Result;
use crate::java::{Driver, JavaProject};

use super::report::{Case, Must, Report, Sample, figure};
use super::{MEMBER_HEAP_BYTES, Options, progress};

mod clients;
mod embedded;

use clients::{DRIVERS, client_case};
use embedded::Embedded;

const ENTRIES: u64 = 50_000;
const VALUE_CHARACTERS: usize = 500;
/// Single calls by one client, and by eight clients concurrently.
const CONNECTIONS: [usize; 2] = [1, 8];
const OPERATIONS: [Operation; 2] = [Operation::Put, Operation::Set];

/// Runs the experiment.
pub fn run(options: &Options) -> Result<Report> {
    let rounds = options.rounds(7);
    let passes = if options.quick { 2 } else { 20 };
    let calls = if options.quick { ENTRIES / 5 } else { ENTRIES * 4 };
    let mut report = Report::new(
        "s",
        &[
            ("entries", ENTRIES.to_string()),
            ("value", format!("a text of {VALUE_CHARACTERS} characters")),
            ("embedded", format!("all entries written {passes} times per round")),
            ("through a client", format!("{calls} single calls per round")),
            ("rounds", rounds.to_string()),
            ("seed", options.seed.to_string()),
            ("quick", options.quick.to_string()),
        ],
    );
    report
        .notes
        .push("one member on each side; Filbert has no cluster yet, so a cluster of Hazelcast stands alone".to_owned());
    let java = if options.no_java { None } else { Some(JavaProject::build()?) };
    run_embedded(&mut report, options, java.as_ref(), rounds, passes)?;
    clients::run(&mut report, options, java.as_ref(), clients::Size { rounds, calls })?;
    report.summarize();
    judge(&mut report);
    Ok(report)
}

/// Part (i): embedded, without a network.
fn run_embedded(
    report: &mut Report,
    options: &Options,
    java: Option<&JavaProject>,
    rounds: u32,
    passes: u32,
) -> Result<()> {
    let mut maps = embedded::all(ENTRIES, VALUE_CHARACTERS, options.seed)?;
    let mut hazelcast = match java {
        Some(java) => Some(start_embedded_hazelcast(java, options.results()?)?),
        None => None,
    };
    let bar = progress(u64::from(rounds) * 2 * (maps.len() as u64 + u64::from(hazelcast.is_some())));
    for round in 1..=rounds {
        for operation in OPERATIONS {
            for map in &mut maps {
                bar.set_message(format!("round {round}: embedded {}, {}", operation.name(), map.name()));
                report.samples.push(in_process(map.as_mut(), operation, round, passes)?);
                bar.inc(1);
            }
            if let Some(driver) = &mut hazelcast {
                bar.set_message(format!("round {round}: embedded {}, hazelcast", operation.name()));
                report.samples.push(in_jvm(driver, operation, round, passes)?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    for map in &mut maps {
        map.check()?;
    }
    if let Some(driver) = &mut hazelcast {
        driver.command("check")?;
    }
    Ok(())
}

fn start_embedded_hazelcast(java: &JavaProject, results: &Path) -> Result<Driver> {
    let arguments = [ENTRIES.to_string(), VALUE_CHARACTERS.to_string()];
    let log = results.join("hazelcast-embedded.log");
    let class = "filbert.bench.EmbeddedDriver";
    let mut driver = java.driver("embedded Hazelcast", class, &arguments, MEMBER_HEAP_BYTES, &log)?;
    for _ in 0..10 {
        driver.command("set")?;
        driver.command("put")?;
    }
    Ok(driver)
}

fn embedded_case(operation: Operation) -> String {
    format!("embedded {}", operation.name())
}

/// Writes all entries several times without latency measurement, then once with it: two clock
/// readings per call take about as long as the call.
fn in_process(map: &mut dyn Embedded, operation: Operation, round: u32, passes: u32) -> Result<Sample> {
    let mut seconds = 0.0;
    for _ in 0..passes {
        seconds += map.write_all(operation)?.as_secs_f64();
    }
    let mut latencies = crate::latency::Latencies::new()?;
    map.write_all_timed(operation, &mut latencies)?;
    Ok(Sample {
        driver: "embedded".to_owned(),
        case: embedded_case(operation),
        target: map.name().to_owned(),
        round,
        operations: ENTRIES * u64::from(passes),
        seconds,
        latency: Some(latencies.summary()),
        server_cpu_us: None,
        resident_bytes: None,
    })
}

fn in_jvm(driver: &mut Driver, operation: Operation, round: u32, passes: u32) -> Result<Sample> {
    let (mut seconds, mut calls) = (0.0, 0);
    for _ in 0..passes {
        let answer = driver.command(operation.name())?;
        seconds += answer.elapsed().as_secs_f64();
        calls += answer.calls;
    }
    let timed = driver.command(&format!("{}-timed", operation.name()))?;
    Ok(Sample {
        driver: "embedded".to_owned(),
        case: embedded_case(operation),
        target: "hazelcast".to_owned(),
        round,
        operations: calls,
        seconds,
        latency: timed.latency,
        server_cpu_us: None,
        resident_bytes: None,
    })
}

fn judge(report: &mut Report) {
    let (put, set) = (embedded_case(Operation::Put), embedded_case(Operation::Set));
    let table = Case::targets("embedded", &set, "filbert", "locked hash table");
    report.judge("embedded set: time / locked hash table's", &table, figure::time, Must::AtMost, 3.0);
    let blobs = Case { target: "filbert, blobs", ..table };
    report.judge("embedded set of blobs: time / locked hash table's", &blobs, figure::time, Must::AtMost, 3.0);
    for case in [&put, &set] {
        let peer = Case::targets("embedded", case, "filbert", "hazelcast");
        report.judge(&format!("{case}: time / Hazelcast's"), &peer, figure::time, Must::AtMost, 1.0);
    }
    for target in ["filbert", "hazelcast"] {
        let both = Case {
            driver: "embedded",
            name: &set,
            target,
            other_driver: "embedded",
            other_name: &put,
            other_target: target,
        };
        report.judge(&format!("{target} embedded: time of set / time of put"), &both, figure::time, Must::AtMost, 1.0);
    }
    for driver in DRIVERS {
        for operation in OPERATIONS {
            for connections in CONNECTIONS {
                let name = client_case(operation, connections);
                let peer = Case::targets(driver, &name, "filbert", "hazelcast");
                let claim = |figure: &str| format!("{driver}, {name}: {figure} / Hazelcast's");
                report.judge(&claim("CPU per call"), &peer, figure::cpu, Must::AtMost, 1.0);
                report.judge(&claim("p50"), &peer, figure::p50, Must::AtMost, 1.0);
            }
        }
    }
}
