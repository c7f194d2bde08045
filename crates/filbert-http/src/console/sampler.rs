//! Looks at the member every two seconds and keeps what it saw: the one place that gathers figures for the console.
//!
//! With very many maps a look takes long; the pause grows with it, so that looking takes a twentieth of one processor at most.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_grid::Grid;
use parking_lot::RwLock;
use tokio::runtime::Handle;

use super::latency::Durations;
use super::maps::MapFigures;
use super::samples::{Sample, Samples};
use super::{machine, maps};

/// Between two looks. Default 2 s: charts move, and a look takes some microseconds for each map.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

/// The pause is at least this many times as long as the look.
const PAUSE_PER_LOOK: u32 = 20;

/// Keeps samples for as long as it is held.
pub(super) struct Sampler {
    samples: RwLock<Samples>,
}

impl Sampler {
    /// Looks once, and goes on in a task of the current runtime; without a runtime it stays with the first look.
    pub(super) fn start(grid: &Arc<Grid>) -> Arc<Sampler> {
        let sampler = Arc::new(Sampler { samples: RwLock::default() });
        if let Ok(runtime) = Handle::try_current() {
            sampler.look(grid);
            runtime.spawn(run(Arc::downgrade(&sampler), Arc::downgrade(grid)));
        } else {
            tracing::warn!("the console keeps no samples, as it was made outside of a tokio runtime");
            sampler.look(grid);
        }
        sampler
    }

    fn look(&self, grid: &Grid) {
        let maps = maps::list(grid);
        let (operations, statements) = (Durations::of_operations(grid), Durations::of_statements(grid));
        let kinds = grid.metrics().statements();
        let process = machine::process();
        let statistics = grid.statistics();
        let sample = Sample {
            at_ms: grid.now().0,
            statements: kinds.iter().map(|kind| kind.succeeded + kind.failed).sum(),
            statements_failed: kinds.iter().map(|kind| kind.failed).sum(),
            entries: maps.iter().map(|map| map.entries).sum(),
            memory_bytes: statistics.memory_bytes,
            resident_bytes: process.resident_bytes,
            cpu_ms: process.cpu_ms,
            connections: grid.metrics().doors().iter().map(|door| door.connections).sum(),
            ..Sample::default()
        };
        self.samples.write().push(sample, maps, operations, statements);
    }

    /// Figures of maps as of the newest sample.
    pub(super) fn maps(&self) -> Arc<Vec<MapFigures>> {
        self.samples.read().maps()
    }

    /// Samples later than a moment.
    pub(super) fn since(&self, at_ms: i64) -> Vec<Sample> {
        self.samples.read().since(at_ms)
    }
}

async fn run(sampler: Weak<Sampler>, grid: Weak<Grid>) {
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let (Some(sampler), Some(grid)) = (sampler.upgrade(), grid.upgrade()) else { return };
        // Locks of partitions are waited for: not on a network task.
        let looked = tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            sampler.look(&grid);
            start.elapsed()
        });
        let Ok(took) = looked.await else { return };
        pause = INTERVAL.max(took.saturating_mul(PAUSE_PER_LOOK));
    }
}
