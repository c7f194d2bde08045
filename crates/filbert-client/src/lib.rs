//! An async client of Filbert, and of Hazelcast: maps over the client protocol, with pipelining.
//!
//! It connects to all members of a cluster, sends each call to the owner of its key, reconnects, and tries again what
//! can be tried again. It knows the wire's messages and the formats of values; it must not know how a member works.
//!
//! # The way of a call
//!
//! ```text
//! map.get(&key) ──► serialize ──► partition ──► connection of its owner ──► outbox ──► writer task ──► socket
//!      │ Call                                   slot: who waits                                          │
//!      ▼                                              ▲                                                  ▼
//!   .await  ◄── decode ◄── answer in the slot ◄───────┴───────── reader task ◄── Splitter ◄── socket ◄── member
//! ```
//!
//! # Invariants
//!
//! - A call is sent when it is made, not when it is awaited, and needs no task: calls that are made first and awaited
//!   later travel together.
//! - A call that changes something is sent again only where the member cannot have carried it out, or where repeating
//!   it does no harm, unless [`ClientConfig::redo_operation`] says otherwise.
//! - Answers are found by correlation id without searching; an answer nobody waits for is dropped.
//! - Every buffer and queue has a limit in [`ClientLimits`].
//!
//! # Where to start
//!
//! [`Client::connect`], then [`Map`], for SQL [`Client::sql`]; inside, `call.rs`, then `connection.rs`.
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
mod error;
mod events;
mod handshake;
mod inner;
mod io;
mod iteration;
mod journal;
mod keeper;
mod lock;
mod map;
mod paging;
mod pipelining;
mod query;
mod registration;
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
pub use map::{EntryView, Expiry, Like, Map};
pub use paging::Pages;
pub use pipelining::Pipelining;
pub use query::{Index, UniqueKey};
pub use registration::ListenerId;
pub use sql::{ResultKind, SqlColumn, SqlResult, Statement};
pub use sql_rows::SqlRow;
