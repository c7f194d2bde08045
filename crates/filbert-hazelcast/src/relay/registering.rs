//! The registration of listeners at other members, and its end.

use std::sync::Arc;

use filbert_wire::{CorrelationId, Message, MessageId, Request, Uuid, table::map::remove_entry_listener};

use super::gather::Gather;
use super::listeners::{Registered, RemoteRegistration};
use super::pipe::{Parcel, Pipe, To};
use super::{Relays, announcing};
use crate::failure::Outcome;

/// A listener to be registered at other members.
pub(super) struct ToRegister<'a> {
    pub(super) local: Uuid,
    pub(super) id: MessageId,
    pub(super) correlation: CorrelationId,
    pub(super) request: &'a [u8],
    pub(super) map: &'a str,
    /// Set if this is not a listener but a query cache for which the other members stand by.
    pub(super) announcement: Option<Arc<announcing::Announcement>>,
}

impl Relays {
    /// Registers a listener of this member at all other members, and at members that join later.
    /// `gather` collects the replies; `reply` is the reply of this member.
    pub(crate) fn register_everywhere(
        &mut self,
        local: Uuid,
        message: &Message<'_>,
        request: &[u8],
        map: &str,
        gather: &Arc<Gather>,
        reply: Vec<u8>,
    ) {
        let (id, correlation) = (message.id(), message.correlation_id());
        self.listeners.add(local, id, correlation, request, map);
        gather.take(Ok(reply));
        for member in self.others() {
            self.listeners.set_requested(local, member);
            self.register_at(
                member,
                Some(gather),
                ToRegister { local, id, correlation, request, map, announcement: None },
            );
        }
    }

    /// Removes a listener from all other members that have it.
    pub(crate) fn unregister_everywhere(&mut self, local: Uuid) {
        if let Some(registered) = self.listeners.remove(local) {
            self.unregister(&registered);
        }
    }

    /// Registers a listener of this member at another member.
    pub(super) fn register_at(&mut self, member: Uuid, gather: Option<&Arc<Gather>>, of: ToRegister<'_>) {
        let ToRegister { local, id, correlation, request, map, announcement } = of;
        let pipe = match self.pipe(member) {
            Ok(pipe) => pipe,
            Err(failure) => {
                if let Some(announcement) = &announcement {
                    announcement.take(None);
                }
                if let Some(gather) = gather {
                    gather.take(Err(failure));
                }
                return;
            }
        };
        let (weak, undo_correlation) = (Arc::downgrade(&pipe), self.next_own_correlation());
        let undo = move |map: &str, there: Uuid| {
            if let Some(pipe) = weak.upgrade() {
                // If this fails, the connection is lost, and the listener with it.
                _ = remove_there(&pipe, undo_correlation, map, there);
                pipe.filled.notify_one();
            }
        };
        let taker = self.listeners.taker(local, member, gather.cloned(), undo, map.to_owned());
        let to = To::Taker(match &announcement {
            Some(announcement) => announcement.clone().taker(taker),
            None => taker,
        });
        let parcel = Parcel { id, correlation, partition: None, bytes: request, to };
        let Err(failure) = pipe.push(parcel) else { return };
        if let Some(announcement) = announcement {
            announcement.take(None);
        }
        if let Some(gather) = gather {
            gather.take(Err(failure));
        }
    }

    /// Removes a listener from all other members.
    pub(super) fn unregister(&mut self, registered: &Registered) {
        for (member, at) in &registered.at {
            let RemoteRegistration::Registered(there) = at else { continue };
            let correlation = self.next_own_correlation();
            if let Some(pipe) = self.pipes.get(member) {
                // As above.
                _ = remove_there(pipe, correlation, &registered.map, *there);
            }
        }
    }
}

fn remove_there(pipe: &Pipe, correlation: CorrelationId, map: &str, there: Uuid) -> Outcome {
    let mut bytes = Vec::new();
    remove_entry_listener::Request { name: map, registration_id: there }.encode(correlation, -1, &mut bytes);
    let id = remove_entry_listener::ID;
    pipe.push(Parcel { id, correlation, partition: None, bytes: &bytes, to: To::Nobody })
}
