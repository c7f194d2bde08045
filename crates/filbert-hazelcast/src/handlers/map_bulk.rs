//! Messages about many entries or a whole map.

use std::sync::Arc;

use filbert_grid::{
    BitmapConfig, Change, ErrorKind, Expiry, GridError, IndexConfig, IndexKind, Map, Metadata, ParkedReply,
    PartitionId, PutMode, Reply, threads,
};
use filbert_wire::{
    CorrelationId, Data, Message, MessageId, Response,
    structure::SimpleEntryView,
    table::map::{
        add_index, clear, entry_set, evict_all, flush, get_all, key_set, load_all, load_given_keys, put_all,
        put_all_with_metadata, values,
    },
};

use crate::{
    change::Batch,
    deferred,
    failure::{Failure, Outcome},
    listing::Listing,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (get_all::ID, Row::Served(handle_get_all)),
    (put_all::ID, Row::Served(handle_put_all)),
    (put_all_with_metadata::ID, Row::Served(handle_put_all_with_metadata)),
    (key_set::ID, Row::Served(handle_key_set)),
    (values::ID, Row::Served(handle_values)),
    (entry_set::ID, Row::Served(handle_entry_set)),
    (clear::ID, Row::Served(handle_clear)),
    (evict_all::ID, Row::Served(handle_evict_all)),
    (load_all::ID, Row::Served(handle_load_all)),
    (load_given_keys::ID, Row::Served(handle_load_given_keys)),
    (flush::ID, Row::Served(handle_flush)),
    (add_index::ID, Row::Served(handle_add_index)),
];

/// The messages that change keys one by one.
pub(crate) const SUBMITS: &[MessageId] = &[put_all::ID, put_all_with_metadata::ID];

/// Creates an index.
fn handle_add_index(session: &mut Session, message: &Message<'_>) -> Outcome {
    let (map, config) = index_of(session, message)?;
    let correlation = message.correlation_id();
    // The creation reads every entry. Other connections on this thread must not wait for that.
    if map.size() > 0
        && let Some(engine) = session.grid.queries().cloned()
    {
        return deferred::later(session, &engine, correlation, move |_, out| {
            map.add_index(config)?;
            add_index::Response {}.encode(correlation, out);
            Ok(())
        });
    }
    map.add_index(config)?;
    add_index::Response {}.encode(correlation, &mut session.out);
    Ok(())
}

/// Creates an index on this member, as one of several members. `send_reply` receives the response.
pub(crate) fn add_index(session: &mut Session, message: &Message<'_>, send_reply: deferred::ReplySender) -> Outcome {
    let (map, config) = index_of(session, message)?;
    let correlation = message.correlation_id();
    let engine = session.grid.queries().filter(|_| map.size() > 0).cloned();
    let work = move || {
        let mut out = Vec::new();
        add_index::Response {}.encode(correlation, &mut out);
        send_reply(map.add_index(config).map(|_| out).map_err(Into::into));
    };
    match engine {
        Some(engine) => engine.run_later(Box::new(work)),
        None => work(),
    }
    Ok(())
}

/// The map and the index of a request.
fn index_of(session: &mut Session, message: &Message<'_>) -> Result<(Arc<Map>, IndexConfig), Box<Failure>> {
    let request: add_index::Request<'_> = message.decode()?;
    let index = request.index_config;
    let kind = match index.kind {
        0 => IndexKind::Sorted,
        1 => IndexKind::Hash,
        2 => IndexKind::Bitmap,
        other => {
            let text = format!("{}: index type {other}, expected 0 (sorted), 1 (hash) or 2 (bitmap)", message.id());
            return Err(Failure::new(ErrorKind::IllegalArgument, text));
        }
    };
    let bitmap = index.bitmap_index_options.filter(|_| kind == IndexKind::Bitmap).map(|options| BitmapConfig {
        unique_key: options.unique_key.to_owned(),
        transformation: options.unique_key_transformation,
    });
    let config = IndexConfig {
        name: index.name.map(str::to_owned),
        kind,
        attributes: index.attributes.into_iter().map(str::to_owned).collect(),
        bitmap,
    };
    Ok((session.map(request.name)?.clone(), config))
}

fn handle_get_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: get_all::Request<'_> = message.decode()?;
    let map = session.handles.find(&session.grid, request.name)?;
    let mut listing = Listing::begin(message, session.config.reply_bytes_max, &mut session.out);
    listing.open();
    for key in request.keys {
        if listing.is_over() {
            break;
        }
        let partition = map.partition_of(key);
        map.answering(partition, || {
            map.get(partition, key, |value| {
                if let Some(value) = value {
                    listing.entry(key, value);
                }
            });
        })?;
    }
    listing.finish()
}

fn handle_put_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: put_all::Request<'_> = message.decode()?;
    let mut batch = Batch::new(session, message, |correlation, out| put_all::Response {}.encode(correlation, out));
    for (key, value) in request.entries {
        let put = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
        batch.change(session, request.name, put)?;
    }
    batch.finish(session);
    Ok(())
}

fn handle_put_all_with_metadata(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: put_all_with_metadata::Request<'_> = message.decode()?;
    let mut batch =
        Batch::new(session, message, |correlation, out| put_all_with_metadata::Response {}.encode(correlation, out));
    for entry in &request.entries {
        let mode = PutMode::Metadata(metadata(entry));
        let put = Change::Put { key: entry.key, value: entry.value, expiry: Expiry::DEFAULT, mode };
        batch.change(session, request.name, put)?;
    }
    batch.finish(session);
    Ok(())
}

