//! The ids of members, groups, epochs and origins.

use std::fmt;

use filbert_data::PartitionId;

/// The id of a member of the cluster. Never reused: a member that has lost its log returns with
/// another id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of a group of partitions that are replicated together. The group of a partition is the
/// partition's number modulo the number of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Returns the group of a partition, out of `groups` (0 counts as 1).
    #[must_use]
    pub fn of(partition: PartitionId, groups: u32) -> GroupId {
        GroupId(partition.0 % groups.max(1))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The epoch of the cluster. It increases each time the cluster continues without a majority, by an
/// order that gives up the changes that only missing members had. Members in different epochs
/// refuse consensus messages from each other. The greater epoch is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The number of members with distinct epochs of the same number.
    const MEMBERS: u64 = 1 << 20;

    /// Returns the next epoch, created by a member: two members that continue without each other at
    /// the same time create different epochs.
    #[must_use]
    pub fn next(self, by: MemberId) -> Epoch {
        Epoch(self.number().saturating_add(1).saturating_mul(Self::MEMBERS).saturating_add(by.0 % Self::MEMBERS))
    }

    /// The number of epochs before this one.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0 / Self::MEMBERS
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())?;
        if !self.0.is_multiple_of(Self::MEMBERS) {
            write!(f, " (made by member {})", self.0 % Self::MEMBERS)
        } else {
            Ok(())
        }
    }
}

/// The id of an origin, which submits batches in sequence: the index and the position in the log
/// where it was opened, so that no two origins have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u64);
