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
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use filbert_grid::{Clients, ClusterView, GridError, PartitionId, Reservation, check_name};
use filbert_wire::{CorrelationId, Uuid};

use super::QueryCaches;
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

    pub(super) fn is_over(&self, now: Instant, timeout: Duration, clients: &Clients) -> bool {
        let is_long_gone = |since| now.saturating_duration_since(since) > timeout;
        self.since.is_some_and(|since| is_long_gone(since) && !clients.is_connected(self.owner))
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
        let super::registry::Registry { standbys, channels, .. } = &mut *registry;
        let mut mine = Vec::new();
        for ((map, name), standby) in standbys.iter_mut().filter(|(_, standby)| standby.is_lost(now)) {
            let channel = channels.get(name);
            let listens = |channel: &&Arc<super::Channel>| {
                channel.0.lock().iter().any(|subscriber| subscriber.owner == standby.owner)
            };
            let Some(channel) = channel.filter(listens) else { continue };
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
    pub(crate) fn registered(&self, registration: Uuid) -> Option<Arc<super::QueryCache>> {
        let registry = self.registry.lock();
        let mut caches = registry.caches.values().flat_map(std::collections::HashMap::values);
        caches.find(|cache| *cache.registered.lock() == Some(registration) && !cache.is_closed()).cloned()
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
        for cache in caches.values().flat_map(std::collections::HashMap::values) {
            cache.close();
            cache.tell_loss();
        }
    }
}
