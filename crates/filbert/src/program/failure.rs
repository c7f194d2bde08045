//! What ends the program, what it says then, and with which exit code.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use filbert::ConfigError;

use super::shell::ShellError;

/// A failure of the program.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration cannot be used.
    Config(ConfigError),
    /// The member did not start.
    Start(filbert::Error),
    /// No port for clients is free.
    Port(std::io::Error),
    /// The file of the members' secret cannot be read.
    Secret {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The signals that end the program cannot be waited for.
    Signals(std::io::Error),
    /// Standard output cannot be written.
    Output(std::io::Error),
    /// The SQL shell ended early.
    Shell(ShellError),
}

impl Failure {
    /// The exit code, as `--help` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Config(_) | Failure::Secret { .. } => 3,
            Failure::Start(filbert::Error::Configuration(_)) => 3,
            Failure::Start(filbert::Error::Listen(_) | filbert::Error::ListenPostgres(_)) | Failure::Port(_) => 4,
            Failure::Start(_) | Failure::Signals(_) | Failure::Output(_) | Failure::Shell(_) => 1,
        })
    }

    fn error(&self) -> &(dyn Error + 'static) {
        match self {
            Failure::Config(error) => error,
            Failure::Start(error) => error,
            Failure::Shell(error) => error,
            Failure::Signals(error) | Failure::Output(error) | Failure::Port(error) => error,
            Failure::Secret { source, .. } => source,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(_) | Failure::Start(_) | Failure::Shell(_) => {}
            Failure::Port(_) => f.write_str("cannot listen for clients: ")?,
            Failure::Secret { path, .. } => write!(f, "cannot read the members' secret in {}: ", path.display())?,
            Failure::Signals(_) => f.write_str("cannot wait for SIGTERM and SIGINT: ")?,
            Failure::Output(_) => f.write_str("cannot write to standard output: ")?,
        }
        let mut said = self.error().to_string();
        f.write_str(&said)?;
        let mut source = self.error().source();
        while let Some(error) = source {
            let text = error.to_string();
            // Some libraries repeat the source's text in their own.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            source = error.source();
        }
        Ok(())
    }
}
