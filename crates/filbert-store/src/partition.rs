//! A partition: all maps' entries whose keys hash to it, changed by commands only.

use std::collections::BTreeMap;
use std::sync::Arc;

use filbert_data::PartitionId;
use uuid::Uuid;

use crate::command::{Change, ChangeOf, Command};
use crate::journal::Journal;
use crate::map::{Context, Map};
use crate::put::Outcome;
use crate::share::{Declaration, Declarations, SHARE_BYTES, Share};
use crate::snapshot::Export;
use crate::table::Place;
use crate::{
    Cursor, EntryView, EventKind, LockState, MapId, MapSettings, MapStatistics, Millis, Observer, PartitionSettings,
    Reply, StoreError, Value,
};

/// Where the entry of a key is, if there is one. Good until the partition changes.
#[derive(Clone, Copy, Debug)]
pub struct Located(Option<Place>);

/// One partition of a member. Two of them, given the same commands in the same order, give the same replies, events and
/// journals, and hold the same entries, locks and claims, whatever is read of them in between, and whatever their hash
/// seeds, their indexes and columns, and the snapshots that they were restored from.
///
/// Reads are never held up by locks of keys, and an expired entry is absent from the moment its time is over. Asked for
/// a map that does not exist, reads answer as for an empty one.
///
/// # Time
///
/// Commands and reads bring the time along. One that is earlier than the latest command's counts as that one's: when another
/// member with a slower clock begins to stamp commands, what has expired stays expired, and a lease that was over is
/// over. So a clock that was ahead makes time stand still for as long as it was ahead, and nothing goes back. Reads may be told to be
/// exact, see [`PartitionSettings::reads_before_commands`].
pub struct Partition {
    pub(crate) settings: PartitionSettings,
    /// In order of id.
    pub(crate) maps: Vec<Share>,
    /// Calls of `get` of maps that are declared alone, beyond those that their shares have counted.
    pub(crate) misses: BTreeMap<MapId, u64>,
    pub(crate) declarations: Arc<Declarations>,
    /// The latest time that a command brought along.
    pub(crate) time: Millis,
    pub(crate) bytes: usize,
    /// The snapshot that is being made.
    pub(crate) export: Option<Box<Export>>,
}

impl Partition {
    /// An empty partition.
    #[must_use]
    pub fn new(settings: PartitionSettings) -> Self {
        let (maps, misses, declarations) = Default::default();
        Partition { settings, maps, misses, declarations, time: Millis(i64::MIN), bytes: 0, export: None }
    }

    /// Makes a map, or gives an existing one other settings; entries keep the lifetimes that they have.
    pub fn create_map(&mut self, map: MapId, config: MapSettings) {
        match self.position(map) {
            Ok(index) => {
                self.hold_for_export(index);
                let bytes_before = self.maps.get(index).map_or(0, Share::bytes);
                if let Some(existing) = self.maps.get_mut(index).and_then(Share::map_mut) {
                    existing.configure(config);
                } else {
                    self.declare_anew(index, |declaration| declaration.with_settings(config));
                }
                self.bytes = self.bytes + self.maps.get(index).map_or(0, Share::bytes) - bytes_before;
            }
            Err(index) => {
                let declaration = self.declarations.share(map, Declaration::new(config, None));
                if self.maps.len() == self.maps.capacity() {
                    // Grows by an eighth and not twofold: there may be thousands of maps in hundreds of partitions.
                    self.maps.reserve_exact(self.maps.len() / 8 + 1);
                }
                self.maps.insert(index, Share::Declared { id: map, misses: 0, declaration });
                self.bytes += SHARE_BYTES;
            }
        }
    }

    /// Drops a map with its locks and its journal, without events. Returns how many entries it had.
    pub fn destroy_map(&mut self, map: MapId) -> usize {
        let Ok(index) = self.position(map) else { return 0 };
        self.hold_for_export(index);
        let destroyed = self.maps.remove(index);
        if self.maps.len() * 2 < self.maps.capacity() {
            self.maps.shrink_to(self.maps.len() + self.maps.len() / 8);
        }
        self.bytes -= destroyed.bytes();
        match destroyed {
            Share::Held { map: destroyed, .. } => {
                let entries = destroyed.table.len();
                self.leave_for_export(map, destroyed);
                entries
            }
            Share::Declared { declaration, .. } => {
                drop(declaration);
                self.misses.remove(&map);
                self.declarations.tidy(map);
                0
            }
        }
    }

