//! Expiry of entries: lifetimes from durations, and the schedule that finds expired entries.

use std::collections::BTreeMap;

use crate::record::{Lifetime, NOT_READ};
use crate::{Expiry, MapSettings, Millis};

const NEVER_MS: i64 = i64::MAX;

impl Lifetime {
    /// A lifetime that begins now. A duration of `i64::MAX` is unlimited.
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

    /// The lifetime of an entry that is put now with `expiry` into a map with `settings`.
    pub(crate) fn of_put(expiry: Expiry, settings: &MapSettings, now: Millis) -> Lifetime {
        let ttl_ms = resolve(expiry.ttl_ms, settings.ttl_default_ms);
        let max_idle_ms = resolve(expiry.max_idle_ms, settings.max_idle_default_ms);
        Lifetime::starting(ttl_ms, max_idle_ms, now)
    }

    /// A different time to live from now on. The idle time is unchanged.
    pub(crate) fn with_ttl(&self, ttl_ms: i64, settings: &MapSettings, now: Millis) -> Lifetime {
        let ttl_ms = resolve(ttl_ms, settings.ttl_default_ms);
        Lifetime { ttl_ms, ttl_deadline: deadline(ttl_ms, now), ..*self }
    }

    /// Restarts the idle time at `time`, unless that would make its end earlier. For commands.
    pub(crate) fn touched(&self, time: Millis) -> Lifetime {
        Lifetime { idle_deadline: self.idle_deadline.max(self.idle_deadline_after(time)), ..*self }
    }

    /// The end of the idle time if it started at `time`.
    pub(crate) fn idle_deadline_after(&self, time: Millis) -> Millis {
        deadline(self.max_idle_ms, time)
    }

    /// Whether reads extend the life of the entry.
    pub(crate) fn can_idle(&self) -> bool {
        self.max_idle_ms != NEVER_MS
    }

    /// Whether the entry never expires.
    pub(crate) fn is_endless(&self) -> bool {
        self.ttl_ms == NEVER_MS && self.max_idle_ms == NEVER_MS && self.deadline() == Millis::MAX
    }
}

/// A duration from a client: negative = the default, 0 = unlimited. A default of 0 is unlimited,
/// too.
fn resolve(wanted_ms: i64, default_ms: i64) -> i64 {
    let ms = if wanted_ms < 0 { default_ms } else { wanted_ms };
    if ms <= 0 { NEVER_MS } else { ms }
}

fn deadline(duration_ms: i64, now: Millis) -> Millis {
    if duration_ms == NEVER_MS { Millis::MAX } else { now.plus(duration_ms) }
}

/// The times at which to look for expired entries: one item for each entry that can expire, not
/// later than its deadline.
///
/// A touch moves an idle deadline without changing the schedule. An entry that is not expired when
/// its item comes due is scheduled again at its current deadline. So touches are cheap, and an
/// entry is examined at most once in each idle time.
///
/// Items with the same time are in the order in which commands created them, not in the order of
/// hashes: the entries that a limited sweep frees, and the order of their events, must be the same
/// in every replica.
#[derive(Default)]
pub(crate) struct Schedule {
    /// The hash of the key, by time and number.
    items: BTreeMap<(Millis, u64), u64>,
    /// The number of the next item, which is the number of items ever created. The same in all
    /// replicas.
    next_number: u64,
}

/// The bytes of one item, including the unused space in the nodes of the tree (filled to about 7 of
/// 11).
const ITEM_BYTES: usize = 38;

/// An item of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) time: Millis,
    pub(crate) number: u64,
    pub(crate) hash: u64,
}

impl Due {
    /// Whether the item belongs to an entry with this lifetime.
    pub(crate) fn is_of(&self, lifetime: &Lifetime) -> bool {
        lifetime.scheduled == self.time && lifetime.number == self.number
    }
}

impl Schedule {
    /// Sets the place of a lifetime in the schedule. `old` is the lifetime that it replaces; its
    /// place is kept if it is early enough.
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
        // A lifetime without an item has number 0, so that equal lifetimes are equal in all
        // replicas.
        new.number = 0;
        if deadline != Millis::MAX {
            new.number = self.next_number;
            self.next_number += 1;
        }
        self.restore(hash, new);
    }

    /// Inserts the item of a lifetime at the place that the lifetime has.
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

    /// Removes an item that belongs to no entry.
    pub(crate) fn forget(&mut self, due: Due) {
        self.items.remove(&(due.time, due.number));
    }

    /// Whether the schedule has an item at the place of this lifetime.
    pub(crate) fn has(&self, lifetime: &Lifetime) -> bool {
        self.items.contains_key(&(lifetime.scheduled, lifetime.number))
    }

    /// The number of the next item.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Continues with the numbers of another replica.
    pub(crate) fn number_from(&mut self, next_number: u64) {
        self.next_number = next_number;
    }

    pub(crate) fn first(&self) -> Option<Millis> {
        self.items.first_key_value().map(|((time, _), _)| *time)
    }

    /// The items due now, in order.
    pub(crate) fn due(&self, now: Millis) -> impl Iterator<Item = Due> {
        let all = self.items.range(..=(now, u64::MAX));
        all.map(|((time, number), hash)| Due { time: *time, number: *number, hash: *hash })
    }

    /// Removes all items. The numbers continue.
    pub(crate) fn clear(&mut self) {
        self.items = BTreeMap::new();
    }

    /// Whether the schedule is empty and never had an item.
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
    fn entries_of_one_time_are_in_the_order_of_their_creation() {
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
