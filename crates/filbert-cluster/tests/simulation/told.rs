//! What members tell listeners of, beside what has changed.

use std::collections::{BTreeMap, BTreeSet};

use filbert_cluster::MemberId;
use filbert_data::PartitionId;
use filbert_store::{Event, EventKind};

/// A change: its partition, and its number there, which is the same on all members.
type Change = (PartitionId, u64);

#[derive(Default)]
pub struct Told {
    /// Who has told of each change that was applied anywhere, and of which key it is.
    changes: BTreeMap<Change, (Vec<u8>, Vec<MemberId>)>,
    /// In the order of true time.
    order: Vec<Change>,
    /// How many were told by a second member.
    pub twice: usize,
}

impl Told {
    pub fn note(&mut self, member: MemberId, event: &Event<'_>, tells: bool) {
        // They tell who waits here, and have no number.
        if matches!(event.kind, EventKind::LockReleased | EventKind::Unclaimed) {
            return;
        }
        let change = (event.partition, event.sequence);
        let (_, tellers) = self.changes.entry(change).or_insert_with(|| (event.key.to_vec(), Vec::new()));
        if tells {
            assert!(!tellers.contains(&member), "member {member} tells of {change:?} twice");
            self.twice += usize::from(!tellers.is_empty());
            tellers.push(member);
            self.order.push(change);
        }
    }

    pub fn count(&self) -> usize {
        self.changes.len()
    }

    /// Changes that nobody has told of.
    pub fn untold(&self) -> Vec<Change> {
        self.changes.iter().filter(|(_, (_, tellers))| tellers.is_empty()).map(|(change, _)| *change).collect()
    }

    /// Changes that more members have told of.
    pub fn told_by_more_than(&self, members: usize) -> Vec<Change> {
        self.changes.iter().filter(|(_, (_, tellers))| tellers.len() > members).map(|(change, _)| *change).collect()
    }

    /// Changes that were told after a later one of the same key.
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
