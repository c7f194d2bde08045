//! A bounded cache of plans by statement text. A plan is dropped when its sources have changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filbert_grid::MemberMemory;
use parking_lot::RwLock;

use crate::memory::PLANS_PART;

/// Longer texts are planned each time: programs generate them, and they seldom repeat.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A plan that takes more than this part of the cache is large.
const LARGE: usize = 8;

struct Kept<P> {
    plan: Arc<P>,
    /// The approximate size of the plan and its text.
    bytes: usize,
    /// The version of the plan's sources. The plan is valid while the version is the same.
    version: u64,
    used: AtomicBool,
}

/// A bounded cache. When it is full, it drops entries that were not used since the last round.
pub(crate) struct PlanCache<P> {
    by_text: RwLock<Plans<P>>,
    plans_max: usize,
    bytes_max: usize,
    /// The account in which the plans count.
    memory: Arc<MemberMemory>,
}

struct Plans<P> {
    plans: HashMap<Box<str>, Kept<P>>,
    /// The sizes of all plans.
    bytes: usize,
}

impl<P> Plans<P> {
    /// Keeps the plans that satisfy a condition.
    fn retain(&mut self, mut keep: impl FnMut(&Kept<P>) -> bool) {
        self.plans.retain(|_, kept| keep(kept));
        self.bytes = self.plans.values().map(|kept| kept.bytes).sum();
    }

    fn remove(&mut self, text: &str) {
        if let Some(removed) = self.plans.remove(text) {
            self.bytes -= removed.bytes;
        }
    }

    fn insert(&mut self, text: &str, kept: Kept<P>) {
        self.bytes += kept.bytes;
        self.plans.insert(text.into(), kept);
    }
}

impl<P> PlanCache<P> {
    /// An empty cache, with a maximum number of plans and a maximum size of all plans together. The
    /// maximum size shrinks while the member's memory is scarce.
    pub(crate) fn new(plans_max: usize, bytes_max: usize, memory: Arc<MemberMemory>) -> Self {
        let plans = Plans { plans: HashMap::new(), bytes: 0 };
        PlanCache { by_text: RwLock::new(plans), plans_max, bytes_max, memory }
    }

    /// The plan of a text, if it was made at this version.
    pub(crate) fn find(&self, text: &str, version: u64) -> Option<Arc<P>> {
        let plans = self.by_text.read();
        let kept = plans.plans.get(text).filter(|kept| kept.version == version)?;
        if !kept.used.load(Ordering::Relaxed) {
            kept.used.store(true, Ordering::Relaxed);
        }
        Some(kept.plan.clone())
    }

    /// Adds a plan of `bytes` bytes. A plan that would take a large part of the cache is not kept.
    pub(crate) fn keep(&self, text: &str, version: u64, plan: Arc<P>, bytes: usize) {
        let bytes = bytes.max(text.len());
        let bytes_max = self.bytes_max_now();
        if text.len() > TEXT_BYTES_MAX || bytes > bytes_max / LARGE || self.plans_max == 0 {
            return;
        }
        let mut plans = self.by_text.write();
        let before = plans.bytes;
        plans.remove(text);
        let is_full = |plans: &Plans<P>| plans.plans.len() >= self.plans_max || plans.bytes + bytes > bytes_max;
        if is_full(&plans) {
            plans.retain(|kept| kept.version == version && kept.used.swap(false, Ordering::Relaxed));
        }
        while is_full(&plans) {
            // All entries were used: an arbitrary half of them goes.
            let mut keep = true;
            plans.retain(|_| {
                keep = !keep;
                keep
            });
        }
        plans.insert(text, Kept { plan, bytes, version, used: AtomicBool::new(true) });
        // Sizes are limited, and far from the range's end.
        self.memory.note_plans(plans.bytes.cast_signed() - before.cast_signed());
    }

    /// Bytes that the plans may take now: the limit, or less while the member's memory is scarce.
    pub(crate) fn bytes_max_now(&self) -> usize {
        self.bytes_max.min(self.memory.room_of_statements() / PLANS_PART)
    }

    /// Drops plans until they take no more than they may now.
    pub(crate) fn shrink(&self) {
        let bytes_max = self.bytes_max_now();
        let mut plans = self.by_text.write();
        let before = plans.bytes;
        while plans.bytes > bytes_max {
            let mut keep = true;
            plans.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.memory.note_plans(plans.bytes.cast_signed() - before.cast_signed());
    }

    /// The number of plans that satisfy a condition.
    pub(crate) fn count(&self, which: impl Fn(&P) -> bool) -> usize {
        self.by_text.read().plans.values().filter(|kept| which(&kept.plan)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache<P>(plans_max: usize, bytes_max: usize) -> PlanCache<P> {
        PlanCache::new(plans_max, bytes_max, Arc::new(MemberMemory::new(None)))
    }

    #[test]
    fn a_plan_is_found_until_its_version_changes() {
        let cache = cache(10, 1_000);
        cache.keep("SELECT 1", 1, Arc::new(7), 0);
        assert_eq!(cache.find("SELECT 1", 1).as_deref(), Some(&7));
        assert_eq!(cache.find("SELECT 1", 2), None);
        assert_eq!(cache.find("SELECT 2", 1), None);
        assert_eq!(cache.count(|plan| *plan == 7), 1);
    }

    #[test]
    fn the_cache_stays_within_its_limit_and_keeps_what_is_used() {
        let cache = cache(4, 1 << 30);
        cache.keep("used", 1, Arc::new(0), 0);
        for number in 0..100 {
            cache.keep(&number.to_string(), 1, Arc::new(number), 0);
            cache.find("used", 1);
            assert!(cache.count(|_| true) <= 4);
        }
    }

    #[test]
    fn the_plans_together_stay_within_their_bytes() {
        let cache = cache(100, 1_000);
        let sizes = (5..=50).cycle().take(1_000).chain([125, 125, 125, 126, 1_000]);
        for (number, bytes) in sizes.enumerate() {
            cache.keep(&number.to_string(), 1, Arc::new(bytes), bytes);
            let plans = cache.by_text.read();
            let held: usize = plans.plans.values().map(|kept| *kept.plan).sum();
            assert!(held <= 1_000 && held == plans.bytes, "{held} bytes");
            assert_eq!(cache.memory.plans(), held);
        }
        assert_eq!(cache.count(|bytes| *bytes == 125), 3);
        assert_eq!(cache.count(|bytes| *bytes > 125), 0, "too large");
        cache.keep("again", 1, Arc::new(60), 60);
        cache.keep("again", 2, Arc::new(70), 70);
        assert_eq!(cache.count(|bytes| *bytes == 60), 0);
    }

    #[test]
    fn the_cache_gets_smaller_while_memory_is_scarce() {
        let memory = Arc::new(MemberMemory::new(Some(128 << 20)));
        let cache = PlanCache::new(1_000, 64 << 20, memory.clone());
        for number in 0..60_usize {
            cache.keep(&number.to_string(), 1, Arc::new(number), 1 << 20);
            assert!(memory.plans() <= 8 << 20);
        }
        let held = memory.plans();
        cache.shrink();
        assert!(held > 0 && memory.plans() == held, "what fits stays");
    }

    #[test]
    fn a_text_that_is_too_long_is_not_kept() {
        let cache = cache(4, 1 << 30);
        cache.keep(&"x".repeat(TEXT_BYTES_MAX + 1), 1, Arc::new(0), 0);
        assert_eq!(cache.count(|_| true), 0);
    }
}
