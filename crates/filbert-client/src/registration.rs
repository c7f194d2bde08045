//! A listener with its registrations: one at each member that the client is connected to.

use std::{collections::HashMap, sync::Arc};

use filbert_wire::{CorrelationId, Message, MessageId};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    ClientError,
    connection::{Connection, ConnectionId, EventHandler},
    error::refuse_error,
    slots::SlotId,
};

/// The id of a listener, needed to remove it. Each member assigns an id of its own to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub(crate) Uuid);

/// A listener: its requests, its handler, and the connections on which it is registered.
pub(crate) struct Registration {
    pub(crate) id: ListenerId,
    pub(crate) request_id: MessageId,
    /// The encoded request that registers the listener.
    pub(crate) request: Vec<u8>,
    /// Reads the member's id of the listener from the response.
    pub(crate) decode: fn(&Message<'_>) -> Result<Uuid, ClientError>,
    /// Encodes the request that removes the listener with this id from a member.
    pub(crate) removal: Box<dyn Fn(Uuid) -> Vec<u8> + Send + Sync>,
    pub(crate) handler: EventHandler,
    pub(crate) members: Mutex<Members>,
}

/// The connections on which a listener is registered.
#[derive(Default)]
pub(crate) struct Members {
    /// The correlation id and the member's id of the listener, for each connection.
    pub(crate) on: HashMap<ConnectionId, (CorrelationId, Uuid)>,
    /// Whether the listener was removed. A registration that completes afterwards is removed at
    /// once.
    pub(crate) is_removed: bool,
}

impl Registration {
    pub(crate) fn is_on(&self, connection: ConnectionId) -> bool {
        self.members.lock().on.contains_key(&connection)
    }

    /// Removes the entry of a closed connection. The member's registration ended with the
    /// connection.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        self.members.lock().on.remove(&connection);
    }

    /// Registers the listener at the member of a connection.
    pub(crate) async fn register(&self, connection: &Arc<Connection>) -> Result<(), ClientError> {
        let lost = |reason| ClientError::Disconnected {
            request: self.request_id,
            address: connection.address.clone(),
            reason,
        };
        let answer = connection.call(self.request.clone(), Some(self.handler.clone())).await.map_err(lost)?;
        let message = Message::parse(&answer)?;
        refuse_error(self.request_id, &message)?;
        let listener = (self.decode)(&message)?;
        let mut members = self.members.lock();
        if members.is_removed {
            drop(members);
            self.send_removal(connection, message.correlation_id(), listener);
        } else {
            members.on.insert(connection.id, (message.correlation_id(), listener));
        }
        Ok(())
    }

    /// Sends the request that removes the listener from a member. Returns the slot of the response,
    /// or `None` if the request could not be sent.
    pub(crate) fn send_removal(
        &self,
        connection: &Connection,
        correlation: CorrelationId,
        listener: Uuid,
    ) -> Option<SlotId> {
        connection.remove_handler(correlation);
        connection.send(&mut (self.removal)(listener), None).ok()
    }
}
