//! The errors of a member of a cluster, and the translation of group errors into grid errors.

use filbert_cluster::{GroupError, MemberId, SubmitError};
use filbert_grid::GridError;
use filbert_grid::replication;
use filbert_links::LinkError;

/// Why a member does not start, or cannot carry out an operation.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// A setting is invalid.
    #[error("cannot be a member of a cluster: {0}")]
    Settings(String),
    /// The links cannot be created.
    #[error("cannot be linked to other members: {0}")]
    Links(#[from] LinkError),
    /// A group cannot be started.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The grid cannot be created.
    #[error("cannot make the grid: {0}")]
    Grid(#[from] GridError),
    /// The member cannot listen on the address.
    #[error("cannot listen on {address} for members: {why}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        why: String,
    },
    /// The cluster has refused the operation.
    #[error("the cluster refuses: {0}")]
    Refused(String),
    /// No leader of the registry was reached.
    #[error("the registry of the cluster cannot be asked: {0}")]
    Unreachable(String),
    /// The outcome of a command that was in flight is unknown.
    #[error(
        "the registry of the cluster has not answered in time, or lost its leader, while a command was on its way: the outcome is unknown"
    )]
    Unknown,
    /// The other members have removed this member while they could not reach it.
    #[error(
        "member {0} was taken out of its cluster: the others have not heard of it for too long, or an operator has ordered it"
    )]
    TakenOut(MemberId),
    /// The cluster that was being founded has failed.
    #[error(
        "the cluster that was being founded is not there any more, and nobody was served by it: start this member again"
    )]
    FoundingFailed,
    /// There is no member with this id.
    #[error("there is no member {0}")]
    NoMember(MemberId),
}

impl From<MemberError> for GridError {
    fn from(error: MemberError) -> Self {
        let group = replication::GroupId(0);
        match error {
            MemberError::Refused(why) => GridError::IllegalState(why),
            MemberError::Unknown => replication::SubmitError::Unknown { group }.into(),
            // Nothing was changed: the caller may retry.
            error => replication::SubmitError::NotLeader { group, hint: error.to_string() }.into(),
        }
    }
}

/// Translates the error of a group into an error of the grid.
pub(crate) fn grid_submit_error(group: replication::GroupId, error: &SubmitError) -> replication::SubmitError {
    match error {
        SubmitError::Overloaded { limit_bytes, .. } => {
            replication::SubmitError::Overloaded { group, limit_bytes: *limit_bytes }
        }
        SubmitError::TooLong { bytes, bytes_max, .. } => {
            replication::SubmitError::TooLong { group, bytes: *bytes, bytes_max: *bytes_max }
        }
        SubmitError::Unknown { .. } => replication::SubmitError::Unknown { group },
        SubmitError::NotLeader { leader: Some(leader), .. } => {
            replication::SubmitError::NotLeader { group, hint: format!("member {leader} leads it") }
        }
        error => replication::SubmitError::NotLeader { group, hint: error.to_string() },
    }
}
