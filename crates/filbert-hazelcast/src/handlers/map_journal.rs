//! The event journal of maps: its range of sequences, and reads, which may wait for events.

use std::sync::Arc;

use filbert_grid::{EntryEvent, ErrorKind, EventKinds, ListenerSpec, PartitionId};
use filbert_wire::{
    Message, MessageId, Response,
    table::map::{event_journal_read, event_journal_subscribe},
};

use crate::{
    failure::{Failure, Outcome},
    journal::Read,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] =
    &[(event_journal_subscribe::ID, Row::Served(handle_subscribe)), (event_journal_read::ID, Row::Served(handle_read))];

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
    // A journal never holds more than its capacity, so a read for more would wait forever.
    let capacity = map.config().event_journal.map_or(1, |journal| journal.capacity / session.grid.partition_count());
    let min = min.min(usize::try_from(capacity).unwrap_or(usize::MAX).max(1));
    let read = Read { correlation: message.correlation_id(), map, partition, start: request.start_sequence, min, max };
    if let Some(page) = read.page()? {
        page.encode(read.correlation, &mut session.out);
        return Ok(());
    }
    wait(session, read)
}

/// Stores a read, to be retried at events of its map.
fn wait(session: &mut Session, read: Read) -> Outcome {
    let limit = session.config.journal_waits_max;
    if session.journal_waits.count() >= limit {
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
    session.journal_waits.add(read, listener);
    // An event may have arrived before the listener was added.
    session.retry_journal_waits();
    Ok(())
}

fn partition(session: &Session, message: &Message<'_>) -> Result<PartitionId, Box<Failure>> {
    session.partition_in_header(message).ok_or_else(|| {
        let count = session.grid.partition_count();
        Failure::argument(message.id(), &format!("partition {} of {count}", message.partition_id()))
    })
}
