//! The state that all tasks of a member's links share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use filbert_cluster::MemberId;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::handshake::Own;
use crate::logged_errors::LoggedErrors;
use crate::membership::Membership;
use crate::peer_link::PeerLink;
use crate::statistics::Counters;
use crate::{Address, Identity, Kind, LinkSettings, Service};

pub(crate) struct Shared {
    pub(crate) settings: LinkSettings,
    pub(crate) identity: Identity,
    pub(crate) member: OnceLock<Membership>,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) addresses: RwLock<BTreeMap<MemberId, Address>>,
    /// The links to members of the address book, so their number is limited.
    pub(crate) links: RwLock<HashMap<(MemberId, Kind), Arc<PeerLink>>>,
    pub(crate) counters: Counters,
    pub(crate) logged_errors: LoggedErrors,
    /// Whether the links have been stopped. Each task has a receiver.
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
            // Dropped last: the task has released its connection when its receiver is gone.
            drop(stop);
        }));
    }

    pub(crate) fn has_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The identity and settings of this member for a handshake.
    pub(crate) fn own(&self) -> Own<'_> {
        Own { settings: &self.settings, identity: &self.identity, member: self.member.get().copied() }
    }

    /// Closes the connections to a member.
    pub(crate) fn cut(&self, member: MemberId) {
        let cut: Vec<_> = {
            let mut links = self.links.write();
            Kind::ALL.iter().filter_map(|kind| links.remove(&(member, *kind))).collect()
        };
        for link in cut {
            link.cut();
        }
    }
}
