//! A map that takes another map's place: built beside it while nothing changes the old one, then put in its place at once.
//!
//! ```text
//!  begin: changes of the old map are refused ─► the new map is filled ─┬─ put in place: the name means the new map, the old one is destroyed
//!                                                                     └─ drop:           the new map goes, the old one takes changes again
//! ```
//!
//! Reads of the old map go on until it is destroyed. What a client changes meanwhile is refused with an error after which
//! clients send the change again, so that no acknowledged change is lost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_store::{Expiry, Metadata};

use crate::errors::GridError;
use crate::grid::Grid;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::objects::{MAP_SERVICE, check_name};

/// A map that is about to take another map's place; dropping it unfinished leaves the old map as it was.
pub struct Succession {
    grid: Arc<Grid>,
    old: Arc<Map>,
    new: Arc<Map>,
    finished: bool,
}

impl fmt::Debug for Succession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Succession").field("old", &self.old.name()).field("new", &self.new.name()).finish()
    }
}

impl Grid {
    /// Begins to replace the map `old` by an empty one that will have the name `new`. Until the end, changes of the old map
    /// are refused with [`GridError::BeingReplaced`].
    ///
    /// # Errors
    /// The map was destroyed or is being replaced already, a client holds the lock of one of its keys, `new` is the name
    /// of another map or longer than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX), or the member takes no more operations.
    pub fn succeed(self: &Arc<Self>, old: &Arc<Map>, new: &str) -> Result<Succession, GridError> {
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
            Some(replication) => replication.replicator.make_map(None, self.map_settings(&config)).map(Some),
        };
        let known = known.inspect_err(|_| old.core.release())?;
        let core = self.build_map(new, config, known);
        shared.make_where_leading(&core, true);
        let (old, new) = (old.clone(), Arc::new(Map { core, shared: shared.clone() }));
        let succession = Succession { grid: self.clone(), old, new, finished: false };
        if succession.old.core.claiming.load(Ordering::SeqCst) > 0 {
            let text = format!("a statement changes the map {:?}", succession.old.name());
            return Err(GridError::IllegalState(text));
        }
        // A change that began before the map was held is over once its partition's lock was had, or its log has settled.
        shared.settle(&succession.old.core)?;
        let locked: usize =
            shared.cells.iter().map(|cell| cell.lock().partition.statistics(succession.old.core.id).locked_keys).sum();
        if succession.old.is_destroyed() {
            return Err(succession.old.core.destroyed_error());
        }
        if locked > 0 {
            let text = format!("{locked} keys of the map {:?} are locked by clients", succession.old.name());
            return Err(GridError::IllegalState(text));
        }
        Ok(succession)
    }
}

impl Succession {
    /// The map that is replaced.
    pub fn old(&self) -> &Arc<Map> {
        &self.old
    }

    /// The map that takes its place. Nobody else has it yet.
    pub fn new_map(&self) -> &Arc<Map> {
        &self.new
    }

    /// What an entry of the old map brings along into the new one: its times, counts and durations.
    pub fn metadata(&self, key: &[u8]) -> Option<Metadata> {
        self.old.entry_view(self.old.partition_of(key), key, |view| {
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

    /// Puts the new map in the old one's place, with its listeners. What the old one has is freed when this is dropped.
    ///
    /// # Errors
    /// The old map was destroyed meanwhile, or another map has taken the new name. Nothing was changed then.
    pub fn put_in_place(&mut self) -> Result<(), GridError> {
        let shared = &self.grid.shared;
        let (old, new) = (&self.old.core, &self.new.core);
        let _making = shared.making.lock();
        let mut maps = shared.maps.write();
        if maps.by_name.get(&old.name).is_none_or(|core| core.id != old.id) {
            return Err(old.destroyed_error());
        }
        if self.keeps_name() {
            // Before anybody can change the new map: who listens must not miss a change of it.
            old.listeners.move_to(&new.listeners);
            old.near_caches.move_to(&new.near_caches);
        } else {
            if maps.by_name.contains_key(&new.name) {
                return Err(GridError::IllegalArgument(format!("there is a map {:?} already", new.name)));
            }
            self.grid.objects().reserve(MAP_SERVICE, &new.name)?;
            maps.by_name.remove(&old.name);
        }
        maps.by_name.insert(new.name.clone(), new.clone());
        maps.by_id.remove(&old.id);
        maps.evicting.retain(|other| other.id != old.id);
        if new.evicts {
            maps.evicting.push(new.clone());
        }
        self.finished = true;
        // What was planned over the old map is found to be old before reads of that map begin to fail.
        crate::layouts::note_destroyed();
        // From here on a handle of the old map is one of a destroyed map, and its owner finds the new one.
        old.destroyed.store(true, Ordering::Release);
        drop(maps);
        if !self.keeps_name() {
            self.grid.objects().destroy(MAP_SERVICE, &old.name, shared.member);
            self.grid.objects().announce_created(MAP_SERVICE, &new.name, shared.member);
        }
        Ok(())
    }

    fn keeps_name(&self) -> bool {
        self.old.name() == self.new.name()
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        let (grid, old, new) = (&self.grid, &self.old.core, &self.new.core);
        if !self.finished {
            grid.shared.maps.write().by_id.remove(&new.id);
            new.destroyed.store(true, Ordering::Release);
            grid.end_map(new, &new.near_caches);
            old.release();
            return;
        }
        if self.keeps_name() {
            grid.end_map(old, &new.near_caches);
        } else {
            grid.end_map(old, &old.near_caches);
            grid.forget_listeners(old);
        }
        tracing::info!(map = new.name, "a map has taken the place of {:?}", old.name);
    }
}

impl MapCore {
    /// Refuses changes from now on.
    fn hold(&self) -> Result<(), GridError> {
        match self.held.swap(true, Ordering::SeqCst) {
            true => Err(self.held_error()),
            false => Ok(()),
        }
    }

    fn release(&self) {
        self.held.store(false, Ordering::Release);
    }

    fn held_error(&self) -> GridError {
        GridError::BeingReplaced { map: self.name.clone() }
    }

    /// Refuses a change while another map is about to take this one's place.
    #[inline]
    pub(crate) fn check_held(&self) -> Result<(), GridError> {
        if self.held.load(Ordering::SeqCst) { Err(self.held_error()) } else { Ok(()) }
    }
}
