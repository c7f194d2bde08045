//! Experiment memory: the overhead of an entry beyond its key and value, in Filbert and in
//! Hazelcast.

use crate::error::Result;
use crate::java::{JavaProject, heap_used_bytes, jcmd};
use crate::load::Workload;
use crate::requests::{KEY_BYTES, TEXT_OVERHEAD_BYTES, ValueShape};
use crate::server::{Server, find_filbert};

use super::report::{Must, Report, grouped};
use super::{MEMBER_HEAP_BYTES, Options, fill, progress};

const MAP: &str = "bench-memory";
const ENTRIES: u64 = 1_000_000;
const VALUE_CHARACTERS: usize = 100;
/// The design goal: the maximum overhead per entry beyond its serialized key and value, in bytes.
const OVERHEAD_BYTES_MAX: f64 = 64.0;

/// The memory of a server at one time.
#[derive(Debug, Clone, Copy)]
struct Memory {
    resident: u64,
    /// The used part of a Java heap, after a full collection.
    heap: Option<u64>,
}

fn memory(server: &Server) -> Result<Memory> {
    let heap = if server.target().name == "hazelcast" {
        // Two collections: objects that wait for finalization may survive the first.
        jcmd(server.pid(), "GC.run")?;
        jcmd(server.pid(), "GC.run")?;
        Some(heap_used_bytes(server.pid())?)
    } else {
        None
    };
    Ok(Memory { resident: server.usage()?.resident_bytes, heap })
}

/// Loads the entries through the protocol and compares the memory before and after. Every round
/// uses new servers.
pub fn run(options: &Options) -> Result<Report> {
    let entries = if options.quick { ENTRIES / 10 } else { ENTRIES };
    let rounds = options.rounds(3);
    let data_bytes = (KEY_BYTES + VALUE_CHARACTERS + TEXT_OVERHEAD_BYTES) as f64;
    let mut report = Report::new(
        "memory",
        &[
            ("entries", grouped(entries as f64)),
            ("key", format!("{KEY_BYTES} bytes serialized, an integer")),
            (
                "value",
                format!("{} bytes serialized, a text of {VALUE_CHARACTERS}", VALUE_CHARACTERS + TEXT_OVERHEAD_BYTES),
            ),
            ("hazelcast heap", format!("{} MiB", MEMBER_HEAP_BYTES >> 20)),
            ("rounds", rounds.to_string()),
            ("quick", options.quick.to_string()),
        ],
    );
    let results = options.results()?;
    let filbert = find_filbert(options.filbert.as_deref())?;
    let java = if options.no_java { None } else { Some(JavaProject::build()?) };
    let bar = progress(u64::from(rounds) * if java.is_some() { 2 } else { 1 });
    let (mut ours, mut heaps, mut residents) = (Vec::new(), Vec::new(), Vec::new());
    let overhead = |before: u64, after: u64| after.saturating_sub(before) as f64 / entries as f64 - data_bytes;
    for round in 1..=rounds {
        bar.set_message(format!("round {round}: filbert"));
        let (before, after) = measure(Server::filbert(&filbert, results)?, entries)?;
        ours.push(overhead(before.resident, after.resident));
        report.notes.push(line("filbert", round, before, after));
        bar.inc(1);
        let Some(java) = &java else { continue };
        bar.set_message(format!("round {round}: hazelcast"));
        let (before, after) = measure(Server::hazelcast(java, MEMBER_HEAP_BYTES, results)?, entries)?;
        residents.push(overhead(before.resident, after.resident));
        if let Some((before, after)) = before.heap.zip(after.heap) {
            heaps.push(overhead(before, after));
        }
        report.notes.push(line("hazelcast", round, before, after));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let claim = "filbert: resident bytes per entry beyond key and value";
    report.verdict(claim, &ours, Must::AtMost, OVERHEAD_BYTES_MAX);
    let ratios: Vec<f64> = ours.iter().zip(&heaps).map(|(ours, theirs)| ours / theirs).collect();
    report.verdict("the same / Hazelcast's used heap per entry beyond key and value", &ratios, Must::AtMost, 1.0);
    for (name, figures) in [("used heap after a full collection", heaps), ("resident", residents)] {
        if let Some(median) = crate::latency::median(figures) {
            report.notes.push(format!("hazelcast: {median:.1} bytes per entry beyond key and value, {name} (median)"));
        }
    }
    Ok(report)
}

fn measure(server: Server, entries: u64) -> Result<(Memory, Memory)> {
    let before = memory(&server)?;
    fill(&server, Workload::load(MAP, entries, ValueShape::Text(VALUE_CHARACTERS)))?;
    Ok((before, memory(&server)?))
}

fn line(target: &str, round: u32, before: Memory, after: Memory) -> String {
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let heap = before
        .heap
        .zip(after.heap)
        .map_or(String::new(), |(before, after)| format!(", used heap {:.1} to {:.1} MiB", mib(before), mib(after)));
    format!("round {round}, {target}: resident {:.1} to {:.1} MiB{heap}", mib(before.resident), mib(after.resident))
}
