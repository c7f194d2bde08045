//! The front door for PostgreSQL's drivers and tools: the frontend/backend protocol, version 3,
//! over TCP.
//!
//! A [`PostgresDoor`] listens, authenticates clients, and translates their messages into statements
//! for the grid's query engine ([`Grid::queries`](filbert_grid::Grid::queries)). It translates the
//! engine's rows into messages. The crate must not know the meaning of statements, the storage of
//! rows, the source of settings, or any other front door.
//!
//! # The path of a statement
//!
//! ```text
//!  BufferedSocket: input ──► wire: Frame ──► Frontend ──► Session
//!                                                │ simple: split at semicolons
//!                                                │ extended: statements, portals
//!                                                ▼
//!                         QueryEngine::execute_short ── in place ──┐
//!                         (not short) describe, execute ── wait ───┤
//!                                                                  ▼
//!  BufferedSocket: out ◄── written at 64 KiB ◄── types: text, binary ◄── Cursor: page, page, ..
//! ```
//!
//! # Invariants
//!
//! - The messages of a connection are handled one by one. A short statement runs in place. For any
//!   other statement the connection's task waits for the engine's threads. Meanwhile it reads ahead
//!   a little, so that it notices when the client disconnects and can cancel the statement.
//! - The next page of a result is requested when the previous page is written. Memory holds one
//!   page and one buffer of each result, whatever the size of the result.
//! - Memory grows with the bytes that arrived and never with a length that a client claims. An idle
//!   connection holds no receive buffer, and a send buffer of at most 2 KiB.
//! - `COPY FROM STDIN` writes all of its rows or none.
//! - Bytes that violate the protocol close the connection with SQLSTATE 08P01. An error of a
//!   statement ends only that statement.
//!
//! # Modules, from bottom to top
//!
//! - Encodings: `wire` (messages), `types` (values), `statement` (tokens of a text), `error`.
//! - State of a door: `config`, `scram`, `tls`, `registry` (open sessions), and all of them in
//!   `shared`. State of a connection: `buffered_socket`, `memory` (reservations), `settings`.
//! - Results: `columns` (their formats), `rows` (a cursor and its page), `copy_format` (rows of
//!   COPY).
//! - `portals` keeps statements and portals by name, `session` has all state of a session.
//! - Work of a session: `sending` of rows and `run` of a statement, then `copy` and `analysis`
//!   (analysis of prepared statements), then `cursors`, then the two protocols, `simple` and
//!   `extended`.
//! - `serving` dispatches messages, `connection` begins and ends a session, `door` listens.
//!
//! # Where to start
//!
//! [`PostgresDoor::run`], then `connection.rs` for the start of a session, `serving.rs` for the
//! dispatch of messages, `run.rs` for the execution of a statement.

mod analysis;
mod buffered_socket;
mod columns;
mod config;
mod connection;
mod copy;
mod copy_format;
mod cursors;
mod door;
mod error;
mod extended;
#[doc(hidden)]
pub mod fuzz;
mod memory;
mod portals;
mod registry;
mod rows;
mod run;
mod scram;
mod sending;
mod serving;
mod session;
mod settings;
mod shared;
mod simple;
mod statement;
mod tls;
mod types;
mod wire;

pub use config::{PostgresConfig, PostgresSecret, PostgresTls, PostgresUser};
pub use door::{PostgresDoor, PostgresDoorError, PostgresMonitor, PostgresStatistics};
pub use filbert_listen::ListenError;
pub use scram::BrokenVerifier;
pub use statement::lexer::statement_bytes;
pub use tls::TlsError;
