//! Requests that take long: they run on the query engine's threads, and are answered through the connection's outbox.

use std::sync::Arc;

use filbert_grid::{
    ErrorKind,
    query::{Ending, QueryEngine},
};
use filbert_wire::{CorrelationId, Message};

use crate::{
    failure::{Failure, Outcome},
    link::Link,
    replies::Replies,
    session::Session,
};

/// Why messages with a predicate, an aggregator, a projection or a statement are refused where nothing runs them.
pub(crate) const NO_QUERIES: &str = "queries are not switched on in this server";

/// Hears the response to a request, or why there is none.
pub(crate) type Tell = Box<dyn FnOnce(Result<Vec<u8>, Box<Failure>>) + Send>;

/// One of the requests of a connection that are still to be answered by another thread. Dropping it makes room for the
/// next.
pub(crate) struct Place {
    link: Arc<Link>,
    /// Whether others wait until it is over.
    parks: bool,
}

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
        Ok(Place { link: session.link.clone(), parks: false })
    }

    /// The connection.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.link.is_closing()
    }

    /// The same, for a query to ask while it runs.
    pub(crate) fn ending(&self) -> Ending {
        let link = self.link.clone();
        Arc::new(move || link.is_closing())
    }

    /// Sends the reply, and gives the place back.
    pub(crate) fn reply(self, correlation: CorrelationId, reply: Replies, reply_bytes_max: usize) {
        if !self.link.outbox.append_reply(reply, reply_bytes_max) {
            let text = format!(
                "more than {reply_bytes_max} bytes of replies (reply_bytes_max) wait for this client to read them"
            );
            self.link.outbox.append(|out| Failure::new(ErrorKind::LimitReached, text).encode(correlation, out));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.link.end_query();
        if self.parks {
            self.link.go_on();
        }
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
    work: impl FnOnce(&Place, &mut Replies) -> Outcome + Send + 'static,
) -> Outcome {
    run(Place::take(session)?, session.config.reply_bytes_max, engine, correlation, work);
    Ok(())
}

/// As [`later`]; no other request of the connection begins before the reply is there.
pub(crate) fn later_alone(
    session: &Session,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&Place, &mut Replies) -> Outcome + Send + 'static,
) -> Outcome {
    let mut place = Place::take(session)?;
    place.parks = true;
    session.link.park();
    run(place, session.config.reply_bytes_max, engine, correlation, work);
    Ok(())
}

/// As [`later`], with a place that was taken.
pub(crate) fn run(
    place: Place,
    reply_bytes_max: usize,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&Place, &mut Replies) -> Outcome + Send + 'static,
) {
    engine.run_later(Box::new(move || {
        if place.is_given_up() {
            return;
        }
        let mut out = Replies::new(&place.link.replies);
        if let Err(failure) = work(&place, &mut out) {
            out.clear_all();
            failure.encode(correlation, &mut out);
        }
        place.reply(correlation, out, reply_bytes_max);
    }));
}
