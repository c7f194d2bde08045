//! The state of a connection for its handlers: the grid, the client, and the buffer for replies.
//!
//! It must not know the kinds of messages and their handling.

use std::sync::Arc;

use filbert_grid::metrics::Tally;
use filbert_grid::replication::{InFlight, Submissions};
use filbert_grid::{Caller, ClientConnection, Cluster, ConnectionId, Grid, GridError, Map, PartitionId};
use filbert_listen::Guesses;
use filbert_wire::{CorrelationId, Data, Message, MessageId, Uuid, WireError};
use tracing::{debug, info};

use crate::{
    client_link::ClientLink,
    config::{DoorConfig, MemberAddress},
    failure::Failure,
    handles::Handles,
    journal::JournalWaits,
    query_cache::{QueryCache, QueryCaches},
    query_slot::QuerySlot,
    relay::{Relays, RepeatableRequest},
    replies::Replies,
    view::View,
    views::Views,
};

/// The state of one connection. Handlers receive all of it; each uses a few of the fields.
pub(crate) struct Session {
    pub(crate) grid: Arc<Grid>,
    pub(crate) config: Arc<DoorConfig>,
    pub(crate) link: Arc<ClientLink>,
    /// Replies, in the order in which they were created.
    pub(crate) out: Replies,
    pub(crate) handles: Handles,
    /// The operations of the current batch, counted for the metrics.
    pub(crate) tally: Tally,
    /// The address of this member that is reported to the client.
    pub(crate) address: MemberAddress,
    /// The client's UUID; nil before authentication.
    pub(crate) client: Uuid,
    /// The registration with the grid, from authentication on. Dropping it releases the client's
    /// locks and listeners.
    pub(crate) registration: Option<ClientConnection>,
    pub(crate) journal_waits: JournalWaits,
    /// Whether changes go through logs.
    pub(crate) is_replicated: bool,
    /// The changes of the current batch that go through logs.
    pub(crate) submissions: Submissions,
    /// The changes in flight, of this batch and of earlier ones.
    pub(crate) in_flight: Arc<InFlight>,
    /// The query caches of all connections.
    pub(crate) caches: Arc<QueryCaches>,
    /// The cluster, as it is reported to clients.
    pub(crate) views: Arc<Views>,
    /// The wrong passwords and tokens of all clients, counted.
    pub(crate) guesses: Arc<Guesses>,
    /// The connections to other members, from authentication on; `None` if no requests are
    /// forwarded.
    pub(crate) relays: Option<Box<Relays>>,
    /// Whether another member forwards the requests of a client on this connection. Such requests
    /// are not forwarded again.
    pub(crate) is_relay: bool,
    /// Ends the running queries on drop. It stands after the registration, which must be dropped
    /// first: query caches check whether the client still has a connection.
    _queries: QueriesEnd,
    /// Set by a failed authentication. The reply is a normal one, and then the connection is
    /// closed.
    pub(crate) refused: bool,
}

/// On drop, closes the cursors of a connection, cancels its queries, and ends its registrations
/// with query caches.
struct QueriesEnd(Arc<ClientLink>, Arc<QueryCaches>, Arc<Grid>);

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
        link: Arc<ClientLink>,
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

    /// Answers a message for which there is no memory, under the correlation id in its first bytes.
    #[cold]
    pub(crate) fn fail_full(&mut self, error: GridError, bytes: &[u8]) {
        let correlation = bytes.get(10..18).and_then(|bytes| bytes.first_chunk::<8>());
        let correlation = CorrelationId(correlation.map_or(-1, |bytes| i64::from_le_bytes(*bytes)));
        let failure: Box<Failure> = error.into();
        self.fail(&failure, correlation, None);
    }

    /// Answers bytes that are not a message, under the correlation id at its usual place.
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

    /// The map with this name.
    #[inline]
    pub(crate) fn map(&mut self, name: &str) -> Result<&Arc<Map>, Box<Failure>> {
        Ok(self.handles.find(&self.grid, name)?)
    }

    /// The partition of a request about `key`. The partition in the message's header is ignored: an
    /// entry that a client has put into another partition could not be found by other clients.
    #[inline]
    pub(crate) fn partition(&self, key: Data<'_>) -> PartitionId {
        filbert_data::partition_of(key, self.grid.partition_count())
    }

    /// The partition in a request's header, if it is valid.
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

    /// The id that binds listeners to this connection.
    pub(crate) fn connection_id(&self) -> Option<ConnectionId> {
        self.registration.as_ref().map(ClientConnection::id)
    }

    /// The cluster, as it is reported to this client.
    pub(crate) fn view(&self) -> View {
        let member = self.grid.member_uuid();
        match self.grid.cluster() {
            Some(cluster) => View::new(self.views.snapshot(cluster), member),
            None => View::of_one(member, &self.address, self.grid.partition_count()),
        }
    }

    /// Takes a slot for a request of this connection that another thread answers.
    ///
    /// # Errors
    /// All slots are taken.
    pub(crate) fn take_slot(&self) -> Result<QuerySlot, Box<Failure>> {
        QuerySlot::take(&self.link, self.config.queries_max)
    }

    /// Retries the reads of journals that wait for events.
    pub(crate) fn retry_journal_waits(&mut self) {
        self.journal_waits.retry(&mut self.out);
    }

    /// The cluster, if this client's requests may be forwarded to its other members.
    pub(crate) fn relays_to(&self) -> Option<&Arc<dyn Cluster>> {
        self.grid.cluster().filter(|_| self.is_replicated && !self.is_relay)
    }

    /// Forwards requests to other members from now on. Each of them receives the client's
    /// authentication.
    pub(crate) fn open_relays(&mut self, cluster: Arc<dyn Cluster>, authentication: Vec<u8>) {
        let changes_seen = self.views.change_count();
        let relays = Relays::new(&self.grid, &self.link, &self.config, cluster, authentication, changes_seen);
        self.relays = Some(Box::new(relays));
    }

    /// A copy of a request that this member is about to execute, for a repetition; `None` if no
    /// requests are forwarded.
    #[inline]
    pub(crate) fn repeatable(
        &self,
        message: &Message<'_>,
        partition: Option<PartitionId>,
    ) -> Option<RepeatableRequest> {
        self.relays.as_ref().map(|relays| relays.repeatable(message, partition, Some(relays.itself())))
    }

    /// As [`Relays::have_others_stand_by`]. Without other members, calls `done` immediately.
    pub(crate) fn have_others_stand_by(&mut self, cache: &Arc<QueryCache>, done: Box<dyn FnOnce() + Send>) {
        match &mut self.relays {
            Some(relays) => relays.have_others_stand_by(cache, done),
            None => done(),
        }
    }
}
