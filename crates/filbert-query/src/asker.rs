//! Who asks: what a statement's session means for understanding it.

use std::borrow::Cow;
use std::sync::Arc;

use filbert_grid::query::{Dialect, Session};

/// Who asks, for as long as a statement lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    session: Option<Arc<Session>>,
}

impl Asker {
    pub(crate) fn new(session: Option<&Arc<Session>>) -> Asker {
        Asker { session: session.cloned() }
    }

    /// Whose SQL it is.
    pub(crate) fn dialect(&self) -> Dialect {
        dialect_of(self.session.as_ref())
    }

    /// The session, if the door has one.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }
}

/// Whose SQL the statements of a session are.
pub(crate) fn dialect_of(session: Option<&Arc<Session>>) -> Dialect {
    session.map_or_else(Dialect::default, |session| session.dialect())
}

/// What tells a plan from others of the same dialect: the text, the schemas that names without one are looked for in, and the time zone
/// that timestamps of texts are in.
pub(crate) fn plan_key<'t>(session: Option<&Arc<Session>>, text: &'t str) -> Cow<'t, str> {
    match session.and_then(|session| session.planned_by()) {
        Some(settings) => Cow::Owned(format!("{settings}{text}")),
        None => Cow::Borrowed(text),
    }
}
