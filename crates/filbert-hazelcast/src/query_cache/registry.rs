//! The query caches of a door, and their listeners.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use filbert_grid::{Clients, GridError, Map, MemoryBudget, check_name};
use filbert_wire::{CorrelationId, Uuid};
use parking_lot::Mutex;

use super::{CacheRequest, Channel, Phase, QueryCache, Reader, Standby, Subscriber};
use crate::client_link::ClientLink;

/// All query caches of a door. The registry's lock is never held during a call of a map.
pub(crate) struct QueryCaches {
    pub(super) registry: Mutex<Registry>,
    /// The budget for caches and their changes.
    pub(super) budget: MemoryBudget,
    /// Whether there may be a cache for which other members were not asked to stand by.
    pub(super) unannounced: AtomicBool,
}

#[derive(Default)]
pub(super) struct Registry {
    /// By map, then by the name of the cache.
    pub(super) caches: HashMap<String, HashMap<String, Arc<QueryCache>>>,
    /// By the name of the cache.
    pub(super) channels: HashMap<String, Arc<Channel>>,
    /// Caches that other members keep, by map and by name.
    pub(super) standbys: HashMap<(String, String), Standby>,
    /// The number of listeners to all caches.
    listeners: usize,
}

/// The approximate size of a registration without its name, in bytes.
const LISTENER_BYTES: usize = 256;

impl fmt::Debug for QueryCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueryCaches").field(&self.registry.lock().channels.len()).finish()
    }
}

