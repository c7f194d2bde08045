//! The member as the engine knows it, for functions and relations of the system.

use std::fmt;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use filbert_functions::settings::{self, InSettings};

use crate::jobs::Jobs;
use crate::memory::MemoryLimits;
use crate::oids;
use crate::tables::Tables;

/// The member as the engine knows it.
pub(crate) struct Server {
    pub tables: Arc<Tables>,
    pub jobs: Arc<Jobs>,
    /// The functions that there are, with the letters of their kinds and by name, once they are known.
    functions: OnceLock<Vec<(String, &'static str)>>,
    /// When the engine started.
    pub started: DateTime<Utc>,
    /// Bytes that queries may use.
    pub limits: MemoryLimits,
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

/// The member, in the settings of every session: functions about the catalog find it there.
#[derive(Clone, Debug)]
pub(crate) struct ServerOfSession(pub(crate) Arc<Server>);

impl ServerOfSession {
    /// The member in the settings of a plan's session.
    pub(crate) fn of(options: &ConfigOptions) -> Option<&Arc<Server>> {
        settings::find::<ServerOfSession>(options).map(|found| &found.0)
    }
}

impl InSettings for ServerOfSession {
    const NAME: &'static str = "server";
}
