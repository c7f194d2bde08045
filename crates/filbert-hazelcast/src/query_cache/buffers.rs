//! The changes for the client of a query cache, numbered by partition. They are kept for a while
//! after they were sent.
//!
//! ```text
//!  partition's lane:   5   6   7 │ 8   9
//!                      sent,     │ to be sent          next number: 10
//!                      kept for  │ ▲
//!                      a resend  │ head: `set_head` moves it back
//! ```
//!
//! While the client is disconnected, changes are numbered and not kept.
//!
//! Numbers begin with 1 in each partition. A client that sees a gap knows that it has lost changes.
//!
//! While a partition's content is rebuilt (`rebuild.rs`), its changes are set aside, and numbered
//! after that content.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use filbert_grid::{EventKinds, PartitionId, Reservation};

/// The client's settings for the delivery of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The number of waiting changes of a partition at which they are sent.
    pub(crate) batch: usize,
    /// The maximum number of kept changes of each partition.
    pub(crate) capacity: usize,
    /// The maximum time for which a change may wait for others. Zero: it is sent immediately.
    pub(crate) delay: Duration,
    /// Whether only the last of the waiting changes of a key is sent.
    pub(crate) coalesce: bool,
    /// The limit of the kept changes of all partitions, in bytes. Each partition keeps its last
    /// change regardless.
    pub(crate) bytes_max: usize,
}

/// A change of one entry, or of a whole partition.
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

    /// The same change with a number.
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
    /// In the order of their numbers, without gaps.
    changes: VecDeque<Change>,
    /// The number of the first change to be sent.
    head: i64,
    /// The number of the next change.
    next: i64,
    /// The number of the waiting change of each key, if changes are coalesced.
    waiting: HashMap<Box<[u8]>, i64>,
    rebuild: PendingRebuild,
}

/// The changes of a partition while its content is rebuilt.
#[derive(Debug)]
enum PendingRebuild {
    /// The content is not being rebuilt.
    No,
    /// The changes in order, without numbers.
    Kept(Vec<Change>),
    /// More changes arrived than may be kept, or the client was disconnected: the rebuild must
    /// start again.
    Lost,
}

impl Lane {
    fn new() -> Self {
        Self { changes: VecDeque::new(), head: 1, next: 1, waiting: HashMap::new(), rebuild: PendingRebuild::No }
    }

    /// Drops all changes. The next number stays the same.
    fn forget(&mut self) {
        (self.changes, self.waiting, self.head) = (VecDeque::new(), HashMap::new(), self.next);
    }

    /// Bytes of all changes.
    fn bytes(&self) -> usize {
        let rebuild = match &self.rebuild {
            PendingRebuild::Kept(changes) => changes.as_slice(),
            PendingRebuild::No | PendingRebuild::Lost => &[],
        };
        self.changes.iter().chain(rebuild).map(Change::bytes).sum()
    }

    /// The index of the change with this number. For the next number, the end.
    fn index(&self, sequence: i64) -> usize {
        let first = self.next.saturating_sub(i64::try_from(self.changes.len()).unwrap_or(i64::MAX));
        usize::try_from(sequence.saturating_sub(first)).unwrap_or(0).min(self.changes.len())
    }

    fn waiting_count(&self) -> usize {
        self.changes.len() - self.index(self.head)
    }

    /// Drops the oldest change. Returns its bytes.
    fn drop_first(&mut self) -> usize {
        let Some(change) = self.changes.pop_front() else { return 0 };
        // If the change was not sent yet, the client will notice the gap.
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
    /// Whether the client is disconnected, so no changes are kept.
    is_away: bool,
}

/// The approximate size of a lane without changes, in bytes.
const LANE_BYTES: usize = 192;

impl Buffers {
    /// Creates buffers whose memory is reserved in `room`.
    pub(crate) fn new(settings: Settings, room: Reservation) -> Self {
        Self { settings, lanes: HashMap::new(), bytes: 0, room, is_away: false }
    }

