//! The statement context of one run.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use filbert_functions::context::StatementContext;
use filbert_functions::ending::Limits;
use filbert_functions::settings;
use filbert_grid::{Map, ReadView};

use crate::server::{Server, ServerOfSession};

/// One run of a statement, with its session and its start time. Its expressions were planned for
/// many runs.
#[derive(Debug)]
pub(crate) struct Execution {
    context: StatementContext,
    /// The places from which it reads the partitions.
    view: ReadView,
    /// The settings that the expressions were planned with.
    planned: Arc<ConfigOptions>,
    /// The planned settings with the statement context; built on first use.
    options: OnceLock<Arc<ConfigOptions>>,
}

impl Execution {
    pub(crate) fn new(context: StatementContext, planned: Arc<ConfigOptions>) -> Execution {
        Execution { context, view: ReadView::complete(), planned, options: OnceLock::new() }
    }

    /// Returns this run with the places from which it reads the partitions.
    pub(crate) fn reading(self, view: &ReadView) -> Execution {
        Execution { view: view.clone(), ..self }
    }

    /// The places from which it reads the partitions.
    pub(crate) fn view(&self) -> &ReadView {
        &self.view
    }

    /// This run for rows that are computed again, because others have changed the entries of these
    /// keys: it reads them at their leaders.
    pub(crate) fn again<'k>(&self, map: &Map, keys: impl IntoIterator<Item = &'k [u8]>) -> Execution {
        let view = map.view_at_leaders(&self.view, keys);
        Execution::new(self.context.clone(), self.planned.clone()).reading(&view)
    }

    /// Returns this run for a statement with these limits.
    pub(crate) fn ended_by(self, limits: Option<Limits>) -> Execution {
        Execution { context: self.context.ended_by(limits), ..self }
    }

    pub(crate) fn context(&self) -> &StatementContext {
        &self.context
    }

    /// The member, if the settings contain it.
    pub(crate) fn server(&self) -> Option<&Arc<Server>> {
        ServerOfSession::of(&self.planned)
    }

    /// The start time of the transaction, or of the statement outside of one.
    pub(crate) fn transaction_began(&self) -> DateTime<Utc> {
        self.context.transaction_began()
    }

    /// The settings that functions see.
    pub(crate) fn options(&self) -> &Arc<ConfigOptions> {
        self.options.get_or_init(|| {
            let mut options = (*self.planned).clone();
            settings::insert(&mut options, self.context.clone());
            Arc::new(options)
        })
    }
}
