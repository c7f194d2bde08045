//! A member of a cluster: a [`Grid`](filbert_grid::Grid) over groups of partitions that are
//! replicated to other members.
//!
//! ```text
//!  Starting::listen ──► joining: founds or joins a cluster ──► Member: grid, groups, registry
//!
//!  Grid ──► replicator ──► PartitionGroup (filbert-cluster) ──► partitions ──► Grid::apply_batch
//!               │            └─ forwarding: changes for groups that another member leads
//!               └─ maps ──► registry_client ──► registry: members, maps, places, definitions
//!                                                  │                                  ▲
//!                                                  └──► upkeep: voters, leaders ──────┘
//!
//!  doors ──► Cluster: presence ──► view ──► leading: the leader of each group
//!                        ├─ reading: read points of leaders
//!                        └─ administration: status, orders of operators
//! ```
//!
//! This crate connects the grid and the groups: it alone knows both. It must not know doors,
//! configuration files, or the content of entries.
//!
//! # Invariants
//!
//! - A cluster is founded by one member, which a majority has accepted. All other members join it
//!   (`joining.rs`, `founding.rs`). A member id is never reused.
//! - A member knows the registry's maps before it applies an entry that depends on them.
//! - A group that has lost its majority continues only by an order (of an operator, or of `pair`),
//!   in a later epoch. Messages of members in another epoch are ignored (`recovery/`).
//! - The voters of a group change one step at a time, and only by its leader. A member gets its
//!   vote after it has the data (`upkeep.rs`).
//! - A member gives up a replica once no read view contains it (`releasing.rs`).
//! - The versions that clients see never decrease (`leading.rs`, `registry/state.rs`).
//!
//! # Modules, from bottom to top
//!
//! - The shared knowledge and the messages of members: `registry`, `leading` (the leader of each
//!   group), `founding`, `messages` (requests and answers), `ending`, `epoch`, `errors`.
//! - The state of this member: `partitions` (the state machine of a group), `following` and
//!   `cluster_log` (followers of the registry), `view` (this member's view of the cluster).
//! - The requests to other members: `registry_client` (commands of the registry), `forwarding`
//!   (changes), `leader_reads` (entries of partitions that this member does not hold), `releasing`
//!   (replicas that this member gives up), `reading` (read points of leaders), `greeting` (members
//!   at the configured addresses).
//! - The services built on these: `replicator` for the grid; `recovery` and `administration` for
//!   operators; `departed` and `upkeep` as background tasks; `presence` for doors, `pair` for a
//!   cluster of two members.
//! - `service` answers requests of other members with all of these, `joining` brings the member
//!   into a cluster, `member` assembles everything.
//!
//! Start reading at [`Starting`].

mod administration;
mod cluster_log;
mod departed;
mod ending;
mod epoch;
mod errors;
mod following;
mod forwarding;
mod founding;
mod greeting;
mod joining;
mod leader_reads;
mod leading;
mod member;
mod messages;
mod pair;
mod partitions;
mod presence;
mod reading;
mod recovery;
mod registry;
mod registry_client;
mod releasing;
mod replicator;
mod service;
mod text;
mod upkeep;
mod view;

pub use ending::Ending;
pub use errors::MemberError;
pub use member::{Member, MemberSettings, Starting};
pub use registry::{ClusterSettings, MapFacts, MemberFacts, RegistryState};
