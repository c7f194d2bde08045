//! What the sampler saw: the newest figures, and a stretch of the past for the charts.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::latency::{Durations, Percentiles};
use super::maps::{Counters, MapFigures};

/// Samples that are kept. Default 450, a quarter of an hour: who is called because something was slow sees how it came.
pub(super) const SAMPLES_MAX: usize = 450;

/// The member at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sample {
    /// Unix milliseconds.
    pub(super) at_ms: i64,
    /// Of all maps since the start, those that were dropped included.
    #[serde(flatten)]
    pub(super) counters: Counters,
    /// Statements since the start, those that failed included.
    pub(super) statements: u64,
    pub(super) statements_failed: u64,
    /// How long operations on maps took since the sample before.
    pub(super) operation: Percentiles,
    /// How long statements took since the sample before.
    pub(super) statement: Percentiles,
    pub(super) entries: usize,
    /// Bytes of all maps.
    pub(super) memory_bytes: usize,
    /// Bytes of the process in memory.
    pub(super) resident_bytes: Option<u64>,
    /// Processor time of the process since its start.
    pub(super) cpu_ms: Option<u64>,
    pub(super) connections: usize,
}

/// The newest figures of maps, the past, and what is needed to compute the next sample.
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
    /// Takes what was seen now; percentiles and counters of all maps are computed here.
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

    /// Figures of maps as of the newest sample.
    pub(super) fn maps(&self) -> Arc<Vec<MapFigures>> {
        self.maps.clone()
    }

    /// Samples later than a moment, in order.
    pub(super) fn since(&self, at_ms: i64) -> Vec<Sample> {
        self.ring.iter().filter(|sample| sample.at_ms > at_ms).cloned().collect()
    }
}
