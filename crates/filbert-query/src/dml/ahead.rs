//! Rows of a bulk insertion that are written separately, with many changes in flight. In a cluster
//! each change waits for other members. If rows were written one after the other, the insertion
//! would take the sum of these times.
//!
//! Rows with different keys do not depend on each other, so the order of their changes does not
//! matter. Outcomes are returned in the order of the rows.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};

use filbert_data::Blob;
use filbert_grid::query::SqlError;
use filbert_grid::{Caller, Change, Expiry, GridError, PutMode, Reply};

use crate::dml::apply::{Outcome, Waiting, outcome};
use crate::dml::inserter::Scratch;

/// The maximum number of rows that are on their way.
const ROWS_MAX: usize = 1_024;
/// The maximum size of their entries in bytes. A single row may exceed it.
const BYTES_MAX: usize = 1 << 20;

type Answer = Result<Outcome, GridError>;

/// Rows on their way.
pub(crate) struct Ahead {
    mode: PutMode,
    /// In the order of the rows.
    rows: Vec<Row>,
    keys: HashSet<Blob>,
    bytes: usize,
    /// Receives answers with the number of their row.
    answers: Receiver<(usize, Answer)>,
    sender: Sender<(usize, Answer)>,
    unanswered: usize,
}

/// A row as an entry.
pub(crate) struct Entry {
    pub(crate) key: Blob,
    pub(crate) value: Blob,
}

enum Row {
    Sent(Entry, Option<Answer>),
    Wrong(SqlError),
}

/// A row with a known outcome.
pub(crate) enum Settled {
    Answered(Answer, Entry),
    /// The row was not sent, because it cannot be written.
    Wrong(SqlError),
}

impl Ahead {
    /// No rows yet. All will be put with this mode.
    pub(crate) fn new(mode: PutMode) -> Ahead {
        let (sender, answers) = channel();
        Ahead { mode, rows: Vec::new(), keys: HashSet::new(), bytes: 0, answers, sender, unanswered: 0 }
    }

    /// The mode of all rows.
    pub(crate) fn mode(&self) -> PutMode {
        self.mode
    }

    /// Whether a row may be sent before the others are settled: there are not too many of them, and
    /// none has the same key.
    pub(crate) fn has_room_for(&self, entry: &Scratch) -> bool {
        let fits = self.bytes == 0 || self.bytes + entry.bytes() <= BYTES_MAX;
        fits && self.rows.len() < ROWS_MAX && !self.keys.contains(entry.key())
    }

    /// Sends a row. If others have locked its key, its change waits.
    pub(crate) fn send(&mut self, waiting: Waiting<'_>, entry: &Scratch) {
        let (key, value) = (entry.key(), entry.value());
        let (number, sender) = (self.rows.len(), self.sender.clone());
        let reply = Box::new(move |reply: Result<Reply<'_>, GridError>| {
            // The statement may have ended.
            _ = sender.send((number, reply.map(|reply| outcome(&reply))));
        });
        let entry = Entry { key: Blob::from(key), value: Blob::from(value) };
        self.keys.insert(entry.key.clone());
        self.bytes += key.len() + value.len();
        self.rows.push(Row::Sent(entry, None));
        self.unanswered += 1;
        let change = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: self.mode }.to_owned();
        let partition = waiting.map.partition_of(key);
        waiting.map.change_within(partition, Caller::default(), change, waiting.wait_ms, reply);
    }

    /// Adds a row that cannot be written.
    pub(crate) fn add_wrong(&mut self, error: SqlError) {
        self.rows.push(Row::Wrong(error));
    }

    /// Waits until all rows are settled, and returns them in their order.
    pub(crate) fn settle(&mut self) -> Vec<Settled> {
        while self.unanswered > 0 {
            // This end has a sender as well, so the channel is open.
            let Ok((number, answer)) = self.answers.recv() else { break };
            if let Some(Row::Sent(_, known)) = self.rows.get_mut(number) {
                *known = Some(answer);
                self.unanswered -= 1;
            }
        }
        self.keys.clear();
        self.bytes = 0;
        let settled = |row| match row {
            Row::Sent(entry, answer) => Settled::Answered(answer.unwrap_or(Err(GridError::NotActive)), entry),
            Row::Wrong(error) => Settled::Wrong(error),
        };
        self.rows.drain(..).map(settled).collect()
    }
}
