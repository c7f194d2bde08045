//! Latencies: an HDR histogram per connection, and the reported figures.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::{BenchError, Result};

/// The maximum recorded latency, in nanoseconds; longer latencies count as this value. A call that
/// takes longer than one minute has failed anyway.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Latencies from 1 ns to one minute, with three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Creates an empty histogram.
    pub fn new() -> Result<Self> {
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .map(Self)
            .map_err(|error| BenchError::Setting(format!("latency histogram: {error}")))
    }

    /// Records one call.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds the latencies of another connection.
    pub fn add(&mut self, other: &Latencies) -> Result<()> {
        self.0.add(&other.0).map_err(|error| BenchError::Setting(format!("latency histogram: {error}")))
    }

    /// The number of recorded calls.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether no call was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reported figures.
    pub fn summary(&self) -> LatencySummary {
        let us = |ns: u64| ns as f64 / 1_000.0;
        LatencySummary {
            mean_us: self.0.mean() / 1_000.0,
            p50_us: us(self.0.value_at_quantile(0.5)),
            p99_us: us(self.0.value_at_quantile(0.99)),
            p999_us: us(self.0.value_at_quantile(0.999)),
            max_us: us(self.0.max()),
        }
    }
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, serde::Deserialize)]
pub struct LatencySummary {
    /// The arithmetic mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The median of figures: the mean of the middle two if their number is even, `None` if there are
/// none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut latencies = Latencies::new().unwrap();
        for us in 1..=1_000 {
            latencies.record(Duration::from_micros(us));
        }
        let summary = latencies.summary();
        assert!((summary.p50_us - 500.0).abs() < 2.0, "{summary:?}");
        assert!((summary.p99_us - 990.0).abs() < 2.0, "{summary:?}");
        assert!((summary.p999_us - 999.0).abs() < 2.0, "{summary:?}");
        assert!((summary.max_us - 1_000.0).abs() < 2.0, "{summary:?}");
    }

    #[test]
    fn latencies_beyond_the_range_count_as_the_longest() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record(Duration::from_secs(3_600));
        assert_eq!(latencies.len(), 1);
        assert!(latencies.summary().max_us >= 59.9e6);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }
}
