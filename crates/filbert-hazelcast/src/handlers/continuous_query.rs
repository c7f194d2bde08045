//! Query caches: creating and ending them, listening to their changes, and asking for changes that were lost.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use filbert_grid::{
    ErrorKind, EventKinds, GridError, ListenerSpec, MemoryBudget,
    query::{Answer, MapQuery, PreparedQuery},
};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response, Uuid,
    table::continuous_query::{
        add_listener, destroy_cache, made_publishable, publisher_create, publisher_create_with_value, set_read_cursor,
    },
};

use crate::{
    deferred,
    failure::{Failure, Outcome},
    listing::Listing,
    query_cache::{Content, QueryCache, Settings, Sink, Wanted},
    replies::{Replies, UNCOUNTED_BYTES},
    rows::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (publisher_create_with_value::ID, Row::Queries(handle_create_with_value)),
    (publisher_create::ID, Row::Queries(handle_create)),
    (made_publishable::ID, Row::Queries(handle_made_publishable)),
    (add_listener::ID, Row::Queries(handle_add_listener)),
    (set_read_cursor::ID, Row::Queries(handle_set_read_cursor)),
    (destroy_cache::ID, Row::Queries(handle_destroy)),
];

/// How long changes are still held back when a client says that it is ready: it throws away what arrives before it has
/// worked on our answer.
const READY_GRACE: Duration = Duration::from_millis(100);

/// How often a cache whose changes may wait looks for those that have waited long enough.
const DELAY_CHECK: Duration = Duration::from_millis(250);

/// What a request for a cache says.
struct Create<'a> {
    map: &'a str,
    name: &'a str,
    predicate: &'a [u8],
    batch_size: i32,
    buffer_size: i32,
    delay_seconds: i64,
    populate: bool,
    coalesce: bool,
    include_value: bool,
}

/// The two requests have the same fields and are of different types, as they have different numbers.
macro_rules! create {
    ($request:expr, include_value: $include_value:expr) => {
        Create {
            map: $request.map_name,
            name: $request.cache_name,
            predicate: $request.predicate,
            batch_size: $request.batch_size,
            buffer_size: $request.buffer_size,
            delay_seconds: $request.delay_seconds,
            populate: $request.populate,
            coalesce: $request.coalesce,
            include_value: $include_value,
        }
    };
}

fn handle_create_with_value(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: publisher_create_with_value::Request<'_> = message.decode()?;
    create_cache(session, message, &create!(request, include_value: true))
}

fn handle_create(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: publisher_create::Request<'_> = message.decode()?;
    create_cache(session, message, &create!(request, include_value: false))
}

fn create_cache(session: &mut Session, message: &Message<'_>, create: &Create<'_>) -> Outcome {
    let engine = deferred::engine(session, message)?;
    let settings = settings(session, message, create)?;
    let map = session.map(create.map)?.clone();
    let filter = engine.filter(&map, create.predicate)?;
    let query = MapQuery::Entries { predicate: Some(create.predicate), partitions: None };
    let mut query = engine.prepare(&map, query)?;
    let wanted = Wanted {
        name: create.name.to_owned(),
        settings,
        include_value: create.include_value,
        populate: create.populate,
        owner: session.client,
        predicate_bytes: create.predicate.len(),
        source: format!("[{}]:{}", session.address.host, session.address.port),
    };
    let cache = session.caches.create(&map, wanted, session.config.query_caches_max)?;
    let spec = ListenerSpec {
        key: None,
        filter: Some(filter),
        include_value: create.include_value,
        kinds: EventKinds::ALL,
        connection: None,
    };
    match map.add_listener(spec, Arc::new(Sink(cache.clone()))) {
        Ok(id) => cache.set_listener(id),
        Err(error) => {
            session.caches.destroy(create.map, create.name);
            return Err(error.into());
        }
    }
    if !cache.delay().is_zero() {
        let cache = Arc::downgrade(&cache);
        tokio::spawn(tell_from_time_to_time(cache));
    }
    let reply = Reply {
        message: message.id(),
        correlation: message.correlation_id(),
        bytes_max: session.config.reply_bytes_max,
    };
    if !create.populate {
        return reply.write(&cache, Vec::new(), &mut session.out);
    }
    let (caches, map, name) = (session.caches.clone(), create.map.to_owned(), create.name.to_owned());
    let budget = session.link.replies.clone();
    let answer = move |query: &mut dyn PreparedQuery, out: &mut Replies| {
        let outcome = reply.populate(&cache, query, out, &budget);
        if outcome.is_err() {
            caches.destroy(&map, &name);
        }
        outcome
    };
    if query.is_short() {
        return answer(query.as_mut(), &mut session.out);
    }
    deferred::later(session, &engine, message.correlation_id(), move |place, out| {
        query.end_when(place.ending());
        answer(query.as_mut(), out)
    })
}

