//! A bounded cache of plans by statement text. A plan is dropped when its sources have changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// Longer texts are planned each time: programs generate them, and they seldom repeat.
const TEXT_BYTES_MAX: usize = 64 << 10;

struct Kept<P> {
    plan: Arc<P>,
    /// The version of the plan's sources. The plan is valid while the version is the same.
    version: u64,
    used: AtomicBool,
}

/// A bounded cache. When it is full, it drops entries that were not used since the last round.
pub(crate) struct PlanCache<P> {
    by_text: RwLock<HashMap<Box<str>, Kept<P>>>,
    plans_max: usize,
}

impl<P> PlanCache<P> {
    pub(crate) fn new(plans_max: usize) -> Self {
        PlanCache { by_text: RwLock::default(), plans_max }
    }

    /// The plan of a text, if it was made at this version.
    pub(crate) fn find(&self, text: &str, version: u64) -> Option<Arc<P>> {
        let plans = self.by_text.read();
        let kept = plans.get(text).filter(|kept| kept.version == version)?;
        if !kept.used.load(Ordering::Relaxed) {
            kept.used.store(true, Ordering::Relaxed);
        }
        Some(kept.plan.clone())
    }

    /// Adds a plan.
    pub(crate) fn keep(&self, text: &str, version: u64, plan: Arc<P>) {
        if text.len() > TEXT_BYTES_MAX || self.plans_max == 0 {
            return;
        }
        let mut plans = self.by_text.write();
        if plans.len() >= self.plans_max && !plans.contains_key(text) {
            plans.retain(|_, kept| kept.version == version && kept.used.swap(false, Ordering::Relaxed));
            if plans.len() >= self.plans_max {
                // All entries were used: an arbitrary half of them goes.
                let mut keep = false;
                plans.retain(|_, _| {
                    keep = !keep;
                    keep
                });
            }
        }
        plans.insert(text.into(), Kept { plan, version, used: AtomicBool::new(true) });
    }

    /// The number of plans that satisfy a condition.
    pub(crate) fn count(&self, which: impl Fn(&P) -> bool) -> usize {
        self.by_text.read().values().filter(|kept| which(&kept.plan)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_found_until_its_version_changes() {
        let cache = PlanCache::new(10);
        cache.keep("SELECT 1", 1, Arc::new(7));
        assert_eq!(cache.find("SELECT 1", 1).as_deref(), Some(&7));
        assert_eq!(cache.find("SELECT 1", 2), None);
        assert_eq!(cache.find("SELECT 2", 1), None);
        assert_eq!(cache.count(|plan| *plan == 7), 1);
    }

    #[test]
    fn the_cache_stays_within_its_limit_and_keeps_what_is_used() {
        let cache = PlanCache::new(4);
        cache.keep("used", 1, Arc::new(0));
        for number in 0..100 {
            cache.keep(&number.to_string(), 1, Arc::new(number));
            cache.find("used", 1);
            assert!(cache.count(|_| true) <= 4);
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_not_kept() {
        let cache = PlanCache::new(4);
        cache.keep(&"x".repeat(TEXT_BYTES_MAX + 1), 1, Arc::new(0));
        assert_eq!(cache.count(|_| true), 0);
    }
}
