//! The table of verdicts.

use crate::process::mib;
use crate::siege::{ENDED_MAX, ENDED_TOLERANCE, Verdict};

/// The strictness of time-dependent verdicts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strictness {
    /// Whether work must end in time. Otherwise it must only end.
    pub(crate) judges_end: bool,
    /// Whether bystanders must be served in time.
    pub(crate) judges_latency: bool,
}

/// The maximum 99th percentile of bystander latencies with `--strict`. It is generous, because the
/// loads share the processors.
pub(crate) const P99_MS_MAX: f64 = 250.0;

/// The maximum number of characters of the shown reply.
const TOLD_CHARACTERS: usize = 44;

/// All verdicts of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    verdicts: Vec<Verdict>,
}

impl Report {
    /// Adds a verdict and prints its line.
    pub(crate) fn add(&mut self, mut verdict: Verdict, strictness: Strictness) {
        verdict.wrong.extend(late(&verdict, strictness));
        println!("{}", line(&verdict));
        self.verdicts.push(verdict);
    }

    /// Prints the table and the failures. Returns whether no load failed.
    pub(crate) fn finish(&self) -> bool {
        println!("\n{}", head());
        self.verdicts.iter().for_each(|verdict| println!("{}", line(verdict)));
        let failed: Vec<&Verdict> = self.verdicts.iter().filter(|verdict| verdict.has_failed()).collect();
        for verdict in &self.verdicts {
            match (verdict.open, verdict.wrong.is_empty()) {
                (Some(reason), false) => println!("\nopen: {}: {reason}", verdict.name),
                (Some(_), true) => println!("\n{} is listed as open, and passes: take it off the list", verdict.name),
                (None, _) => {}
            }
        }
        for verdict in &failed {
            println!("\n{}", verdict.name);
            verdict.wrong.iter().for_each(|wrong| println!("  {wrong}"));
        }
        let peak = self.verdicts.iter().map(|verdict| verdict.peak).max().unwrap_or(0);
        println!("\n{} loads, peak {} MiB: {} failed", self.verdicts.len(), mib(peak), failed.len());
        failed.is_empty()
    }
}

impl Verdict {
    fn has_failed(&self) -> bool {
        !self.wrong.is_empty() && self.open.is_none()
    }
}

/// Returns the exceeded time limits that `strictness` includes.
fn late(verdict: &Verdict, strictness: Strictness) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(ended) = verdict.ended
        && strictness.judges_end
        && ended > ENDED_MAX + ENDED_TOLERANCE
    {
        let (took, max, tolerance) = (ended.as_millis(), ENDED_MAX.as_millis(), ENDED_TOLERANCE.as_millis());
        wrong.push(format!("ended after {took} ms, at most {max} + {tolerance} are allowed"));
    }
    if strictness.judges_latency {
        for (name, lane) in verdict.seen.lanes() {
            let p99 = lane.latencies.percentile_ms(99.0);
            if p99 > P99_MS_MAX {
                wrong.push(format!("99 of 100 {name} took up to {p99:.0} ms, at most {P99_MS_MAX} are allowed"));
            }
        }
    }
    wrong
}

/// The column headings.
pub(crate) fn head() -> String {
    format!(
        "{:44} {:9} {:44} {:>5} {:>5} {:>6} {:>13} {:>13} {:>13}  verdict",
        "load", "door", "told", "peak", "after", "ended", "gets p99/max", "stmts p99/max", "http p99/max"
    )
}

fn line(verdict: &Verdict) -> String {
    let ended = verdict.ended.map_or_else(|| "never".to_owned(), |ended| ended.as_millis().to_string());
    let lanes: String = verdict
        .seen
        .lanes()
        .iter()
        .map(|(_, lane)| {
            let figures = format!("{:.1}/{:.0}", lane.latencies.percentile_ms(99.0), lane.latencies.max_ms());
            format!(" {figures:>13}")
        })
        .collect();
    let said = match (verdict.open, verdict.wrong.first()) {
        (_, None) => "ok".to_owned(),
        (Some(_), Some(wrong)) => format!("open: {wrong:.120}"),
        (None, Some(wrong)) => format!("FAILED: {wrong:.160}"),
    };
    let told: String = verdict.told.chars().take(TOLD_CHARACTERS).collect();
    format!(
        "{:44} {:9} {told:44} {:>5} {:>5} {ended:>6}{lanes}  {said}",
        verdict.name,
        verdict.door,
        mib(verdict.peak),
        mib(verdict.resident),
    )
}
