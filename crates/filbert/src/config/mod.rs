//! The configuration: the settings of a member, and the files that contain them.

#[cfg(feature = "server")]
mod cluster;
#[cfg(feature = "server")]
mod files;

#[cfg(feature = "server")]
use std::net::SocketAddr;

use filbert_grid::{GridConfig, MapConfig};
#[cfg(feature = "server")]
use filbert_hazelcast::DoorConfig;
#[cfg(feature = "server")]
use filbert_http::HttpConfig;
#[cfg(feature = "server")]
use filbert_postgres::PostgresConfig;
#[cfg(feature = "sql")]
use filbert_query::QueryConfig;

#[cfg(feature = "server")]
pub use cluster::{ClusterConfig, MEMBER_PORT, TlsFiles};
#[cfg(feature = "server")]
pub use files::{
    ConfigError, FileSyntax, Loaded, Loader, Notice, NoticeKind, Position, Problem, SEARCHED, settings_markdown,
    with_port,
};
#[cfg(feature = "server")]
pub(crate) use files::{format_bytes, parse_bytes};

/// All settings of a member.
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
    /// The settings of the member: cluster name, maps, limits.
    pub grid: GridConfig,
    /// The front door for Hazelcast's clients: address, credentials, limits. It is opened if
    /// `serve_clients` is set.
    #[cfg(feature = "server")]
    pub door: DoorConfig,
    /// Whether Hazelcast's clients are served. Default `false`: an embedded member opens no socket
    /// by default.
    #[cfg(feature = "server")]
    pub serve_clients: bool,
    /// The front door for CrateDB's tools and browsers. Default `None`: an embedded member does not
    /// open it.
    #[cfg(feature = "server")]
    pub http: Option<HttpConfig>,
    /// The front door for PostgreSQL's drivers. Default `None`: an embedded member does not open
    /// it.
    #[cfg(feature = "server")]
    pub postgres: Option<PostgresConfig>,
    /// The member's name in its own log.
    #[cfg(feature = "server")]
    pub instance_name: Option<String>,
    /// Whether the memory of the program `filbert` may be in huge pages. Default `false`. An
    /// embedded member does not use it.
    #[cfg(feature = "server")]
    pub huge_pages: bool,
    /// The number of threads that serve clients. Default `None`: one per CPU.
    #[cfg(feature = "server")]
    pub threads: Option<usize>,
    /// The maximum number of queued events of one embedded listener. Default 100,000: a listener
    /// with a longer queue cannot catch up, and its events must not use the memory of the maps.
    /// Further events are dropped and counted.
    pub listener_events_max: usize,
    /// The query engine: threads, memory, statement limits.
    #[cfg(feature = "sql")]
    pub query: QueryConfig,
    /// The cluster that this member belongs to. Default `None`: the member is not clustered.
    #[cfg(feature = "server")]
    pub cluster: Option<ClusterConfig>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            grid: GridConfig::default(),
            #[cfg(feature = "server")]
            door: DoorConfig::default(),
            #[cfg(feature = "server")]
            serve_clients: false,
            #[cfg(feature = "server")]
            http: None,
            #[cfg(feature = "server")]
            postgres: None,
            #[cfg(feature = "server")]
            instance_name: None,
            #[cfg(feature = "server")]
            huge_pages: false,
            #[cfg(feature = "server")]
            threads: None,
            listener_events_max: 100_000,
            #[cfg(feature = "sql")]
            query: QueryConfig::default(),
            #[cfg(feature = "server")]
            cluster: None,
        }
    }
}

impl Config {
    /// Sets the cluster name, which clients must send. Default `dev`.
    #[must_use]
    pub fn cluster_name(mut self, name: impl Into<String>) -> Config {
        self.grid.cluster_name = name.into();
        self
    }

    /// Sets the settings of all maps with the name `pattern` or a name that matches it. A pattern
    /// contains one `*`.
    #[must_use]
    pub fn map(mut self, pattern: impl Into<String>, map: MapConfig) -> Config {
        self.grid.maps.insert(pattern, map);
        self
    }

    /// Sets the memory limit of all maps together, in bytes. A write beyond the limit fails; reads
    /// and removals continue to work.
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: usize) -> Config {
        self.grid.memory_bytes_max = Some(bytes);
        self
    }
}

#[cfg(feature = "server")]
impl Config {
    /// Serves Hazelcast's clients on exactly this address. Port 0 selects any free port.
    #[must_use]
    pub fn with_listener(mut self, address: SocketAddr) -> Config {
        self.door.listen = address;
        self.door.port_auto_increment = false;
        self.serve_clients = true;
        self
    }

    /// Serves CrateDB's tools and browsers on exactly this address. Port 0 selects any free port.
    #[must_use]
    pub fn with_http(mut self, address: SocketAddr) -> Config {
        let http = self.http.get_or_insert_default();
        http.listen = address;
        http.port_auto_increment = false;
        self
    }

    /// Serves PostgreSQL's drivers on exactly this address. Port 0 selects any free port.
    #[must_use]
    pub fn with_postgres(mut self, address: SocketAddr) -> Config {
        let postgres = self.postgres.get_or_insert_default();
        postgres.listen = address;
        postgres.port_auto_increment = false;
        self
    }
}
