//! What requests are about, over which connection each goes, and who answers them.

use std::net::SocketAddr;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId};
use uuid::Uuid;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Groups.
    Consensus(Lane),
    /// What members ask of each other for their clients. Answers come in any order.
    Requests,
    /// Joining: the only channel for a peer that has no member id yet.
    Join,
}

/// The connections between two members in one direction: one of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Entries.
    Data,
    /// Heartbeats, votes and handing over.
    Control,
    /// Pages of snapshots.
    Snapshots,
    /// Requests.
    Requests,
    /// Joining.
    Join,
}

impl Kind {
    /// All of them, in their order.
    pub const ALL: [Kind; 5] = [Kind::Data, Kind::Control, Kind::Snapshots, Kind::Requests, Kind::Join];

    /// A word for logs and metrics.
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
    /// All of them, in the order of their bytes.
    pub(crate) const ALL: [Channel; 6] = [
        Channel::Consensus(Lane::Data),
        Channel::Consensus(Lane::Heartbeats),
        Channel::Consensus(Lane::Control),
        Channel::Consensus(Lane::Snapshots),
        Channel::Requests,
        Channel::Join,
    ];

    /// The connection that it goes over.
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

/// The other side of a connection, as it said in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id, if it has one yet.
    pub member: Option<MemberId>,
    /// Its process: another one after each start.
    pub incarnation: Uuid,
    /// Where its end of the connection is. Not where it listens.
    pub address: SocketAddr,
    /// The greatest version that both speak.
    pub version: u16,
}

/// Why a request is not answered. The text goes to whoever asked; of more than 1,024 bytes, the rest is left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Who answers the requests of other members.
pub trait Service: Send + Sync + 'static {
    /// Answers a request. Called for each in the order of arrival, and what is returned is polled once before the next call. It runs in the task of
    /// the connection: long work belongs into tasks of its own. The future is dropped when the connection breaks.
    fn answer(&self, from: Peer, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>>;
}
