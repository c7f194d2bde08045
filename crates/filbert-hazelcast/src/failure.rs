//! The errors that answer requests, and their effect on the connection.

use filbert_grid::{ErrorKind, GridError};
use filbert_wire::{
    CorrelationId, MessageId, Problem, Response, WireError,
    error_message::{ErrorHolder, ErrorMessage},
};

/// The result of a handler: the reply is in the session's buffer, or there is a failure to report.
pub(crate) type Outcome = Result<(), Box<Failure>>;

/// The error that answers a request.
///
/// | message of the client | error | connection |
/// |---|---|---|
/// | a request that the grid refuses | by the grid's table | stays open |
/// | an unknown or unserved message | `UnsupportedOperationException` naming it | stays open |
/// | a null where a value is required | `NullPointerException` | stays open |
/// | a text that is not UTF-8 | `UTFDataFormatException` | is closed |
/// | a message beyond the size limit | `MaxMessageSizeExceeded` with the numbers | is closed |
/// | frames that are not a valid message of its kind | `HazelcastException` | is closed |
/// | a first message that is not an authentication | `AuthenticationException` | is closed |
///
/// An error about a field names the message and the field.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
    /// Whether the connection must be closed after the error: the beginning of the next message, or
    /// the client's intention, is no longer certain.
    pub(crate) closes: bool,
}

impl Failure {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, text: text.into(), closes: false })
    }

    /// A known message that is not supported.
    #[cold]
    pub(crate) fn unsupported(message: MessageId, reason: &str) -> Box<Self> {
        Self::new(ErrorKind::UnsupportedOperation, format!("{message} is not supported: {reason}"))
    }

    /// A field that is well-formed but has an invalid value.
    #[cold]
    pub(crate) fn argument(message: MessageId, text: &str) -> Box<Self> {
        Self::new(ErrorKind::IllegalArgument, format!("{message}: {text}"))
    }

    /// The error, encoded as a reply.
    #[cold]
    pub(crate) fn encoded(&self, correlation: CorrelationId) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(correlation, &mut out);
        out
    }

    /// Appends the error as a reply.
    #[cold]
    pub(crate) fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>) {
        let facts = self.kind.facts();
        let holder = ErrorHolder {
            code: facts.hazelcast_code,
            class_name: facts.java_class,
            message: Some(&self.text),
            stack_trace: Vec::new(),
        };
        ErrorMessage { holders: vec![holder] }.encode(correlation, out);
    }
}

impl From<GridError> for Box<Failure> {
    #[cold]
    fn from(error: GridError) -> Self {
        Failure::new(error.kind(), error.to_string())
    }
}

impl From<WireError> for Box<Failure> {
    #[cold]
    fn from(error: WireError) -> Self {
        let (kind, closes) = match &error {
            WireError::Field { problem: Problem::Null, .. } => (ErrorKind::NullArgument, false),
            WireError::Field { problem: Problem::NotUtf8 { .. }, .. } => (ErrorKind::InvalidText, true),
            WireError::MessageTooLong { .. } => (ErrorKind::MessageTooLarge, true),
            _ => (ErrorKind::MalformedMessage, true),
        };
        Box::new(Failure { kind, text: error.to_string(), closes })
    }
}
