//! Caches that another member keeps, as the members know of them that stand by.
//!
//! ```text
//!  the home's connection in the client's name says so ──► Standby
//!                                                            │ that connection has ended, for GRACE
//!                                    the home is a member ◄──┴──► the home is not
//!                                             │                        │ this is the first of the members with data
//!                            clients hear of a loss            the cache is made anew here
//! ```
//!
//! The home's connection here ends with the client's own connection to the home, or with the home. Either way the client misses what
//! changes from then on, and hears so from any member that it listens to; hearing it twice does no harm. While the home is a member it may come
//! back, and tell the client more: until then nobody else may, see the head of `mod.rs`.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use filbert_grid::{ClusterView, GridError, PartitionId, Reservation, check_name};
use filbert_wire::{CorrelationId, Uuid};

use super::{Channel, QueryCache, QueryCaches, registry::Registry};
use crate::link::Link;

/// How long after its connection has ended a home counts as lost. A broken connection is made again in half a second.
const GRACE: Duration = Duration::from_secs(3);

/// Bytes of one beside its names and request, more or less.
const STANDBY_BYTES: usize = 512;

/// A cache that another member keeps.
pub(crate) struct Standby {
    /// Names the registration.
    pub(crate) id: Uuid,
    /// The member that keeps it.
    pub(crate) home: Uuid,
    /// The cache's name.
    pub(crate) name: String,
    /// The client.
    pub(crate) owner: Uuid,
    /// The client's request for it.
    pub(crate) request: Box<[u8]>,
    /// Its correlation id: of two requests of a client, the later has the greater one.
    pub(crate) asked: CorrelationId,
    /// The connection by which the home says so.
    link: Weak<Link>,
    /// Since when that has ended.
    since: Option<Instant>,
    is_told: bool,
    _room: Option<Reservation>,
}

impl Standby {
    pub(crate) fn new(
        (id, home, owner): (Uuid, Uuid, Uuid),
        name: &str,
        request: &[u8],
        asked: CorrelationId,
        link: &Arc<Link>,
    ) -> Self {
        let link = Arc::downgrade(link);
        let (name, request) = (name.to_owned(), request.into());
        Self { id, home, name, owner, request, asked, link, since: None, is_told: false, _room: None }
    }

    /// A connection has ended.
    pub(super) fn leave(&mut self, link: &Arc<Link>, now: Instant) {
        if std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link)) {
            self.since.get_or_insert(now);
        }
    }

    /// Whether nobody has listened to the cache for `timeout`, since its home was lost.
    pub(super) fn is_over(&self, now: Instant, timeout: Duration, channel: Option<&Arc<Channel>>) -> bool {
        let is_long_gone = self.since.is_some_and(|since| now.saturating_duration_since(since) > timeout);
        is_long_gone && channel.is_none_or(|channel| !self.is_heard(channel))
    }

    /// Whether its client listens here.
    fn is_heard(&self, channel: &Channel) -> bool {
        channel.0.lock().iter().any(|subscriber| subscriber.owner == self.owner)
    }

    fn is_lost(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= GRACE)
    }
}

