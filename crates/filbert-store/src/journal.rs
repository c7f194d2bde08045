//! The event journal of one map in one partition: a ring of the latest changes, which can be read
//! by sequence.

use std::collections::VecDeque;

use crate::{EventKind, JournalSettings, Millis};

/// A change in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEvent {
    /// The sequence of the event: the first is 0, without gaps.
    pub sequence: i64,
    /// `Added`, `Updated`, `Removed`, `Evicted`, `Expired` or `Loaded`. When a map is cleared, the
    /// journal has an event `Removed` for each entry, or `Evicted` when all entries are evicted.
    pub kind: EventKind,
    /// The key.
    pub key: Box<[u8]>,
    /// The old value, if there was one.
    pub old_value: Option<Box<[u8]>>,
    /// The new value, if there is one.
    pub new_value: Option<Box<[u8]>>,
    at: Millis,
}

/// The requested events are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("journal event {from} is no longer kept, the oldest is {oldest}")]
pub struct JournalGone {
    /// The requested sequence.
    pub from: i64,
    /// The oldest sequence that can be read. If no event is kept, the sequence of the next event.
    pub oldest: i64,
}

impl JournalEvent {
    /// An event from another replica.
    pub(crate) fn restored(
        sequence: i64,
        kind: EventKind,
        key: Box<[u8]>,
        old_value: Option<Box<[u8]>>,
        new_value: Option<Box<[u8]>>,
        at: Millis,
    ) -> Self {
        JournalEvent { sequence, kind, key, old_value, new_value, at }
    }

    /// The time of the event.
    pub(crate) fn at(&self) -> Millis {
        self.at
    }
}

/// The latest changes of a map in a partition.
#[derive(Debug)]
pub struct Journal {
    settings: JournalSettings,
    events: VecDeque<JournalEvent>,
    next_sequence: i64,
    bytes: usize,
    /// The old events that the snapshot in progress still needs.
    export: Option<Box<JournalExport>>,
}

/// The export of a journal into a snapshot.
#[derive(Debug)]
struct JournalExport {
    /// The sequence of the next event to be written. The export ends before `end`.
    next: i64,
    end: i64,
    /// The events to be written that the journal has dropped.
    side: VecDeque<JournalEvent>,
}

impl Journal {
    pub(crate) fn new(settings: JournalSettings) -> Self {
        Journal { settings, events: VecDeque::new(), next_sequence: 0, bytes: 0, export: None }
    }

    /// Changes the settings immediately. Events beyond a smaller capacity are dropped.
    pub(crate) fn configure(&mut self, settings: JournalSettings) {
        self.settings = settings;
        while self.events.len() > settings.capacity {
            self.drop_oldest();
        }
    }

    /// The oldest sequence that is kept. If no event is kept, the sequence of the next event.
    #[must_use]
    pub fn oldest_sequence(&self) -> i64 {
        self.events.front().map_or(self.next_sequence, |event| event.sequence)
    }

    /// The latest sequence; -1 before the first event.
    #[must_use]
    pub fn newest_sequence(&self) -> i64 {
        self.next_sequence - 1
    }

    /// At most `max` events from sequence `from` on, in order. No events if `from` is in the
    /// future.
    ///
    /// # Errors
    ///
    /// [`JournalGone`] if `from` is before the oldest event.
    pub fn read(&self, from: i64, max: usize) -> Result<impl Iterator<Item = &JournalEvent>, JournalGone> {
        let oldest = self.oldest_sequence();
        if from < oldest {
            return Err(JournalGone { from, oldest });
        }
        let skip = usize::try_from(from.saturating_sub(oldest)).unwrap_or(usize::MAX);
        Ok(self.events.iter().skip(skip).take(max))
    }

    /// The maximum number of events that are kept.
    pub(crate) fn capacity(&self) -> usize {
        self.settings.capacity
    }

    /// Assigns sequences to `count` events that later events of the same change would displace
    /// immediately. All earlier events are dropped.
    pub(crate) fn skip(&mut self, count: usize, now: Millis) {
        if count == 0 {
            return;
        }
        self.trim(now);
        self.next_sequence = self.next_sequence.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        while !self.events.is_empty() {
            self.drop_oldest();
        }
    }

    pub(crate) fn append(
        &mut self,
        kind: EventKind,
        key: &[u8],
        old_value: Option<&[u8]>,
        new_value: Option<&[u8]>,
        now: Millis,
    ) {
        self.trim(now);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if self.settings.capacity == 0 {
            return;
        }
        while self.events.len() >= self.settings.capacity {
            self.drop_oldest();
        }
        let event = JournalEvent {
            sequence,
            kind,
            key: key.into(),
            old_value: old_value.map(Into::into),
            new_value: new_value.map(Into::into),
            at: now,
        };
        self.bytes += event_bytes(&event);
        self.events.push_back(event);
    }

