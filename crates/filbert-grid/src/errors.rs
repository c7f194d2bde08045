//! The errors of a member, and the single table that maps them to the codes of each protocol.
//!
//! A front door never chooses a code by itself: it has a [`GridError`] or an [`ErrorKind`] and
//! looks up its [`ErrorFacts`]. Stock clients convert the Hazelcast codes and class names back into
//! exceptions.

use uuid::Uuid;

use crate::budget::Exhausted;
use crate::groups::SubmitError;

/// An error of the grid. The text is for a person who reads it in an exception or a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// The caller passed an invalid argument.
    #[error("{0}")]
    IllegalArgument(String),
    /// A required value is null.
    #[error("{0}")]
    NullArgument(String),
    /// The member knows the operation, but does not support it.
    #[error("{0}")]
    UnsupportedOperation(String),
    /// A setting is invalid. The text contains its name, the value found and the value expected.
    #[error("{0}")]
    InvalidConfiguration(String),
    /// Two name patterns match a map's name equally well.
    #[error("map name {name:?} matches the patterns {first:?} and {second:?} equally well, expected one best match")]
    AmbiguousPattern {
        /// The map's name.
        name: String,
        /// One of the patterns.
        first: String,
        /// The other one.
        second: String,
    },
    /// The member is shutting down and accepts no more operations.
    #[error("this member is shutting down and takes no more operations")]
    NotActive,
    /// The handle refers to a destroyed object. A new handle creates the object again.
    #[error("{service} object {name:?} was destroyed")]
    Destroyed {
        /// The object's service, for example `hz:impl:mapService`.
        service: String,
        /// The object's name.
        name: String,
    },
    /// Another map is about to replace this one. The change can be sent again after a short wait.
    #[error("map {map:?} is being rewritten by a change of its table, the change can be sent again")]
    BeingReplaced {
        /// The map's name.
        map: String,
    },
    /// The current state of the object does not allow the operation.
    #[error("{0}")]
    IllegalState(String),
    /// The deadline of a parked change passed while another caller held the key's lock.
    #[error("timed out waiting for the lock of a key of map {map:?}")]
    LockTimeout {
        /// The map's name.
        map: String,
    },
    /// The client that waited for a lock has disconnected.
    #[error("client {client} disconnected while it waited for a lock")]
    ClientGone {
        /// The client's UUID.
        client: Uuid,
    },
    /// The member has reached the maximum number of an item. A setting defines this limit.
    #[error("this member already has {limit} {what}, the most that {setting} allows")]
    LimitReached {
        /// The name of the item, in plural.
        what: &'static str,
        /// The setting that defines the limit.
        setting: &'static str,
        /// The value of the setting.
        limit: usize,
    },
    /// The change would exceed the member's memory limit. Reads and removals still work.
    #[error(
        "not enough memory: {needed} more bytes needed, {used} of at most {max} bytes used; \
         reads and removals still work, see memory_bytes_max"
    )]
    OutOfMemory {
        /// Bytes that the change would add.
        needed: usize,
        /// Bytes in use.
        used: usize,
        /// The limit.
        max: usize,
    },
    /// The budget of buffers is exhausted.
    #[error(transparent)]
    BuffersFull(#[from] Exhausted),
    /// The caller has unlocked a key without holding its lock.
    #[error("current thread is not owner of the lock: {}", owner_text(.owner))]
    NotLockOwner {
        /// The client and thread that hold the lock, if it is held.
        owner: Option<(Uuid, i64)>,
    },
    /// A different schema is stored under the same id.
    #[error("schema {id} of type {type_name:?} differs from the schema of type {stored:?} stored under the same id")]
    SchemaConflict {
        /// The schema id.
        id: i64,
        /// The type name of the refused schema.
        type_name: String,
        /// The type name of the stored schema.
        stored: String,
    },
    /// A read of the event journal requested a sequence that the journal does not contain.
    #[error("sequence {requested} is not in the event journal, which has {oldest} to {newest}")]
    StaleSequence {
        /// The requested sequence.
        requested: i64,
        /// The oldest sequence in the journal.
        oldest: i64,
        /// The newest sequence in the journal.
        newest: i64,
    },
    /// The bytes of a key, value or schema cannot be decoded.
    #[error("{0}")]
    Serialization(String),
    /// A query has failed.
    #[error("{0}")]
    Query(String),
    /// The credentials or the cluster name are wrong.
    #[error("{0}")]
    Authentication(String),
    /// The log of a group of partitions has not accepted the operation, or its outcome is unknown.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// A bug: an invariant of the member is violated.
    #[error("{0}")]
    Internal(String),
}