impl QueryCaches {
    /// Notes that another member keeps a cache; one of that name here ends. False if this member knows of one that its client has asked for
    /// later.
    ///
    /// # Errors
    /// The client has `caches_max` already, there is no room for one more, or the name is too long.
    pub(crate) fn stand_by(&self, map: &str, mut standby: Standby, caches_max: usize) -> Result<bool, GridError> {
        let name = &*standby.name.clone();
        check_name("query cache", name)?;
        let bytes = STANDBY_BYTES + map.len() + name.len() + standby.request.len();
        standby._room = Some(self.budget.reserve(bytes)?);
        let mut registry = self.registry.lock();
        let place = (map.to_owned(), name.to_owned());
        let own = registry.caches.get(map).and_then(|of_map| of_map.get(name));
        let is_later = own.is_some_and(|own| {
            let wanted = own.wanted();
            wanted.owner == standby.owner && wanted.asked.0 >= standby.asked.0 && !own.is_closed()
        });
        let known = registry.standbys.get(&place);
        if is_later || known.is_some_and(|known| known.owner == standby.owner && known.asked.0 > standby.asked.0) {
            return Ok(false);
        }
        let of_owner = registry.standbys.iter().filter(|(other, of)| of.owner == standby.owner && **other != place);
        if of_owner.count() >= caches_max {
            return Err(GridError::LimitReached {
                what: "query caches of this client",
                setting: "query_caches_max",
                limit: caches_max,
            });
        }
        registry.standbys.insert(place, standby);
        let own = registry.caches.get_mut(map).and_then(|of_map| of_map.remove(name));
        drop(registry);
        if let Some(own) = own {
            own.close();
        }
        Ok(true)
    }

    /// Ends a registration by its id; whether there was one.
    pub(crate) fn stand_down(&self, id: Uuid) -> bool {
        self.registry.lock().standbys.extract_if(|_, standby| standby.id == id).count() > 0
    }

    /// Has clients know of caches whose home is lost; answers with those that this member is to make anew, by map.
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
            } else if !standby.is_told {
                standby.is_told = true;
                tracing::debug!(map, name, home = %standby.home, "the home of a query cache is lost");
                channel.tell_loss(map, "", (0..partition_count).map(PartitionId));
            }
        }
        mine.into_iter().filter_map(|place| Some((place.0.clone(), standbys.remove(&place)?))).collect()
    }

    /// The cache that other members were asked by this registration to stand by for, if it has not ended.
    pub(crate) fn registered(&self, registration: Uuid) -> Option<Arc<QueryCache>> {
        let registry = self.registry.lock();
        let mut caches = registry.caches.values().flat_map(HashMap::values);
        caches.find(|cache| *cache.registered.lock() == Some(registration) && !cache.is_closed()).cloned()
    }

    /// Has others asked to stand by for a cache that this member has taken over, by the next turn of a connection of its client.
    pub(crate) fn announce(&self, cache: &QueryCache) {
        self.unannounced.store(true, Ordering::Release);
        for subscriber in cache.channel.0.lock().iter().filter(|subscriber| subscriber.owner == cache.wanted.owner) {
            subscriber.link.outbox.poke();
        }
    }

    /// Whether there may be such a cache.
    #[inline]
    pub(crate) fn any_unannounced(&self) -> bool {
        self.unannounced.load(Ordering::Acquire)
    }

    /// Those of a client.
    pub(crate) fn unannounced_of(&self, client: Uuid) -> Vec<Arc<QueryCache>> {
        let registry = self.registry.lock();
        let caches = registry.caches.values().flat_map(HashMap::values);
        let unannounced = caches.filter(|cache| cache.registered.lock().is_none() && !cache.is_closed());
        let (own, others): (Vec<_>, Vec<_>) = unannounced.cloned().partition(|cache| cache.wanted.owner == client);
        self.unannounced.store(others.iter().any(|cache| !cache.channel.is_empty()), Ordering::Release);
        own
    }

    /// Whether this member keeps caches.
    pub(crate) fn is_home(&self) -> bool {
        !self.registry.lock().caches.is_empty()
    }

    /// Tells who listens to a cache that changes of all partitions are lost.
    pub(crate) fn tell_loss(&self, map: &str, name: &str, partition_count: u32) {
        let channel = self.registry.lock().channels.get(name).cloned();
        if let Some(channel) = channel {
            channel.tell_loss(map, "", (0..partition_count).map(PartitionId));
        }
    }

    /// Ends all caches and has their clients know: this member does not hear of all changes any more.
    pub(crate) fn end_all(&self) {
        let caches = std::mem::take(&mut self.registry.lock().caches);
        for cache in caches.values().flat_map(HashMap::values) {
            cache.close();
            cache.tell_loss();
        }
    }
}
