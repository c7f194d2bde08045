//! Which message goes to which handler, which are refused and why; what the door supports, as a table.

use filbert_wire::{Message, MessageId, table};

use crate::{authentication, failure::Outcome, handlers, session::Session};

/// Reads a request, does it, and appends the reply to the session's buffer.
pub(crate) type Handler = fn(&mut Session, &Message<'_>) -> Outcome;

/// What is done about a message.
#[derive(Clone, Copy)]
pub(crate) enum Row {
    /// Nothing: it is not known, or nobody serves it.
    Absent,
    /// An authentication: the one kind of message that a connection may begin with.
    Authenticates(Handler),
    /// A handler answers it.
    Served(Handler),
    /// A handler answers it with the help of the query engine; without one it is refused.
    Queries(Handler),
    /// It is answered with an error that gives this reason.
    Refused(&'static str),
}

/// Why messages with code in them are refused.
pub(crate) const SHIPS_CODE: &str = "it ships Java code, which this server does not run";

/// Methods of one service that a dense table has room for; ids are checked against it when the tables are made.
const METHODS: usize = 128;

static CLIENT: [Row; METHODS] = dense(0, &[authentication::ROWS, handlers::client::ROWS, handlers::schemas::ROWS]);
static MAP: [Row; METHODS] = dense(
    1,
    &[
        handlers::map_read::ROWS,
        handlers::map_write::ROWS,
        handlers::map_locks::ROWS,
        handlers::map_bulk::ROWS,
        handlers::map_iterate::ROWS,
        handlers::map_listeners::ROWS,
        handlers::map_query::ROWS,
        handlers::near_cache::ROWS,
        handlers::journal::ROWS,
        handlers::refused::ROWS,
    ],
);

static CONTINUOUS_QUERY: [Row; METHODS] = dense(0x16, &[handlers::continuous_query::ROWS]);
static SQL: [Row; METHODS] = dense(0x21, &[handlers::sql::ROWS]);

/// Spreads the rows of one service by method. Evaluated by the compiler, which reports a method beyond the table as an
/// error.
#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where it is a compile error to be out of range")]
const fn dense(service: u8, modules: &[&[(MessageId, Row)]]) -> [Row; METHODS] {
    let mut rows = [Row::Absent; METHODS];
    let mut module = 0;
    while module < modules.len() {
        let mut row = 0;
        while row < modules[module].len() {
            let (id, what) = modules[module][row];
            assert!(id.service() == service, "a row of another service");
            assert!(matches!(rows[id.method() as usize], Row::Absent), "two rows for one message");
            rows[id.method() as usize] = what;
            row += 1;
        }
        module += 1;
    }
    rows
}

/// The row of a request.
#[inline]
pub(crate) fn find(id: MessageId) -> Row {
    if id.0 & 0xff_00_00_ff != 0 {
        return Row::Absent;
    }
    let rows = match id.service() {
        0 => &CLIENT,
        1 => &MAP,
        0x16 => &CONTINUOUS_QUERY,
        0x21 => &SQL,
        _ => return Row::Absent,
    };
    rows.get(usize::from(id.method())).copied().unwrap_or(Row::Absent)
}

/// Whether a request is a change of keys, which goes through a log in the order in which it came.
pub(crate) fn submits(id: MessageId) -> bool {
    let rows = [handlers::map_write::ROWS, handlers::map_locks::ROWS].into_iter().flatten();
    rows.into_iter().any(|(row, _)| *row == id) || handlers::map_bulk::SUBMITS.contains(&id)
}

/// How far a message of the protocol is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It does what it does in Hazelcast.
    Served,
    /// It is refused for good or for now, with this reason in the error.
    Refused(&'static str),
    /// Its service is not there yet; it is refused as not supported.
    NotServed,
}

/// Every request of the protocol with how far it is supported, by id.
pub fn support() -> impl Iterator<Item = (MessageId, Support)> {
    table::all().map(|spec| {
        let support = match find(spec.id) {
            Row::Absent => Support::NotServed,
            Row::Authenticates(_) | Row::Served(_) | Row::Queries(_) => Support::Served,
            Row::Refused(reason) => Support::Refused(reason),
        };
        (spec.id, support)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_clients_and_maps_has_a_row() {
        for (id, support) in support().filter(|(id, _)| id.service() < 2) {
            assert_ne!(support, Support::NotServed, "{id}");
        }
    }

    #[test]
    fn responses_events_and_strange_ids_have_no_row() {
        for id in [0x01_01_01, 0x01_19_02, 0xff_01_01_00, 0x01_ff_00, 0x7f_01_00] {
            assert!(matches!(find(MessageId(id)), Row::Absent), "{id:x}");
        }
    }
}
