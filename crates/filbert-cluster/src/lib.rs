//! Groups of partitions that are replicated to several members: each group has a leader and a log,
//! which the members agree on by consensus.
//!
//! This crate alone knows openraft. It must not know sockets, clients, names of maps, or how
//! members find each other. The user of the crate provides a [`Transport`], a [`WallClock`] and a
//! runtime (openraft's `AsyncRuntime`; in production [`BootRuntime`]). So a simulation runs the
//! same code with its own network, clocks and randomness.
//!
//! ```text
//!  Group::propose ──► proposer: merges waiting submissions ──► entry: stamp, submissions
//!                                                                ▼
//!                raft_log (memory, bounded) ◄────────────── consensus ──► link ──► Transport ──►
//!                                                                │          Replicas::answer
//!                                                                ▼          of other members
//!  waiter ◄── awaiting, by ticket ◄── replica: origins ◄──── committed
//!                                       │      (once, in sequence)
//!                                       ▼
//!  reads ──► lease, before and after ──► StateMachine: grid partitions, registry, Partitions
//!
//!  upkeep: lease from the acknowledgements of a quorum; purging
//!  snapshot: exported when a member needs one, page by page
//! ```
//!
//! # Modules, from bottom to top
//!
//! Each module uses only the modules before it. `types` has the types of consensus, `wire` encodes
//! them; `clock`, `lease`, `reporting`, `urgent_commits` and `awaiting` decide one question each.
//! `state_machine` is the state that a log changes, `origins` and `applied` the state that the log
//! decides beside it; `snapshot` transfers both as pages, and `waiting` is the queue of
//! submissions. `replica` applies the log, `raft_log` stores it; `consensus_link`, `appending` and
//! `network` send consensus messages to another member. `shared` holds all of this for one group.
//! `proposer` and `upkeep` are the group's tasks, `handling` answers other members. `seat` starts a
//! member's replica, and replaces it. `group` has the operations on it; `members`, `giving_up`,
//! `reform`, `status` and `replicas` have further ones.
//!
//! # Invariants
//!
//! - A submission is answered once its entry is committed by a majority and applied here. A
//!   submission of an origin is applied once.
//! - A read is served under the partition's lock, by a member that has a lease before and after it,
//!   in one term, and has applied the first entry of that term. The lease is withdrawn before
//!   leadership is handed over, and does not return in that term.
//! - Replicas that have applied the same entries have the same state ([`Group::state`]), whether
//!   from the log or from a snapshot.
//! - Time in a group never goes back: all commands of an entry happen at its leader's stamp, or at
//!   the latest stamp before. A read happens at a time that every later leader will know of.
//! - Entries that a read has kept alive are recorded in the log before they would expire there. A
//!   new leader forgets reads that were not recorded.
//! - A group that has lost its majority serves no requests until it is re-formed from a surviving
//!   copy ([`Group::reform`]), in a later [`Epoch`]. Messages of members in another epoch are
//!   refused.
//! - A member that has forgotten its log neither votes nor stands for election before its log has
//!   reached the configuration that removed it (`giving_up.rs`).
//! - A leader reports the changes that it has committed (`reporting.rs`): listeners receive each
//!   change from one member, and from two members at most if a leader was lost.
//! - The log, kept answers, waiting submissions and pages have limits, which are settings.
//! - Bytes from other members lead to errors, never to a panic.
//!
//! Start reading at [`Group`].

mod acknowledged;
mod appending;
mod applied;
mod awaiting;
mod clock;
mod consensus_link;
mod counters;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod giving_up;
mod group;
mod handling;
mod heartbeats;
mod ids;
mod lease;
mod members;
mod network;
mod origins;
mod partitions;
mod proposer;
mod raft_log;
mod reform;
mod replica;
mod replicas;
mod reporting;
mod runtime;
mod seat;
mod settings;
mod shared;
mod snapshot;
mod state_machine;
mod status;
mod transport;
mod types;
mod upkeep;
mod urgent_commits;
mod waiting;
mod wire;

pub use clock::WallClock;
pub use counters::GroupCounters;
pub use error::{GroupError, MembershipError, OriginRefusal, ReadError, RequestError, SubmitError, TransportError};
pub use group::{Group, Turn};
pub use heartbeats::SharedHeartbeats;
pub use ids::{Epoch, GroupId, MemberId, OriginId};
pub use origins::OriginLimits;
pub use partitions::{ChangeListener, Partitions, RoomForImport};
pub use reform::{GroupCopy, Position};
pub use replica::ReadPoint;
pub use replicas::{CurrentEpoch, Replicas};
pub use runtime::{BootInstant, BootRuntime, BootSleep, BootTimeout, TimeIsOver};
pub use settings::GroupSettings;
pub use state_machine::{Applying, EntryAt, StateMachine, StateMachineError};
pub use status::GroupStatus;
pub use transport::{BoxFuture, Lane, Transport};
pub use wire::{OwnedReply, read_replies, write_replies};
