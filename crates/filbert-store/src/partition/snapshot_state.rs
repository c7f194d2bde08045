//! The state that a partition keeps for the snapshot in progress: the maps that are not yet
//! written.

use super::Partition;
use crate::MapId;
use crate::map::Map;

/// A snapshot in progress.
pub(crate) struct Export {
    /// The maps that are not yet written, in descending order: the next one is the last.
    pub(crate) maps: Vec<MapId>,
    /// The maps among them that were destroyed.
    pub(crate) left: Vec<(MapId, Box<Map>)>,
    pub(crate) first: Vec<u8>,
    pub(crate) next_page: u64,
}

impl Export {
    /// Whether an existing map was there when the snapshot began, and is not yet written.
    pub(crate) fn has_yet_to_write(&self, id: MapId) -> bool {
        // The ids are in descending order.
        let is_to_come = self.maps.binary_search_by(|map| id.cmp(map)).is_ok();
        is_to_come && !self.left.iter().any(|(left, _)| *left == id)
    }
}

impl Partition {
    /// Keeps a destroyed map until it is written.
    pub(crate) fn leave_for_export(&mut self, id: MapId, mut map: Box<Map>) {
        if let Some(export) = &mut self.export
            && map.export.is_some()
        {
            map.derived = None;
            self.bytes += map.bytes();
            export.left.push((id, map));
        }
    }
}
