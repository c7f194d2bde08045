//! Latencies: an HDR histogram per connection, and the few numbers that are reported of it.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::{BenchError, Result};

/// The longest latency told apart, in nanoseconds; longer ones count as this. One minute: a call that takes longer has
/// failed in any case.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Latencies with three significant digits, from 1 ns to one minute.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// No latencies yet.
    pub fn new() -> Result<Self> {
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .map(Self)
            .map_err(|error| BenchError::Setting(format!("latency histogram: {error}")))
    }

    /// Counts one call.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds another connection's latencies.
    pub fn add(&mut self, other: &Latencies) -> Result<()> {
        self.0.add(&other.0).map_err(|error| BenchError::Setting(format!("latency histogram: {error}")))
    }

    /// Number of calls counted.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is reported.
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
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Half of the calls took at most this long.
    pub p50_us: f64,
    /// 99 of 100 calls took at most this long.
    pub p99_us: f64,
    /// 999 of 1,000 calls took at most this long.
    pub p999_us: f64,
    /// The slowest call.
    pub max_us: f64,
}

/// The middle of some figures, the mean of the middle two when their number is even; `None` without figures.
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
