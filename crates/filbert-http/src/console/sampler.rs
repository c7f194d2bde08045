//! Takes a sample of the member every two seconds, and keeps it. This is the only place that
//! collects statistics for the console.
//!
//! With very many maps a sample takes long. The pause grows with this time, so that sampling takes
//! at most a twentieth of one processor.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_grid::Grid;
use parking_lot::RwLock;
use tokio::runtime::Handle;

use super::latency::Durations;
use super::maps::MapFigures;
use super::samples::{Sample, Samples};
use super::{machine, maps};

/// The minimum time between two samples. 2 s: the charts move, and a sample takes some microseconds
/// for each map.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

/// The minimum ratio of the pause to the duration of the last sample.
const PAUSE_PER_LOOK: u32 = 20;

/// Keeps the samples. Sampling ends when this is dropped.
pub(super) struct Sampler {
    samples: RwLock<Samples>,
}

impl Sampler {
    /// Takes the first sample, and continues in a task of the current runtime. Without a runtime
    /// there is only the first sample.
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

    /// The statistics of maps in the newest sample.
    pub(super) fn maps(&self) -> Arc<Vec<MapFigures>> {
        self.samples.read().maps()
    }

    /// The samples after a time.
    pub(super) fn since(&self, at_ms: i64) -> Vec<Sample> {
        self.samples.read().since(at_ms)
    }
}

async fn run(sampler: Weak<Sampler>, grid: Weak<Grid>) {
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let (Some(sampler), Some(grid)) = (sampler.upgrade(), grid.upgrade()) else { return };
        // Sampling waits for locks of partitions, which a network task must not do.
        let looked = tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            sampler.look(&grid);
            start.elapsed()
        });
        let Ok(took) = looked.await else { return };
        pause = INTERVAL.max(took.saturating_mul(PAUSE_PER_LOOK));
    }
}
