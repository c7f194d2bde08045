//! The interface between the grid and the logs of its groups: the trait that another crate
//! implements, and the pending answers to commands.
//!
//! This module must not know the effect of a command, nor the code that proposes and applies it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use filbert_data::PartitionId;
use filbert_store::{MapId, MapSettings, Millis, Reply};
use uuid::Uuid;

use crate::cluster::Redefinition;
use crate::errors::GridError;
use crate::groups::{GroupId, SubmitError, Term};

mod answers;
mod in_flight;

pub use answers::{Answers, WhenLocked};
pub(crate) use answers::{PendingAnswer, RetryCommand, Submitter};
pub use in_flight::InFlight;

/// The outcome of a forwarded change.
pub type ForwardedAnswer = Result<Reply<'static>, GridError>;

/// Called with the answers to forwarded changes, one for each change, in their order, or with an
/// error for all of them.
pub type ForwardedReply = Box<dyn FnOnce(Result<Vec<ForwardedAnswer>, SubmitError>) + Send>;

/// Called with the answer to a read, or with the error.
pub type ReadReply = Box<dyn FnOnce(Result<Vec<u8>, SubmitError>) + Send>;

/// A submission that was not accepted, and its pending answers.
#[derive(Debug)]
pub struct RejectedSubmission {
    /// The pending answers.
    pub answers: Answers,
    /// The reason.
    pub why: SubmitError,
}

/// A map to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewMap<'n> {
    /// A map with this name.
    Named(&'n str),
    /// A map that is to replace another one, and to have this name then. It is hidden until
    /// [`Replicator::replace_map`].
    Replacing {
        /// The map that is to be replaced.
        old: MapId,
        /// The name.
        name: &'n str,
    },
}

/// The logs of this member's groups.
///
/// The replicator passes the entries of a log to [`Grid::apply_batch`](crate::Grid::apply_batch) on
/// every member that holds the group: one entry after the other, in the order of the log, from one
/// thread at a time for each group.
pub trait Replicator: Send + Sync {
    /// The number of groups. It never changes.
    fn groups(&self) -> u32;

    /// Appends commands, encoded by [`Encoder`](filbert_store::Encoder), to the log of a group that
    /// this member leads. They are applied together, at the leader's time, in the order of
    /// submission. If this member applies the entry as the leader, it passes `answers` to
    /// [`Grid::apply_batch`](crate::Grid::apply_batch). If not, the answers are refused
    /// ([`Answers::refuse`]), or dropped if the outcome is unknown.
    ///
    /// Called under the lock of a partition: it must not block, and must not apply, refuse or drop
    /// anything on the caller's thread.
    ///
    /// # Errors
    /// The commands were not accepted. The error contains the answers.
    fn submit(&self, group: GroupId, commands: Vec<u8>, answers: Answers) -> Result<(), Box<RejectedSubmission>>;

    /// Whether other members can be reached by [`Replicator::forward`].
    fn forwards(&self) -> bool {
        false
    }

    /// Sends changes, encoded by [`Encoder`](filbert_store::Encoder), to the leader of a group,
    /// which applies them by [`Grid::apply_forwarded`](crate::Grid::apply_forwarded) with the same
    /// `wait`. Each change is applied once, or its outcome is unknown. `done` is called once, on
    /// another thread.
    fn forward(&self, group: GroupId, changes: Vec<u8>, wait: Option<Duration>, done: ForwardedReply) {
        let (_, _) = (changes, wait);
        done(Err(SubmitError::NotLeader { group, hint: "no other member is known".to_owned() }));
    }

    /// Sends a read to the leader of a group, which answers it by
    /// [`Grid::answer_read`](crate::Grid::answer_read). While there is no leader, it is sent again
    /// for some time. `done` is called once, on another thread.
    fn read(&self, group: GroupId, request: Vec<u8>, done: ReadReply) {
        let _request = request;
        done(Err(SubmitError::NotLeader { group, hint: "no other member is known".to_owned() }));
    }

    /// Whether the member with this UUID has left the cluster or was removed from it. The claims of
    /// its statements are then released.
    fn is_gone(&self, _member: Uuid) -> bool {
        false
    }

    /// The term of the lease with which this member may answer reads of a group now. It has then
    /// applied all acknowledged changes. The result of a read is valid if the term is the same
    /// before and after the read.
    ///
    /// # Errors
    /// This member has no lease. The error contains a hint at the leader.
    fn lease(&self, group: GroupId) -> Result<Term, SubmitError>;

