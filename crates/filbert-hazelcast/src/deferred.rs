//! Long requests: they run on the query engine's threads, and are answered through the connection's
//! outbox.

use std::sync::Arc;

use filbert_grid::query::QueryEngine;
use filbert_wire::{CorrelationId, Message};

use crate::{
    failure::{Failure, Outcome},
    query_slot::QuerySlot,
    replies::Replies,
    session::Session,
};

/// The reason for refusing messages with a predicate, an aggregator, a projection or a statement if
/// there is no query engine.
pub(crate) const NO_QUERIES: &str = "queries are not switched on in this server";

/// Receives the response to a request, or the failure.
pub(crate) type ReplySender = Box<dyn FnOnce(Result<Vec<u8>, Box<Failure>>) + Send>;

/// The query engine. Fails if there is none.
pub(crate) fn engine(session: &Session, message: &Message<'_>) -> Result<Arc<dyn QueryEngine>, Box<Failure>> {
    session.grid.queries().cloned().ok_or_else(|| Failure::unsupported(message.id(), NO_QUERIES))
}

/// Runs `work`, which appends the reply to a request, on one of the engine's threads. It is not
/// called if the client has disconnected by then.
pub(crate) fn later(
    session: &Session,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&QuerySlot, &mut Replies) -> Outcome + Send + 'static,
) -> Outcome {
    run(session.take_slot()?, session.config.reply_bytes_max, engine, correlation, work);
    Ok(())
}

/// As [`later`]. No other request of the connection begins before the reply exists.
pub(crate) fn later_alone(
    session: &Session,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&QuerySlot, &mut Replies) -> Outcome + Send + 'static,
) -> Outcome {
    let mut slot = session.take_slot()?;
    slot.park();
    run(slot, session.config.reply_bytes_max, engine, correlation, work);
    Ok(())
}

/// As [`later`], with a slot that is already taken.
pub(crate) fn run(
    slot: QuerySlot,
    reply_bytes_max: usize,
    engine: &Arc<dyn QueryEngine>,
    correlation: CorrelationId,
    work: impl FnOnce(&QuerySlot, &mut Replies) -> Outcome + Send + 'static,
) {
    engine.run_later(Box::new(move || {
        if slot.is_cancelled() {
            return;
        }
        let mut out = Replies::new(&slot.link().replies);
        if let Err(failure) = work(&slot, &mut out) {
            out.clear_all();
            failure.encode(correlation, &mut out);
        }
        slot.reply(correlation, out, reply_bytes_max);
    }));
}
