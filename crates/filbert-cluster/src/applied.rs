//! The state that the log of a group decides beside the state machine: the last applied entry, the
//! members, and the origins.

use crate::origins::Origins;
use crate::types::{LogId, SnapshotMeta, StoredMembership};

/// The state that the log decides beside the state machine.
#[derive(Clone, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
    pub(crate) origins: Origins,
}

impl Applied {
    /// The log position and the membership of a snapshot of this state.
    pub(crate) fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.last, last_membership: self.membership.clone() }
    }
}
