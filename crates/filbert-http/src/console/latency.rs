//! Percentiles of durations since an earlier time, from histograms that only grow.

use std::time::Duration;

use filbert_grid::Grid;
use filbert_grid::metrics::{HistogramCounts, OperationKind};
use serde::Serialize;

/// The reported duration of a histogram's last bucket, which has no upper bound.
const LONGEST: Duration = Duration::from_secs(128);

/// Percentiles in microseconds: half of the durations are at most `p50_us`, and 99 of 100 are at
/// most `p99_us`. Both values are at most 25 % too high, because of the size of the buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

/// The histograms of durations of several kinds, always in the same order.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    histograms: Vec<HistogramCounts>,
}

impl Durations {
    /// The durations of all statements since the start.
    pub(super) fn of_statements(grid: &Grid) -> Durations {
        Durations { histograms: grid.metrics().statements().into_iter().map(|kind| kind.durations).collect() }
    }

    /// The durations of map operations since the start. Statements of clients are counted as
    /// statements.
    pub(super) fn of_operations(grid: &Grid) -> Durations {
        let kinds = grid.metrics().operations().into_iter().filter(|kind| kind.kind != OperationKind::Sql);
        Durations { histograms: kinds.map(|kind| kind.durations).collect() }
    }

    /// The percentiles of durations that were added since `before`.
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

/// The percentiles of one histogram since the start.
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
