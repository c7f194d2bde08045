//! A partition: the entries of all maps with keys that hash to it. Only commands change them.

mod shares;
mod snapshot_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use filbert_data::PartitionId;
use uuid::Uuid;

use crate::change::change_map;
use crate::command::{ChangeOf, Command};
use crate::journal::Journal;
use crate::map::{Context, Map};
use crate::put::Outcome;
use crate::share::{Declaration, Declarations, SHARE_BYTES, Share};
use crate::table::RecordPlace;
use crate::{
    Caller, Cursor, EntryView, LockState, MapId, MapSettings, MapStatistics, Millis, Observer, PartitionSettings,
    Reply, StoreError, Value,
};

pub(crate) use snapshot_state::Export;

/// The place of the entry of a key, if there is an entry. Valid until the partition changes.
#[derive(Clone, Copy, Debug)]
pub struct Located(Option<RecordPlace>);

/// One partition of a member. Two partitions that apply the same commands in the same order give
/// the same replies, events and journals, and have the same entries, locks and claims. Reads
/// between the commands have no influence, nor do the hash seeds, the indexes and columns, and the
/// snapshots from which the partitions were restored.
///
/// Locks of keys never delay reads, and an expired entry is absent from its deadline on. A read of
/// a map that does not exist gives the result of an empty map.
///
/// # Time
///
/// Callers pass a time with each command and read. If it is earlier than the time of the latest
/// command, the time of that command is used: when another member with a slower clock begins to
/// stamp commands, expired entries stay expired, and ended leases stay ended. A clock that was
/// ahead therefore stops the time for as long as it was ahead, and the time never goes back. Reads
/// can be exempted from this rule, see [`PartitionSettings::exact_read_times`].
pub struct Partition {
    pub(crate) settings: PartitionSettings,
    /// Sorted by id.
    pub(crate) maps: Vec<Share>,
    /// Calls of `get` of declared maps, in addition to those counted in their shares.
    pub(crate) misses: BTreeMap<MapId, u64>,
    pub(crate) declarations: Arc<Declarations>,
    /// The latest time of a command.
    pub(crate) time: Millis,
    pub(crate) bytes: usize,
    /// The snapshot in progress.
    pub(crate) export: Option<Box<Export>>,
}

impl Partition {
    /// Creates an empty partition.
    #[must_use]
    pub fn new(settings: PartitionSettings) -> Self {
        let (maps, misses, declarations) = Default::default();
        Partition { settings, maps, misses, declarations, time: Millis(i64::MIN), bytes: 0, export: None }
    }

    /// Creates a map, or changes the settings of an existing one. Existing entries keep their
    /// lifetimes.
    pub fn create_map(&mut self, map: MapId, config: MapSettings) {
        match self.position(map) {
            Ok(index) => {
                self.hold_for_export(index);
                let bytes_before = self.maps.get(index).map_or(0, Share::bytes);
                if let Some(existing) = self.maps.get_mut(index).and_then(Share::map_mut) {
                    existing.configure(config);
                } else {
                    self.redeclare(index, |declaration| declaration.with_settings(config));
                }
                self.bytes = self.bytes + self.maps.get(index).map_or(0, Share::bytes) - bytes_before;
            }
            Err(index) => {
                let declaration = self.declarations.share(map, Declaration::new(config, None));
                if self.maps.len() == self.maps.capacity() {
                    // Grows by an eighth instead of doubling: there may be thousands of maps in
                    // hundreds of partitions.
                    self.maps.reserve_exact(self.maps.len() / 8 + 1);
                }
                self.maps.insert(index, Share::Declared { id: map, misses: 0, declaration });
                self.bytes += SHARE_BYTES;
            }
        }
    }

    /// Destroys a map with its locks and its journal, without events. Returns the number of its
    /// entries.
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

    /// The ids of all maps, sorted.
    pub fn map_ids(&self) -> impl Iterator<Item = MapId> {
        self.maps.iter().map(Share::id)
    }

    /// The claims, each with its map and owner. A statement may have several claims of one map.
    pub fn claims(&self) -> impl Iterator<Item = (MapId, Caller)> {
        let shares = self.maps.iter().filter_map(|share| Some((share.id(), share.map()?)));
        shares.flat_map(|(id, map)| map.claims.all().iter().map(move |claim| (id, claim.owner)))
    }

    /// The clients that own locks, once for each lock of each map. May include locks whose lease
    /// has ended.
    pub fn lock_owners(&self) -> impl Iterator<Item = Uuid> {
        self.held().flat_map(|map| map.locks.owners())
    }

    /// Whether the map exists.
    #[must_use]
    pub fn has_map(&self, map: MapId) -> bool {
        self.position(map).is_ok()
    }

    /// The value of a key. Counts as a read and restarts the idle time.
    #[inline]
    pub fn get(&mut self, map: MapId, key: &[u8], now: Millis) -> Option<&[u8]> {
        let now = self.read_time(now);
        match self.read(map)? {
            Read::Held(map) => map.get(key, now),
            Read::Missed => None,
        }
    }

