//! The event journal of maps: where it stands, and reading it, with waiting for events that are still to come.
//!
//! A journal event travels as a serialized value of Hazelcast's class `DeserializingEventJournalMapEvent`:
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
use filbert_grid::{
    EntryEvent, ErrorKind, EventKinds, GridError, JournalEvent, ListenerId, ListenerSpec, Map, PartitionId,
};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    table::map::{event_journal_read, event_journal_subscribe},
};

use crate::{
    failure::{Failure, Outcome},
    rows::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] =
    &[(event_journal_subscribe::ID, Row::Served(handle_subscribe)), (event_journal_read::ID, Row::Served(handle_read))];

const MAP_FACTORY: i32 = -4;
const JOURNAL_EVENT_CLASS: i32 = 132;

/// Reads that wait for events, of one connection.
#[derive(Debug, Default)]
pub(crate) struct JournalWaits(Vec<Wait>);

/// A read that found too few events.
#[derive(Debug)]
struct Wait {
    read: Read,
    listener: ListenerId,
}

/// A read of one partition's journal.
#[derive(Debug, Clone)]
struct Read {
    correlation: CorrelationId,
    map: Arc<Map>,
    partition: PartitionId,
    start: i64,
    min: usize,
    max: usize,
}

/// Events on their way to a client.
#[derive(Debug, Default)]
struct Page {
    items: Vec<Vec<u8>>,
    sequences: Vec<i64>,
    next: i64,
}

fn handle_subscribe(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: event_journal_subscribe::Request<'_> = message.decode()?;
    let partition = partition(session, message)?;
    let (oldest_sequence, newest_sequence) = {
        let map = session.map(request.name)?;
        map.answering(partition, || map.journal_subscribe(partition))??
    };
    let response = event_journal_subscribe::Response { oldest_sequence, newest_sequence };
    response.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_read(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: event_journal_read::Request<'_> = message.decode()?;
    if request.predicate.is_some() || request.projection.is_some() {
        return Err(Failure::unsupported(
            message.id(),
            "with a predicate or a projection of events, which are Java code",
        ));
    }
    let (Ok(min), Ok(max)) = (usize::try_from(request.min_size), usize::try_from(request.max_size)) else {
        return Err(Failure::argument(message.id(), "a negative number of events"));
    };
    if min > max {
        let text = format!("at least {min} and at most {max} events");
        return Err(Failure::argument(message.id(), &text));
    }
    let partition = partition(session, message)?;
    let map = session.map(request.name)?.clone();
    // A journal never holds more than its capacity, and a read for more would wait for ever.
    let capacity = map.config().event_journal.map_or(1, |journal| journal.capacity / session.grid.partition_count());
    let min = min.min(usize::try_from(capacity).unwrap_or(usize::MAX).max(1));
    let read = Read { correlation: message.correlation_id(), map, partition, start: request.start_sequence, min, max };
    if let Some(page) = read.page()? {
        page.encode(read.correlation, &mut session.out);
        return Ok(());
    }
    wait(session, read)
}

/// Leaves a read to be tried again with every event of its map.
fn wait(session: &mut Session, read: Read) -> Outcome {
    let limit = session.config.journal_waits_max;
    if session.journal_waits.0.len() >= limit {
        let text =
            format!("this connection already has {limit} reads that wait, the most that journal_waits_max allows");
        return Err(Failure::new(ErrorKind::LimitReached, text));
    }
    let spec = ListenerSpec {
        key: None,
        filter: None,
        include_value: false,
        kinds: EventKinds::ALL,
        connection: session.connection_id(),
    };
    let (link, partition) = (session.link.clone(), read.partition);
    let sink = move |event: &EntryEvent<'_>| {
        if event.partition.is_none_or(|of| of == partition) {
            link.outbox.poke();
        }
    };
    let listener = read.map.add_listener(spec, Arc::new(sink))?;
    session.journal_waits.0.push(Wait { read, listener });
    // An event may have come before the listener did.
    retry(session);
    Ok(())
}

/// Tries the reads that wait again, and answers those that have enough.
pub(crate) fn retry(session: &mut Session) {
    let out = &mut session.out;
    session.journal_waits.0.retain(|wait| {
        match wait.read.page() {
            Ok(None) => return true,
            Ok(Some(page)) => page.encode(wait.read.correlation, out),
            Err(error) => Box::<Failure>::from(error).encode(wait.read.correlation, out),
        }
        wait.read.map.remove_listener(wait.listener);
        false
    });
}

fn partition(session: &Session, message: &Message<'_>) -> Result<PartitionId, Box<Failure>> {
    session.partition_in_header(message).ok_or_else(|| {
        let count = session.grid.partition_count();
        Failure::argument(message.id(), &format!("partition {} of {count}", message.partition_id()))
    })
}

impl Read {
    /// The events, if there are enough of them.
    fn page(&self) -> Result<Option<Page>, GridError> {
        self.map.answering(self.partition, || self.try_page())?
    }

    fn try_page(&self) -> Result<Option<Page>, GridError> {
        let mut page = Page::default();
        let mut start = self.start;
        loop {
            // As in Hazelcast, a start outside of the journal is moved to its nearest end.
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
                // The oldest events gave way between the two calls.
                Err(GridError::StaleSequence { oldest, .. }) if oldest > from => start = oldest,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Page {
    fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>) {
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
