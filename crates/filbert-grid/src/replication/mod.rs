//! Changes that go through the log of a group of partitions, so that several members make them alike.
//!
//! ```text
//!  doors, row writer, sweep     checks of who leads (propose.rs)                    another crate
//!  Map::submit ──────────────►  Submissions: commands as bytes, ──► Replicator::submit(group, commands, answers)
//!                               and beside them, who awaits what                        │ the log's order
//!                                                                                       ▼
//!  reply, or parked,       ◄──  Answers ◄────────────────────────── Grid::apply_batch (apply.rs), on every member
//!  or an error                                                          │ who leads
//!                               commands that follow ◄──────────────────┘ (leading.rs: who waited, what to evict)
//! ```
//!
//! A grid without a [`Replicator`] changes its partitions where it is called. Both ways decide by the same checks
//! (`Map::change`, `MapCore::check_memory`) and change a partition by the same code (`Shared::follow`): listeners, near caches,
//! accounts and due times follow from there. What differs is who is asked in between, and that an answer comes later.
//!
//! This module must not know how a log agrees on its order, who the other members are, and when leadership moves: the
//! replicator says the latter ([`Grid::leadership_gained`](crate::Grid::leadership_gained),
//! [`Grid::leadership_lost`](crate::Grid::leadership_lost)).
//!
//! # Invariants
//!
//! - What depends on the leader alone is decided before a command is proposed (memory, who waits for whom, which entries go),
//!   and named in it. Applying a command refuses nothing by it.
//! - Every awaited answer comes once: as the reply, as a place among those who wait for a key, or as an error that says whether
//!   the change may be sent again ([`SubmitError`]).
//! - Commands of one connection for one group are applied in the order in which it submitted them.
//! - Who waits for a key waits here, at the leader. One at a time is proposed again, in their order, and nobody who came later
//!   is proposed before.

use std::fmt;
use std::time::Duration;

use filbert_store::{MapId, MapSettings, Millis};
use uuid::Uuid;

use crate::GridError;

mod apply;
mod awaited;
mod empty;
mod forward;
mod in_flight;
mod leading;
mod pending;
mod propose;
mod reads;
mod snapshots;
mod submissions;
mod together;
mod upkeep;

pub use apply::{ApplyError, Part, Role};
pub use awaited::Answers;
pub use forward::{ForwardedAnswer, ForwardedReply};
pub use in_flight::InFlight;
pub use pending::Pending;
pub use propose::{Submitted, WhenLocked};
pub use snapshots::{GroupExport, GroupImport};
pub use submissions::Submissions;

pub(crate) use awaited::Awaited;
pub(crate) use forward::{Forwards, is_led_elsewhere};
pub(crate) use leading::propose_evictions_by_sweep;
pub(crate) use reads::Replication;
pub(crate) use upkeep::Again;

/// Partitions that share a log: those whose number is the group's, modulo the number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The term of a leader: another one, whenever a group was led by someone else in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term(pub u64);

/// Why a submission has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Another member leads the group, or none does. Nothing was changed: the leader can be asked.
    #[error("this member does not lead group {group} of the partitions: {hint}")]
    NotLeader {
        /// The group.
        group: GroupId,
        /// Where to ask, for a person.
        hint: String,
    },
    /// More is on its way than the settings allow. Nothing was changed: it can be sent again in a moment.
    #[error("group {group} of the partitions has too much on its way, expected at most {limit_bytes} bytes")]
    Overloaded {
        /// The group.
        group: GroupId,
        /// The limit that was met.
        limit_bytes: usize,
    },
    /// It is longer than a group takes at once. Nothing was changed, and sending it again does not help.
    #[error(
        "the changes for group {group} of the partitions have {bytes} bytes, expected at most {bytes_max} at once in a cluster"
    )]
    TooLong {
        /// The group.
        group: GroupId,
        /// Bytes of the commands.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// It was made, or was not, or still will be: whoever cannot bear to make it twice must look first.
    #[error("group {group} of the partitions lost its leader while a change was on its way, its outcome is not known")]
    Unknown {
        /// The group.
        group: GroupId,
    },
}

/// A submission that was not taken, and its answers, which nobody has told yet.
#[derive(Debug)]
pub struct NotTaken {
    /// Who awaits what.
    pub answers: Answers,
    /// Why.
    pub why: SubmitError,
}

/// The logs of this member's groups.
///
/// What it applies, it gives to [`Grid::apply_batch`](crate::Grid::apply_batch): on every member that holds the group, entry by
/// entry, in the order of the log, from one thread at a time for each group.
pub trait Replicator: Send + Sync {
    /// Number of groups. It never changes.
    fn groups(&self) -> u32;

    /// Takes commands, as [`Encoder`](filbert_store::Encoder) writes them, into the log of a group which this member leads. They are
    /// applied together, at the leader's time and in the order in which they were taken; `answers` go with the entry, and are given
    /// to [`Grid::apply_batch`](crate::Grid::apply_batch) where it is applied here, as leader. Where that does not happen, they are
    /// refused ([`Answers::refuse`]) or, if their fate is not known, dropped.
    ///
    /// Called under the lock of a partition: it must neither block, nor apply, refuse or drop anything on the caller's thread.
    ///
    /// # Errors
    /// They were not taken; the answers come back.
    fn submit(&self, group: GroupId, commands: Vec<u8>, answers: Answers) -> Result<(), Box<NotTaken>>;

    /// Whether there are others who can be asked by [`Replicator::forward`].
    fn forwards(&self) -> bool {
        false
    }

    /// Has the member that leads a group make changes, as [`Encoder`](filbert_store::Encoder) writes them, see
    /// [`Grid::make_for_other`](crate::Grid::make_for_other); `wait` as there. Each is made once, or its outcome is not known. `done` is called
    /// once, on another thread.
    fn forward(&self, group: GroupId, changes: Vec<u8>, wait: Option<Duration>, done: ForwardedReply) {
        let (_, _) = (changes, wait);
        done(Err(SubmitError::NotLeader { group, hint: "no other member is known".to_owned() }));
    }

    /// Whether a member of this id was taken out of the cluster, or has left it: what its statements have claimed is given back for it.
    fn is_gone(&self, _member: Uuid) -> bool {
        false
    }

    /// The term in which this member may answer reads of a group at this moment, having applied all that was acknowledged
    /// anywhere. A read that finds the same term before and after may be told.
    ///
    /// # Errors
    /// It may not; the error says who may.
    fn lease(&self, group: GroupId) -> Result<Term, SubmitError>;

    /// The time at which reads of a group see what has expired: every later leader will know of it.
    fn read_time(&self, group: GroupId) -> Millis;

    /// Has all members know a map, under the id that it gets, and waits until this member does; a map of that name that is known
    /// already is found. A map without a name gets an id and is known to nobody else. The settings that were told first hold.
    ///
    /// Not to be called by a thread that others wait for, nor under a lock of the grid.
    ///
    /// # Errors
    /// Nobody could be asked, or the map cannot be made.
    fn make_map(&self, name: Option<&str>, settings: MapSettings) -> Result<(MapId, MapSettings), GridError>;

    /// Whether members know a map under this id: where they do not, it was dropped, as this is asked about maps of the log alone.
    fn knows_map(&self, map: MapId) -> bool;

    /// Has all members drop a map, and waits until they have, as far as they can be reached: who knows that it is done finds it on none.
    ///
    /// Not to be called by a thread that others wait for, nor under a lock of the grid.
    ///
    /// # Errors
    /// Nobody could be asked.
    fn drop_map(&self, map: MapId) -> Result<(), GridError>;
}
