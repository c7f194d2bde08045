//! The changes that a query cache's client is to hear of, numbered by partition, and kept for a while after they were told.
//!
//! ```text
//!  partition's lane:   5   6   7 │ 8   9
//!                      told      │ to be told     next number: 10
//!                      kept for those who lost some     ▲
//!                                head ──────────────────┘ `set_head` moves it back
//! ```
//!
//! While the client is away, changes are numbered and not kept.
//!
//! Numbers begin with 1 in each partition. A client that sees a gap knows that it has lost changes.
//!
//! While a partition's content is made anew (`anew.rs`), its changes are kept aside, and are numbered behind that content.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use filbert_grid::{EventKinds, PartitionId, Reservation};

/// How a client wants to hear of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Changes that are told at once when so many of a partition wait.
    pub(crate) batch: usize,
    /// Changes kept of each partition.
    pub(crate) capacity: usize,
    /// How long a change may wait for others; zero: it is told at once.
    pub(crate) delay: Duration,
    /// Whether of the waiting changes of a key only the last is told.
    pub(crate) coalesce: bool,
    /// Bytes kept of all partitions. Each partition keeps its last change regardless.
    pub(crate) bytes_max: usize,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) kind: EventKinds,
    /// `None` for a change of the whole partition.
    pub(crate) key: Option<Box<[u8]>>,
    pub(crate) value: Option<Box<[u8]>>,
    pub(crate) sequence: i64,
    since: Instant,
}

impl Change {
    pub(crate) fn new(kind: EventKinds, key: Option<&[u8]>, value: Option<&[u8]>, now: Instant) -> Self {
        Self { kind, key: key.map(Box::from), value: value.map(Box::from), sequence: 0, since: now }
    }

    /// The same with a number.
    pub(super) fn numbered(self, sequence: i64) -> Self {
        Self { sequence, ..self }
    }

    pub(super) fn bytes(&self) -> usize {
        let length = |data: &Option<Box<[u8]>>| data.as_ref().map_or(0, |data| data.len());
        size_of::<Self>() + length(&self.key) + length(&self.value)
    }
}

/// The changes of one partition.
#[derive(Debug)]
struct Lane {
    /// With ascending numbers, without gaps.
    changes: VecDeque<Change>,
    /// The number of the first change that is to be told.
    head: i64,
    /// The number of the next change.
    next: i64,
    /// The waiting change of each key, where changes are coalesced.
    waiting: HashMap<Box<[u8]>, i64>,
    aside: Aside,
}

/// The changes of a partition while its content is made anew.
#[derive(Debug)]
enum Aside {
    /// It is not.
    No,
    /// Without numbers, in their order.
    Kept(Vec<Change>),
    /// There were more than are kept, or the client was away: it is to be begun again.
    Lost,
}

impl Lane {
    fn new() -> Self {
        Self { changes: VecDeque::new(), head: 1, next: 1, waiting: HashMap::new(), aside: Aside::No }
    }

    /// Forgets all changes; the next one has the number that it would have had.
    fn forget(&mut self) {
        (self.changes, self.waiting, self.head) = (VecDeque::new(), HashMap::new(), self.next);
    }

    /// Bytes of all changes.
    fn bytes(&self) -> usize {
        let aside = match &self.aside {
            Aside::Kept(changes) => changes.as_slice(),
            Aside::No | Aside::Lost => &[],
        };
        self.changes.iter().chain(aside).map(Change::bytes).sum()
    }

    /// Where the change of this number stands; the end for the next number.
    fn index(&self, sequence: i64) -> usize {
        let first = self.next.saturating_sub(i64::try_from(self.changes.len()).unwrap_or(i64::MAX));
        usize::try_from(sequence.saturating_sub(first)).unwrap_or(0).min(self.changes.len())
    }

    fn waiting_count(&self) -> usize {
        self.changes.len() - self.index(self.head)
    }

