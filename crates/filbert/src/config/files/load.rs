//! Finds and reads a configuration file, and applies overrides from the environment.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::{ConfigError, Problem};
use super::member::{Draft, MEMBER};
use super::tree::{Node, Position};
use super::walk::{Environment, Notice, NoticeKind, Path as Place, Walk};
use super::{Config, environment, xml, yaml};

/// The file names that are tried in the working directory if no file is named. The first existing
/// file is read.
pub const SEARCHED: [&str; 3] = ["hazelcast.yaml", "hazelcast.yml", "hazelcast.xml"];

/// The maximum size of a configuration file, in bytes. Hazelcast's full example, with every
/// setting, has 250 kB.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The root element.
const ROOT: &str = "hazelcast";

/// The syntaxes of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSyntax {
    /// `hazelcast.yaml`.
    Yaml,
    /// `hazelcast.xml`.
    Xml,
}

/// A configuration that was read, with its notices.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration. [`Config::serve_clients`] is set: a configuration file describes a member
    /// that serves clients.
    pub config: Config,
    /// The file, as the caller named it. Empty if no file was read.
    pub file: String,
    /// The settings of the file without an effect, in file order.
    pub notices: Vec<Notice>,
    /// Settings that need a memory limit. A command-line flag may still set the limit.
    needs_memory_limit: Vec<Problem>,
}

impl Loaded {
    /// Rejects a file with unsupported settings.
    ///
    /// # Errors
    /// [`ConfigError::Strict`] lists the unsupported settings.
    pub fn strict(&self) -> Result<(), ConfigError> {
        let unsupported = |notice: &&Notice| notice.kind == NoticeKind::Unsupported;
        let notices: Vec<Notice> = self.notices.iter().filter(unsupported).cloned().collect();
        if notices.is_empty() { Ok(()) } else { Err(ConfigError::Strict { file: self.file.clone(), notices }) }
    }

    /// Checks constraints between settings, after command-line flags were applied.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] for an eviction policy that needs a memory limit if there is no
    /// limit.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.needs_memory_limit.first() {
            Some(problem) if self.config.grid.memory_bytes_max.is_none() => Err(problem.clone().into()),
            _ => Ok(()),
        }
    }
}

/// Reads configurations. Environment variables replace `${NAME}` and `${NAME:default}` in values.
/// `FILBERT_...` variables override the `filbert....` properties of the file.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    environment: Environment<'a>,
}

impl<'a> Loader<'a> {
    /// Creates a loader that reads variables from `environment`.
    pub fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Loader<'a> {
        Loader { environment }
    }

    /// Reads the first existing file of [`SEARCHED`] in `directory`. Returns the defaults if there
    /// is no such file.
    ///
    /// # Errors
    /// As [`Loader::file`].
    pub fn search(&self, directory: &Path) -> Result<Loaded, ConfigError> {
        for name in SEARCHED {
            let path = directory.join(name);
            if path.exists() {
                return self.file(&path);
            }
        }
        self.finish(Draft::default(), String::new(), Vec::new())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, its extension does not determine the syntax, or its content is
    /// invalid.
    pub fn file(&self, path: &Path) -> Result<Loaded, ConfigError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let syntax = match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => FileSyntax::Yaml,
            "xml" => FileSyntax::Xml,
            _ => return Err(ConfigError::Syntax { path: path.to_owned() }),
        };
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(read)?;
        let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(read)?;
        // The leading `./` does not help the reader: `./hazelcast.yaml` is shown as
        // `hazelcast.yaml`.
        let name = path.strip_prefix(".").unwrap_or(path).display().to_string();
        if length as u64 > FILE_BYTES_MAX {
            return Err(ConfigError::Invalid(Problem {
                file: name,
                position: Position::START,
                path: String::new(),
                found: format!("more than {FILE_BYTES_MAX} bytes"),
                expected: "a smaller file".to_owned(),
            }));
        }
        self.text(syntax, &name, &text)
    }

    /// Reads a configuration from a text. Error texts show `name` as the file name.
    ///
    /// # Errors
    /// [`ConfigError`]: the text is invalid.
    pub fn text(&self, syntax: FileSyntax, name: &str, text: &str) -> Result<Loaded, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = match syntax {
            FileSyntax::Yaml => yaml::parse(name, text)?,
            FileSyntax::Xml => xml::parse(name, text)?,
        };
        let mut draft = Draft::default();
        let mut walk = Walk::new(name, self.environment);
        read_root(&mut walk, &tree, &mut draft)?;
        self.finish(draft, name.to_owned(), walk.into_notices())
    }

    fn finish(&self, mut draft: Draft, file: String, notices: Vec<Notice>) -> Result<Loaded, ConfigError> {
        environment::override_from(self.environment, &mut draft)?;
        let (mut config, needs_memory_limit) = draft.finish();
        config.serve_clients = true;
        Ok(Loaded { config, file, notices, needs_memory_limit })
    }
}

fn read_root(walk: &mut Walk<'_>, tree: &Node, draft: &mut Draft) -> Result<(), Problem> {
    let top = Place::default();
    for entry in walk.table(&top, tree)? {
        if entry.name == ROOT {
            walk.section(&top, &entry.node, MEMBER, draft)?;
        } else {
            let place = Node::new(entry.position, entry.node.value.clone());
            let found = super::tree::quote(&entry.name);
            return Err(walk.found(&top, &place, found, format!("{ROOT} as the one element of the root")));
        }
    }
    Ok(())
}
