//! Registrations of clients for events that the door itself generates: the registrations for one
//! kind of event, with the state last sent to each.

use std::sync::{Arc, Weak};

use filbert_grid::GridError;
use filbert_wire::{CorrelationId, Uuid};

use crate::client_link::ClientLink;

/// Up to this number of registrations, those of closed connections are not removed.
const KEPT_UNLOOKED_AT: usize = 64;

struct Registration<T> {
    id: Uuid,
    link: Weak<ClientLink>,
    correlation: CorrelationId,
    last_sent: T,
}

/// The registrations of one door. `T` is the subject of a registration, with the state last sent to
/// it.
pub(crate) struct Registrations<T> {
    all: Vec<Registration<T>>,
    purge_at: usize,
}

impl<T> Default for Registrations<T> {
    fn default() -> Self {
        Self { all: Vec::new(), purge_at: 0 }
    }
}

impl<T> Registrations<T> {
    /// Adds a registration.
    ///
    /// # Errors
    /// There are `limit` registrations already.
    pub(crate) fn add(
        &mut self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        last_sent: T,
        limit: usize,
    ) -> Result<Uuid, GridError> {
        if self.all.len() >= self.purge_at.max(KEPT_UNLOOKED_AT).min(limit) {
            self.all.retain(|registration| registration.link.strong_count() > 0);
            self.purge_at = self.all.len() * 2;
        }
        if self.all.len() >= limit {
            return Err(GridError::LimitReached { what: "listeners", setting: "listeners_max", limit });
        }
        let (id, link) = (Uuid::new_v4(), Arc::downgrade(link));
        self.all.push(Registration { id, link, correlation, last_sent });
        Ok(id)
    }

    /// Removes a registration. Returns whether it existed.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        let before = self.all.len();
        self.all.retain(|registration| registration.id != id);
        self.all.len() < before
    }

    /// Calls `notify` for each registration of an open connection.
    pub(crate) fn notify(&mut self, mut notify: impl FnMut(&mut T, CorrelationId, &ClientLink)) {
        self.all.retain_mut(|registration| {
            let Some(link) = registration.link.upgrade() else { return false };
            notify(&mut registration.last_sent, registration.correlation, &link);
            true
        });
    }
}