fn owner_text(owner: &Option<(Uuid, i64)>) -> String {
    match owner {
        Some((client, thread)) => format!("it is held by client {client}, thread {thread}"),
        None => "it is free".to_owned(),
    }
}

/// The kinds of errors that clients distinguish. Some kinds have no [`GridError`], for example
/// malformed messages: doors use these directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// [`GridError::IllegalArgument`] and [`SubmitError::TooLong`].
    IllegalArgument,
    /// [`GridError::NullArgument`].
    NullArgument,
    /// [`GridError::UnsupportedOperation`].
    UnsupportedOperation,
    /// [`GridError::InvalidConfiguration`] and [`GridError::AmbiguousPattern`].
    InvalidConfiguration,
    /// [`GridError::NotActive`].
    NotActive,
    /// [`GridError::Destroyed`].
    Destroyed,
    /// [`GridError::BeingReplaced`].
    BeingReplaced,
    /// An operation has timed out, for example with [`GridError::LockTimeout`].
    Timeout,
    /// [`GridError::ClientGone`].
    ClientGone,
    /// [`GridError::LimitReached`].
    LimitReached,
    /// [`GridError::OutOfMemory`] and [`GridError::BuffersFull`].
    OutOfMemory,
    /// [`GridError::NotLockOwner`].
    NotLockOwner,
    /// [`GridError::IllegalState`], [`GridError::SchemaConflict`] and other requests that the
    /// current state does not allow.
    IllegalState,
    /// [`GridError::StaleSequence`].
    StaleSequence,
    /// [`GridError::Serialization`].
    Serialization,
    /// [`GridError::Authentication`].
    Authentication,
    /// The caller is authenticated, but not authorized.
    AccessDenied,
    /// [`GridError::Query`]: a query is invalid or has failed.
    Query,
    /// A message exceeds the maximum size.
    MessageTooLarge,
    /// The bytes of a message do not match its type.
    MalformedMessage,
    /// A text is not valid UTF-8.
    InvalidText,
    /// There is no such service, for example in a request to create an object.
    UnknownService,
    /// [`SubmitError::NotLeader`]: the request must be sent to another member.
    NotLeader,
    /// [`SubmitError::Overloaded`].
    Overloaded,
    /// [`SubmitError::Unknown`]: the change was applied, was not applied, or will be applied later.
    Indeterminate,
    /// [`GridError::Internal`].
    Internal,
}

/// The properties of a kind of error in each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorFacts {
    /// Whether the same request may succeed when it is sent again unchanged.
    pub retryable: bool,
    /// The error code of the Hazelcast client protocol.
    pub hazelcast_code: i32,
    /// The Java class of Hazelcast's exception.
    pub java_class: &'static str,
    /// The SQLSTATE, five characters.
    pub sqlstate: &'static str,
    /// The HTTP status code.
    pub http_status: u16,
}

const fn once(hazelcast_code: i32, java_class: &'static str, sqlstate: &'static str, http_status: u16) -> ErrorFacts {
    ErrorFacts { retryable: false, hazelcast_code, java_class, sqlstate, http_status }
}

const fn retryable(
    hazelcast_code: i32,
    java_class: &'static str,
    sqlstate: &'static str,
    http_status: u16,
) -> ErrorFacts {
    ErrorFacts { retryable: true, hazelcast_code, java_class, sqlstate, http_status }
}

