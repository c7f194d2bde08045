//! Reads of maps' event journals: pages of encoded events, and reads that wait for events.
//!
//! A journal event is sent as a serialized value of Hazelcast's class
//! `DeserializingEventJournalMapEvent`:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | partition hash, 0 |
//! | 4 | type id -2, IdentifiedDataSerializable |
//! | 1 | 1: factory and class id follow |
//! | 4 | factory id -4 (maps) |
//! | 4 | class id 132 |
//! | 4 | kind of event, as in entry events |
//! | 4 + n | key: length, serialized value |
//! | 4 + n | new value, or length -1 |
//! | 4 + n | old value, or length -1 |
//! | 1 | whether events before this one were lost |
//!
//! All numbers are big-endian.

use std::sync::Arc;

use filbert_data::TypeId;
use filbert_grid::{EventKinds, GridError, JournalEvent, ListenerId, Map, PartitionId};
use filbert_wire::{CorrelationId, Response, table::map::event_journal_read};

use crate::failure::Failure;

const MAP_FACTORY: i32 = -4;
const JOURNAL_EVENT_CLASS: i32 = 132;

/// The reads of one connection that wait for events.
#[derive(Debug, Default)]
pub(crate) struct JournalWaits(Vec<Wait>);

/// A read that has found too few events.
#[derive(Debug)]
struct Wait {
    read: Read,
    listener: ListenerId,
}

/// A read of one partition's journal.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) correlation: CorrelationId,
    pub(crate) map: Arc<Map>,
    pub(crate) partition: PartitionId,
    pub(crate) start: i64,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// A page of events for a client.
#[derive(Debug, Default)]
pub(crate) struct Page {
    items: Vec<Vec<u8>>,
    sequences: Vec<i64>,
    next: i64,
}

impl JournalWaits {
    /// The number of waiting reads.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a read, and the listener that triggers its retries.
    pub(crate) fn add(&mut self, read: Read, listener: ListenerId) {
        self.0.push(Wait { read, listener });
    }

    /// Retries the waiting reads, and answers those with enough events.
    pub(crate) fn retry(&mut self, out: &mut Vec<u8>) {
        self.0.retain(|wait| {
            match wait.read.page() {
                Ok(None) => return true,
                Ok(Some(page)) => page.encode(wait.read.correlation, out),
                Err(error) => Box::<Failure>::from(error).encode(wait.read.correlation, out),
            }
            wait.read.map.remove_listener(wait.listener);
            false
        });
    }
}

impl Read {
    /// The events; `None` if there are too few.
    pub(crate) fn page(&self) -> Result<Option<Page>, GridError> {
        self.map.answering(self.partition, || self.try_page())?
    }

    fn try_page(&self) -> Result<Option<Page>, GridError> {
        let mut page = Page::default();
        let mut start = self.start;
        loop {
            // As in Hazelcast, a start outside of the journal is moved to the nearest end.
            let (oldest, newest) = self.map.journal_subscribe(self.partition)?;
            let from = start.clamp(oldest, newest.saturating_add(1));
            let mut lost = from > start && start >= 0;
            let read = self.map.journal_read(self.partition, from, self.max, &mut |event| {
                page.sequences.push(event.sequence);
                page.items.push(serialize(event, std::mem::take(&mut lost)));
            });
            match read {
                Ok(read) if read.count < self.min => return Ok(None),
                Ok(read) => {
                    page.next = read.next_sequence;
                    return Ok(Some(page));
                }
                // The oldest events were overwritten between the two calls.
                Err(GridError::StaleSequence { oldest, .. }) if oldest > from => start = oldest,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Page {
    pub(crate) fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>) {
        event_journal_read::Response {
            read_count: i32::try_from(self.items.len()).unwrap_or(i32::MAX),
            items: self.items.iter().map(Vec::as_slice).collect(),
            item_seqs: Some(self.sequences.clone()),
            next_seq: self.next,
        }
        .encode(correlation, out);
    }
}

fn serialize(event: &JournalEvent, lost: bool) -> Vec<u8> {
    let value_bytes = |value: &Option<Box<[u8]>>| value.as_ref().map_or(0, |value| value.len());
    let mut bytes =
        Vec::with_capacity(34 + event.key.len() + value_bytes(&event.new_value) + value_bytes(&event.old_value));
    bytes.extend_from_slice(&0_i32.to_be_bytes());
    bytes.extend_from_slice(&TypeId::IDENTIFIED.0.to_be_bytes());
    bytes.push(1);
    bytes.extend_from_slice(&MAP_FACTORY.to_be_bytes());
    bytes.extend_from_slice(&JOURNAL_EVENT_CLASS.to_be_bytes());
    bytes.extend_from_slice(&EventKinds::of(event.kind).0.to_be_bytes());
    for data in [Some(&event.key), event.new_value.as_ref(), event.old_value.as_ref()] {
        let length = data.map_or(-1, |data| i32::try_from(data.len()).unwrap_or(i32::MAX));
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(data.map_or(&[], |data| data));
    }
    bytes.push(u8::from(lost));
    bytes
}
