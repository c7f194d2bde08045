//! A query cache that this member keeps, told to the other members, which stand by for it (`query_cache/standby.rs`).
//!
//! It comes on the connections of `task.rs` only, as a message of its own, with two frames behind the first:
//!
//! | frame | content |
//! |---|---|
//! | 1 | the UUID of the member that keeps the cache, 16 bytes |
//! | 2 | the client's request for the cache, a whole message |
//!
//! It is answered as the registration of a listener is, with an id by which it can be removed; or with the id of nobody, where the member knows
//! that the client has asked for the cache once more, at another member.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_wire::{
    CorrelationId, Message, MessageId, Response, Uuid,
    frame::{Writer, flags},
    table::map::add_entry_listener,
};
use parking_lot::Mutex;

use super::ToRegister;
use super::listeners::registration_in;
use super::pipe::Taker;
use crate::failure::{Failure, Outcome};
use crate::handlers::continuous_query::Create;
use crate::query_cache::{QueryCache, Standby};
use crate::session::Session;

/// The message's id, of a service that clients do not have.
pub(crate) const ID: MessageId = MessageId::request(0x7e, 0x02);

/// Other members that are asked to stand by.
pub(super) struct Asked {
    cache: Arc<QueryCache>,
    missing: AtomicUsize,
    /// Called when all have answered, or cannot be reached.
    done: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Asked {
    pub(super) fn new(cache: Arc<QueryCache>, missing: usize, done: Box<dyn FnOnce() + Send>) -> Arc<Self> {
        Arc::new(Self { cache, missing: AtomicUsize::new(missing), done: Mutex::new(Some(done)) })
    }

    /// Takes the answer of one member: the id there, if it has one.
    pub(super) fn take(&self, there: Option<Uuid>) {
        if there == Some(Uuid::nil()) {
            // Another member keeps it by now.
            self.cache.close();
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let done = self.done.lock().take();
        if let Some(done) = done {
            done();
        }
    }

    pub(super) fn taker(self: Arc<Self>, taker: Taker) -> Taker {
        Box::new(move |answer, bytes| {
            let there = answer.as_ref().ok().and_then(|answer| registration_in(answer));
            taker(answer, bytes);
            self.take(there);
        })
    }
}

fn encode(correlation: CorrelationId, home: Uuid, request: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.frame_with(flags::UNFRAGMENTED, |out| {
        out.extend_from_slice(&ID.0.to_le_bytes());
        out.extend_from_slice(&correlation.0.to_le_bytes());
        out.extend_from_slice(&(-1_i32).to_le_bytes());
    });
    writer.frame(0, home.as_bytes());
    writer.frame(0, request);
    writer.finish();
    out
}

impl Session {
    /// Has all other members stand by for a cache, now and when they come. Calls `done` when those that are there have answered, or
    /// cannot be reached.
    pub(crate) fn have_others_stand_by(&mut self, cache: &Arc<QueryCache>, done: Box<dyn FnOnce() + Send>) {
        let Some(relays) = &mut self.relays else { return done() };
        let correlation = relays.next_own_correlation();
        // No listener's id begins like this.
        let local = Uuid::from_u64_pair(u64::MAX, correlation.0.cast_unsigned());
        if let Some(before) = cache.registered.lock().replace(local) {
            relays.listeners.remove(before);
        }
        let (map, id) = (cache.map().name(), ID);
        let request = &encode(correlation, relays.itself, &cache.wanted().request)[..];
        relays.listeners.add(local, id, correlation, request, map);
        let others = relays.others();
        // One more, so that it is not done before all were asked, and also if there are none.
        let asked = Asked::new(cache.clone(), others.len() + 1, done);
        for member in others {
            relays.listeners.ask_for(local, member);
            let standing = Some(asked.clone());
            relays.register_at(member, None, ToRegister { local, id, correlation, request, map, standing });
        }
        asked.take(None);
    }
}

/// Reads and answers it.
#[cold]
pub(crate) fn handle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let mut frames = message.frames();
    let (Some(home), Some(request)) = (frames.next(), frames.next()) else {
        return Err(Failure::argument(message.id(), "two frames are expected behind the first"));
    };
    let Ok(home) = Uuid::from_slice(home.content) else {
        return Err(Failure::argument(message.id(), "16 bytes are expected in the first frame behind the first"));
    };
    let asked = Message::parse(request.content)?;
    let create = Create::read(&asked)?;
    let correlation = message.correlation_id();
    let connection = session.connection_id().map_or(0, |id| id.0);
    let id = Uuid::from_u64_pair(connection, correlation.0.cast_unsigned());
    let standby =
        Standby::new((id, home, session.client), create.name, request.content, asked.correlation_id(), &session.link);
    let is_kept = session.caches.stand_by(create.map, standby, session.config.query_caches_max)?;
    let response = if is_kept { id } else { Uuid::nil() };
    add_entry_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}