impl ErrorKind {
    /// Every kind, in the order of the table.
    pub const ALL: [ErrorKind; 26] = [
        ErrorKind::IllegalArgument,
        ErrorKind::NullArgument,
        ErrorKind::UnsupportedOperation,
        ErrorKind::InvalidConfiguration,
        ErrorKind::NotActive,
        ErrorKind::Destroyed,
        ErrorKind::BeingReplaced,
        ErrorKind::Timeout,
        ErrorKind::ClientGone,
        ErrorKind::LimitReached,
        ErrorKind::OutOfMemory,
        ErrorKind::NotLockOwner,
        ErrorKind::IllegalState,
        ErrorKind::StaleSequence,
        ErrorKind::Serialization,
        ErrorKind::Authentication,
        ErrorKind::AccessDenied,
        ErrorKind::Query,
        ErrorKind::MessageTooLarge,
        ErrorKind::MalformedMessage,
        ErrorKind::InvalidText,
        ErrorKind::UnknownService,
        ErrorKind::NotLeader,
        ErrorKind::Overloaded,
        ErrorKind::Indeterminate,
        ErrorKind::Internal,
    ];

    /// The properties of this kind in each protocol. This is the table.
    #[rustfmt::skip]
    pub const fn facts(self) -> ErrorFacts {
        match self {
            ErrorKind::IllegalArgument => once(23, "java.lang.IllegalArgumentException", "22023", 400),
            ErrorKind::NullArgument => once(37, "java.lang.NullPointerException", "22004", 400),
            ErrorKind::UnsupportedOperation => once(61, "java.lang.UnsupportedOperationException", "0A000", 501),
            ErrorKind::InvalidConfiguration => once(32, "com.hazelcast.config.InvalidConfigurationException", "F0000", 500),
            ErrorKind::NotActive => retryable(19, "com.hazelcast.core.HazelcastInstanceNotActiveException", "57P03", 503),
            ErrorKind::Destroyed => once(14, "com.hazelcast.spi.exception.DistributedObjectDestroyedException", "42P01", 404),
            ErrorKind::BeingReplaced => retryable(46, "com.hazelcast.spi.exception.RetryableHazelcastException", "55006", 503),
            ErrorKind::Timeout => once(38, "com.hazelcast.core.OperationTimeoutException", "55P03", 504),
            ErrorKind::ClientGone => once(52, "com.hazelcast.spi.exception.TargetDisconnectedException", "08006", 503),
            ErrorKind::LimitReached => once(20, "com.hazelcast.core.HazelcastOverloadException", "53000", 429),
            ErrorKind::OutOfMemory => once(74, "com.hazelcast.memory.NativeOutOfMemoryError", "53200", 507),
            ErrorKind::NotLockOwner => once(26, "java.lang.IllegalMonitorStateException", "55000", 409),
            ErrorKind::IllegalState => once(27, "java.lang.IllegalStateException", "55000", 409),
            ErrorKind::StaleSequence => once(51, "com.hazelcast.ringbuffer.StaleSequenceException", "22023", 410),
            ErrorKind::Serialization => once(21, "com.hazelcast.nio.serialization.HazelcastSerializationException", "22P03", 400),
            ErrorKind::Authentication => once(3, "com.hazelcast.client.AuthenticationException", "28000", 401),
            ErrorKind::AccessDenied => once(64, "java.security.AccessControlException", "42501", 403),
            ErrorKind::Query => once(40, "com.hazelcast.query.QueryException", "42000", 400),
            ErrorKind::MessageTooLarge => once(69, "com.hazelcast.client.impl.protocol.exception.MaxMessageSizeExceeded", "54000", 413),
            ErrorKind::MalformedMessage => once(18, "com.hazelcast.core.HazelcastException", "08P01", 400),
            ErrorKind::InvalidText => once(60, "java.io.UTFDataFormatException", "22021", 400),
            ErrorKind::UnknownService => once(75, "com.hazelcast.spi.exception.ServiceNotFoundException", "42704", 404),
            ErrorKind::NotLeader => retryable(62, "com.hazelcast.spi.exception.WrongTargetException", "40001", 503),
            ErrorKind::Overloaded => retryable(46, "com.hazelcast.spi.exception.RetryableHazelcastException", "53000", 503),
            ErrorKind::Indeterminate => once(80, "com.hazelcast.core.IndeterminateOperationStateException", "40003", 500),
            ErrorKind::Internal => once(18, "com.hazelcast.core.HazelcastException", "XX000", 500),
        }
    }
}

