//! What the console shows that the grid does not know: whoever opens the door brings it.

use serde::Serialize;

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

/// What the door tells the console.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// What is to be said of the configuration.
    pub(crate) warnings: Vec<Warning>,
}
