//! The messages between members beside consensus and changes, and their encoding.
//!
//! Must not know senders, nor how an answer is computed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use filbert_links::Refusal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::founding::{Accepted, Founder, Number};
use crate::leading::Announcement;
use crate::registry::{ClusterSettings, MemberFacts};

/// The version of the encoding.
const VERSION: u8 = 1;

/// A request to another member, beside consensus.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Asks which member is at an address.
    Greet,
    /// A candidate asks the member with this UUID to promise that it follows no lower number.
    /// Answered by a [`Promise`](crate::founding::Promise).
    Promise(#[serde(with = "crate::text")] Uuid, Number),
    /// A candidate asks the member with this UUID to accept a founder. Answered by true or false.
    Accept(#[serde(with = "crate::text")] Uuid, Accepted),
    /// A member requests to join.
    Join(MemberFacts),
    /// A command of the registry.
    Registry(Vec<u8>),
    /// The groups that the sender leads. Answered by its [`Standing`](crate::leading::Standing).
    Leading(Announcement),
    /// Asks for the read points of these groups, the registry among them.
    ReadPoints(Vec<u32>),
    /// Asks which of these clients have a connection to the receiver.
    Connected(Vec<Halves>),
    /// Asks which of these statements run on the receiver. They are given by the threads of the
    /// owners of their claims.
    Running(Vec<i64>),
    /// Answered once this version of the registry is known to the receiver and to all its followers
    /// of the registry.
    Reached(u64),
    /// Asks whether the receiver is alive.
    Ping,
    /// Orders the receiver to leave the cluster, on behalf of an operator.
    Leave,
    /// Asks for the state of the receiver's copies of all groups.
    Survey,
    /// The cluster continues without some members: orders the receiver to enter an epoch, and to
    /// block its votes in groups.
    Fence(Fence),
    /// Orders the receiver to re-form groups from its copies.
    Reform(Reform),
    /// The cluster has continued without the receiver. Answered by the sender's
    /// [`Standing`](crate::leading::Standing) at the receiver.
    Reminder(Reminder),
}

/// The answer to a member that has joined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) id: u64,
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    pub(crate) settings: ClusterSettings,
    pub(crate) members: BTreeMap<u64, MemberFacts>,
    /// The current epoch of the cluster.
    #[serde(default)]
    pub(crate) epoch: u64,
}

/// A member that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Candidate {
    #[serde(with = "crate::text")]
    pub(crate) uuid: Uuid,
    /// The addresses that the member is configured with.
    pub(crate) wanted: BTreeSet<String>,
    /// Whether the member holds no data. Such a member cannot found a cluster, and is not counted.
    #[serde(default)]
    pub(crate) is_lite: bool,
}

/// The answer of a member that is in no cluster to a greeting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Alone {
    pub(crate) candidate: Candidate,
    /// The founder that this member has accepted.
    pub(crate) founder: Option<Founder>,
}

/// The answer to [`Request::Greet`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Alone(Alone),
    InCluster(Belonging),
}

/// The answer of a member of a cluster to a greeting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Belonging {
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    /// Whether the member votes in the registry.
    pub(crate) votes: bool,
    /// The current epoch of the member.
    #[serde(default)]
    pub(crate) epoch: u64,
}

/// A client's UUID as the high and the low half of a number, as encoded on the wire.
pub(crate) type Halves = (u64, u64);

/// The request to enter an epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fence {
    pub(crate) epoch: u64,
    /// The members that answer.
    pub(crate) there: BTreeSet<u64>,
    /// The groups that have lost their majority, and the term in which votes are blocked.
    pub(crate) groups: BTreeMap<u32, u64>,
}

/// The request to the member with the most advanced copy of groups to re-form them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reform {
    pub(crate) epoch: u64,
    /// The groups and the terms in which they are re-formed.
    pub(crate) groups: BTreeMap<u32, u64>,
}

/// The message to a member that was left behind and answers again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reminder {
    /// The UUID of the receiver.
    #[serde(with = "crate::text")]
    pub(crate) to: Uuid,
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    pub(crate) epoch: u64,
    /// The id of the sender.
    pub(crate) from: u64,
}

impl Request {
    pub(crate) fn write(&self) -> Bytes {
        write(self)
    }
}

pub(crate) fn write<T: Serialize>(what: &T) -> Bytes {
    let mut out = vec![VERSION];
    // Writing into memory does not fail, and all map keys in these messages serialize as strings.
    let _written = serde_json::to_writer(&mut out, what);
    out.into()
}

pub(crate) fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Refusal> {
    match bytes.split_first() {
        Some((&VERSION, json)) => {
            serde_json::from_slice(json).map_err(|error| Refusal(format!("cannot read a message: {error}")))
        }
        Some((version, _)) => Err(Refusal(format!("a message of version {version}, expected version {VERSION}"))),
        None => Err(Refusal("a message without bytes".to_owned())),
    }
}
