//! Creation and destruction of maps, by callers of this member and by other members of the cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_store::{JournalSettings, LogCommand, MapId, MapSettings};

use crate::config::MapConfig;
use crate::definitions;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::invalidation::{Invalidation, InvalidationListeners, sequence_of};
use crate::layouts::Layouts;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::names::{MAP_SERVICE, check_name};
use crate::replication::Submissions;
use crate::replicator::{NewMap, PendingAnswer};
use crate::shared::MapTable;

impl Grid {
    /// Returns a handle of a map. The first use creates the map and announces it as a distributed
    /// object.
    ///
    /// # Errors
    /// The member is shutting down, the number of objects has reached the limit of the settings,
    /// two patterns of the configuration match the name equally well, or the name is longer than
    /// [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX).
    pub fn map(&self, name: &str) -> Result<Arc<Map>, GridError> {
        self.shared.check_active()?;
        let handle = |core: &Arc<MapCore>| Arc::new(Map { core: core.clone(), shared: self.shared.clone() });
        if let Some(core) = self.shared.maps.read().by_name.get(name) {
            return Ok(handle(core));
        }
        check_name("map", name)?;
        let config = self.shared.config.maps.find(name)?.clone();
        let id = match &self.shared.replication {
            None => None,
            Some(replication) => {
                Some(replication.replicator.create_map(NewMap::Named(name), self.map_settings(&config))?)
            }
        };
        let map = self.name_map(name, config, id)?;
        self.shared.create_where_leading(&map.core, true);
        Ok(map)
    }

    /// Adds a map that all members know, after any member has called
    /// [`Replicator::create_map`](crate::replication::Replicator::create_map). An existing map
    /// stays.
    ///
    /// # Errors
    /// As [`Grid::map`].
    pub fn map_created(&self, id: MapId, name: &str, settings: MapSettings) -> Result<Arc<Map>, GridError> {
        let config = self.shared.config.maps.find(name)?.clone();
        let map = self.name_map(name, config, Some((id, settings)))?;
        self.shared.create_where_leading(&map.core, false);
        Ok(map)
    }

    fn name_map(&self, name: &str, config: MapConfig, id: Option<(MapId, MapSettings)>) -> Result<Arc<Map>, GridError> {
        let handle = |core: &Arc<MapCore>| Arc::new(Map { core: core.clone(), shared: self.shared.clone() });
        let _lifecycle = self.shared.map_lifecycle.lock();
        if let Some(core) = self.shared.maps.read().by_name.get(name) {
            return Ok(handle(core));
        }
        self.objects().reserve(MAP_SERVICE, name)?;
        let core = self.build_map(name, config, id);
        self.publish_map(&core);
        tracing::debug!(map = name, "map made");
        Ok(handle(&core))
    }

    /// Gives a map its name, which no other map has, and announces it.
    pub(crate) fn publish_map(&self, core: &Arc<MapCore>) {
        let mut maps = self.shared.maps.write();
        if core.evicts {
            maps.evicting.push(core.clone());
        }
        maps.by_name.insert(core.name.clone(), core.clone());
        drop(maps);
        self.objects().announce_created(MAP_SERVICE, &core.name, self.shared.member);
    }

    /// Builds a map that has no name in the table yet. `known` is the id in the logs, if there are
    /// logs.
    pub(crate) fn build_map(&self, name: &str, config: MapConfig, known: Option<(MapId, MapSettings)>) -> Arc<MapCore> {
        let is_here = known.is_none();
        let (id, settings) = known.unwrap_or_else(|| {
            let mut maps = self.shared.maps.write();
            maps.next_id += 1;
            (MapId(maps.next_id - 1), self.map_settings(&config))
        });
        let partitions = self.shared.config.partition_count;
        let layouts = Layouts::of_config(name, &config, self.schemas().clone(), self.shared.layout_changes.clone());
        let about = (config, settings.clone());
        let core = Arc::new(MapCore::new(id, name.to_owned(), about, partitions, layouts));
        if is_here {
            let layout = core.layouts.compiled();
            for cell in &self.shared.cells {
                let mut state = cell.lock();
                let before = state.partition.bytes();
                state.partition.create_map(id, settings.clone());
                state.partition.set_layout(id, layout.clone());
                let after = state.partition.bytes();
                self.shared.account(before, after);
                core.account(before, after);
            }
        }
        core.account_map_bytes(&self.shared, true);
        self.shared.add_signatures(&core, &core.layouts.current());
        self.shared.maps.write().by_id.insert(id, core.clone());
        if !is_here {
            self.shared.cells.iter().for_each(|cell| core.adopt_from_log(&self.shared, &mut cell.lock().partition));
        }
        core
    }

    pub(crate) fn map_settings(&self, config: &MapConfig) -> MapSettings {
        let partitions = self.shared.config.partition_count.max(1);
        MapSettings {
            ttl_default_ms: i64::from(config.ttl_seconds) * 1_000,
            max_idle_default_ms: i64::from(config.max_idle_seconds) * 1_000,
            journal: config.event_journal.map(|journal| JournalSettings {
                capacity: (journal.capacity / partitions).max(1) as usize,
                ttl_ms: i64::from(journal.ttl_seconds) * 1_000,
            }),
            ..MapSettings::default()
        }
    }

    /// Destroys a map with all its data on all members. Returns whether there was one. Its handles
    /// refuse changes from now on.
    ///
    /// # Errors
    /// The other members of a cluster could not be reached. The map may exist as before, or be
    /// destroyed later.
    pub fn destroy_map(&self, name: &str) -> Result<bool, GridError> {
        self.unlink_map(name).map(|unlinked| unlinked.is_some())
    }