    /// The timestamp at which reads of a group decide expiry. Every later leader takes it into
    /// account.
    fn read_time(&self, group: GroupId) -> Millis;

    /// Creates a map on all members, and waits until this member has it. Returns its id and
    /// settings. An existing map with this name is returned with the settings of its first
    /// creation.
    ///
    /// Blocks. Must not be called on a thread for which other threads wait, nor under a lock of the
    /// grid.
    ///
    /// # Errors
    /// The registry cannot be reached, or the map cannot be created.
    fn create_map(&self, map: NewMap<'_>, settings: MapSettings) -> Result<(MapId, MapSettings), GridError>;

    /// Whether the map with this id was not dropped. Only called for maps that a log contains.
    fn knows_map(&self, map: MapId) -> bool;

    /// Drops a map on all members, and waits until all reachable members have dropped it. After
    /// this call, none of them has the map.
    ///
    /// Blocks. Must not be called on a thread for which other threads wait, nor under a lock of the
    /// grid.
    ///
    /// # Errors
    /// The registry cannot be reached.
    fn drop_map(&self, map: MapId) -> Result<(), GridError>;

    /// Replaces the old map of a [`NewMap::Replacing`] by the new one on all members, and changes
    /// definitions with it. Waits until all reachable members know. Returns `false`, and changes
    /// nothing, if a definition is not the expected one.
    ///
    /// Blocks, as [`Replicator::drop_map`].
    ///
    /// # Errors
    /// One of the maps was dropped, another map has the name, the registry cannot be reached, or
    /// the outcome is unknown.
    fn replace_map(&self, new: MapId, redefinitions: Vec<Redefinition>) -> Result<bool, GridError> {
        let (_, _) = (new, redefinitions);
        Err(GridError::UnsupportedOperation("there are no other members".to_owned()))
    }

    /// Drops the new one of a [`NewMap::Replacing`] on all members, unless it has replaced the old
    /// one.
    ///
    /// Blocks, as [`Replicator::drop_map`].
    ///
    /// # Errors
    /// The registry cannot be reached.
    fn abandon_map(&self, new: MapId) -> Result<(), GridError> {
        self.drop_map(new)
    }
}

/// The logs of the member.
pub(crate) struct Replication {
    pub(crate) replicator: Arc<dyn Replicator>,
    pub(crate) groups: u32,
}

impl fmt::Debug for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replication").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Replication {
    pub(crate) fn new(replicator: Arc<dyn Replicator>) -> Self {
        let groups = replicator.groups().max(1);
        Replication { replicator, groups }
    }

    pub(crate) fn group_of(&self, partition: PartitionId) -> GroupId {
        GroupId(partition.0 % self.groups)
    }

    pub(crate) fn lease_of(&self, partition: PartitionId) -> Result<Term, SubmitError> {
        self.replicator.lease(self.group_of(partition))
    }

    pub(crate) fn read_time(&self, partition: PartitionId) -> Millis {
        self.replicator.read_time(self.group_of(partition))
    }

    pub(crate) fn answering<R>(&self, partition: PartitionId, read: impl FnOnce() -> R) -> Result<R, SubmitError> {
        let before = self.lease_of(partition)?;
        let found = read();
        // Checked again, because this thread may have been suspended in between for any time.
        self.confirm(self.group_of(partition), before)?;
        Ok(found)
    }

    pub(crate) fn answering_all<R>(&self, read: impl FnOnce() -> R) -> Result<R, SubmitError> {
        let groups: Vec<GroupId> = (0..self.groups).map(GroupId).collect();
        self.answering_groups(&groups, read)
    }

    pub(crate) fn answering_groups<R>(&self, groups: &[GroupId], read: impl FnOnce() -> R) -> Result<R, SubmitError> {
        let leases = groups.iter().map(|group| self.replicator.lease(*group));
        let before: Vec<Term> = leases.collect::<Result<_, _>>()?;
        let found = read();
        groups.iter().zip(before).try_for_each(|(group, before)| self.confirm(*group, before))?;
        Ok(found)
    }

    fn confirm(&self, group: GroupId, before: Term) -> Result<(), SubmitError> {
        match self.replicator.lease(group)? == before {
            true => Ok(()),
            false => {
                Err(SubmitError::NotLeader { group, hint: "it led again while it read, ask once more".to_owned() })
            }
        }
    }
}
