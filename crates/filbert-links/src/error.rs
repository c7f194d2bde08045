//! The errors of connections between members.

use std::io;
use std::ops::RangeInclusive;

use filbert_cluster::MemberId;
use uuid::Uuid;

use crate::{FrameError, Kind};

/// The maximum size of a handshake message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4_096;

/// Why bytes are not the handshake of a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The first bytes differ from the preamble of a member.
    #[error("the first bytes are {0:?}, expected \"FLM1\" and a mode of 0 to 3")]
    Beginning(Vec<u8>),
    /// The message is too long.
    #[error("a message of the handshake has {bytes} bytes, at most {MESSAGE_BYTES_MAX} are allowed")]
    TooLong {
        /// The length of the message.
        bytes: usize,
    },
    /// The message ends too early or too late.
    #[error("a message of the handshake has {0} bytes, expected another number")]
    Length(usize),
    /// A value is unknown.
    #[error("{what} has the value {found} in the handshake, which does not exist")]
    Value {
        /// The name of the value.
        what: &'static str,
        /// The value.
        found: u8,
    },
    /// A name or a text is not UTF-8.
    #[error("a name or a text in the handshake is no UTF-8")]
    Text,
}

/// Why the handshake refuses to connect two members.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The peer belongs to another cluster.
    #[error("the peer is of cluster {found:?}, expected {expected:?}")]
    Cluster {
        /// The cluster of the peer.
        found: String,
        /// The cluster of this member.
        expected: String,
    },
    /// The secrets differ.
    #[error("the peer has another secret")]
    Secret,
    /// One member has a secret, and the other has none.
    #[error("{}", if *.here { "the peer has no secret, expected one" } else { "the peer has a secret, this member has none" })]
    SecretMissing {
        /// Whether this member has a secret.
        here: bool,
    },
    /// One member uses TLS, and the other does not.
    #[error("{}", if *.here { "the peer does not use TLS, expected it" } else { "the peer uses TLS, this member does not" })]
    Encryption {
        /// Whether this member uses TLS.
        here: bool,
    },
    /// The numbers of partitions differ.
    #[error("the peer has {found} partitions, expected {expected}")]
    Partitions {
        /// The number of the peer.
        found: u32,
        /// The number of this member.
        expected: u32,
    },
    /// The numbers of groups differ.
    #[error("the peer has {found} groups of partitions, expected {expected}")]
    Groups {
        /// The number of the peer.
        found: u32,
        /// The number of this member.
        expected: u32,
    },
    /// There is no version that both members speak.
    #[error("the peer speaks versions {} to {}, expected one of {} to {}", .found.start(), .found.end(), .expected.start(), .expected.end())]
    Versions {
        /// The versions of the peer.
        found: RangeInclusive<u16>,
        /// The versions of this member.
        expected: RangeInclusive<u16>,
    },
    /// The peer is a member of another cluster of the same name.
    #[error(
        "the peer is in another cluster of this name, {found}, expected {expected}: one of both was founded while the other still had members"
    )]
    OtherCluster {
        /// The id of the peer's cluster.
        found: Uuid,
        /// The id of this member's cluster.
        expected: Uuid,
    },
    /// Another member is at the address.
    #[error("{} was found at the address, expected member {expected}", member_text(*.found))]
    OtherMember {
        /// The member at the address.
        found: Option<MemberId>,
        /// The member that was dialled.
        expected: MemberId,
    },
    /// The address belongs to this member itself.
    #[error("the peer is this member itself")]
    Itself,
    /// The peer claims the id of this member.
    #[error("the peer says that it is member {0}, which this member is")]
    SameMember(MemberId),
    /// A peer without a member id may only join.
    #[error("the connection is for {}, and who dials has no member id, expected one for all but joining", .0.name())]
    NoMember(Kind),
    /// The peer has refused, with its own reason.
    #[error("the peer refuses: {0}")]
    Reason(String),
}

fn member_text(member: Option<MemberId>) -> String {
    member.map_or_else(|| "a peer without a member id".to_owned(), |member| format!("member {member}"))
}

/// Why there is no connection, or no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The handshake has refused the connection.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An error of the operating system, or of TLS.
    #[error("cannot {what}: {why}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The peer has closed the connection.
    #[error("the peer has closed the connection")]
    Closed,
    /// The time limit was exceeded.
    #[error("{what} took longer than {limit_ms} ms")]
    Time {
        /// The operation.
        what: &'static str,
        /// The time limit.
        limit_ms: u64,
    },
    /// The bytes are not a handshake.
    #[error("the peer does not speak as a member: {0}")]
    Hello(#[from] HelloError),
    /// The bytes are not frames.
    #[error("the peer does not speak as a member: {0}")]
    Frame(#[from] FrameError),
    /// The connection broke before the answer arrived.
    #[error("the connection broke before the answer came")]
    Broken,
    /// Too many bytes are queued for the connection.
    #[error("too much waits to be sent")]
    Overloaded,
    /// The request exceeds the maximum length.
    #[error("a request has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// The length of the request.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The peer received the request, and refuses to answer it.
    #[error("the peer refused the request: {0}")]
    Answer(String),
    /// The last attempt to connect has failed, and the next one is not due yet.
    #[error("the address is not dialled again so soon")]
    BackOff,
    /// The address of the member is unknown.
    #[error("no address of the member is known")]
    NoAddress,
    /// This member already has another id.
    #[error("this member is member {found} already")]
    AlreadyMember {
        /// The id of this member.
        found: MemberId,
    },
    /// The name of the cluster is too long for the handshake.
    #[error("the name of the cluster has {bytes} bytes, at most {bytes_max} are allowed")]
    ClusterName {
        /// The length of the name.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The links have been stopped, or the member was removed from the address book.
    #[error("the links have been stopped")]
    Stopped,
}

impl LinkError {
    pub(crate) fn io(what: &'static str, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return LinkError::Closed;
        }
        LinkError::Io { what, why: error.to_string() }
    }

    /// Whether an operator should be informed, because the error does not disappear by itself.
    pub(crate) fn needs_operator(&self) -> bool {
        matches!(self, LinkError::Refused(_) | LinkError::Hello(_) | LinkError::Frame(_))
            || matches!(self, LinkError::Io { what, .. } if *what == TLS)
    }
}

/// The failed operation if certificates do not fit.
pub(crate) const TLS: &str = "agree on TLS with the peer";
