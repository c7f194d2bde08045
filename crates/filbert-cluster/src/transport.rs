//! The network between members: the required operations, without the contents of messages.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use crate::{Epoch, MemberId, TransportError};

/// A future that may be sent to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The kind of a request. Each kind has its own connection, so that it does not wait behind another
/// kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Log entries.
    Data,
    /// Heartbeats, which tolerate delays: see [`SharedHeartbeats`](crate::SharedHeartbeats).
    Heartbeats,
    /// Votes and hand-over of leadership.
    Control,
    /// Pages of snapshots.
    Snapshots,
}

/// A network between members.
///
/// Requests of one lane to one member should arrive in the order of the calls, unless the
/// connection breaks: groups tolerate any order, but are fast only in this one. The caller sets the
/// time limit by dropping the future.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request to a member's [`Replicas::answer`](crate::Replicas::answer), and returns its
    /// answer.
    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>>;

    /// The current epoch of this member, which each request carries.
    fn epoch(&self) -> Epoch {
        Epoch::default()
    }
}
