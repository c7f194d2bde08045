//! The settings of a member of a cluster.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// Where members of a cluster serve each other, unless a setting says otherwise.
pub const MEMBER_PORT: u16 = 5_801;

/// How a member is one of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Addresses of members, host and port; the member at the first of them founds the cluster. The same on all that start together.
    pub members: Vec<String>,
    /// Where this member listens for others. Default 127.0.0.1:5801.
    pub listen: SocketAddr,
    /// Where others reach it, host and port. Default none: where it listens.
    pub public_address: Option<String>,
    /// Members that hold each partition, as far as there are so many. Default 3. What the member that founds the cluster says holds.
    pub replicas: u32,
    /// What all members know and nobody else. Default none: whoever reaches the port can join.
    pub secret: Option<Vec<u8>>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, MEMBER_PORT));
        ClusterConfig { members: Vec::new(), listen, public_address: None, replicas: 3, secret: None }
    }
}

impl fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterConfig { members, listen, public_address, replicas, secret } = self;
        f.debug_struct("ClusterConfig")
            .field("members", members)
            .field("listen", listen)
            .field("public_address", public_address)
            .field("replicas", replicas)
            .field("has_secret", &secret.is_some())
            .finish()
    }
}
