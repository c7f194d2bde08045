//! Requests that this member answers: finds and calls the handler, and reports its failure.

use filbert_grid::{ErrorKind, GridError};
use filbert_wire::{
    Message, MessageId,
    table::map::{event_journal_read, get, get_entry_view},
};

use crate::{
    deferred::NO_QUERIES,
    failure::{Failure, Outcome},
    handlers::{map_read::Get, scoped, standby_announcement},
    kinds::kind_of,
    relay,
    replies::{Mark, UNCOUNTED_BYTES},
    row::Row,
    rows,
    session::Session,
};

/// Whether a request only reads values.
fn reads_one(id: MessageId) -> bool {
    matches!(id, get::ID | get_entry_view::ID | event_journal_read::ID)
}

impl Session {
    /// Executes a request and appends its reply. Returns `false` if the connection must be closed
    /// afterwards.
    #[inline]
    pub(crate) fn handle(&mut self, message: &Message<'_>) -> bool {
        let _request = tracing::debug_span!("request", message = message.id().0).entered();
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

    /// Reserves memory for a reply that is long because of its values. The reply to a change is
    /// kept even if there is no memory, because the change is already made.
    #[cold]
    fn count_long_reply(&mut self, id: MessageId) -> Outcome {
        match self.out.count_tail() {
            Err(exhausted) if reads_one(id) => Err(GridError::from(exhausted).into()),
            _ => Ok(()),
        }
    }

    /// As [`Session::count_long_reply`], for a run of gets whose replies begin at `start`.
    #[cold]
    pub(crate) fn count_long_gets(&mut self, start: Mark, gets: &[Option<Get<'_>>]) {
        // With other members in the cluster, some gets of the run may be held until their leader is
        // known.
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
            Row::Absent if self.is_relay && id == relay::announcing::ID => standby_announcement::handle(self, message),
            Row::Absent => Err(Failure::unsupported(id, "this server does not serve it")),
        }
    }
}
