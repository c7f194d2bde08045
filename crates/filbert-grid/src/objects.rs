//! Distributed objects: the names that exist, and who wants to hear when they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use uuid::Uuid;

use crate::ConnectionId;
use crate::errors::GridError;
use crate::listeners::ListenerId;

/// The service that maps belong to.
pub const MAP_SERVICE: &str = "hz:impl:mapService";

/// Bytes of one name that a client gives and the member keeps: of a map, an index, an attribute, a query cache, a type and its fields.
/// Hazelcast has no such limit. Names are kept several times and with every registration, and their number is bounded by settings, so
/// that this bounds their memory.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Checks the length of a name that is to be kept; `what` says whose it is, for example `map`.
///
/// # Errors
/// [`GridError::IllegalArgument`] for a name of more than [`NAME_BYTES_MAX`] bytes.
#[inline]
pub fn check_name(what: &str, name: &str) -> Result<(), GridError> {
    if name.len() <= NAME_BYTES_MAX { Ok(()) } else { Err(too_long(what, name.len())) }
}

#[cold]
fn too_long(what: &str, bytes: usize) -> GridError {
    GridError::IllegalArgument(format!("{what} name of {bytes} bytes, expected at most {NAME_BYTES_MAX}"))
}

/// A distributed object's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// The service, [`MAP_SERVICE`] for maps.
    pub service: String,
    /// The name within the service.
    pub name: String,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectEventKind {
    /// It was made.
    Created,
    /// It was destroyed.
    Destroyed,
}

impl ObjectEventKind {
    /// The name in the client protocol.
    pub const fn name(self) -> &'static str {
        match self {
            ObjectEventKind::Created => "CREATED",
            ObjectEventKind::Destroyed => "DESTROYED",
        }
    }
}

/// What listeners of objects hear.
#[derive(Clone, Copy, Debug)]
pub struct ObjectEvent<'a> {
    /// The service.
    pub service: &'a str,
    /// The name.
    pub name: &'a str,
    /// What happened.
    pub kind: ObjectEventKind,
    /// The member on which it happened.
    pub source: Uuid,
}

/// Where a listener's events go; must neither block nor call back into the grid.
pub trait ObjectSink: Send + Sync {
    /// Takes an event.
    fn deliver(&self, event: &ObjectEvent<'_>);
}

impl<F: Fn(&ObjectEvent<'_>) + Send + Sync> ObjectSink for F {
    fn deliver(&self, event: &ObjectEvent<'_>) {
        self(event);
    }
}

struct Registered {
    id: ListenerId,
    connection: Option<ConnectionId>,
    sink: Arc<dyn ObjectSink>,
}

/// The registry of distributed objects.
pub struct Objects {
    ids: RwLock<BTreeSet<ObjectId>>,
    listeners: RwLock<Vec<Registered>>,
    objects_max: usize,
    listeners_max: usize,
}

impl Objects {
    pub(crate) fn new(objects_max: usize, listeners_max: usize) -> Self {
        Objects { ids: RwLock::default(), listeners: RwLock::default(), objects_max, listeners_max }
    }

    /// Takes a name that is not there yet.
    pub(crate) fn reserve(&self, service: &str, name: &str) -> Result<(), GridError> {
        let mut ids = self.ids.write();
        if ids.len() >= self.objects_max {
            let limit = self.objects_max;
            return Err(GridError::LimitReached { what: "distributed objects", setting: "objects_max", limit });
        }
        ids.insert(ObjectId { service: service.to_owned(), name: name.to_owned() });
        Ok(())
    }

    pub(crate) fn announce_created(&self, service: &str, name: &str, source: Uuid) {
        self.tell(&ObjectEvent { service, name, kind: ObjectEventKind::Created, source });
    }

    pub(crate) fn destroy(&self, service: &str, name: &str, source: Uuid) {
        self.ids.write().remove(&ObjectId { service: service.to_owned(), name: name.to_owned() });
        self.tell(&ObjectEvent { service, name, kind: ObjectEventKind::Destroyed, source });
    }

    fn tell(&self, event: &ObjectEvent<'_>) {
        for registered in self.listeners.read().iter() {
            registered.sink.deliver(event);
        }
    }

    /// All objects, by service and name.
    pub fn list(&self) -> Vec<ObjectId> {
        self.ids.read().iter().cloned().collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.ids.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a listener of created and destroyed objects under an id of the caller's choice.
    ///
    /// # Errors
    /// There are as many of them as the settings allow.
    pub fn add_listener(
        &self,
        id: ListenerId,
        connection: Option<ConnectionId>,
        sink: Arc<dyn ObjectSink>,
    ) -> Result<(), GridError> {
        let mut listeners = self.listeners.write();
        let limit = self.listeners_max;
        if listeners.len() >= limit {
            return Err(GridError::LimitReached { what: "listeners", setting: "listeners_max", limit });
        }
        listeners.push(Registered { id, connection, sink });
        Ok(())
    }

    /// Removes a listener; whether there was one.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        let mut listeners = self.listeners.write();
        let before = listeners.len();
        listeners.retain(|registered| registered.id != id);
        listeners.len() < before
    }

    pub(crate) fn remove_connection(&self, connection: ConnectionId) {
        self.listeners.write().retain(|registered| registered.connection != Some(connection));
    }

    pub(crate) fn listener_count(&self) -> usize {
        self.listeners.read().len()
    }
}
