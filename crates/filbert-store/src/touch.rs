//! Touches: commands that add reads to the log, if the reads keep entries alive. A read itself
//! changes only the entry in the replica that was read.
//!
//! ```text
//!  read ──► read_at (this replica only) ──► later reads find the entry alive
//!              │
//!              └── leader, before a command that would find the entry expired
//!                     │
//!                     ▼
//!           Touch { key, read_at } ──► log ──► every replica: the deadline that commands use
//! ```
//!
//! Followers have different reads, or none, so commands must not depend on reads. A read must not
//! cost a command either. Therefore the log learns of reads as late as possible, with at most one
//! touch for each entry and idle time.

use crate::keys::keys;
use crate::map::Map;
use crate::record::{Lifetime, NOT_READ, Record};
use crate::share::Share;
use crate::{Change, ChangeOf, Command, MapId, Millis, Observer, Partition, Reply};

/// The time of the latest read of an entry, if the entry expires by `until` according to the log,
/// but is alive now because of that read.
fn due_touch(record: &Record, now: Millis, until: Millis) -> Option<Millis> {
    let lifetime = record.lifetime()?;
    let (logged, read) = (lifetime.deadline(), lifetime.deadline_of_reads());
    (logged <= until && read > logged.max(now)).then_some(lifetime.read_at)
}

impl Partition {
    /// Applies a command as the leader: first the touches that it needs, then the command. A member
    /// without a log uses this method.
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

    /// Visits the touches that a command needs: map, key and time of the latest read of every entry
    /// that the command would find expired, but that reads have kept alive. The leader puts a
    /// [`ChangeOf::Touch`] for each of them into the log, ahead of the command. Changes nothing.
    pub fn touches_for(&self, command: &Command<'_>, visit: &mut dyn FnMut(MapId, &[u8], Millis)) {
        let now = self.command_time(command.now);
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
            // These do not depend on an entry.
            ChangeOf::Lock { .. } | ChangeOf::Unlock { .. } | ChangeOf::ForceUnlock { .. } | ChangeOf::Await { .. } => {
            }
            change => change.key().into_iter().for_each(visit_key),
        }
    }

    /// Visits entries that expire by `until` according to the log, but that reads keep alive beyond
    /// that and beyond `now`; at most `limit` entries of each map. With an `until` in the near
    /// future, these are the touches after which no read is lost if another member becomes the
    /// leader.
    pub fn touches_until(&self, now: Millis, until: Millis, limit: usize, visit: &mut dyn FnMut(MapId, &[u8], Millis)) {
        for map in self.held().filter(|map| map.reads_ahead) {
            map.touches_until(now, until, limit, &mut |key, read_at| visit(map.log.map(), key, read_at));
        }
    }

    /// Forgets all reads that are not in the log. A member calls this before it leads again: other
    /// members have led in the meantime, and for them these entries had expired. Takes time for
    /// every entry of maps in which such reads have kept entries alive.
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
}
