//! Query caches: their creation and end, listeners to their changes, and requests for lost changes.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use filbert_grid::{
    ErrorKind, EventKinds, Grid, GridError, ListenerId, ListenerSpec, Map, MemoryBudget, ReadView,
    query::{Answer, EntryFilter, MapQuery, PreparedQuery, QueryEngine},
};
use filbert_wire::{
    CorrelationId, Message, MessageId, Request, Response, Uuid,
    table::continuous_query::{
        add_listener, destroy_cache, made_publishable, publisher_create, publisher_create_with_value, set_read_cursor,
    },
};

use tokio::runtime::Handle;

use crate::{
    config::DoorConfig,
    deferred,
    failure::{Failure, Outcome},
    listing::Listing,
    query_cache::{CacheRequest, Content, QueryCache, QueryCaches, Reader, Settings, Sink, Standby},
    query_slot::QuerySlot,
    replies::{Replies, UNCOUNTED_BYTES},
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (publisher_create_with_value::ID, Row::Queries(handle_create)),
    (publisher_create::ID, Row::Queries(handle_create)),
    (made_publishable::ID, Row::Queries(handle_made_publishable)),
    (add_listener::ID, Row::Queries(handle_add_listener)),
    (set_read_cursor::ID, Row::Queries(handle_set_read_cursor)),
    (destroy_cache::ID, Row::Queries(handle_destroy)),
];

/// The time for which changes are still held back after a client has reported that it is ready. The
/// client discards events that arrive before it has handled the reply.
const READY_GRACE: Duration = Duration::from_millis(100);

/// The reason for which a home of query caches must hold all partitions.
const FOLLOWS_ALL: &str = "a query cache follows the changes of all partitions where it is made";

/// The interval at which a cache with a delay checks for changes that have waited long enough.
const DELAY_CHECK: Duration = Duration::from_millis(250);

/// The fields of a request for a cache.
pub(crate) struct Create<'a> {
    pub(crate) map: &'a str,
    pub(crate) name: &'a str,
    predicate: &'a [u8],
    batch_size: i32,
    buffer_size: i32,
    delay_seconds: i64,
    populate: bool,
    coalesce: bool,
    include_value: bool,
}

/// Both requests have the same fields, but different types, because they have different ids.
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

macro_rules! encode {
    ($create:expr, $method:ident, $correlation:expr, $out:expr) => {
        $method::Request {
            map_name: $create.map,
            cache_name: $create.name,
            predicate: $create.predicate,
            batch_size: $create.batch_size,
            buffer_size: $create.buffer_size,
            delay_seconds: $create.delay_seconds,
            populate: $create.populate,
            coalesce: $create.coalesce,
        }
        .encode($correlation, -1, $out)
    };
}

impl<'a> Create<'a> {
    /// Decodes either of the requests.
    pub(crate) fn read(message: &Message<'a>) -> Result<Self, Box<Failure>> {
        if message.id() == publisher_create::ID {
            let request: publisher_create::Request<'a> = message.decode()?;
            return Ok(create!(request, include_value: false));
        }
        let request: publisher_create_with_value::Request<'a> = message.decode()?;
        Ok(create!(request, include_value: true))
    }

    fn write(&self, correlation: CorrelationId) -> Vec<u8> {
        let mut out = Vec::new();
        match self.include_value {
            true => encode!(self, publisher_create_with_value, correlation, &mut out),
            false => encode!(self, publisher_create, correlation, &mut out),
        }
        out
    }

    fn query(&self) -> MapQuery<'a> {
        MapQuery::Entries { predicate: Some(self.predicate), partitions: None }
    }

    fn cache_request(
        &self,
        settings: Settings,
        owner: Uuid,
        request_id: CorrelationId,
        source: String,
    ) -> CacheRequest {
        CacheRequest {
            name: self.name.to_owned(),
            settings,
            include_value: self.include_value,
            populate: self.populate,
            owner,
            predicate: self.predicate.into(),
            message: Box::default(),
            request_id,
            source,
        }
    }

    /// The listener of the cache at its map.
    fn spec(&self, filter: Arc<dyn EntryFilter>) -> ListenerSpec {
        ListenerSpec {
            key: None,
            filter: Some(filter),
            include_value: self.include_value,
            kinds: EventKinds::ALL,
            connection: None,
        }
    }
}

