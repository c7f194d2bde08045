//! What functions and catalogs see beyond their arguments: who asks, and the member.
//!
//! Plans are kept for everybody who sends the same text. What depends on who asks is therefore found out when a plan runs, in the
//! settings of its session.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{DataFusionError, Result};
use filbert_data::dates::Zone;
use filbert_grid::query::{Dialect, Session};

use crate::catalogs::oids;
use crate::cursor::Limits;
use crate::jobs::Jobs;
use crate::plan::memory::MemoryLimits;
use crate::tables::Tables;

/// The member as the engine knows it.
pub(crate) struct Server {
    pub(crate) tables: Arc<Tables>,
    pub(crate) jobs: Arc<Jobs>,
    /// The functions that there are, with the letters of their kinds and by name, once they are known.
    functions: OnceLock<Vec<(String, &'static str)>>,
    /// When the engine started.
    pub(crate) started: DateTime<Utc>,
    /// Bytes that queries may use.
    pub(crate) limits: MemoryLimits,
}

impl Server {
    pub(crate) fn new(tables: Arc<Tables>, jobs: Arc<Jobs>, limits: MemoryLimits) -> Server {
        Server { tables, jobs, started: Utc::now(), functions: OnceLock::new(), limits }
    }

    /// Notes which functions there are, in the order of their names.
    pub(crate) fn set_functions(&self, functions: Vec<(String, &'static str)>) {
        // They are the same for ever.
        let _ = self.functions.set(functions);
    }

    /// The functions that there are, with the letters of their kinds, in the order of their names.
    pub(crate) fn function_names(&self) -> &[(String, &'static str)] {
        self.functions.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// The number of a function.
    pub(crate) fn function_oid(&self, name: &str) -> Option<i64> {
        let found = self.function_names().binary_search_by(|(known, _)| known.as_str().cmp(name));
        found.ok().map(oids::of_function)
    }

    /// The name of a function's number.
    pub(crate) fn function_name(&self, oid: i64) -> Option<&str> {
        let found = self.function_names().get(oids::place_of_function(oid)?);
        found.map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("started", &self.started).finish_non_exhaustive()
    }
}

/// Who asks, when, and whom.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    server: Arc<Server>,
    session: Option<Arc<Session>>,
    /// Whose SQL it is, where that is known without a session.
    dialect: Option<Dialect>,
    /// When the statement began; none outside of statements.
    began: Option<DateTime<Utc>>,
    /// What ends the statement early.
    limits: Option<Limits>,
}

impl Surroundings {
    /// Those of a statement that begins now.
    pub(crate) fn new(server: Arc<Server>, session: Option<Arc<Session>>) -> Surroundings {
        Surroundings { server, session, dialect: None, began: Some(Utc::now()), limits: None }
    }

    /// Those of what is computed for many statements.
    pub(crate) fn lasting(server: Arc<Server>, dialect: Dialect) -> Surroundings {
        Surroundings { server, session: None, dialect: Some(dialect), began: None, limits: None }
    }

    /// Those of a plan that is made for a session, and runs later.
    pub(crate) fn planning(server: Arc<Server>, session: Option<Arc<Session>>, dialect: Dialect) -> Surroundings {
        Surroundings { server, session, dialect: Some(dialect), began: None, limits: None }
    }

    /// Those of a plan's session.
    pub(crate) fn of(options: &ConfigOptions) -> Option<&Surroundings> {
        options.extensions.get::<Surroundings>()
    }

    /// The same for a statement that is ended by these limits.
    pub(crate) fn ended_by(self, limits: Option<Limits>) -> Surroundings {
        Surroundings { limits, ..self }
    }

    /// What ends the statement early.
    pub(crate) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Whose SQL it is.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.session.as_ref().map(|session| session.dialect()).or(self.dialect)
    }

    /// The time zone of timestamps.
    pub(crate) fn zone(&self) -> Zone {
        let session = self.session.as_ref().filter(|session| session.dialect() == Dialect::Postgres);
        let zone = session.and_then(|session| session.setting("timezone"));
        zone.and_then(|zone| Zone::of_setting(&zone)).unwrap_or(Zone::UTC)
    }

    /// When the transaction began; outside of one, the statement.
    pub(crate) fn transaction_began(&self) -> DateTime<Utc> {
        let began = self.session.as_ref().and_then(|session| session.transaction_began_us());
        began.and_then(DateTime::from_timestamp_micros).unwrap_or_else(|| self.now())
    }

    /// When the statement began.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.began.unwrap_or_else(Utc::now)
    }
}

/// One run of a statement, for expressions that were planned for many: who asks, and when.
#[derive(Debug)]
pub(crate) struct Occasion {
    surroundings: Surroundings,
    /// The settings that the expressions were planned with.
    planned: Arc<ConfigOptions>,
    /// The same with the surroundings, once they are asked for.
    options: OnceLock<Arc<ConfigOptions>>,
}

impl Occasion {
    pub(crate) fn new(surroundings: Surroundings, planned: Arc<ConfigOptions>) -> Occasion {
        Occasion { surroundings, planned, options: OnceLock::new() }
    }

    /// The same for a statement that is ended by these limits.
    pub(crate) fn ended_by(self, limits: Option<Limits>) -> Occasion {
        Occasion { surroundings: self.surroundings.ended_by(limits), ..self }
    }

    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// When the statement began.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.surroundings.now()
    }

    /// What functions see.
    pub(crate) fn options(&self) -> &Arc<ConfigOptions> {
        self.options.get_or_init(|| {
            let mut options = (*self.planned).clone();
            options.extensions.insert(self.surroundings.clone());
            Arc::new(options)
        })
    }
}

impl ConfigExtension for Surroundings {
    const PREFIX: &'static str = "surroundings";
}

impl ExtensionOptions for Surroundings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} is not for setting")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
