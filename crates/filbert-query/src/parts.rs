//! The parts of the engine that its statements share.

use std::sync::Arc;

use filbert_functions::measured::MeasuredTotal;
use filbert_grid::LayoutChanges;

use crate::config::QueryConfig;
use crate::jobs::Jobs;
use crate::plan::session::Sessions;
use crate::plans::Plans;
use crate::tables::Tables;
use crate::threads::Threads;

/// The parts of the engine.
pub(crate) struct Parts {
    pub(crate) config: QueryConfig,
    pub(crate) tables: Arc<Tables>,
    pub(crate) layout_changes: LayoutChanges,
    pub(crate) sessions: Sessions,
    /// The memory that statements hold.
    pub(crate) measured: Arc<MeasuredTotal>,
    pub(crate) threads: Threads,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) plans: Plans,
}
