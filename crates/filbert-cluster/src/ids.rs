//! The small values that name members, groups and who sends batches.

use std::fmt;

use filbert_data::PartitionId;

/// A member of the cluster. Never used again: a member that has lost its log returns with another number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of partitions that is replicated together: those whose number has this remainder by the number of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The group of a partition, out of `groups` (0 counts as 1).
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

/// How often the cluster has gone on without a majority, by an order that gives up what only the missing members had: members of different
/// epochs take no message of consensus from each other. The greater one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Members whose epochs of the same number differ.
    const MEMBERS: u64 = 1 << 20;

    /// The next one, made by a member: two members that go on without each other at the same time make different ones.
    #[must_use]
    pub fn next(self, by: MemberId) -> Epoch {
        Epoch(self.number().saturating_add(1).saturating_mul(Self::MEMBERS).saturating_add(by.0 % Self::MEMBERS))
    }

    /// How many there were before it.
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

/// Who sends batches in sequence, as a group has named it: the index and the place in the log where it was opened, so that no
/// two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u64);
