//! Percentiles of what was timed since a moment before, from histograms that only grow.

use std::time::Duration;

use filbert_grid::Grid;
use filbert_grid::metrics::{HistogramCounts, OperationKind};
use serde::Serialize;

/// What is told of durations in a histogram's last bucket, which has no end.
const LONGEST: Duration = Duration::from_secs(128);

/// Half of what was timed took at most `p50_us` microseconds, 99 of 100 at most `p99_us`; both are at most a fourth too high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

/// Durations of the same kinds, in the same order at every moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    histograms: Vec<HistogramCounts>,
}

impl Durations {
    /// All statements since the start.
    pub(super) fn of_statements(grid: &Grid) -> Durations {
        Durations { histograms: grid.metrics().statements().into_iter().map(|kind| kind.durations).collect() }
    }

    /// The operations on maps that were timed since the start. Statements of clients are timed as statements.
    pub(super) fn of_operations(grid: &Grid) -> Durations {
        let kinds = grid.metrics().operations().into_iter().filter(|kind| kind.kind != OperationKind::Sql);
        Durations { histograms: kinds.map(|kind| kind.durations).collect() }
    }

    /// Of what is here and was not there before.
    pub(super) fn since(&self, before: &Durations) -> Percentiles {
        let mut counts: Vec<(Duration, u64)> = Vec::new();
        for (at, histogram) in self.histograms.iter().enumerate() {
            add(&mut counts, histogram.buckets());
            if let Some(before) = before.histograms.get(at) {
                subtract(&mut counts, before.buckets());
            }
        }
        Percentiles { p50_us: percentile_us(&counts, 50), p99_us: percentile_us(&counts, 99) }
    }
}

/// Of one histogram since the start.
pub(super) fn percentiles(histogram: &HistogramCounts) -> Percentiles {
    Durations { histograms: vec![histogram.clone()] }.since(&Durations::default())
}

fn add(counts: &mut Vec<(Duration, u64)>, buckets: impl Iterator<Item = (Option<Duration>, u64)>) {
    for (at, (end, count)) in buckets.enumerate() {
        match counts.get_mut(at) {
            Some((_, sum)) => *sum += count,
            None => counts.push((end.unwrap_or(LONGEST), count)),
        }
    }
}

fn subtract(counts: &mut [(Duration, u64)], buckets: impl Iterator<Item = (Option<Duration>, u64)>) {
    for ((_, sum), (_, count)) in counts.iter_mut().zip(buckets) {
        *sum = sum.saturating_sub(count);
    }
}

fn percentile_us(counts: &[(Duration, u64)], percent: u64) -> Option<f64> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let wanted = total.saturating_mul(percent).div_ceil(100).max(1);
    let mut seen = 0;
    let (end, _) = counts.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    })?;
    Some(end.as_secs_f64() * 1e6)
}