    /// Drops events whose time to live has ended.
    pub(crate) fn trim(&mut self, now: Millis) {
        while self.first_deadline().is_some_and(|deadline| deadline <= now) {
            self.drop_oldest();
        }
    }

    /// The time at which the oldest event must be dropped; `None` = never.
    pub(crate) fn first_deadline(&self) -> Option<Millis> {
        let deadline = self.events.front()?.at.deadline(self.settings.ttl_ms);
        (deadline != Millis::MAX).then_some(deadline)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.events.capacity() * size_of::<JournalEvent>()
    }

    fn drop_oldest(&mut self) {
        let Some(event) = self.events.pop_front() else { return };
        match &mut self.export {
            Some(export) if (export.next..export.end).contains(&event.sequence) => export.side.push_back(event),
            _ => self.bytes -= event_bytes(&event),
        }
    }

    /// All kept events, in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = &JournalEvent> {
        self.events.iter()
    }

    /// Continues with `sequence`, which is the first event kept by another replica.
    pub(crate) fn restore_from(&mut self, sequence: i64) {
        self.next_sequence = sequence;
    }

    /// Restores the next event from another replica.
    pub(crate) fn restore(&mut self, event: JournalEvent) {
        self.next_sequence = event.sequence.saturating_add(1);
        self.bytes += event_bytes(&event);
        self.events.push_back(event);
    }

    /// Keeps all current events until the snapshot has written them.
    pub(crate) fn begin_export(&mut self) {
        let (next, end) = (self.oldest_sequence(), self.next_sequence);
        self.export = Some(Box::new(JournalExport { next, end, side: VecDeque::new() }));
    }

    pub(crate) fn is_exported(&self) -> bool {
        self.export.is_some()
    }

    /// The next event to be written, if there is one.
    pub(crate) fn next_for_export(&mut self) -> Option<JournalEvent> {
        let export = self.export.as_mut().filter(|export| export.next < export.end)?;
        let event = match export.side.pop_front() {
            Some(event) => {
                self.bytes -= event_bytes(&event);
                event
            }
            None => {
                let oldest = self.events.front()?.sequence;
                self.events.get(usize::try_from(export.next - oldest).ok()?)?.clone()
            }
        };
        export.next = event.sequence + 1;
        Some(event)
    }

    /// Drops the events that were kept only for the snapshot.
    pub(crate) fn end_export(&mut self) {
        if let Some(export) = self.export.take() {
            self.bytes -= export.side.iter().map(event_bytes).sum::<usize>();
        }
    }
}

fn event_bytes(event: &JournalEvent) -> usize {
    let value_len = |value: &Option<Box<[u8]>>| value.as_ref().map_or(0, |bytes| bytes.len());
    event.key.len() + value_len(&event.old_value) + value_len(&event.new_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(capacity: usize, ttl_ms: i64) -> Journal {
        Journal::new(JournalSettings { capacity, ttl_ms })
    }

    fn add(journal: &mut Journal, now: i64) {
        journal.append(EventKind::Added, b"key", None, Some(b"value"), Millis(now));
    }

    fn sequences(journal: &Journal, from: i64, max: usize) -> Result<Vec<i64>, JournalGone> {
        Ok(journal.read(from, max)?.map(|event| event.sequence).collect())
    }

    #[test]
    fn sequences_begin_at_0_and_the_oldest_event_gives_way() {
        let mut journal = journal(3, 0);
        assert_eq!((journal.oldest_sequence(), journal.newest_sequence()), (0, -1));
        assert_eq!(sequences(&journal, 0, 9), Ok(vec![]));
        for now in 0..5 {
            add(&mut journal, now);
        }
        assert_eq!((journal.oldest_sequence(), journal.newest_sequence()), (2, 4));
        assert_eq!(sequences(&journal, 2, 2), Ok(vec![2, 3]));
        assert_eq!(sequences(&journal, 9, 2), Ok(vec![]));
        assert_eq!(sequences(&journal, 1, 9), Err(JournalGone { from: 1, oldest: 2 }));
    }

    #[test]
    fn events_go_when_their_time_is_over_and_give_their_bytes_back() {
        let mut journal = journal(10, 100);
        add(&mut journal, 1_000);
        add(&mut journal, 1_050);
        assert_eq!(journal.first_deadline(), Some(Millis(1_100)));
        journal.trim(Millis(1_100));
        assert_eq!(journal.oldest_sequence(), 1);
        journal.trim(Millis(5_000));
        assert_eq!((journal.oldest_sequence(), journal.newest_sequence()), (2, 1));
        assert_eq!(journal.bytes, 0);
    }

    #[test]
    fn a_journal_without_capacity_keeps_nothing_but_counts() {
        let mut journal = journal(0, 0);
        add(&mut journal, 1);
        assert_eq!((journal.oldest_sequence(), journal.newest_sequence()), (1, 0));
    }
}
