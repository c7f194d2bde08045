//! The error type of this crate.

use std::io;
use std::time::Duration;

/// The error that ends a measurement. Each variant contains the attempted action and the
/// expectation.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A system call failed.
    #[error("{attempt}")]
    Io {
        /// The attempted action.
        attempt: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A server sent a malformed message.
    #[error("{target} sent a malformed message")]
    Wire {
        /// The server.
        target: String,
        /// The decoding error.
        #[source]
        source: filbert_wire::WireError,
    },
    /// A server returned an error.
    #[error("{target} answered with {class_name} (code {code}): {message}")]
    Server {
        /// The server.
        target: String,
        /// The protocol's error code.
        code: i32,
        /// The Java exception class.
        class_name: String,
        /// The error text.
        message: String,
    },
    /// A server rejected the authentication.
    #[error("{target} refused authentication with status {status}, expected 0")]
    Refused {
        /// The server.
        target: String,
        /// 1 = credentials, 2 = serialization version, 3 = not allowed in the cluster.
        status: u8,
    },
    /// A result differs from the generated value of its key.
    #[error("wrong result from {target}: {what}")]
    Wrong {
        /// The server.
        target: String,
        /// The found and the expected result.
        what: String,
    },
    /// A driver could not execute a command. The driver continues to run.
    #[error("{program} cannot {command}: {what}")]
    Command {
        /// The driver.
        program: String,
        /// The command.
        command: String,
        /// The reason.
        what: String,
    },
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
    /// A program that the measurement needs is missing, ended early, or did not become ready.
    #[error("{program}: {what}")]
    Program {
        /// The program's name.
        program: String,
        /// The problem.
        what: String,
    },
    /// A server did not answer in time.
    #[error("{target} was silent for {waited:?} with {in_flight} calls in flight")]
    Silent {
        /// The server.
        target: String,
        /// The timeout.
        waited: Duration,
        /// The number of calls without a reply.
        in_flight: usize,
    },
}

impl BenchError {
    /// An adapter for `map_err` that adds the attempted action.
    pub fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        move |source| BenchError::Io { attempt: attempt.into(), source }
    }

    /// An adapter for `map_err` that adds the sender of the malformed message.
    pub fn wire(target: impl Into<String>) -> impl FnOnce(filbert_wire::WireError) -> BenchError {
        move |source| BenchError::Wire { target: target.into(), source }
    }

    /// The error and its sources in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, BenchError>;
