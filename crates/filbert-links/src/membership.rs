//! The place of a member in its cluster.

use filbert_cluster::MemberId;
use uuid::Uuid;

/// The place of a member in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) id: MemberId,
    /// The id of the cluster.
    pub(crate) cluster: Uuid,
}
