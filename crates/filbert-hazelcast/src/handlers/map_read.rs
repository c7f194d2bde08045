//! Reads of one key, or of a property of the whole map. No read waits for a lock of a key.

use filbert_grid::{EntryView, ErrorKind, Map, PartitionId};
use filbert_wire::{
    CorrelationId, Message, MessageId, Request, Response,
    structure::SimpleEntryView,
    table::map::{contains_key, contains_value, get, get_entry_view, is_empty, is_locked, size},
};

use crate::{
    failure::{Failure, Outcome},
    relay::Relays,
    row::Row,
    session::Session,
};

/// The maximum number of gets that are answered together. The grid looks up fewer keys at a time,
/// so a larger run gains nothing.
pub(crate) const GETS_MAX: usize = 16;

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (get::ID, Row::Served(handle_get)),
    (contains_key::ID, Row::Served(handle_contains_key)),
    (contains_value::ID, Row::Served(handle_contains_value)),
    (get_entry_view::ID, Row::Served(handle_get_entry_view)),
    (is_locked::ID, Row::Served(handle_is_locked)),
    (size::ID, Row::Served(handle_size)),
    (is_empty::ID, Row::Served(handle_is_empty)),
];

fn handle_get(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: get::Request<'_> = message.decode()?;
    let partition = session.partition(request.key);
    let map = session.handles.find(&session.grid, request.name)?;
    let out = &mut session.out;
    let correlation = message.correlation_id();
    map.answering(partition, || {
        map.get(partition, request.key, |value| get::Response { response: value }.encode(correlation, out));
    })?;
    Ok(())
}

/// A `Map.get` that will be answered together with others.
#[derive(Debug, Clone)]
pub(crate) struct Get<'a> {
    request: get::Request<'a>,
    pub(crate) partition: PartitionId,
    pub(crate) correlation: CorrelationId,
}

impl<'a> Get<'a> {
    /// The message, if it can be answered together with others: a valid `Map.get` of an
    /// authenticated client.
    #[inline]
    pub(crate) fn of(session: &Session, message: &Message<'a>) -> Option<Self> {
        if message.id() != get::ID || session.registration.is_none() {
            return None;
        }
        let request: get::Request<'a> = message.decode().ok()?;
        let partition = session.partition(request.key);
        Some(Self { request, partition, correlation: message.correlation_id() })
    }

    /// Holds the get until the leader of its partition is known, because this member may not answer
    /// it.
    #[cold]
    fn hold(&self, relays: &Relays, failure: &Failure) {
        let bytes = self.encode();
        // Cannot fail: the get was read from such a message.
        let Ok(message) = Message::parse(&bytes) else { return };
        relays.repeatable(&message, Some(self.partition), Some(relays.itself())).fail(failure);
    }

    /// Encodes the message again.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let partition = i32::try_from(self.partition.0).unwrap_or(-1);
        self.request.encode(self.correlation, partition, &mut bytes);
        bytes
    }

    /// Whether both gets are for the same map.
    #[inline]
    pub(crate) fn is_of_map_of(&self, other: &Get<'_>) -> bool {
        self.request.name == other.request.name
    }
}

/// Answers gets of one map until the replies are longer than `out_bytes_max`. Returns the number of
/// answered gets.
pub(crate) fn handle_gets(session: &mut Session, gets: &[Option<Get<'_>>], out_bytes_max: usize) -> usize {
    let Some(first) = gets.iter().flatten().next() else { return gets.len() };
    let mut keys = [(PartitionId(0), [].as_slice()); GETS_MAX];
    for (place, get) in keys.iter_mut().zip(gets.iter().flatten()) {
        *place = (get.partition, get.request.key);
    }
    let keys = keys.get(..gets.len()).unwrap_or(&keys);
    let (out, relays) = (&mut session.out, &session.relays);
    match session.handles.find(&session.grid, first.request.name) {
        Ok(map) if session.is_replicated => gets
            .iter()
            .flatten()
            .position(|get| {
                if let Err(failure) = answer_get(map, get, out) {
                    match relays {
                        Some(relays) if failure.kind == ErrorKind::NotLeader => get.hold(relays, &failure),
                        _ => failure.encode(get.correlation, out),
                    }
                }
                out.len() > out_bytes_max
            })
            .map_or(gets.len(), |last| last + 1),
        Ok(map) => map.get_many(keys, |index, value| {
            if let Some(Some(get)) = gets.get(index) {
                get::Response { response: value }.encode(get.correlation, out);
            }
            out.len() <= out_bytes_max
        }),
        Err(error) => {
            let failure: Box<Failure> = error.into();
            for get in gets.iter().flatten() {
                failure.encode(get.correlation, out);
            }
            gets.len()
        }
    }
}

/// Answers one get, if this member may answer for its partition.
fn answer_get(map: &Map, get: &Get<'_>, out: &mut Vec<u8>) -> Outcome {
    let start = out.len();
    let read = map.answering(get.partition, || {
        map.get(get.partition, get.request.key, |value| {
            get::Response { response: value }.encode(get.correlation, out);
        });
    });
    read.map_err(|error| {
        out.truncate(start);
        error.into()
    })
}

fn handle_contains_key(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: contains_key::Request<'_> = message.decode()?;
    let partition = session.partition(request.key);
    let response = {
        let map = session.map(request.name)?;
        map.answering(partition, || map.contains_key(partition, request.key))?
    };
    contains_key::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_contains_value(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: contains_value::Request<'_> = message.decode()?;
    let response = {
        let map = session.map(request.name)?;
        map.answering_all(|| map.contains_value(request.value))?
    };
    contains_value::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_get_entry_view(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: get_entry_view::Request<'_> = message.decode()?;
    let partition = session.partition(request.key);
    let map = session.handles.find(&session.grid, request.name)?;
    let out = &mut session.out;
    let append = |view: Option<&EntryView<'_>>| {
        let max_idle = view.map_or(-1, |view| view.max_idle_ms);
        let response = view.map(|view| SimpleEntryView {
            key: view.key,
            value: view.value,
            cost: i64::try_from(view.cost).unwrap_or(i64::MAX),
            creation_time: view.created_ms,
            expiration_time: view.expires_ms,
            hits: i64::try_from(view.hits).unwrap_or(i64::MAX),
            last_access_time: view.accessed_ms,
            last_stored_time: view.stored_ms,
            last_update_time: view.updated_ms,
            version: i64::try_from(view.version).unwrap_or(i64::MAX),
            ttl: view.ttl_ms,
            max_idle: view.max_idle_ms,
        });
        get_entry_view::Response { response, max_idle }.encode(message.correlation_id(), out);
    };
    map.answering(partition, || map.entry_view(partition, request.key, append))?;
    Ok(())
}

fn handle_is_locked(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: is_locked::Request<'_> = message.decode()?;
    let partition = session.partition(request.key);
    let response = {
        let map = session.map(request.name)?;
        map.answering(partition, || map.is_locked(partition, request.key))?
    };
    is_locked::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_size(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: size::Request<'_> = message.decode()?;
    let map = session.map(request.name)?;
    let size = map.answering_all(|| map.size())?;
    let response = i32::try_from(size).unwrap_or(i32::MAX);
    size::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_is_empty(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: is_empty::Request<'_> = message.decode()?;
    let map = session.map(request.name)?;
    let response = map.answering_all(|| map.is_empty())?;
    is_empty::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
