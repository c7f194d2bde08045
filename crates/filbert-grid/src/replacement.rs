//! A map that replaces another map of this member. (`replication/replacing.rs` replaces maps of a
//! cluster.) It is filled while changes of the old map are refused, then it
//! replaces the old map atomically.
//!
//! ```text
//!  begin: changes of the old map are refused ─► the new map is filled ─┐
//!    ┌─────────────────────────────────────────────────────────────────┘
//!    ├─ put_in_place: the name refers to the new map, the old map is destroyed
//!    └─ drop:         the new map is destroyed, the old map accepts changes again
//! ```
//!
//! Reads of the old map continue until it is destroyed. Clients send a refused change again after
//! the error, so no acknowledged change is lost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_store::{Expiry, MapId, MapSettings, Metadata};

use crate::errors::GridError;
use crate::grid::Grid;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::names::{MAP_SERVICE, check_name};
use crate::replicator::NewMap;

/// A map that is about to replace another one. If it is dropped unfinished, the old map stays
/// unchanged.
pub struct MapReplacement {
    grid: Arc<Grid>,
    old: Arc<Map>,
    new: Arc<Map>,
    finished: bool,
}

impl fmt::Debug for MapReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapReplacement").field("old", &self.old.name()).field("new", &self.new.name()).finish()
    }
}

impl Grid {
    /// Starts to replace the map `old` by an empty map with the name `new`. Until the end, changes
    /// of the old map are refused with [`GridError::BeingReplaced`].
    ///
    /// # Errors
    /// The map was destroyed or is being replaced already, a client holds the lock of one of its
    /// keys, a statement is changing it, `new` is the name of another map or longer than
    /// [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX), or the member is shutting down.
    pub fn succeed(self: &Arc<Self>, old: &Arc<Map>, new: &str) -> Result<MapReplacement, GridError> {
        let shared = &self.shared;
        shared.check_active()?;
        check_name("map", new)?;
        let config = shared.config.maps.find(new)?.clone();
        let is_taken = new != old.name() && shared.maps.read().by_name.contains_key(new);
        if is_taken {
            return Err(GridError::IllegalArgument(format!("there is a map {new:?} already")));
        }
        old.core.hold()?;
        let known = match &shared.replication {
            None => Ok(None),
            Some(replication) => {
                let replacing = NewMap::Replacing { old: old.core.id, name: new };
                replication.replicator.create_map(replacing, self.map_settings(&config)).map(Some)
            }
        };
        let known = known.inspect_err(|_| old.core.release())?;
        let core = self.build_map(new, config, known);
        shared.create_where_leading(&core, true);
        let (old, new) = (old.clone(), Arc::new(Map { core, shared: shared.clone() }));
        let replacement = MapReplacement { grid: self.clone(), old, new, finished: false };
        if replacement.old.core.claiming.load(Ordering::SeqCst) > 0 {
            let text = format!("a statement changes the map {:?}", replacement.old.name());
            return Err(GridError::IllegalState(text));
        }
        // A change that began before the hold has ended when its partition's lock was acquired
        // below, or when its log has settled.
        shared.settle(&replacement.old.core)?;
        let locked: usize =
            shared.cells.iter().map(|cell| cell.lock().partition.statistics(replacement.old.core.id).locked_keys).sum();
        if replacement.old.is_destroyed() {
            return Err(replacement.old.core.destroyed_error());
        }
        if locked > 0 {
            let text = format!("{locked} keys of the map {:?} are locked by clients", replacement.old.name());
            return Err(GridError::IllegalState(text));
        }
        Ok(replacement)
    }
}

impl MapReplacement {
    /// The replaced map.
    pub fn old(&self) -> &Arc<Map> {
        &self.old
    }

    /// The replacing map. No other caller can access it yet.
    pub fn new_map(&self) -> &Arc<Map> {
        &self.new
    }

    /// The metadata of an entry of the old map, for its copy in the new map.
    pub fn metadata(&self, key: &[u8]) -> Option<Metadata> {
        self.old.metadata(key)
    }

    /// Replaces the old map by the new map, and moves its listeners. The old map's data are freed
    /// when this is dropped.
    ///
    /// # Errors
    /// The old map was destroyed meanwhile, or another map has the new name. Nothing was changed
    /// then.
    pub fn put_in_place(&mut self) -> Result<(), GridError> {
        self.grid.swap_maps(&self.old.core, &self.new.core)?;
        self.finished = true;
        Ok(())
    }
}

