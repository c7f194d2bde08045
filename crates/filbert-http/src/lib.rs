//! The front door for CrateDB's tools and for browsers: HTTP with `POST /_sql`, metrics, health and
//! the console.
//!
//! An [`HttpDoor`] listens and authenticates users by name and password. It translates requests
//! into statements for the query engine of the [`Grid`](filbert_grid::Grid), and results into JSON
//! in the format of CrateDB 5. The crate must not know the meaning of statements, the storage of
//! maps, the source of settings, or any other front door.
//!
//! ```text
//!  GET  /          CrateDB's JSON for tools; the console for browsers
//!  POST /_sql      {"stmt", "args" | "bulk_args"}
//!  GET  /_health   whether the member takes operations
//!  GET  /_ready    whether clients should use the member
//!  GET  /metrics   Prometheus' text format
//!  GET  /_filbert/cluster   members and groups of the cluster; POST: orders of an operator
//! ```
//!
//! # The path of a statement
//!
//! ```text
//!  socket ─► hyper ─► routes ─► user, session ─► body (bounded) ─► sql::request: stmt, args
//!                                                                        │ (borrowed values)
//!             execute_short, in place ◄── QueryEngine ──► execute, on its threads
//!                                             │ Cursor, page by page
//!  socket ◄─ chunks of about 256 KiB ◄─ sql::rows: JSON of each column's values
//!
//!  bulk_args of an INSERT: body ─► an engine's thread: sql::bulk parses rows ─► RowWriter
//! ```
//!
//! # Invariants
//!
//! - Memory grows with the bytes that arrived, never with a length that a client claims. A body
//!   with an announced length beyond the limit is refused before it is read. All bodies together
//!   have a limit.
//! - A result is never truncated silently. An error before the first row is an error response. An
//!   error after it closes the connection.
//! - A client that disconnects cancels its statement.
//! - No row of a bulk request is written before the whole body is known to be JSON of the right
//!   structure.
//!
//! # Modules, from bottom to top
//!
//! - `config` and `failure`; `figures` and `answer` write JSON: `figures` statistics, `answer`
//!   results.
//! - `shared` is the state that all connections share. `origin` and `user` check the origin and the
//!   user of a request. `connection` keeps a session for each connection.
//! - Endpoints: `body` and `sql` for statements, `metrics`, `cluster`, and the `console`, which
//!   shows the cluster as well. `console_sources` supplies the console with information about the
//!   door.
//! - `routes` maps paths to handlers, `door` listens.
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
mod figures;
mod metrics;
mod origin;
mod routes;
mod shared;
mod sql;
mod user;

pub use config::{HttpConfig, HttpUser};
pub use door::{HttpDoor, HttpDoorStatistics, HttpMonitor};
pub use filbert_listen::ListenError;

/// Entry points for fuzzing and benchmarks: bodies are parsed without running their statements.
#[doc(hidden)]
pub mod probe {
    /// Parses a body of `POST /_sql`, and returns the number of values in it. Returns 0 if the body
    /// cannot be parsed.
    pub fn count_values(body: &[u8]) -> usize {
        crate::sql::count_values(body)
    }

    /// Parses a body of `POST /_sql`, and returns the values of `args` as JSON.
    pub fn rewritten_args(body: &[u8]) -> Option<Vec<u8>> {
        crate::sql::rewritten_args(body)
    }

    /// Decompresses a gzip body to at most `bytes_max` bytes.
    pub fn unpacked(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        crate::body::unpacked_for_probe(packed, bytes_max)
    }
}
