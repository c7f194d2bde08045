//! What a connection is to its handlers: the grid, the client, and the place where replies go.

use std::sync::Arc;

use filbert_grid::metrics::Tally;
use filbert_grid::replication::{InFlight, Submissions};
use filbert_grid::{Caller, ClientConnection, ConnectionId, ErrorKind, Grid, GridError, Map, PartitionId};
use filbert_listen::Guesses;
use filbert_wire::{
    CorrelationId, Data, Message, MessageId, Uuid, WireError,
    table::map::{event_journal_read, get, get_entry_view},
};
use tracing::{debug, info};

use crate::config::MemberAddress;
use crate::{
    DoorConfig,
    deferred::NO_QUERIES,
    failure::{Failure, Outcome},
    handlers::{journal::JournalWaits, map_read::Get},
    handles::Handles,
    kinds::kind_of,
    link::Link,
    query_cache::QueryCaches,
    relay::{Relays, Way, scoped, standing},
    replies::{Mark, Replies, UNCOUNTED_BYTES},
    rows::{self, Row, submits},
    views::Views,
};

/// One connection's state. Handlers get it whole; each uses a few of the fields.
pub(crate) struct Session {
    pub(crate) grid: Arc<Grid>,
    pub(crate) config: Arc<DoorConfig>,
    pub(crate) link: Arc<Link>,
    /// Replies in the order in which they were made.
    pub(crate) out: Replies,
    pub(crate) handles: Handles,
    /// What was asked for since the last batch.
    pub(crate) tally: Tally,
    /// The address that this client is told to find the member at.
    pub(crate) address: MemberAddress,
    /// The client's UUID; nil before authentication.
    pub(crate) client: Uuid,
    /// Registration with the grid, from authentication on. Dropping it gives back what the client held.
    pub(crate) registration: Option<ClientConnection>,
    pub(crate) journal_waits: JournalWaits,
    /// Whether changes go through logs.
    pub(crate) is_replicated: bool,
    /// Changes of the batch at hand, where they go through logs.
    pub(crate) submissions: Submissions,
    /// What of them, and of earlier batches, is on its way.
    pub(crate) in_flight: Arc<InFlight>,
    /// The query caches of all connections.
    pub(crate) caches: Arc<QueryCaches>,
    /// What clients are told of the cluster.
    pub(crate) views: Arc<Views>,
    /// Who was wrong about a password or a token.
    pub(crate) guesses: Arc<Guesses>,
    /// The way to other members, where this member has some: from authentication on.
    pub(crate) relays: Option<Box<Relays>>,
    /// Whether another member sends requests of a client on by this connection: none of them is sent on again.
    pub(crate) is_relay: bool,
    /// Ends the queries that still run when the connection does: behind the registration, which is gone by then.
    _queries: QueriesEnd,
    /// Set by an authentication that failed: the reply is a normal one, and then the connection is closed.
    pub(crate) refused: bool,
}

/// Whether a request reads values and does nothing else.
fn reads_one(id: MessageId) -> bool {
    matches!(id, get::ID | get_entry_view::ID | event_journal_read::ID)
}

/// Closes a connection's cursors when it is dropped, and has queries that run for it given up.
struct QueriesEnd(Arc<Link>, Arc<QueryCaches>, Arc<Grid>);

impl Drop for QueriesEnd {
    fn drop(&mut self) {
        self.0.set_closing();
        self.0.cursors.close_all();
        self.1.disconnect(&self.0, self.2.clients());
    }
}

impl Session {
    pub(crate) fn new(
        grid: Arc<Grid>,
        config: Arc<DoorConfig>,
        link: Arc<Link>,
        caches: Arc<QueryCaches>,
        views: Arc<Views>,
        guesses: Arc<Guesses>,
        address: MemberAddress,
    ) -> Self {
        let handles = Handles::new(config.handles_max);
        let queries = QueriesEnd(link.clone(), caches.clone(), grid.clone());
        let in_flight = Arc::new(InFlight::new({
            let link = link.clone();
            move || link.outbox.poke()
        }));
        let submissions = grid.submissions(in_flight.clone());
        Self {
            is_replicated: grid.is_replicated(),
            grid,
            config,
            out: Replies::new(&link.replies),
            link,
            handles,
            tally: Tally::default(),
            address,
            client: Uuid::nil(),
            registration: None,
            journal_waits: JournalWaits::default(),
            submissions,
            in_flight,
            caches,
            views,
            guesses,
            relays: None,
            is_relay: false,
            _queries: queries,
            refused: false,
        }
    }

    /// Runs a request and appends its reply. False when the connection must be closed after that.
    #[inline]
    pub(crate) fn handle(&mut self, message: &Message<'_>) -> bool {
        let start = self.out.mark();
        self.tally.add(kind_of(message.id()), 1);
        let outcome = match rows::find(message.id()) {
            Row::Served(handler) if self.registration.is_some() => handler(self, message),
            row => self.handle_rare(row, message),
        };
        let outcome = match outcome {
            Ok(()) if self.out.grown_since(start) <= UNCOUNTED_BYTES => return !self.refused,
            Ok(()) => self.count_long_reply(message.id()),
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(()) => !self.refused,
            Err(failure) => {
                self.out.rollback(start);
                self.fail_or_hold(&failure, message)
            }
        }
    }

    /// Takes room for a reply that may be long by a value. One to a change is kept in any case: the change is made.
    #[cold]
    fn count_long_reply(&mut self, id: MessageId) -> Outcome {
        match self.out.count_tail() {
            Err(exhausted) if reads_one(id) => Err(GridError::from(exhausted).into()),
            _ => Ok(()),
        }
    }

