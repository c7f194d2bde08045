//! The errors of calls and connections, with texts for the users of the client.

use std::{sync::Arc, time::Duration};

use filbert_data::DataError;
use filbert_wire::{Message, MessageId, WireError, error_message::ErrorMessage};
use uuid::Uuid;

/// The reason why a call or a connection attempt failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No address could be connected to in time.
    #[error("no member could be reached within {timeout:?} at {addresses}; the last attempt: {last}")]
    NoMemberReached {
        /// The attempted addresses, separated by commas.
        addresses: String,
        /// [`ClientConfig::cluster_connect_timeout`](crate::ClientConfig::cluster_connect_timeout).
        timeout: Duration,
        /// The error of the last attempt.
        last: Box<ClientError>,
    },
    /// The configuration contains no address.
    #[error("no address to connect to; at least one host or host:port is expected")]
    NoAddress,
    /// One address could not be connected to.
    #[error("connecting to {address}: {source}")]
    Connect {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// A member did not answer the connection attempt in time.
    #[error("connecting to {address}: no answer within {timeout:?}")]
    ConnectTimeout {
        /// The address.
        address: String,
        /// [`ClientConfig::connect_timeout`](crate::ClientConfig::connect_timeout).
        timeout: Duration,
    },
    /// A member refused the client.
    #[error("{address} refused the client: {refusal}")]
    Refused {
        /// The member's address.
        address: String,
        /// The reason.
        refusal: Refusal,
    },
    /// The member returned an error.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// An SQL statement failed.
    #[error("{0}")]
    Sql(Box<SqlError>),
    /// The connection was lost before the response arrived. Whether the member executed the call is
    /// unknown.
    #[error("{request}: the connection to {address} was lost before the answer came: {reason}")]
    Disconnected {
        /// The request.
        request: MessageId,
        /// The member's address.
        address: Arc<str>,
        /// The reason why the connection was closed.
        reason: Arc<str>,
    },
    /// There is currently no connection to any member.
    #[error("{request}: not connected to any member at the moment")]
    NotConnected {
        /// The request.
        request: MessageId,
    },
    /// The outbox of the connection is full, or it has the maximum number of calls in flight.
    #[error("{request}: the connection to {address} holds as many calls as its limits allow")]
    Overloaded {
        /// The request.
        request: MessageId,
        /// The member's address.
        address: Arc<str>,
    },
    /// The call and its retries failed until the timeout.
    #[error("{request}: given up after {timeout:?}; the last attempt: {last}")]
    Timeout {
        /// The request.
        request: MessageId,
        /// [`ClientConfig::invocation_timeout`](crate::ClientConfig::invocation_timeout).
        timeout: Duration,
        /// The error of the last attempt.
        last: Box<ClientError>,
    },
    /// A key, a value or another serialized argument exceeds the size limit.
    #[error("{request}: a key or value of {bytes} bytes; at most {limit} are expected")]
    TooLarge {
        /// The request.
        request: MessageId,
        /// The size of the argument in bytes.
        bytes: usize,
        /// [`ClientLimits::value_bytes_max`](crate::ClientLimits::value_bytes_max).
        limit: usize,
    },
    /// A value cannot be serialized, or a value from the member cannot be read as the requested
    /// type.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A message from the member is invalid.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The client was shut down.
    #[error("the client was shut down")]
    Shutdown,
    /// The call was polled again after it had returned its result.
    #[error("the result of this call was taken already")]
    AlreadyCompleted,
}

/// The reason why a member refused the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The cluster has another name, or does not accept the credentials.
    #[error("the cluster has another name than the client's cluster_name, or does not know the credentials")]
    Credentials,
    /// The member expects another version of the serialization format.
    #[error("it expects another version of the serialization format")]
    SerializationVersion,
    /// The client is not allowed to connect to this cluster, or it has open connections to another
    /// cluster.
    #[error("the client is not allowed in this cluster")]
    NotAllowed,
    /// The member's cluster does not have the number of partitions that the client expects, or has
    /// none.
    #[error("its cluster has {found} partitions, the client's has {expected}")]
    PartitionCount {
        /// The number of partitions of the client's cluster; 0 before the first connection.
        expected: u32,
        /// The number of partitions of the member's cluster.
        found: i32,
    },
    /// A status that this version of the client does not know.
    #[error("status {0}, which this version does not know")]
    Other(u8),
}

/// An error from a member, with its causes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{request}: {}{}", short(&self.class_name), self.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default())]
pub struct ServerError {
    /// The request that failed.
    pub request: MessageId,
    /// Hazelcast's error code, see [`code`].
    pub code: i32,
    /// The class name of the Java exception that represents the error, with its package.
    pub class_name: String,
    /// The error text of the member.
    pub message: Option<String>,
    /// The causes, direct cause first: class name and message.
    pub causes: Vec<(String, Option<String>)>,
}

/// The error of an SQL statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.message, self.suggestion.as_deref().map(|text| format!("; suggested: {text}")).unwrap_or_default())]
pub struct SqlError {
    /// Hazelcast's error code, see [`sql_code`].
    pub code: i32,
    /// The error text of the member.
    pub message: String,
    /// A suggested statement, such as one that creates the mapping.
    pub suggestion: Option<String>,
    /// The member on which the statement failed; `None` if the connection to it was lost.
    pub member: Option<Uuid>,
}

impl SqlError {
    pub(crate) fn new(error: &filbert_wire::structure::SqlError<'_>) -> Self {
        Self {
            code: error.code,
            message: error.message.unwrap_or("the statement failed, and the member does not say why").to_owned(),
            suggestion: error.suggestion.map(str::to_owned),
            member: Some(error.originating_member_id),
        }
    }

