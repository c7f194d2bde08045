//! Information that the console shows and the grid does not have. The door supplies it.

use serde::Serialize;

/// The severity of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WarningLevel {
    /// For information.
    Note,
    /// Needs attention.
    Warning,
    /// Operations fail, or will fail soon.
    Critical,
}

/// A warning for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Warning {
    pub(crate) level: WarningLevel,
    /// The problem.
    pub(crate) title: String,
    /// The consequence, and the remedy.
    pub(crate) text: String,
}

/// The information that the door supplies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// Warnings about the configuration.
    pub(crate) warnings: Vec<Warning>,
}
