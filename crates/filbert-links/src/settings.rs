//! The settings of links, and the identity of a member.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use uuid::Uuid;

use crate::LinkError;

/// The maximum size of a cluster's name: the hello has to fit into the limit of a handshake
/// message.
const NAME_BYTES_MAX: usize = 1_024;

/// The values that members must have in common, and the identity of this process.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name of the cluster, at most 1,024 bytes.
    pub cluster: String,
    /// The UUID of this process: a new one after each start.
    pub incarnation: Uuid,
    /// The number of partitions of the cluster.
    pub partitions: u32,
    /// The number of groups that the partitions are divided into.
    pub groups: u32,
    /// The protocol versions that this member speaks.
    pub versions: RangeInclusive<u16>,
}

impl Identity {
    pub(crate) fn check(&self) -> Result<(), LinkError> {
        let bytes = self.cluster.len();
        if bytes > NAME_BYTES_MAX {
            return Err(LinkError::ClusterName { bytes, bytes_max: NAME_BYTES_MAX });
        }
        Ok(())
    }
}

/// The shared secret of all members. It is proved, never sent, and not shown in logs.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// Any bytes. A listener to a handshake can guess a short secret.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Secret(bytes.into().into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The encryption of all connections between members.
#[derive(Clone)]
pub struct TlsSettings {
    /// For connections from other members. May require certificates.
    pub server: Arc<ServerConfig>,
    /// For connections that this member makes.
    pub client: Arc<ClientConfig>,
    /// The name that the certificate of each member must have.
    pub name: ServerName<'static>,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The settings of links. The members of a cluster should have the same settings: the frame limit
/// of a member bounds the frames that other members may send to it.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The maximum size of a request or an answer in bytes. Default 16 MiB: an entry has 256 KiB
    /// and one more submission.
    pub frame_bytes_max: usize,
    /// The maximum number of bytes that are queued for one connection. A single request may exceed
    /// it. Default 32 MiB.
    pub queue_bytes_max: usize,
    /// The maximum number of outstanding calls over one connection. Default 16,384.
    pub calls_max: usize,
    /// The maximum number of requests of one connection that are being answered. Beyond it, the
    /// connection is not read. Default 1,024.
    pub answering_max: usize,
    /// The maximum size of these requests and of queued answers in bytes. Beyond it, the connection
    /// is not read. Default 32 MiB.
    pub answering_bytes_max: usize,
    /// The time without received bytes after which a connection with outstanding calls breaks, in
    /// milliseconds. A member that is answering sends a sign of life four times as often. Default
    /// 2,000.
    pub silence_ms_max: u64,
    /// The time limit to resolve an address and to connect, in milliseconds. Default 1,000.
    pub connect_ms_max: u64,
    /// The time limit of a handshake, TLS included, in milliseconds. Default 3,000.
    pub handshake_ms_max: u64,
    /// The maximum number of connections from other members that are in the handshake. Further ones
    /// are closed. Default 64.
    pub handshakes_max: usize,
    /// The maximum number of connections from other members. Further ones are closed. Default
    /// 1,024, for 256 members.
    pub connections_max: usize,
    /// The back-off after the first failed attempt to connect, in milliseconds. Each further
    /// failure doubles it. Default 100.
    pub backoff_ms_min: u64,
    /// The maximum back-off, in milliseconds. Default 2,000.
    pub backoff_ms_max: u64,
    /// The secret that members prove to each other to know.
    pub secret: Option<Secret>,
    /// The encryption.
    pub tls: Option<TlsSettings>,
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings {
            frame_bytes_max: 16 << 20,
            queue_bytes_max: 32 << 20,
            calls_max: 16_384,
            answering_max: 1_024,
            answering_bytes_max: 32 << 20,
            silence_ms_max: 2_000,
            connect_ms_max: 1_000,
            handshake_ms_max: 3_000,
            handshakes_max: 64,
            connections_max: 1_024,
            backoff_ms_min: 100,
            backoff_ms_max: 2_000,
            secret: None,
            tls: None,
        }
    }
}

impl LinkSettings {
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms_max.max(4))
    }

    /// The back-off after the given one, or the first.
    pub(crate) fn backoff_after(&self, last: Duration) -> Duration {
        let (min, max) = (Duration::from_millis(self.backoff_ms_min), Duration::from_millis(self.backoff_ms_max));
        last.saturating_mul(2).clamp(min.min(max), max)
    }
}
