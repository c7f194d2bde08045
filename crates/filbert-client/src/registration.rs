//! Listeners: one registration by the user, one at each member that the client is connected to.

use std::{collections::HashMap, sync::Arc};

use filbert_wire::{CorrelationId, Message, MessageId};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    ClientError,
    connection::{Connection, ConnectionId, EventHandler},
    handshake::refuse_error,
    inner::Inner,
    slots::SlotId,
};

/// Names a listener, to remove it by. The members know it under ids of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub(crate) Uuid);

/// How a kind of listener is registered and removed.
pub(crate) struct Registration {
    pub(crate) id: ListenerId,
    pub(crate) request_id: MessageId,
    /// The encoded request.
    pub(crate) request: Vec<u8>,
    /// The member's id of the listener from its answer.
    pub(crate) decode: fn(&Message<'_>) -> Result<Uuid, ClientError>,
    /// The encoded request that removes a member's listener.
    pub(crate) removal: Box<dyn Fn(Uuid) -> Vec<u8> + Send + Sync>,
    pub(crate) handler: EventHandler,
    pub(crate) members: Mutex<Members>,
}

/// Where a listener is registered.
#[derive(Default)]
pub(crate) struct Members {
    /// Under which ids.
    on: HashMap<ConnectionId, (CorrelationId, Uuid)>,
    /// It was removed; a registration that was under way then is taken back.
    is_removed: bool,
}

impl Registration {
    pub(crate) fn is_on(&self, connection: ConnectionId) -> bool {
        self.members.lock().on.contains_key(&connection)
    }

    /// The connection is gone, and the member's registration with it.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        self.members.lock().on.remove(&connection);
    }

    /// Registers at one member.
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
            self.take_back(connection, message.correlation_id(), listener);
        } else {
            members.on.insert(connection.id, (message.correlation_id(), listener));
        }
        Ok(())
    }

    /// Asks a member to forget the listener. The answer comes to the returned place, if the connection still is.
    fn take_back(&self, connection: &Connection, correlation: CorrelationId, listener: Uuid) -> Option<SlotId> {
        connection.remove_handler(correlation);
        connection.send(&mut (self.removal)(listener), None).ok()
    }
}

/// Registers a listener at all members that the client is connected to. Those that come later are added when they do.
pub(crate) async fn add(client: &Arc<Inner>, registration: Registration) -> Result<ListenerId, ClientError> {
    let registration = Arc::new(registration);
    let id = registration.id;
    let connections: Vec<_> = {
        let mut cluster = client.cluster.lock();
        if client.is_shut_down() {
            return Err(ClientError::Shutdown);
        }
        cluster.registrations.insert(id.0, registration.clone());
        cluster.connections.values().cloned().collect()
    };
    for connection in connections {
        match registration.register(&connection).await {
            Ok(()) => {}
            // Whoever takes the lost connection's place registers by itself.
            Err(ClientError::Disconnected { .. }) => {}
            Err(error) => {
                drop(remove(client, id));
                return Err(error);
            }
        }
    }
    Ok(id)
}

/// Stops a listener. The members are told at once; what they answer is waited for by whoever awaits the result.
/// False if there is no such listener.
pub(crate) fn remove(client: &Arc<Inner>, id: ListenerId) -> impl Future<Output = bool> + use<> {
    let mut removals = Vec::new();
    let registration = {
        let mut cluster = client.cluster.lock();
        let registration = cluster.registrations.remove(&id.0);
        if let Some(registration) = &registration {
            let mut members = registration.members.lock();
            members.is_removed = true;
            for connection in cluster.connections.values() {
                let Some((correlation, listener)) = members.on.remove(&connection.id) else { continue };
                if let Some(slot) = registration.take_back(connection, correlation, listener) {
                    removals.push((connection.clone(), slot));
                }
            }
        }
        registration
    };
    async move {
        for (connection, slot) in removals {
            // A lost connection has lost its listeners.
            let _answer = std::future::poll_fn(|context| connection.poll_answer(slot, context)).await;
        }
        registration.is_some()
    }
}
