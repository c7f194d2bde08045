//! Registrations of clients for events that a door tells of by itself: of one kind of event, and what each was told last.

use std::sync::{Arc, Weak};

use filbert_grid::GridError;
use filbert_wire::{CorrelationId, Uuid};

use crate::link::Link;

/// Registrations up to which nobody looks for those of connections that are gone.
const KEPT_UNLOOKED_AT: usize = 64;

struct Registration<T> {
    id: Uuid,
    link: Weak<Link>,
    correlation: CorrelationId,
    told: T,
}

/// The registrations of one door; `T` is what one asks for, and what it was told last.
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
    /// There are `limit` already.
    pub(crate) fn add(
        &mut self,
        link: &Arc<Link>,
        correlation: CorrelationId,
        told: T,
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
        self.all.push(Registration { id, link, correlation, told });
        Ok(id)
    }

    /// Removes a registration; whether there was one.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        let before = self.all.len();
        self.all.retain(|registration| registration.id != id);
        self.all.len() < before
    }

    /// Has `tell` look at each registration of a connection that is there.
    pub(crate) fn tell(&mut self, mut tell: impl FnMut(&mut T, CorrelationId, &Link)) {
        self.all.retain_mut(|registration| {
            let Some(link) = registration.link.upgrade() else { return false };
            tell(&mut registration.told, registration.correlation, &link);
            true
        });
    }
}
