//! The read view of a run, in the settings of its plan: operators find it when they begin.

use std::sync::Arc;

use datafusion::execution::config::SessionConfig;
use filbert_grid::ReadView;

/// The places from which a run reads the partitions, in the settings of a plan.
#[derive(Debug)]
pub(crate) struct ViewOfRun(ReadView);

impl ViewOfRun {
    /// The settings with the view of a run.
    pub(crate) fn added(view: &ReadView, config: SessionConfig) -> SessionConfig {
        match view.is_complete() && !view.is_pinned() {
            true => config,
            false => config.with_extension(Arc::new(ViewOfRun(view.clone()))),
        }
    }

    /// The view in the settings of a plan.
    pub(crate) fn of(config: &SessionConfig) -> ReadView {
        config.get_extension::<ViewOfRun>().map_or_else(ReadView::complete, |view| view.0.clone())
    }
}
