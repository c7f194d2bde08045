//! The samples: the newest statistics of maps, and a period of the past for the charts.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::latency::{Durations, Percentiles};
use super::maps::{Counters, MapFigures};

/// The number of samples that are kept. 450, a quarter of an hour: an operator who is called
/// because of a slow system can still see how it began.
pub(super) const SAMPLES_MAX: usize = 450;

/// The state of the member at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sample {
    /// Unix milliseconds.
    pub(super) at_ms: i64,
    /// The counters of all maps since the start, including maps that were destroyed.
    #[serde(flatten)]
    pub(super) counters: Counters,
    /// The number of statements since the start, including failed ones.
    pub(super) statements: u64,
    pub(super) statements_failed: u64,
    /// The durations of map operations since the previous sample.
    pub(super) operation: Percentiles,
    /// The durations of statements since the previous sample.
    pub(super) statement: Percentiles,
    pub(super) entries: usize,
    /// The memory of all maps in bytes.
    pub(super) memory_bytes: usize,
    /// The resident memory of the process in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// The processor time of the process since its start.
    pub(super) cpu_ms: Option<u64>,
    pub(super) connections: usize,
}

/// The newest statistics of maps, the past samples, and the state that is needed for the next
/// sample.
#[derive(Default)]
pub(super) struct Samples {
    ring: VecDeque<Sample>,
    maps: Arc<Vec<MapFigures>>,
    counters: Counters,
    by_map: HashMap<String, Counters>,
    operations: Durations,
    statements: Durations,
}

impl Samples {
    /// Adds a sample. Percentiles and the counters of all maps are computed here.
    pub(super) fn push(
        &mut self,
        mut sample: Sample,
        maps: Vec<MapFigures>,
        operations: Durations,
        statements: Durations,
    ) {
        let first = self.ring.is_empty();
        for map in &maps {
            let before = self.by_map.get(&map.name).copied().unwrap_or_default();
            self.counters.add_since(&map.counters, &before);
        }
        self.by_map = maps.iter().map(|map| (map.name.clone(), map.counters)).collect();
        sample.counters = self.counters;
        if !first {
            sample.operation = operations.since(&self.operations);
            sample.statement = statements.since(&self.statements);
        }
        self.operations = operations;
        self.statements = statements;
        self.maps = Arc::new(maps);
        if self.ring.len() >= SAMPLES_MAX {
            self.ring.pop_front();
        }
        self.ring.push_back(sample);
    }

    /// The statistics of maps in the newest sample.
    pub(super) fn maps(&self) -> Arc<Vec<MapFigures>> {
        self.maps.clone()
    }

    /// The samples after a time, in order.
    pub(super) fn since(&self, at_ms: i64) -> Vec<Sample> {
        self.ring.iter().filter(|sample| sample.at_ms > at_ms).cloned().collect()
    }
}
