//! Map messages that are answered with a reason instead of a result.

use filbert_wire::{
    MessageId,
    table::map::{
        add_entry_listener_to_key_with_predicate, add_entry_listener_with_predicate, add_interceptor, aggregate,
        aggregate_with_predicate, entries_with_paging_predicate, entries_with_predicate, execute_on_all_keys,
        execute_on_key, execute_on_keys, execute_with_predicate, fetch_with_query, key_set_with_paging_predicate,
        key_set_with_predicate, project, project_with_predicate, remove_interceptor, replace_all, submit_to_key,
        values_with_paging_predicate, values_with_predicate,
    },
};

use crate::rows::{NEEDS_QUERIES, Row, SHIPS_CODE};

const CODE: Row = Row::Refused(SHIPS_CODE);
const QUERY: Row = Row::Refused(NEEDS_QUERIES);

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (add_interceptor::ID, CODE),
    (remove_interceptor::ID, CODE),
    (execute_on_key::ID, CODE),
    (submit_to_key::ID, CODE),
    (execute_on_all_keys::ID, CODE),
    (execute_with_predicate::ID, CODE),
    (execute_on_keys::ID, CODE),
    (replace_all::ID, CODE),
    (add_entry_listener_to_key_with_predicate::ID, QUERY),
    (add_entry_listener_with_predicate::ID, QUERY),
    (key_set_with_predicate::ID, QUERY),
    (values_with_predicate::ID, QUERY),
    (entries_with_predicate::ID, QUERY),
    (key_set_with_paging_predicate::ID, QUERY),
    (values_with_paging_predicate::ID, QUERY),
    (entries_with_paging_predicate::ID, QUERY),
    (aggregate::ID, QUERY),
    (aggregate_with_predicate::ID, QUERY),
    (project::ID, QUERY),
    (project_with_predicate::ID, QUERY),
    (fetch_with_query::ID, QUERY),
];
