//! The errors of a group, for its callers.

use std::collections::BTreeSet;

use filbert_data::PartitionId;
use filbert_store::CodecError;

use crate::{Epoch, GroupId, MemberId};

/// Why a submission has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// This member does not lead. Nothing was changed: retry at the leader.
    #[error("member {member} does not lead group {group}, the leader is {}", leader_text(*leader))]
    NotLeader {
        /// The member that was asked.
        member: MemberId,
        /// The group.
        group: GroupId,
        /// The leader, if this member knows it.
        leader: Option<MemberId>,
    },
    /// Leadership was lost in flight: the submission may have been applied, or may still be. An
    /// origin retries. Any other caller must not retry changes that are not safe to repeat.
    #[error("group {group} lost its leader while a submission was on its way, its outcome is unknown")]
    Unknown {
        /// The group.
        group: GroupId,
    },
    /// Too many submissions are in flight, or the log is full. Nothing was changed: retry later.
    #[error("group {group} has too much on its way, expected at most {limit_bytes} bytes")]
    Overloaded {
        /// The group.
        group: GroupId,
        /// The limit that was exceeded.
        limit_bytes: usize,
    },
    /// The submission is longer than the group ever accepts. Nothing was changed, and a retry does
    /// not help.
    #[error("a submission to group {group} has {bytes} bytes, expected at most {bytes_max}")]
    TooLong {
        /// The group.
        group: GroupId,
        /// The size of the commands in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        bytes_max: usize,
    },
    /// The commands cannot be read. Nothing was changed.
    #[error("cannot read the commands of a submission: {0}")]
    Unreadable(#[from] CodecError),
    /// A command is for a partition that the group does not have. Nothing was changed.
    #[error("partition {partition} is not of group {group}")]
    OtherGroup {
        /// The partition of the command.
        partition: PartitionId,
        /// The group that was asked.
        group: GroupId,
    },
    /// The submission was out of sequence for its origin. It has changed nothing.
    #[error(transparent)]
    Origin(#[from] OriginRefusal),
}

/// Why a batch of an origin is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginRefusal {
    /// The origin was never opened, or was forgotten in favour of other origins. Its earlier
    /// batches may have been applied.
    #[error("origin {origin} is not known, expected one that was opened and used lately")]
    NotKnown {
        /// The origin.
        origin: u64,
    },
    /// A batch before this one is missing.
    #[error("batch {found} of an origin came, expected batch {expected}")]
    Gap {
        /// The number of this batch.
        found: u64,
        /// The number of the expected batch.
        expected: u64,
    },
    /// The batch was applied before, and its answer is no longer kept.
    #[error("batch {sequence} of an origin was applied, its answer is no longer kept")]
    Forgotten {
        /// The number of the batch.
        sequence: u64,
    },
}

/// Why a read was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This member does not lead, or cannot be sure that it does. Retry here or at the leader.
    #[error("member {member} has no lease of group {group}, the leader is {}", leader_text(*leader))]
    NoLease {
        /// The member that was asked.
        member: MemberId,
        /// The group.
        group: GroupId,
        /// The leader, if this member knows it. This member itself if its lease has expired or not
        /// begun.
        leader: Option<MemberId>,
    },
    /// The partition belongs to another group.
    #[error("partition {partition} is not of group {group}")]
    OtherGroup {
        /// The partition.
        partition: PartitionId,
        /// The group that was asked.
        group: GroupId,
    },
}

/// Why an answer did not arrive over the network. The request may have been carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The member cannot be reached at all: wait before a retry.
    #[error("member {0} cannot be reached")]
    Unreachable(MemberId),
    /// The connection broke before the answer arrived.
    #[error("the connection to member {0} broke")]
    Broken(MemberId),
    /// Too many bytes are queued for the connection. This request was not sent.
    #[error("too much waits to be sent to member {0}")]
    Overloaded(MemberId),
    /// The request exceeds the maximum length, and was not sent.
    #[error("a request to member {member} has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// The receiver.
        member: MemberId,
        /// The length of the request.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The member received the request, and refuses to answer it.
    #[error("member {member} refused a request: {why}")]
    Refused {
        /// The member that refused.
        member: MemberId,
        /// The reason that it gave.
        why: String,
    },
}

