//! The routing of requests in a cluster of several members, and the waiting of requests for others
//! of their partition.

use filbert_data::partition_of;
use filbert_grid::{ClusterView, ErrorKind, PartitionId};
use filbert_wire::{
    Message, MessageId, Uuid,
    table::{
        client::{send_all_schemas, send_schema},
        continuous_query::{destroy_cache, made_publishable, set_read_cursor},
        map::{
            add_entry_listener, add_entry_listener_to_key, add_entry_listener_to_key_with_predicate,
            add_entry_listener_with_predicate, add_near_cache_invalidation_listener, clear, contains_key,
            contains_value, entry_set, event_journal_read, event_journal_subscribe, evict_all, fetch_entries,
            fetch_keys, fetch_near_cache_invalidation_metadata, fetch_with_query, get, get_all, get_entry_view,
            is_empty, is_locked, key_set, put_all, put_all_with_metadata, remove_entry_listener, size, values,
        },
        sql::{execute, execute_reserved},
    },
};

use crate::failure::Failure;
use crate::handlers::{map_locks, map_query, map_write};
use crate::relay::Relays;
use crate::row::Row;
use crate::rows::submits;
use crate::session::Session;

/// The size of the table: the number of methods of the map service.
const METHODS: usize = 128;

/// The subject of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// This member, or any member.
    Here,
    /// The partition of its key, which is the second frame after the initial frame.
    Key,
    /// The partition in its header.
    Partition,
    /// All partitions.
    All,
    /// Every member.
    Members,
    /// The registration of a listener for the events of all members.
    AddListener,
    /// The removal of a listener.
    RemoveListener,
    /// The metadata of near caches at the member that the request names.
    Member,
    /// All partitions. Any member reads those of other leaders as well.
    Query,
    /// A query cache, which may be kept by any member.
    Cache,
}

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// The request is answered here. The partition is given if requests for it may be in flight to
    /// other members.
    Here(Option<PartitionId>),
    /// The request is forwarded to this member.
    Member(Uuid, Option<PartitionId>),
    /// Each member answers for the partitions that it leads.
    All,
    /// Each member answers the request.
    Members,
    /// Each reachable member answers the request, and one of them knows the object.
    AnyMember,
    /// The registration of a listener.
    AddListener,
    /// The removal of a listener.
    RemoveListener,
    /// The request waits behind others of its partition.
    Held(PartitionId),
}

static MAP_SUBJECTS: [Subject; METHODS] = map_subjects();

#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn set_rows(mut table: [Subject; METHODS], rows: &[(MessageId, Row)], subject: Subject) -> [Subject; METHODS] {
    let mut at = 0;
    while at < rows.len() {
        table[rows[at].0.method() as usize] = subject;
        at += 1;
    }
    table
}

#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn set(mut table: [Subject; METHODS], ids: &[MessageId], subject: Subject) -> [Subject; METHODS] {
    let mut at = 0;
    while at < ids.len() {
        assert!(ids[at].service() == 1, "a message of another service");
        table[ids[at].method() as usize] = subject;
        at += 1;
    }
    table
}

const fn map_subjects() -> [Subject; METHODS] {
    let table = [Subject::Here; METHODS];
    let table = set_rows(table, map_write::ROWS, Subject::Key);
    let table = set_rows(table, map_locks::ROWS, Subject::Key);
    let table = set_rows(table, map_query::ROWS, Subject::Query);
    let table = set(table, &[get::ID, contains_key::ID, get_entry_view::ID, is_locked::ID], Subject::Key);
    let with_partition = [
        put_all::ID,
        put_all_with_metadata::ID,
        get_all::ID,
        fetch_keys::ID,
        fetch_entries::ID,
        fetch_with_query::ID,
        event_journal_subscribe::ID,
        event_journal_read::ID,
    ];
    let table = set(table, &with_partition, Subject::Partition);
    let whole =
        [size::ID, is_empty::ID, contains_value::ID, clear::ID, evict_all::ID, key_set::ID, values::ID, entry_set::ID];
    let table = set(table, &whole, Subject::All);
    let events = [
        add_entry_listener::ID,
        add_entry_listener_to_key::ID,
        add_entry_listener_with_predicate::ID,
        add_entry_listener_to_key_with_predicate::ID,
        add_near_cache_invalidation_listener::ID,
    ];
    let table = set(table, &events, Subject::AddListener);
    let table = set(table, &[remove_entry_listener::ID], Subject::RemoveListener);
    set(table, &[fetch_near_cache_invalidation_metadata::ID], Subject::Member)
}

fn subject(id: MessageId) -> Subject {
    match id.service() {
        1 if id.0 & 0xff_00_00_ff == 0 => MAP_SUBJECTS.get(usize::from(id.method())).copied().unwrap_or(Subject::Here),
        0 if id == send_schema::ID || id == send_all_schemas::ID => Subject::Members,
        0x21 if id == execute::ID || id == execute_reserved::ID => Subject::Query,
        // The member that receives the request for a cache keeps the cache, and sends its events on
        // the client's own connection. So only later requests are routed.
        0x16 if [made_publishable::ID, set_read_cursor::ID, destroy_cache::ID].contains(&id) => Subject::Cache,
        _ => Subject::Here,
    }
}

/// The cluster, as the routing uses it.
#[derive(Debug, Clone, Copy)]
struct RoutingView<'a> {
    view: &'a ClusterView,
    itself: Uuid,
    /// Whether this member leads all partitions.
    leads_all: bool,
    partition_count: u32,
}

