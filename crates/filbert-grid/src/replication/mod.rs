//! Changes through the log of a group of partitions, so that several members apply the same
//! changes.
//!
//! ```text
//!  doors, row writer, sweep     checks of the leader (propose.rs)        another crate
//!  Map::submit ───────────────► Submissions: encoded commands, ────────► Replicator::submit
//!                               and the pending answers                        │ order of the log
//!                                                                              ▼
//!  reply, parked change, ◄───── Answers ◄──────────────────────────────── Grid::apply_batch
//!  or error                                                    (apply.rs), on every member
//!                               further commands ◄───────────────────────── on the leader
//!                               (leading.rs: waiters, evictions)
//! ```
//!
//! Reads of partitions that another member leads go to it as well (`leader_reads`).
//!
//! A grid without a [`Replicator`] changes its partitions in the calling thread. Both ways use the
//! same checks (`Map::change`, `MapCore::check_memory`) and the same code for the change of a
//! partition (`Shared::follow`), so listeners, near caches, accounts and due times behave the same.
//! They differ in the log between proposal and application, and in the later answer.
//!
//! This module must not know how a log agrees on its order, nor the other members, nor when
//! leadership changes. The replicator reports changes of leadership
//! ([`Grid::leadership_gained`](crate::Grid::leadership_gained),
//! [`Grid::lease_gained`](crate::Grid::lease_gained),
//! [`Grid::leadership_lost`](crate::Grid::leadership_lost)).
//!
//! # Invariants
//!
//! - Decisions that depend on the leader alone (memory limit, order of waiters, victims of
//!   eviction) are made before a command is proposed, and are part of it. Applying a command never
//!   refuses it for these reasons.
//! - Every pending answer is answered once: with the reply, by parking the change, or with an error
//!   that says whether the change may be sent again ([`SubmitError`]).
//! - Commands of one connection for one group are applied in the order of their submission.
//! - Waiters of a key wait on the leader. One waiter at a time is proposed again, in their order,
//!   and no later change of the key is proposed before them.

mod apply;
mod claims_by_log;
mod empty;
mod failures;
mod forward;
mod leader_reads;
mod leading;
mod pending;
mod propose;
mod replacing;
mod snapshots;
mod submissions;
mod upkeep;

pub use crate::groups::{GroupId, SubmitError, Term};
pub use crate::replicator::{
    Answers, ForwardedAnswer, ForwardedReply, InFlight, NewMap, ReadReply, RejectedSubmission, Replicator, WhenLocked,
};
pub use apply::{ApplyError, Part, Role};
pub use leader_reads::{EntryPage, EntrySelection, IndexSelection, LeaderRead};
pub use pending::Pending;
pub use propose::Submitted;
pub use replacing::{Rewriter, SharedReplacement, WholeClaim};
pub use snapshots::{GroupExport, GroupImport};
pub use submissions::Submissions;

pub(crate) use forward::{Forwards, is_led_elsewhere};
pub(crate) use leading::propose_evictions_by_sweep;