/// Why a member does not answer a request of another member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The bytes are not a request of this version.
    #[error("cannot read a request: {0}")]
    Unreadable(#[from] CodecError),
    /// The request is for another member: the address has another owner now.
    #[error("a request for member {wanted} came to member {found}")]
    OtherMember {
        /// The intended receiver.
        wanted: MemberId,
        /// The member that received it.
        found: MemberId,
    },
    /// The sender is in another epoch: it has continued without this member, or this member without
    /// it.
    #[error("a request of epoch {found} came, this member is in epoch {expected}")]
    OtherEpoch {
        /// The epoch of the sender.
        found: Epoch,
        /// The epoch of this member.
        expected: Epoch,
    },
    /// This member has no such group.
    #[error("member {member} does not have group {group}")]
    NoSuchGroup {
        /// The member that was asked.
        member: MemberId,
        /// The group.
        group: GroupId,
    },
    /// The group has stopped.
    #[error("group {group} has stopped: {why}")]
    Stopped {
        /// The group.
        group: GroupId,
        /// The reason.
        why: String,
    },
    /// A page of a snapshot cannot be taken over.
    #[error("cannot take over a snapshot of group {group}: {why}")]
    Snapshot {
        /// The group.
        group: GroupId,
        /// The reason.
        why: String,
    },
}

/// Why the members of a group were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// This member does not lead. Retry at the leader.
    #[error("member {member} does not lead group {group}, the leader is {}", leader_text(*leader))]
    NotLeader {
        /// The member that was asked.
        member: MemberId,
        /// The group.
        group: GroupId,
        /// The leader, if this member knows it.
        leader: Option<MemberId>,
    },
    /// Too few of the present or the wanted voters have answered within one lease: the change could
    /// cost the group its majority.
    #[error(
        "{answered} of the voters {} of group {group} have answered lately, expected at least {needed}",
        members_text(voters)
    )]
    NoMajority {
        /// The group.
        group: GroupId,
        /// The set of voters.
        voters: BTreeSet<MemberId>,
        /// The number of voters that have answered.
        answered: usize,
        /// The number of voters in a majority.
        needed: usize,
    },
    /// The leader does not take its own vote: it would serve reads beside the next leader. Hand the
    /// leadership over before.
    #[error("member {member} leads group {group}, and hands leadership over before it loses its vote")]
    OwnVote {
        /// The leader.
        member: MemberId,
        /// The group.
        group: GroupId,
    },
    /// The voters have been changed meanwhile. Check the voters again.
    #[error("group {group} has the voters {}, expected {}", members_text(found), members_text(expected))]
    Changed {
        /// The group.
        group: GroupId,
        /// The expected voters.
        expected: BTreeSet<MemberId>,
        /// The current voters.
        found: BTreeSet<MemberId>,
    },
    /// Another change is in progress, or came first. Check the voters again later.
    #[error("the members of group {group} are being changed already")]
    InProgress {
        /// The group.
        group: GroupId,
    },
    /// The change was started, or was refused for another reason. Check the voters before a retry.
    #[error(transparent)]
    Failed(#[from] GroupError),
}

/// Why a group was not started or formed, or did not carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {group} {what}: {why}")]
pub struct GroupError {
    /// The group.
    pub group: GroupId,
    /// The operation, as a text after the group's name.
    pub what: &'static str,
    /// The reason.
    pub why: String,
}

fn members_text(members: &BTreeSet<MemberId>) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}

fn leader_text(leader: Option<MemberId>) -> String {
    leader.map_or_else(|| "not known".to_owned(), |leader| format!("member {leader}"))
}
