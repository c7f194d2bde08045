//! What can be set of links, and who a member says that it is.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use uuid::Uuid;

use crate::LinkError;

/// Bytes of a cluster's name: the hello has to fit into the handshake's limit.
const NAME_BYTES_MAX: usize = 1_024;

/// What members must have in common, and what tells this process from others.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name of the cluster, at most 1,024 bytes.
    pub cluster: String,
    /// This process: another one after each start.
    pub incarnation: Uuid,
    /// Partitions of the cluster.
    pub partitions: u32,
    /// Groups that the partitions are divided into.
    pub groups: u32,
    /// Versions of what is sent that this member speaks.
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

/// What all members know and nobody else. It is proved, never sent, and not shown in logs.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// Any bytes; short ones can be guessed by whoever hears a handshake.
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

/// Encryption of all connections between members.
#[derive(Clone)]
pub struct TlsSettings {
    /// For connections that others make; may ask for certificates.
    pub server: Arc<ServerConfig>,
    /// For connections that this member makes.
    pub client: Arc<ClientConfig>,
    /// The name that the certificate of every member must have.
    pub name: ServerName<'static>,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Settings of links. Those of a cluster should have the same: a member's limit on frames is what others may send it.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// Bytes of a request or an answer. Default 16 MiB: an entry has 256 KiB and one submission more.
    pub frame_bytes_max: usize,
    /// Bytes that wait to be sent over one connection; a request alone may have more. Default 32 MiB.
    pub queue_bytes_max: usize,
    /// Calls over one connection that are not answered yet. Default 16,384.
    pub calls_max: usize,
    /// Requests of one connection that are being answered; beyond them it is not read. Default 1,024.
    pub answering_max: usize,
    /// Bytes of these requests, and of answers that wait to be sent; beyond them the connection is not read. Default 32 MiB.
    pub answering_bytes_max: usize,
    /// A connection breaks when answers are awaited and nothing has come for so long, in milliseconds. Who answers says four times as often
    /// that it is alive. Default 2,000.
    pub silence_ms_max: u64,
    /// For an address to be resolved and a connection to be made, in milliseconds. Default 1,000.
    pub connect_ms_max: u64,
    /// For a handshake, that of TLS included, in milliseconds. Default 3,000.
    pub handshake_ms_max: u64,
    /// Connections of others in the handshake at once; more are closed. Default 64.
    pub handshakes_max: usize,
    /// Connections of others; more are closed. Default 1,024: 256 members.
    pub connections_max: usize,
    /// After a first try that failed, none follows for so long, in milliseconds; each further one doubles it. Default 100.
    pub backoff_ms_min: u64,
    /// The longest time without a try, in milliseconds. Default 2,000.
    pub backoff_ms_max: u64,
    /// What members prove to each other to know.
    pub secret: Option<Secret>,
    /// Encryption.
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

    /// The back-off after one of this length, or the first.
    pub(crate) fn backoff_after(&self, last: Duration) -> Duration {
        let (min, max) = (Duration::from_millis(self.backoff_ms_min), Duration::from_millis(self.backoff_ms_max));
        last.saturating_mul(2).clamp(min.min(max), max)
    }
}
