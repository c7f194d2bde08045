//! The context of system relations: the member, the session, and the content of the catalog.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use filbert_functions::context::StatementContext;
use filbert_grid::query::{Dialect, Session};
use filbert_grid::{PartitionId, ReadView};

use super::facts::{Facts, RelationFacts};
use crate::server::{Server, ServerOfSession};
use crate::session;

/// The schema of names without one, in PostgreSQL.
pub(crate) const PUBLIC: &str = "public";
/// The schema of names without one, in CrateDB.
pub(crate) const DOC: &str = "doc";

/// A snapshot of the member as a session sees it.
pub(crate) struct Scene {
    pub(crate) server: Arc<Server>,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) dialect: Dialect,
    /// The places from which the statement reads the partitions.
    view: ReadView,
    facts: OnceCell<Facts>,
}

impl Scene {
    pub(crate) fn new(server: Arc<Server>, session: Option<Arc<Session>>, dialect: Dialect) -> Scene {
        Scene { server, session, dialect, view: ReadView::complete(), facts: OnceCell::new() }
    }

    /// The scene of a statement that reads the partitions at these places.
    pub(crate) fn reading(self, view: ReadView) -> Scene {
        Scene { view, ..self }
    }

    /// The context of a function that is called with these settings.
    pub(crate) fn of(options: &ConfigOptions) -> Option<Scene> {
        let session = StatementContext::of(options)?.session().cloned();
        let dialect = session.as_ref().map_or(Dialect::Postgres, |session| session.dialect());
        Some(Scene::new(ServerOfSession::of(options)?.clone(), session, dialect))
    }

    /// The content of the catalog; read on first use.
    pub(crate) fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| Facts::of(&self.server.tables, self.default_schema()))
    }

    /// The number of rows of a relation. If this member does not hold all partitions: an estimate
    /// from the partitions that it holds; `None` if it holds none. Keys are spread evenly over
    /// partitions.
    pub(crate) fn rows_of(&self, relation: &RelationFacts) -> Option<usize> {
        let Some(map) = &relation.map else { return Some(0) };
        let here: Vec<PartitionId> =
            (0..map.partition_count()).map(PartitionId).filter(|id| self.view.is_here(*id)).collect();
        self.of_all(map.size_of(&here), here.len(), map.partition_count())
    }

    /// The size of the rows of a relation in bytes, as [`Scene::rows_of`].
    pub(crate) fn bytes_of(&self, relation: &RelationFacts) -> Option<usize> {
        let Some(map) = &relation.map else { return Some(0) };
        let here = (0..map.partition_count()).filter(|id| self.view.is_here(PartitionId(*id))).count();
        self.of_all(relation.bytes_here(), here, map.partition_count())
    }

    /// The figure of all partitions, by the figure of some.
    fn of_all(&self, found: usize, here: usize, partitions: u32) -> Option<usize> {
        if self.view.is_complete() {
            return Some(found);
        }
        let partitions = usize::try_from(partitions).unwrap_or(usize::MAX);
        found.saturating_mul(partitions).checked_div(here)
    }

    /// The schema of names without one.
    pub(crate) fn default_schema(&self) -> &'static str {
        default_schema(self.dialect)
    }

    /// The user of the session.
    pub(crate) fn user(&self) -> &str {
        self.session.as_ref().map_or("filbert", |session| session.user())
    }

    /// The number of partitions.
    pub(crate) fn partitions(&self) -> i64 {
        self.server.tables.grid().map_or(0, |grid| i64::from(grid.partition_count()))
    }

    /// The member's id.
    pub(crate) fn node_id(&self) -> String {
        self.server.tables.grid().map_or_else(|_| String::new(), |grid| grid.member_uuid().to_string())
    }

    /// The member's name.
    pub(crate) fn node_name(&self) -> String {
        self.server.tables.grid().map_or_else(|_| String::new(), |grid| grid.cluster_name().to_owned())
    }

    /// The database's name.
    pub(crate) fn database(&self) -> String {
        session::database(self.session.as_deref(), self.dialect)
    }
}

/// The schema of names without one.
pub(crate) fn default_schema(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Crate => DOC,
        Dialect::Hazelcast | Dialect::Postgres => PUBLIC,
    }
}
