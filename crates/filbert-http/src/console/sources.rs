//! What the console shows that the grid does not know: whoever opens the door brings it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::latency::LatencyCounts;

/// Figures of one front door.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DoorFigures {
    /// Its protocol, such as `HTTP`.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) address: String,
    /// Open connections.
    pub(crate) connections: usize,
}

/// How much a warning matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WarningLevel {
    /// Good to know.
    Note,
    /// Somebody should look.
    Warning,
    /// Operations fail, or will soon.
    Critical,
}

/// What somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Warning {
    pub(crate) level: WarningLevel,
    /// What is so.
    pub(crate) title: String,
    /// What follows from it, and what to do.
    pub(crate) text: String,
}

type Ask<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// Where the console asks. The functions are called every two seconds and must not block.
#[derive(Clone)]
pub(crate) struct Sources {
    /// The front doors.
    pub(crate) doors: Ask<Vec<DoorFigures>>,
    /// How long statements and operations took since the start.
    pub(crate) latency: Ask<LatencyCounts>,
    /// Statements that ran since the start.
    pub(crate) statements: Ask<u64>,
    /// What is to be said of the configuration.
    pub(crate) warnings: Ask<Vec<Warning>>,
}

impl Default for Sources {
    fn default() -> Self {
        Sources {
            doors: Arc::new(Vec::new),
            latency: Arc::new(LatencyCounts::default),
            statements: Arc::new(|| 0),
            warnings: Arc::new(Vec::new),
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}