fn handle_create(session: &mut Session, message: &Message<'_>) -> Outcome {
    let create = &Create::read(message)?;
    let engine = deferred::engine(session, message)?;
    let settings = settings(session.config.query_cache_bytes_max, message.id(), create)?;
    let map = session.map(create.map)?.clone();
    let filter = engine.filter(&map, create.predicate)?;
    let (correlation, client) = (message.correlation_id(), session.client);
    let source = format!("[{}]:{}", session.address.host, session.address.port);
    let mut request = create.cache_request(settings, client, correlation, source);
    let reader = Reader::new(&session.grid);
    let reply = Reply { message: message.id(), correlation, bytes_max: session.config.reply_bytes_max };
    if session.grid.cluster().is_some() {
        // Checks the query, which a member that stands by runs when it takes over the cache.
        engine.prepare(&map, create.query(), ReadView::complete())?;
        let slot = session.take_slot()?;
        request.message = create.write(correlation).into_boxed_slice();
        let cache = open(&session.caches, &map, request, reader, session.config.query_caches_max, |sink| {
            map.follow_copies(create.spec(filter), sink)
        })?;
        return create_in_cluster(session, &engine, reply, slot, &cache);
    }
    let mut query = engine.prepare(&map, create.query(), ReadView::complete())?;
    let cache = open(&session.caches, &map, request, reader, session.config.query_caches_max, |sink| {
        map.add_listener(create.spec(filter), sink)
    })?;
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
    deferred::later(session, &engine, message.correlation_id(), move |slot, out| {
        query.end_when(slot.ending());
        answer(query.as_mut(), out)
    })
}

/// Creates a cache, and adds its listener to the map.
fn open(
    caches: &QueryCaches,
    map: &Arc<Map>,
    request: CacheRequest,
    reader: Reader,
    caches_max: usize,
    listen: impl FnOnce(Arc<Sink>) -> Result<ListenerId, GridError>,
) -> Result<Arc<QueryCache>, GridError> {
    let name = request.name.clone();
    let cache = caches.create(map, request, reader, caches_max)?;
    match listen(Arc::new(Sink(cache.clone()))) {
        Ok(id) => cache.set_listener(id),
        Err(error) => {
            caches.destroy(map.name(), &name);
            return Err(error);
        }
    }
    if !cache.delay().is_zero() {
        let cache = Arc::downgrade(&cache);
        tokio::spawn(send_due_periodically(cache));
    }
    Ok(cache)
}

/// Asks the other members to stand by for a cache. Then reads the initial content on this member,
/// after it has applied all changes that were acknowledged by then.
fn create_in_cluster(
    session: &mut Session,
    engine: &Arc<dyn QueryEngine>,
    reply: Reply,
    slot: QuerySlot,
    cache: &Arc<QueryCache>,
) -> Outcome {
    let (grid, caches, budget) = (session.grid.clone(), session.caches.clone(), session.link.replies.clone());
    let (correlation, bytes_max) = (reply.correlation, reply.bytes_max);
    let (of_engine, of_cache) = (engine.clone(), cache.clone());
    let read = move |slot: &QuerySlot, out: &mut Replies| {
        let cache = of_cache;
        let mut answer = || -> Outcome {
            let view = grid.catch_up_blocking()?;
            view.check_complete(FOLLOWS_ALL)?;
            cache.keep_replicas(view.clone());
            if !cache.request().populate {
                return reply.write(&cache, Vec::new(), out);
            }
            let query = MapQuery::Entries { predicate: Some(&cache.request().predicate), partitions: None };
            let mut query = of_engine.prepare(cache.map(), query, view)?;
            query.end_when(slot.ending());
            reply.populate(&cache, query.as_mut(), out, &budget)
        };
        let outcome = answer();
        if outcome.is_err() {
            caches.destroy(cache.map().name(), &cache.request().name);
        }
        outcome
    };
    let engine = engine.clone();
    let done = Box::new(move || deferred::run(slot, bytes_max, &engine, correlation, read));
    session.have_others_stand_by(cache, done);
    Ok(())
}

