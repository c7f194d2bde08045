//! Caches that another member keeps, as known to a member that stands by.
//!
//! ```text
//!  the home announces the cache on its connection in the client's name ──► Standby
//!                                                   │ that connection has ended, for GRACE
//!                        the home is a member ◄─────┴─────► the home has left
//!                                 │                              │ this is the first member
//!                                 │                              │ with data
//!                     clients learn of a loss          the cache is rebuilt here
//! ```
//!
//! The home's connection to this member ends with the client's own connection to the home, or with
//! the home. In both cases the client misses later changes, and is notified of the loss by every
//! member that it listens to. A repeated notification is harmless. While the home is a member it
//! may return, and send events to the client. Until then no other member may send events of the
//! cache, see `mod.rs`.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use filbert_grid::{ClusterView, GridError, PartitionId, Reservation, check_name};
use filbert_wire::{CorrelationId, Uuid};

use super::{Channel, QueryCache, QueryCaches, registry::Registry};
use crate::client_link::ClientLink;

/// The time between the end of its connection and the assumption that a home is lost. A broken
/// connection is opened again within half a second.
const GRACE: Duration = Duration::from_secs(3);

/// The approximate size of a standby without its names and its request, in bytes.
const STANDBY_BYTES: usize = 512;

/// A cache that another member keeps.
pub(crate) struct Standby {
    /// The id of the registration.
    pub(crate) id: Uuid,
    /// The member that keeps the cache.
    pub(crate) home: Uuid,
    /// The cache's name.
    pub(crate) name: String,
    /// The client.
    pub(crate) owner: Uuid,
    /// The client's request for the cache.
    pub(crate) message: Box<[u8]>,
    /// The correlation id of the request. A later request of the client has a greater one.
    pub(crate) request_id: CorrelationId,
    /// The connection on which the home has announced the cache.
    link: Weak<ClientLink>,
    /// The time at which that connection ended.
    since: Option<Instant>,
    is_notified: bool,
    _room: Option<Reservation>,
}

impl Standby {
    pub(crate) fn new(
        (id, home, owner): (Uuid, Uuid, Uuid),
        name: &str,
        message: &[u8],
        request_id: CorrelationId,
        link: &Arc<ClientLink>,
    ) -> Self {
        let link = Arc::downgrade(link);
        let (name, message) = (name.to_owned(), message.into());
        Self { id, home, name, owner, message, request_id, link, since: None, is_notified: false, _room: None }
    }

    /// Records the end of a connection.
    pub(super) fn leave(&mut self, link: &Arc<ClientLink>, now: Instant) {
        if std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link)) {
            self.since.get_or_insert(now);
        }
    }

    /// Whether the home was lost more than `timeout` ago, and the client does not listen here.
    pub(super) fn is_over(&self, now: Instant, timeout: Duration, channel: Option<&Arc<Channel>>) -> bool {
        let is_long_gone = self.since.is_some_and(|since| now.saturating_duration_since(since) > timeout);
        is_long_gone && channel.is_none_or(|channel| !self.is_heard(channel))
    }

    /// Whether the cache's client listens here.
    fn is_heard(&self, channel: &Channel) -> bool {
        channel.0.lock().iter().any(|subscriber| subscriber.owner == self.owner)
    }

    fn is_lost(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= GRACE)
    }
}

impl QueryCaches {
    /// Records that another member keeps a cache. A cache with that name here ends. Returns `false`
    /// if this member knows a later request of the client for that cache.
    ///
    /// # Errors
    /// The client has `caches_max` caches already, there is not enough memory, or the name is too
    /// long.
    pub(crate) fn stand_by(&self, map: &str, mut standby: Standby, caches_max: usize) -> Result<bool, GridError> {
        let name = &*standby.name.clone();
        check_name("query cache", name)?;
        let bytes = STANDBY_BYTES + map.len() + name.len() + standby.message.len();
        standby._room = Some(self.budget.reserve(bytes)?);
        let mut registry = self.registry.lock();
        let key = (map.to_owned(), name.to_owned());
        let own = registry.caches.get(map).and_then(|of_map| of_map.get(name));
        let is_later = own.is_some_and(|own| {
            let request = own.request();
            request.owner == standby.owner && request.request_id.0 >= standby.request_id.0 && !own.is_closed()
        });
        let known = registry.standbys.get(&key);
        if is_later
            || known.is_some_and(|known| known.owner == standby.owner && known.request_id.0 > standby.request_id.0)
        {
            return Ok(false);
        }
        let of_owner = registry.standbys.iter().filter(|(other, of)| of.owner == standby.owner && **other != key);
        if of_owner.count() >= caches_max {
            return Err(GridError::LimitReached {
                what: "query caches of this client",
                setting: "query_caches_max",
                limit: caches_max,
            });
        }
        registry.standbys.insert(key, standby);
        let own = registry.caches.get_mut(map).and_then(|of_map| of_map.remove(name));
        drop(registry);
        if let Some(own) = own {
            own.close();
        }
        Ok(true)
    }

