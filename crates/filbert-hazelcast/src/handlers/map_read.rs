//! Reads of one key or of a figure of the map: none waits for a lock.

use filbert_wire::{
    Message, MessageId, Response,
    structure::SimpleEntryView,
    table::map::{contains_key, contains_value, get, get_entry_view, is_empty, is_locked, size},
};

use crate::{failure::Outcome, rows::Row, session::Session};

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
    let partition = session.partition(message, request.key);
    let map = session.handles.find(&session.grid, request.name)?;
    let out = &mut session.out;
    map.get(partition, request.key, |value| get::Response { response: value }.encode(message.correlation_id(), out));
    Ok(())
}

fn handle_contains_key(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: contains_key::Request<'_> = message.decode()?;
    let partition = session.partition(message, request.key);
    let response = session.map(request.name)?.contains_key(partition, request.key);
    contains_key::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_contains_value(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: contains_value::Request<'_> = message.decode()?;
    let response = session.map(request.name)?.contains_value(request.value);
    contains_value::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_get_entry_view(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: get_entry_view::Request<'_> = message.decode()?;
    let partition = session.partition(message, request.key);
    let map = session.handles.find(&session.grid, request.name)?;
    let out = &mut session.out;
    map.entry_view(partition, request.key, |view| {
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
    });
    Ok(())
}

fn handle_is_locked(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: is_locked::Request<'_> = message.decode()?;
    let partition = session.partition(message, request.key);
    let response = session.map(request.name)?.is_locked(partition, request.key);
    is_locked::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_size(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: size::Request<'_> = message.decode()?;
    let size = session.map(request.name)?.size();
    let response = i32::try_from(size).unwrap_or(i32::MAX);
    size::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_is_empty(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: is_empty::Request<'_> = message.decode()?;
    let response = session.map(request.name)?.is_empty();
    is_empty::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
