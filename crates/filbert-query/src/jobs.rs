//! Jobs: the statements that run.

use filbert_grid::query::Session;

/// What is known of the statements that run.
#[derive(Debug, Default)]
pub(crate) struct Jobs {}

impl Jobs {
    /// Ends what a session runs; whether there was anything.
    pub(crate) fn cancel_process(&self, _process: i32) -> bool {
        false
    }
}

/// The number by which a session is known to its client.
pub(crate) fn process_of(session: &Session) -> i32 {
    session.setting("process").and_then(|process| process.parse().ok()).unwrap_or(0)
}
