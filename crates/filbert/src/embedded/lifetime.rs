//! The lifetime of an entry.

use std::time::Duration;

use filbert_store::Expiry;

/// The lifetime of an entry after a write: its time to live and its max idle time. A part that is
/// not set comes from the map's settings.
///
/// ```
/// use std::time::Duration;
/// use filbert::Lifetime;
///
/// let session = Lifetime::ttl(Duration::from_secs(3600)).and_max_idle(Duration::from_secs(600));
/// let kept = Lifetime::FOREVER;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    expiry: Expiry,
}

impl Lifetime {
    /// The lifetime from the map's settings.
    pub const DEFAULT: Lifetime = Lifetime { expiry: Expiry { ttl_ms: -1, max_idle_ms: -1 } };
    /// No expiry, regardless of the map's settings.
    pub const FOREVER: Lifetime = Lifetime { expiry: Expiry { ttl_ms: 0, max_idle_ms: 0 } };

    /// A time to live: the entry expires this long after its last write. Rounded up to a
    /// millisecond. [`Duration::ZERO`] means for ever, as in Hazelcast.
    pub fn ttl(ttl: Duration) -> Lifetime {
        Lifetime { expiry: Expiry { ttl_ms: millis(ttl), ..Lifetime::DEFAULT.expiry } }
    }

    /// A max idle time: the entry expires this long after its last read or write. Rounded up to a
    /// millisecond. [`Duration::ZERO`] means for ever.
    pub fn max_idle(max_idle: Duration) -> Lifetime {
        Lifetime::DEFAULT.and_max_idle(max_idle)
    }

    /// Adds a max idle time.
    #[must_use]
    pub fn and_max_idle(self, max_idle: Duration) -> Lifetime {
        Lifetime { expiry: Expiry { max_idle_ms: millis(max_idle), ..self.expiry } }
    }

    pub(super) fn expiry(self) -> Expiry {
        self.expiry
    }
}

impl Default for Lifetime {
    fn default() -> Lifetime {
        Lifetime::DEFAULT
    }
}

/// Converts to whole milliseconds, rounded up: a short duration must not become 0, which means for
/// ever.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::millis;

    #[test]
    fn durations_round_up_to_milliseconds() {
        for (nanos, expect) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (5_000_000_000, 5000)] {
            assert_eq!(millis(Duration::from_nanos(nanos)), expect);
        }
        assert_eq!(millis(Duration::MAX), i64::MAX);
    }
}