    /// As [`Session::count_long_reply`], for a run of gets that was answered from `start` on.
    #[cold]
    pub(crate) fn count_long_gets(&mut self, start: Mark, gets: &[Option<Get<'_>>]) {
        // Where there are others, some of the run may be held for them.
        if let Err(exhausted) = self.out.count_tail()
            && self.relays.is_none()
        {
            self.out.rollback(start);
            let failure: Box<Failure> = GridError::from(exhausted).into();
            gets.iter().flatten().for_each(|get| failure.encode(get.correlation, &mut self.out));
        }
    }

    #[inline(never)]
    fn handle_rare(&mut self, row: Row, message: &Message<'_>) -> Outcome {
        let id = message.id();
        match row {
            Row::Authenticates(handler) => handler(self, message),
            _ if self.registration.is_none() => {
                let text = format!("{id} came before authentication; expected Client.authentication first");
                let mut failure = Failure::new(ErrorKind::Authentication, text);
                failure.closes = true;
                Err(failure)
            }
            Row::Served(handler) => handler(self, message),
            Row::Queries(handler) if self.grid.queries().is_some() => handler(self, message),
            Row::Queries(_) => Err(Failure::unsupported(id, NO_QUERIES)),
            Row::Refused(reason) => Err(Failure::unsupported(id, reason)),
            Row::Absent if self.is_relay && id == scoped::ID => scoped::handle(self, message),
            Row::Absent if self.is_relay && id == standing::ID => standing::handle(self, message),
            Row::Absent => Err(Failure::unsupported(id, "this server does not serve it")),
        }
    }

    /// Answers a message for which there is no room, under the correlation id that its first bytes have.
    #[cold]
    pub(crate) fn fail_full(&mut self, error: GridError, bytes: &[u8]) {
        let correlation = bytes.get(10..18).and_then(|bytes| bytes.first_chunk::<8>());
        let correlation = CorrelationId(correlation.map_or(-1, |bytes| i64::from_le_bytes(*bytes)));
        let failure: Box<Failure> = error.into();
        self.fail(&failure, correlation, None);
    }

    /// Answers bytes that are no message, under the correlation id that they seem to carry.
    #[cold]
    pub(crate) fn fail_wire(&mut self, error: WireError, bytes: &[u8]) {
        // Frame header of 6 bytes, message id of 4, correlation id of 8.
        let correlation = bytes.get(10..18).and_then(|bytes| bytes.first_chunk::<8>());
        let correlation = CorrelationId(correlation.map_or(-1, |bytes| i64::from_le_bytes(*bytes)));
        let failure: Box<Failure> = error.into();
        self.fail(&failure, correlation, None);
    }

    #[cold]
    pub(crate) fn fail(&mut self, failure: &Failure, correlation: CorrelationId, id: Option<MessageId>) -> bool {
        let name = id.map_or_else(|| "bytes that are no message".to_owned(), |id| id.to_string());
        if failure.closes {
            info!(peer = %self.link.peer, client = %self.client, "{name} refused and connection closed: {}", failure.text);
        } else {
            debug!(peer = %self.link.peer, client = %self.client, "{name} refused: {}", failure.text);
        }
        failure.encode(correlation, &mut self.out);
        !failure.closes
    }

    /// Where a request goes: it is answered here, unless there are other members.
    #[inline]
    pub(crate) fn way(&self, message: &Message<'_>) -> Way {
        match &self.relays {
            None => Way::Here(None),
            Some(relays) => self.put_off(relays.way(message)),
        }
    }

    /// Whether a request has to wait for changes of this connection that are on their way: it reads a partition that one of them
    /// is of. Whatever ends the wait wakes the connection's task.
    #[inline]
    pub(crate) fn must_wait(&self, message: &Message<'_>, way: Way) -> bool {
        self.is_replicated
            && self.in_flight.bytes() > 0
            && matches!(way, Way::Here(_))
            && self.reads_what_is_on_its_way(message)
    }

    #[cold]
    fn reads_what_is_on_its_way(&self, message: &Message<'_>) -> bool {
        if submits(message.id()) {
            return false;
        }
        let partition = match message.id() {
            get::ID => message.decode::<get::Request<'_>>().ok().map(|request| self.partition(request.key)),
            _ => self.partition_in_header(message),
        };
        let Some(partition) = partition else { return false };
        self.in_flight.wake_at_next();
        self.in_flight.any_of(partition)
    }

    /// The map of this name.
    #[inline]
    pub(crate) fn map(&mut self, name: &str) -> Result<&Arc<Map>, Box<Failure>> {
        Ok(self.handles.find(&self.grid, name)?)
    }

    /// The partition of a request about `key`. What the message's header says is not asked: an entry that a client has put
    /// into another partition would be found by nobody else.
    #[inline]
    pub(crate) fn partition(&self, key: Data<'_>) -> PartitionId {
        filbert_data::partition_of(key, self.grid.partition_count())
    }

    /// The partition that a request is sent to, if there is such a one.
    #[inline]
    pub(crate) fn partition_in_header(&self, message: &Message<'_>) -> Option<PartitionId> {
        let id = u32::try_from(message.partition_id()).ok()?;
        (id < self.grid.partition_count()).then_some(PartitionId(id))
    }

    /// The client with one of its threads.
    #[inline]
    pub(crate) fn caller(&self, thread: i64) -> Caller {
        Caller { client: self.client, thread }
    }

    /// By which listeners are tied to this connection.
    pub(crate) fn connection_id(&self) -> Option<ConnectionId> {
        self.registration.as_ref().map(ClientConnection::id)
    }
}
