//! A request about a whole map, asked about some of its partitions: what one member asks another for, which leads them.
//!
//! It comes on the connections of `task.rs` only, as a message of its own, with two frames behind the first:
//!
//! | frame | content |
//! |---|---|
//! | 1 | a bit for each partition, the lowest bit of the first byte for partition 0 |
//! | 2 | the client's request, a whole message |
//!
//! It is answered as the request is, with two exceptions: `Map.clear` and `Map.evictAll` are answered as `Map.size` is, with the
//! number of entries that went, and their listeners hear nothing. If the member does not lead all of the partitions, the answer is the
//! error that says so: what others are told, they are told for each partition exactly once.

use std::sync::Arc;

use filbert_grid::{EventKind, GridError, PartitionId, Reply};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    frame::{Writer, flags},
    table::map::{clear, contains_value, entry_set, evict_all, is_empty, key_set, size, values},
};
use parking_lot::Mutex;

use crate::deferred::Tell;
use crate::failure::{Failure, Outcome};
use crate::listing::Listing;
use crate::replies::Replies;
use crate::session::Session;

/// The message's id, of a service that clients do not have.
pub(crate) const ID: MessageId = MessageId::request(0x7e, 0x01);

/// Writes the message that asks for `request` of some partitions.
pub(super) fn encode(
    correlation: CorrelationId,
    partitions: &[PartitionId],
    partition_count: u32,
    request: &[u8],
) -> Vec<u8> {
    let mut bits = vec![0_u8; (partition_count as usize).div_ceil(8)];
    for partition in partitions {
        if let Some(byte) = bits.get_mut(partition.0 as usize / 8) {
            *byte |= 1 << (partition.0 % 8);
        }
    }
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.frame_with(flags::UNFRAGMENTED, |out| {
        out.extend_from_slice(&ID.0.to_le_bytes());
        out.extend_from_slice(&correlation.0.to_le_bytes());
        out.extend_from_slice(&(-1_i32).to_le_bytes());
    });
    writer.frame(0, &bits);
    writer.frame(0, request);
    writer.finish();
    out
}

/// Reads and answers it.
#[cold]
pub(crate) fn handle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let mut frames = message.frames();
    let (Some(bits), Some(request)) = (frames.next(), frames.next()) else {
        return Err(Failure::argument(message.id(), "two frames are expected behind the first"));
    };
    let request = Message::parse(request.content)?;
    let is_set =
        |id: &PartitionId| bits.content.get(id.0 as usize / 8).is_some_and(|byte| byte & (1 << (id.0 % 8)) != 0);
    let partitions: Vec<_> = (0..session.grid.partition_count()).map(PartitionId).filter(is_set).collect();
    let (link, correlation, bytes_max) =
        (session.link.clone(), message.correlation_id(), session.config.reply_bytes_max);
    let tell: Tell = Box::new(move |answer| {
        let reply = answer.unwrap_or_else(|failure| encoded(&failure, correlation));
        if !link.outbox.append_reply(Replies::whole(reply, &link.replies), bytes_max) {
            let failure = Failure::new(
                filbert_grid::ErrorKind::LimitReached,
                format!("more than {bytes_max} bytes of replies (reply_bytes_max) wait to be read"),
            );
            link.outbox.append_answer(|out| failure.encode(correlation, out));
        }
    });
    answer(session, &request, &partitions, tell);
    Ok(())
}

/// An error as a reply.
pub(super) fn encoded(failure: &Failure, correlation: CorrelationId) -> Vec<u8> {
    let mut out = Vec::new();
    failure.encode(correlation, &mut out);
    out
}

/// Answers a request about a whole map for some partitions, now or later.
pub(super) fn answer(session: &mut Session, message: &Message<'_>, partitions: &[PartitionId], tell: Tell) {
    match message.id() {
        clear::ID | evict_all::ID => {
            // Told by whoever gets to it: the log, or this if there is nothing to wait for.
            let tell = Arc::new(Mutex::new(Some(tell)));
            if let Err(failure) = empty(session, message, partitions, tell.clone())
                && let Some(tell) = tell.lock().take()
            {
                tell(Err(failure));
            }
        }
        _ => tell(read(session, message, partitions)),
    }
}