/// The metadata that a client sends with an entry. Clients encode "forever" as the largest number,
/// the grid encodes it as zero.
fn metadata(entry: &SimpleEntryView<'_>) -> Metadata {
    let duration = |ms: i64| if ms == i64::MAX { 0 } else { ms };
    Metadata {
        created_ms: entry.creation_time,
        updated_ms: entry.last_update_time,
        accessed_ms: entry.last_access_time,
        expires_ms: if entry.expiration_time < 0 { i64::MAX } else { entry.expiration_time },
        hits: u64::try_from(entry.hits).unwrap_or(0),
        version: u64::try_from(entry.version).unwrap_or(0),
        expiry: Expiry { ttl_ms: duration(entry.ttl), max_idle_ms: duration(entry.max_idle) },
    }
}

fn handle_key_set(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: key_set::Request<'_> = message.decode()?;
    list(session, message, request.name, |listing, key, _| listing.item(key))
}

fn handle_values(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: values::Request<'_> = message.decode()?;
    list(session, message, request.name, |listing, _, value| listing.item(value))
}

fn handle_entry_set(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: entry_set::Request<'_> = message.decode()?;
    list(session, message, request.name, |listing, key, value| listing.entry(key, value))
}

/// Appends the requested part of an entry.
type Append = fn(&mut Listing<'_>, Data<'_>, Data<'_>);

/// The maximum size of a map that is listed in place, in bytes. Other connections on this thread
/// must not wait for larger maps.
const LISTED_IN_PLACE_BYTES_MAX: usize = 1 << 20;

/// Answers with all entries of a map.
fn list(session: &mut Session, message: &Message<'_>, name: &str, append: Append) -> Outcome {
    let (id, correlation, bytes_max) = (message.id(), message.correlation_id(), session.config.reply_bytes_max);
    let map = session.map(name)?.clone();
    if map.statistics().record_bytes > LISTED_IN_PLACE_BYTES_MAX
        && let Some(engine) = session.grid.queries().cloned()
    {
        // Such answers to one connection are built one after the other, as fast as its client reads
        // them.
        return deferred::later_alone(session, &engine, correlation, move |slot, out| {
            let mut listing = Listing::answering(id, correlation, bytes_max, out);
            write_all(&map, &mut listing, append, &|| slot.is_cancelled())?;
            listing.finish()
        });
    }
    let mut listing = Listing::answering(id, correlation, bytes_max, &mut session.out);
    write_all(&map, &mut listing, append, &|| false)?;
    listing.finish()
}

/// Lists all of a map, partition by partition, until the client has disconnected or the list is too
/// long.
fn write_all(map: &Map, listing: &mut Listing<'_>, append: Append, is_cancelled: &dyn Fn() -> bool) -> Outcome {
    listing.open();
    map.answering_all(|| {
        for partition in (0..map.partition_count()).map(PartitionId) {
            if listing.is_over() || is_cancelled() {
                return;
            }
            map.scan_rows(partition, &mut |key, value| append(listing, key, value));
            threads::give_way();
        }
    })?;
    Ok(())
}

fn handle_clear(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: clear::Request<'_> = message.decode()?;
    let caller = session.caller(0);
    if session.is_replicated {
        let reply = empty_later(session, message, |correlation, out| clear::Response {}.encode(correlation, out));
        return Ok(session.map(request.name)?.submit_clear(caller, reply)?);
    }
    session.map(request.name)?.clear(caller)?;
    clear::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_evict_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: evict_all::Request<'_> = message.decode()?;
    let caller = session.caller(0);
    if session.is_replicated {
        let reply = empty_later(session, message, |correlation, out| evict_all::Response {}.encode(correlation, out));
        return Ok(session.map(request.name)?.submit_evict_all(caller, reply)?);
    }
    session.map(request.name)?.evict_all(caller)?;
    evict_all::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

/// The function that answers a change of a whole map. Any thread with the reply may call it.
fn empty_later(session: &Session, message: &Message<'_>, answer: fn(CorrelationId, &mut Vec<u8>)) -> ParkedReply {
    let (link, correlation) = (session.link.clone(), message.correlation_id());
    let repeatable = session.repeatable(message, None);
    Box::new(move |result: Result<Reply<'_>, GridError>| {
        if let (Err(error), Some(repeatable)) = (&result, repeatable)
            && repeatable.may_repeat_after(error.kind())
        {
            repeatable.fail(&Box::<Failure>::from(error.clone()));
            return;
        }
        link.outbox.append_answer(|out| match result {
            Ok(_) => answer(correlation, out),
            Err(error) => Box::<Failure>::from(error).encode(correlation, out),
        });
    })
}

fn handle_load_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    // There is no store to load from. Hazelcast gives the same reply then: nothing is loaded.
    let request: load_all::Request<'_> = message.decode()?;
    session.map(request.name)?;
    load_all::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_load_given_keys(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: load_given_keys::Request<'_> = message.decode()?;
    session.map(request.name)?;
    load_given_keys::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_flush(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: flush::Request<'_> = message.decode()?;
    session.map(request.name)?;
    flush::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
