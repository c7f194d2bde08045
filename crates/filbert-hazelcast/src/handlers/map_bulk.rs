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
    rows::Row,
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

/// Those of them that change keys one by one.
pub(crate) const SUBMITS: &[MessageId] = &[put_all::ID, put_all_with_metadata::ID];

/// Declares an index.
fn handle_add_index(session: &mut Session, message: &Message<'_>) -> Outcome {
    let (map, config) = index_of(session, message)?;
    let correlation = message.correlation_id();
    // Building reads every entry, which others on this thread must not wait for.
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

/// Declares an index at this member as one of several; `tell` gets the response.
pub(crate) fn add_index(session: &mut Session, message: &Message<'_>, tell: deferred::Tell) -> Outcome {
    let (map, config) = index_of(session, message)?;
    let correlation = message.correlation_id();
    let engine = session.grid.queries().filter(|_| map.size() > 0).cloned();
    let work = move || {
        let mut out = Vec::new();
        add_index::Response {}.encode(correlation, &mut out);
        tell(map.add_index(config).map(|_| out).map_err(Into::into));
    };
    match engine {
        Some(engine) => engine.run_later(Box::new(work)),
        None => work(),
    }
    Ok(())
}

/// What a request for an index says.
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

/// What a client knows of an entry. Clients say "for ever" by the largest number, the grid by zero.
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

/// Appends what is wanted of an entry.
type Append = fn(&mut Listing<'_>, Data<'_>, Data<'_>);

/// Bytes of a map up to which it is listed in place: others on this thread must not wait for more.
const LISTED_IN_PLACE_BYTES_MAX: usize = 1 << 20;

/// Answers with all of a map.
fn list(session: &mut Session, message: &Message<'_>, name: &str, append: Append) -> Outcome {
    let (id, correlation, bytes_max) = (message.id(), message.correlation_id(), session.config.reply_bytes_max);
    let map = session.map(name)?.clone();
    if map.statistics().record_bytes > LISTED_IN_PLACE_BYTES_MAX
        && let Some(engine) = session.grid.queries().cloned()
    {
        // Answers of one connection are built one after the other, as its client reads them.
        return deferred::later_alone(session, &engine, correlation, move |place, out| {
            let mut listing = Listing::answering(id, correlation, bytes_max, out);
            write_all(&map, &mut listing, append, &|| place.is_given_up())?;
            listing.finish()
        });
    }
    let mut listing = Listing::answering(id, correlation, bytes_max, &mut session.out);
    write_all(&map, &mut listing, append, &|| false)?;
    listing.finish()
}

/// Lists all of a map, partition by partition, until nobody wants it or it becomes too long.
fn write_all(map: &Map, listing: &mut Listing<'_>, append: Append, is_given_up: &dyn Fn() -> bool) -> Outcome {
    listing.open();
    map.answering_all(|| {
        for partition in (0..map.partition_count()).map(PartitionId) {
            if listing.is_over() || is_given_up() {
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

/// What answers a change of a whole map from whichever thread has its reply.
fn empty_later(session: &Session, message: &Message<'_>, answer: fn(CorrelationId, &mut Vec<u8>)) -> ParkedReply {
    let (link, correlation) = (session.link.clone(), message.correlation_id());
    let again = session.again(message, None);
    Box::new(move |result: Result<Reply<'_>, GridError>| {
        if let (Err(error), Some(again)) = (&result, again)
            && again.may_follow(error.kind())
        {
            again.fail(&Box::<Failure>::from(error.clone()));
            return;
        }
        link.outbox.append_answer(|out| match result {
            Ok(_) => answer(correlation, out),
            Err(error) => Box::<Failure>::from(error).encode(correlation, out),
        });
    })
}

fn handle_load_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    // There is no store to load from, which Hazelcast answers in the same way: with nothing loaded.
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
