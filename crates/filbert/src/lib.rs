//! Filbert: an in-memory data grid that Hazelcast's clients connect to unmodified.
//!
//! This crate puts the parts together: the configuration ([`config`]), the embedded API
//! ([`Filbert`], [`Map`]), and the program `filbert`, which is the embedded API with a command line
//! in front. It holds no data and speaks no protocol itself.
//!
//! ```text
//!   hazelcast.yaml, flags --> Config --> Filbert::start
//!                                      |
//!                                      +--> Grid          filbert-grid: the maps
//!                                      +--> timer thread  expiry, leases, lock waits
//!                                      +--> Door          filbert-hazelcast: Hazelcast's clients
//!                                      +--> HttpDoor      filbert-http: CrateDB's tools, browsers
//!                                      +--> PostgresDoor  filbert-postgres: PostgreSQL's drivers
//!
//!   your program --> Filbert::map::<K, V> --> Map --> blobs --> Grid
//! ```
//!
//! # Invariants
//!
//! - Every element of a configuration file is used, or reported by name and line. Only elements
//!   that request nothing are skipped.
//! - An embedded member opens no socket unless its configuration asks for one.
//! - An embedded map writes exactly the bytes that Hazelcast's clients write.
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `program` (default) | the program `filbert`, with `server` |
//! | `sql` | SQL statements: the query engine, which brings DataFusion |
//! | `server` | the front doors, cluster membership, configuration files; includes `sql` |
//!
//! Without these features (`default-features = false`) a member holds maps within a program, and
//! nothing else is built.
//!
//! # Where to start
//!
//! [`Filbert`], then [`Map`].
//!
//! ```
//! use filbert::{Config, Filbert};
//!
//! let filbert = Filbert::start(Config::default())?;
//! let greetings = filbert.map::<String, String>("greetings")?;
//! greetings.set("hello", "world")?;
//! assert_eq!(greetings.get("hello")?.as_deref(), Some("world"));
//! # Ok::<(), filbert::Error>(())
//! ```

pub mod config;
mod embedded;

pub use config::Config;
#[cfg(feature = "server")]
pub use config::{ClusterConfig, ConfigError, settings_markdown};
#[cfg(feature = "server")]
pub use embedded::Ending;
pub use embedded::{
    AsyncMap, EntryEvent, EntryView, Error, EventKind, Events, Filbert, Iter, Lifetime, Listener, ListenerOptions,
    LockOwner, Map, MapStatistics,
};
#[cfg(feature = "sql")]
pub use embedded::{SqlResult, SqlRows};
pub use filbert_data::{Blob, FieldType, FromBlob, Interval, Json, List, ToBlob, Value};
pub use filbert_grid::allocation::Counting as CountingAllocator;
pub use filbert_grid::query::{ColumnMeta, Dialect, ExpectedResult, Session, SqlError, SqlErrorCode, Statement};
pub use filbert_grid::{
    EventJournalConfig, EvictionConfig, EvictionPolicy, GridConfig, InMemoryFormat, MapConfig, MaxSizePolicy,
};
#[cfg(feature = "server")]
pub use filbert_hazelcast::{Authentication, DoorConfig};
#[cfg(feature = "server")]
pub use filbert_http::{HttpConfig, HttpUser};
#[cfg(feature = "server")]
pub use filbert_postgres::{PostgresConfig, PostgresSecret, PostgresTls, PostgresUser};
#[cfg(feature = "sql")]
pub use filbert_query::QueryConfig;

/// Parses an amount of memory such as `512MiB` or `4GiB` into bytes. All units are powers of 1024.
#[cfg(feature = "server")]
pub fn parse_bytes(text: &str) -> Option<u64> {
    config::parse_bytes(text)
}

/// Formats an amount of memory with the largest unit that divides it.
#[cfg(feature = "server")]
pub fn format_bytes(amount: u64) -> String {
    config::format_bytes(amount)
}

/// The embedded guide, so that its examples run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embedded.md")]
pub struct EmbeddedGuide;

/// The README, so that its examples run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
