//! The cluster, as it is reported to clients: its members, its partitions, its version.

use std::sync::Arc;

use filbert_grid::{MemberView, PartitionLoss};
use filbert_wire::{
    Uuid,
    structure::{Address, EndpointQualifier, MemberInfo, MemberVersion},
};

use crate::config::MemberAddress;

/// The version reported to clients: the version of Hazelcast whose behaviour this door follows.
/// Clients enable features by it.
pub(crate) const SERVER_VERSION: &str = "5.7.0";
/// The same version without the patch level.
pub(crate) const CLUSTER_VERSION: &str = "5.7";
pub(crate) const MEMBER_VERSION: MemberVersion = MemberVersion { major: 5, minor: 7, patch: 0 };

/// The version of the serialization format that clients must use.
pub(crate) const SERIALIZATION_VERSION: u8 = 1;

/// The version of the member list and of the partition table of a standalone member. Both never
/// change.
const STANDALONE_VERSION: i32 = 1;

/// The information about the cluster for all clients, at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterSnapshot {
    pub(crate) members: Vec<MemberView>,
    pub(crate) members_version: i32,
    /// The leaders by partition; `None` if no leader was ever known.
    pub(crate) leaders: Vec<Option<Uuid>>,
    pub(crate) leaders_version: i32,
    /// The last data losses by partition; empty if no partition has lost data.
    pub(crate) losses: Vec<Option<PartitionLoss>>,
}

/// The cluster, as it is reported to one client.
#[derive(Debug)]
pub(crate) struct View {
    snapshot: Arc<ClusterSnapshot>,
    member: Uuid,
}

impl View {
    pub(crate) fn new(snapshot: Arc<ClusterSnapshot>, member: Uuid) -> Self {
        Self { snapshot, member }
    }

    /// The view of a standalone member: it is the only member, at the address that the client has
    /// connected to.
    pub(crate) fn of_one(member: Uuid, address: &MemberAddress, partition_count: u32) -> Self {
        let itself = MemberView { uuid: member, host: address.host.clone(), port: address.port, is_lite: false };
        let snapshot = ClusterSnapshot {
            members: vec![itself],
            members_version: STANDALONE_VERSION,
            leaders: (0..partition_count).map(|_| Some(member)).collect(),
            leaders_version: STANDALONE_VERSION,
            losses: Vec::new(),
        };
        Self::new(Arc::new(snapshot), member)
    }

    pub(crate) fn snapshot(&self) -> &ClusterSnapshot {
        &self.snapshot
    }

    /// The address of this member for clients; `None` while it is not a member of the cluster.
    pub(crate) fn address(&self) -> Option<Address<'_>> {
        self.snapshot.members.iter().find(|member| member.uuid == self.member).map(address)
    }

    /// All members.
    pub(crate) fn members(&self) -> Vec<MemberInfo<'_>> {
        let info = |member| {
            // Kind 0 is the endpoint that members and clients share.
            let endpoint = EndpointQualifier { kind: 0, identifier: None };
            MemberInfo {
                address: address(member),
                uuid: member.uuid,
                attributes: Vec::new(),
                lite_member: member.is_lite,
                version: MEMBER_VERSION,
                address_map: vec![(endpoint, address(member))],
            }
        };
        self.snapshot.members.iter().map(info).collect()
    }

    /// The known leaders with their partitions.
    pub(crate) fn partitions(&self) -> Vec<(Uuid, Vec<i32>)> {
        let mut owners: Vec<(Uuid, Vec<i32>)> = Vec::new();
        for (partition, leader) in (0..).zip(&self.snapshot.leaders) {
            let Some(leader) = leader else { continue };
            match owners.iter_mut().find(|(owner, _)| owner == leader) {
                Some((_, owned)) => owned.push(partition),
                None => owners.push((*leader, vec![partition])),
            }
        }
        owners
    }
}

fn address(member: &MemberView) -> Address<'_> {
    Address { host: &member.host, port: i32::from(member.port) }
}
