//! The front door for Hazelcast's clients: sessions of the Open Binary Client Protocol over TCP.
//!
//! A [`Door`] listens, authenticates clients, and translates their messages into calls of a
//! [`Grid`](filbert_grid::Grid) and the answers back. It must not know how a map is stored, what a value means, where
//! settings come from, or any other front door.
//!
//! # The way of a batch
//!
//! ```text
//!  socket ──► read buffer of the thread ──► Splitter ──► Message ──► rows::find(id) ──► handler(&mut Session, &Message)
//!             (64 KiB, shared by all                                                       │ decode in place
//!              connections of the thread)                                                  ▼
//!                                                                          Grid: map.get / map.change, under the
//!                                                                          partition's lock, on this very task
//!                                                                                          │ encode the reply
//!                                                                                          ▼
//!  socket ◄── one write per batch ◄──────────────────────────────────────────────── Session::out
//!                      ▲
//!  other threads ──► Outbox: events, and replies to requests that waited for a locked key or asked for a long query
//! ```
//!
//! In a cluster, a request that another member leads is sent on to it in the client's name, and one about a whole map is answered by
//! all members together (`relay/`); clients are told of the members and of who leads, and hear of changes (`views.rs`).
//!
//! # Invariants
//!
//! - A request runs in place on its connection's task. None blocks: a change of a locked key is parked in the grid, and a
//!   query that takes long runs on the engine's threads (`deferred.rs`); both are answered through the
//!   [`outbox`](outbox::Outbox).
//! - What a client's queries hold goes with its connection: cursors are dropped, statements that run are cancelled
//!   (`cursors.rs`), queries of maps end. Query caches alone outlive it for a while, without what they keep (`query_cache/`).
//! - Memory grows with the bytes that arrived and never with a length that a client claims. An idle connection holds no
//!   buffers at all. Long answers draw from a share of the member's budget while they are built and unread (`replies.rs`).
//! - A client that does not read is not served further: above
//!   [`write_buffer_bytes_max`](DoorConfig::write_buffer_bytes_max) its requests stay in the socket, above
//!   [`event_buffer_bytes_max`](DoorConfig::event_buffer_bytes_max) it is disconnected.
//! - Whatever a client sends, it gets a reply under the request's correlation id, or its connection is closed; nobody
//!   else notices. The table in `failure.rs` says which error closes.
//!
//! # Where to start
//!
//! [`Door::run`], then `connection.rs` for the bytes, `session.rs` for what a connection is to a handler, `rows.rs` for
//! which message goes where, and one of `handlers/`, for example `map_read.rs`.

mod authentication;
mod calendar;
mod change;
mod config;
mod connection;
mod cursors;
mod deferred;
mod door;
mod failure;
mod handlers;
mod handles;
mod kinds;
mod link;
mod listing;
mod losses;
mod migrations;
mod outbox;
mod query_cache;
mod registrations;
mod relay;
mod replies;
mod rows;
mod session;
mod sql_reply;
mod sql_rows;
mod view;
mod views;

pub use config::{Authentication, DoorConfig, MemberAddress};
pub use door::{Door, DoorStatistics, Monitor};
pub use filbert_listen::ListenError;
pub use rows::{Support, support};
