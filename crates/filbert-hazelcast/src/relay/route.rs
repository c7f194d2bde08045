//! Which requests go where in a cluster of several members.

use filbert_data::partition_of;
use filbert_grid::{ClusterView, PartitionId};
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

use crate::handlers::{map_locks, map_query, map_write};
use crate::rows::Row;

/// Methods of the map's service that the table has room for.
const METHODS: usize = 128;

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// This member, or all members alike.
    Here,
    /// The partition of its key, which is its second frame behind the first.
    Key,
    /// The partition that its header names.
    Partition,
    /// All partitions.
    All,
    /// Every member.
    Members,
    /// Every member's events.
    Events,
    /// The events of an earlier request.
    NoEvents,
    /// What this member has of near caches' partitions, if it is the member that the request names.
    Member,
    /// All partitions: whoever is asked reads what others lead as well.
    Query,
    /// A query cache, which any member may keep.
    Cache,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is answered here. The partition is known where requests about it may be on their way elsewhere.
    Here(Option<PartitionId>),
    /// It is sent on.
    Member(Uuid, Option<PartitionId>),
    /// Each member answers for the partitions that it leads.
    All,
    /// Each member answers it.
    Members,
    /// Each member answers it that can be reached, one of them with what was meant.
    AnyMember,
    /// A listener's registration.
    Events,
    /// The end of one.
    NoEvents,
    /// It waits behind others of its partition.
    Later(PartitionId),
}

static OF_MAP: [About; METHODS] = spread();

#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn set_rows(mut table: [About; METHODS], rows: &[(MessageId, Row)], about: About) -> [About; METHODS] {
    let mut at = 0;
    while at < rows.len() {
        table[rows[at].0.method() as usize] = about;
        at += 1;
    }
    table
}

#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn set(mut table: [About; METHODS], ids: &[MessageId], about: About) -> [About; METHODS] {
    let mut at = 0;
    while at < ids.len() {
        assert!(ids[at].service() == 1, "a message of another service");
        table[ids[at].method() as usize] = about;
        at += 1;
    }
    table
}

const fn spread() -> [About; METHODS] {
    let table = [About::Here; METHODS];
    let table = set_rows(table, map_write::ROWS, About::Key);
    let table = set_rows(table, map_locks::ROWS, About::Key);
    let table = set_rows(table, map_query::ROWS, About::Query);
    let table = set(table, &[get::ID, contains_key::ID, get_entry_view::ID, is_locked::ID], About::Key);
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
    let table = set(table, &with_partition, About::Partition);
    let whole =
        [size::ID, is_empty::ID, contains_value::ID, clear::ID, evict_all::ID, key_set::ID, values::ID, entry_set::ID];
    let table = set(table, &whole, About::All);
    let events = [
        add_entry_listener::ID,
        add_entry_listener_to_key::ID,
        add_entry_listener_with_predicate::ID,
        add_entry_listener_to_key_with_predicate::ID,
        add_near_cache_invalidation_listener::ID,
    ];
    let table = set(table, &events, About::Events);
    let table = set(table, &[remove_entry_listener::ID], About::NoEvents);
    set(table, &[fetch_near_cache_invalidation_metadata::ID], About::Member)
}

fn about(id: MessageId) -> About {
    match id.service() {
        1 if id.0 & 0xff_00_00_ff == 0 => OF_MAP.get(usize::from(id.method())).copied().unwrap_or(About::Here),
        0 if id == send_schema::ID || id == send_all_schemas::ID => About::Members,
        0x21 if id == execute::ID || id == execute_reserved::ID => About::Query,
        // Who is asked for a cache keeps it, and tells of it by the client's own connection.
        0x16 if [made_publishable::ID, set_read_cursor::ID, destroy_cache::ID].contains(&id) => About::Cache,
        _ => About::Here,
    }
}

/// The cluster as requests are sent on by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'a> {
    pub(super) view: &'a ClusterView,
    pub(super) itself: Uuid,
    /// Whether this member leads all partitions.
    pub(super) leads_all: bool,
    pub(super) partition_count: u32,
}

impl Map<'_> {
    /// Where a request goes.
    pub(super) fn way(&self, message: &Message<'_>) -> Way {
        match about(message.id()) {
            About::Here => Way::Here(None),
            About::Key => match message.frames().nth(1) {
                Some(key) => self.leader_of(partition_of(key.content, self.partition_count)),
                // The handler says what is wrong with it.
                None => Way::Here(None),
            },
            About::Partition => match u32::try_from(message.partition_id()) {
                Ok(partition) if partition < self.partition_count => self.leader_of(PartitionId(partition)),
                _ => Way::Here(None),
            },
            About::Query => Way::Here(None),
            About::All if self.leads_all => Way::Here(None),
            About::All => Way::All,
            About::Members | About::Cache if self.is_alone() => Way::Here(None),
            About::Members => Way::Members,
            About::Cache => Way::AnyMember,
            About::Events => Way::Events,
            About::NoEvents => Way::NoEvents,
            About::Member => match message.decode::<fetch_near_cache_invalidation_metadata::Request<'_>>() {
                Ok(request) if self.is_other(request.uuid) => Way::Member(request.uuid, None),
                _ => Way::Here(None),
            },
        }
    }

    fn leader_of(&self, partition: PartitionId) -> Way {
        match self.view.leaders.get(partition.0 as usize).copied().flatten() {
            Some(leader) if self.is_other(leader) => Way::Member(leader, Some(partition)),
            _ => Way::Here(Some(partition)),
        }
    }

    fn is_other(&self, member: Uuid) -> bool {
        member != self.itself && self.view.member(member).is_some()
    }

    fn is_alone(&self) -> bool {
        self.view.members.iter().all(|member| member.uuid == self.itself)
    }
}

#[cfg(test)]
mod tests {
    use filbert_wire::{Partitioning, table};

    use super::*;
    use crate::rows::find;

    /// The table of messages says which are about a key or a partition; none that is served may be missed.
    #[test]
    fn every_served_message_about_a_partition_is_sent_on() {
        for spec in table::all().filter(|spec| !matches!(find(spec.id), Row::Absent | Row::Refused(_))) {
            let expected = match spec.partition {
                Partitioning::Key => About::Key,
                Partitioning::AnyKey | Partitioning::PartitionId if spec.id.service() == 1 => About::Partition,
                _ => continue,
            };
            assert_eq!(about(spec.id), expected, "{}", spec.id);
        }
    }
}
