//! A request about a whole map, limited to some of its partitions. A member sends it to the member
//! that leads these partitions.
//!
//! It is sent only on connections of `relay/task.rs`. It is a message of its own, with two frames
//! after the initial one:
//!
//! | frame | content |
//! |---|---|
//! | 1 | a bit for each partition, the lowest bit of the first byte for partition 0 |
//! | 2 | the client's request, a whole message |
//!
//! The reply is that of the request, with two exceptions: the reply to `Map.clear` and
//! `Map.evictAll` is that of `Map.size`, with the number of removed entries, and their listeners
//! are not notified. If the member does not lead all of the partitions, the reply is the error for
//! that. So each partition counts exactly once in the merged reply.

use std::sync::Arc;

use filbert_grid::{EventKind, GridError, PartitionId, Reply};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    table::map::{clear, contains_value, entry_set, evict_all, is_empty, key_set, size, values},
};
use parking_lot::Mutex;

use crate::deferred::ReplySender;
use crate::failure::{Failure, Outcome};
use crate::listing::Listing;
use crate::relay::between_members;
use crate::replies::Replies;
use crate::session::Session;

/// The message's id, in a service that clients do not use.
pub(crate) const ID: MessageId = MessageId::request(0x7e, 0x01);

/// Encodes the message that limits `request` to some partitions.
pub(crate) fn encode(
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
    between_members(ID, correlation, [&bits, request])
}

/// Decodes the message and answers it.
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
    let send_reply: ReplySender = Box::new(move |answer| {
        let reply = answer.unwrap_or_else(|failure| failure.encoded(correlation));
        if !link.outbox.append_reply(Replies::whole(reply, &link.replies), bytes_max) {
            let failure = Failure::new(
                filbert_grid::ErrorKind::LimitReached,
                format!("more than {bytes_max} bytes of replies (reply_bytes_max) wait to be read"),
            );
            link.outbox.append_answer(|out| failure.encode(correlation, out));
        }
    });
    answer(session, &request, &partitions, send_reply);
    Ok(())
}

/// Answers a request about a whole map for some partitions, immediately or later.
pub(crate) fn answer(
    session: &mut Session,
    message: &Message<'_>,
    partitions: &[PartitionId],
    send_reply: ReplySender,
) {
    match message.id() {
        clear::ID | evict_all::ID => {
            // Called once: by the log, or by this function if nothing was submitted.
            let send_reply = Arc::new(Mutex::new(Some(send_reply)));
            if let Err(failure) = empty(session, message, partitions, send_reply.clone())
                && let Some(send_reply) = send_reply.lock().take()
            {
                send_reply(Err(failure));
            }
        }
        _ => send_reply(read(session, message, partitions)),
    }
}

fn empty(
    session: &mut Session,
    message: &Message<'_>,
    partitions: &[PartitionId],
    send_reply: Arc<Mutex<Option<ReplySender>>>,
) -> Outcome {
    let (name, kind) = match message.id() {
        clear::ID => (message.decode::<clear::Request<'_>>()?.name, EventKind::Cleared),
        _ => (message.decode::<evict_all::Request<'_>>()?.name, EventKind::EvictedAll),
    };
    let (caller, correlation) = (session.caller(0), message.correlation_id());
    let reply = Box::new(move |result: Result<Reply<'_>, GridError>| {
        let send_reply = send_reply.lock().take();
        let Some(send_reply) = send_reply else { return };
        let count = match result {
            Ok(Reply::Count(count)) => Ok(count),
            Ok(_) => Ok(0),
            Err(error) => Err(Box::<Failure>::from(error)),
        };
        send_reply(count.map(|count| size_response(count, correlation)));
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