    /// Drops all changes, and keeps no more until the client is back. It will notice the gap.
    pub(crate) fn leave(&mut self) {
        self.is_away = true;
        for lane in self.lanes.values_mut() {
            lane.forget();
            if matches!(lane.rebuild, PendingRebuild::Kept(_)) {
                lane.rebuild = PendingRebuild::Lost;
            }
        }
        self.bytes = self.lanes.len() * LANE_BYTES;
        self.room.shrink(2 * self.bytes);
    }

    /// Keeps changes again. Returns whether the client was disconnected.
    pub(crate) fn come_back(&mut self) -> bool {
        std::mem::replace(&mut self.is_away, false)
    }

    fn lane(&mut self, partition: PartitionId) -> &mut Lane {
        self.lanes.entry(partition).or_insert_with(|| {
            self.bytes = self.bytes.saturating_add(LANE_BYTES);
            Lane::new()
        })
    }

    /// Drops the changes of a partition whose content is being rebuilt, and sets later changes
    /// aside.
    pub(crate) fn begin_rebuild(&mut self, partition: PartitionId) {
        let is_away = self.is_away;
        let lane = self.lane(partition);
        let before = lane.bytes();
        lane.forget();
        lane.rebuild = if is_away { PendingRebuild::Lost } else { PendingRebuild::Kept(Vec::new()) };
        self.bytes = self.bytes.saturating_sub(before);
        self.room.shrink(2 * self.bytes);
    }

    /// Continues a partition whose content was rebuilt and sent as `sent` changes, numbered from 1.
    /// Returns the changes that were set aside, for the caller to append. `None` if they are
    /// incomplete.
    pub(crate) fn finish_rebuild(&mut self, partition: PartitionId, sent: i64) -> Option<Vec<Change>> {
        let lane = self.lane(partition);
        let PendingRebuild::Kept(kept) = std::mem::replace(&mut lane.rebuild, PendingRebuild::No) else { return None };
        lane.next = sent.saturating_add(1);
        lane.forget();
        self.bytes = self.bytes.saturating_sub(kept.iter().map(Change::bytes).sum());
        Some(kept)
    }

    /// Ends a rebuild without a content. The number of the next change tells the client of the
    /// loss.
    pub(crate) fn abort_rebuild(&mut self, partition: PartitionId) {
        self.begin_rebuild(partition);
        let lane = self.lane(partition);
        lane.next += 1;
        (lane.head, lane.rebuild) = (lane.next, PendingRebuild::No);
    }

