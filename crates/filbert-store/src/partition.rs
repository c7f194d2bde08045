//! A partition: all maps' entries whose keys hash to it, changed by commands only.

use filbert_data::PartitionId;

use crate::command::{Change, ChangeOf, Command};
use crate::eviction::Generator;
use crate::journal::Journal;
use crate::map::{Context, Map};
use crate::put::Outcome;
use crate::table::Place;
use crate::{
    Cursor, EntryView, EventKind, LockState, MapId, MapSettings, MapStatistics, Millis, Observer, PartitionSettings,
    Reply, StoreError, Value,
};

/// Where the entry of a key is, if there is one. Good until the partition changes.
#[derive(Clone, Copy, Debug)]
pub struct Located(Option<Place>);

/// One partition of a member. Two of them with the same settings, given the same commands and reads in the same order,
/// give the same replies, events and iteration order.
///
/// Reads are never held up by locks of keys, and an expired entry is absent from the moment its time is over. Asked for
/// a map that does not exist, reads answer as for an empty one.
pub struct Partition {
    settings: PartitionSettings,
    /// In order of id. Boxed, as a partition may have many maps and moves when they are created.
    maps: Vec<(MapId, Box<Map>)>,
    generator: Generator,
    bytes: usize,
}

impl Partition {
    /// An empty partition.
    #[must_use]
    pub fn new(settings: PartitionSettings) -> Self {
        let generator = Generator::new(settings.random_seed);
        Partition { settings, maps: Vec::new(), generator, bytes: 0 }
    }

    /// Makes a map, or gives an existing one other settings; entries keep the lifetimes that they have.
    pub fn create_map(&mut self, map: MapId, config: MapSettings) {
        match self.maps.binary_search_by_key(&map, |(id, _)| *id) {
            Ok(index) => {
                if let Some((_, existing)) = self.maps.get_mut(index) {
                    self.bytes -= existing.bytes();
                    existing.configure(config);
                    self.bytes += existing.bytes();
                }
            }
            Err(index) => self.maps.insert(index, (map, Box::new(Map::new(map, config, self.settings.hash_seed)))),
        }
    }

    /// Drops a map with its locks and its journal, without events. Returns how many entries it had.
    pub fn destroy_map(&mut self, map: MapId) -> usize {
        let Ok(index) = self.maps.binary_search_by_key(&map, |(id, _)| *id) else { return 0 };
        let (_, destroyed) = self.maps.remove(index);
        self.bytes -= destroyed.bytes();
        destroyed.table.len()
    }

    /// The value of a key. Counts as a read and starts the idle clock anew.
    #[inline]
    pub fn get(&mut self, map: MapId, key: &[u8], now: Millis) -> Option<&[u8]> {
        self.map_mut(map)?.get(key, now)
    }

    /// Looks up where the entry of a key is, for [`Partition::get_located`]: a caller that reads many keys, of several
    /// partitions, looks them all up before it reads the first, so that the processor waits for memory once and not
    /// once for each. Does not count as a read.
    #[inline]
    #[must_use]
    pub fn locate(&self, map: MapId, key: &[u8]) -> Located {
        Located(self.map(map).and_then(|map| map.place_of(key)))
    }

    /// The value of a key that was looked up, as [`Partition::get`]. Nothing may have changed since then.
    #[inline]
    pub fn get_located(&mut self, map: MapId, located: Located, now: Millis) -> Option<&[u8]> {
        self.map_mut(map)?.get_at(located.0, now)
    }

    /// Whether there is an entry. Counts as a read of the entry and starts the idle clock anew.
    pub fn contains_key(&mut self, map: MapId, key: &[u8], now: Millis) -> bool {
        self.map_mut(map).is_some_and(|map| map.contains_key(key, now))
    }

