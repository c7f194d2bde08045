//! The services of one member over the store's partitions: maps, locks and their waiters,
//! listeners, near-cache invalidation, eviction, expiry, clients, distributed objects, Compact
//! schemas, the account of memory and the budget of buffers, and the single table of errors.
//!
//! This crate must not know wire protocols, sockets, files or an async runtime: front doors and the
//! embedded API provide them. It is called from many threads. Each call waits for at most one
//! partition's lock at a time, and holds none while it waits.
//!
//! ```text
//!  door or embedded API              Grid                        filbert-store
//!  ────────────────────              ────                        ─────────────
//!  grid.map(name) ────────────────►  Map (handle)
//!  map.get(partition, key, read) ──► lock one cell ────────────► Partition::get ───► read(value)
//!  map.change(.., change, reply) ──► lock one cell ────────────► Partition::apply ─► reply(..)
//!                                      │ events                        │
//!       sinks of listeners ◄───────────┴────── Tap (observer) ◄────────┘
//!       parked changes ◄───── key released ────┘
//! ```
//!
//! # Invariants
//!
//! - A partition changes only under its cell's lock. Sinks and replies are called under this lock,
//!   in the order of the changes. They must neither block nor call back into the grid.
//! - The reply of a parked change is called exactly once, whatever happens to the key, the client
//!   or the member.
//! - The resources of a client (locks, listeners, parked changes) are released with its last
//!   connection.
//!
//! In a cluster, changes go through logs: [`replication`] proposes and applies them. Without logs,
//! a change is applied in the calling thread.
//!
//! # Modules, from bottom to top
//!
//! A module uses only modules of lower numbers, and earlier modules of its own line. Methods of a
//! type may be in a higher module than the type: [`Grid`] is below the modules of the logs, and
//! maps are created above those.
//!
//! 1. Modules without dependencies: [`allocation`], `member_memory` and the `budget` of buffers,
//!    `clock`, `random`, `statistics`, `threads`; `groups` (of partitions that share a log), and
//!    `errors`.
//! 2. Declarations and registries of members and clients: `names`, `patterns`, `indexes`, `config`,
//!    `cluster` (the trait), `definitions`, `schemas`, `clients`, `listeners`, `invalidation`,
//!    `objects`.
//! 3. The parts of a member: `waiters`, `cell`, `signatures`, `layouts`, `map_core`, `replicator`
//!    (the trait, and the pending answers), `shared`.
//! 4. A change under a cell's lock: `tap`, `eviction`, `applying`.
//! 5. The handle of a map: `map`, `lookups`, `building`, `direct`, `together`; queries over maps:
//!    [`query`] (the traits); and [`metrics`].
//! 6. The member: `grid`; its part in logs: [`replication`]; and operations with or without logs:
//!    `changes`, `claims`, `maps`, `connections`, `sweep`, `membership`, `replacement`.
//!
//! Start reading at [`Grid`], then [`Map::change`].

mod applying;
mod budget;
mod building;
mod cell;
mod change_log;
mod changes;
mod claim_owners;
mod claims;
mod clients;
mod clock;
mod cluster;
mod config;
mod connections;
mod definitions;
mod direct;
mod errors;
mod eviction;
mod grid;
mod groups;
mod indexes;
mod invalidation;
mod layouts;
mod listeners;
mod lookups;
mod map;
mod map_core;
mod maps;
mod member_memory;
mod membership;
mod names;
mod objects;
mod patterns;
mod pending_requests;
mod random;
mod replacement;
mod replicator;
mod schemas;
mod shared;
mod signatures;
mod statistics;
mod sweep;
mod tap;
mod together;
mod waiters;

pub mod allocation;
pub mod metrics;
pub mod query;
pub mod replication;
pub mod threads;

pub use budget::{Exhausted, MemoryBudget, Reservation, UNCOUNTED_BYTES_MAX};
pub use change_log::ChangeLog;
pub use claims::Claims;
pub use clients::{ClientInfo, ClientView, Clients, ConnectionId};
pub use clock::{Clock, SystemClock};
pub use cluster::{
    Cluster, ClusterCounters, ClusterOrder, ClusterStatus, ClusterView, ClusterWarning, Definition, Definitions,
    DefinitionsCallback, Done, GroupStatus, LinkCounters, MemberState, MemberStatus, MemberView, OrderDone,
    PartitionLoss, ReadView, Redefinition, ReplicaPin, ViewCallback,
};
pub use config::{
    ColumnConfig, EventJournalConfig, EvictionConfig, GridConfig, InMemoryFormat, MapConfig, MapConfigs, MaxSizePolicy,
    NearCacheConfig, SIZE_UNLIMITED, eviction_policy_from_name, eviction_policy_name,
};
pub use connections::ClientConnection;
pub use errors::{ErrorFacts, ErrorKind, GridError};
pub use grid::{Environment, Grid};
pub use indexes::{BitmapConfig, IndexConfig};
pub use invalidation::{Invalidation, InvalidationMetadata, InvalidationSink};
pub use layouts::{ColumnInfo, IndexInfo, LayoutChanges, MapLayout};
pub use listeners::{EntryEvent, EntrySink, EventKinds, ListenerId, ListenerSpec};
pub use map::{JournalRead, Map, Refused};
pub use maps::Unlinked;
pub use member_memory::MemberMemory;
pub use names::{MAP_SERVICE, NAME_BYTES_MAX, check_name};
pub use objects::{ObjectEvent, ObjectEventKind, ObjectId, ObjectSink, Objects};
pub use pending_requests::{PendingRequest, PendingRequests};
pub use replacement::MapReplacement;
pub use schemas::Schemas;
pub use statistics::GridStatistics;
pub use together::{NotMade, Together};
pub use waiters::ParkedReply;

pub use filbert_data::{Blob, PartitionId};
pub use filbert_store::{
    BatchItem, Caller, Change, Chunk, ColumnId, ColumnRange, ColumnType, ColumnView, Columns, Cursor, EntryView,
    EventKind, EvictionPolicy, Expected, Expiry, IndexId, IndexKind, IndexStatistics, JournalEvent, LockState, MapId,
    MapSettings, MapStatistics, Metadata, Millis, OwnedChange, PartitionSet, Probe, PutMode, Reply, SlotSet, Value,
};
