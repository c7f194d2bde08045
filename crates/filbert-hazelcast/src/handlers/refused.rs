//! Map messages that are refused with a reason.

use filbert_wire::{
    MessageId,
    table::map::{
        add_interceptor, execute_on_all_keys, execute_on_key, execute_on_keys, execute_with_predicate,
        remove_interceptor, replace_all, submit_to_key,
    },
};

use crate::row::{Row, SHIPS_CODE};

const CODE: Row = Row::Refused(SHIPS_CODE);

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (add_interceptor::ID, CODE),
    (remove_interceptor::ID, CODE),
    (execute_on_key::ID, CODE),
    (submit_to_key::ID, CODE),
    (execute_on_all_keys::ID, CODE),
    (execute_with_predicate::ID, CODE),
    (execute_on_keys::ID, CODE),
    (replace_all::ID, CODE),
];