impl RoutingView<'_> {
    /// The route of a request.
    fn route(&self, message: &Message<'_>) -> Route {
        match subject(message.id()) {
            Subject::Here => Route::Here(None),
            Subject::Key => match message.frames().nth(1) {
                Some(key) => self.leader_of(partition_of(key.content, self.partition_count)),
                // The handler reports the error.
                None => Route::Here(None),
            },
            Subject::Partition => match u32::try_from(message.partition_id()) {
                Ok(partition) if partition < self.partition_count => self.leader_of(PartitionId(partition)),
                _ => Route::Here(None),
            },
            Subject::Query => Route::Here(None),
            Subject::All if self.leads_all => Route::Here(None),
            Subject::All => Route::All,
            Subject::Members | Subject::Cache if self.is_alone() => Route::Here(None),
            Subject::Members => Route::Members,
            Subject::Cache => Route::AnyMember,
            Subject::AddListener => Route::AddListener,
            Subject::RemoveListener => Route::RemoveListener,
            Subject::Member => match message.decode::<fetch_near_cache_invalidation_metadata::Request<'_>>() {
                Ok(request) if self.is_other(request.uuid) => Route::Member(request.uuid, None),
                _ => Route::Here(None),
            },
        }
    }

    fn leader_of(&self, partition: PartitionId) -> Route {
        match self.view.leaders.get(partition.0 as usize).copied().flatten() {
            Some(leader) if self.is_other(leader) => Route::Member(leader, Some(partition)),
            _ => Route::Here(Some(partition)),
        }
    }

    fn is_other(&self, member: Uuid) -> bool {
        member != self.itself && self.view.member(member).is_some()
    }

    fn is_alone(&self) -> bool {
        self.view.members.iter().all(|member| member.uuid == self.itself)
    }
}

/// The route of a request, regardless of other requests in flight.
pub(crate) fn route_of(relays: &Relays, message: &Message<'_>) -> Route {
    let (leads_all, partition_count) = (relays.leads_all(), relays.partition_count());
    RoutingView { view: relays.view(), itself: relays.itself(), leads_all, partition_count }.route(message)
}

impl Session {
    /// The route of a request. Without other members, all requests are answered here.
    #[inline]
    pub(crate) fn route(&self, message: &Message<'_>) -> Route {
        match &self.relays {
            None => Route::Here(None),
            Some(relays) => self.held_if_busy(route_of(relays, message)),
        }
    }

    /// Whether a request must wait for changes of this connection in flight, because it reads the
    /// partition of one of them. The end of the wait wakes the connection's task.
    #[inline]
    pub(crate) fn must_wait(&self, message: &Message<'_>, route: Route) -> bool {
        self.is_replicated
            && self.in_flight.bytes() > 0
            && matches!(route, Route::Here(_))
            && self.reads_partition_in_flight(message)
    }

    #[cold]
    fn reads_partition_in_flight(&self, message: &Message<'_>) -> bool {
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

    /// Delays a request that must wait for others of its partition.
    #[inline]
    fn held_if_busy(&self, route: Route) -> Route {
        match (&self.relays, route) {
            (Some(relays), Route::Here(Some(partition)) | Route::Member(_, Some(partition)))
                if relays.bytes() > 0 || self.in_flight.bytes() > 0 =>
            {
                match relays.holds(partition) || self.must_wait_for_relays(route) {
                    true => Route::Held(partition),
                    false => route,
                }
            }
            _ => route,
        }
    }

    /// Whether a request must wait until others of its partition, which took another route, are
    /// answered.
    #[cold]
    pub(crate) fn must_wait_for_relays(&self, route: Route) -> bool {
        let Some(relays) = &self.relays else { return false };
        match route {
            Route::Here(Some(partition)) => relays.busy_at(partition).is_some(),
            Route::Member(member, Some(partition)) => {
                self.in_flight.wake_at_next();
                relays.busy_at(partition).is_some_and(|at| at != member) || self.in_flight.any_of(partition)
            }
            _ => false,
        }
    }

    /// Answers with an error, or holds the request if no member has executed it. Returns `false` if
    /// the connection must be closed afterwards.
    #[cold]
    pub(crate) fn fail_or_hold(&mut self, failure: &Failure, message: &Message<'_>) -> bool {
        if failure.kind == ErrorKind::NotLeader
            && let Some(relays) = &self.relays
        {
            let (partition, tried) = match route_of(relays, message) {
                Route::Here(partition) => (partition, Some(relays.itself())),
                Route::Member(member, partition) => (partition, Some(member)),
                _ => (None, None),
            };
            relays.repeatable(message, partition, tried).fail(failure);
            return true;
        }
        self.fail(failure, message.correlation_id(), Some(message.id()))
    }
}

#[cfg(test)]
mod tests {
    use filbert_wire::{Partitioning, table};

    use super::*;
    use crate::rows::find;

    /// The table of messages defines which of them are about a key or a partition. The routing must
    /// cover all of these that are served.
    #[test]
    fn every_served_message_about_a_partition_is_sent_on() {
        for spec in table::all().filter(|spec| !matches!(find(spec.id), Row::Absent | Row::Refused(_))) {
            let expected = match spec.partition {
                Partitioning::Key => Subject::Key,
                Partitioning::AnyKey | Partitioning::PartitionId if spec.id.service() == 1 => Subject::Partition,
                _ => continue,
            };
            assert_eq!(subject(spec.id), expected, "{}", spec.id);
        }
    }
}
