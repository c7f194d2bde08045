//! The front door for Hazelcast's clients: sessions of the Open Binary Client Protocol over TCP.
//!
//! A [`Door`] listens, authenticates clients, translates their messages into calls of a
//! [`Grid`](filbert_grid::Grid), and translates the results into replies. It must not know the
//! storage of maps, the meaning of values, the source of settings, or any other front door.
//!
//! # Path of a batch
//!
//! ```text
//!  socket ──► read buffer of the thread ──► Splitter ──► Message ──► rows::find(id)
//!             (64 KiB, shared by all                                      │
//!              connections of the thread)                                 ▼
//!                                                handler(&mut Session, &Message), decodes in place
//!                                                                         │
//!                                                                         ▼
//!                                                Grid: map.get / map.change, under the partition's
//!                                                lock, on the connection's task
//!                                                                         │ encode the reply
//!                                                                         ▼
//!  socket ◄── one write per batch ◄───────────────────────────────── Session::out
//!                      ▲
//!  other threads ──► Outbox: events, and replies to requests that waited for a locked key or
//!                            ran a long query
//! ```
//!
//! In a cluster, a request for a partition that another member leads is forwarded to that member in
//! the client's name. A request for a whole map is answered by all members together (`relay/`).
//! Clients receive the list of members and the leaders of partitions, and are notified of changes
//! (`views.rs`).
//!
//! # Invariants
//!
//! - A request runs in place on its connection's task and never blocks. A change of a locked key is
//!   parked in the grid, and a long query runs on the engine's threads (`deferred.rs`). Both are
//!   answered through the [`outbox`](outbox::Outbox).
//! - The resources of a client's queries are released with its connection: cursors are dropped,
//!   running statements are cancelled (`cursors.rs`), and queries of maps end. Only query caches
//!   outlive the connection for a while, without their changes (`query_cache/`).
//! - Memory grows with the bytes that have arrived, never with a length that a client claims. An
//!   idle connection holds no buffers. Long replies use a share of the member's memory budget while
//!   they are built and until the client has read them (`replies.rs`).
//! - A client that does not read is not served further. Above
//!   [`write_buffer_bytes_max`](DoorConfig::write_buffer_bytes_max) bytes, its requests stay in the
//!   socket. Above [`event_buffer_bytes_max`](DoorConfig::event_buffer_bytes_max) bytes, it is
//!   disconnected.
//! - Every message of a client is answered with a reply under the request's correlation id, or its
//!   connection is closed. Other clients are not affected. The table in `failure.rs` lists the
//!   errors that close a connection.
//!
//! # Modules, from bottom to top
//!
//! - Independent of clients: `config`, `failure`, `replies`, `outbox`, `kinds`, `handles`; pages of
//!   results: `calendar`, `sql_rows`, `cursors`, `sql_reply`, `listing`.
//! - The parts of a connection that other threads use: `client_link`, `query_slot`. The end of a
//!   connection: `linger`.
//! - Information for all clients: `view` and `views` of the cluster, with `losses` and
//!   `migrations`; `registrations`; `query_cache`; `journal`.
//! - `relay` has the connections to other members. `session` combines all of these for one
//!   connection.
//! - `row` defines the handling of a message. `change` and `deferred` are shared by handlers. Above
//!   them are `handlers` and `authentication`.
//! - `rows` is the table of all messages. `routing` decides which requests go to other members.
//!   `dispatch` answers a request here, `sending` sends it to other members, and `holding` repeats
//!   it later.
//! - `connection` reads and writes the bytes. `door` listens.
//!
//! # Where to start
//!
//! [`Door::run`], then `connection.rs` for the bytes, `session.rs` for the state that a connection
//! offers to handlers, `rows.rs` for the table of handlers, `dispatch.rs` for the call of a
//! handler, and one of `handlers/`, for example `map_read.rs`.

mod authentication;
mod calendar;
mod change;
mod client_link;
mod config;
mod connection;
mod cursors;
mod deferred;
mod dispatch;
mod door;
mod failure;
mod handlers;
mod handles;
mod holding;
mod journal;
mod kinds;
mod linger;
mod listing;
mod losses;
mod migrations;
mod outbox;
mod query_cache;
mod query_slot;
mod registrations;
mod relay;
mod replies;
mod routing;
mod row;
mod rows;
mod sending;
mod session;
mod sql_reply;
mod sql_rows;
mod view;
mod views;

pub use config::{Authentication, DoorConfig, MemberAddress};
pub use door::{Door, DoorStatistics, Monitor};
pub use filbert_listen::ListenError;
pub use rows::{Support, support};
