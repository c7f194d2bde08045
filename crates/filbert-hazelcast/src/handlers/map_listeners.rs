//! Listeners to the entries of a map.

use std::sync::Arc;

use filbert_grid::{
    Blob, EntryEvent, EntrySink, EventKinds, GridError, ListenerId, ListenerSpec, Reservation, query::EntryFilter,
};
use filbert_wire::{
    CorrelationId, Event, Message, MessageId, Response,
    table::map::{
        add_entry_listener, add_entry_listener_to_key, add_entry_listener_to_key_with_predicate,
        add_entry_listener_with_predicate, add_partition_lost_listener, remove_entry_listener,
        remove_partition_lost_listener,
    },
};

use crate::{
    client_link::ClientLink,
    deferred,
    failure::{Failure, Outcome},
    losses::LossScope,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (add_entry_listener::ID, Row::Served(handle_add)),
    (add_entry_listener_to_key::ID, Row::Served(handle_add_to_key)),
    (add_entry_listener_with_predicate::ID, Row::Queries(handle_add_with_predicate)),
    (add_entry_listener_to_key_with_predicate::ID, Row::Queries(handle_add_to_key_with_predicate)),
    (remove_entry_listener::ID, Row::Served(handle_remove)),
    (add_partition_lost_listener::ID, Row::Served(handle_add_partition_lost)),
    (remove_partition_lost_listener::ID, Row::Served(handle_remove_partition_lost)),
];

/// Sends events to one client, with the correlation id of its registration. Called under a
/// partition's lock.
struct ToClient {
    link: Arc<ClientLink>,
    correlation: CorrelationId,
    /// The reservation for the registration with its key and its predicate.
    _room: Reservation,
}

/// The approximate size of a registration without its key and its predicate, in bytes.
const LISTENER_BYTES: usize = 512;

impl ToClient {
    /// Creates a sender for the client of a session. `bytes` is the size of the key and the
    /// predicate.
    fn new(session: &Session, correlation: CorrelationId, bytes: usize) -> Result<ToClient, Box<Failure>> {
        let room = session.grid.kept_budget().reserve(LISTENER_BYTES + bytes).map_err(GridError::from)?;
        Ok(ToClient { link: session.link.clone(), correlation, _room: room })
    }
}

macro_rules! sink {
    ($sink:ident, $method:ident) => {
        struct $sink(ToClient);

        impl EntrySink for $sink {
            fn deliver(&self, event: &EntryEvent<'_>) {
                let partition = event.partition.map_or(-1, |partition| partition.0.cast_signed());
                let message = $method::EntryEvent {
                    key: event.key,
                    value: event.value,
                    old_value: event.old_value,
                    merging_value: None,
                    event_type: EventKinds::of(event.kind).0.cast_signed(),
                    uuid: event.member,
                    number_of_affected_entries: i32::try_from(event.affected).unwrap_or(i32::MAX),
                };
                self.0.link.outbox.append(|out| message.encode(self.0.correlation, partition, out));
            }
        }
    };
}

sink!(OfMap, add_entry_listener);
sink!(OfKey, add_entry_listener_to_key);
sink!(OfFilter, add_entry_listener_with_predicate);
sink!(OfKeyAndFilter, add_entry_listener_to_key_with_predicate);

fn handle_add(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_entry_listener::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    let spec = ListenerSpec {
        key: None,
        filter: None,
        include_value: request.include_value,
        kinds: EventKinds(request.listener_flags.cast_unsigned()),
        connection: session.connection_id(),
    };
    let sink = Arc::new(OfMap(ToClient::new(session, correlation, 0)?));
    let id = session.map(request.name)?.add_listener(spec, sink)?;
    add_entry_listener::Response { response: id.0 }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_add_to_key(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_entry_listener_to_key::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    let spec = ListenerSpec {
        key: Some(Blob::from(request.key.to_vec())),
        filter: None,
        include_value: request.include_value,
        kinds: EventKinds(request.listener_flags.cast_unsigned()),
        connection: session.connection_id(),
    };
    let sink = Arc::new(OfKey(ToClient::new(session, correlation, request.key.len())?));
    let id = session.map(request.name)?.add_listener(spec, sink)?;
    add_entry_listener_to_key::Response { response: id.0 }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_add_with_predicate(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_entry_listener_with_predicate::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    let spec = ListenerSpec {
        key: None,
        filter: Some(filter(session, message, request.name, request.predicate)?),
        include_value: request.include_value,
        kinds: EventKinds(request.listener_flags.cast_unsigned()),
        connection: session.connection_id(),
    };
    let sink = Arc::new(OfFilter(ToClient::new(session, correlation, request.predicate.len())?));
    let id = session.map(request.name)?.add_listener(spec, sink)?;
    add_entry_listener_with_predicate::Response { response: id.0 }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_add_to_key_with_predicate(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_entry_listener_to_key_with_predicate::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    let spec = ListenerSpec {
        key: Some(Blob::from(request.key.to_vec())),
        filter: Some(filter(session, message, request.name, request.predicate)?),
        include_value: request.include_value,
        kinds: EventKinds(request.listener_flags.cast_unsigned()),
        connection: session.connection_id(),
    };
    let sink =
        Arc::new(OfKeyAndFilter(ToClient::new(session, correlation, request.key.len() + request.predicate.len())?));
    let id = session.map(request.name)?.add_listener(spec, sink)?;
    add_entry_listener_to_key_with_predicate::Response { response: id.0 }.encode(correlation, &mut session.out);
    Ok(())
}

/// A predicate, prepared for the check of every event.
fn filter(
    session: &mut Session,
    message: &Message<'_>,
    name: &str,
    predicate: &[u8],
) -> Result<Arc<dyn EntryFilter>, Box<Failure>> {
    let engine = deferred::engine(session, message)?;
    Ok(engine.filter(session.map(name)?, predicate)?)
}

fn handle_remove(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_entry_listener::Request<'_> = message.decode()?;
    // This message also removes listeners of query caches. Then the name is that of the cache.
    let response = session.grid.remove_map_listener(request.name, ListenerId(request.registration_id))
        || session.caches.unsubscribe(request.name, request.registration_id)
        || session.is_relay && session.caches.stand_down(request.registration_id);
    remove_entry_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_partition_lost(session: &mut Session, message: &Message<'_>) -> Outcome {
    // A standalone member loses partitions only together with itself, so it sends no such events.
    let request: add_partition_lost_listener::Request<'_> = message.decode()?;
    session.map(request.name)?;
    let (link, correlation) = (&session.link, message.correlation_id());
    let response =
        session.views.listen_to_losses(link, correlation, LossScope::OneMap, request.local_only, &session.grid)?;
    add_partition_lost_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_remove_partition_lost(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_partition_lost_listener::Request<'_> = message.decode()?;
    let response = session.views.forget_losses(request.registration_id);
    remove_partition_lost_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
