//! Runs of a statement.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use filbert_functions::context::StatementContext;
use filbert_functions::ending::Limits;
use filbert_functions::settings;

use crate::server::{Server, ServerOfSession};

/// One run of a statement, for expressions that were planned for many: who asks, and when.
#[derive(Debug)]
pub(crate) struct Occasion {
    context: StatementContext,
    /// The settings that the expressions were planned with.
    planned: Arc<ConfigOptions>,
    /// The same with the context, once they are asked for.
    options: OnceLock<Arc<ConfigOptions>>,
}

impl Occasion {
    pub(crate) fn new(context: StatementContext, planned: Arc<ConfigOptions>) -> Occasion {
        Occasion { context, planned, options: OnceLock::new() }
    }

    /// The same for a statement that is ended by these limits.
    pub(crate) fn ended_by(self, limits: Option<Limits>) -> Occasion {
        Occasion { context: self.context.ended_by(limits), ..self }
    }

    pub(crate) fn context(&self) -> &StatementContext {
        &self.context
    }

    /// The member, where the settings know it.
    pub(crate) fn server(&self) -> Option<&Arc<Server>> {
        ServerOfSession::of(&self.planned)
    }

    /// When the statement began.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.context.now()
    }

    /// What functions see.
    pub(crate) fn options(&self) -> &Arc<ConfigOptions> {
        self.options.get_or_init(|| {
            let mut options = (*self.planned).clone();
            settings::insert(&mut options, self.context.clone());
            Arc::new(options)
        })
    }
}
