//! The channels of requests, their connections, and the service that answers requests.

use std::net::SocketAddr;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId};
use uuid::Uuid;

/// The channel of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// The consensus messages of groups.
    Consensus(Lane),
    /// The requests of members for their clients. Answers arrive in any order.
    Requests,
    /// The requests to join. The only channel for a peer without a member id.
    Join,
}

/// The kinds of connections between two members. There is one connection of each kind in each
/// direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Log entries.
    Data,
    /// Heartbeats, votes and hand-over of leadership.
    Control,
    /// Pages of snapshots.
    Snapshots,
    /// Requests of members for their clients.
    Requests,
    /// Requests to join.
    Join,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 5] = [Kind::Data, Kind::Control, Kind::Snapshots, Kind::Requests, Kind::Join];

    /// The name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Control => "control",
            Kind::Snapshots => "snapshots",
            Kind::Requests => "requests",
            Kind::Join => "join",
        }
    }

    pub(crate) fn byte(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(byte)).copied()
    }
}

impl Channel {
    /// All channels, in the order of their bytes.
    pub(crate) const ALL: [Channel; 6] = [
        Channel::Consensus(Lane::Data),
        Channel::Consensus(Lane::Heartbeats),
        Channel::Consensus(Lane::Control),
        Channel::Consensus(Lane::Snapshots),
        Channel::Requests,
        Channel::Join,
    ];

    /// The kind of connection that carries the channel.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Channel::Consensus(Lane::Data) => Kind::Data,
            Channel::Consensus(Lane::Heartbeats | Lane::Control) => Kind::Control,
            Channel::Consensus(Lane::Snapshots) => Kind::Snapshots,
            Channel::Requests => Kind::Requests,
            Channel::Join => Kind::Join,
        }
    }

    pub(crate) fn byte(self) -> u8 {
        match self {
            Channel::Consensus(Lane::Data) => 0,
            Channel::Consensus(Lane::Heartbeats) => 1,
            Channel::Consensus(Lane::Control) => 2,
            Channel::Consensus(Lane::Snapshots) => 3,
            Channel::Requests => 4,
            Channel::Join => 5,
        }
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Channel> {
        Channel::ALL.get(usize::from(byte)).copied()
    }
}

/// The peer of a connection, as it introduced itself in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The peer's member id, if it has one yet.
    pub member: Option<MemberId>,
    /// The UUID of the peer's process: a new one after each start.
    pub incarnation: Uuid,
    /// The address of the peer's end of the connection. The peer does not listen there.
    pub address: SocketAddr,
    /// The greatest version that both members speak.
    pub version: u16,
}

/// Why a request is not answered. The text is sent to the caller, cut off at 1,024 bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// The service that answers the requests of other members.
pub trait Service: Send + Sync + 'static {
    /// Answers a request. Called in the order of arrival. Each returned future is polled once
    /// before the next call. It runs in the task of the connection: long work belongs into separate
    /// tasks. The future is dropped when the connection breaks.
    fn answer(&self, from: Peer, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>>;

    /// Records by how many bytes the memory of all connections has changed: frames that are not
    /// written yet, received bytes that are no whole frame yet, and requests that are being
    /// answered. By default ignores it.
    fn held_changed(&self, bytes: isize) {
        let _ignored = bytes;
    }
}
