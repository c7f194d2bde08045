//! Groups of partitions that share a log, and the errors of submissions to a log.

use std::fmt;

/// A group of partitions that share a log. The group of a partition is the partition's number
/// modulo the number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The term of a leader. It changes whenever another member has led the group in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term(pub u64);

/// Why a submission has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Another member leads the group, or no member does. Nothing was changed. The request can be
    /// sent to the leader.
    #[error("this member does not lead group {group} of the partitions: {hint}")]
    NotLeader {
        /// The group.
        group: GroupId,
        /// A hint at the leader, for a person.
        hint: String,
    },
    /// The commands in flight exceed the limit of the settings. Nothing was changed. The request
    /// can be sent again after a short wait.
    #[error("group {group} of the partitions has too much on its way, expected at most {limit_bytes} bytes")]
    Overloaded {
        /// The group.
        group: GroupId,
        /// The limit that was exceeded.
        limit_bytes: usize,
    },
    /// The commands exceed the maximum size of a submission. Nothing was changed, and a retry does
    /// not help.
    #[error(
        "the changes for group {group} of the partitions have {bytes} bytes, expected at most {bytes_max} at once in a cluster"
    )]
    TooLong {
        /// The group.
        group: GroupId,
        /// Bytes of the commands.
        bytes: usize,
        /// The maximum size.
        bytes_max: usize,
    },
    /// The outcome is unknown: the change was applied, was not applied, or will be applied later. A
    /// caller that must not apply it twice has to check first.
    #[error("group {group} of the partitions lost its leader while a change was on its way, its outcome is not known")]
    Unknown {
        /// The group.
        group: GroupId,
    },
}
