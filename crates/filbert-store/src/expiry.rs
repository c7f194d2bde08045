//! When entries expire: lifetimes from durations, and the schedule by which expired entries are found and freed.

use std::collections::BTreeMap;

use crate::record::{Lifetime, NOT_READ};
use crate::{Expiry, MapSettings, Millis};

const NEVER_MS: i64 = i64::MAX;

impl Lifetime {
    /// A lifetime that begins now. `i64::MAX` as a duration is "for ever".
    pub(crate) fn starting(ttl_ms: i64, max_idle_ms: i64, now: Millis) -> Lifetime {
        Lifetime {
            ttl_ms,
            max_idle_ms,
            ttl_deadline: deadline(ttl_ms, now),
            idle_deadline: deadline(max_idle_ms, now),
            scheduled: Millis::MAX,
            number: 0,
            read_at: NOT_READ,
        }
    }

    /// The lifetime of an entry put now with `expiry` into a map with `settings`.
    pub(crate) fn of_put(expiry: Expiry, settings: &MapSettings, now: Millis) -> Lifetime {
        let ttl_ms = resolve(expiry.ttl_ms, settings.ttl_default_ms);
        let max_idle_ms = resolve(expiry.max_idle_ms, settings.max_idle_default_ms);
        Lifetime::starting(ttl_ms, max_idle_ms, now)
    }

    /// The same durations, with both clocks starting now.
    pub(crate) fn restarted(&self, now: Millis) -> Lifetime {
        Lifetime::starting(self.ttl_ms, self.max_idle_ms, now)
    }

    /// Another time to live from now on; the idle clock runs on.
    pub(crate) fn with_ttl(&self, ttl_ms: i64, settings: &MapSettings, now: Millis) -> Lifetime {
        let ttl_ms = resolve(ttl_ms, settings.ttl_default_ms);
        Lifetime { ttl_ms, ttl_deadline: deadline(ttl_ms, now), ..*self }
    }

    /// The idle clock started anew at `moment`, if that is later than it did: by a command.
    pub(crate) fn touched(&self, moment: Millis) -> Lifetime {
        Lifetime { idle_deadline: self.idle_deadline.max(self.idle_deadline_after(moment)), ..*self }
    }

    /// When the idle time would end, had it started at `moment`.
    pub(crate) fn idle_deadline_after(&self, moment: Millis) -> Millis {
        deadline(self.max_idle_ms, moment)
    }

    /// Whether reads put off the end of the entry at all.
    pub(crate) fn can_idle(&self) -> bool {
        self.max_idle_ms != NEVER_MS
    }

    /// Whether the entry never expires.
    pub(crate) fn is_endless(&self) -> bool {
        self.ttl_ms == NEVER_MS && self.max_idle_ms == NEVER_MS && self.deadline() == Millis::MAX
    }
}

/// A duration as clients say it: negative = the default, 0 = for ever; the default has 0 = for ever, too.
fn resolve(wanted_ms: i64, default_ms: i64) -> i64 {
    let ms = if wanted_ms < 0 { default_ms } else { wanted_ms };
    if ms <= 0 { NEVER_MS } else { ms }
}

fn deadline(duration_ms: i64, now: Millis) -> Millis {
    if duration_ms == NEVER_MS { Millis::MAX } else { now.plus(duration_ms) }
}

/// Where to look for expired entries: one item per entry that can expire, not later than its deadline.
///
/// A touch moves an idle deadline away without touching the schedule; an entry found there before its time is put in
/// again at its true deadline. So touches stay cheap, and an entry costs one look per idle time at most.
///
/// Items of one moment stand in the order in which commands made them, and not in that of hashes: which entries a
/// sweep with a limit frees, and in which order it tells of them, must be the same wherever the log is applied.
#[derive(Default)]
pub(crate) struct Schedule {
    /// By moment and number: the hash of the key.
    items: BTreeMap<(Millis, u64), u64>,
    /// Items ever made: the number of the next one. The same in all replicas.
    next_number: u64,
}

/// Bytes of one item, with the slack of the tree's nodes (filled to about 7 of 11).
const ITEM_BYTES: usize = 38;

/// An item of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) moment: Millis,
    pub(crate) number: u64,
    pub(crate) hash: u64,
}

impl Due {
    /// Whether the item is that of an entry with this lifetime.
    pub(crate) fn is_of(&self, lifetime: &Lifetime) -> bool {
        lifetime.scheduled == self.moment && lifetime.number == self.number
    }
}

