//! A member of a cluster: its [`Grid`](filbert_grid::Grid) over groups of partitions that other members hold as well.
//!
//! ```text
//!  Starting::listen ──► joining: founds a cluster, or joins one ──► Member: grid, groups, registry
//!
//!  Grid ──► replicator ──► PartitionGroup (filbert-cluster) ──► partitions ──► Grid::apply_batch
//!                │            └─ forwarding: what another member leads, from one member to the other
//!                └─ maps ──► asking ──► registry: members, maps, places, definitions      presence, administration ──► doors (Cluster)
//!                                          │                                  ▲ view         └─ reading: how far leaders are
//!                                          └──► upkeep: voters, leaders ──────┘ leading: who leads what
//! ```
//!
//! This crate brings the others together: it alone knows both a grid and groups. It must not know doors, configuration files, or what is in an
//! entry.
//!
//! # Invariants
//!
//! - A cluster is founded by one member, which most have accepted, and joined by all others (`joining.rs`, `founding.rs`). A member's id is
//!   never given again.
//! - What the registry says of maps is known on a member before it applies an entry that was made under it.
//! - A group that has lost its majority goes on by an order alone, in a later epoch: members of another one are not listened to (`recovery/`).
//! - A group's voters change one step at a time, and only by its leader; a vote follows after the data (`upkeep.rs`).
//! - What clients are told has versions that do not go back (`leading.rs`, `registry/state.rs`).
//!
//! Start reading at [`Starting`].

mod administration;
mod asking;
mod copies;
mod departed;
mod epoch;
mod errors;
mod following;
mod forwarding;
mod founding;
mod greeting;
mod joining;
mod leading;
mod member;
mod news;
mod pair;
mod partitions;
mod presence;
mod reading;
mod recovery;
mod registry;
mod replicator;
mod service;
mod text;
mod upkeep;
mod view;

pub use administration::Ending;
pub use errors::MemberError;
pub use member::{Member, MemberSettings, Starting};
pub use registry::{ClusterSettings, MapFacts, MemberFacts, RegistryState};
