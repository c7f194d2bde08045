//! The changes that members report to listeners, compared with all changes.

use std::collections::{BTreeMap, BTreeSet};

use filbert_cluster::MemberId;
use filbert_data::PartitionId;
use filbert_store::{Event, EventKind};

/// A change: its partition, and its number there, which is the same on all members.
type Change = (PartitionId, u64);

#[derive(Default)]
pub struct EventReports {
    /// The key of each change that was applied on any member, and the members that have reported
    /// the change.
    changes: BTreeMap<Change, (Vec<u8>, Vec<MemberId>)>,
    /// The reported changes, in the order of true time.
    order: Vec<Change>,
    /// The number of changes that were reported by a second member.
    pub twice: usize,
}

impl EventReports {
    pub fn record(&mut self, member: MemberId, event: &Event<'_>, reports_event: bool) {
        // These events are for local waiters, and have no number.
        if matches!(event.kind, EventKind::LockReleased | EventKind::Unclaimed) {
            return;
        }
        let change = (event.partition, event.sequence);
        let (_, reporters) = self.changes.entry(change).or_insert_with(|| (event.key.to_vec(), Vec::new()));
        if reports_event {
            assert!(!reporters.contains(&member), "member {member} tells of {change:?} twice");
            self.twice += usize::from(!reporters.is_empty());
            reporters.push(member);
            self.order.push(change);
        }
    }

    pub fn count(&self) -> usize {
        self.changes.len()
    }

    /// The changes that no member has reported.
    pub fn unreported(&self) -> Vec<Change> {
        self.changes.iter().filter(|(_, (_, reporters))| reporters.is_empty()).map(|(change, _)| *change).collect()
    }

    /// The changes that more than `members` members have reported.
    pub fn reported_by_more_than(&self, members: usize) -> Vec<Change> {
        self.changes.iter().filter(|(_, (_, reporters))| reporters.len() > members).map(|(change, _)| *change).collect()
    }

    /// The changes that were reported after a later change of the same key.
    pub fn out_of_order(&self) -> Vec<Change> {
        let (mut latest, mut late) = (BTreeMap::new(), BTreeSet::new());
        for change in &self.order {
            let before = latest.entry(&self.changes[change].0).or_insert(*change);
            if *before > *change {
                late.insert(*change);
            }
            *before = (*before).max(*change);
        }
        late.into_iter().collect()
    }
}
