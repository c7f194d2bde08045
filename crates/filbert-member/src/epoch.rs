//! Attaches this member's epoch to its requests to other members.

use std::sync::Arc;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, CurrentEpoch, Epoch, Lane, MemberId, Transport, TransportError};

/// A transport that attaches the member's current epoch to each request.
pub(crate) struct InEpoch {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) epoch: Arc<CurrentEpoch>,
}

impl Transport for InEpoch {
    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        self.transport.call(to, lane, request)
    }

    fn epoch(&self) -> Epoch {
        self.epoch.get()
    }
}
