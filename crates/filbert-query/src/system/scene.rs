//! The context of system relations: the member, the session, and the content of the catalog.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use filbert_functions::context::StatementContext;
use filbert_grid::query::{Dialect, Session};

use super::facts::Facts;
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
    facts: OnceCell<Facts>,
}

impl Scene {
    pub(crate) fn new(server: Arc<Server>, session: Option<Arc<Session>>, dialect: Dialect) -> Scene {
        Scene { server, session, dialect, facts: OnceCell::new() }
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
