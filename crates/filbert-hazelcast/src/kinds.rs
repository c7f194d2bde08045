//! The kind of operation of each message, for the member's metrics.

use filbert_grid::metrics::OperationKind;
use filbert_wire::{MessageId, table::map};

/// The size of the table: the number of methods of the map service.
const METHODS: usize = 128;

use OperationKind::{
    Aggregate, Clear, Contains, Delete, Get, GetAll, Iterate, Journal, Listen, Lock, Put, PutAll, Query, Remove,
    Replace, Set, Size,
};

/// The kinds of the map's messages; all others are [`OperationKind::Other`].
#[rustfmt::skip]
const KINDS: &[(MessageId, OperationKind)] = &[
    (map::get::ID, Get), (map::get_entry_view::ID, Get),
    (map::get_all::ID, GetAll),
    (map::contains_key::ID, Contains), (map::contains_value::ID, Contains),
    (map::put::ID, Put), (map::try_put::ID, Put), (map::put_if_absent::ID, Put), (map::put_with_max_idle::ID, Put),
    (map::put_if_absent_with_max_idle::ID, Put),
    (map::set::ID, Set), (map::put_transient::ID, Set), (map::set_with_max_idle::ID, Set),
    (map::put_transient_with_max_idle::ID, Set), (map::set_ttl::ID, Set),
    (map::put_all::ID, PutAll), (map::put_all_with_metadata::ID, PutAll),
    (map::replace::ID, Replace), (map::replace_if_same::ID, Replace), (map::replace_all::ID, Replace),
    (map::remove::ID, Remove), (map::remove_if_same::ID, Remove), (map::try_remove::ID, Remove),
    (map::delete::ID, Delete),
    (map::evict::ID, Clear), (map::evict_all::ID, Clear), (map::clear::ID, Clear), (map::remove_all::ID, Clear),
    (map::flush::ID, Clear),
    (map::size::ID, Size), (map::is_empty::ID, Size),
    (map::key_set::ID, Iterate), (map::values::ID, Iterate), (map::entry_set::ID, Iterate),
    (map::fetch_keys::ID, Iterate), (map::fetch_entries::ID, Iterate), (map::fetch_with_query::ID, Iterate),
    (map::key_set_with_predicate::ID, Query), (map::values_with_predicate::ID, Query),
    (map::entries_with_predicate::ID, Query), (map::key_set_with_paging_predicate::ID, Query),
    (map::values_with_paging_predicate::ID, Query), (map::entries_with_paging_predicate::ID, Query),
    (map::project::ID, Query), (map::project_with_predicate::ID, Query),
    (map::aggregate::ID, Aggregate), (map::aggregate_with_predicate::ID, Aggregate),
    (map::lock::ID, Lock), (map::try_lock::ID, Lock), (map::unlock::ID, Lock), (map::force_unlock::ID, Lock),
    (map::is_locked::ID, Lock),
    (map::add_entry_listener::ID, Listen), (map::add_entry_listener_to_key::ID, Listen),
    (map::add_entry_listener_with_predicate::ID, Listen), (map::add_entry_listener_to_key_with_predicate::ID, Listen),
    (map::remove_entry_listener::ID, Listen), (map::add_near_cache_invalidation_listener::ID, Listen),
    (map::event_journal_subscribe::ID, Journal), (map::event_journal_read::ID, Journal),
];

static OF_MAP: [OperationKind; METHODS] = spread();

#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn spread() -> [OperationKind; METHODS] {
    let mut kinds = [OperationKind::Other; METHODS];
    let mut row = 0;
    while row < KINDS.len() {
        let (id, kind) = KINDS[row];
        assert!(id.service() == 1, "a message of another service");
        kinds[id.method() as usize] = kind;
        row += 1;
    }
    kinds
}

/// The kind of a request.
#[inline]
pub(crate) fn kind_of(id: MessageId) -> OperationKind {
    match id.service() {
        1 => OF_MAP.get(usize::from(id.method())).copied().unwrap_or(OperationKind::Other),
        0x16 => OperationKind::Query,
        0x21 => OperationKind::Sql,
        _ => OperationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_kinds() {
        assert_eq!(kind_of(map::get::ID), OperationKind::Get);
        assert_eq!(kind_of(map::entries_with_predicate::ID), OperationKind::Query);
        assert_eq!(kind_of(filbert_wire::table::client::ping::ID), OperationKind::Other);
        assert_eq!(kind_of(filbert_wire::table::sql::execute::ID), OperationKind::Sql);
    }
}
