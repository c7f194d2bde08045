//! Filbert: an in-memory data grid that Hazelcast's clients connect to unmodified.
//!
//! This crate puts the parts together: the configuration ([`config`]), the embedded API ([`Filbert`], [`Map`]), and the
//! program `filbert`, which is the embedded API with a command line in front. It holds no data and speaks no protocol
//! itself.
//!
//! ```text
//!   hazelcast.yaml, flags --> Config --> Filbert::start --+--> Grid            (filbert-grid: the maps)
//!                                                         +--> timer thread    (expiry, leases, lock waits)
//!                                                         +--> Door            (filbert-hazelcast: Hazelcast's clients)
//!                                                         +--> HttpDoor        (filbert-http: CrateDB's tools, browsers)
//!                                                         +--> PostgresDoor    (filbert-postgres: PostgreSQL's drivers)
//!   your program --> Filbert::map::<K, V> --> Map --> blobs --> Grid
//! ```
//!
//! # Invariants
//!
//! - Nothing in a configuration file is ignored in silence: it is used, or noted by name and line.
//! - An embedded member opens no socket unless its configuration asks for one.
//! - What an embedded map writes is byte for byte what Hazelcast's clients write.
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

pub use config::{ClusterConfig, Config, ConfigError, settings_markdown};
pub use embedded::{
    AsyncMap, Ending, EntryEvent, EntryView, Error, EventKind, Events, Filbert, Iter, Lifetime, Listener,
    ListenerOptions, LockOwner, Map, MapStatistics, SqlResult, SqlRows,
};
pub use filbert_data::{Blob, FieldType, FromBlob, Interval, Json, List, ToBlob, Value};
pub use filbert_grid::query::{ColumnMeta, Dialect, ExpectedResult, Session, SqlError, SqlErrorCode, Statement};
pub use filbert_grid::{
    EventJournalConfig, EvictionConfig, EvictionPolicy, GridConfig, InMemoryFormat, MapConfig, MaxSizePolicy,
};
pub use filbert_hazelcast::{Authentication, DoorConfig};
pub use filbert_http::{HttpConfig, HttpUser};
pub use filbert_postgres::{PostgresConfig, PostgresSecret, PostgresTls, PostgresUser};
pub use filbert_query::QueryConfig;

/// Reads an amount of memory such as `512MiB` or `4GiB`, in bytes; units count by 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    config::parse_bytes(text)
}

/// Writes an amount of memory in the largest unit that divides it.
pub fn format_bytes(amount: u64) -> String {
    config::format_bytes(amount)
}

/// The guide's first example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embedded.md")]
pub struct EmbeddedGuide;
