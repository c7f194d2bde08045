//! Groups of partitions that several members hold alike: each group has a log, agreed on by consensus, and a leader.
//!
//! This crate alone knows openraft. It must not know sockets, clients, names of maps, or how members find each other: whoever uses it
//! brings a [`Transport`], a [`WallClock`] and a runtime (openraft's `AsyncRuntime`; in production [`BootRuntime`]), so that a simulation
//! runs the same code with a network, clocks and randomness of its own.
//!
//! ```text
//!  Group::propose ─► proposer: what waits is merged ──► entry: stamp, submissions ──► consensus ──► raft_log (memory, bounded)
//!                                                                 │  link ──► Transport ──► Replicas::answer of others
//!                                                                 ▼ committed
//!  whoever awaits it ◄── awaiting, by ticket ◄── replica: origins (once, in sequence) ──► StateMachine: a grid's partitions,
//!                                                                                          ▲     a registry, Partitions
//!  reads ──► lease, before and after ──────────────────────────────────────────────────────┘
//!
//!  upkeep: lease from a quorum's acknowledgements; purging       snapshot: made when a member needs one, page by page
//! ```
//!
//! # Invariants
//!
//! - An answer is given when its entry is committed by a majority and applied here. A submission of an origin is applied once.
//! - A read is served under the partition's lock by a member that has a lease before and after it, in one term, and has applied the first
//!   entry of that term. The lease is withdrawn before leadership is handed over, and does not return in that term.
//! - Replicas that have applied the same entries hold the same ([`Group::state`]), whether from the log or from a snapshot.
//! - Time in a group does not go back: all commands of an entry happen at its leader's stamp, or at the latest stamp before; a read
//!   happens at a time that every later leader will know of.
//! - What a read has kept alive is told to the log before it would expire there, and forgotten by who leads anew.
//! - A group that has lost its majority serves nobody, until it is formed anew of a copy that is left ([`Group::reform`]), in a later
//!   [`Epoch`]: members of another epoch are not listened to.
//! - A leader tells of what it has committed (`telling.rs`): listeners hear of each change from one member, and from two at most where a
//!   leader was lost.
//! - Log, answers, waiting submissions and pages have limits, which are settings.
//! - Bytes from other members give errors, never a panic.
//!
//! Start reading at [`Group`].

mod acknowledged;
mod appending;
mod awaiting;
mod clock;
mod counters;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod group;
mod heartbeats;
mod ids;
mod lease;
mod link;
mod members;
mod origins;
mod partitions;
mod proposer;
mod raft_log;
mod reform;
mod replica;
mod replicas;
mod runtime;
mod settings;
mod snapshot;
mod state_machine;
mod status;
mod telling;
mod transport;
mod types;
mod upkeep;
mod wire;

pub use counters::GroupCounters;
pub use error::{GroupError, MembershipError, OriginRefusal, ReadError, RequestError, SubmitError, TransportError};
pub use group::{Group, ReadPoint, Turn, WallClock};
pub use heartbeats::SharedHeartbeats;
pub use ids::{Epoch, GroupId, MemberId, OriginId};
pub use origins::OriginLimits;
pub use partitions::{ChangeListener, Partitions};
pub use reform::{GroupCopy, Position};
pub use replicas::{CurrentEpoch, Replicas};
pub use runtime::{BootInstant, BootRuntime, BootSleep, BootTimeout, TimeIsOver};
pub use settings::GroupSettings;
pub use state_machine::{Applying, EntryAt, StateMachine, StateMachineError};
pub use status::GroupStatus;
pub use transport::{BoxFuture, Lane, Transport};
pub use wire::{OwnedReply, read_replies, write_replies};
