//! What clients are told of the cluster: its members, its partitions, its version.

use filbert_wire::{
    MessageId, Uuid,
    structure::{Address, EndpointQualifier, MemberInfo, MemberVersion},
};

use crate::session::Session;

/// The version that clients are told: of the Hazelcast whose behaviour this door follows. Clients switch features on by
/// it.
pub(crate) const SERVER_VERSION: &str = "5.7.0";
/// The same without the patch level.
pub(crate) const CLUSTER_VERSION: &str = "5.7";
pub(crate) const MEMBER_VERSION: MemberVersion = MemberVersion { major: 5, minor: 7, patch: 0 };

/// The serialization format's version that clients must speak.
pub(crate) const SERIALIZATION_VERSION: u8 = 1;

/// The version of the member list and of the partition table: a standalone member's never change.
pub(crate) const VIEW_VERSION: i32 = 1;

/// The cluster as one client is told of it.
#[derive(Debug)]
pub(crate) struct View {
    member: Uuid,
    host: String,
    port: i32,
    partition_count: u32,
}

impl View {
    pub(crate) fn of(session: &Session) -> Self {
        Self {
            member: session.grid.member_uuid(),
            host: session.address.host.clone(),
            port: i32::from(session.address.port),
            partition_count: session.grid.partition_count(),
        }
    }

    pub(crate) fn address(&self) -> Address<'_> {
        Address { host: &self.host, port: self.port }
    }

    /// All members: this one.
    pub(crate) fn members(&self) -> Vec<MemberInfo<'_>> {
        // Kind 0 is the endpoint that members and clients share.
        let endpoint = EndpointQualifier { kind: 0, identifier: None };
        vec![MemberInfo {
            address: self.address(),
            uuid: self.member,
            attributes: Vec::new(),
            lite_member: false,
            version: MEMBER_VERSION,
            address_map: vec![(endpoint, self.address())],
        }]
    }

    /// Who owns which partition: this member all of them.
    pub(crate) fn partitions(&self) -> Vec<(Uuid, Vec<i32>)> {
        vec![(self.member, (0..i32::try_from(self.partition_count).unwrap_or(i32::MAX)).collect())]
    }
}

/// The registration of a listener for events that a standalone member never has. It is not kept anywhere: its id is
/// made of the member's and the message's, so that it is known again when the listener is removed.
pub(crate) fn silent_registration(session: &Session, message: MessageId) -> Uuid {
    Uuid::from_u128(session.grid.member_uuid().as_u128() ^ u128::from(message.0))
}
