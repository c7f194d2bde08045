//! How members reach each other: what a network has to do, and nothing about what is sent.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use crate::{Epoch, MemberId, TransportError};

/// A future that may be sent to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a request is about: each kind has a connection of its own, so that none waits behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Entries.
    Data,
    /// Heartbeats, which bear to be late: see [`SharedHeartbeats`](crate::SharedHeartbeats).
    Heartbeats,
    /// Votes and handing over.
    Control,
    /// Pages of snapshots.
    Snapshots,
}

/// A network between members.
///
/// Requests of one lane to one member should arrive in the order in which `call` was called, unless the connection breaks: groups stand
/// any order, but go on at once only in this one. Who calls sets the time limit by dropping the future.
pub trait Transport: Send + Sync + 'static {
    /// Brings a request to a member's [`Replicas::answer`](crate::Replicas::answer), and its answer back.
    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>>;

    /// The epoch that this member is in, which each request carries.
    fn epoch(&self) -> Epoch {
        Epoch::default()
    }
}
