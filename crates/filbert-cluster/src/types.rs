//! The types of the groups' consensus. Each term has at most one leader, as in the Raft paper.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use openraft::impls::{EmptyNode, InlineBatch, leader_id_std};
use openraft::raft::responder::Responder;
use openraft::{AnyError, AsyncRuntime, OptionalSend, RaftTypeConfig};

use crate::MemberId;

/// The consensus types, for a runtime.
pub(crate) struct Types<R>(PhantomData<fn() -> R>);

impl<R> fmt::Debug for Types<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Types")
    }
}

impl<R> Clone for Types<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Types<R> {}

impl<R> Default for Types<R> {
    fn default() -> Self {
        Types(PhantomData)
    }
}

impl<R> PartialEq for Types<R> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<R> Eq for Types<R> {}

impl<R> PartialOrd for Types<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Types<R> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// The bytes of an entry, see `wire/batch.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) bytes: Bytes,
    /// The ticket of the entry's waiters on this member, see `awaiting.rs`. 0 = no waiters here. It
    /// is not sent to other members.
    pub(crate) ticket: u64,
}

impl Batch {
    /// A batch that another member has proposed.
    pub(crate) fn of_others(bytes: Bytes) -> Self {
        Batch { bytes, ticket: 0 }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

pub(crate) type LeaderId = leader_id_std::LeaderId<u64, MemberId>;
pub(crate) type Payload = openraft::EntryPayload<Batch, MemberId, EmptyNode>;
pub(crate) type Committed = <LeaderId as openraft::vote::RaftLeaderId>::Committed;
pub(crate) type Entry = openraft::Entry<Committed, Payload>;
pub(crate) type LogId = openraft::LogId<Committed>;
pub(crate) type Vote = openraft::Vote<LeaderId>;
pub(crate) type Membership = openraft::Membership<MemberId, EmptyNode>;
pub(crate) type StoredMembership = openraft::StoredMembership<Committed, MemberId, EmptyNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<Committed, MemberId, EmptyNode>;

impl<R: AsyncRuntime> RaftTypeConfig for Types<R> {
    type D = Batch;
    type R = ();
    type NodeId = MemberId;
    type Node = EmptyNode;
    type Term = u64;
    type LeaderId = LeaderId;
    type Vote = Vote;
    type Payload = Payload;
    type Entry = Entry;
    type AsyncRuntime = R;
    type Responder<T>
        = OnResult<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = AnyError;
}

/// The callback for the result of a proposal. It is dropped if the outcome is unknown.
pub(crate) struct OnResult<T>(pub(crate) Box<dyn FnOnce(T) + Send>);

impl<R: AsyncRuntime, T: OptionalSend + 'static> Responder<Types<R>, T> for OnResult<T> {
    fn on_complete(self, result: T) {
        (self.0)(result);
    }
}
