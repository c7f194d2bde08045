//! The rows of the message table in `rows.rs`. Each handler provides its own rows.

use filbert_wire::Message;

use crate::{failure::Outcome, session::Session};

/// Decodes a request, executes it, and appends the reply to the session's buffer.
pub(crate) type Handler = fn(&mut Session, &Message<'_>) -> Outcome;

/// The handling of a message.
#[derive(Clone, Copy)]
pub(crate) enum Row {
    /// None: the message is unknown or not served.
    Absent,
    /// An authentication, the only kind of message with which a connection may begin.
    Authenticates(Handler),
    /// A handler answers the message.
    Served(Handler),
    /// A handler answers the message with the query engine. Without an engine it is refused.
    Queries(Handler),
    /// The message is answered with an error that contains this reason.
    Refused(&'static str),
}

/// The reason for refusing messages that contain code.
pub(crate) const SHIPS_CODE: &str = "it ships Java code, which this server does not run";
