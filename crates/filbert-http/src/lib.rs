//! The front door for CrateDB's tools and for browsers: HTTP with `POST /_sql`, metrics, health and the console.
//!
//! An [`HttpDoor`] listens, knows users by their names and passwords, and translates requests into statements of the query
//! engine that the [`Grid`](filbert_grid::Grid) keeps, and results into JSON as CrateDB 5 writes it. It must not know what a
//! statement means, how a map is stored, where settings come from, or any other front door.
//!
//! ```text
//!  GET  /          CrateDB's JSON for tools; the console for browsers
//!  POST /_sql      {"stmt", "args" | "bulk_args"}
//!  GET  /_health   whether the member takes operations
//!  GET  /_ready    whether clients are to be sent to it
//!  GET  /metrics   Prometheus' text format
//!  GET  /_filbert/cluster   members and groups of the cluster; POST: orders of an operator
//! ```
//!
//! # The way of a statement
//!
//! ```text
//!  socket ─► hyper ─► routes ─► user, session ─► body (bounded) ─► sql::request: stmt, args as borrowed values
//!                                                                        │
//!             execute_short, in place ◄── QueryEngine ──► execute, on its threads
//!                                             │ Cursor, page by page
//!  socket ◄─ chunks of at most 256 KiB ◄─ sql::rows: JSON of each column's values
//!
//!  bulk_args of an INSERT: body ─► an engine's thread: sql::bulk parses rows ─► RowWriter
//! ```
//!
//! # Invariants
//!
//! - Memory grows with the bytes that arrived, never with a length that a client claims; a body that is announced to be too
//!   long is refused before it is read, and all bodies together have a limit.
//! - A result is never cut off in silence: an error before the first row is an error, one after it breaks the connection.
//! - A client that goes ends its statement.
//! - Nothing of a bulk request is written before all of its body is known to be JSON of the right shape.
//!
//! # Where to start
//!
//! [`HttpDoor::run`], then `routes.rs`, then `sql/mod.rs`.

mod answer;
mod body;
mod cluster;
mod config;
mod connection;
mod console;
mod console_sources;
mod door;
mod failure;
mod metrics;
mod origin;
mod routes;
mod shared;
mod sql;
mod user;

pub use config::{HttpConfig, HttpUser};
pub use door::{HttpDoor, HttpDoorStatistics, HttpMonitor};
pub use filbert_listen::ListenError;

/// What fuzzing and measuring need of the inside: bodies parsed without being run.
#[doc(hidden)]
pub mod probe {
    /// Parses a body of `POST /_sql`, and counts the values in it; 0 if it cannot be parsed.
    pub fn count_values(body: &[u8]) -> usize {
        crate::sql::count_values(body)
    }

    /// Parses a body of `POST /_sql`, and writes the values of `args` as JSON again.
    pub fn rewritten_args(body: &[u8]) -> Option<Vec<u8>> {
        crate::sql::rewritten_args(body)
    }

    /// Unpacks a body packed by gzip to at most this many bytes.
    pub fn unpacked(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        crate::body::unpacked_for_probe(packed, bytes_max)
    }
}