impl Grid {
    /// The name of the old map refers to the new map from now on, which may have another name. The
    /// listeners move. Nothing is changed if there is an error.
    fn swap_maps(&self, old: &Arc<MapCore>, new: &Arc<MapCore>) -> Result<(), GridError> {
        let shared = &self.shared;
        let keeps_name = old.name == new.name;
        let _lifecycle = shared.map_lifecycle.lock();
        let mut maps = shared.maps.write();
        if maps.by_name.get(&old.name).is_none_or(|core| core.id != old.id) {
            return Err(old.destroyed_error());
        }
        if keeps_name {
            // Before any other caller can change the new map, so that listeners miss no change of
            // it.
            old.listeners.move_to(&new.listeners);
            old.near_caches.move_to(&new.near_caches);
        } else {
            if maps.by_name.contains_key(&new.name) {
                return Err(GridError::IllegalArgument(format!("there is a map {:?} already", new.name)));
            }
            self.objects().reserve(MAP_SERVICE, &new.name)?;
            maps.by_name.remove(&old.name);
        }
        maps.by_name.insert(new.name.clone(), new.clone());
        maps.by_id.remove(&old.id);
        maps.evicting.retain(|other| other.id != old.id);
        if new.evicts {
            maps.evicting.push(new.clone());
        }
        // Query plans for the old map become invalid before reads of that map begin to fail.
        shared.layout_changes.note(old.name.clone());
        if !keeps_name {
            shared.layout_changes.note(new.name.clone());
        }
        // From here on, handles of the old map are handles of a destroyed map, and their owners
        // look up the new one.
        old.destroyed.store(true, Ordering::Release);
        drop(maps);
        if !keeps_name {
            self.objects().destroy(MAP_SERVICE, &old.name, shared.member);
            self.objects().announce_created(MAP_SERVICE, &new.name, shared.member);
        }
        Ok(())
    }

    /// Frees the data of a map that another one has replaced.
    fn end_replaced(&self, old: &Arc<MapCore>, new: &Arc<MapCore>) {
        if old.name == new.name {
            self.end_map(old, &new.near_caches);
        } else {
            self.end_map(old, &old.near_caches);
            self.forget_listeners(old);
        }
        tracing::info!(map = new.name, "a map has taken the place of {:?}", old.name);
    }

    /// The hidden map with an id, which is about to replace another map of the cluster. Creates it
    /// if this member does not know it.
    ///
    /// # Errors
    /// As [`Grid::map`].
    pub fn hidden_map(&self, id: MapId, name: &str, settings: MapSettings) -> Result<Arc<Map>, GridError> {
        let config = self.shared.config.maps.find(name)?.clone();
        let _lifecycle = self.shared.map_lifecycle.lock();
        let known = self.shared.map_by_id(id);
        let core = known.unwrap_or_else(|| {
            let core = self.build_map(name, config, Some((id, settings)));
            core.is_replacement.store(true, Ordering::Release);
            core
        });
        Ok(Arc::new(Map { core, shared: self.shared.clone() }))
    }

    /// A hidden map has replaced another one on all members, after any member has called
    /// [`Replicator::replace_map`](crate::replication::Replicator::replace_map).
    ///
    /// # Errors
    /// As [`Grid::map`]. This member does not know the new map then.
    pub fn map_replaced(&self, old: MapId, new: (MapId, &str, MapSettings)) -> Result<(), GridError> {
        let (id, name, settings) = new;
        let new = self.hidden_map(id, name, settings)?;
        // Several replacements may have passed at once: the old map may be unknown here, or hidden,
        // and the map with the name is an earlier one.
        let is_visible =
            |core: &Arc<MapCore>| self.shared.maps.read().by_name.get(&core.name).is_some_and(|of| of.id == core.id);
        let by_name = || self.shared.maps.read().by_name.get(name).cloned();
        let Some(old) = self.shared.map_by_id(old).filter(is_visible).or_else(by_name) else {
            let _lifecycle = self.shared.map_lifecycle.lock();
            self.objects().reserve(MAP_SERVICE, name)?;
            self.publish_map(&new.core);
            return Ok(());
        };
        // Changes of the old map that wait, or come late, are sent again.
        old.is_replaced.store(true, Ordering::Release);
        self.shared.maps.write().replaced.insert(old.id);
        self.swap_maps(&old, &new.core)?;
        self.end_replaced(&old, &new.core);
        Ok(())
    }
}

impl Map {
    /// The metadata of an entry, for its copy in another map: timestamps, counts and durations.
    pub(crate) fn metadata(&self, key: &[u8]) -> Option<Metadata> {
        self.entry_view(self.partition_of(key), key, |view| {
            let view = view?;
            let of = |duration_ms: i64| if duration_ms == i64::MAX { 0 } else { duration_ms };
            let expires_ms = match view.ttl_ms {
                i64::MAX => i64::MAX,
                ttl_ms => view.updated_ms.saturating_add(ttl_ms),
            };
            Some(Metadata {
                created_ms: view.created_ms,
                updated_ms: view.updated_ms,
                accessed_ms: view.accessed_ms,
                expires_ms,
                hits: view.hits,
                version: view.version,
                expiry: Expiry { ttl_ms: of(view.ttl_ms), max_idle_ms: of(view.max_idle_ms) },
            })
        })
    }
}

impl Drop for MapReplacement {
    fn drop(&mut self) {
        let (grid, old, new) = (&self.grid, &self.old.core, &self.new.core);
        if !self.finished {
            grid.shared.maps.write().by_id.remove(&new.id);
            new.destroyed.store(true, Ordering::Release);
            grid.end_map(new, &new.near_caches);
            old.release();
            return;
        }
        grid.end_replaced(old, new);
    }
}
