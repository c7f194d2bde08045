//! What clients are told of the cluster: its members, its partitions, its version.

use std::sync::Arc;

use filbert_grid::MemberView;
use filbert_wire::{
    MessageId, Uuid,
    structure::{Address, EndpointQualifier, MemberInfo, MemberVersion},
};

use crate::session::Session;
use crate::views::Told;

/// The version that clients are told: of the Hazelcast whose behaviour this door follows. Clients switch features on by
/// it.
pub(crate) const SERVER_VERSION: &str = "5.7.0";
/// The same without the patch level.
pub(crate) const CLUSTER_VERSION: &str = "5.7";
pub(crate) const MEMBER_VERSION: MemberVersion = MemberVersion { major: 5, minor: 7, patch: 0 };

/// The serialization format's version that clients must speak.
pub(crate) const SERIALIZATION_VERSION: u8 = 1;

/// The version of the member list and of the partition table of a standalone member, which never change.
const STANDALONE_VERSION: i32 = 1;

/// The cluster as one client is told of it.
#[derive(Debug)]
pub(crate) struct View {
    told: Arc<Told>,
    member: Uuid,
}

impl View {
    pub(crate) fn new(told: Arc<Told>, member: Uuid) -> Self {
        Self { told, member }
    }

    /// A member that is in no cluster is all of it, at the address by which the client came.
    pub(crate) fn of(session: &Session) -> Self {
        let member = session.grid.member_uuid();
        if let Some(cluster) = session.grid.cluster() {
            return Self::new(session.views.told(cluster), member);
        }
        let address = &session.address;
        let itself = MemberView { uuid: member, host: address.host.clone(), port: address.port, is_lite: false };
        let told = Told {
            members: vec![itself],
            members_version: STANDALONE_VERSION,
            leaders: (0..session.grid.partition_count()).map(|_| Some(member)).collect(),
            leaders_version: STANDALONE_VERSION,
            losses: Vec::new(),
        };
        Self::new(Arc::new(told), member)
    }

    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    /// Where clients find this member; `None` while it is not one of the members.
    pub(crate) fn address(&self) -> Option<Address<'_>> {
        self.told.members.iter().find(|member| member.uuid == self.member).map(address)
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
        self.told.members.iter().map(info).collect()
    }

    /// Who owns which partition, as far as it is known.
    pub(crate) fn partitions(&self) -> Vec<(Uuid, Vec<i32>)> {
        let mut owners: Vec<(Uuid, Vec<i32>)> = Vec::new();
        for (partition, leader) in (0..).zip(&self.told.leaders) {
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

/// The registration of a listener for events that never come here. It is not kept anywhere: its id is
/// made of the member's and the message's, so that it is known again when the listener is removed.
pub(crate) fn silent_registration(session: &Session, message: MessageId) -> Uuid {
    Uuid::from_u128(session.grid.member_uuid().as_u128() ^ u128::from(message.0))
}
