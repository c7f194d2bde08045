//! What all tasks of a member's links share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use filbert_cluster::{BoxFuture, MemberId};
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::handshake::Own;
use crate::notes::Notes;
use crate::statistics::Counters;
use crate::way::{Target, Way};
use crate::{Address, Channel, Identity, Kind, LinkError, LinkSettings, Refused, Service};

pub(crate) struct Shared {
    pub(crate) settings: LinkSettings,
    pub(crate) identity: Identity,
    pub(crate) member: OnceLock<MemberId>,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) addresses: RwLock<BTreeMap<MemberId, Address>>,
    /// Of members in the book, so that there are few.
    pub(crate) ways: RwLock<HashMap<(MemberId, Kind), Arc<Way>>>,
    pub(crate) counters: Counters,
    pub(crate) notes: Notes,
    /// Whether the links have been stopped; each task has a receiver.
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) handshakes: Arc<Semaphore>,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) runtime: Handle,
}

impl Shared {
    /// Runs a task until it ends or the links are stopped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.subscribe();
        drop(self.runtime.spawn(async move {
            {
                tokio::pin!(task);
                tokio::select! {
                    biased;
                    _stopped = stop.wait_for(|stop| *stop) => {}
                    () = &mut task => {}
                }
            }
            // The task has let go of its connection when this says that it has ended.
            drop(stop);
        }));
    }

    pub(crate) fn has_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// What this member says of itself in a handshake now.
    pub(crate) fn own(&self) -> Own<'_> {
        Own { settings: &self.settings, identity: &self.identity, member: self.member.get().copied() }
    }

    /// Closes the connections to a member.
    pub(crate) fn cut(&self, member: MemberId) {
        let cut: Vec<_> = {
            let mut ways = self.ways.write();
            Kind::ALL.iter().filter_map(|kind| ways.remove(&(member, *kind))).collect()
        };
        for way in cut {
            way.cut();
        }
    }

    fn way(&self, to: MemberId, kind: Kind) -> Result<Arc<Way>, LinkError> {
        if let Some(way) = self.ways.read().get(&(to, kind)) {
            return Ok(Arc::clone(way));
        }
        let mut ways = self.ways.write();
        // Looked at under the lock: who removes an address removes ways after it.
        if !self.addresses.read().contains_key(&to) {
            return Err(LinkError::NoAddress);
        }
        Ok(Arc::clone(ways.entry((to, kind)).or_insert_with(|| Arc::new(Way::new(Target::Member(to), kind)))))
    }

    /// Sends a request before it returns, so that the order of calls is that of requests.
    pub(crate) fn call(
        self: &Arc<Self>,
        to: MemberId,
        channel: Channel,
        request: Bytes,
    ) -> BoxFuture<Result<Bytes, LinkError>> {
        match self.way(to, channel.kind()) {
            Ok(way) => self.call_on(&way, channel, request),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    pub(crate) fn call_on(
        self: &Arc<Self>,
        way: &Arc<Way>,
        channel: Channel,
        request: Bytes,
    ) -> BoxFuture<Result<Bytes, LinkError>> {
        let sent = match self.member.get() {
            _ if self.has_stopped() => Err(LinkError::Stopped),
            None if channel != Channel::Join => Err(Refused::NoMember(channel.kind()).into()),
            _ => way.call(self, channel, request),
        };
        match sent {
            Ok(answer) => Box::pin(async move { answer.await.unwrap_or(Err(LinkError::Broken)) }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
