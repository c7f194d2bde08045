//! The parts of the engine that its statements share.

use std::sync::Arc;

use filbert_functions::measured::MeasuredTotal;
use filbert_grid::ReadView;
use filbert_grid::query::SqlError;

use crate::config::QueryConfig;
use crate::jobs::Jobs;
use crate::plan::session::Sessions;
use crate::plan_sources::Changes;
use crate::plans::Plans;
use crate::tables::Tables;
use crate::threads::Threads;

/// The first words of statements about the session alone.
const OF_SESSION: [&str; 12] = [
    "set",
    "reset",
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "discard",
    "deallocate",
    "savepoint",
    "release",
];

/// The parts of the engine.
pub(crate) struct Parts {
    pub(crate) config: QueryConfig,
    pub(crate) tables: Arc<Tables>,
    pub(crate) changes: Changes,
    pub(crate) sessions: Sessions,
    /// The memory that statements hold.
    pub(crate) measured: Arc<MeasuredTotal>,
    pub(crate) threads: Threads,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) plans: Plans,
}

impl Parts {
    /// The places from which a statement reads the partitions, once this member has caught up with
    /// the others. A statement about the session waits for no other member.
    ///
    /// # Errors
    /// This member cannot answer statements now: it does not reach the other members.
    pub(crate) async fn view_for(&self, text: &str) -> Result<ReadView, SqlError> {
        let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        match OF_SESSION.iter().any(|word| first.eq_ignore_ascii_case(word)) {
            true => Ok(ReadView::complete()),
            false => self.tables.catch_up().await,
        }
    }
}
