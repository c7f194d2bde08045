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

/// Who sends batches in sequence, as a group has named it: the index and the place in the log where it was opened, so that no
/// two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u64);
