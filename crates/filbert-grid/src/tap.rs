//! The observer of a grid's partitions: notifies listeners and near caches of changes, and records
//! released keys.

use filbert_store::{Event, EventKind, MapId, Observer};

use crate::cell::Cell;
use crate::invalidation::{Invalidation, sequence_of};
use crate::listeners::EntryEvent;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// Keys with released locks. `None` instead of a key = claims of the map were released, so that any
/// of its keys may be free.
pub(crate) type Freed = Vec<(MapId, Option<Box<[u8]>>)>;

/// Observes the changes of one command.
pub(crate) struct Tap<'t> {
    shared: &'t Shared,
    cell: &'t Cell,
    /// The map that the command changes; `None` for commands that change all maps.
    map: Option<&'t MapCore>,
    /// Whether added and removed entries are counted. Eviction by entry count has already counted
    /// them.
    counts: bool,
    /// Whether this member notifies listeners and near caches. Only one member does. Listeners that
    /// follow replicas are notified by every member that has them.
    notifies: bool,
    freed: Freed,
}

impl<'t> Tap<'t> {
    #[inline]
    pub(crate) fn new(shared: &'t Shared, cell: &'t Cell, map: Option<&'t MapCore>) -> Self {
        Tap { shared, cell, map, counts: true, notifies: true, freed: Vec::new() }
    }

    /// A tap for a command of a log. `notifies` = this member notifies listeners.
    pub(crate) fn of_log(shared: &'t Shared, cell: &'t Cell, map: Option<&'t MapCore>, notifies: bool) -> Self {
        Tap { notifies, ..Tap::new(shared, cell, map) }
    }

    /// A tap for an eviction from one map. `counted` = the removed entries are already subtracted
    /// from the count.
    pub(crate) fn uncounted(shared: &'t Shared, cell: &'t Cell, map: &'t MapCore, counted: bool) -> Self {
        Tap { counts: !counted, ..Tap::new(shared, cell, Some(map)) }
    }

    /// The released keys, for their waiters.
    #[inline]
    pub(crate) fn into_freed(self) -> Freed {
        self.freed
    }

    fn pass_on(&self, map: &MapCore, event: &Event<'_>) {
        let whole_map = matches!(event.kind, EventKind::Cleared | EventKind::EvictedAll);
        if self.notifies && map.near_caches.any() {
            map.near_caches.deliver(&Invalidation {
                partition: event.partition,
                key: (!whole_map).then_some(event.key),
                source: event.caller.client,
                partition_uuid: self.cell.uuid(),
                sequence: sequence_of(map.id, event.sequence),
            });
        }
        // The event of the whole map is delivered once for the member, by the code that iterates
        // over the partitions.
        if !whole_map && map.listeners.any_to_notify(self.notifies) {
            let event = EntryEvent {
                kind: event.kind,
                partition: Some(event.partition),
                key: Some(event.key),
                value: event.value,
                old_value: event.old_value,
                member: self.shared.member,
                affected: event.count,
            };
            map.listeners.deliver(&event, self.notifies);
        }
    }
}

impl Observer for Tap<'_> {
    #[inline]
    fn observe(&mut self, event: &Event<'_>) {
        if matches!(event.kind, EventKind::LockReleased | EventKind::Unclaimed) {
            if self.shared.waiters.load(std::sync::atomic::Ordering::Acquire) > 0 {
                let key = (event.kind == EventKind::LockReleased).then(|| event.key.into());
                self.freed.push((event.map, key));
            }
            return;
        }
        match self.map {
            Some(map) => {
                if self.counts {
                    map.count_entry(event);
                }
                if map.is_watched() {
                    self.pass_on(map, event);
                }
            }
            None => {
                if let Some(map) = self.shared.map_by_id(event.map) {
                    map.count_entry(event);
                    self.pass_on(&map, event);
                }
            }
        }
    }
}
