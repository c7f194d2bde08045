//! The member as system functions and system relations see it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use filbert_functions::settings::{self, InSettings};
use filbert_grid::query::AdvisoryLocks;

use crate::jobs::Jobs;
use crate::memory::MemoryLimits;
use crate::oids;
use crate::tables::Tables;

/// The member as system functions and system relations see it.
pub(crate) struct Server {
    pub tables: Arc<Tables>,
    pub jobs: Arc<Jobs>,
    /// The advisory locks of sessions.
    pub locks: Arc<AdvisoryLocks>,
    /// The functions, sorted by name, with the characters of their kinds; set once.
    functions: OnceLock<Vec<(String, &'static str)>>,
    /// The start time of the engine.
    pub started: DateTime<Utc>,
    /// Memory limits of queries.
    pub limits: MemoryLimits,
}

impl Server {
    pub(crate) fn new(tables: Arc<Tables>, jobs: Arc<Jobs>, limits: MemoryLimits) -> Server {
        Server { tables, jobs, locks: Arc::default(), started: Utc::now(), functions: OnceLock::new(), limits }
    }

    /// Sets the functions, sorted by name.
    pub(crate) fn set_functions(&self, functions: Vec<(String, &'static str)>) {
        // The functions never change, so a second call is harmless.
        let _ = self.functions.set(functions);
    }

    /// The functions, sorted by name, with the characters of their kinds.
    pub(crate) fn function_names(&self) -> &[(String, &'static str)] {
        self.functions.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// The OID of a function.
    pub(crate) fn function_oid(&self, name: &str) -> Option<i64> {
        let found = self.function_names().binary_search_by(|(known, _)| known.as_str().cmp(name));
        found.ok().map(oids::of_function)
    }

    /// The name of the function with this OID.
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

/// The member, in the settings of every session. Functions about the catalog find it there.
#[derive(Clone, Debug)]
pub(crate) struct ServerOfSession(pub(crate) Arc<Server>);

impl ServerOfSession {
    /// The member from the settings of a plan's session.
    pub(crate) fn of(options: &ConfigOptions) -> Option<&Arc<Server>> {
        settings::find::<ServerOfSession>(options).map(|found| &found.0)
    }
}

impl InSettings for ServerOfSession {
    const NAME: &'static str = "server";
}
