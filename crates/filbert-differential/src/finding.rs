//! A found difference.

use std::fmt::Write as _;

use crate::compare::Kind;

/// A difference, with a minimized statement.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// `postgres`, `hazelcast` or `crate`.
    pub(crate) dialect: &'static str,
    /// The way, the variant, and the position in the run.
    pub(crate) place: String,
    /// Statements that create the required objects.
    pub(crate) setup: Vec<String>,
    pub(crate) statement: String,
    pub(crate) other: String,
    pub(crate) filbert: String,
}

impl Finding {
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("--- {} [{}, {}]\n", self.kind.name(), self.dialect, self.place);
        for statement in self.setup.iter().chain([&self.statement]) {
            let _ = writeln!(text, "{statement};");
        }
        let _ = writeln!(text, "-- expected: {}\n-- filbert:  {}", self.other, self.filbert);
        text
    }
}
