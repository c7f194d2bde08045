//! The table of messages: the handler of each message, or the reason for refusing it. Also the
//! table of supported messages.

use filbert_wire::{MessageId, table};

use crate::{authentication, handlers, row::Row};

/// The size of the table of one service. Ids are checked against it at compile time.
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
        handlers::map_journal::ROWS,
        handlers::refused::ROWS,
    ],
);

static CONTINUOUS_QUERY: [Row; METHODS] = dense(0x16, &[handlers::continuous_query::ROWS]);
static SQL: [Row; METHODS] = dense(0x21, &[handlers::sql::ROWS]);

/// Spreads the rows of one service by method. Evaluated by the compiler, which reports a method
/// beyond the table as an error.
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

/// Whether a request changes keys, and so goes through a log in the order of arrival.
pub(crate) fn submits(id: MessageId) -> bool {
    let rows = [handlers::map_write::ROWS, handlers::map_locks::ROWS].into_iter().flatten();
    rows.into_iter().any(|(row, _)| *row == id) || handlers::map_bulk::SUBMITS.contains(&id)
}

/// The support of a message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The message has the same effect as in Hazelcast.
    Served,
    /// The message is refused, permanently or for now, with this reason in the error.
    Refused(&'static str),
    /// The message is not implemented. It is refused as not supported.
    NotServed,
}

/// All requests of the protocol with their support, by id.
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
