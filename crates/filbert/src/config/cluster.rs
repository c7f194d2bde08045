//! The settings of a cluster member.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use filbert_links::TlsFiles;

/// The default port for connections between members, if members have a separate port.
pub const MEMBER_PORT: u16 = 5_801;

/// The cluster membership of a member.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Addresses of members, host and port. One of these members founds the cluster when a majority
    /// of them is present. The same on all members that start together.
    pub members: Vec<String>,
    /// The member that must be present when a cluster is founded or joined. Default none.
    pub required: Option<String>,
    /// The address on which this member listens for other members. Default none: the address and
    /// port of the front door for Hazelcast's clients.
    pub listen: Option<SocketAddr>,
    /// The address under which other members reach this member, host and port. Default none: the
    /// address on which it listens.
    pub public_address: Option<String>,
    /// The number of members that hold each partition, if the cluster has that many. Default 3. The
    /// value of the member that founds the cluster applies to the whole cluster.
    pub replicas: u32,
    /// Whether this member holds no data and only serves clients. Default false.
    pub is_lite: bool,
    /// A member that does not answer for this time is considered dead. Default 60 s.
    pub heartbeat: Duration,
    /// Whether the surviving member of a pair continues alone after that time. Default false: it
    /// stops. If both members are alive but disconnected from each other, both continue, and the
    /// writes that one of them acknowledges are lost when they reconnect.
    pub pair_continues: bool,
    /// A secret that all members share. Default none: anyone who reaches the port can join.
    pub secret: Option<Vec<u8>>,
    /// The certificates with which members authenticate to each other. They also enable encryption
    /// of all connections between members. Default none.
    pub tls: Option<TlsFiles>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            members: Vec::new(),
            required: None,
            listen: None,
            public_address: None,
            replicas: 3,
            is_lite: false,
            heartbeat: Duration::from_secs(60),
            pair_continues: false,
            secret: None,
            tls: None,
        }
    }
}

impl fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterConfig { members, required, listen, public_address, replicas, .. } = self;
        let ClusterConfig { is_lite, heartbeat, pair_continues, secret, tls, .. } = self;
        f.debug_struct("ClusterConfig")
            .field("members", members)
            .field("required", required)
            .field("listen", listen)
            .field("public_address", public_address)
            .field("replicas", replicas)
            .field("is_lite", is_lite)
            .field("heartbeat", heartbeat)
            .field("pair_continues", pair_continues)
            .field("has_secret", &secret.is_some())
            .field("tls", tls)
            .finish()
    }
}
