//! The settings of a member of a cluster.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use filbert_links::TlsFiles;

/// Where members of a cluster serve each other on a port of their own, unless a setting says otherwise.
pub const MEMBER_PORT: u16 = 5_801;

/// How a member is one of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Addresses of members, host and port; one of them founds the cluster when most of them are there. The same on all that start together.
    pub members: Vec<String>,
    /// One of the members, without which no cluster is founded or joined. Default none.
    pub required: Option<String>,
    /// Where this member listens for others. Default none: where it listens for Hazelcast's clients, on the same port.
    pub listen: Option<SocketAddr>,
    /// Where others reach it, host and port. Default none: where it listens.
    pub public_address: Option<String>,
    /// Members that hold each partition, as far as there are so many. Default 3. What the member that founds the cluster says holds.
    pub replicas: u32,
    /// Whether this member holds no data, and serves clients alone. Default false.
    pub is_lite: bool,
    /// After so long without an answer a member is taken for dead. Default 60 s.
    pub heartbeat: Duration,
    /// Whether the one that is left of two members goes on alone after that time. Default false: it stops. Both go on if both are alive and cut off
    /// from each other, and what one of them acknowledges is lost when they meet again.
    pub pair_continues: bool,
    /// What all members know and nobody else. Default none: whoever reaches the port can join.
    pub secret: Option<Vec<u8>>,
    /// Certificates that members show each other; all connections between them are encrypted then. Default none.
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
