//! A histogram of durations with four buckets per power of two, from 16 nanoseconds to two minutes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The first bucket counts durations below 2 to this power, in nanoseconds.
const FIRST_EXPONENT: u32 = 4;
/// The last bucket counts durations from 2 to this power on, in nanoseconds.
const LAST_EXPONENT: u32 = 37;
/// The number of buckets per power of two is 2 to this power.
const PARTS_BITS: u32 = 2;
const PARTS: u32 = 1 << PARTS_BITS;
const BUCKETS: usize = ((LAST_EXPONENT - FIRST_EXPONENT) * PARTS + 2) as usize;

/// A histogram of durations. Any number of threads can add to it.
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// The sum of all durations, in nanoseconds.
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram").field("count", &self.counts().count()).finish_non_exhaustive()
    }
}

impl Histogram {
    /// Adds a duration.
    pub fn observe(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(nanoseconds)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// A snapshot of the counts.
    pub fn counts(&self) -> HistogramCounts {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        HistogramCounts { buckets, sum: Duration::from_nanos(self.sum.load(Ordering::Relaxed)) }
    }
}

/// The bucket of a duration. Durations below `2^FIRST_EXPONENT` nanoseconds are in the first
/// bucket. The highest bit and the two bits below it determine the bucket of longer ones.
fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < 1 << FIRST_EXPONENT {
        return 0;
    }
    let exponent = nanoseconds.ilog2();
    if exponent >= LAST_EXPONENT {
        return BUCKETS - 1;
    }
    let part = (nanoseconds >> (exponent - PARTS_BITS)) as usize & (PARTS as usize - 1);
    1 + ((exponent - FIRST_EXPONENT) * PARTS) as usize + part
}

/// The exclusive upper bound of a bucket, in nanoseconds; `None` for the last bucket, which has
/// none.
fn end_of(bucket: usize) -> Option<u64> {
    let parts = u32::try_from(bucket).ok()?;
    if bucket + 1 >= BUCKETS {
        return None;
    }
    let (exponent, part) = (FIRST_EXPONENT + parts / PARTS, u64::from(parts % PARTS));
    Some((u64::from(PARTS) + part) << (exponent - PARTS_BITS))
}

/// A snapshot of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramCounts {
    buckets: Vec<u64>,
    sum: Duration,
}

impl HistogramCounts {
    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The number of durations below `2^exponent` nanoseconds. Exact for exponents of 4 to 37.
    pub fn below(&self, exponent: u32) -> u64 {
        let limit = 1_u64.checked_shl(exponent).unwrap_or(u64::MAX);
        let is_below = |(bucket, _): &(usize, &u64)| end_of(*bucket).is_some_and(|end| end <= limit);
        self.buckets.iter().enumerate().take_while(is_below).map(|(_, count)| count).sum()
    }

    /// The buckets in ascending order: the exclusive upper bound, if there is one, and the number
    /// of durations.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        self.buckets.iter().enumerate().map(|(bucket, count)| (end_of(bucket).map(Duration::from_nanos), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut last = 0;
        for bucket in 0..BUCKETS - 1 {
            let end = end_of(bucket).unwrap();
            assert!(end > last, "{bucket}");
            assert_eq!(bucket_of(end - 1), bucket, "{end}");
            assert_eq!(bucket_of(end), bucket + 1, "{end}");
            last = end;
        }
        assert_eq!(last, 1 << LAST_EXPONENT);
        assert_eq!(end_of(BUCKETS - 1), None);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_of(0), 0);
    }

    #[test]
    fn counts_below_a_power_of_two_are_exact() {
        let histogram = Histogram::default();
        for nanoseconds in [1, 15, 16, 1023, 1024, 1025, 1 << 37] {
            histogram.observe(Duration::from_nanos(nanoseconds));
        }
        let counts = histogram.counts();
        assert_eq!((counts.below(4), counts.below(10), counts.below(11), counts.below(37)), (2, 4, 6, 6));
        assert_eq!(counts.count(), 7);
        assert_eq!(counts.sum(), Duration::from_nanos((1 << 37) + 3104));
        assert_eq!(counts.buckets().map(|(_, count)| count).sum::<u64>(), 7);
    }
}