    /// Looks up the place of the entry of a key, for [`Partition::get_located`]. A caller that
    /// reads many keys of several partitions first looks up all of them, so that the processor
    /// waits for memory once instead of once for each key. Does not count as a read.
    #[inline]
    #[must_use]
    pub fn locate(&self, map: MapId, key: &[u8]) -> Located {
        Located(self.map(map).and_then(|map| map.place_of(key)))
    }

    /// The value of a key that was looked up, with the effect of [`Partition::get`]. The partition
    /// must not have changed since the lookup.
    #[inline]
    pub fn get_located(&mut self, map: MapId, located: Located, now: Millis) -> Option<&[u8]> {
        let now = self.read_time(now);
        match self.read(map)? {
            Read::Held(map) => map.get_at(located.0, now),
            Read::Missed => None,
        }
    }

    /// Whether there is an entry. Counts as a read of the entry and restarts the idle time.
    pub fn contains_key(&mut self, map: MapId, key: &[u8], now: Millis) -> bool {
        let now = self.read_time(now);
        self.map_mut(map).is_some_and(|map| map.contains_key(key, now))
    }

    /// An entry with its metadata. Does not count as a read.
    #[must_use]
    pub fn entry_view(&self, map: MapId, key: &[u8], now: Millis) -> Option<EntryView<'_>> {
        self.map(map)?.entry_view(key, self.read_time(now))
    }

    /// The number of entries that have not expired. Takes time for each expired entry that is not
    /// yet freed.
    #[must_use]
    pub fn len(&self, map: MapId, now: Millis) -> usize {
        self.map(map).map_or(0, |map| map.len(self.read_time(now)))
    }

    /// Whether any entry has this value, byte for byte. Scans all entries.
    #[must_use]
    pub fn contains_value(&self, map: MapId, value: &[u8], now: Millis) -> bool {
        self.map(map).is_some_and(|map| map.contains_value(value, self.read_time(now)))
    }

    /// Visits the key and the value of every entry.
    pub fn for_each(&self, map: MapId, now: Millis, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(map) = self.map(map) {
            map.for_each(self.read_time(now), visit);
        }
    }

    /// Visits entries from `cursor` on until at least `at_least` were visited. It may visit more,
    /// because it processes whole ranges of hashes. Returns the cursor of the next call; `None` at
    /// the end.
    ///
    /// The map may change between calls: an entry that exists throughout the iteration is visited
    /// exactly once.
    pub fn fetch(
        &self,
        map: MapId,
        cursor: Cursor,
        at_least: usize,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Option<Cursor> {
        self.map(map)?.fetch(cursor, at_least, self.read_time(now), visit)
    }

    /// Whether the key is locked.
    #[must_use]
    pub fn is_locked(&self, map: MapId, key: &[u8], now: Millis) -> bool {
        self.lock_state(map, key, now).is_some()
    }

    /// The lock of a key: its owner, its count, and its lease.
    #[must_use]
    pub fn lock_state(&self, map: MapId, key: &[u8], now: Millis) -> Option<LockState> {
        self.map(map)?.lock_state(key, self.read_time(now))
    }

    /// The counters and sizes of a map; all 0 for a map that does not exist.
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

    /// The event journal of a map, if it has one.
    #[must_use]
    pub fn journal(&self, map: MapId) -> Option<&Journal> {
        match self.share(map)? {
            Share::Held { map, .. } => map.log.journal.as_ref(),
            Share::Declared { declaration, .. } => declaration.journal.as_ref(),
        }
    }

    /// The number of changes of a map since it was created. Near caches and listeners count with
    /// it.
    #[must_use]
    pub fn sequence(&self, map: MapId) -> u64 {
        self.map(map).map_or(0, |map| map.log.sequence)
    }

    /// The earliest time at which [`ChangeOf::Expire`] may find something to free in any map. Takes
    /// time for each map.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Millis> {
        self.held().filter_map(Map::next_expiry).min()
    }

    /// The bytes that all maps own. The number is updated with every change, so this call is cheap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The latest time of a command. A member that stamps commands must not use an earlier time.
    #[must_use]
    pub fn time(&self) -> Millis {
        self.time
    }

    /// The effective time of a read.
    #[inline]
    pub(crate) fn read_time(&self, now: Millis) -> Millis {
        if self.settings.exact_read_times { now } else { self.command_time(now) }
    }

    /// The effective time of a command: never earlier than the time of the latest command.
    #[inline]
    pub(crate) fn command_time(&self, now: Millis) -> Millis {
        now.max(self.time)
    }

    /// Applies a command, and reports each change to the observer. This is the only way to change
    /// entries, locks and claims, and the result depends only on the previous commands. A leader
    /// calls [`Partition::lead`] instead, or sends the touches of [`Partition::touches_for`] ahead
    /// of the command.
    pub fn apply<'p>(&'p mut self, command: &Command<'_>, observer: &mut dyn Observer) -> Reply<'p> {
        self.time = self.command_time(command.now);
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

    /// Changes a map without a command, and updates the number of bytes.
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

    /// The maps that exist beyond their declaration.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Map> {
        self.maps.iter().filter_map(Share::map)
    }

    /// A map, if it is held.
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

    /// The number of the partition.
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

/// The result of looking up a map for a read that counts.
enum Read<'p> {
    Held(&'p mut Map),
    /// The map is only declared, so there is no entry. The read was counted.
    Missed,
}
