//! The announcement of a query cache to the other members. This member keeps the cache, and the
//! others stand by for it (`query_cache/standby.rs`).
//!
//! The announcement is sent only on connections of `task.rs`. It is a message of its own, with two
//! frames after the initial one:
//!
//! | frame | content |
//! |---|---|
//! | 1 | the UUID of the member that keeps the cache, 16 bytes |
//! | 2 | the client's request for the cache, a whole message |
//!
//! `handlers/standby_announcement.rs` reads it. The reply is that of a listener's registration,
//! with an id for its removal. The id is nil if the member knows a later request of the client for
//! the cache, at another member.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_wire::{MessageId, Uuid};
use parking_lot::Mutex;

use super::Relays;
use super::between::between_members;
use super::listeners::registration_in;
use super::pipe::Taker;
use super::registering::ToRegister;
use crate::query_cache::QueryCache;

/// The message's id, in a service that clients do not use.
pub(crate) const ID: MessageId = MessageId::request(0x7e, 0x02);

/// An announcement that waits for the replies of other members.
pub(super) struct Announcement {
    cache: Arc<QueryCache>,
    missing: AtomicUsize,
    /// Called when all members have replied or cannot be reached.
    done: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Announcement {
    pub(super) fn new(cache: Arc<QueryCache>, missing: usize, done: Box<dyn FnOnce() + Send>) -> Arc<Self> {
        Arc::new(Self { cache, missing: AtomicUsize::new(missing), done: Mutex::new(Some(done)) })
    }

    /// Handles the reply of one member: the id of its registration, if it has succeeded.
    pub(super) fn take(&self, there: Option<Uuid>) {
        if there == Some(Uuid::nil()) {
            // Another member keeps the cache by now.
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

impl Relays {
    /// Asks all other members to stand by for a cache, including members that join later. Calls
    /// `done` when the current members have replied or cannot be reached.
    pub(crate) fn have_others_stand_by(&mut self, cache: &Arc<QueryCache>, done: Box<dyn FnOnce() + Send>) {
        let correlation = self.next_own_correlation();
        // No listener's id begins like this.
        let local = Uuid::from_u64_pair(u64::MAX, correlation.0.cast_unsigned());
        if let Some(before) = cache.registered.lock().replace(local) {
            self.listeners.remove(before);
        }
        let (map, id) = (cache.map().name(), ID);
        let request = &between_members(ID, correlation, [self.itself.as_bytes(), &cache.request().message])[..];
        self.listeners.add(local, id, correlation, request, map);
        let others = self.others();
        // One more, so `done` is not called before all members were asked. It is also called
        // without other members.
        let announcement = Announcement::new(cache.clone(), others.len() + 1, done);
        for member in others {
            self.listeners.set_requested(local, member);
            let announcement = Some(announcement.clone());
            self.register_at(member, None, ToRegister { local, id, correlation, request, map, announcement });
        }
        announcement.take(None);
    }
}
