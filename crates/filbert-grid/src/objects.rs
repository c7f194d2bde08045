//! Distributed objects: the registry of their names, and listeners for their creation and
//! destruction.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use uuid::Uuid;

use crate::clients::ConnectionId;
use crate::errors::GridError;
use crate::listeners::ListenerId;

/// The name of a distributed object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// The name of the service; [`MAP_SERVICE`](crate::MAP_SERVICE) for maps.
    pub service: String,
    /// The name within the service.
    pub name: String,
}

/// The kind of an object event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectEventKind {
    /// The object was created.
    Created,
    /// The object was destroyed.
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

/// An event of a distributed object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectEvent<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The kind of the event.
    pub kind: ObjectEventKind,
    /// The member that reports the event.
    pub source: Uuid,
}

/// The receiver of a listener's events. It must neither block nor call back into the grid.
pub trait ObjectSink: Send + Sync {
    /// Receives an event.
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

    /// Registers a new name.
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
        self.notify(&ObjectEvent { service, name, kind: ObjectEventKind::Created, source });
    }

    pub(crate) fn destroy(&self, service: &str, name: &str, source: Uuid) {
        self.ids.write().remove(&ObjectId { service: service.to_owned(), name: name.to_owned() });
        self.notify(&ObjectEvent { service, name, kind: ObjectEventKind::Destroyed, source });
    }

    fn notify(&self, event: &ObjectEvent<'_>) {
        for registered in self.listeners.read().iter() {
            registered.sink.deliver(event);
        }
    }

    /// All objects, by service and name.
    pub fn list(&self) -> Vec<ObjectId> {
        self.ids.read().iter().cloned().collect()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.ids.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a listener for created and destroyed objects, with an id that the caller has chosen.
    ///
    /// # Errors
    /// The number of these listeners has reached the limit of the settings.
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

    /// Removes a listener. Returns whether there was one.
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
