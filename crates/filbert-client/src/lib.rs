//! An async client for Filbert and Hazelcast: maps and SQL over the client protocol, with
//! pipelining.
//!
//! It connects to all members of a cluster, sends each call to the owner of its key, reconnects,
//! and retries calls that are safe to retry. It knows the messages of the protocol and the formats
//! of values; it must not know the implementation of a member.
//!
//! # The path of a call
//!
//! ```text
//! map.get(&key) ─► serialize ─► partition ─► owner's connection ─► outbox ─► writer task ─► socket
//!     │ Call                                 slot with waker                                   │
//!     ▼                                          ▲                                             ▼
//!  .await ◄─ decode ◄─ response in the slot ◄────┴─ reader task ◄─ Splitter ◄─ socket ◄──── member
//! ```
//!
//! # Invariants
//!
//! - A call is sent when it is created, not when it is awaited, and needs no task of its own.
//!   Several calls that are created before the first is awaited are in flight together.
//! - A call that changes data is retried only if no member can have executed it, or if it is safe
//!   to repeat, unless [`ClientConfig::redo_operation`] is set.
//! - A correlation id is an index into the table of calls, so a response finds its call without a
//!   search. A response without a waiting call is dropped.
//! - Every buffer and queue has a limit in [`ClientLimits`].
//!
//! # Modules, from bottom to top
//!
//! Each module uses only the modules before it. `slots` and `connection` hold the calls of one
//! connection; `io` opens a connection and runs its two tasks. `registration` is a listener with
//! its registrations at the members, `routes` the connection to each partition's owner, `cluster`
//! the view of the cluster, `inner` the state that all handles of a client share. `call` sends and
//! retries calls; `listeners` and `schemas` register listeners and schemas at the members.
//! `handshake` establishes a connection, `connection_manager` replaces lost connections, `client`
//! starts both. `map`, `sql` and the other modules contain the operations of a client.
//!
//! # Where to start
//!
//! The API: [`Client::connect`], then [`Map`], or [`Client::sql`] for SQL. The implementation:
//! `call.rs`, then `connection.rs`.
//!
//! ```no_run
//! use filbert_client::{Client, ClientConfig};
//!
//! # async fn example() -> Result<(), filbert_client::ClientError> {
//! let client = Client::connect(ClientConfig::default()).await?;
//! let capitals = client.map::<String, String>("capitals");
//! capitals.set("Italy", "Rome").await?;
//! assert_eq!(capitals.get("Italy").await?.as_deref(), Some("Rome"));
//! client.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod bulk;
mod call;
mod client;
mod cluster;
mod config;
mod connection;
mod connection_manager;
mod error;
mod events;
mod handshake;
mod inner;
mod io;
mod iteration;
mod journal;
mod listeners;
mod lock;
mod map;
mod paging;
mod pipelining;
mod query;
mod registration;
mod routes;
mod schemas;
mod slots;
mod sql;
mod sql_rows;

pub use call::Call;
pub use client::Client;
pub use cluster::Member;
pub use config::{Backoff, ClientConfig, ClientLimits, Credentials, Routing};
pub use error::{ClientError, Refusal, ServerError, SqlError, code, sql_code};
pub use events::{EntryEvent, EntryEvents, EntryKinds, Listening};
pub use filbert_data::{Blob, FieldType, FromBlob, Json, List, PartitionId, ToBlob, Value, compact, criteria};
pub use iteration::Cursor;
pub use journal::{JournalBounds, JournalEvent, JournalPage};
pub use lock::LockGuard;
pub use map::{EntryView, Expiry, Map, SerializesAs};
pub use paging::Pages;
pub use pipelining::Pipelining;
pub use query::{Index, UniqueKey};
pub use registration::ListenerId;
pub use sql::{ResultKind, SqlResult, Statement};
pub use sql_rows::{SqlColumn, SqlRow};

/// The examples of the README, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
