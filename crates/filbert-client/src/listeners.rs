//! Registers listeners at all connected members, and removes them.

use std::sync::Arc;

use crate::{
    ClientError,
    inner::Inner,
    registration::{ListenerId, Registration},
};

/// Registers a listener at all connected members. The handshake registers it at members that are
/// connected later.
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
            // The handshake of the next connection registers the listener.
            Err(ClientError::Disconnected { .. }) => {}
            Err(error) => {
                drop(remove(client, id));
                return Err(error);
            }
        }
    }
    Ok(id)
}

/// Removes a listener. The requests are sent to the members at once; the returned future waits for
/// the responses. It returns false if there is no such listener.
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
                if let Some(slot) = registration.send_removal(connection, correlation, listener) {
                    removals.push((connection.clone(), slot));
                }
            }
        }
        registration
    };
    async move {
        for (connection, slot) in removals {
            // A lost connection needs no response: its listeners ended with it.
            let _answer = std::future::poll_fn(|context| connection.poll_answer(slot, context)).await;
        }
        registration.is_some()
    }
}