/// Takes over a cache after its home has left the cluster, and rebuilds its content.
pub(crate) fn take_over(grid: &Arc<Grid>, config: &DoorConfig, caches: &Arc<QueryCaches>, map: &str, standby: Standby) {
    let Some(engine) = grid.queries().cloned() else { return };
    let (of_engine, grid, caches, map) = (engine.clone(), grid.clone(), caches.clone(), map.to_owned());
    let (bytes_max, caches_max, runtime) = (config.query_cache_bytes_max, config.query_caches_max, Handle::current());
    engine.run_later(Box::new(move || {
        let _runtime = runtime.enter();
        let taken = || -> Result<(), Box<Failure>> {
            let message = Message::parse(&standby.message)?;
            let create = Create::read(&message)?;
            let settings = settings(bytes_max, message.id(), &create)?;
            let map = grid.map(&map)?;
            let view = grid.catch_up_blocking()?;
            view.check_complete(FOLLOWS_ALL)?;
            let filter = of_engine.filter(&map, create.predicate)?;
            let mut request = create.cache_request(settings, standby.owner, standby.request_id, String::new());
            request.message = standby.message.clone();
            let cache = open(&caches, &map, request, Reader::new(&grid), caches_max, |sink| {
                map.follow_copies(create.spec(filter), sink)
            })?;
            cache.keep_replicas(view);
            cache.begin_with_rebuild();
            caches.announce(&cache);
            Ok(())
        };
        if let Err(failure) = taken() {
            tracing::warn!(map, "a query cache of a member that is gone cannot be made anew: {}", failure.text);
            caches.send_loss(&map, &standby.name, grid.partition_count());
        }
    }));
}

fn settings(bytes_max: usize, id: MessageId, create: &Create<'_>) -> Result<Settings, Box<Failure>> {
    let positive = |field: &str, number: i32| {
        let number = usize::try_from(number).ok().filter(|number| *number > 0);
        number.ok_or_else(|| Failure::argument(id, &format!("field {field:?}: at least 1 is expected")))
    };
    let delay_seconds = u64::try_from(create.delay_seconds)
        .map_err(|_| Failure::argument(id, "field \"delaySeconds\": at least 0 is expected"))?;
    Ok(Settings {
        batch: positive("batchSize", create.batch_size)?,
        capacity: positive("bufferSize", create.buffer_size)?,
        delay: Duration::from_secs(delay_seconds),
        coalesce: create.coalesce,
        bytes_max,
    })
}

/// The growth of the reservation for the initial content in one step, in bytes.
const CONTENT_STEP_BYTES: usize = 1 << 20;

/// The reply to a request for a cache.
struct Reply {
    message: MessageId,
    correlation: CorrelationId,
    bytes_max: usize,
}

impl Reply {
    /// Reads the initial content, and answers with it.
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

/// Sends changes that have waited long enough, as long as the cache exists.
async fn send_due_periodically(cache: Weak<QueryCache>) {
    loop {
        tokio::time::sleep(DELAY_CHECK).await;
        if !cache.upgrade().is_some_and(|cache| cache.send_due()) {
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
            cache.begin_sending();
        });
    }
    made_publishable::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_listener::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    // Unique during the lifetime of the member: a connection uses each correlation id once.
    let connection = session.connection_id().map_or(0, |id| id.0);
    let response = Uuid::from_u64_pair(connection, correlation.0.cast_unsigned());
    let listener = (response, session.link.clone(), correlation);
    let listeners_max = session.config.query_cache_listeners_max;
    let budget = session.grid.kept_budget();
    let own = session.caches.subscribe(request.listener_name, session.client, listener, listeners_max, budget)?;
    for cache in own {
        // The announcement to the other members ended with the client's last connection. It is
        // repeated on this connection.
        session.have_others_stand_by(&cache, Box::new(|| ()));
    }
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