impl QueryCaches {
    /// Creates an empty registry. All caches together use at most a quarter of the budget, so there
    /// is always room for other buffers.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let budget = budget.share(budget.bytes_max() / 4, "buffers_bytes_max, of which query caches have a quarter");
        Self { registry: Mutex::default(), budget, unannounced: AtomicBool::new(false) }
    }

    /// Sends the events of the caches with this name to a client. Returns the client's own caches
    /// with this name. They keep changes again if the client was disconnected.
    ///
    /// # Errors
    /// There are `listeners_max` such listeners already, there is not enough memory, or the name is
    /// too long.
    pub(crate) fn subscribe(
        &self,
        name: &str,
        owner: Uuid,
        (id, link, correlation): (Uuid, Arc<ClientLink>, CorrelationId),
        listeners_max: usize,
        budget: &MemoryBudget,
    ) -> Result<Vec<Arc<QueryCache>>, GridError> {
        check_name("query cache", name)?;
        let room = budget.reserve(LISTENER_BYTES + name.len())?;
        let mut registry = self.registry.lock();
        if registry.listeners >= listeners_max {
            return Err(GridError::LimitReached {
                what: "listeners to query caches",
                setting: "query_cache_listeners_max",
                limit: listeners_max,
            });
        }
        registry.listeners += 1;
        let channel = registry.channels.entry(name.to_owned()).or_default();
        channel.0.lock().push(Subscriber { id, owner, link, correlation, _room: room });
        let of_name = registry.caches.values().filter_map(|of_map| of_map.get(name));
        let own: Vec<_> = of_name.filter(|cache| cache.request.owner == owner).cloned().collect();
        drop(registry);
        own.iter().for_each(QueryCache::come_back);
        Ok(own)
    }

    /// Ends such a registration. Returns whether it existed.
    pub(crate) fn unsubscribe(&self, name: &str, id: Uuid) -> bool {
        let mut registry = self.registry.lock();
        let Some(channel) = registry.channels.get(name).cloned() else { return false };
        let gone = channel.forget(|subscriber| subscriber.id == id);
        registry.listeners -= gone;
        gone > 0
    }

    /// Ends the registrations of a connection. A cache drops its changes if its client has no
    /// connection. It also drops them if it has no listener, because other members may still have a
    /// connection to this one in the client's name.
    pub(crate) fn disconnect(&self, link: &Arc<ClientLink>, clients: &Clients) {
        let mut registry = self.registry.lock();
        let is_of_link = |subscriber: &Subscriber| Arc::ptr_eq(&subscriber.link, link);
        let mut gone = 0;
        for (name, channel) in &registry.channels {
            let forgotten = channel.forget(is_of_link);
            gone += forgotten;
            if forgotten > 0 && channel.is_empty() {
                let of_name = registry.caches.values().filter_map(|of_map| of_map.get(name));
                of_name.for_each(|cache| cache.leave());
            }
        }
        registry.listeners -= gone;
        let caches = registry.caches.values().flat_map(HashMap::values);
        caches.filter(|cache| !clients.is_connected(cache.request.owner)).for_each(|cache| cache.leave());
        let now = Instant::now();
        registry.standbys.values_mut().for_each(|standby| standby.leave(link, now));
    }

    /// Creates a cache. It replaces a cache with the same name.
    ///
    /// # Errors
    /// The client has `caches_max` caches already, there is not enough memory, or the name is too
    /// long.
    pub(crate) fn create(
        &self,
        map: &Arc<Map>,
        request: CacheRequest,
        reader: Reader,
        caches_max: usize,
    ) -> Result<Arc<QueryCache>, GridError> {
        check_name("query cache", &request.name)?;
        let mut registry = self.registry.lock();
        let replaces = |cache: &QueryCache| cache.request.name == request.name && cache.map.name() == map.name();
        let owned = |cache: &&Arc<QueryCache>| cache.request.owner == request.owner && !replaces(cache);
        if registry.caches.values().flat_map(HashMap::values).filter(owned).count() >= caches_max {
            return Err(GridError::LimitReached {
                what: "query caches of this client",
                setting: "query_caches_max",
                limit: caches_max,
            });
        }
        let name = request.name.clone();
        let channel = registry.channels.entry(name.clone()).or_default().clone();
        let cache = Arc::new(QueryCache::new(map.clone(), request, reader, channel, &self.budget)?);
        registry.standbys.remove(&(map.name().to_owned(), name.clone()));
        let replaced = registry.caches.entry(map.name().to_owned()).or_default().insert(name, cache.clone());
        drop(registry);
        if let Some(replaced) = replaced {
            replaced.close();
        }
        Ok(cache)
    }

    /// The cache of a map with this name, unless it has ended.
    pub(crate) fn find(&self, map: &str, name: &str) -> Option<Arc<QueryCache>> {
        let found = self.registry.lock().caches.get(map)?.get(name).cloned();
        found.filter(|cache| !cache.is_closed())
    }

    /// Ends a cache. Returns whether it existed.
    pub(crate) fn destroy(&self, map: &str, name: &str) -> bool {
        let mut registry = self.registry.lock();
        registry.standbys.remove(&(map.to_owned(), name.to_owned()));
        let Some(of_map) = registry.caches.get_mut(map) else { return false };
        let removed = of_map.remove(name);
        if of_map.is_empty() {
            registry.caches.remove(map);
        }
        drop(registry);
        removed.map(|cache| cache.close()).is_some()
    }

    /// Ends the caches that have had no listener, or no connected client, for `timeout`. Removes
    /// caches that have ended with their map, and unused names.
    pub(crate) fn sweep(&self, now: Instant, timeout: Duration, clients: &Clients) {
        let mut registry = self.registry.lock();
        if registry.channels.is_empty() && registry.standbys.is_empty() {
            return;
        }
        let is_over = |cache: &Arc<QueryCache>| {
            let mut state = cache.state.lock();
            if matches!(state.phase, Phase::Closed) {
                return true;
            }
            if !cache.channel.is_empty() && clients.is_connected(cache.request.owner) {
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
        let Registry { standbys, channels, .. } = &mut *registry;
        standbys.retain(|(_, name), standby| !standby.is_over(now, timeout, channels.get(name)));
        // The registry holds one reference, and each cache another.
        registry.channels.retain(|_, channel| Arc::strong_count(channel) > 1 || !channel.is_empty());
        drop(registry);
        ended.iter().for_each(|cache| cache.close());
    }
}

/// A map's listener and its cache reference each other. Closing the cache breaks the cycle.
impl Drop for QueryCaches {
    fn drop(&mut self) {
        let caches = std::mem::take(&mut self.registry.get_mut().caches);
        caches.values().flat_map(HashMap::values).for_each(|cache| cache.close());
    }
}
