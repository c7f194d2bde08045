//! The one error type of this crate.

use std::io;
use std::time::Duration;

/// What stops a measurement. Every variant says what was attempted and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A system call failed.
    #[error("{attempt}")]
    Io {
        /// What was attempted.
        attempt: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A server sent bytes that are no message of the protocol.
    #[error("{target} sent a malformed message")]
    Wire {
        /// Who sent it.
        target: String,
        /// What was wrong with it.
        #[source]
        source: filbert_wire::WireError,
    },
    /// A server answered with an error message.
    #[error("{target} answered with {class_name} (code {code}): {message}")]
    Server {
        /// Who answered.
        target: String,
        /// The protocol's error code.
        code: i32,
        /// The Java class that the error stands for.
        class_name: String,
        /// The server's text.
        message: String,
    },
    /// A server refused the login.
    #[error("{target} refused authentication with status {status}, expected 0")]
    Refused {
        /// Who refused.
        target: String,
        /// 1 = credentials, 2 = serialization version, 3 = not allowed in the cluster.
        status: u8,
    },
    /// A result was not the one that the workload's generator makes for its key.
    #[error("wrong result from {target}: {what}")]
    Wrong {
        /// Who answered.
        target: String,
        /// What was found and what was expected.
        what: String,
    },
    /// A driver could not do what it was told; it goes on.
    #[error("{program} cannot {command}: {what}")]
    Command {
        /// The driver.
        program: String,
        /// What it was told.
        command: String,
        /// Why it could not.
        what: String,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// A program that a measurement needs is missing, ended early or did not get ready.
    #[error("{program}: {what}")]
    Program {
        /// The program's name.
        program: String,
        /// What happened to it.
        what: String,
    },
    /// A server was silent for too long.
    #[error("{target} was silent for {waited:?} with {in_flight} calls in flight")]
    Silent {
        /// Who was silent.
        target: String,
        /// How long it was waited for.
        waited: Duration,
        /// Calls without an answer.
        in_flight: usize,
    },
}

impl BenchError {
    /// An adapter for `map_err`: names what was attempted.
    pub fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        move |source| BenchError::Io { attempt: attempt.into(), source }
    }

    /// An adapter for `map_err`: names who sent the malformed message.
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

/// Results of this crate.
pub type Result<T> = std::result::Result<T, BenchError>;
