//! What can go wrong with a group, for whoever asked.

use std::collections::BTreeSet;

use filbert_data::PartitionId;
use filbert_store::CodecError;

use crate::{Epoch, GroupId, MemberId};

/// Why a submission has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// This member does not lead. Nothing was changed: ask the leader.
    #[error("member {member} does not lead group {group}, the leader is {}", leader_text(*leader))]
    NotLeader {
        /// Who was asked.
        member: MemberId,
        /// What was asked for.
        group: GroupId,
        /// Who leads, if this member knows.
        leader: Option<MemberId>,
    },
    /// Leadership was lost on the way: the submission may have happened, or may still. An origin asks again; anybody else must not
    /// repeat what is not safe to repeat.
    #[error("group {group} lost its leader while a submission was on its way, its outcome is unknown")]
    Unknown {
        /// The group.
        group: GroupId,
    },
    /// More is on its way than the settings allow, or the log is full. Nothing was changed: ask again later.
    #[error("group {group} has too much on its way, expected at most {limit_bytes} bytes")]
    Overloaded {
        /// The group.
        group: GroupId,
        /// The limit that was met.
        limit_bytes: usize,
    },
    /// It is longer than the group ever takes at once. Nothing was changed, and asking again does not help.
    #[error("a submission to group {group} has {bytes} bytes, expected at most {bytes_max}")]
    TooLong {
        /// The group.
        group: GroupId,
        /// Bytes of the commands.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// The commands cannot be read. Nothing was changed.
    #[error("cannot read the commands of a submission: {0}")]
    Unreadable(#[from] CodecError),
    /// A command is of a partition that the group does not have. Nothing was changed.
    #[error("partition {partition} is not of group {group}")]
    OtherGroup {
        /// Whose command it is.
        partition: PartitionId,
        /// The group that was asked.
        group: GroupId,
    },
    /// The submission was out of its origin's sequence. Nothing was changed by it.
    #[error(transparent)]
    Origin(#[from] OriginRefusal),
}

/// Why a batch of an origin is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginRefusal {
    /// The origin was never opened, or was forgotten in favour of others. What it sent before may have happened.
    #[error("origin {origin} is not known, expected one that was opened and used lately")]
    NotKnown {
        /// The origin.
        origin: u64,
    },
    /// A batch before this one has not come.
    #[error("batch {found} of an origin came, expected batch {expected}")]
    Gap {
        /// The batch that came.
        found: u64,
        /// The one that has to come next.
        expected: u64,
    },
    /// The batch was applied before, and its answer is no longer kept.
    #[error("batch {sequence} of an origin was applied, its answer is no longer kept")]
    Forgotten {
        /// The batch.
        sequence: u64,
    },
}

/// Why a read was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This member does not lead, or cannot be sure that it does. Ask the leader, or again.
    #[error("member {member} has no lease of group {group}, the leader is {}", leader_text(*leader))]
    NoLease {
        /// Who was asked.
        member: MemberId,
        /// What was asked for.
        group: GroupId,
        /// Who leads, if this member knows; itself, if its lease ran out or has not begun.
        leader: Option<MemberId>,
    },
    /// The partition is of another group.
    #[error("partition {partition} is not of group {group}")]
    OtherGroup {
        /// What was read.
        partition: PartitionId,
        /// The group that was asked.
        group: GroupId,
    },
}

/// Why an answer did not come over the network. Whatever was asked may have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The member cannot be reached at all: wait before the next try.
    #[error("member {0} cannot be reached")]
    Unreachable(MemberId),
    /// The connection broke while the answer was awaited.
    #[error("the connection to member {0} broke")]
    Broken(MemberId),
    /// Too much waits for the connection, and this request was not sent.
    #[error("too much waits to be sent to member {0}")]
    Overloaded(MemberId),
    /// The request is longer than one may be, and was not sent.
    #[error("a request to member {member} has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// Whom it is for.
        member: MemberId,
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The member got the request, and does not answer it.
    #[error("member {member} refused a request: {why}")]
    Refused {
        /// Who refused.
        member: MemberId,
        /// What it said.
        why: String,
    },
}

/// Why a member does not answer a request of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The bytes are no request of this version.
    #[error("cannot read a request: {0}")]
    Unreadable(#[from] CodecError),
    /// The request is for another member: the address has another owner now.
    #[error("a request for member {wanted} came to member {found}")]
    OtherMember {
        /// Whom it is for.
        wanted: MemberId,
        /// Who got it.
        found: MemberId,
    },
    /// The sender is in another epoch: it went on without this member, or this one without it.
    #[error("a request of epoch {found} came, this member is in epoch {expected}")]
    OtherEpoch {
        /// The sender's.
        found: Epoch,
        /// This member's.
        expected: Epoch,
    },
    /// This member has no such group.
    #[error("member {member} does not have group {group}")]
    NoSuchGroup {
        /// Who was asked.
        member: MemberId,
        /// The group.
        group: GroupId,
    },
    /// The group has stopped.
    #[error("group {group} has stopped: {why}")]
    Stopped {
        /// The group.
        group: GroupId,
        /// What stopped it.
        why: String,
    },
    /// A page of a snapshot that cannot be taken over.
    #[error("cannot take over a snapshot of group {group}: {why}")]
    Snapshot {
        /// The group.
        group: GroupId,
        /// What is wrong with it.
        why: String,
    },
}

/// Why the members of a group were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// This member does not lead. Ask the leader.
    #[error("member {member} does not lead group {group}, the leader is {}", leader_text(*leader))]
    NotLeader {
        /// Who was asked.
        member: MemberId,
        /// What was asked for.
        group: GroupId,
        /// Who leads, if this member knows.
        leader: Option<MemberId>,
    },
    /// Too few of the present or the wanted voters have answered within one lease: the change could cost the group its majority.
    #[error(
        "{answered} of the voters {} of group {group} have answered lately, expected at least {needed}",
        members_text(voters)
    )]
    NoMajority {
        /// The group.
        group: GroupId,
        /// The voters that it is about.
        voters: BTreeSet<MemberId>,
        /// How many have answered.
        answered: usize,
        /// How many are a majority.
        needed: usize,
    },
    /// Somebody else has changed the voters. Look again at who they are.
    #[error("group {group} has the voters {}, expected {}", members_text(found), members_text(expected))]
    Changed {
        /// The group.
        group: GroupId,
        /// Who was thought to vote.
        expected: BTreeSet<MemberId>,
        /// Who does.
        found: BTreeSet<MemberId>,
    },
    /// Another change is on its way, or came first. Look again at who votes, later.
    #[error("the members of group {group} are being changed already")]
    InProgress {
        /// The group.
        group: GroupId,
    },
    /// It was begun, or refused for another reason. Look at who votes before the next try.
    #[error(transparent)]
    Failed(#[from] GroupError),
}

/// Why a group was not started or formed, or did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {group} {what}: {why}")]
pub struct GroupError {
    /// The group.
    pub group: GroupId,
    /// What was attempted, after the group's name.
    pub what: &'static str,
    /// What stood in the way.
    pub why: String,
}

fn members_text(members: &BTreeSet<MemberId>) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}

fn leader_text(leader: Option<MemberId>) -> String {
    leader.map_or_else(|| "not known".to_owned(), |leader| format!("member {leader}"))
}
