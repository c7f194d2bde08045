//! Reads the configuration from an existing `hazelcast.yaml` or `hazelcast.xml`.
//!
//! ```text
//! hazelcast.yaml --yaml.rs--> tree --walk.rs, driven by the declarations--> Config + notices
//! hazelcast.xml  --xml.rs--->  ^                 (member.rs, map.rs, security.rs, properties.rs)
//! ```
//!
//! Both syntaxes are parsed into the same tree. One walk reads the tree by the declared settings.
//! Each element that no setting uses becomes a [`Notice`] with its name and line, unless ignoring
//! it loses nothing. So no request of a file is ignored silently.

mod columns;
mod environment;
mod error;
mod join;
mod known;
mod load;
mod map;
mod member;
mod properties;
mod reference;
mod security;
mod setting;
mod tree;
mod walk;
mod xml;
mod yaml;

use std::path::Path;

pub use error::{ConfigError, Problem};
pub use join::with_port;
pub use load::{FileSyntax, Loaded, Loader, SEARCHED};
pub use reference::markdown as settings_markdown;
pub(crate) use setting::{bytes as parse_bytes, show_bytes as format_bytes};
pub use tree::Position;
pub use walk::{Notice, NoticeKind};

use super::Config;

impl Config {
    /// Reads a configuration file. The file extension determines the syntax. [`Loaded::notices`]
    /// lists the settings without an effect. Environment variables are used as described at
    /// [`Loader`].
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or its content is invalid. The error contains
    /// file, line and column.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Loaded, ConfigError> {
        Loader::new(&|name| std::env::var(name).ok()).file(path.as_ref())
    }
}

/// The environment variable for a dotted name: `hz.cluster-name` becomes `HZ_CLUSTER_NAME`.
pub(crate) fn variable_name(dotted: &str) -> String {
    dotted.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}
