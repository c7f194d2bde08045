//! Listeners of a client that asks a single member for the events of all members. They are
//! registered at all members, and at members that join later.

use std::collections::HashMap;
use std::sync::Arc;

use filbert_wire::{
    CorrelationId, Message, MessageId, Uuid,
    table::map::{
        add_entry_listener, add_entry_listener_to_key, add_entry_listener_to_key_with_predicate,
        add_entry_listener_with_predicate, add_near_cache_invalidation_listener,
    },
};
use parking_lot::Mutex;

use super::gather::Gather;
use super::pipe::{Taker, Traffic};

/// A listener and its registrations at other members.
pub(super) struct Registered {
    pub(super) id: MessageId,
    pub(super) correlation: CorrelationId,
    /// The request, which is sent to each member.
    pub(super) request: Vec<u8>,
    pub(super) map: String,
    pub(super) at: HashMap<Uuid, RemoteRegistration>,
    /// Whether the client was told that the registration failed. The listener is removed then.
    failed: bool,
}

/// The registration of a listener at one member.
#[derive(Clone, Copy)]
pub(super) enum RemoteRegistration {
    /// The request was sent.
    Requested,
    /// Registered, with this id at that member.
    Registered(Uuid),
}

/// The listeners of one client's connection, by their ids at this member. The replies of members
/// arrive on other threads.
#[derive(Clone)]
pub(super) struct Listeners(Arc<Mutex<HashMap<Uuid, Registered>>>, Arc<Traffic>);

impl Listeners {
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self(Arc::default(), traffic)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(super) fn add(&self, local: Uuid, id: MessageId, correlation: CorrelationId, request: &[u8], map: &str) {
        let (request, map) = (request.to_vec(), map.to_owned());
        let registered = Registered { id, correlation, request, map, at: HashMap::new(), failed: false };
        self.0.lock().insert(local, registered);
    }

    pub(super) fn remove(&self, local: Uuid) -> Option<Registered> {
        self.0.lock().remove(&local)
    }

    /// Takes out failed listeners.
    pub(super) fn take_failed(&self) -> Vec<(Uuid, Registered)> {
        let mut listeners = self.0.lock();
        let failed: Vec<Uuid> = listeners.iter().filter(|(_, of)| of.failed).map(|(local, _)| *local).collect();
        failed.into_iter().filter_map(|local| listeners.remove(&local).map(|of| (local, of))).collect()
    }

    /// Forgets registrations at members without a connection.
    pub(super) fn forget(&self, is_there: impl Fn(Uuid) -> bool) {
        for of in self.0.lock().values_mut() {
            of.at.retain(|member, _| is_there(*member));
        }
    }

    /// Keeps the listeners for which `is_wanted` returns `true`, given their ids at this member and
    /// the ids of their messages.
    pub(super) fn retain(&self, is_wanted: impl Fn(Uuid, MessageId) -> bool) {
        self.0.lock().retain(|local, of| is_wanted(*local, of.id));
    }

    /// Records that a registration was requested from a member.
    pub(super) fn set_requested(&self, local: Uuid, member: Uuid) {
        if let Some(of) = self.0.lock().get_mut(&local) {
            of.at.entry(member).or_insert(RemoteRegistration::Requested);
        }
    }

    /// The listeners that are not registered at a member. They count as requested from now on.
    pub(super) fn missing_at(&self, member: Uuid) -> Vec<(Uuid, MessageId, CorrelationId, Vec<u8>, String)> {
        let mut missing = Vec::new();
        for (local, of) in self.0.lock().iter_mut().filter(|(_, of)| !of.failed) {
            of.at.entry(member).or_insert_with(|| {
                missing.push((*local, of.id, of.correlation, of.request.clone(), of.map.clone()));
                RemoteRegistration::Requested
            });
        }
        missing
    }

    /// Handles a member's reply to a registration. If the listener is no longer wanted, calls
    /// `undo` with its id at that member. A registration with a waiting client is complete when all
    /// members have it, and fails if one member fails. Other registrations are retried.
    pub(super) fn taker(
        &self,
        local: Uuid,
        member: Uuid,
        gather: Option<Arc<Gather>>,
        undo: impl FnOnce(&str, Uuid) + Send + 'static,
        map: String,
    ) -> Taker {
        let listeners = self.clone();
        Box::new(move |answer, bytes| {
            let found = answer.map(registration_in);
            {
                let mut all = listeners.0.lock();
                match (all.get_mut(&local), &found) {
                    (Some(of), Ok(Some(there))) => _ = of.at.insert(member, RemoteRegistration::Registered(*there)),
                    (Some(of), _) => {
                        of.at.remove(&member);
                        if gather.is_some() {
                            of.failed = true;
                            listeners.1.set_broken();
                        }
                    }
                    (None, Ok(Some(there))) => undo(&map, *there),
                    (None, _) => {}
                }
            }
            if let Some(gather) = gather {
                gather.take(found.map(|_| bytes.to_vec()));
            }
        })
    }
}

/// The map of a request for events, and whether only this member's events are requested.
pub(crate) fn listener_scope<'a>(message: &Message<'a>) -> Option<(&'a str, bool)> {
    macro_rules! of {
        ($method:ident) => {{
            let request: $method::Request<'a> = message.decode().ok()?;
            Some((request.name, request.local_only))
        }};
    }
    match message.id() {
        add_entry_listener::ID => of!(add_entry_listener),
        add_entry_listener_to_key::ID => of!(add_entry_listener_to_key),
        add_entry_listener_with_predicate::ID => of!(add_entry_listener_with_predicate),
        add_entry_listener_to_key_with_predicate::ID => of!(add_entry_listener_to_key_with_predicate),
        add_near_cache_invalidation_listener::ID => of!(add_near_cache_invalidation_listener),
        _ => None,
    }
}

/// The id in the response to such a request.
pub(crate) fn registration_in(message: &Message<'_>) -> Option<Uuid> {
    macro_rules! of {
        ($method:ident) => {
            message.decode::<$method::Response>().ok().map(|response| response.response)
        };
    }
    of!(add_entry_listener)
        .or_else(|| of!(add_entry_listener_to_key))
        .or_else(|| of!(add_entry_listener_with_predicate))
        .or_else(|| of!(add_entry_listener_to_key_with_predicate))
        .or_else(|| of!(add_near_cache_invalidation_listener))
}
