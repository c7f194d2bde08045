//! Latencies as counts by size, from which percentiles of any stretch of time follow by subtraction.
//!
//! Bucket `b` counts what took less than `2^((b + 1) / 4)` microseconds and not less than the one before: four buckets for each
//! doubling, so that a percentile read from them is at most 19 % too high.

/// Number of buckets; the last one has everything from about a minute on.
pub(crate) const LATENCY_BUCKETS: usize = 104;

/// How many operations took how long since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatencyCounts(pub(crate) [u64; LATENCY_BUCKETS]);

impl Default for LatencyCounts {
    fn default() -> Self {
        LatencyCounts([0; LATENCY_BUCKETS])
    }
}

/// The bucket of a duration in microseconds.
pub(crate) fn bucket_of(micros: f64) -> usize {
    if micros <= 1.0 {
        return 0;
    }
    // The logarithm of a number above 1 is not negative, and the last bucket takes all that is larger.
    ((micros.log2() * 4.0) as usize).min(LATENCY_BUCKETS - 1)
}

impl LatencyCounts {
    /// What was counted since `before`, and its percentile in microseconds; `None` if nothing was.
    pub(super) fn percentile_since_us(&self, before: &LatencyCounts, percent: f64) -> Option<f64> {
        let counts = || self.0.iter().zip(&before.0).map(|(now, before)| now.saturating_sub(*before));
        let total: u64 = counts().sum();
        if total == 0 {
            return None;
        }
        let wanted = (total as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        let bucket = counts().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(((bucket + 1) as f64 / 4.0).exp2())
    }
}