fn settings(session: &Session, message: &Message<'_>, create: &Create<'_>) -> Result<Settings, Box<Failure>> {
    let positive = |field: &str, number: i32| {
        let number = usize::try_from(number).ok().filter(|number| *number > 0);
        number.ok_or_else(|| Failure::argument(message.id(), &format!("field {field:?}: at least 1 is expected")))
    };
    let delay_seconds = u64::try_from(create.delay_seconds)
        .map_err(|_| Failure::argument(message.id(), "field \"delaySeconds\": at least 0 is expected"))?;
    Ok(Settings {
        batch: positive("batchSize", create.batch_size)?,
        capacity: positive("bufferSize", create.buffer_size)?,
        delay: Duration::from_secs(delay_seconds),
        coalesce: create.coalesce,
        bytes_max: session.config.query_cache_bytes_max,
    })
}

/// How many bytes of the first content are asked of the budget at once.
const CONTENT_STEP_BYTES: usize = 1 << 20;

/// The answer to a request for a cache.
struct Reply {
    message: MessageId,
    correlation: CorrelationId,
    bytes_max: usize,
}

impl Reply {
    /// Reads the first content and answers with it.
    fn populate(
        &self,
        cache: &QueryCache,
        query: &mut dyn PreparedQuery,
        out: &mut Replies,
        budget: &MemoryBudget,
    ) -> Outcome {
        let mut found = Content::new();
        let mut bytes = 0_usize;
        let mut room = budget.empty();
        query.run(&mut |answer| {
            if let Answer::Entry(key, value) = answer {
                let value = if cache.include_value() { value } else { &[] };
                bytes = bytes.saturating_add(key.len() + value.len());
                if bytes > self.bytes_max {
                    let text = format!(
                        "the first content of the query cache has more than {} bytes (reply_bytes_max); expected a narrower predicate",
                        self.bytes_max
                    );
                    return Err(GridError::IllegalArgument(text));
                }
                if bytes > room.bytes() + UNCOUNTED_BYTES {
                    room.resize(bytes + CONTENT_STEP_BYTES)?;
                }
                found.push((key.to_vec(), value.to_vec()));
            }
            Ok(())
        })?;
        let content = cache.end_snapshot(found).ok_or_else(|| {
            let text = "more has changed while the query cache was filled than query_cache_bytes_max allows to keep";
            Failure::new(ErrorKind::LimitReached, text)
        })?;
        self.write(cache, content, out)
    }

    fn write(&self, cache: &QueryCache, content: Content, out: &mut Replies) -> Outcome {
        let mut listing = Listing::answering(self.message, self.correlation, self.bytes_max, out);
        listing.open();
        for (key, value) in &content {
            if cache.include_value() {
                listing.entry(key, value);
            } else {
                listing.item(key);
            }
        }
        listing.finish()
    }
}

/// Tells changes that have waited long enough, as long as there is the cache.
async fn tell_from_time_to_time(cache: Weak<QueryCache>) {
    loop {
        tokio::time::sleep(DELAY_CHECK).await;
        if !cache.upgrade().is_some_and(|cache| cache.tell_due()) {
            return;
        }
    }
}

fn handle_made_publishable(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: made_publishable::Request<'_> = message.decode()?;
    let cache = session.caches.find(request.map_name, request.cache_name);
    let response = cache.is_some();
    if let Some(cache) = cache {
        tokio::spawn(async move {
            tokio::time::sleep(READY_GRACE).await;
            cache.begin_telling();
        });
    }
    made_publishable::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_listener::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    // Unique as long as the member lives: a connection uses each correlation id once.
    let connection = session.connection_id().map_or(0, |id| id.0);
    let response = Uuid::from_u64_pair(connection, correlation.0.cast_unsigned());
    let listener = (response, session.link.clone(), correlation);
    let listeners_max = session.config.query_cache_listeners_max;
    session.caches.subscribe(request.listener_name, session.client, listener, listeners_max, session.grid.budget())?;
    add_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_set_read_cursor(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: set_read_cursor::Request<'_> = message.decode()?;
    let partition = session.partition_in_header(message).ok_or_else(|| {
        let text = format!("partition {}, expected that of the changes that were lost", message.partition_id());
        Failure::argument(message.id(), &text)
    })?;
    let cache = session.caches.find(request.map_name, request.cache_name);
    let response = cache.is_some_and(|cache| cache.set_read_cursor(partition, request.sequence));
    set_read_cursor::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_destroy(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: destroy_cache::Request<'_> = message.decode()?;
    let response = session.caches.destroy(request.map_name, request.cache_name);
    destroy_cache::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
