//! What can go wrong with a member of a cluster, and what becomes of its groups' errors in the grid.

use filbert_cluster::{GroupError, MemberId, SubmitError};
use filbert_grid::GridError;
use filbert_grid::replication;
use filbert_links::LinkError;

/// Why a member does not start, or cannot do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// A setting cannot be used.
    #[error("cannot be a member of a cluster: {0}")]
    Settings(String),
    /// The links cannot be made.
    #[error("cannot be linked to other members: {0}")]
    Links(#[from] LinkError),
    /// A group cannot be started.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The grid cannot be made.
    #[error("cannot make the grid: {0}")]
    Grid(#[from] GridError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for members: {why}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        why: String,
    },
    /// The cluster has decided against it.
    #[error("the cluster refuses: {0}")]
    Refused(String),
    /// Nobody who could decide was reached.
    #[error("the registry of the cluster cannot be asked: {0}")]
    Unreachable(String),
    /// The command was on its way when its fate became unknown.
    #[error(
        "the registry of the cluster has not answered in time, or lost its leader, while a command was on its way: the outcome is unknown"
    )]
    Unknown,
    /// The others have taken this member out while they did not hear of it.
    #[error(
        "member {0} was taken out of its cluster: the others have not heard of it for too long, or an operator has ordered it"
    )]
    TakenOut(MemberId),
    /// Nothing comes of the cluster that was being founded.
    #[error(
        "the cluster that was being founded is not there any more, and nobody was served by it: start this member again"
    )]
    InVain,
    /// There is no such member.
    #[error("there is no member {0}")]
    NoMember(MemberId),
}

impl From<MemberError> for GridError {
    fn from(error: MemberError) -> Self {
        let group = replication::GroupId(0);
        match error {
            MemberError::Refused(why) => GridError::IllegalState(why),
            MemberError::Unknown => replication::SubmitError::Unknown { group }.into(),
            // Nothing was changed: whoever asked may ask again.
            error => replication::SubmitError::NotLeader { group, hint: error.to_string() }.into(),
        }
    }
}

/// A group's error, as the grid tells it.
pub(crate) fn told(group: replication::GroupId, error: &SubmitError) -> replication::SubmitError {
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