    /// The maps that there are, in order.
    pub fn map_ids(&self) -> impl Iterator<Item = MapId> {
        self.maps.iter().map(Share::id)
    }

    /// Those of which statements have claimed keys, of each claim of all maps.
    pub fn claimants(&self) -> impl Iterator<Item = Uuid> {
        self.held().flat_map(|map| map.claims.all()).map(|claim| claim.owner.client)
    }

    /// Clients with locks, of each lock of all maps. A lock with an ended lease may be among them.
    pub fn lock_owners(&self) -> impl Iterator<Item = Uuid> {
        self.held().flat_map(|map| map.locks.owners())
    }

    /// Whether there is such a map.
    #[must_use]
    pub fn has_map(&self, map: MapId) -> bool {
        self.position(map).is_ok()
    }

    /// The value of a key. Counts as a read and starts the idle clock anew.
    #[inline]
    pub fn get(&mut self, map: MapId, key: &[u8], now: Millis) -> Option<&[u8]> {
        let now = self.time_of_read(now);
        match self.read(map)? {
            Read::Held(map) => map.get(key, now),
            Read::Missed => None,
        }
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
        let now = self.time_of_read(now);
        match self.read(map)? {
            Read::Held(map) => map.get_at(located.0, now),
            Read::Missed => None,
        }
    }

    /// Whether there is an entry. Counts as a read of the entry and starts the idle clock anew.
    pub fn contains_key(&mut self, map: MapId, key: &[u8], now: Millis) -> bool {
        let now = self.time_of_read(now);
        self.map_mut(map).is_some_and(|map| map.contains_key(key, now))
    }

