//! What the client knows of the cluster: its members, who owns which partition, and the connections to them.

use std::{collections::HashMap, sync::Arc};

use filbert_wire::structure::MemberInfo;
use uuid::Uuid;

use crate::{
    connection::{Connection, ConnectionId},
    inner::{Inner, Routes},
    registration::Registration,
};

/// A member of the cluster, as the cluster itself lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its identity, new with each start.
    pub uuid: Uuid,
    /// Its host name or IP address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it holds no data.
    pub is_lite: bool,
    /// Its version: major, minor, patch.
    pub version: (u8, u8, u8),
}

impl Member {
    fn new(info: &MemberInfo<'_>) -> Self {
        Self {
            uuid: info.uuid,
            host: info.address.host.to_owned(),
            port: u16::try_from(info.address.port).unwrap_or(0),
            is_lite: info.lite_member,
            version: (info.version.major, info.version.minor, info.version.patch),
        }
    }

    /// The address as `host:port`; IPv6 addresses in brackets.
    pub fn address(&self) -> String {
        match self.host.contains(':') && !self.host.starts_with('[') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// See the module's head. Behind a lock that calls do not take.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) id: Option<Uuid>,
    pub(crate) partition_count: u32,
    pub(crate) members: Vec<Member>,
    members_version: i32,
    /// Owner by partition.
    owners: Vec<Option<Uuid>>,
    partitions_version: i32,
    /// The connection on which the cluster's view is listened to; versions count within it.
    pub(crate) view_source: Option<ConnectionId>,
    /// By member.
    pub(crate) connections: HashMap<Uuid, Arc<Connection>>,
    pub(crate) registrations: HashMap<Uuid, Arc<Registration>>,
    /// The cluster that has heard of all Compact schemas that the client announced.
    pub(crate) schemas_known_to: Option<Uuid>,
}

impl Cluster {
    /// Forgets what was known of another cluster, or of this one before it was started again.
    pub(crate) fn start_over(&mut self, id: Uuid, partition_count: u32) {
        self.id = Some(id);
        self.partition_count = partition_count;
        self.members.clear();
        self.members_version = 0;
        self.owners.clear();
        self.partitions_version = 0;
        self.view_source = None;
    }

    /// The view comes from another connection now, where versions count anew.
    pub(crate) fn listen_on(&mut self, connection: ConnectionId) {
        if self.view_source != Some(connection) {
            self.view_source = Some(connection);
            self.members_version = 0;
            self.partitions_version = 0;
        }
    }

    /// Takes over a member list unless a newer one is known. Connections to members that left are closed.
    pub(crate) fn set_members(&mut self, version: i32, members: &[MemberInfo<'_>]) {
        if members.is_empty() || version < self.members_version {
            return;
        }
        self.members_version = version;
        self.members = members.iter().map(Member::new).collect();
        for (uuid, connection) in &self.connections {
            if !self.members.iter().any(|member| member.uuid == *uuid) {
                connection.close("the member left the cluster");
            }
        }
    }

    /// Takes over a partition table unless it is empty or a newer one is known.
    pub(crate) fn set_partitions(&mut self, version: i32, partitions: &[(Uuid, Vec<i32>)]) {
        if partitions.is_empty() || version < self.partitions_version {
            return;
        }
        self.partitions_version = version;
        self.owners = vec![None; self.partition_count as usize];
        for (owner, owned) in partitions {
            for partition in owned {
                let place = usize::try_from(*partition).ok().and_then(|at| self.owners.get_mut(at));
                if let Some(place) = place {
                    *place = Some(*owner);
                }
            }
        }
    }

    /// Takes closed connections out. True if there were any.
    pub(crate) fn reap(&mut self) -> bool {
        let before = self.connections.len();
        let registrations = &self.registrations;
        self.connections.retain(|_, connection| {
            let is_open = !connection.is_closed();
            if !is_open {
                registrations.values().for_each(|registration| registration.forget(connection.id));
            }
            is_open
        });
        if self.view_source.is_some_and(|source| !self.connections.values().any(|open| open.id == source)) {
            self.view_source = None;
        }
        self.connections.len() != before
    }

    /// The way to each partition's owner, for the calls to come.
    pub(crate) fn publish(&self, client: &Inner) {
        let owners = self.owners.iter().map(|owner| owner.and_then(|uuid| self.connections.get(&uuid).cloned()));
        *client.routes.write() = Routes {
            owners: owners.collect(),
            all: self.connections.values().cloned().collect(),
            partition_count: self.partition_count,
        };
    }
}
