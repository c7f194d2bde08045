//! Where the grid reads the time. The store is told the time with each call; this is the one place that asks for it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use filbert_store::Millis;

/// A source of the time, in milliseconds since the Unix epoch.
///
/// The grid tolerates a clock that jumps or stands still: what expires then expires early or late, and nothing breaks.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Millis;
}

/// The wall clock at the time of its making plus the monotonic time since then.
///
/// So an adjustment of the system's clock while the member runs neither expires entries early nor keeps them for ever.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started_at_ms: i64,
    started: Instant,
}

impl SystemClock {
    /// A clock that starts at the system's time.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX), started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let elapsed_ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Millis(self.started_at_ms.saturating_add(elapsed_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_at_the_wall_clock_and_never_goes_back() {
        let clock = SystemClock::new();
        let first = clock.now();
        // 2024-01-01: a machine whose clock is before it could not have built this.
        assert!(first.0 > 1_704_067_200_000);
        assert!(clock.now().0 >= first.0);
    }
}
