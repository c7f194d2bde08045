//! Configuration errors, with texts for the author of the configuration.

use std::path::PathBuf;

use thiserror::Error;

use super::tree::Position;
use super::walk::Notice;

/// An invalid configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The file extension does not determine the syntax.
    #[error("cannot tell the syntax of {}: expected a name that ends in .yaml, .yml or .xml", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
    },
    /// The content of a file is invalid.
    #[error(transparent)]
    Invalid(#[from] Problem),
    /// A command-line flag or an environment variable is invalid.
    #[error("{name}: found {found}, expected {expected}")]
    Value {
        /// The flag or the variable.
        name: String,
        /// Its value.
        found: String,
        /// The permitted values.
        expected: String,
    },
    /// The file contains settings that Filbert does not support, and `--strict` rejects such files.
    #[error("{} of {file} not supported, and --strict refuses that:{}", count(notices.len()), lines(notices))]
    Strict {
        /// The file.
        file: String,
        /// All unsupported settings.
        notices: Vec<Notice>,
    },
}

/// One problem in a file: position, found value, expected value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{position}: {}found {found}, expected {expected}", prefix(path))]
pub struct Problem {
    /// The file, as the caller named it.
    pub file: String,
    /// The position in the file.
    pub position: Position,
    /// The dotted name of the setting. Empty for a syntax error.
    pub path: String,
    /// The found value.
    pub found: String,
    /// The expected value.
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
