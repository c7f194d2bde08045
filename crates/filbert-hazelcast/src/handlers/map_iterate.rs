//! Iteration over one partition of a map, a batch at a time.
//!
//! Clients send the position as a list of pairs (index, table size). They interpret only two
//! values: a new iteration begins with the index 2147483647, and an iteration has ended if its last
//! index is negative. Filbert's position is a [`Cursor`], an unsigned number of 32 bits. It is
//! always sent as one pair: its lower 31 bits as the index, and its upper bit as the table size.

use filbert_grid::{
    Cursor, Map, PartitionId,
    query::{EntryFilter, EntryProjection},
};
use filbert_wire::{
    Message, MessageId,
    table::map::{fetch_entries, fetch_keys, fetch_with_query},
};

use crate::{
    deferred,
    failure::{Failure, Outcome},
    listing::Listing,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (fetch_keys::ID, Row::Served(handle_fetch_keys)),
    (fetch_entries::ID, Row::Served(handle_fetch_entries)),
    (fetch_with_query::ID, Row::Queries(handle_fetch_with_query)),
];

/// The position with which clients begin.
const START: (i32, i32) = (i32::MAX, -1);
/// The position that ends an iteration.
const END: (i32, i32) = (-1, 0);

fn encode_cursor(cursor: Cursor) -> (i32, i32) {
    ((cursor.0 & i32::MAX.cast_unsigned()).cast_signed(), (cursor.0 >> 31).cast_signed())
}

/// Decodes the position to continue from; `None` at the end.
fn decode_cursor(pointers: &[(i32, i32)]) -> Result<Option<Cursor>, &'static str> {
    match pointers.last() {
        None => Err("field \"iterationPointers\": an empty list where one position is expected"),
        Some(&START) => Ok(Some(Cursor::START)),
        Some((index, _)) if *index < 0 => Ok(None),
        Some((index, high @ (0 | 1))) => Ok(Some(Cursor(index.cast_unsigned() | high.cast_unsigned() << 31))),
        Some(_) => Err("field \"iterationPointers\": a position that this server did not give out"),
    }
}

/// The fields of a request for a batch.
struct Fetch<'a> {
    name: &'a str,
    pointers: &'a [(i32, i32)],
    batch: i32,
}

fn handle_fetch_keys(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: fetch_keys::Request<'_> = message.decode()?;
    let fetch = Fetch { name: request.name, pointers: &request.iteration_pointers, batch: request.batch };
    answer(session, message, &fetch, |listing, key, _| listing.item(key))
}

fn handle_fetch_entries(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: fetch_entries::Request<'_> = message.decode()?;
    let fetch = Fetch { name: request.name, pointers: &request.iteration_pointers, batch: request.batch };
    answer(session, message, &fetch, |listing, key, value| listing.entry(key, value))
}

fn answer(
    session: &mut Session,
    message: &Message<'_>,
    fetch: &Fetch<'_>,
    append: fn(&mut Listing<'_>, &[u8], &[u8]),
) -> Outcome {
    let From { partition, cursor, at_least } = from(session, message, fetch)?;
    let map = session.handles.find(&session.grid, fetch.name)?;
    let mut listing = Listing::begin(message, session.config.reply_bytes_max, &mut session.out);
    listing.pair();
    listing.open();
    let fetch = |cursor| map.fetch(partition, cursor, at_least, &mut |key, value| append(&mut listing, key, value));
    let next = map.answering(partition, || cursor.and_then(fetch))?;
    listing.fill_pair(next.map_or(END, encode_cursor));
    listing.finish()
}

/// The start of a batch.
struct From {
    partition: PartitionId,
    /// `None` at the end.
    cursor: Option<Cursor>,
    at_least: usize,
}

fn from(session: &Session, message: &Message<'_>, fetch: &Fetch<'_>) -> Result<From, Box<Failure>> {
    let id = message.id();
    let Some(partition) = session.partition_in_header(message) else {
        let text = format!(
            "partition {} where one of 0 to {} is expected",
            message.partition_id(),
            session.grid.partition_count() - 1
        );
        return Err(Failure::argument(id, &text));
    };
    let at_least = usize::try_from(fetch.batch).ok().filter(|batch| *batch > 0);
    let at_least = at_least.ok_or_else(|| Failure::argument(id, "field \"batch\": at least 1 is expected"))?;
    let cursor = decode_cursor(fetch.pointers).map_err(|text| Failure::argument(id, text))?;
    Ok(From { partition, cursor, at_least })
}

/// Answers with a batch of projected entries that match a predicate. This may have to visit the
/// whole partition, so it does not run in place.
fn handle_fetch_with_query(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: fetch_with_query::Request<'_> = message.decode()?;
    let fetch = Fetch { name: request.name, pointers: &request.iteration_pointers, batch: request.batch };
    let from = from(session, message, &fetch)?;
    let engine = deferred::engine(session, message)?;
    let map = session.map(request.name)?.clone();
    let filter = engine.filter(&map, request.predicate)?;
    let projection = engine.projection(&map, request.projection)?;
    let (correlation, bytes_max) = (message.correlation_id(), session.config.reply_bytes_max);
    deferred::later(session, &engine, correlation, move |slot, out| {
        let mut listing = Listing::answering(fetch_with_query::ID, correlation, bytes_max, out);
        listing.open();
        let is_cancelled = || slot.is_cancelled();
        let next = batch(&map, &from, (filter.as_ref(), projection.as_ref()), &mut listing, &is_cancelled)?;
        listing.finish_with_pair(next.map_or(END, encode_cursor))
    })
}

/// The approximate number of entries visited under one lock of a partition.
const LOOKED_AT_ONCE: usize = 4_096;

/// Lists the projected matching entries from a position on. Returns the position to continue from.
fn batch(
    map: &Map,
    from: &From,
    (filter, projection): (&dyn EntryFilter, &dyn EntryProjection),
    listing: &mut Listing<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Option<Cursor>, Box<Failure>> {
    let (mut found, mut failed, mut cursor) = (0, None, from.cursor);
    while let Some(at) = cursor
        && found < from.at_least
        && !listing.is_over()
        && !is_cancelled()
    {
        let missing = (from.at_least - found).min(LOOKED_AT_ONCE);
        cursor = map.fetch(from.partition, at, missing, &mut |key, value| {
            if failed.is_some() || listing.is_over() || !filter.matches(key, value) {
                return;
            }
            match projection.project(key, value) {
                Ok(result) => {
                    listing.nullable(result.as_deref());
                    found += 1;
                }
                Err(error) => failed = Some(error),
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_the_round_trip_through_a_client() {
        for cursor in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let pointer = encode_cursor(Cursor(cursor));
            assert!(pointer.0 >= 0, "{cursor:x} would end the iteration");
            assert_ne!(pointer, START, "{cursor:x} would start again");
            assert_eq!(decode_cursor(&[pointer]), Ok(Some(Cursor(cursor))));
        }
        assert_eq!(decode_cursor(&[START]), Ok(Some(Cursor::START)));
        assert_eq!(decode_cursor(&[END]), Ok(None));
        assert!(decode_cursor(&[]).is_err());
        assert!(decode_cursor(&[(5, 16)]).is_err());
    }
}
