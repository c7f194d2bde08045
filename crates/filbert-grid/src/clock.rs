//! The clock of the grid. The store receives the time with each call, so this is the only module
//! that reads it.

use std::time::{SystemTime, UNIX_EPOCH};

use filbert_store::Millis;

/// A source of the time, in milliseconds since the Unix epoch.
///
/// The grid tolerates a clock that jumps or stops: entries then expire early or late, but nothing
/// breaks.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;
}

/// The wall clock at the creation of this object plus the monotonic time since then.
///
/// So an adjustment of the system clock while the member runs neither expires entries early nor
/// keeps them for ever. On Linux, it reads the kernel's coarse clock, which is at most a few
/// milliseconds behind and costs a fifth of the exact clock. Every operation reads it, and all
/// durations in the grid are in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started_at_ms: i64,
    started: monotonic::MonotonicTime,
}

impl SystemClock {
    /// A clock that starts at the current system time.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at_ms = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Self { started_at_ms, started: monotonic::MonotonicTime::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Millis {
        Millis(self.started_at_ms.saturating_add(self.started.elapsed_ms()))
    }
}

#[cfg(target_os = "linux")]
mod monotonic {
    //! The kernel's coarse monotonic clock, read without entering the kernel.

    use rustix::time::{ClockId, Timespec, clock_gettime};

    #[derive(Debug, Clone, Copy)]
    pub(super) struct MonotonicTime(Timespec);

    impl MonotonicTime {
        pub(super) fn now() -> Self {
            MonotonicTime(clock_gettime(ClockId::MonotonicCoarse))
        }

        #[inline]
        pub(super) fn elapsed_ms(self) -> i64 {
            let now = clock_gettime(ClockId::MonotonicCoarse);
            (now.tv_sec - self.0.tv_sec).saturating_mul(1_000) + (now.tv_nsec - self.0.tv_nsec) / 1_000_000
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod monotonic {
    //! The standard library's monotonic clock.

    use std::time::Instant;

    #[derive(Debug, Clone, Copy)]
    pub(super) struct MonotonicTime(Instant);

    impl MonotonicTime {
        pub(super) fn now() -> Self {
            MonotonicTime(Instant::now())
        }

        pub(super) fn elapsed_ms(self) -> i64 {
            i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_at_the_wall_clock_and_never_goes_back() {
        let clock = SystemClock::new();
        let first = clock.now();
        // 2024-01-01. A machine with an earlier time could not have built this test.
        assert!(first.0 > 1_704_067_200_000);
        assert!(clock.now().0 >= first.0);
    }
}
