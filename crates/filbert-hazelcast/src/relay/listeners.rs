//! Listeners of a client that asks one member alone for the events of all: registered everywhere, and at members that come later.

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

/// A listener, as it is at other members.
pub(super) struct Registered {
    pub(super) id: MessageId,
    pub(super) correlation: CorrelationId,
    /// The request, to be repeated.
    pub(super) request: Vec<u8>,
    pub(super) map: String,
    pub(super) at: HashMap<Uuid, At>,
    /// The client was told that it failed: it is to go.
    failed: bool,
}

/// A listener at one member.
#[derive(Clone, Copy)]
pub(super) enum At {
    /// It is on its way there.
    Asked,
    /// By its id there.
    There(Uuid),
}

/// Those of one client's connection, by their ids at this member. Members' answers come on other threads.
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

    /// Takes out those that failed.
    pub(super) fn take_failed(&self) -> Vec<(Uuid, Registered)> {
        let mut listeners = self.0.lock();
        let failed: Vec<Uuid> = listeners.iter().filter(|(_, of)| of.failed).map(|(local, _)| *local).collect();
        failed.into_iter().filter_map(|local| listeners.remove(&local).map(|of| (local, of))).collect()
    }

    /// Forgets what members had to which there is no way any more.
    pub(super) fn forget(&self, is_there: impl Fn(Uuid) -> bool) {
        for of in self.0.lock().values_mut() {
            of.at.retain(|member, _| is_there(*member));
        }
    }

    /// Keeps those that are wanted still, by their ids here and what they are.
    pub(super) fn retain(&self, is_wanted: impl Fn(Uuid, MessageId) -> bool) {
        self.0.lock().retain(|local, of| is_wanted(*local, of.id));
    }

    /// Notes that a member is asked for one.
    pub(super) fn ask_for(&self, local: Uuid, member: Uuid) {
        if let Some(of) = self.0.lock().get_mut(&local) {
            of.at.entry(member).or_insert(At::Asked);
        }
    }

    /// Those that a member does not have; they count as asked for from now on.
    pub(super) fn missing_at(&self, member: Uuid) -> Vec<(Uuid, MessageId, CorrelationId, Vec<u8>, String)> {
        let mut missing = Vec::new();
        for (local, of) in self.0.lock().iter_mut().filter(|(_, of)| !of.failed) {
            of.at.entry(member).or_insert_with(|| {
                missing.push((*local, of.id, of.correlation, of.request.clone(), of.map.clone()));
                At::Asked
            });
        }
        missing
    }

    /// Takes a member's answer to a registration. If it is not wanted any more, `undo` is called with its id there. A registration
    /// that a client waits for is done when all members have it, and fails with any of them; others are tried again.
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
                    (Some(of), Ok(Some(there))) => _ = of.at.insert(member, At::There(*there)),
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

/// What a request for events says: the map, and whether this member's alone are meant.
pub(super) fn wanted<'a>(message: &Message<'a>) -> Option<(&'a str, bool)> {
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
pub(super) fn registration_in(message: &Message<'_>) -> Option<Uuid> {
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