    /// All that is known of an entry. Does not count as a read.
    #[must_use]
    pub fn entry_view(&self, map: MapId, key: &[u8], now: Millis) -> Option<EntryView<'_>> {
        self.map(map)?.entry_view(key, self.time_of_read(now))
    }

    /// Number of entries whose time is not over. Takes time for entries that expired and are not yet freed.
    #[must_use]
    pub fn len(&self, map: MapId, now: Millis) -> usize {
        self.map(map).map_or(0, |map| map.len(self.time_of_read(now)))
    }

    /// Whether any entry has this value, byte for byte. Looks at all of them.
    #[must_use]
    pub fn contains_value(&self, map: MapId, value: &[u8], now: Millis) -> bool {
        self.map(map).is_some_and(|map| map.contains_value(value, self.time_of_read(now)))
    }

    /// Visits key and value of every entry.
    pub fn for_each(&self, map: MapId, now: Millis, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(map) = self.map(map) {
            map.for_each(self.time_of_read(now), visit);
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
        self.map(map)?.fetch(cursor, at_least, self.time_of_read(now), visit)
    }

    /// Whether anybody holds a lock of the key.
    #[must_use]
    pub fn is_locked(&self, map: MapId, key: &[u8], now: Millis) -> bool {
        self.lock_state(map, key, now).is_some()
    }

    /// Who holds a lock of the key, how often, and how long.
    #[must_use]
    pub fn lock_state(&self, map: MapId, key: &[u8], now: Millis) -> Option<LockState> {
        self.map(map)?.lock_state(key, self.time_of_read(now))
    }

    /// Counters and sizes of a map; all 0 for one that does not exist.
    #[must_use]
    pub fn statistics(&self, map: MapId) -> MapStatistics {
        let Some(share) = self.share(map) else { return MapStatistics::default() };
        let found = match share {
            Share::Held { map, .. } => map.statistics(),
            Share::Declared { id, misses, .. } => {
                let gets = u64::from(*misses) + self.misses.get(id).copied().unwrap_or(0);
                MapStatistics { gets, ..MapStatistics::default() }
            }
        };
        MapStatistics { bytes_owned: share.bytes(), ..found }
    }

    /// A map's event journal, if it keeps one.
    #[must_use]
    pub fn journal(&self, map: MapId) -> Option<&Journal> {
        match self.share(map)? {
            Share::Held { map, .. } => map.log.journal.as_ref(),
            Share::Declared { declaration, .. } => declaration.journal.as_ref(),
        }
    }

    /// Number of changes of a map since it was created. Near caches and listeners count by it.
    #[must_use]
    pub fn sequence(&self, map: MapId) -> u64 {
        self.map(map).map_or(0, |map| map.log.sequence)
    }

    /// The earliest moment at which [`ChangeOf::Expire`] may find something in any map. Takes time for each map.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Millis> {
        self.held().filter_map(Map::next_expiry).min()
    }

    /// Bytes of all that the maps own, kept up to date with every change: cheap to ask.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The latest time that a command brought along: who stamps commands stamps none with an earlier one.
    #[must_use]
    pub fn time(&self) -> Millis {
        self.time
    }

    /// The time of a read.
    #[inline]
    pub(crate) fn time_of_read(&self, now: Millis) -> Millis {
        if self.settings.reads_before_commands { now } else { self.moment(now) }
    }

    /// The time of a command: never earlier than that of the latest one.
    #[inline]
    pub(crate) fn moment(&self, now: Millis) -> Millis {
        now.max(self.time)
    }

    /// Changes the partition, and tells the observer of each change while doing so. The one way to change entries, locks and
    /// claims, and a function of what commands have done before alone: who leads calls [`Partition::lead`] instead, or sends
    /// [`Partition::touches_for`] the command ahead of it.
    pub fn apply<'p>(&'p mut self, command: &Command<'_>, observer: &mut dyn Observer) -> Reply<'p> {
        self.time = self.moment(command.now);
        let cx = &mut Context { partition: self.settings.id, now: self.time, caller: command.caller, observer };
        match command.change {
            ChangeOf::ReleaseLocks { client } => self.for_all(|map| map.release_locks(cx, client)),
            ChangeOf::Expire { limit } => {
                let mut budget = limit;
                self.for_all(|map| map.expire(cx, &mut budget))
            }
            change => {
                let Ok(index) = self.position(command.map) else {
                    return Reply::Refused(StoreError::NoSuchMap(command.map));
                };
                if self.maps.get(index).is_some_and(|share| share.declaration().is_some()) {
                    return self.apply_first(index, cx, change);
                }
                let Some(map) = self.maps.get_mut(index).and_then(Share::map_mut) else {
                    return Reply::Refused(StoreError::NoSuchMap(command.map));
                };
                let bytes_before = map.bytes();
                let outcome = change_map(map, cx, change);
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
        for map in self.maps.iter_mut().filter_map(Share::map_mut) {
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
    pub(crate) fn position(&self, map: MapId) -> Result<usize, usize> {
        self.maps.binary_search_by_key(&map, Share::id)
    }

    #[inline]
    pub(crate) fn share(&self, map: MapId) -> Option<&Share> {
        self.maps.get(self.position(map).ok()?)
    }

    /// The maps that are more than declared.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Map> {
        self.maps.iter().filter_map(Share::map)
    }

    /// A map, if it is more than declared.
    #[inline]
    pub(crate) fn map(&self, map: MapId) -> Option<&Map> {
        self.share(map)?.map()
    }

    /// A map, for a read that counts.
    #[inline]
    fn read(&mut self, map: MapId) -> Option<Read<'_>> {
        let index = self.position(map).ok()?;
        let Partition { maps, misses: beyond, .. } = self;
        match maps.get_mut(index)? {
            Share::Held { map, .. } => Some(Read::Held(map)),
            Share::Declared { id, misses, .. } => {
                *misses = misses.checked_add(1).unwrap_or_else(|| {
                    *beyond.entry(*id).or_default() += u64::from(u16::MAX) + 1;
                    0
                });
                Some(Read::Missed)
            }
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> PartitionId {
        self.settings.id
    }

    #[inline]
    pub(crate) fn map_mut(&mut self, map: MapId) -> Option<&mut Map> {
        let index = self.position(map).ok()?;
        self.maps.get_mut(index)?.map_mut()
    }
}

/// What a read that counts finds.
enum Read<'p> {
    Held(&'p mut Map),
    /// There is no entry, which is counted.
    Missed,
}

#[inline]
pub(crate) fn change_map(map: &mut Map, cx: &mut Context<'_>, change: Change<'_>) -> Outcome {
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
        ChangeOf::EvictKeys { keys } => Reply::Count(map.evict_keys(cx, keys)),
        ChangeOf::Touch { key, read_at } => Reply::Flag(map.touch(key, read_at)),
        // These cover all maps.
        ChangeOf::ReleaseLocks { client } => Reply::Count(map.release_locks(cx, client)),
        ChangeOf::Expire { limit } => {
            let mut budget = limit;
            Reply::Count(map.expire(cx, &mut budget))
        }
    })
}
