//! The fatal errors of the program, with their texts and exit codes.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use filbert::ConfigError;
use filbert_member::MemberError;

use super::cluster::ClusterError;
use super::shell::ShellError;

const TAKEN_OUT: &str = "this member was taken out of its cluster: the others have not heard of it for too long, or an operator has \
ordered it. Others hold its part now, and what it held is dropped; started again, it joins as a new member";

/// A fatal error of the program.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is invalid.
    Config(ConfigError),
    /// The member did not start.
    Start(filbert::Error),
    /// A cluster flag was used without a cluster.
    NoCluster(&'static str),
    /// The file with the members' secret cannot be read.
    Secret {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Member certificates are configured, but a file name is missing.
    Certificate(&'static str),
    /// The program cannot install its signal handlers.
    Signals(std::io::Error),
    /// Standard output cannot be written.
    Output(std::io::Error),
    /// The SQL shell ended early.
    Shell(ShellError),
    /// The cluster is unreachable or rejected an order.
    Cluster(ClusterError),
    /// The other members have removed this member from the cluster.
    TakenOut,
}

impl Failure {
    /// The exit code, as documented by `--help`.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::NoCluster(_) => 2,
            Failure::Config(_) | Failure::Secret { .. } | Failure::Certificate(_) => 3,
            Failure::Start(filbert::Error::Cluster(MemberError::Settings(_))) => 3,
            Failure::Start(filbert::Error::Configuration(_)) => 3,
            Failure::Start(filbert::Error::Listen(_) | filbert::Error::ListenPostgres(_)) => 4,
            Failure::Start(filbert::Error::Cluster(MemberError::TakenOut(_))) | Failure::TakenOut => 5,
            Failure::Start(_) | Failure::Signals(_) | Failure::Output(_) | Failure::Shell(_) | Failure::Cluster(_) => 1,
        })
    }

    fn error(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Failure::TakenOut | Failure::NoCluster(_) | Failure::Certificate(_) => return None,
            Failure::Cluster(error) => error,
            Failure::Config(error) => error,
            Failure::Start(error) => error,
            Failure::Shell(error) => error,
            Failure::Signals(error) | Failure::Output(error) => error,
            Failure::Secret { source, .. } => source,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(_) | Failure::Start(_) | Failure::Shell(_) | Failure::Cluster(_) => {}
            Failure::TakenOut => f.write_str(TAKEN_OUT)?,
            Failure::NoCluster(flag) => {
                write!(f, "{flag} is about a cluster: name its members by --join or network.join.tcp-ip")?
            }
            Failure::Certificate(missing) => write!(
                f,
                "members are to show each other certificates, and {missing} is not set: expected authority, certificate and key"
            )?,
            Failure::Secret { path, .. } => write!(f, "cannot read the members' secret in {}: ", path.display())?,
            Failure::Signals(_) => f.write_str("cannot wait for SIGTERM and SIGINT: ")?,
            Failure::Output(_) => f.write_str("cannot write to standard output: ")?,
        }
        let Some(error) = self.error() else { return Ok(()) };
        let mut said = error.to_string();
        f.write_str(&said)?;
        let mut source = error.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Some libraries repeat the text of the source in their own text.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            source = error.source();
        }
        Ok(())
    }
}
