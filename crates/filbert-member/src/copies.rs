//! Copies for statements: as long as statements are asked in the cluster, members with data follow the groups in which they have no vote.
//!
//! A statement reads all partitions where it is asked (see `reading.rs`). With more members than replicas, and for a member that is about to
//! leave, a vote in each group is not to be had; a copy without one is, and it costs no majority anything. It costs memory: a member whose limit
//! leaves no room for all data follows nothing, and refuses statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::partitions::GridSlot;
use crate::view::Views;

/// For so long after a statement a member says that it is asked: sessions that rest for a while find the copies as they were.
const ASKED_MAX: Duration = Duration::from_secs(600);
/// The part of a member's memory limit that all data may take, in percent: the rest is for what is written meanwhile.
const FILLED_PERCENT_MAX: u128 = 90;

/// Whether this member is asked statements, and whether it follows all groups for them.
pub(crate) struct Copies {
    is_lite: bool,
    views: Arc<Views>,
    grid: GridSlot,
    begun: Instant,
    /// When it was asked last, in milliseconds since it began, and 1; 0: never.
    asked_ms: AtomicU64,
}

impl Copies {
    pub(crate) fn new(is_lite: bool, views: Arc<Views>, grid: GridSlot) -> Self {
        Copies { is_lite, views, grid, begun: Instant::now(), asked_ms: AtomicU64::new(0) }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Takes note of a statement.
    pub(crate) fn note_asked(&self) {
        self.asked_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Whether this member was asked lately.
    pub(crate) fn is_asked(&self) -> bool {
        let asked_ms = self.asked_ms.load(Ordering::Relaxed);
        asked_ms > 0 && u128::from(self.now_ms().saturating_sub(asked_ms)) < ASKED_MAX.as_millis()
    }

    /// Whether this member may hold all data.
    pub(crate) fn may_follow(&self) -> bool {
        let limit = self.grid.get().and_then(|grid| grid.config().memory_bytes_max);
        !self.is_lite && limit.is_none_or(|limit| has_room(self.views.data_bytes(), limit))
    }

    /// Whether this member is to be brought all groups.
    pub(crate) fn follows(&self) -> bool {
        (self.is_asked() || self.views.is_asked_elsewhere()) && self.may_follow()
    }
}

fn has_room(data_bytes: u64, limit_bytes: usize) -> bool {
    u128::from(data_bytes) * 100 <= limit_bytes as u128 * FILLED_PERCENT_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_data_must_leave_room_for_more() {
        assert!(has_room(0, 0));
        assert!(has_room(90, 100));
        assert!(!has_room(91, 100));
        assert!(!has_room(u64::MAX, usize::MAX));
    }
}
