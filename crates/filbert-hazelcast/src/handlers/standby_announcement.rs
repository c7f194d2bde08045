//! Stands by for a query cache of another member, which announces the cache with this message
//! (`relay/announcing.rs`).

use filbert_wire::{Message, Response, Uuid, table::map::add_entry_listener};

use super::continuous_query::Create;
use crate::failure::{Failure, Outcome};
use crate::query_cache::Standby;
use crate::session::Session;

/// Decodes the message and answers it.
#[cold]
pub(crate) fn handle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let mut frames = message.frames();
    let (Some(home), Some(request)) = (frames.next(), frames.next()) else {
        return Err(Failure::argument(message.id(), "two frames are expected behind the first"));
    };
    let Ok(home) = Uuid::from_slice(home.content) else {
        return Err(Failure::argument(message.id(), "16 bytes are expected in the first frame behind the first"));
    };
    let cache_request = Message::parse(request.content)?;
    let create = Create::read(&cache_request)?;
    let correlation = message.correlation_id();
    let connection = session.connection_id().map_or(0, |id| id.0);
    let id = Uuid::from_u64_pair(connection, correlation.0.cast_unsigned());
    let standby = Standby::new(
        (id, home, session.client),
        create.name,
        request.content,
        cache_request.correlation_id(),
        &session.link,
    );
    let is_kept = session.caches.stand_by(create.map, standby, session.config.query_caches_max)?;
    let response = if is_kept { id } else { Uuid::nil() };
    add_entry_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}
