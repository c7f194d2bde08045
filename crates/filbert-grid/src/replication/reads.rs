//! Reads under a log: whether this member may answer them.

use std::fmt;
use std::sync::Arc;

use filbert_data::PartitionId;
use filbert_store::Millis;

use super::{GroupId, Replicator, SubmitError, Term};
use crate::errors::GridError;
use crate::map::Map;

/// The member's logs.
pub(crate) struct Replication {
    pub(crate) replicator: Arc<dyn Replicator>,
    groups: u32,
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

    fn answering<R>(&self, partition: PartitionId, read: impl FnOnce() -> R) -> Result<R, SubmitError> {
        let before = self.lease_of(partition)?;
        let found = read();
        // Asked again: this thread may have been stopped in between for any time.
        self.confirm(self.group_of(partition), before)?;
        Ok(found)
    }

    fn answering_all<R>(&self, read: impl FnOnce() -> R) -> Result<R, SubmitError> {
        let groups: Vec<GroupId> = (0..self.groups).map(GroupId).collect();
        self.answering_groups(&groups, read)
    }

    fn answering_groups<R>(&self, groups: &[GroupId], read: impl FnOnce() -> R) -> Result<R, SubmitError> {
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

impl Map {
    /// Whether changes go through logs.
    #[inline]
    pub fn is_replicated(&self) -> bool {
        self.shared.replication.is_some()
    }

    /// Runs a read of one partition, whose result may be told to others.
    ///
    /// # Errors
    /// This member may not answer for the partition: what was read may be old.
    #[inline]
    pub fn answering<R>(&self, partition: PartitionId, read: impl FnOnce() -> R) -> Result<R, GridError> {
        match &self.shared.replication {
            None => Ok(read()),
            Some(replication) => Ok(replication.answering(partition, read)?),
        }
    }

    /// Runs a read of all partitions, whose result may be told to others.
    ///
    /// # Errors
    /// As [`Map::answering`], for any of the partitions.
    #[inline]
    pub fn answering_all<R>(&self, read: impl FnOnce() -> R) -> Result<R, GridError> {
        match &self.shared.replication {
            None => Ok(read()),
            Some(replication) => Ok(replication.answering_all(read)?),
        }
    }

    /// Runs a read of some partitions, whose result may be told to others.
    ///
    /// # Errors
    /// As [`Map::answering`], for any of these partitions.
    pub fn answering_these<R>(&self, partitions: &[PartitionId], read: impl FnOnce() -> R) -> Result<R, GridError> {
        let Some(replication) = &self.shared.replication else { return Ok(read()) };
        let mut groups: Vec<GroupId> = partitions.iter().map(|partition| replication.group_of(*partition)).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(replication.answering_groups(&groups, read)?)
    }
}
