//! Statistics of the query engine.

/// A snapshot of the query engine's statistics. Counters start at the start of the member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineFigures {
    /// The number of cached plans.
    pub plans: usize,
    /// The number of statements with a cached plan.
    pub plan_hits: u64,
    /// The number of statements that had to be planned.
    pub plan_misses: u64,
    /// Bytes of running queries, if they are counted.
    pub memory_bytes: Option<usize>,
    /// The limit of `memory_bytes`, if there is one.
    pub memory_bytes_max: Option<usize>,
    /// The number of running statements.
    pub running: usize,
    /// The number of threads for long queries.
    pub threads: usize,
}