impl GridError {
    /// The kind of this error, the key of the table.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            GridError::IllegalArgument(_) => ErrorKind::IllegalArgument,
            GridError::NullArgument(_) => ErrorKind::NullArgument,
            GridError::UnsupportedOperation(_) => ErrorKind::UnsupportedOperation,
            GridError::InvalidConfiguration(_) | GridError::AmbiguousPattern { .. } => ErrorKind::InvalidConfiguration,
            GridError::NotActive => ErrorKind::NotActive,
            GridError::Destroyed { .. } => ErrorKind::Destroyed,
            GridError::BeingReplaced { .. } => ErrorKind::BeingReplaced,
            GridError::IllegalState(_) => ErrorKind::IllegalState,
            GridError::LockTimeout { .. } => ErrorKind::Timeout,
            GridError::ClientGone { .. } => ErrorKind::ClientGone,
            GridError::LimitReached { .. } => ErrorKind::LimitReached,
            GridError::OutOfMemory { .. } | GridError::BuffersFull(_) => ErrorKind::OutOfMemory,
            GridError::NotLockOwner { .. } => ErrorKind::NotLockOwner,
            GridError::SchemaConflict { .. } => ErrorKind::IllegalState,
            GridError::StaleSequence { .. } => ErrorKind::StaleSequence,
            GridError::Serialization(_) => ErrorKind::Serialization,
            GridError::Query(_) => ErrorKind::Query,
            GridError::Authentication(_) => ErrorKind::Authentication,
            GridError::Submit(SubmitError::NotLeader { .. }) => ErrorKind::NotLeader,
            GridError::Submit(SubmitError::Overloaded { .. }) => ErrorKind::Overloaded,
            GridError::Submit(SubmitError::TooLong { .. }) => ErrorKind::IllegalArgument,
            GridError::Submit(SubmitError::Unknown { .. }) => ErrorKind::Indeterminate,
            GridError::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The properties of this error in each protocol.
    pub const fn facts(&self) -> ErrorFacts {
        self.kind().facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_well_formed_facts() {
        for kind in ErrorKind::ALL {
            let facts = kind.facts();
            assert!((1..=99).contains(&facts.hazelcast_code), "{kind:?}");
            assert!(
                facts.java_class.starts_with("java.") || facts.java_class.starts_with("com.hazelcast."),
                "{kind:?}"
            );
            assert_eq!(facts.sqlstate.len(), 5, "{kind:?}");
            assert!((400..600).contains(&facts.http_status), "{kind:?}");
        }
    }

    #[test]
    fn no_kind_stands_twice_in_the_list_of_all() {
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(ErrorKind::ALL.iter().position(|other| other == kind), Some(index));
        }
    }

    #[test]
    fn an_unlock_by_a_stranger_is_an_illegal_monitor_state() {
        let error = GridError::NotLockOwner { owner: None };
        assert_eq!(error.facts().hazelcast_code, 26);
        assert_eq!(error.to_string(), "current thread is not owner of the lock: it is free");
    }

    #[test]
    fn an_out_of_memory_error_names_the_numbers() {
        let error = GridError::OutOfMemory { needed: 10, used: 95, max: 100 };
        assert_eq!(
            error.to_string(),
            "not enough memory: 10 more bytes needed, 95 of at most 100 bytes used; \
             reads and removals still work, see memory_bytes_max"
        );
    }
}