    fn append_to_rebuild(&mut self, partition: PartitionId, change: Change) {
        self.bytes = self.bytes.saturating_add(change.bytes());
        let fits = self.bytes <= self.settings.bytes_max && self.room.resize(2 * self.bytes).is_ok();
        let lane = self.lane(partition);
        match &mut lane.rebuild {
            PendingRebuild::Kept(changes) if fits => changes.push(change),
            _ => {
                let bytes = lane.bytes().saturating_add(change.bytes());
                lane.rebuild = PendingRebuild::Lost;
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }

    /// Numbers a change and keeps it.
    pub(crate) fn append(&mut self, partition: PartitionId, mut change: Change) {
        let is_away = self.is_away;
        let lane = self.lane(partition);
        match lane.rebuild {
            // The change will be in the next content.
            PendingRebuild::Lost => return,
            PendingRebuild::Kept(_) if !is_away => return self.append_to_rebuild(partition, change),
            PendingRebuild::Kept(_) | PendingRebuild::No => {}
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
            // The change gets the number and the age of the change that it replaces.
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

    /// Reserves memory for the kept changes. If there is none, the oldest changes of a partition
    /// are lost, and the client notices it.
    fn make_room(&mut self, partition: PartitionId) {
        // Small amounts are reserved as well, because a client may have many caches.
        while self.room.resize(2 * self.bytes).is_err() {
            let Some(lane) = self.lanes.get_mut(&partition).filter(|lane| !lane.changes.is_empty()) else { return };
            self.bytes = self.bytes.saturating_sub(lane.drop_first());
        }
    }

    /// Passes the due changes of a partition to `send` in one call, oldest first.
    pub(crate) fn send_due(
        &mut self,
        partition: PartitionId,
        now: Instant,
        send: &mut dyn FnMut(PartitionId, &mut dyn Iterator<Item = &Change>),
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
        send(partition, &mut lane.changes.range(from..from + due));
        let sent = lane.changes.range(from..from + due);
        for key in sent.filter_map(|change| change.key.as_ref()) {
            lane.waiting.remove(key);
        }
        lane.head = lane.changes.get(from + due).map_or(lane.next, |change| change.sequence);
    }

    /// As [`Buffers::send_due`], for all partitions.
    pub(crate) fn send_all_due(
        &mut self,
        now: Instant,
        send: &mut dyn FnMut(PartitionId, &mut dyn Iterator<Item = &Change>),
    ) {
        let partitions: Vec<PartitionId> =
            self.lanes.iter().filter(|(_, lane)| lane.waiting_count() > 0).map(|(partition, _)| *partition).collect();
        for partition in partitions {
            self.send_due(partition, now, send);
        }
    }

    /// Marks the changes from this number on to be sent again. Returns `false` if they are no
    /// longer kept.
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
        let sent = sent(&mut buffers, now);
        assert!(sent.len() < 10 && sent.ends_with(&[99, 100]), "{sent:?}");
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
        assert_eq!((sent(&mut buffers, now), budget.used()), (vec![], kept));
        buffers.come_back();
        append(&mut buffers, "4", now);
        assert_eq!(sent(&mut buffers, now), [4], "the client sees that 1 to 3 are lost");
        assert!(!buffers.set_head(LANE, 3));
        drop(buffers);
        assert_eq!(budget.used(), 0);
    }

    fn append(buffers: &mut Buffers, key: &str, now: Instant) {
        buffers.append(LANE, Change::new(EventKinds::ADDED, Some(key.as_bytes()), Some(b"value"), now));
    }

    fn sent(buffers: &mut Buffers, now: Instant) -> Vec<i64> {
        let mut sequences = Vec::new();
        buffers.send_due(LANE, now, &mut |_, changes| sequences.extend(changes.map(|change| change.sequence)));
        sequences
    }

    #[test]
    fn without_a_delay_every_change_is_sent_at_once() {
        let (mut buffers, now) = (buffers(settings()), Instant::now());
        for sequence in 1..10 {
            append(&mut buffers, "key", now);
            assert_eq!(sent(&mut buffers, now), [sequence]);
        }
        assert!(sent(&mut buffers, now).is_empty());
    }

    #[test]
    fn changes_are_sent_when_there_are_enough_or_one_is_old_enough() {
        let delay = Duration::from_secs(2);
        let mut buffers = buffers(Settings { batch: 3, delay, ..settings() });
        let now = Instant::now();
        append(&mut buffers, "1", now);
        append(&mut buffers, "2", now + Duration::from_secs(1));
        assert!(sent(&mut buffers, now + Duration::from_secs(1)).is_empty());
        assert_eq!(sent(&mut buffers, now + delay), [1]);
        append(&mut buffers, "3", now + delay);
        assert!(sent(&mut buffers, now + delay).is_empty());
        append(&mut buffers, "4", now + delay);
        assert_eq!(sent(&mut buffers, now + delay), [2, 3, 4]);
    }

    #[test]
    fn kept_changes_can_be_resent() {
        let (mut buffers, now) = (buffers(settings()), Instant::now());
        for _ in 0..6 {
            append(&mut buffers, "key", now);
            sent(&mut buffers, now);
        }
        assert!(!buffers.set_head(LANE, 2), "four are kept");
        assert!(!buffers.set_head(LANE, 7), "not there yet");
        assert!(!buffers.set_head(PartitionId(9), 1));
        assert!(buffers.set_head(LANE, 4));
        assert_eq!(sent(&mut buffers, now), [4, 5, 6]);
    }

    #[test]
    fn what_does_not_fit_is_lost_and_leaves_a_gap() {
        let delay = Duration::from_secs(9);
        let now = Instant::now();
        let mut of_four = buffers(Settings { batch: 100, delay, ..settings() });
        for key in ["1", "2", "3", "4", "5", "6"] {
            append(&mut of_four, key, now);
        }
        assert_eq!(sent(&mut of_four, now + delay), [3, 4, 5, 6]);
        let mut buffers = buffers(Settings { bytes_max: 1, batch: 100, delay, ..settings() });
        append(&mut buffers, "1", now);
        append(&mut buffers, "2", now);
        assert_eq!(sent(&mut buffers, now + delay), [2]);
    }

    #[test]
    fn changes_during_a_rebuild_are_numbered_after_its_content() {
        let budget = MemoryBudget::new(100_000, "max");
        let mut buffers = Buffers::new(settings(), budget.empty());
        let now = Instant::now();
        append(&mut buffers, "1", now);
        assert_eq!(sent(&mut buffers, now), [1]);
        buffers.begin_rebuild(LANE);
        append(&mut buffers, "2", now);
        append(&mut buffers, "3", now);
        assert!(sent(&mut buffers, now).is_empty());
        // Seven entries, and the clear before them.
        let kept = buffers.finish_rebuild(LANE, 8).unwrap();
        kept.into_iter().for_each(|change| buffers.append(LANE, change));
        append(&mut buffers, "4", now);
        assert_eq!(sent(&mut buffers, now), [9, 10, 11]);
        drop(buffers);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_rebuild_that_misses_a_change_is_repeated_or_leaves_a_gap() {
        let now = Instant::now();
        let mut buffers = buffers(Settings { bytes_max: 600, ..settings() });
        append(&mut buffers, "1", now);
        assert_eq!(sent(&mut buffers, now), [1]);
        buffers.begin_rebuild(LANE);
        (0..10).for_each(|_| append(&mut buffers, "more than is kept", now));
        assert_eq!(buffers.finish_rebuild(LANE, 3), None);
        buffers.begin_rebuild(LANE);
        buffers.leave();
        append(&mut buffers, "while the client is away", now);
        buffers.come_back();
        assert_eq!(buffers.finish_rebuild(LANE, 3), None);
        buffers.begin_rebuild(LANE);
        append(&mut buffers, "2", now);
        buffers.abort_rebuild(LANE);
        append(&mut buffers, "3", now);
        assert_eq!(sent(&mut buffers, now), [3], "the client sees that something is lost");
    }

    #[test]
    fn of_the_waiting_changes_of_a_key_the_last_is_sent() {
        let delay = Duration::from_secs(9);
        let now = Instant::now();
        let mut buffers = buffers(Settings { batch: 3, delay, coalesce: true, ..settings() });
        append(&mut buffers, "a", now);
        append(&mut buffers, "b", now);
        buffers.append(LANE, Change::new(EventKinds::REMOVED, Some(b"a"), None, now));
        let mut kinds = Vec::new();
        assert!(sent(&mut buffers, now).is_empty());
        buffers.send_due(LANE, now + delay, &mut |_, changes| {
            kinds.extend(changes.map(|change| (change.sequence, change.kind)));
        });
        assert_eq!(kinds, [(1, EventKinds::REMOVED), (2, EventKinds::ADDED)]);
        append(&mut buffers, "a", now);
        assert_eq!(sent(&mut buffers, now + delay), [3], "what was told is not changed any more");
    }
}