    /// Forgets the oldest change; returns its bytes.
    fn drop_first(&mut self) -> usize {
        let Some(change) = self.changes.pop_front() else { return 0 };
        // If it was not told yet, the client will see the gap.
        self.head = self.head.max(change.sequence + 1);
        if let Some(key) = &change.key
            && self.waiting.get(key) == Some(&change.sequence)
        {
            self.waiting.remove(key);
        }
        change.bytes()
    }
}

/// The changes of all partitions.
#[derive(Debug)]
pub(crate) struct Buffers {
    settings: Settings,
    lanes: HashMap<PartitionId, Lane>,
    bytes: usize,
    room: Reservation,
    /// Whether the client is away, so that nothing is kept.
    is_away: bool,
}

/// Bytes of a lane without changes, more or less.
const LANE_BYTES: usize = 192;

impl Buffers {
    /// Keeps changes as far as there is room for them.
    pub(crate) fn new(settings: Settings, room: Reservation) -> Self {
        Self { settings, lanes: HashMap::new(), bytes: 0, room, is_away: false }
    }

    /// Forgets all changes and keeps no more until the client is back: it will see the gap.
    pub(crate) fn leave(&mut self) {
        self.is_away = true;
        for lane in self.lanes.values_mut() {
            lane.forget();
            if matches!(lane.aside, Aside::Kept(_)) {
                lane.aside = Aside::Lost;
            }
        }
        self.bytes = self.lanes.len() * LANE_BYTES;
        self.room.shrink(2 * self.bytes);
    }

    /// Keeps changes again; whether it was away.
    pub(crate) fn come_back(&mut self) -> bool {
        std::mem::replace(&mut self.is_away, false)
    }

    fn lane(&mut self, partition: PartitionId) -> &mut Lane {
        self.lanes.entry(partition).or_insert_with(|| {
            self.bytes = self.bytes.saturating_add(LANE_BYTES);
            Lane::new()
        })
    }

    /// Forgets the changes of a partition whose content is made anew, and keeps those that come aside.
    pub(crate) fn set_aside(&mut self, partition: PartitionId) {
        let is_away = self.is_away;
        let lane = self.lane(partition);
        let before = lane.bytes();
        lane.forget();
        lane.aside = if is_away { Aside::Lost } else { Aside::Kept(Vec::new()) };
        self.bytes = self.bytes.saturating_sub(before);
        self.room.shrink(2 * self.bytes);
    }

    /// Goes on with a partition whose content was made anew, by `told` changes that were numbered from 1 on: what was kept aside, to be
    /// appended; `None` if it is not all that has changed.
    pub(crate) fn go_on(&mut self, partition: PartitionId, told: i64) -> Option<Vec<Change>> {
        let lane = self.lane(partition);
        let Aside::Kept(kept) = std::mem::replace(&mut lane.aside, Aside::No) else { return None };
        lane.next = told.saturating_add(1);
        lane.forget();
        self.bytes = self.bytes.saturating_sub(kept.iter().map(Change::bytes).sum());
        Some(kept)
    }

    /// Ends that without a content: the next change has a number that shows what is lost.
    pub(crate) fn give_up(&mut self, partition: PartitionId) {
        self.set_aside(partition);
        let lane = self.lane(partition);
        lane.next += 1;
        (lane.head, lane.aside) = (lane.next, Aside::No);
    }

