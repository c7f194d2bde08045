//! The partitions that a read takes from this member.

use std::collections::BTreeSet;
use std::sync::Arc;

use filbert_data::PartitionId;

use crate::errors::GridError;
use crate::groups::GroupId;

/// Holds the replicas of this member: it gives up no replica that a read may use. Clones are the
/// same pin.
#[derive(Clone, Debug, Default)]
pub struct ReplicaPin(Arc<()>);

impl ReplicaPin {
    /// Whether other clones of the pin exist.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The partitions that a read takes from this member's replicas. All others are read at their
/// leaders ([`LeaderRead`](crate::replication::LeaderRead)).
///
/// A member that has caught up before a read has all changes that were acknowledged before the
/// read. It keeps them as long as the view, or a clone of it, exists.
#[derive(Clone, Debug, Default)]
pub struct ReadView {
    /// Whether this member has caught up with a group, by group; `None` = with all groups.
    groups: Option<Arc<[bool]>>,
    /// `None` = the member never gives up a replica.
    pin: Option<ReplicaPin>,
}

impl ReadView {
    /// All partitions are read here.
    #[must_use]
    pub fn complete() -> ReadView {
        ReadView::default()
    }

    /// The view of a member that has caught up with these groups, by group.
    #[must_use]
    pub fn of_groups(caught_up: &[bool]) -> ReadView {
        let is_complete = caught_up.iter().all(|caught_up| *caught_up);
        ReadView { groups: (!is_complete).then(|| caught_up.into()), pin: None }
    }

    /// The view with a pin of the replicas that it contains.
    #[must_use]
    pub fn pinned(self, pin: ReplicaPin) -> ReadView {
        ReadView { pin: Some(pin), ..self }
    }

    /// The view without some groups. `count` is the number of groups in the cluster.
    pub(crate) fn without(&self, groups: &BTreeSet<GroupId>, count: u32) -> ReadView {
        let is_here = |of: u32| self.is_here(PartitionId(of)) && !groups.contains(&GroupId(of));
        ReadView { groups: Some((0..count).map(is_here).collect()), pin: self.pin.clone() }
    }

    /// Whether the member may give up replicas once the view is gone.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.pin.is_some()
    }

    /// Whether all partitions are read here.
    #[must_use]
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.groups.is_none()
    }

    /// Whether a partition is read here.
    #[must_use]
    #[inline]
    pub fn is_here(&self, partition: PartitionId) -> bool {
        let Some(groups) = &self.groups else { return true };
        // The group of a partition, see `GroupId`.
        let group = partition.0 as usize % groups.len().max(1);
        groups.get(group).is_some_and(|is_here| *is_here)
    }

    /// Checks that all partitions are read here.
    ///
    /// # Errors
    /// This member does not hold all partitions. `what` names the impossible operation in the error
    /// text.
    pub fn check_complete(&self, what: &str) -> Result<(), GridError> {
        if self.is_complete() {
            return Ok(());
        }
        Err(GridError::UnsupportedOperation(format!(
            "{what}, and this member does not hold all partitions: expected as many replicas as members with data \
             (--replicas), and a member with data"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_read_where_its_group_is() {
        let view = ReadView::of_groups(&[true, false, true]);
        let here: Vec<bool> = (0..6).map(|partition| view.is_here(PartitionId(partition))).collect();
        assert_eq!(here, [true, false, true, true, false, true]);
        assert!(!view.is_complete() && view.check_complete("it reads all").is_err());
        assert!(ReadView::of_groups(&[true, true]).is_complete());
    }

    #[test]
    fn a_view_and_its_clones_hold_the_replicas() {
        let pin = ReplicaPin::default();
        let view = ReadView::of_groups(&[true, false]).pinned(pin.clone());
        let clone = view.clone();
        drop(view);
        assert!(pin.is_shared());
        drop(clone);
        assert!(!pin.is_shared());
    }
}
