//! The results of an experiment: samples, their medians, ratios within a round, and verdicts. The
//! report is written as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::Environment;
use crate::error::{BenchError, Result};
use crate::latency::{LatencySummary, median};
use crate::load::LoadReport;

/// One measurement of one server in one round.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// The driver that made the calls, such as `native` or `java client`.
    pub driver: String,
    /// The measured case, such as `get, depth 100`.
    pub case: String,
    /// The server.
    pub target: String,
    /// The round, from 1.
    pub round: u32,
    /// The number of calls.
    pub operations: u64,
    /// The elapsed time in seconds.
    pub seconds: f64,
    /// Latencies, if single calls were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencySummary>,
    /// The server's CPU time per call in microseconds, in user mode and in the kernel, if the
    /// server is a separate process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us: Option<f64>,
    /// The server's resident memory at the end in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

impl Sample {
    /// Creates the sample of a native run.
    pub fn of(driver: &str, case: &str, round: u32, report: &LoadReport) -> Sample {
        Sample {
            driver: driver.to_owned(),
            case: case.to_owned(),
            target: report.target.clone(),
            round,
            operations: report.operations,
            seconds: report.seconds,
            latency: Some(report.latency),
            server_cpu_us: report.server.map(|server| server.cpu_us()),
            resident_bytes: report.server.map(|server| server.resident_bytes),
        }
    }

    /// Calls per second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }
}

/// Medians over the rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The driver that made the calls.
    pub driver: String,
    /// The measured case.
    pub case: String,
    /// The server.
    pub target: String,
    /// Calls per second.
    pub operations_per_second: f64,
    /// Median latency in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile in microseconds.
    pub p999_us: Option<f64>,
    /// The server's CPU time per call in microseconds.
    pub server_cpu_us: Option<f64>,
    /// The server's resident memory in bytes.
    pub resident_bytes: Option<f64>,
}

/// A claim with its measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The claim.
    pub claim: String,
    /// The median over the rounds.
    pub measured: f64,
    /// The lowest value of the rounds.
    pub lowest: f64,
    /// The highest value of the rounds.
    pub highest: f64,
    /// The bound that the median must reach or not exceed.
    pub bound: f64,
    /// Whether the claim holds.
    pub holds: bool,
}

/// The required side of the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Must {
    /// The figure must reach the bound.
    AtLeast,
    /// The figure must not exceed the bound.
    AtMost,
}

/// The report of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The name of the experiment and of its file.
    pub experiment: String,
    /// The environment of the run.
    pub environment: Environment,
    /// Settings such as sizes and seeds.
    pub settings: BTreeMap<String, String>,
    /// Notes that a reader must know in addition to the figures.
    pub notes: Vec<String>,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Medians, in the order of the samples.
    pub medians: Vec<Row>,
    /// All measurements.
    pub samples: Vec<Sample>,
}

