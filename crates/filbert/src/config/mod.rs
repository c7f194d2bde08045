//! The configuration: what it holds, and how it is read from the `hazelcast.yaml` or `hazelcast.xml` a team has.
//!
//! ```text
//! hazelcast.yaml --yaml.rs--> tree --walk.rs, driven by the declarations--> Config + notices
//! hazelcast.xml  --xml.rs--->  ^                 (member.rs, map.rs, security.rs, properties.rs)
//! ```
//!
//! Both syntaxes become one tree, which one walk reads by the declared settings. Every element that no setting uses
//! becomes a [`Notice`] with its name and line, so that nothing in a file is ignored in silence.

mod cluster;
mod columns;
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

use std::net::SocketAddr;
use std::path::Path;

use filbert_grid::{GridConfig, MapConfig};
use filbert_hazelcast::DoorConfig;
use filbert_http::HttpConfig;
use filbert_postgres::PostgresConfig;
use filbert_query::QueryConfig;

pub use cluster::{ClusterConfig, MEMBER_PORT, TlsFiles};
pub use error::{ConfigError, Problem};
pub use join::with_port;
pub use load::{FileSyntax, Loaded, Loader, SEARCHED};
pub use reference::markdown as settings_markdown;
pub(crate) use setting::{bytes as parse_bytes, show_bytes as format_bytes};
pub use tree::Position;
pub use walk::{Notice, NoticeKind};

/// Everything that can be set on a member.
///
/// ```
/// use filbert::{Config, MapConfig};
///
/// let config = Config::default()
///     .cluster_name("orders")
///     .map("session-*", MapConfig { max_idle_seconds: 1800, ..MapConfig::default() })
///     .memory_bytes_max(1 << 30);
/// assert_eq!(config.grid.cluster_name, "orders");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The member: cluster name, maps, limits.
    pub grid: GridConfig,
    /// The front door for Hazelcast's clients: address, credentials, limits. It is opened when `serve_clients` is set.
    pub door: DoorConfig,
    /// Whether Hazelcast's clients are served. Default `false`: an embedded member opens no socket unless told to.
    pub serve_clients: bool,
    /// The front door for CrateDB's tools and browsers. `None`, the default of an embedded member: it is not opened.
    pub http: Option<HttpConfig>,
    /// The front door for PostgreSQL's drivers. `None`, the default of an embedded member: it is not opened.
    pub postgres: Option<PostgresConfig>,
    /// The member's name in its own log.
    pub instance_name: Option<String>,
    /// Threads that serve clients. `None`, the default, takes one per CPU.
    pub threads: Option<usize>,
    /// Events that may wait for one embedded listener. Default 100,000: a listener that lags so far behind has lost
    /// touch, and the events must not take the memory of the maps. Events beyond it are dropped and counted.
    pub listener_events_max: usize,
    /// The query engine: threads, memory, limits of statements.
    pub query: QueryConfig,
    /// The cluster that this member is one of. `None`, the default: it is alone.
    pub cluster: Option<ClusterConfig>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            grid: GridConfig::default(),
            door: DoorConfig::default(),
            serve_clients: false,
            http: None,
            postgres: None,
            instance_name: None,
            threads: None,
            listener_events_max: 100_000,
            query: QueryConfig::default(),
            cluster: None,
        }
    }
}

impl Config {
    /// Sets the name that clients must know. Default `dev`.
    #[must_use]
    pub fn cluster_name(mut self, name: impl Into<String>) -> Config {
        self.grid.cluster_name = name.into();
        self
    }

    /// Sets the settings of the maps whose name is `pattern` or fits it; a pattern has one `*`.
    #[must_use]
    pub fn map(mut self, pattern: impl Into<String>, map: MapConfig) -> Config {
        self.grid.maps.insert(pattern, map);
        self
    }

    /// Sets the memory, in bytes, that all maps may take. A write beyond it fails; reads and removals go on.
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: usize) -> Config {
        self.grid.memory_bytes_max = Some(bytes);
        self
    }

    /// Serves Hazelcast's clients on exactly this address; port 0 takes any free port.
    #[must_use]
    pub fn with_listener(mut self, address: SocketAddr) -> Config {
        self.door.listen = address;
        self.door.port_auto_increment = false;
        self.serve_clients = true;
        self
    }

    /// Serves CrateDB's tools and browsers on exactly this address; port 0 takes any free port.
    #[must_use]
    pub fn with_http(mut self, address: SocketAddr) -> Config {
        let http = self.http.get_or_insert_default();
        http.listen = address;
        http.port_auto_increment = false;
        self
    }

    /// Serves PostgreSQL's drivers on exactly this address; port 0 takes any free port.
    #[must_use]
    pub fn with_postgres(mut self, address: SocketAddr) -> Config {
        let postgres = self.postgres.get_or_insert_default();
        postgres.listen = address;
        postgres.port_auto_increment = false;
        self
    }

    /// Reads a configuration file; its name tells the syntax. What the file asks for and Filbert does not do is told
    /// by [`Loaded::notices`]. Variables of the process's environment are used as [`Loader`] says.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or something in it is wrong; with file, line and column.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Loaded, ConfigError> {
        Loader::new(&|name| std::env::var(name).ok()).file(path.as_ref())
    }
}

/// The name that a dotted name has in the environment: `hz.cluster-name` is `HZ_CLUSTER_NAME`.
pub(crate) fn variable_name(dotted: &str) -> String {
    dotted.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}
