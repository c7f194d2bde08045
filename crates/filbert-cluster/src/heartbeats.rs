//! Shared heartbeats: the heartbeats of all groups of a member to the same other member are sent
//! together.
//!
//! A leader sends a heartbeat for each group and follower ten times a second. With 12 groups,
//! heartbeats are most of the work of an idle cluster: a message, a wake-up and an answer each. The
//! groups do not know of the sharing: requests on the heartbeat lane of this transport wait for a
//! short time, and are sent as one request with one answer.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use openraft::AsyncRuntime;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::transport::{BoxFuture, Lane, Transport};
use crate::wire::{read_answers, write_requests};
use crate::{Epoch, GroupSettings, MemberId, TransportError};

type AnswerSender = oneshot::Sender<Result<Bytes, TransportError>>;
type Waiting = BTreeMap<MemberId, Vec<(Bytes, AnswerSender)>>;

/// A transport that bundles heartbeats, on top of another transport. One for each member, shared by
/// all of its groups.
pub struct SharedHeartbeats<R> {
    transport: Arc<dyn Transport>,
    waiting: Arc<Mutex<Waiting>>,
    gather: Duration,
    runtime: PhantomData<fn() -> R>,
}

impl<R: AsyncRuntime> SharedHeartbeats<R> {
    /// Creates it on top of another transport. A heartbeat waits for others for a quarter of the
    /// heartbeat interval of a group. Leases are shorter by that time.
    pub fn new(transport: Arc<dyn Transport>, settings: &GroupSettings) -> Self {
        let gather = Duration::from_millis(settings.heartbeat_ms / 4);
        SharedHeartbeats { transport, waiting: Arc::default(), gather, runtime: PhantomData }
    }
}

impl<R: AsyncRuntime> Transport for SharedHeartbeats<R> {
    fn epoch(&self) -> Epoch {
        self.transport.epoch()
    }

    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        if lane != Lane::Heartbeats {
            return self.transport.call(to, lane, request);
        }
        let (sender, answer) = oneshot::channel();
        let is_first = {
            let mut waiting = self.waiting.lock();
            let to_member = waiting.entry(to).or_default();
            to_member.push((request, sender));
            to_member.len() == 1
        };
        if is_first {
            let (transport, waiting) = (Arc::clone(&self.transport), Arc::clone(&self.waiting));
            let gathered = R::sleep(self.gather);
            drop(R::spawn(async move {
                gathered.await;
                let (requests, senders) = waiting.lock().remove(&to).unwrap_or_default().into_iter().unzip();
                bring(&*transport, to, requests, senders).await;
            }));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(TransportError::Broken(to))) })
    }
}

/// Sends requests as one, and passes each answer to its waiter.
async fn bring(transport: &dyn Transport, to: MemberId, requests: Vec<Bytes>, senders: Vec<AnswerSender>) {
    let answers = transport.call(to, Lane::Heartbeats, write_requests(&requests)).await;
    let answers = answers.and_then(|bytes| read_answers(&bytes).map_err(|_| TransportError::Broken(to)));
    let mut answers = answers.map(Vec::into_iter);
    for sender in senders {
        let answer = match &mut answers {
            Ok(answers) => answers.next().flatten().ok_or(TransportError::Broken(to)),
            Err(error) => Err(error.clone()),
        };
        // The waiter may have gone.
        let _gone = sender.send(answer);
    }
}