    /// The fast part of [`Grid::destroy_map`]: the name refers to no map any more, and handles of
    /// the map refuse changes. The map's data are freed when the result is dropped.
    ///
    /// # Errors
    /// As [`Grid::destroy_map`].
    pub fn unlink_map(&self, name: &str) -> Result<Option<Unlinked<'_>>, GridError> {
        if let Some(replication) = &self.shared.replication {
            let Some(core) = self.shared.maps.read().by_name.get(name).cloned() else { return Ok(None) };
            replication.replicator.drop_map(core.id)?;
            if let Some(cluster) = self.shared.cluster.get() {
                definitions::undefine_map(&**cluster, name)?;
            }
            // The cluster's notification may have removed it already.
            let unlinked =
                self.unlink(|maps| maps.by_name.get(name)?.id.eq(&core.id).then(|| maps.by_name.remove(name))?);
            return Ok(Some(unlinked.unwrap_or(Unlinked { grid: self, core })));
        }
        Ok(self.unlink(|maps| maps.by_name.remove(name)))
    }

    /// Removes a map that no member knows any more, after any member has called
    /// [`Replicator::drop_map`](crate::replication::Replicator::drop_map).
    pub fn map_dropped(&self, id: MapId) {
        let Some(core) = self.shared.map_by_id(id) else { return };
        let unlinked =
            self.unlink(|maps| maps.by_name.get(&core.name)?.id.eq(&id).then(|| maps.by_name.remove(&core.name))?);
        if unlinked.is_none() && self.shared.maps.write().by_id.remove(&id).is_some() {
            // It was hidden.
            core.destroyed.store(true, Ordering::Release);
            self.end_map(&core, &core.near_caches);
        }
    }

    fn unlink(&self, take: impl FnOnce(&mut MapTable) -> Option<Arc<MapCore>>) -> Option<Unlinked<'_>> {
        let _lifecycle = self.shared.map_lifecycle.lock();
        let core = {
            let mut maps = self.shared.maps.write();
            let core = take(&mut maps)?;
            maps.by_id.remove(&core.id);
            maps.evicting.retain(|other| other.id != core.id);
            core
        };
        core.destroyed.store(true, Ordering::Release);
        self.shared.layout_changes.note(core.name.clone());
        self.objects().destroy(MAP_SERVICE, &core.name, self.shared.member);
        tracing::info!(map = core.name, "map destroyed");
        Some(Unlinked { grid: self, core })
    }

    /// Frees the data of a map that is marked as destroyed, and invalidates near caches of it.
    pub(crate) fn end_map(&self, core: &Arc<MapCore>, near_caches: &InvalidationListeners) {
        self.shared.layout_changes.note(core.name.clone());
        let mut to = Submissions::new(&self.shared);
        for (partition, cell) in self.shared.partitions() {
            let mut state = cell.lock();
            let before = state.partition.bytes();
            let sequence = state.partition.sequence(core.id).saturating_add(1);
            if self.shared.replication.is_some() {
                to.push_own(partition, &LogCommand::DestroyMap { map: core.id }, PendingAnswer::Nothing, &mut state);
            } else {
                state.partition.destroy_map(core.id);
            }
            self.shared.account(before, state.partition.bytes());
            for (_, waiter) in state.waiters.take_map(core.id) {
                self.shared.answer(waiter, Err(core.destroyed_error()));
            }
            near_caches.deliver(&Invalidation {
                partition,
                key: None,
                source: self.shared.member,
                partition_uuid: cell.uuid(),
                sequence: sequence_of(core.id, sequence),
            });
        }
        to.send();
        self.shared.clear_signatures(core);
        core.account_map_bytes(&self.shared, false);
    }

    /// Removes the listeners of a map.
    pub(crate) fn forget_listeners(&self, core: &MapCore) {
        let listeners = core.listeners.clear() + core.near_caches.clear();
        self.shared.listeners.fetch_sub(listeners, Ordering::AcqRel);
    }

    /// Creates a distributed object by its service, as a client's proxy does.
    ///
    /// # Errors
    /// As [`Grid::map`]. Other services are not supported.
    pub fn create_object(&self, service: &str, name: &str) -> Result<(), GridError> {
        if service == MAP_SERVICE {
            return self.map(name).map(|_| ());
        }
        // The error text contains both names.
        check_name("service", service)?;
        check_name("object", name)?;
        Err(GridError::UnsupportedOperation(format!(
            "objects of the service {service:?} are not supported, expected {MAP_SERVICE:?} (object {name:?})"
        )))
    }

    /// Destroys a distributed object. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Grid::destroy_map`].
    pub fn destroy_object(&self, service: &str, name: &str) -> Result<bool, GridError> {
        if service == MAP_SERVICE { self.destroy_map(name) } else { Ok(false) }
    }
}

/// A destroyed map with data that are not freed yet.
#[must_use = "dropping it frees the map"]
pub struct Unlinked<'g> {
    grid: &'g Grid,
    core: Arc<MapCore>,
}

impl fmt::Debug for Unlinked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unlinked").field("map", &self.core.name).finish_non_exhaustive()
    }
}

impl Drop for Unlinked<'_> {
    fn drop(&mut self) {
        self.grid.end_map(&self.core, &self.core.near_caches);
        self.grid.forget_listeners(&self.core);
    }
}
