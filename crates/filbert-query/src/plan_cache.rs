//! A bounded cache of plans by statement text. A plan is not found any more once its sources have
//! changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use filbert_grid::MemberMemory;
use parking_lot::RwLock;

use crate::memory::PLANS_PART;
use crate::plan_sources::{Changes, Sources, Version};

/// Longer texts are planned each time: programs generate them, and they seldom repeat.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A plan that takes more than this part of the cache is large.
const LARGE: usize = 8;

/// A plan with the definitions that it was made from.
pub(crate) struct Found<P> {
    pub(crate) plan: Arc<P>,
    pub(crate) sources: Arc<Sources>,
}

impl<P> Clone for Found<P> {
    fn clone(&self) -> Self {
        Found { plan: self.plan.clone(), sources: self.sources.clone() }
    }
}

struct Kept<P> {
    found: Found<P>,
    /// The approximate size of the plan and its text.
    bytes: usize,
    valid_at: LastValid,
    used: AtomicBool,
}

/// The last version of the definitions at which a plan was known to be valid. Both parts only
/// increase, each by itself: a plan is valid at a version of the catalog whatever the layouts are.
struct LastValid {
    catalog: AtomicU64,
    layouts: AtomicU64,
}

impl LastValid {
    fn new(version: Version) -> Self {
        LastValid { catalog: AtomicU64::new(version.catalog), layouts: AtomicU64::new(version.layouts) }
    }

    fn version(&self) -> Version {
        Version { catalog: self.catalog.load(Ordering::Relaxed), layouts: self.layouts.load(Ordering::Relaxed) }
    }

    fn follow(&self, version: Version) {
        self.catalog.fetch_max(version.catalog, Ordering::Relaxed);
        self.layouts.fetch_max(version.layouts, Ordering::Relaxed);
    }
}

/// A bounded cache. When it is full, it drops entries that were not used since the last round.
pub(crate) struct PlanCache<P> {
    by_text: RwLock<Plans<P>>,
    plans_max: usize,
    bytes_max: usize,
    /// The account in which the plans count.
    memory: Arc<MemberMemory>,
    changes: Changes,
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
    pub(crate) fn new(plans_max: usize, bytes_max: usize, memory: Arc<MemberMemory>, changes: Changes) -> Self {
        let plans = Plans { plans: HashMap::new(), bytes: 0 };
        PlanCache { by_text: RwLock::new(plans), plans_max, bytes_max, memory, changes }
    }

    /// The plan of a text, if it is still valid.
    pub(crate) fn find(&self, text: &str) -> Option<Found<P>> {
        let plans = self.by_text.read();
        let kept = plans.plans.get(text).filter(|kept| self.is_valid(kept))?;
        if !kept.used.load(Ordering::Relaxed) {
            kept.used.store(true, Ordering::Relaxed);
        }
        Some(kept.found.clone())
    }

    /// Whether no change since a plan was last valid concerns it.
    fn is_valid(&self, kept: &Kept<P>) -> bool {
        let last = kept.valid_at.version();
        let Some(version) = self.changes.valid_since(last, &kept.found.sources) else { return false };
        if version != last {
            kept.valid_at.follow(version);
        }
        true
    }

    /// Adds a plan of `bytes` bytes that was made at `version`. A plan that would take a large part
    /// of the cache is not kept.
    pub(crate) fn keep(&self, text: &str, version: Version, found: Found<P>, bytes: usize) {
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
            plans.retain(|kept| self.is_valid(kept) && kept.used.swap(false, Ordering::Relaxed));
        }
        while is_full(&plans) {
            // All entries were used: an arbitrary half of them goes.
            let mut keep = true;
            plans.retain(|_| {
                keep = !keep;
                keep
            });
        }
        let kept = Kept { found, bytes, valid_at: LastValid::new(version), used: AtomicBool::new(true) };
        plans.insert(text, kept);
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
        self.by_text.read().plans.values().filter(|kept| which(&kept.found.plan)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_sources::{Definition, looked_up, recorded};

    fn cache<P>(plans_max: usize, bytes_max: usize) -> PlanCache<P> {
        PlanCache::new(plans_max, bytes_max, Arc::new(MemberMemory::new(None)), Changes::default())
    }

    fn without_sources<P>(plan: P) -> Found<P> {
        Found { plan: Arc::new(plan), sources: Arc::default() }
    }

    fn keep<P>(cache: &PlanCache<P>, text: &str, plan: P, bytes: usize) {
        cache.keep(text, cache.changes.version(), without_sources(plan), bytes);
    }

    #[tokio::test]
    async fn a_plan_is_found_until_its_sources_change() {
        let cache = cache(10, 1_000);
        let relation = |name: &str| Definition::Relation(name.to_owned());
        let ((), sources) = recorded(async { looked_up(|| relation("t")) }).await;
        let found = Found { plan: Arc::new(7), sources: Arc::new(sources) };
        cache.keep("SELECT 1", cache.changes.version(), found, 0);
        let is_found = |text: &str| cache.find(text).map(|found| *found.plan) == Some(7);
        assert!(is_found("SELECT 1") && !is_found("SELECT 2"));
        for _ in 0..3_000 {
            cache.changes.catalog.note(relation("other"));
            assert!(is_found("SELECT 1"));
        }
        cache.changes.catalog.note(relation("t"));
        assert!(!is_found("SELECT 1"));
        assert_eq!(cache.count(|plan| *plan == 7), 1);
    }

    #[test]
    fn the_cache_stays_within_its_limit_and_keeps_what_is_used() {
        let cache = cache(4, 1 << 30);
        keep(&cache, "used", 0, 0);
        for number in 0..100 {
            keep(&cache, &number.to_string(), number, 0);
            cache.find("used");
            assert!(cache.count(|_| true) <= 4);
        }
    }

    #[test]
    fn the_plans_together_stay_within_their_bytes() {
        let cache = cache(100, 1_000);
        let sizes = (5..=50).cycle().take(1_000).chain([125, 125, 125, 126, 1_000]);
        for (number, bytes) in sizes.enumerate() {
            keep(&cache, &number.to_string(), bytes, bytes);
            let plans = cache.by_text.read();
            let held: usize = plans.plans.values().map(|kept| *kept.found.plan).sum();
            assert!(held <= 1_000 && held == plans.bytes, "{held} bytes");
            assert_eq!(cache.memory.plans(), held);
        }
        assert_eq!(cache.count(|bytes| *bytes == 125), 3);
        assert_eq!(cache.count(|bytes| *bytes > 125), 0, "too large");
        keep(&cache, "again", 60, 60);
        keep(&cache, "again", 70, 70);
        assert_eq!(cache.count(|bytes| *bytes == 60), 0);
    }

    #[test]
    fn the_cache_gets_smaller_while_memory_is_scarce() {
        let memory = Arc::new(MemberMemory::new(Some(128 << 20)));
        let cache = PlanCache::new(1_000, 64 << 20, memory.clone(), Changes::default());
        for number in 0..60_usize {
            keep(&cache, &number.to_string(), number, 1 << 20);
            assert!(memory.plans() <= 8 << 20);
        }
        let held = memory.plans();
        cache.shrink();
        assert!(held > 0 && memory.plans() == held, "what fits stays");
    }

    #[test]
    fn a_text_that_is_too_long_is_not_kept() {
        let cache = cache(4, 1 << 30);
        keep(&cache, &"x".repeat(TEXT_BYTES_MAX + 1), 0, 0);
        assert_eq!(cache.count(|_| true), 0);
    }
}
