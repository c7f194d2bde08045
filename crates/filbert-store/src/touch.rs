//! Idle clocks: what reads note, and how who leads has the log know of it.
//!
//! ```text
//!  read ──► read_at (here alone) ──► reads see the entry live on
//!                  │
//!                  └─ who leads, before a command that would find the entry expired: Touch { key, read_at } ──► log
//!                                                                        every replica: the deadline that commands decide by
//! ```
//!
//! A follower has reads of its own, or none: what it decides must not depend on them. And a read must not cost a command:
//! so the log learns of reads as late as it can, one touch for each entry and idle time at most.

use crate::keys::keys;
use crate::map::Map;
use crate::record::{Lifetime, NOT_READ, Record, Stamp};
use crate::share::Share;
use crate::{Change, ChangeOf, Command, MapId, Millis, Observer, Partition, Reply};

/// Counts a read of an entry and starts its idle clock anew, for reads; `false` when its time is over.
#[inline]
pub(crate) fn note_read(record: &mut Record, now: Millis, reads_ahead: &mut bool) -> bool {
    if let Some(mut lifetime) = record.lifetime() {
        if now >= lifetime.deadline_of_reads() {
            return false;
        }
        if lifetime.can_idle() {
            // A clock that went back does not bring the deadline nearer.
            lifetime.read_at = lifetime.read_at.max(now);
            record.set_lifetime(&lifetime);
            *reads_ahead = true;
        }
    }
    let usage = record.usage_mut();
    usage.hits = usage.hits.saturating_add(1);
    usage.accessed = usage.accessed.max(Stamp::at(now));
    true
}

/// When an entry was read, if the log would have it expire by `until`, and it lives on by that read now.
fn due_touch(record: &Record, now: Millis, until: Millis) -> Option<Millis> {
    let lifetime = record.lifetime()?;
    let (told, read) = (lifetime.deadline(), lifetime.deadline_of_reads());
    (told <= until && read > told.max(now)).then_some(lifetime.read_at)
}

impl Partition {
    /// Applies a command as who leads: the touches that it needs first, then itself. What a member without a log calls.
    pub fn lead<'p>(&'p mut self, command: &Command<'_>, observer: &mut dyn Observer) -> Reply<'p> {
        if self.may_need_touches(command) {
            self.apply_touches(command, observer);
        }
        self.apply(command, observer)
    }

    #[inline]
    fn may_need_touches(&self, command: &Command<'_>) -> bool {
        match command.change {
            ChangeOf::Expire { .. } => self.held().any(|map| map.reads_ahead),
            _ => self.map(command.map).is_some_and(|map| map.reads_ahead),
        }
    }

    #[cold]
    fn apply_touches(&mut self, command: &Command<'_>, observer: &mut dyn Observer) {
        let mut touches: Vec<(MapId, Box<[u8]>, Millis)> = Vec::new();
        self.touches_for(command, &mut |map, key, read_at| touches.push((map, key.into(), read_at)));
        for (map, key, read_at) in touches {
            let change = Change::Touch { key: &key, read_at };
            self.apply(&Command { map, change, ..*command }, observer);
        }
    }

    /// Visits what has to be touched before a command: map, key and time of the latest read of every entry that the command
    /// would find expired and that reads have kept alive. Who leads puts a [`ChangeOf::Touch`] for each ahead of the command
    /// in the log. Changes nothing.
    pub fn touches_for(&self, command: &Command<'_>, visit: &mut dyn FnMut(MapId, &[u8], Millis)) {
        let now = self.moment(command.now);
        if let ChangeOf::Expire { limit } = command.change {
            return self.touches_until(now, now, limit, visit);
        }
        let Some(map) = self.map(command.map).filter(|map| map.reads_ahead) else { return };
        let mut visit_key = |key: &[u8]| {
            let record = map.table.get(map.table.hash(key), key);
            if let Some(read_at) = record.and_then(|record| due_touch(record, now, now)) {
                visit(command.map, key, read_at);
            }
        };
        match command.change {
            ChangeOf::Claim { batch } | ChangeOf::WriteBatch { batch } => {
                crate::batch::items(batch).for_each(|(_, item)| visit_key(item.key));
            }
            ChangeOf::EvictKeys { keys: list } => keys(list).for_each(visit_key),
            ChangeOf::Clear | ChangeOf::EvictAll => map.touches_until(now, now, usize::MAX, &mut |key, read_at| {
                visit(command.map, key, read_at);
            }),
            // They are about the key, whether there is an entry or not.
            ChangeOf::Lock { .. } | ChangeOf::Unlock { .. } | ChangeOf::ForceUnlock { .. } | ChangeOf::Await { .. } => {
            }
            change => change.key().into_iter().for_each(visit_key),
        }
    }

    /// Visits entries, of each map at most `limit`, that the log would have expire by `until`, and that reads keep alive longer
    /// than that and than `now`. Asked for an `until` in the near future, it says what to touch so that no read is forgotten
    /// should another member lead then.
    pub fn touches_until(&self, now: Millis, until: Millis, limit: usize, visit: &mut dyn FnMut(MapId, &[u8], Millis)) {
        for map in self.held().filter(|map| map.reads_ahead) {
            map.touches_until(now, until, limit, &mut |key, read_at| visit(map.log.map(), key, read_at));
        }
    }

    /// Forgets all reads that the log has not been told of. What a member does before it leads again: others have led since, to
    /// whom those entries had expired. Takes time for every entry of maps with entries that such reads have kept alive.
    pub fn forget_reads(&mut self) {
        for map in self.maps.iter_mut().filter_map(Share::map_mut).filter(|map| map.reads_ahead) {
            map.reads_ahead = false;
            for record in map.table.records_mut() {
                if let Some(lifetime) = record.lifetime().filter(|lifetime| lifetime.read_at != NOT_READ) {
                    record.set_lifetime(&Lifetime { read_at: NOT_READ, ..lifetime });
                }
            }
        }
    }
}

impl Map {
    fn touches_until(&self, now: Millis, until: Millis, limit: usize, visit: &mut dyn FnMut(&[u8], Millis)) {
        let read_on = self.schedule.due(until).filter_map(|due| {
            let record = self.table.at(self.find_due(due)?)?;
            Some((record, due_touch(record, now, until)?))
        });
        for (record, read_at) in read_on.take(limit) {
            visit(record.key(), read_at);
        }
    }

    /// Starts the idle clock of an entry anew at the moment of a read, expired or not; whether there is an entry.
    pub(crate) fn touch(&mut self, key: &[u8], read_at: Millis) -> bool {
        let hash = self.table.hash(key);
        let Some(place) = self.table.find(hash, key) else { return false };
        self.keep_for_export(hash, place);
        if let Some(record) = self.table.at_mut(place)
            && let Some(lifetime) = record.lifetime()
        {
            // The schedule has it not later than before, and finds the later deadline when it looks.
            record.set_lifetime(&lifetime.touched(read_at));
        }
        true
    }
}
