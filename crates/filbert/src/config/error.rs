//! What can be wrong with a configuration, in texts for the person who wrote it.

use std::path::PathBuf;

use thiserror::Error;

use super::tree::Position;
use super::walk::Notice;

/// A configuration that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file's name does not tell its syntax.
    #[error("cannot tell the syntax of {}: expected a name that ends in .yaml, .yml or .xml", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
    },
    /// Something in a file is wrong.
    #[error(transparent)]
    Invalid(#[from] Problem),
    /// A command-line flag or a variable of the environment is wrong.
    #[error("{name}: found {found}, expected {expected}")]
    Value {
        /// The flag or the variable.
        name: String,
        /// What it says.
        found: String,
        /// What it may say.
        expected: String,
    },
    /// The file asks for what Filbert does not support, and `--strict` says that this must not pass.
    #[error("{} of {file} not supported, and --strict refuses that:{}", count(notices.len()), lines(notices))]
    Strict {
        /// The file.
        file: String,
        /// Every setting that is not supported.
        notices: Vec<Notice>,
    },
}

/// One thing that is wrong in a file: where, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{position}: {}found {found}, expected {expected}", prefix(path))]
pub struct Problem {
    /// The file as it was named.
    pub file: String,
    /// Where in the file.
    pub position: Position,
    /// The dotted name of the setting; empty where the syntax itself is wrong.
    pub path: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub expected: String,
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

fn count(settings: usize) -> String {
    if settings == 1 { "1 setting".to_owned() } else { format!("{settings} settings") }
}

fn lines(notices: &[Notice]) -> String {
    notices.iter().map(|notice| format!("\n  {notice}")).collect()
}
