//! The registry's record of recoveries without a majority: the epoch, the groups that may have lost
//! changes, and the members that were left behind.

use std::collections::BTreeMap;

use filbert_cluster::{Epoch, GroupId, MemberId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::MemberFacts;

/// The maximum number of left-behind members that are remembered, and reminded when they come back.
const LEFT_BEHIND_MAX: usize = 64;

/// The number of versions that are skipped after a recovery of the registry: the registry may have
/// lost commands, and the versions and ids that they assigned must not be reused.
pub(super) const VERSIONS_SKIPPED: u64 = 1 << 32;
/// The number of ids of members and maps, and of versions of the member list, that are skipped.
pub(super) const IDS_SKIPPED: u32 = 1_000;
/// The number of numbers of a counter that are skipped: members take a few hundred at a time.
pub(super) const NUMBERS_SKIPPED: u64 = 1 << 16;

/// The loss of a group that continued with a surviving copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loss {
    /// The epoch of the latest loss.
    pub(crate) epoch: u64,
    /// The UUID of the member with that copy.
    #[serde(with = "crate::text")]
    pub(crate) kept_by: Uuid,
    /// The number of voters that did not answer.
    pub(crate) copies_lost: u32,
}

/// The record of all recoveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recoveries {
    epoch: u64,
    /// Losses by group.
    losses: BTreeMap<u32, Loss>,
    /// Members by id.
    left_behind: BTreeMap<u64, MemberFacts>,
}

impl Recoveries {
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    pub(crate) fn losses(&self) -> impl Iterator<Item = (GroupId, &Loss)> {
        self.losses.iter().map(|(group, loss)| (GroupId(*group), loss))
    }

    /// The members that the cluster continued without.
    pub(crate) fn left_behind(&self) -> impl Iterator<Item = (MemberId, &MemberFacts)> {
        self.left_behind.iter().map(|(id, facts)| (MemberId(*id), facts))
    }

    /// Records a recovery. Returns whether it is new.
    pub(super) fn add(
        &mut self,
        epoch: u64,
        losses: BTreeMap<u32, Loss>,
        left_behind: impl Iterator<Item = (u64, MemberFacts)>,
    ) -> bool {
        if epoch <= self.epoch {
            return false;
        }
        self.epoch = epoch;
        self.losses.extend(losses);
        self.left_behind.extend(left_behind);
        while self.left_behind.len() > LEFT_BEHIND_MAX {
            self.left_behind.pop_first();
        }
        true
    }
}
