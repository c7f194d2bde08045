//! What the registry knows of orders to go on without a majority: the epoch, which groups have lost something, and whom the cluster went on without.

use std::collections::BTreeMap;

use filbert_cluster::{Epoch, GroupId, MemberId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::MemberFacts;

/// As many members that were left behind are told that they were, when they come back.
const LEFT_BEHIND_MAX: usize = 64;

/// The registry itself may have lost commands: whatever they gave is not given again, nor a version of theirs.
pub(super) const VERSIONS_SKIPPED: u64 = 1 << 32;
/// Of ids of members and maps, and of clients' versions of members, likewise.
pub(super) const IDS_SKIPPED: u32 = 1_000;
/// Of a counter's numbers, likewise: members take a few hundred at a time.
pub(super) const NUMBERS_SKIPPED: u64 = 1 << 16;

/// A group that went on with a copy that was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loss {
    /// In which epoch, the latest one.
    pub(crate) epoch: u64,
    /// The member with that copy.
    #[serde(with = "crate::text")]
    pub(crate) kept_by: Uuid,
    /// Voters that were not there.
    pub(crate) copies_lost: u32,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recoveries {
    epoch: u64,
    /// By group.
    losses: BTreeMap<u32, Loss>,
    /// By id.
    left_behind: BTreeMap<u64, MemberFacts>,
}

impl Recoveries {
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    pub(crate) fn losses(&self) -> impl Iterator<Item = (GroupId, &Loss)> {
        self.losses.iter().map(|(group, loss)| (GroupId(*group), loss))
    }

    /// Members that the cluster went on without.
    pub(crate) fn left_behind(&self) -> impl Iterator<Item = (MemberId, &MemberFacts)> {
        self.left_behind.iter().map(|(id, facts)| (MemberId(*id), facts))
    }

    /// Takes note of one; whether it is new.
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
