//! Latencies of bystanders: a histogram and its reported figures.

use std::time::Duration;

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;

/// The maximum recorded latency, in microseconds: two minutes. Requests time out much earlier.
const LATENCY_US_MAX: u64 = 120_000_000;

/// Latencies with three significant digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Result<Latencies> {
        let made = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3);
        made.map(Latencies).map_err(|error| anyhow!("a histogram of latencies: {error}"))
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns a percentile in milliseconds.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1_000.0
    }

    pub(crate) fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1_000.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut latencies = Latencies::new().unwrap();
        (1..=1_000).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        assert!((latencies.percentile_ms(50.0) - 500.0).abs() < 2.0);
        assert!((latencies.max_ms() - 1_000.0).abs() < 2.0);
        latencies.clear();
        assert_eq!(latencies.count(), 0);
    }
}
