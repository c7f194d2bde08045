//! What all connections of a door share: the grid, the settings, counters, and the room for bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use filbert_grid::Grid;
use filbert_grid::query::QueryEngine;

use crate::HttpConfig;
use crate::failure::Failure;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) grid: Arc<Grid>,
    pub(crate) config: HttpConfig,
    pub(crate) counters: Counters,
    /// Bytes of bodies that are being received or worked on.
    bodies: AtomicUsize,
    pub(crate) stopping: AtomicBool,
}

/// What the door counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) requests: AtomicU64,
}

impl Shared {
    pub(crate) fn new(grid: Arc<Grid>, config: HttpConfig) -> Shared {
        let (counters, bodies, stopping) = Default::default();
        Shared { grid, config, counters, bodies, stopping }
    }

    /// The engine, or why there is none.
    pub(crate) fn engine(&self) -> Result<&Arc<dyn QueryEngine>, Failure> {
        self.grid.queries().ok_or_else(|| Failure::unsupported("statements are not switched on in this server"))
    }

    /// Whether requests are served.
    pub(crate) fn is_serving(&self) -> bool {
        self.grid.is_active() && !self.stopping.load(Ordering::Acquire)
    }

    /// Bytes of bodies that are being received or worked on.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bodies.load(Ordering::Relaxed)
    }
}

/// Room that a body takes; given back when it is dropped.
pub(crate) struct Room {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(shared: Arc<Shared>) -> Room {
        Room { shared, bytes: 0 }
    }

    /// Takes more room.
    ///
    /// # Errors
    /// There is none left, for this body or for all.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let config = &self.shared.config;
        if self.bytes.saturating_add(bytes) > config.body_bytes_max {
            return Err(Failure::body_too_large(config.body_bytes_max));
        }
        let before = self.shared.bodies.fetch_add(bytes, Ordering::AcqRel);
        self.bytes += bytes;
        if before.saturating_add(bytes) > config.bodies_bytes_max {
            return Err(Failure::too_many_bodies(config.bodies_bytes_max));
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.bodies.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
