//! One member's services over the store's partitions: maps, locks and those who wait for them, listeners, near-cache
//! invalidation, eviction, expiry, clients, distributed objects, Compact schemas, the budget of buffers, and the one table of errors.
//!
//! This crate must not know wire protocols, sockets, files or an async runtime: front doors and the embedded API bring
//! them. It is called from many threads; each call waits for at most one partition's lock at a time, holding none.
//!
//! ```text
//!  door or embedded API              Grid                                   filbert-store
//!  ────────────────────              ────                                   ─────────────
//!  grid.map(name) ────────────────►  Map (handle)
//!  map.get(partition, key, read) ──► lock one cell ───────────────────────► Partition::get ──► read(value)
//!  map.change(.., change, reply) ──► lock one cell ───────────────────────► Partition::apply ─► reply(..)
//!                                      │ events                                  │
//!       sinks of listeners ◄───────────┴─────── Tap (observer) ◄─────────────────┘
//!       parked changes     ◄── key released ──┘
//! ```
//!
//! # Invariants
//!
//! - A partition changes under its cell's lock only; sinks and replies are called under it, in order, and must neither
//!   block nor call back into the grid.
//! - A parked change's reply is called exactly once, whatever happens to the key, the client or the member.
//! - What a client owned (locks, listeners, parked changes) is gone when its last connection is.
//!
//! Where changes go through the logs of a cluster, they are proposed and applied by [`replication`]; else where they are asked for.
//!
//! Start reading at [`Grid`], then [`Map::change`].

mod budget;
mod cell;
mod clients;
mod clock;
mod cluster;
mod config;
mod definitions;
mod errors;
mod eviction;
mod grid;
mod indexes;
mod invalidation;
mod layouts;
mod listeners;
mod lookups;
mod map;
mod map_core;
mod objects;
mod patterns;
mod random;
mod schemas;
mod shared;
mod signatures;
mod statistics;
mod succession;
mod tap;
mod together;
mod waiters;

pub mod metrics;
pub mod query;
pub mod replication;
pub mod threads;

pub use budget::{Exhausted, MemoryBudget, Reservation, UNCOUNTED_BYTES_MAX};
pub use clients::{ClientConnection, ClientInfo, ClientView, Clients, ConnectionId};
pub use clock::{Clock, SystemClock};
pub use cluster::{
    Cluster, ClusterCounters, ClusterOrder, ClusterStatus, ClusterView, ClusterWarning, Definition, Definitions,
    DefinitionsCallback, Done, GroupStatus, LinkCounters, MemberState, MemberStatus, MemberView, OrderDone,
    PartitionLoss, Redefinition, ViewCallback,
};
pub use config::{
    BitmapConfig, ColumnConfig, EventJournalConfig, EvictionConfig, GridConfig, InMemoryFormat, IndexConfig, IndexKind,
    MapConfig, MapConfigs, MaxSizePolicy, NearCacheConfig, SIZE_UNLIMITED, eviction_policy_from_name,
    eviction_policy_name,
};
pub use errors::{ErrorFacts, ErrorKind, GridError};
pub use grid::{Environment, Grid, Unlinked};
pub use invalidation::{Invalidation, InvalidationMetadata, InvalidationSink};
pub use layouts::{ColumnInfo, IndexInfo, MapLayout, layout_changes};
pub use listeners::{EntryEvent, EntrySink, EventKinds, ListenerId, ListenerSpec};
pub use map::{JournalRead, Map, Refused};
pub use objects::{
    MAP_SERVICE, NAME_BYTES_MAX, ObjectEvent, ObjectEventKind, ObjectId, ObjectSink, Objects, check_name,
};
pub use schemas::Schemas;
pub use statistics::GridStatistics;
pub use succession::Succession;
pub use together::{Claims, NotMade, Together};
pub use waiters::ParkedReply;

pub use filbert_data::{Blob, PartitionId};
pub use filbert_store::{
    BatchItem, Caller, Change, Chunk, ColumnId, ColumnRange, ColumnType, ColumnView, Columns, Cursor, EntryView,
    EventKind, EvictionPolicy, Expected, Expiry, IndexId, IndexStatistics, JournalEvent, LockState, MapId, MapSettings,
    MapStatistics, Metadata, Millis, OwnedChange, PartitionSet, Probe, PutMode, Reply, SlotSet, Value,
};
