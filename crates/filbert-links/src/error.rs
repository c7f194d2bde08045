//! What can go wrong between members.

use std::io;
use std::ops::RangeInclusive;

use filbert_cluster::MemberId;

use crate::{FrameError, HelloError, Kind};

/// Why two members do not connect, as found in the handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The other one is of another cluster.
    #[error("the peer is of cluster {found:?}, expected {expected:?}")]
    Cluster {
        /// What the peer says.
        found: String,
        /// What this member is of.
        expected: String,
    },
    /// Secrets differ.
    #[error("the peer has another secret")]
    Secret,
    /// One has a secret and the other none.
    #[error("{}", if *.here { "the peer has no secret, expected one" } else { "the peer has a secret, this member has none" })]
    SecretMissing {
        /// Whether this member has one.
        here: bool,
    },
    /// One encrypts and the other does not.
    #[error("{}", if *.here { "the peer does not use TLS, expected it" } else { "the peer uses TLS, this member does not" })]
    Encryption {
        /// Whether this member does.
        here: bool,
    },
    /// Another number of partitions.
    #[error("the peer has {found} partitions, expected {expected}")]
    Partitions {
        /// What the peer says.
        found: u32,
        /// What this member has.
        expected: u32,
    },
    /// Another number of groups.
    #[error("the peer has {found} groups of partitions, expected {expected}")]
    Groups {
        /// What the peer says.
        found: u32,
        /// What this member has.
        expected: u32,
    },
    /// No version that both speak.
    #[error("the peer speaks versions {} to {}, expected one of {} to {}", .found.start(), .found.end(), .expected.start(), .expected.end())]
    Versions {
        /// What the peer says.
        found: RangeInclusive<u16>,
        /// What this member speaks.
        expected: RangeInclusive<u16>,
    },
    /// Another member is at the address.
    #[error("{} was found at the address, expected member {expected}", member_text(*.found))]
    OtherMember {
        /// Who is there.
        found: Option<MemberId>,
        /// Who was dialled.
        expected: MemberId,
    },
    /// The address is this member's own.
    #[error("the peer is this member itself")]
    Itself,
    /// The peer says that it has this member's id.
    #[error("the peer says that it is member {0}, which this member is")]
    SameMember(MemberId),
    /// Who has no id may join, and do nothing else.
    #[error("the connection is for {}, and who dials has no member id, expected one for all but joining", .0.name())]
    NoMember(Kind),
    /// The other side has refused, for a reason of its own.
    #[error("the peer refuses: {0}")]
    Told(String),
}

fn member_text(member: Option<MemberId>) -> String {
    member.map_or_else(|| "a peer without a member id".to_owned(), |member| format!("member {member}"))
}

/// Why there is no connection, or no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The two do not go together.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The system, or TLS.
    #[error("cannot {what}: {why}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// What stood in the way.
        why: String,
    },
    /// The other side has closed the connection.
    #[error("the peer has closed the connection")]
    Closed,
    /// It took too long.
    #[error("{what} took longer than {limit_ms} ms")]
    Time {
        /// What did.
        what: &'static str,
        /// The limit.
        limit_ms: u64,
    },
    /// Bytes that are no handshake.
    #[error("the peer does not speak as a member: {0}")]
    Hello(#[from] HelloError),
    /// Bytes that are no frames.
    #[error("the peer does not speak as a member: {0}")]
    Frame(#[from] FrameError),
    /// The connection broke before the answer came.
    #[error("the connection broke before the answer came")]
    Broken,
    /// Too much waits for the connection.
    #[error("too much waits to be sent")]
    Overloaded,
    /// The request is longer than one may be.
    #[error("a request has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The peer got the request, and does not answer it.
    #[error("the peer refused the request: {0}")]
    Answer(String),
    /// The last try to connect has failed, and the next one is not due yet.
    #[error("the address is not dialled again so soon")]
    BackOff,
    /// It is not known where the member is.
    #[error("no address of the member is known")]
    NoAddress,
    /// This member has another id already.
    #[error("this member is member {found} already")]
    AlreadyMember {
        /// The id that it has.
        found: MemberId,
    },
    /// The name of the cluster is too long for the handshake.
    #[error("the name of the cluster has {bytes} bytes, at most {bytes_max} are allowed")]
    ClusterName {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The links have been stopped, or their address was taken out of the book.
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

    /// Whether a person should know: it does not pass by itself.
    pub(crate) fn wants_a_person(&self) -> bool {
        matches!(self, LinkError::Refused(_) | LinkError::Hello(_) | LinkError::Frame(_))
            || matches!(self, LinkError::Io { what, .. } if *what == TLS)
    }
}

/// What fails when certificates do not fit.
pub(crate) const TLS: &str = "agree on TLS with the peer";
