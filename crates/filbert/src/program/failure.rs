//! What ends the program, what it says then, and with which exit code.

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

/// A failure of the program.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration cannot be used.
    Config(ConfigError),
    /// The member did not start.
    Start(filbert::Error),
    /// No port for clients is free.
    Port(std::io::Error),
    /// A flag is about a cluster, and there is none.
    NoCluster(&'static str),
    /// The file of the members' secret cannot be read.
    Secret {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Members are to show certificates, and a file is not named.
    Certificate(&'static str),
    /// The signals that end the program cannot be waited for.
    Signals(std::io::Error),
    /// Standard output cannot be written.
    Output(std::io::Error),
    /// The SQL shell ended early.
    Shell(ShellError),
    /// The cluster cannot be asked, or refuses an order.
    Cluster(ClusterError),
    /// The others have taken this member out of the cluster.
    TakenOut,
}

impl Failure {
    /// The exit code, as `--help` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::NoCluster(_) => 2,
            Failure::Config(_) | Failure::Secret { .. } | Failure::Certificate(_) => 3,
            Failure::Start(filbert::Error::Cluster(MemberError::Settings(_))) => 3,
            Failure::Start(filbert::Error::Configuration(_)) => 3,
            Failure::Start(filbert::Error::Listen(_) | filbert::Error::ListenPostgres(_)) | Failure::Port(_) => 4,
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
            Failure::Signals(error) | Failure::Output(error) | Failure::Port(error) => error,
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
            Failure::Port(_) => f.write_str("cannot listen for clients: ")?,
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