    /// All that is known of an entry. Does not count as a read.
    #[must_use]
    pub fn entry_view(&self, map: MapId, key: &[u8], now: Millis) -> Option<EntryView<'_>> {
        self.map(map)?.entry_view(key, now)
    }

    /// Number of entries whose time is not over. Takes time for entries that expired and are not yet freed.
    #[must_use]
    pub fn len(&self, map: MapId, now: Millis) -> usize {
        self.map(map).map_or(0, |map| map.len(now))
    }

    /// Whether any entry has this value, byte for byte. Looks at all of them.
    #[must_use]
    pub fn contains_value(&self, map: MapId, value: &[u8], now: Millis) -> bool {
        self.map(map).is_some_and(|map| map.contains_value(value, now))
    }

    /// Visits key and value of every entry.
    pub fn for_each(&self, map: MapId, now: Millis, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(map) = self.map(map) {
            map.for_each(now, visit);
        }
    }

    /// Visits entries from `cursor` on until it has seen at least `at_least` (and more, as it takes whole ranges of
    /// hashes). Returns where to go on; `None` at the end.
    ///
    /// However the map changes between calls: an entry that is there throughout is visited exactly once.
    pub fn fetch(
        &self,
        map: MapId,
        cursor: Cursor,
        at_least: usize,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Option<Cursor> {
        self.map(map)?.fetch(cursor, at_least, now, visit)
    }

    /// Whether anybody holds a lock of the key.
    #[must_use]
    pub fn is_locked(&self, map: MapId, key: &[u8], now: Millis) -> bool {
        self.lock_state(map, key, now).is_some()
    }

    /// Who holds a lock of the key, how often, and how long.
    #[must_use]
    pub fn lock_state(&self, map: MapId, key: &[u8], now: Millis) -> Option<LockState> {
        self.map(map)?.lock_state(key, now)
    }

    /// Counters and sizes of a map; all 0 for one that does not exist.
    #[must_use]
    pub fn statistics(&self, map: MapId) -> MapStatistics {
        self.map(map).map_or_else(MapStatistics::default, Map::statistics)
    }

    /// A map's event journal, if it keeps one.
    #[must_use]
    pub fn journal(&self, map: MapId) -> Option<&Journal> {
        self.map(map)?.log.journal.as_ref()
    }

    /// Number of changes of a map since it was created. Near caches and listeners count by it.
    #[must_use]
    pub fn sequence(&self, map: MapId) -> u64 {
        self.map(map).map_or(0, |map| map.log.sequence)
    }

    /// The earliest moment at which [`ChangeOf::Expire`] may find something in any map. Takes time for each map.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Millis> {
        self.maps.iter().filter_map(|(_, map)| map.next_expiry()).min()
    }

    /// Bytes of all that the maps own, kept up to date with every change: cheap to ask.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the partition, and tells the observer of each change while doing so. The one way to change it.
    pub fn apply<'p>(&'p mut self, command: &Command<'_>, observer: &mut dyn Observer) -> Reply<'p> {
        let cx = &mut Context { partition: self.settings.id, now: command.now, caller: command.caller, observer };
        match command.change {
            ChangeOf::ReleaseLocks { client } => self.for_all(|map| map.release_locks(cx, client)),
            ChangeOf::Expire { limit } => {
                let mut budget = limit;
                self.for_all(|map| map.expire(cx, &mut budget))
            }
            change => {
                let Ok(index) = self.maps.binary_search_by_key(&command.map, |(id, _)| *id) else {
                    return Reply::Refused(StoreError::NoSuchMap(command.map));
                };
                let Some((_, map)) = self.maps.get_mut(index) else {
                    return Reply::Refused(StoreError::NoSuchMap(command.map));
                };
                let bytes_before = map.bytes();
                let outcome = change_map(map, cx, change, &mut self.generator);
                self.bytes = self.bytes + map.bytes() - bytes_before;
                match outcome {
                    Outcome::Reply(reply) => reply,
                    Outcome::Existing(place) => {
                        Reply::Previous(map.table.at(place).map(|record| Value::borrowed(record.value())))
                    }
                }
            }
        }
    }

    fn for_all(&mut self, mut change: impl FnMut(&mut Map) -> usize) -> Reply<'static> {
        let mut count = 0;
        for (_, map) in &mut self.maps {
            let bytes_before = map.bytes();
            count += change(map);
            self.bytes = self.bytes + map.bytes() - bytes_before;
        }
        Reply::Count(count)
    }

    /// Changes a map otherwise than by a command, and keeps the account of bytes.
    pub(crate) fn resize(&mut self, map: MapId, change: impl FnOnce(&mut Map)) {
        let Some(map) = self.map_mut(map) else { return };
        let before = map.bytes();
        change(map);
        let after = map.bytes();
        self.bytes = self.bytes + after - before;
    }

    #[inline]
    pub(crate) fn map(&self, map: MapId) -> Option<&Map> {
        let index = self.maps.binary_search_by_key(&map, |(id, _)| *id).ok()?;
        self.maps.get(index).map(|(_, map)| &**map)
    }

    pub(crate) fn id(&self) -> PartitionId {
        self.settings.id
    }

    #[inline]
    pub(crate) fn map_mut(&mut self, map: MapId) -> Option<&mut Map> {
        let index = self.maps.binary_search_by_key(&map, |(id, _)| *id).ok()?;
        self.maps.get_mut(index).map(|(_, map)| &mut **map)
    }
}

#[inline]
fn change_map(map: &mut Map, cx: &mut Context<'_>, change: Change<'_>, generator: &mut Generator) -> Outcome {
    Outcome::Reply(match change {
        ChangeOf::Put { key, value, expiry, mode } => return map.put(cx, key, value, expiry, mode),
        ChangeOf::ReplaceIfSame { key, expected, value } => map.replace_if_same(cx, key, expected, value),
        ChangeOf::Remove { key } => map.remove(cx, key),
        ChangeOf::Delete { key } => map.delete(cx, key),
        ChangeOf::RemoveIfSame { key, expected } => map.remove_if_same(cx, key, expected),
        ChangeOf::Evict { key } => map.evict(cx, key),
        ChangeOf::SetTtl { key, ttl_ms } => map.set_ttl(cx, key, ttl_ms),
        ChangeOf::Lock { key, lease_ms, reference } => map.lock(cx, key, lease_ms, reference),
        ChangeOf::Unlock { key, reference } => map.unlock(cx, key, reference),
        ChangeOf::ForceUnlock { key, .. } => map.force_unlock(cx, key),
        // Whoever else holds the key is told by the lock's own check.
        ChangeOf::Await { key } => map.refuse_locked(cx, key).unwrap_or(Reply::Done),
        ChangeOf::Claim { batch } => map.claim(cx, batch),
        ChangeOf::WriteBatch { batch } => map.write_batch(cx, batch),
        ChangeOf::Unclaim => map.unclaim(cx),
        ChangeOf::Clear => map.clear(cx, EventKind::Cleared),
        ChangeOf::EvictAll => map.clear(cx, EventKind::EvictedAll),
        ChangeOf::EvictSample { policy, count, except } => {
            Reply::Count(map.evict_sample(cx, generator, policy, count, except))
        }
        // These cover all maps.
        ChangeOf::ReleaseLocks { client } => Reply::Count(map.release_locks(cx, client)),
        ChangeOf::Expire { limit } => {
            let mut budget = limit;
            Reply::Count(map.expire(cx, &mut budget))
        }
    })
}