impl Report {
    /// Creates an empty report.
    pub fn new(experiment: &str, settings: &[(&str, String)]) -> Report {
        Report {
            experiment: experiment.to_owned(),
            environment: crate::environment::collect(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            notes: Vec::new(),
            verdicts: Vec::new(),
            medians: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Computes the medians of all samples.
    pub fn summarize(&mut self) {
        let mut rows: Vec<Row> = Vec::new();
        for first in &self.samples {
            let same = |row: &Row| row.driver == first.driver && row.case == first.case && row.target == first.target;
            if rows.iter().any(same) {
                continue;
            }
            let all = || self.matching(&first.driver, &first.case, &first.target);
            let latency = |of: fn(&LatencySummary) -> f64| median(all().filter_map(|s| s.latency.as_ref().map(of)));
            rows.push(Row {
                driver: first.driver.clone(),
                case: first.case.clone(),
                target: first.target.clone(),
                operations_per_second: median(all().map(Sample::rate)).unwrap_or(0.0),
                p50_us: latency(|l| l.p50_us),
                p99_us: latency(|l| l.p99_us),
                p999_us: latency(|l| l.p999_us),
                server_cpu_us: median(all().filter_map(|s| s.server_cpu_us)),
                resident_bytes: median(all().filter_map(|s| s.resident_bytes.map(|bytes| bytes as f64))),
            });
        }
        self.medians = rows;
    }

    fn matching<'r>(&'r self, driver: &'r str, case: &'r str, target: &'r str) -> impl Iterator<Item = &'r Sample> {
        self.samples.iter().filter(move |s| s.driver == driver && s.case == case && s.target == target)
    }

    /// Adds a verdict about the ratio of two targets, computed for each round. Adds nothing if a
    /// measurement is missing.
    pub fn judge(&mut self, claim: &str, case: &Case<'_>, figure: fn(&Sample) -> Option<f64>, must: Must, bound: f64) {
        let ratios: Vec<f64> = self
            .matching(case.driver, case.name, case.target)
            .filter_map(|sample| {
                let other = self
                    .matching(case.other_driver, case.other_name, case.other_target)
                    .find(|other| other.round == sample.round)?;
                Some(figure(sample)? / figure(other)?)
            })
            .filter(|ratio| ratio.is_finite())
            .collect();
        self.verdict(claim, &ratios, must, bound);
    }

    /// Adds a verdict about the median of figures. Adds nothing if there are no figures.
    pub fn verdict(&mut self, claim: &str, figures: &[f64], must: Must, bound: f64) {
        let Some(measured) = median(figures.iter().copied()) else { return };
        self.verdicts.push(Verdict {
            claim: claim.to_owned(),
            measured,
            lowest: figures.iter().copied().fold(f64::INFINITY, f64::min),
            highest: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            bound,
            holds: match must {
                Must::AtLeast => measured >= bound,
                Must::AtMost => measured <= bound,
            },
        });
    }

    /// Writes the report as `DIRECTORY/EXPERIMENT.json`.
    pub fn write(&self, directory: &Path) -> Result<PathBuf> {
        let path = directory.join(format!("{}.json", self.experiment));
        let json = serde_json::to_string_pretty(self)
            .map_err(|error| BenchError::Setting(format!("writing the report as JSON: {error}")))?;
        fs::write(&path, json + "\n").map_err(BenchError::io(format!("writing {}", path.display())))?;
        Ok(path)
    }

    /// Formats the report as text.
    pub fn text(&self) -> String {
        let mut text = format!("Experiment {}\n\n", self.experiment);
        for (name, value) in self.environment.iter().chain(&self.settings) {
            let _ = writeln!(text, "  {name:<22} {value}");
        }
        let heads = ["driver", "case", "target", "calls/s", "p50 us", "p99 us", "p99.9 us", "CPU us/call", "RSS MiB"];
        let mut table = vec![heads.map(str::to_owned)];
        for row in &self.medians {
            let figure = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
            table.push([
                row.driver.clone(),
                row.case.clone(),
                row.target.clone(),
                rate(row.operations_per_second),
                figure(row.p50_us, 1),
                figure(row.p99_us, 1),
                figure(row.p999_us, 1),
                figure(row.server_cpu_us, 3),
                figure(row.resident_bytes.map(|bytes| bytes / 1_048_576.0), 1),
            ]);
        }
        if !self.medians.is_empty() {
            text.push('\n');
            text.push_str(&columns(&table, 3));
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        text.push('\n');
        for verdict in &self.verdicts {
            let _ = writeln!(
                text,
                "  {} {}: {:.3} (rounds {:.3} to {:.3}, bound {:.3})",
                if verdict.holds { "holds " } else { "FAILS " },
                verdict.claim,
                verdict.measured,
                verdict.lowest,
                verdict.highest,
                verdict.bound
            );
        }
        text
    }
}

/// Two measurements to compare.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The driver of the first.
    pub driver: &'a str,
    /// The case of the first.
    pub name: &'a str,
    /// The target of the first.
    pub target: &'a str,
    /// The driver of the second.
    pub other_driver: &'a str,
    /// The case of the second.
    pub other_name: &'a str,
    /// The target of the second.
    pub other_target: &'a str,
}

impl<'a> Case<'a> {
    /// Compares two targets in the same case.
    pub fn targets(driver: &'a str, name: &'a str, target: &'a str, other_target: &'a str) -> Self {
        Self { driver, name, target, other_driver: driver, other_name: name, other_target }
    }
}

/// Figures of a sample, for verdicts.
pub mod figure {
    use super::Sample;

    /// Calls per second.
    pub fn rate(sample: &Sample) -> Option<f64> {
        Some(sample.rate())
    }

    /// Seconds per call.
    pub fn time(sample: &Sample) -> Option<f64> {
        Some(1.0 / sample.rate())
    }

    /// The server's CPU time per call.
    pub fn cpu(sample: &Sample) -> Option<f64> {
        sample.server_cpu_us
    }

    /// Median latency.
    pub fn p50(sample: &Sample) -> Option<f64> {
        sample.latency.map(|latency| latency.p50_us)
    }

    /// 99th percentile of the latency.
    pub fn p99(sample: &Sample) -> Option<f64> {
        sample.latency.map(|latency| latency.p99_us)
    }
}

/// Formats calls per second. A small number has a fraction.
fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.1}") } else { grouped(per_second) }
}

/// Formats a whole number with commas between thousands.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a table. The first `left` columns are left-aligned, the other columns right-aligned.
fn columns<const N: usize>(table: &[[String; N]], left: usize) -> String {
    let mut widths = [0; N];
    for row in table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in table {
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = if index < left { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(target: &str, round: u32, seconds: f64) -> Sample {
        Sample {
            driver: "native".to_owned(),
            case: "get".to_owned(),
            target: target.to_owned(),
            round,
            operations: 1_000,
            seconds,
            latency: None,
            server_cpu_us: Some(seconds),
            resident_bytes: None,
        }
    }

    fn report() -> Report {
        let mut report = Report::new("test", &[]);
        for (round, seconds) in [(1, 1.0), (2, 2.0), (3, 9.0)] {
            report.samples.push(sample("echo", round, seconds));
            report.samples.push(sample("filbert", round, seconds * 1.25));
        }
        report.summarize();
        report
    }

    #[test]
    fn rows_are_medians_over_the_rounds() {
        let report = report();
        let rates: Vec<f64> = report.medians.iter().map(|row| row.operations_per_second).collect();
        assert_eq!(rates, [500.0, 400.0]);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut report = report();
        let case = Case::targets("native", "get", "filbert", "echo");
        report.judge("rate", &case, figure::rate, Must::AtLeast, 0.7);
        report.judge("cpu", &case, figure::cpu, Must::AtMost, 1.2);
        let found: Vec<(f64, bool)> = report.verdicts.iter().map(|v| (v.measured, v.holds)).collect();
        assert_eq!(found, [(0.8, true), (1.25, false)]);
    }

    #[test]
    fn a_missing_target_gives_no_verdict() {
        let mut report = report();
        report.judge("x", &Case::targets("native", "get", "filbert", "nobody"), figure::rate, Must::AtLeast, 1.0);
        assert!(report.verdicts.is_empty());
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(0.4), "0");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
