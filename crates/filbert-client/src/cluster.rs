//! The client's view of the cluster: its members, the owner of each partition, and the connections.

use std::{collections::HashMap, sync::Arc};

use filbert_wire::structure::MemberInfo;
use uuid::Uuid;

use crate::{
    connection::{Connection, ConnectionId},
    registration::Registration,
    routes::Routes,
};

/// A member, as in the member list of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The UUID of the member. A member has a new UUID after each start.
    pub uuid: Uuid,
    /// The host name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether it is a lite member, which holds no data.
    pub is_lite: bool,
    /// The version: major, minor, patch.
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

/// The view of the cluster. A lock protects it; sending a call does not acquire that lock.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) id: Option<Uuid>,
    pub(crate) partition_count: u32,
    pub(crate) members: Vec<Member>,
    members_version: i32,
    /// The owner of each partition; `None` if unknown.
    owners: Vec<Option<Uuid>>,
    partitions_version: i32,
    /// The connection that delivers changes of the view. Versions are comparable only within one
    /// connection.
    pub(crate) view_source: Option<ConnectionId>,
    /// The connection to each member.
    pub(crate) connections: HashMap<Uuid, Arc<Connection>>,
    pub(crate) registrations: HashMap<Uuid, Arc<Registration>>,
    /// The cluster to which the client has sent all its Compact schemas.
    pub(crate) schemas_known_to: Option<Uuid>,
}

impl Cluster {
    /// Discards the view of the previous cluster, or of this cluster before its restart.
    pub(crate) fn reset(&mut self, id: Uuid, partition_count: u32) {
        self.id = Some(id);
        self.partition_count = partition_count;
        self.members.clear();
        self.members_version = 0;
        self.owners.clear();
        self.partitions_version = 0;
        self.view_source = None;
    }

    /// Sets the connection that delivers the view. A different connection resets the versions.
    pub(crate) fn set_view_source(&mut self, connection: ConnectionId) {
        if self.view_source != Some(connection) {
            self.view_source = Some(connection);
            self.members_version = 0;
            self.partitions_version = 0;
        }
    }

    /// Replaces the member list, unless the new list is empty or older. Closes the connections to
    /// members that left.
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

    /// Replaces the partition table, unless the new table is empty or older.
    pub(crate) fn set_partitions(&mut self, version: i32, partitions: &[(Uuid, Vec<i32>)]) {
        if partitions.is_empty() || version < self.partitions_version {
            return;
        }
        self.partitions_version = version;
        self.owners = vec![None; self.partition_count as usize];
        for (owner, owned) in partitions {
            for partition in owned {
                let slot = usize::try_from(*partition).ok().and_then(|at| self.owners.get_mut(at));
                if let Some(slot) = slot {
                    *slot = Some(*owner);
                }
            }
        }
    }

    /// Removes closed connections. Returns true if there were any.
    pub(crate) fn remove_closed(&mut self) -> bool {
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

    /// Whether a member holds data, as far as the client knows.
    pub(crate) fn holds_data(&self, member: Uuid) -> bool {
        self.members.iter().any(|known| known.uuid == member && !known.is_lite)
    }

    /// Returns the routes for new calls: the connection to each partition's owner.
    pub(crate) fn routes(&self) -> Routes {
        let owners = self.owners.iter().map(|owner| owner.and_then(|uuid| self.connections.get(&uuid).cloned()));
        Routes {
            owners: owners.collect(),
            all: self.connections.values().cloned().collect(),
            partition_count: self.partition_count,
        }
    }
}
