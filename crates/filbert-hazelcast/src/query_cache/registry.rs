//! The query caches of a door, and who listens to them.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use filbert_grid::{GridError, Map};
use filbert_wire::{CorrelationId, Uuid};
use parking_lot::Mutex;

use super::{Channel, QueryCache, Subscriber, Wanted};
use crate::link::Link;

/// All of them. Its lock is never held while a map is called.
#[derive(Default)]
pub(crate) struct QueryCaches(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    /// By map, then by the cache's name.
    caches: HashMap<String, HashMap<String, Arc<QueryCache>>>,
    /// By the name of the cache.
    channels: HashMap<String, Arc<Channel>>,
}

impl fmt::Debug for QueryCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueryCaches").field(&self.0.lock().channels.len()).finish()
    }
}

impl QueryCaches {
    /// Has events of the caches of this name sent to a client.
    pub(crate) fn subscribe(&self, name: &str, id: Uuid, link: Arc<Link>, correlation: CorrelationId) {
        let mut registry = self.0.lock();
        let channel = registry.channels.entry(name.to_owned()).or_default();
        channel.0.lock().push(Subscriber { id, link, correlation });
    }

    /// Ends that; whether there was such a registration.
    pub(crate) fn unsubscribe(&self, name: &str, id: Uuid) -> bool {
        let registry = self.0.lock();
        let Some(channel) = registry.channels.get(name) else { return false };
        let mut subscribers = channel.0.lock();
        let before = subscribers.len();
        subscribers.retain(|subscriber| subscriber.id != id);
        subscribers.len() < before
    }

    /// Ends what a connection had registered.
    pub(crate) fn disconnect(&self, link: &Arc<Link>) {
        let registry = self.0.lock();
        for channel in registry.channels.values() {
            channel.0.lock().retain(|subscriber| !Arc::ptr_eq(&subscriber.link, link));
        }
    }

    /// Makes a cache, in the place of one of the same name.
    ///
    /// # Errors
    /// The client has `caches_max` already.
    pub(crate) fn create(
        &self,
        map: &Arc<Map>,
        wanted: Wanted,
        caches_max: usize,
    ) -> Result<Arc<QueryCache>, GridError> {
        let mut registry = self.0.lock();
        let replaces = |cache: &QueryCache| cache.wanted.name == wanted.name && cache.map.name() == map.name();
        let owned = |cache: &&Arc<QueryCache>| cache.wanted.owner == wanted.owner && !replaces(cache);
        if registry.caches.values().flat_map(HashMap::values).filter(owned).count() >= caches_max {
            return Err(GridError::LimitReached {
                what: "query caches of this client",
                setting: "query_caches_max",
                limit: caches_max,
            });
        }
        let name = wanted.name.clone();
        let channel = registry.channels.entry(name.clone()).or_default().clone();
        let cache = Arc::new(QueryCache::new(map.clone(), wanted, channel));
        let replaced = registry.caches.entry(map.name().to_owned()).or_default().insert(name, cache.clone());
        drop(registry);
        if let Some(replaced) = replaced {
            replaced.close();
        }
        Ok(cache)
    }

    /// A cache of a map.
    pub(crate) fn find(&self, map: &str, name: &str) -> Option<Arc<QueryCache>> {
        self.0.lock().caches.get(map)?.get(name).cloned()
    }

    /// Ends a cache; whether there was one.
    pub(crate) fn destroy(&self, map: &str, name: &str) -> bool {
        let mut registry = self.0.lock();
        let Some(of_map) = registry.caches.get_mut(map) else { return false };
        let removed = of_map.remove(name);
        if of_map.is_empty() {
            registry.caches.remove(map);
        }
        drop(registry);
        removed.map(|cache| cache.close()).is_some()
    }

    /// Ends the caches that nobody has listened to for `timeout`, and forgets names that nobody uses.
    pub(crate) fn sweep(&self, now: Instant, timeout: Duration) {
        let mut registry = self.0.lock();
        if registry.channels.is_empty() {
            return;
        }
        let is_over = |cache: &Arc<QueryCache>| {
            let mut state = cache.state.lock();
            if !cache.channel.is_empty() {
                state.orphaned = None;
                return false;
            }
            now.saturating_duration_since(*state.orphaned.get_or_insert(now)) > timeout
        };
        let mut ended = Vec::new();
        for of_map in registry.caches.values_mut() {
            ended.extend(of_map.extract_if(|_, cache| is_over(cache)).map(|(_, cache)| cache));
        }
        registry.caches.retain(|_, of_map| !of_map.is_empty());
        // The registry has one reference, each cache another.
        registry.channels.retain(|_, channel| Arc::strong_count(channel) > 1 || !channel.is_empty());
        drop(registry);
        ended.iter().for_each(|cache| cache.close());
    }
}

/// A map's listener and its cache refer to each other; this ends that.
impl Drop for QueryCaches {
    fn drop(&mut self) {
        let caches = std::mem::take(&mut self.0.get_mut().caches);
        caches.values().flat_map(HashMap::values).for_each(|cache| cache.close());
    }
}