    /// The error of a statement after its connection was lost.
    pub(crate) fn connection_lost() -> Self {
        Self {
            code: sql_code::CONNECTION_PROBLEM,
            message: "the connection to the member that executes the statement was lost".to_owned(),
            suggestion: None,
            member: None,
        }
    }
}

impl From<SqlError> for ClientError {
    fn from(error: SqlError) -> Self {
        ClientError::Sql(Box::new(error))
    }
}

/// Hazelcast's SQL error codes.
pub mod sql_code {
    #![allow(missing_docs, reason = "the names are Hazelcast's")]

    pub const GENERIC: i32 = -1;
    pub const CONNECTION_PROBLEM: i32 = 1001;
    pub const CANCELLED_BY_USER: i32 = 1003;
    pub const TIMEOUT: i32 = 1004;
    pub const PARTITION_DISTRIBUTION: i32 = 1005;
    pub const MAP_DESTROYED: i32 = 1006;
    pub const MAP_LOADING_IN_PROGRESS: i32 = 1007;
    pub const PARSING: i32 = 1008;
    pub const INDEX_INVALID: i32 = 1009;
    pub const OBJECT_NOT_FOUND: i32 = 1010;
    pub const DATA_EXCEPTION: i32 = 2000;
}

fn short(class_name: &str) -> &str {
    class_name.rsplit('.').next().unwrap_or(class_name)
}

/// Returns an error if the response is an error message.
pub(crate) fn refuse_error(request: MessageId, answer: &Message<'_>) -> Result<(), ClientError> {
    if answer.id() != MessageId::ERROR {
        return Ok(());
    }
    let error = answer.decode::<ErrorMessage<'_>>()?;
    Err(ClientError::Server(Box::new(ServerError::new(request, &error))))
}

impl ServerError {
    pub(crate) fn new(request: MessageId, message: &ErrorMessage<'_>) -> Self {
        let mut holders = message.holders.iter();
        let Some(first) = holders.next() else {
            return Self {
                request,
                code: code::UNDEFINED,
                class_name: "unknown error".to_owned(),
                message: None,
                causes: Vec::new(),
            };
        };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            request,
            code: first.code,
            class_name: first.class_name.to_owned(),
            message: owned(first.message),
            causes: holders.map(|holder| (holder.class_name.to_owned(), owned(holder.message))).collect(),
        }
    }

    /// Whether a retry may succeed and this attempt changed nothing.
    pub fn is_retryable(&self) -> bool {
        use code::*;
        matches!(
            self.code,
            CALLER_NOT_MEMBER
                | HAZELCAST_INSTANCE_NOT_ACTIVE
                | MEMBER_LEFT
                | PARTITION_MIGRATING
                | RETRYABLE_HAZELCAST
                | RETRYABLE_IO
                | TARGET_NOT_MEMBER
                | WRONG_TARGET
                | TARGET_NOT_REPLICA
                | CANNOT_REPLICATE
        )
    }
}

/// Hazelcast's error codes that the client or its users distinguish.
pub mod code {
    #![allow(missing_docs, reason = "the names are Hazelcast's")]

    pub const UNDEFINED: i32 = 0;
    pub const CALLER_NOT_MEMBER: i32 = 8;
    pub const HAZELCAST_INSTANCE_NOT_ACTIVE: i32 = 19;
    pub const HAZELCAST_SERIALIZATION: i32 = 21;
    pub const ILLEGAL_ARGUMENT: i32 = 23;
    pub const ILLEGAL_MONITOR_STATE: i32 = 26;
    pub const ILLEGAL_STATE: i32 = 27;
    pub const MEMBER_LEFT: i32 = 33;
    pub const NULL_POINTER: i32 = 37;
    pub const OPERATION_TIMEOUT: i32 = 38;
    pub const PARTITION_MIGRATING: i32 = 39;
    pub const QUERY: i32 = 40;
    pub const RETRYABLE_HAZELCAST: i32 = 46;
    pub const RETRYABLE_IO: i32 = 47;
    pub const SECURITY: i32 = 49;
    pub const STALE_SEQUENCE: i32 = 51;
    pub const TARGET_DISCONNECTED: i32 = 52;
    pub const TARGET_NOT_MEMBER: i32 = 53;
    pub const UNSUPPORTED_OPERATION: i32 = 61;
    pub const WRONG_TARGET: i32 = 62;
    pub const OUT_OF_MEMORY: i32 = 72;
    pub const TARGET_NOT_REPLICA: i32 = 82;
    pub const CANNOT_REPLICATE: i32 = 90;
}

impl ClientError {
    /// The error code of the member, if the error is a [`ClientError::Server`].
    pub fn code(&self) -> Option<i32> {
        match self {
            ClientError::Server(error) => Some(error.code),
            _ => None,
        }
    }

    /// Whether a call with this error is retried. `repeatable` means that the request is safe to
    /// send twice.
    pub(crate) fn is_retryable(&self, repeatable: bool) -> bool {
        match self {
            ClientError::NotConnected { .. } | ClientError::Overloaded { .. } => true,
            ClientError::Disconnected { .. } => repeatable,
            ClientError::Server(error) => {
                error.is_retryable() || (error.code == code::TARGET_DISCONNECTED && repeatable)
            }
            _ => false,
        }
    }

    /// Whether the error is permanent: another connection attempt with the same configuration
    /// cannot succeed.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            ClientError::Refused {
                refusal: Refusal::Credentials | Refusal::NotAllowed | Refusal::SerializationVersion,
                ..
            }
        )
    }
}
