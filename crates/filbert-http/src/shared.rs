//! The state that all connections of a door share: the grid, the settings, counters, and the memory
//! of bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use axum::http::StatusCode;
use filbert_grid::metrics::{DoorFigures, DoorMetrics};
use filbert_grid::query::QueryEngine;
use filbert_grid::{Grid, MemberState, MemoryBudget};
use filbert_listen::Guesses;

use crate::config::HttpConfig;
use crate::failure::Failure;

/// The paths with separate response counters. The last one stands for all other paths.
pub(crate) const ROUTES: [&str; 6] = ["/_sql", "/metrics", "/_health", "/_ready", "/", "other"];

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) grid: Arc<Grid>,
    /// The settings. `listen` is the actual address.
    pub(crate) config: HttpConfig,
    pub(crate) started: Instant,
    pub(crate) counters: Counters,
    /// The memory of bodies that are being received or processed, and of their parsed values.
    pub(crate) bodies: MemoryBudget,
    pub(crate) guesses: Guesses,
    pub(crate) stopping: AtomicBool,
}

/// The counters of the door.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) requests: AtomicU64,
    /// The number of responses by path and class of status.
    pub(crate) answers: [[AtomicU64; 5]; ROUTES.len()],
}

impl Counters {
    /// Counts a response.
    pub(crate) fn answered(&self, path: &str, status: StatusCode) {
        let route = ROUTES.iter().position(|route| *route == path).unwrap_or(ROUTES.len() - 1);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answers.get(route).and_then(|by_class| by_class.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    pub(crate) fn new(grid: Arc<Grid>, config: HttpConfig) -> Shared {
        let (counters, stopping) = Default::default();
        let bodies = grid.budget().share(config.bodies_bytes_max, "bodies_bytes_max");
        let guesses = Guesses::new(config.guesses);
        Shared { grid, config, started: Instant::now(), counters, bodies, guesses, stopping }
    }

    /// Returns the engine, or an error if there is none.
    pub(crate) fn engine(&self) -> Result<&Arc<dyn QueryEngine>, Failure> {
        self.grid.queries().ok_or_else(|| Failure::unsupported("statements are not switched on in this server"))
    }

    /// Whether requests are served.
    pub(crate) fn is_serving(&self) -> bool {
        self.grid.is_active() && !self.stopping.load(Ordering::Acquire)
    }

    /// Whether this member is about to leave its cluster. It serves requests until then.
    pub(crate) fn is_leaving(&self) -> bool {
        let status = self.grid.cluster().and_then(|cluster| cluster.status());
        let here = status.as_ref().and_then(|status| status.member(status.member));
        here.is_some_and(|member| member.state == MemberState::Leaving)
    }

    /// Bytes of bodies that are being received or processed.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bodies.used()
    }
}

impl DoorMetrics for Shared {
    fn figures(&self) -> DoorFigures {
        DoorFigures {
            name: "http",
            address: self.config.listen,
            connections: self.counters.connections.load(Ordering::Relaxed),
            accepted: self.counters.accepted.load(Ordering::Relaxed),
            refused: self.counters.refused.load(Ordering::Relaxed),
            buffer_bytes: self.body_bytes(),
        }
    }
}