    fn append_aside(&mut self, partition: PartitionId, change: Change) {
        self.bytes = self.bytes.saturating_add(change.bytes());
        let fits = self.bytes <= self.settings.bytes_max && self.room.resize(2 * self.bytes).is_ok();
        let lane = self.lane(partition);
        match &mut lane.aside {
            Aside::Kept(changes) if fits => changes.push(change),
            _ => {
                let bytes = lane.bytes().saturating_add(change.bytes());
                lane.aside = Aside::Lost;
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }

    /// Numbers a change and keeps it.
    pub(crate) fn append(&mut self, partition: PartitionId, mut change: Change) {
        let is_away = self.is_away;
        let lane = self.lane(partition);
        match lane.aside {
            // It is in the content that comes.
            Aside::Lost => return,
            Aside::Kept(_) if !is_away => return self.append_aside(partition, change),
            Aside::Kept(_) | Aside::No => {}
        }
        let Some(lane) = self.lanes.get_mut(&partition) else { return };
        if self.is_away {
            lane.next += 1;
            lane.head = lane.next;
            return;
        }
        if self.settings.coalesce
            && let Some(key) = &change.key
            && let Some(at) = lane.waiting.get(key).map(|sequence| lane.index(*sequence))
            && let Some(place) = lane.changes.get_mut(at)
        {
            // It keeps number and age of the one that it replaces.
            (change.sequence, change.since) = (place.sequence, place.since);
            self.bytes = self.bytes.saturating_sub(place.bytes()).saturating_add(change.bytes());
            *place = change;
            self.make_room(partition);
            return;
        }
        change.sequence = lane.next;
        lane.next += 1;
        if self.settings.coalesce
            && let Some(key) = &change.key
        {
            lane.waiting.insert(key.clone(), change.sequence);
        }
        self.bytes = self.bytes.saturating_add(change.bytes());
        lane.changes.push_back(change);
        while lane.changes.len() > 1
            && (lane.changes.len() > self.settings.capacity || self.bytes > self.settings.bytes_max)
        {
            self.bytes = self.bytes.saturating_sub(lane.drop_first());
        }
        self.make_room(partition);
    }

    /// Takes room for what is kept. Where there is none, the oldest changes of a partition are lost, which the client sees.
    fn make_room(&mut self, partition: PartitionId) {
        // However few they are: a client may have as many caches as it wants names for.
        while self.room.resize(2 * self.bytes).is_err() {
            let Some(lane) = self.lanes.get_mut(&partition).filter(|lane| !lane.changes.is_empty()) else { return };
            self.bytes = self.bytes.saturating_sub(lane.drop_first());
        }
    }

    /// Shows the changes of a partition that are due to `tell`, all at once, oldest first.
    pub(crate) fn tell_due(
        &mut self,
        partition: PartitionId,
        now: Instant,
        tell: &mut dyn FnMut(PartitionId, &mut dyn Iterator<Item = &Change>),
    ) {
        let Some(lane) = self.lanes.get_mut(&partition) else { return };
        let from = lane.index(lane.head);
        let count = lane.waiting_count();
        let settings = &self.settings;
        let due = if settings.delay.is_zero() || count >= settings.batch {
            count
        } else {
            let is_due = |change: &&Change| now.saturating_duration_since(change.since) >= settings.delay;
            lane.changes.range(from..).take_while(is_due).count()
        };
        if due == 0 {
            return;
        }
        tell(partition, &mut lane.changes.range(from..from + due));
        let told = lane.changes.range(from..from + due);
        for key in told.filter_map(|change| change.key.as_ref()) {
            lane.waiting.remove(key);
        }
        lane.head = lane.changes.get(from + due).map_or(lane.next, |change| change.sequence);
    }

    /// As [`Buffers::tell_due`], for all partitions.
    pub(crate) fn tell_all_due(
        &mut self,
        now: Instant,
        tell: &mut dyn FnMut(PartitionId, &mut dyn Iterator<Item = &Change>),
    ) {
        let partitions: Vec<PartitionId> =
            self.lanes.iter().filter(|(_, lane)| lane.waiting_count() > 0).map(|(partition, _)| *partition).collect();
        for partition in partitions {
            self.tell_due(partition, now, tell);
        }
    }

    /// Has the changes from this number on told again; false if it is not kept any more.
    pub(crate) fn set_head(&mut self, partition: PartitionId, sequence: i64) -> bool {
        let Some(lane) = self.lanes.get_mut(&partition) else { return false };
        if lane.changes.get(lane.index(sequence)).is_none_or(|change| change.sequence != sequence) {
            return false;
        }
        lane.head = sequence;
        true
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::MemoryBudget;

    use super::*;

    const LANE: PartitionId = PartitionId(3);

    fn settings() -> Settings {
        Settings { batch: 1, capacity: 4, delay: Duration::ZERO, coalesce: false, bytes_max: 1 << 20 }
    }

    fn buffers(settings: Settings) -> Buffers {
        Buffers::new(settings, MemoryBudget::new(1 << 20, "max").empty())
    }

    #[test]
    fn what_there_is_no_room_for_is_lost_and_leaves_a_gap() {
        let budget = MemoryBudget::new(100_000, "max");
        let mut buffers = Buffers::new(Settings { capacity: 1_000, ..settings() }, budget.empty());
        let now = Instant::now();
        for _ in 0..100 {
            buffers.append(LANE, Change::new(EventKinds::ADDED, Some(b"key"), Some(&[7; 5_000]), now));
        }
        assert!(budget.used() <= 100_000);
        let told = told(&mut buffers, now);
        assert!(told.len() < 10 && told.ends_with(&[99, 100]), "{told:?}");
    }

    #[test]
    fn while_the_client_is_away_nothing_is_kept_and_numbers_go_on() {
        let budget = MemoryBudget::new(100_000, "max");
        let mut buffers = Buffers::new(settings(), budget.empty());
        let now = Instant::now();
        append(&mut buffers, "1", now);
        append(&mut buffers, "2", now);
        buffers.leave();
        let kept = budget.used();
        assert!(kept <= 2 * LANE_BYTES, "{kept}");
        append(&mut buffers, "3", now);
        assert_eq!((told(&mut buffers, now), budget.used()), (vec![], kept));
        buffers.come_back();
        append(&mut buffers, "4", now);
        assert_eq!(told(&mut buffers, now), [4], "the client sees that 1 to 3 are lost");
        assert!(!buffers.set_head(LANE, 3));
        drop(buffers);
        assert_eq!(budget.used(), 0);
    }

    fn append(buffers: &mut Buffers, key: &str, now: Instant) {
        buffers.append(LANE, Change::new(EventKinds::ADDED, Some(key.as_bytes()), Some(b"value"), now));
    }

    fn told(buffers: &mut Buffers, now: Instant) -> Vec<i64> {
        let mut sequences = Vec::new();
        buffers.tell_due(LANE, now, &mut |_, changes| sequences.extend(changes.map(|change| change.sequence)));
        sequences
    }

    #[test]
    fn without_a_delay_every_change_is_told_at_once() {
        let (mut buffers, now) = (buffers(settings()), Instant::now());
        for sequence in 1..10 {
            append(&mut buffers, "key", now);
            assert_eq!(told(&mut buffers, now), [sequence]);
        }
        assert!(told(&mut buffers, now).is_empty());
    }

    #[test]
    fn changes_are_told_when_there_are_enough_or_one_is_old_enough() {
        let delay = Duration::from_secs(2);
        let mut buffers = buffers(Settings { batch: 3, delay, ..settings() });
        let now = Instant::now();
        append(&mut buffers, "1", now);
        append(&mut buffers, "2", now + Duration::from_secs(1));
        assert!(told(&mut buffers, now + Duration::from_secs(1)).is_empty());
        assert_eq!(told(&mut buffers, now + delay), [1]);
        append(&mut buffers, "3", now + delay);
        assert!(told(&mut buffers, now + delay).is_empty());
        append(&mut buffers, "4", now + delay);
        assert_eq!(told(&mut buffers, now + delay), [2, 3, 4]);
    }

    #[test]
    fn changes_that_are_kept_can_be_told_again() {
        let (mut buffers, now) = (buffers(settings()), Instant::now());
        for _ in 0..6 {
            append(&mut buffers, "key", now);
            told(&mut buffers, now);
        }
        assert!(!buffers.set_head(LANE, 2), "four are kept");
        assert!(!buffers.set_head(LANE, 7), "not there yet");
        assert!(!buffers.set_head(PartitionId(9), 1));
        assert!(buffers.set_head(LANE, 4));
        assert_eq!(told(&mut buffers, now), [4, 5, 6]);
    }

    #[test]
    fn what_does_not_fit_is_lost_and_leaves_a_gap() {
        let delay = Duration::from_secs(9);
        let now = Instant::now();
        let mut of_four = buffers(Settings { batch: 100, delay, ..settings() });
        for key in ["1", "2", "3", "4", "5", "6"] {
            append(&mut of_four, key, now);
        }
        assert_eq!(told(&mut of_four, now + delay), [3, 4, 5, 6]);
        let mut buffers = buffers(Settings { bytes_max: 1, batch: 100, delay, ..settings() });
        append(&mut buffers, "1", now);
        append(&mut buffers, "2", now);
        assert_eq!(told(&mut buffers, now + delay), [2]);
    }

    #[test]
    fn what_comes_while_a_content_is_made_anew_is_numbered_behind_it() {
        let budget = MemoryBudget::new(100_000, "max");
        let mut buffers = Buffers::new(settings(), budget.empty());
        let now = Instant::now();
        append(&mut buffers, "1", now);
        assert_eq!(told(&mut buffers, now), [1]);
        buffers.set_aside(LANE);
        append(&mut buffers, "2", now);
        append(&mut buffers, "3", now);
        assert!(told(&mut buffers, now).is_empty());
        // Seven entries and what goes ahead of them.
        let kept = buffers.go_on(LANE, 8).unwrap();
        kept.into_iter().for_each(|change| buffers.append(LANE, change));
        append(&mut buffers, "4", now);
        assert_eq!(told(&mut buffers, now), [9, 10, 11]);
        drop(buffers);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_content_that_has_missed_a_change_is_made_once_more_or_leaves_a_gap() {
        let now = Instant::now();
        let mut buffers = buffers(Settings { bytes_max: 600, ..settings() });
        append(&mut buffers, "1", now);
        assert_eq!(told(&mut buffers, now), [1]);
        buffers.set_aside(LANE);
        (0..10).for_each(|_| append(&mut buffers, "more than is kept", now));
        assert_eq!(buffers.go_on(LANE, 3), None);
        buffers.set_aside(LANE);
        buffers.leave();
        append(&mut buffers, "while the client is away", now);
        buffers.come_back();
        assert_eq!(buffers.go_on(LANE, 3), None);
        buffers.set_aside(LANE);
        append(&mut buffers, "2", now);
        buffers.give_up(LANE);
        append(&mut buffers, "3", now);
        assert_eq!(told(&mut buffers, now), [3], "the client sees that something is lost");
    }

    #[test]
    fn of_the_waiting_changes_of_a_key_the_last_is_told() {
        let delay = Duration::from_secs(9);
        let now = Instant::now();
        let mut buffers = buffers(Settings { batch: 3, delay, coalesce: true, ..settings() });
        append(&mut buffers, "a", now);
        append(&mut buffers, "b", now);
        buffers.append(LANE, Change::new(EventKinds::REMOVED, Some(b"a"), None, now));
        let mut kinds = Vec::new();
        assert!(told(&mut buffers, now).is_empty());
        buffers.tell_due(LANE, now + delay, &mut |_, changes| {
            kinds.extend(changes.map(|change| (change.sequence, change.kind)));
        });
        assert_eq!(kinds, [(1, EventKinds::REMOVED), (2, EventKinds::ADDED)]);
        append(&mut buffers, "a", now);
        assert_eq!(told(&mut buffers, now + delay), [3], "what was told is not changed any more");
    }
}
