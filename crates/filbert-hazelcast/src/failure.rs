//! Why a request is answered with an error, and whether its connection goes on after that.

use filbert_grid::{ErrorKind, GridError};
use filbert_wire::{
    CorrelationId, MessageId, Problem, Response, WireError,
    error_message::{ErrorHolder, ErrorMessage},
};

/// What a handler answers: the reply is in the session's buffer, or there is a failure to tell.
pub(crate) type Outcome = Result<(), Box<Failure>>;

/// The error that answers a request.
///
/// | what the client sent | error | connection |
/// |---|---|---|
/// | a request that the grid refuses | by the grid's table | goes on |
/// | a message that is not served, or not known | `UnsupportedOperationException` naming it | goes on |
/// | a null where a value is required | `NullPointerException` naming message and field | goes on |
/// | text that is not UTF-8 | `UTFDataFormatException` naming message and field | is closed |
/// | a message beyond the limit | `MaxMessageSizeExceeded` with the numbers | is closed |
/// | frames that are no message, or not this message | `HazelcastException` naming message and field | is closed |
/// | anything but an authentication at first | `AuthenticationException` | is closed |
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
    /// Whether the connection must be closed once the error is sent: where the next message begins, or what the client
    /// means, is not certain any more.
    pub(crate) closes: bool,
}

impl Failure {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, text: text.into(), closes: false })
    }

    /// A message of the table that is not served.
    #[cold]
    pub(crate) fn unsupported(message: MessageId, reason: &str) -> Box<Self> {
        Self::new(ErrorKind::UnsupportedOperation, format!("{message} is not supported: {reason}"))
    }

    /// A field that is well-formed and makes no sense.
    #[cold]
    pub(crate) fn argument(message: MessageId, text: &str) -> Box<Self> {
        Self::new(ErrorKind::IllegalArgument, format!("{message}: {text}"))
    }

    /// Appends the error as the reply.
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
