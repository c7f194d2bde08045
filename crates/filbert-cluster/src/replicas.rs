//! All groups of a member, by number. Requests of other members arrive here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use filbert_store::Millis;
use futures_util::{StreamExt, stream};
use openraft::AsyncRuntime;
use parking_lot::RwLock;

use crate::state_machine::StateMachine;
use crate::transport::BoxFuture;
use crate::wire::{Head, Request, is_bundle, read_requests, write_answers};
use crate::{Epoch, Group, GroupId, MemberId, RequestError};

/// The maximum number of requests of one bundle that are answered concurrently.
const TOGETHER_MAX: usize = 64;

/// The current epoch of a member.
#[derive(Debug, Default)]
pub struct CurrentEpoch(AtomicU64);

impl CurrentEpoch {
    /// Returns the current epoch.
    #[must_use]
    pub fn get(&self) -> Epoch {
        Epoch(self.0.load(Ordering::SeqCst))
    }

    /// Enters an epoch, if it is later than the current one.
    pub fn enter(&self, epoch: Epoch) {
        self.0.fetch_max(epoch.0, Ordering::SeqCst);
    }
}

/// A group with any state machine, as it answers other members.
trait Answers<R: AsyncRuntime>: Send + Sync {
    fn answer(self: Arc<Self>, time: Millis, request: Request<R>) -> BoxFuture<Result<Bytes, RequestError>>;
}

impl<R: AsyncRuntime, S: StateMachine> Answers<R> for Group<R, S> {
    fn answer(self: Arc<Self>, time: Millis, request: Request<R>) -> BoxFuture<Result<Bytes, RequestError>> {
        Box::pin(async move { Group::answer(&self, time, request).await })
    }
}

/// The groups of a member, with any state machines.
pub struct Replicas<R: AsyncRuntime> {
    member: MemberId,
    epoch: Arc<CurrentEpoch>,
    groups: RwLock<BTreeMap<GroupId, Arc<dyn Answers<R>>>>,
}

impl<R: AsyncRuntime> Replicas<R> {
    /// Creates an empty set of groups.
    #[must_use]
    pub fn new(member: MemberId) -> Self {
        Replicas { member, epoch: Arc::default(), groups: RwLock::default() }
    }

    /// The current epoch of this member. Requests of another epoch are refused.
    #[must_use]
    pub fn epoch(&self) -> &Arc<CurrentEpoch> {
        &self.epoch
    }

    /// Adds a group that was started for this member.
    pub fn add<S: StateMachine>(&self, id: GroupId, group: Group<R, S>) {
        self.groups.write().insert(id, Arc::new(group));
    }

    /// Answers a request of another member, as sent by [`Transport::call`](crate::Transport::call),
    /// or a bundle of requests.
    ///
    /// # Errors
    /// The request cannot be read, is not for this member, or its group cannot answer.
    pub async fn answer(&self, request: Bytes) -> Result<Bytes, RequestError> {
        if !is_bundle(&request) {
            return self.answer_one(request).await;
        }
        let requests = read_requests(&request)?;
        let answers = stream::iter(requests).map(async |request| self.answer_one(request).await.ok());
        Ok(write_answers(&answers.buffered(TOGETHER_MAX).collect::<Vec<_>>().await))
    }

    async fn answer_one(&self, request: Bytes) -> Result<Bytes, RequestError> {
        let (Head { to: wanted, group, epoch, time }, request) = Request::<R>::read(request)?;
        if wanted != self.member {
            return Err(RequestError::OtherMember { wanted, found: self.member });
        }
        let expected = self.epoch.get();
        if epoch != expected {
            return Err(RequestError::OtherEpoch { found: epoch, expected });
        }
        let found = self.groups.read().get(&group).cloned();
        let found = found.ok_or(RequestError::NoSuchGroup { member: self.member, group })?;
        found.answer(time, request).await
    }
}
