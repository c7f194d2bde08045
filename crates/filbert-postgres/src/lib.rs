//! The front door for PostgreSQL's drivers and tools: the frontend/backend protocol, version 3, over TCP.
//!
//! A [`PostgresDoor`] listens, authenticates clients, and translates their messages into statements for the grid's query engine
//! ([`Grid::queries`](filbert_grid::Grid::queries)) and its rows into messages. It must not know what statements mean, how rows are stored,
//! where settings come from, or any other front door.
//!
//! # The way of a statement
//!
//! ```text
//!  socket ──► Link: read buffer ──► wire: Frame ──► Frontend ──► Session
//!                                                      │ simple: split at semicolons        extended: statements, portals
//!                                                      ▼
//!                         QueryEngine::execute_short ── in place ──┐
//!                         (not short) describe, execute ── wait ───┤
//!                                                                  ▼
//!  socket ◄── Link: out, written at 64 KiB ◄── types: text, binary ◄── Cursor: page, page, ..
//! ```
//!
//! # Invariants
//!
//! - Messages of a connection are handled one by one. What is short runs in place; else the connection's task waits for the engine's
//!   threads, reading ahead a little, so that a client that goes cancels what it runs.
//! - The next page of a result is asked for when the last one is written: memory holds a page and a buffer of each result, whatever
//!   its size.
//! - Memory grows with the bytes that arrived and never with a length that a client claims. An idle connection holds neither a buffer for
//!   what comes nor one above 2 KiB for what goes.
//! - `COPY FROM STDIN` writes all of its rows or none.
//! - Bytes that are not the protocol end the connection with SQLSTATE 08P01; whatever a statement does wrong is an error of that
//!   statement.
//!
//! # Where to start
//!
//! [`PostgresDoor::run`], then `connection.rs` for how a session begins, `session.rs` for which message goes where, `run.rs` for how a
//! statement runs.

mod config;
mod connection;
mod copy;
mod cursors;
mod door;
mod error;
mod extended;
#[doc(hidden)]
pub mod fuzz;
mod kept;
mod link;
mod portals;
mod registry;
mod rows;
mod run;
mod scram;
mod session;
mod settings;
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