impl Schedule {
    /// Gives a lifetime its place; `old` is the one that it replaces, whose place is kept where it will do.
    pub(crate) fn place(&mut self, hash: u64, old: Option<&Lifetime>, new: &mut Lifetime) {
        let deadline = new.deadline();
        if let Some(old) = old {
            if old.scheduled <= deadline && old.scheduled != Millis::MAX && deadline != Millis::MAX {
                (new.scheduled, new.number) = (old.scheduled, old.number);
                return;
            }
            self.remove(old);
        }
        new.scheduled = deadline;
        // Without an item, no number: lifetimes that mean the same are the same in all replicas.
        new.number = 0;
        if deadline != Millis::MAX {
            new.number = self.next_number;
            self.next_number += 1;
        }
        self.restore(hash, new);
    }

    /// Puts an item back where its lifetime says that it is.
    pub(crate) fn restore(&mut self, hash: u64, lifetime: &Lifetime) {
        if lifetime.scheduled != Millis::MAX {
            self.items.insert((lifetime.scheduled, lifetime.number), hash);
        }
    }

    pub(crate) fn remove(&mut self, lifetime: &Lifetime) {
        if lifetime.scheduled != Millis::MAX {
            self.items.remove(&(lifetime.scheduled, lifetime.number));
        }
    }

    /// Takes out an item that is of no entry.
    pub(crate) fn forget(&mut self, due: Due) {
        self.items.remove(&(due.moment, due.number));
    }

    /// Whether there is an item with the place of this lifetime.
    pub(crate) fn has(&self, lifetime: &Lifetime) -> bool {
        self.items.contains_key(&(lifetime.scheduled, lifetime.number))
    }

    /// The number of the next item.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Goes on numbering where another replica is.
    pub(crate) fn number_from(&mut self, next_number: u64) {
        self.next_number = next_number;
    }

    pub(crate) fn first(&self) -> Option<Millis> {
        self.items.first_key_value().map(|((moment, _), _)| *moment)
    }

    /// The items to look at by now, in order.
    pub(crate) fn due(&self, now: Millis) -> impl Iterator<Item = Due> {
        let all = self.items.range(..=(now, u64::MAX));
        all.map(|((moment, number), hash)| Due { moment: *moment, number: *number, hash: *hash })
    }

    /// Takes all items out; the numbers go on.
    pub(crate) fn clear(&mut self) {
        self.items = BTreeMap::new();
    }

    /// Whether there is no item, and never was.
    pub(crate) fn is_as_new(&self) -> bool {
        self.items.is_empty() && self.next_number == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.items.len() * ITEM_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000);

    #[test]
    fn durations_come_from_the_put_or_else_from_the_map() {
        let settings = MapSettings { ttl_default_ms: 50, ..MapSettings::default() };
        let of = |ttl_ms, max_idle_ms| Lifetime::of_put(Expiry { ttl_ms, max_idle_ms }, &settings, NOW).deadline();
        assert_eq!(of(-1, -1), Millis(1_050));
        assert_eq!(of(0, -1), Millis::MAX);
        assert_eq!(of(70, -1), Millis(1_070));
        assert_eq!(of(-1, 20), Millis(1_020));
        assert_eq!(of(i64::MAX, i64::MAX), Millis::MAX);
        assert!(Lifetime::of_put(Expiry::NEVER, &settings, NOW).is_endless());
    }

    #[test]
    fn deadlines_saturate_at_the_end_of_time() {
        let lifetime = Lifetime::starting(i64::MAX - 1, i64::MAX, Millis(i64::MAX - 5));
        assert_eq!(lifetime.deadline(), Millis::MAX);
        assert_eq!(Lifetime::starting(i64::MAX, i64::MAX, Millis(i64::MIN)).deadline(), Millis::MAX);
    }

    #[test]
    fn a_read_under_a_clock_that_went_back_does_not_shorten_the_idle_time() {
        let lifetime = Lifetime::starting(i64::MAX, 100, NOW);
        assert_eq!(lifetime.touched(Millis(0)).deadline(), Millis(1_100));
        assert_eq!(lifetime.touched(Millis(1_050)).deadline(), Millis(1_150));
    }

    #[test]
    fn entries_of_one_moment_stand_in_the_order_in_which_they_came() {
        let mut schedule = Schedule::default();
        let mut first = Lifetime::starting(10, i64::MAX, NOW);
        let (mut second, mut third) = (first, first);
        schedule.place(7, None, &mut first);
        schedule.place(7, None, &mut second);
        schedule.place(3, None, &mut third);
        let hashes = |schedule: &Schedule| schedule.due(Millis(1_010)).map(|due| due.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&schedule), [7, 7, 3]);
        schedule.remove(&first);
        assert_eq!(hashes(&schedule), [7, 3]);
        assert!(schedule.due(NOW).next().is_none());
        schedule.remove(&second);
        schedule.remove(&third);
        assert_eq!((schedule.first(), schedule.next_number()), (None, 3));
    }
}
