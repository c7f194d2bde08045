//! Requests that take long: they run on the query engine's threads, and are answered through the connection's outbox.

use std::sync::Arc;

use filbert_grid::{ErrorKind, query::QueryEngine};
use filbert_wire::{CorrelationId, Message};

use crate::{
    failure::{Failure, Outcome},
    link::Link,
    session::Session,
};

/// Why messages with a predicate, an aggregator, a projection or a statement are refused where nothing runs them.
pub(crate) const NO_QUERIES: &str = "queries are not switched on in this server";

/// Hears the response to a request, or why there is none.
pub(crate) type Tell = Box<dyn FnOnce(Result<Vec<u8>, Box<Failure>>) + Send>;

/// One of the requests of a connection that are still to be answered by another thread. Dropping it makes room for the
/// next.
pub(crate) struct Place(Arc<Link>);

impl Place {
    /// Takes a place, if the connection has one left.
    pub(crate) fn take(session: &Session) -> Result<Place, Box<Failure>> {
        let limit = session.config.queries_max;
        if session.link.begin_query() >= limit {
            session.link.end_query();
            let text =
                format!("this connection already has {limit} queries that run, the most that queries_max allows");
            return Err(Failure::new(ErrorKind::LimitReached, text));
        }
        Ok(Place(session.link.clone()))
    }

    /// The connection.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.is_closing()
    }

    /// Sends the reply, and gives the place back.
    pub(crate) fn reply(self, correlation: CorrelationId, reply: Vec<u8>, reply_bytes_max: usize) {
        if !self.0.outbox.append_reply(reply, reply_bytes_max) {
            let text = format!(
                "more than {reply_bytes_max} bytes of replies (reply_bytes_max) wait for this client to read them"
            );
            self.0.outbox.append(|out| Failure::new(ErrorKind::LimitReached, text).encode(correlation, out));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.end_query();
    }
}

/// The engine, or why there is none.
pub(crate) fn engine(session: &Session, message: &Message<'_>) -> Result<Arc<dyn QueryEngine>, Box<Failure>> {
    session.grid.queries().cloned().ok_or_else(|| Failure::unsupported(message.id(), NO_QUERIES))
}

/// Has `work` append the reply of a request on one of the engine's threads. It is not called if the client goes before.
pub(crate) fn later(
    session: &Session,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&Place, &mut Vec<u8>) -> Outcome + Send + 'static,
) -> Outcome {
    let place = Place::take(session)?;
    let reply_bytes_max = session.config.reply_bytes_max;
    engine.run_later(Box::new(move || {
        if place.is_given_up() {
            return;
        }
        let mut out = Vec::new();
        if let Err(failure) = work(&place, &mut out) {
            out.clear();
            failure.encode(correlation, &mut out);
        }
        place.reply(correlation, out, reply_bytes_max);
    }));
    Ok(())
}
