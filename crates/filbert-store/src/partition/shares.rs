//! The transitions of a map in a partition: from a declaration to a held map, and back.

use std::sync::Arc;

use super::Partition;
use crate::change::change_map;
use crate::command::Change;
use crate::map::{Context, Map};
use crate::put::Outcome;
use crate::share::{Declaration, Declarations, Share};
use crate::{MapId, Reply, StoreError};

impl Partition {
    /// Shares the declarations of maps with other partitions from now on. This saves memory and
    /// changes nothing else.
    pub fn share_declarations(&mut self, declarations: &Arc<Declarations>) {
        let before = std::mem::replace(&mut self.declarations, declarations.clone());
        for share in &mut self.maps {
            if let Share::Declared { id, declaration, .. } = share {
                *declaration = declarations.share(*id, declaration.duplicate());
                before.tidy(*id);
            }
        }
    }

    /// Changes the declaration of a map that is only declared.
    pub(crate) fn redeclare(&mut self, index: usize, change: impl FnOnce(&Declaration) -> Declaration) {
        let Some(Share::Declared { id, declaration, .. }) = self.maps.get_mut(index) else { return };
        *declaration = self.declarations.share(*id, change(declaration));
        self.declarations.tidy(*id);
    }

    /// Replaces the declaration of a map by the map.
    fn hold(&mut self, index: usize, map: Map) {
        let Some(share) = self.maps.get_mut(index) else { return };
        let id = share.id();
        self.bytes -= share.bytes();
        *share = Share::Held { id, map: Box::new(map) };
        self.bytes += share.bytes();
        self.misses.remove(&id);
        self.declarations.tidy(id);
    }

    /// Replaces a map by a declaration, if the map is unchanged since its declaration and has no
    /// indexes and columns.
    pub(crate) fn declare_if_as_new(&mut self, index: usize) {
        let Some(share) = self.maps.get_mut(index) else { return };
        let Share::Held { id, map } = share else { return };
        if map.is_as_new() && map.derived.is_none() {
            let declaration = Declaration::new(map.settings.clone(), map.layout);
            let declaration = self.declarations.share(*id, declaration);
            self.bytes -= share.bytes();
            *share = Share::Declared { id: share.id(), misses: 0, declaration };
            self.bytes += share.bytes();
        }
    }

    /// Creates a map that is only declared, in its initial state.
    fn make_declared(&self, index: usize) -> Option<Map> {
        let Some(Share::Declared { id, misses, declaration }) = self.maps.get(index) else { return None };
        let mut map = declaration.make(*id, self.settings.hash_seed, self.settings.id);
        map.counters.gets = u64::from(*misses) + self.misses.get(id).copied().unwrap_or(0);
        if let Some(export) = &self.export
            && export.has_yet_to_write(*id)
        {
            map.begin_export(*id);
        }
        Some(map)
    }

    /// Creates a map that is only declared, if the snapshot in progress has not yet written it.
    /// Must be called before the state for the snapshot changes.
    pub(crate) fn hold_for_export(&mut self, index: usize) {
        if self.export.is_none() {
            return;
        }
        if let Some(map) = self.make_declared(index).filter(|map| map.export.is_some()) {
            self.hold(index, map);
        }
    }

    /// Applies a change to a map that is only declared. The map is kept if the change has a lasting
    /// effect.
    #[cold]
    pub(crate) fn apply_first(&mut self, index: usize, cx: &mut Context<'_>, change: Change<'_>) -> Reply<'static> {
        let Some(mut map) = self.make_declared(index) else {
            return Reply::Refused(StoreError::NoSuchMap(self.maps.get(index).map_or(MapId(0), Share::id)));
        };
        let outcome = change_map(&mut map, cx, change);
        if !map.is_as_new() {
            self.hold(index, map);
        }
        match outcome {
            Outcome::Reply(reply) => reply,
            // A new map has no entries.
            Outcome::Existing(_) => Reply::Previous(None),
        }
    }
}