    /// Ends a registration by its id. Returns whether it existed.
    pub(crate) fn stand_down(&self, id: Uuid) -> bool {
        self.registry.lock().standbys.extract_if(|_, standby| standby.id == id).count() > 0
    }

    /// Notifies clients of caches whose home is lost. Returns the caches that this member must
    /// rebuild, with their maps.
    pub(crate) fn follow_homes(
        &self,
        now: Instant,
        view: &ClusterView,
        itself: Uuid,
        partition_count: u32,
    ) -> Vec<(String, Standby)> {
        let mut registry = self.registry.lock();
        if !registry.standbys.values().any(|standby| standby.is_lost(now)) {
            return Vec::new();
        }
        let first = view.members.iter().find(|member| !member.is_lite).map(|member| member.uuid);
        let is_mine = |standby: &Standby| view.member(standby.home).is_none() && first == Some(itself);
        let Registry { standbys, channels, .. } = &mut *registry;
        let mut mine = Vec::new();
        for ((map, name), standby) in standbys.iter_mut().filter(|(_, standby)| standby.is_lost(now)) {
            let Some(channel) = channels.get(name).filter(|channel| standby.is_heard(channel)) else { continue };
            if is_mine(standby) {
                mine.push((map.clone(), name.clone()));
            } else if !standby.is_notified {
                standby.is_notified = true;
                tracing::debug!(map, name, home = %standby.home, "the home of a query cache is lost");
                channel.send_loss(map, "", (0..partition_count).map(PartitionId));
            }
        }
        mine.into_iter().filter_map(|key| Some((key.0.clone(), standbys.remove(&key)?))).collect()
    }

    /// The cache for which other members stand by under this registration, unless it has ended.
    pub(crate) fn registered(&self, registration: Uuid) -> Option<Arc<QueryCache>> {
        let registry = self.registry.lock();
        let mut caches = registry.caches.values().flat_map(HashMap::values);
        caches.find(|cache| *cache.registered.lock() == Some(registration) && !cache.is_closed()).cloned()
    }

    /// Announces a cache that this member has taken over to the other members. The announcement is
    /// sent on the next turn of a connection of its client.
    pub(crate) fn announce(&self, cache: &QueryCache) {
        self.unannounced.store(true, Ordering::Release);
        for subscriber in cache.channel.0.lock().iter().filter(|subscriber| subscriber.owner == cache.request.owner) {
            subscriber.link.outbox.poke();
        }
    }

    /// Whether there may be a cache that was not announced.
    #[inline]
    pub(crate) fn any_unannounced(&self) -> bool {
        self.unannounced.load(Ordering::Acquire)
    }

    /// The caches of a client that were not announced.
    pub(crate) fn unannounced_of(&self, client: Uuid) -> Vec<Arc<QueryCache>> {
        let registry = self.registry.lock();
        let caches = registry.caches.values().flat_map(HashMap::values);
        let unannounced = caches.filter(|cache| cache.registered.lock().is_none() && !cache.is_closed());
        let (own, others): (Vec<_>, Vec<_>) = unannounced.cloned().partition(|cache| cache.request.owner == client);
        self.unannounced.store(others.iter().any(|cache| !cache.channel.is_empty()), Ordering::Release);
        own
    }

    /// Whether this member keeps caches.
    pub(crate) fn is_home(&self) -> bool {
        !self.registry.lock().caches.is_empty()
    }

    /// Notifies the listeners to a cache that changes of all partitions are lost.
    pub(crate) fn send_loss(&self, map: &str, name: &str, partition_count: u32) {
        let channel = self.registry.lock().channels.get(name).cloned();
        if let Some(channel) = channel {
            channel.send_loss(map, "", (0..partition_count).map(PartitionId));
        }
    }

    /// Ends all caches and notifies their clients, because this member no longer receives all
    /// changes.
    pub(crate) fn end_all(&self) {
        let caches = std::mem::take(&mut self.registry.lock().caches);
        for cache in caches.values().flat_map(HashMap::values) {
            cache.close();
            cache.send_loss();
        }
    }
}
