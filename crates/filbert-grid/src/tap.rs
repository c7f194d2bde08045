//! The observer that a grid gives to its partitions: passes changes on to listeners and near caches, and notes freed keys.

use filbert_store::{Event, EventKind, MapId, Observer};

use crate::cell::Cell;
use crate::invalidation::Invalidation;
use crate::listeners::EntryEvent;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// Keys whose locks were released; `None` = any of the map, whose claims were.
pub(crate) type Freed = Vec<(MapId, Option<Box<[u8]>>)>;

/// Hears of the changes of one command.
pub(crate) struct Tap<'t> {
    shared: &'t Shared,
    cell: &'t Cell,
    /// The map that the command is about; `None` for commands about all maps.
    map: Option<&'t MapCore>,
    /// Whether entries that come and go are counted here; eviction by count has done so already.
    counts: bool,
    /// Whether listeners and near caches hear of it: from one member alone. Who follows copies hears of all that this member has.
    tells: bool,
    freed: Freed,
}

impl<'t> Tap<'t> {
    #[inline]
    pub(crate) fn new(shared: &'t Shared, cell: &'t Cell, map: Option<&'t MapCore>) -> Self {
        Tap { shared, cell, map, counts: true, tells: true, freed: Vec::new() }
    }

    /// For a command of a log, whose events this member tells or does not.
    pub(crate) fn of_log(shared: &'t Shared, cell: &'t Cell, map: Option<&'t MapCore>, tells: bool) -> Self {
        Tap { tells, ..Tap::new(shared, cell, map) }
    }

    /// For an eviction from one map, whose entries are taken off the count before if `counted` says so.
    pub(crate) fn uncounted(shared: &'t Shared, cell: &'t Cell, map: &'t MapCore, counted: bool) -> Self {
        Tap { counts: !counted, ..Tap::new(shared, cell, Some(map)) }
    }

    /// The keys whose locks were released, for those who wait.
    #[inline]
    pub(crate) fn into_freed(self) -> Freed {
        self.freed
    }

    fn pass_on(&self, map: &MapCore, event: &Event<'_>) {
        let whole_map = matches!(event.kind, EventKind::Cleared | EventKind::EvictedAll);
        if self.tells && map.near_caches.any() {
            map.near_caches.deliver(&Invalidation {
                partition: event.partition,
                key: (!whole_map).then_some(event.key),
                source: event.caller.client,
                partition_uuid: self.cell.uuid(),
                sequence: i64::try_from(event.sequence).unwrap_or(i64::MAX),
            });
        }
        // A change of the whole map is told once for the member, by whoever goes through the partitions.
        if !whole_map && map.listeners.any_hears(self.tells) {
            let event = EntryEvent {
                kind: event.kind,
                partition: Some(event.partition),
                key: Some(event.key),
                value: event.value,
                old_value: event.old_value,
                member: self.shared.member,
                affected: event.count,
            };
            map.listeners.deliver(&event, self.tells);
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