fn empty(
    session: &mut Session,
    message: &Message<'_>,
    partitions: &[PartitionId],
    tell: Arc<Mutex<Option<Tell>>>,
) -> Outcome {
    let (name, kind) = match message.id() {
        clear::ID => (message.decode::<clear::Request<'_>>()?.name, EventKind::Cleared),
        _ => (message.decode::<evict_all::Request<'_>>()?.name, EventKind::EvictedAll),
    };
    let (caller, correlation) = (session.caller(0), message.correlation_id());
    let reply = Box::new(move |result: Result<Reply<'_>, GridError>| {
        let tell = tell.lock().take();
        let Some(tell) = tell else { return };
        let count = match result {
            Ok(Reply::Count(count)) => Ok(count),
            Ok(_) => Ok(0),
            Err(error) => Err(Box::<Failure>::from(error)),
        };
        tell(count.map(|count| size_response(count, correlation)));
    });
    session.map(name)?.submit_emptying_of(partitions, caller, kind, reply)?;
    Ok(())
}

fn size_response(size: usize, correlation: CorrelationId) -> Vec<u8> {
    let mut out = Vec::new();
    size::Response { response: i32::try_from(size).unwrap_or(i32::MAX) }.encode(correlation, &mut out);
    out
}

fn read(session: &mut Session, message: &Message<'_>, partitions: &[PartitionId]) -> Result<Vec<u8>, Box<Failure>> {
    let correlation = message.correlation_id();
    let mut out = Replies::new(&session.link.replies);
    match message.id() {
        size::ID => {
            let map = session.map(message.decode::<size::Request<'_>>()?.name)?;
            let size = map.answering_these(partitions, || map.size_of(partitions))?;
            *out = size_response(size, correlation);
        }
        is_empty::ID => {
            let map = session.map(message.decode::<is_empty::Request<'_>>()?.name)?;
            let response = map.answering_these(partitions, || map.size_of(partitions) == 0)?;
            is_empty::Response { response }.encode(correlation, &mut out);
        }
        contains_value::ID => {
            let request: contains_value::Request<'_> = message.decode()?;
            let map = session.map(request.name)?;
            let response = map.answering_these(partitions, || map.contains_value_in(partitions, request.value))?;
            contains_value::Response { response }.encode(correlation, &mut out);
        }
        key_set::ID => {
            let name = message.decode::<key_set::Request<'_>>()?.name;
            list(session, message, name, partitions, &mut out, |listing, key, _| listing.item(key))?;
        }
        values::ID => {
            let name = message.decode::<values::Request<'_>>()?.name;
            list(session, message, name, partitions, &mut out, |listing, _, value| listing.item(value))?;
        }
        entry_set::ID => {
            let name = message.decode::<entry_set::Request<'_>>()?.name;
            list(session, message, name, partitions, &mut out, |listing, key, value| listing.entry(key, value))?;
        }
        id => return Err(Failure::unsupported(id, "it is not asked of some partitions")),
    }
    Ok(out.into_bytes())
}

fn list(
    session: &mut Session,
    message: &Message<'_>,
    name: &str,
    partitions: &[PartitionId],
    out: &mut Replies,
    append: fn(&mut Listing<'_>, &[u8], &[u8]),
) -> Outcome {
    let bytes_max = session.config.reply_bytes_max;
    let map = session.map(name)?;
    let mut listing = Listing::begin(message, bytes_max, out);
    listing.open();
    map.answering_these(partitions, || {
        for partition in partitions {
            if listing.is_over() {
                return;
            }
            map.scan_rows(*partition, &mut |key, value| append(&mut listing, key, value));
        }
    })?;
    listing.finish()
}
