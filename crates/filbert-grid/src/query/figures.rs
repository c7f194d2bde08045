//! Figures of the engine at one moment.

/// Figures of the engine at one moment. Counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineFigures {
    /// Plans that are kept.
    pub plans: usize,
    /// Statements whose plan was there.
    pub plan_hits: u64,
    /// Statements whose plan had to be made.
    pub plan_misses: u64,
    /// Bytes that running queries hold, if they are counted.
    pub memory_bytes: Option<usize>,
    /// The limit of them, if there is one.
    pub memory_bytes_max: Option<usize>,
    /// Threads for what takes long.
    pub threads: usize,
}
