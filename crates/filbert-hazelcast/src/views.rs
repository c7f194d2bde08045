//! The information about the cluster for the clients of this door, and the clients that listen to
//! changes.
//!
//! Versions never decrease. A partition without a leader is reported with its last known leader:
//! that member forwards the client's requests, while a client that knows no leader would try one
//! member after another.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use filbert_grid::{Cluster, ClusterView, Grid, GridError, PartitionLoss};
use filbert_wire::{CorrelationId, Event, Uuid, table::client::add_cluster_view_listener};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::client_link::ClientLink;
use crate::losses::{LossListeners, LossScope};
use crate::migrations::MigrationListeners;
use crate::view::{ClusterSnapshot, View};

/// Up to this number of registrations, those of closed connections are not removed.
const KEPT_UNLOOKED_AT: usize = 64;

/// A client that listens to changes, and the versions last sent to it.
struct Listening {
    link: Weak<ClientLink>,
    correlation: CorrelationId,
    members_version: i32,
    leaders_version: i32,
}

#[derive(Default)]
struct State {
    seen: Option<Arc<ClusterView>>,
    snapshot: Arc<ClusterSnapshot>,
    /// At most one for each connection.
    listening: Vec<Listening>,
    purge_at: usize,
    of_losses: LossListeners,
    of_migrations: MigrationListeners,
}

/// Signals of changes, set by the thread that changes the view.
#[derive(Default)]
struct Changed {
    count: AtomicU64,
    notify: Notify,
    /// The connections to wake at the next change.
    waiting: Mutex<Vec<Weak<ClientLink>>>,
}

/// The views of one door.
#[derive(Default)]
pub(crate) struct Views {
    state: Mutex<State>,
    attached: AtomicBool,
    changed: Arc<Changed>,
}

impl Views {
    /// Listens to changes from now on, if there is a cluster.
    pub(crate) fn attach(&self, grid: &Grid) {
        if self.attached.load(Ordering::Relaxed) {
            return;
        }
        let Some(cluster) = grid.cluster() else { return };
        if self.attached.swap(true, Ordering::SeqCst) {
            return;
        }
        let changed = Arc::downgrade(&self.changed);
        cluster.on_change(Box::new(move || {
            if let Some(changed) = changed.upgrade() {
                changed.count.fetch_add(1, Ordering::SeqCst);
                changed.notify.notify_one();
                let waiting = std::mem::take(&mut *changed.waiting.lock());
                waiting.iter().filter_map(Weak::upgrade).for_each(|link| link.outbox.poke());
            }
        }));
        // Earlier changes were not signalled.
        self.changed.notify.notify_one();
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        self.changed.notify.notified().await;
    }

    /// A number that increases with every change.
    pub(crate) fn change_count(&self) -> u64 {
        self.changed.count.load(Ordering::SeqCst)
    }

    /// Wakes a connection at the next change, immediately and not after the pause for all clients.
    /// The caller must look at the view after this call.
    pub(crate) fn wake_at_change(&self, link: &Arc<ClientLink>) {
        self.changed.waiting.lock().push(Arc::downgrade(link));
    }

    /// The current information for clients.
    pub(crate) fn snapshot(&self, cluster: &Arc<dyn Cluster>) -> Arc<ClusterSnapshot> {
        self.state.lock().snapshot(cluster)
    }

    /// Notifies a client of changes after its registration. A connection has at most one such
    /// registration. The caller must send the returned information to the client first.
    pub(crate) fn listen(
        &self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        cluster: &Arc<dyn Cluster>,
    ) -> Arc<ClusterSnapshot> {
        let mut state = self.state.lock();
        let snapshot = state.snapshot(cluster);
        if state.listening.len() >= state.purge_at.max(KEPT_UNLOOKED_AT) {
            state.listening.retain(|listening| listening.link.strong_count() > 0);
            state.purge_at = state.listening.len() * 2;
        }
        let (link, members_version, leaders_version) =
            (Arc::downgrade(link), snapshot.members_version, snapshot.leaders_version);
        let listening = Listening { link, correlation, members_version, leaders_version };
        match state.listening.iter_mut().find(|other| other.link.ptr_eq(&listening.link)) {
            Some(other) => *other = listening,
            None => state.listening.push(listening),
        }
        snapshot
    }

    /// Notifies a client of data losses of partitions from now on. Returns the registration's id.
    ///
    /// # Errors
    /// There are too many registrations.
    pub(crate) fn listen_to_losses(
        &self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        scope: LossScope,
        local_only: bool,
        grid: &Grid,
    ) -> Result<Uuid, GridError> {
        self.attach(grid);
        let mut state = self.state.lock();
        let snapshot = grid.cluster().map(|cluster| state.snapshot(cluster)).unwrap_or_default();
        let limit = grid.config().listeners_max;
        state.of_losses.add(link, correlation, scope, local_only, &snapshot.losses, limit)
    }

    /// Removes such a registration. Returns whether it existed.
    pub(crate) fn forget_losses(&self, id: Uuid) -> bool {
        self.state.lock().of_losses.remove(id)
    }

    /// Notifies a client of migrations from now on. Returns the registration's id.
    ///
    /// # Errors
    /// There are too many registrations.
    pub(crate) fn listen_to_migrations(
        &self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        local_only: bool,
        grid: &Grid,
    ) -> Result<Uuid, GridError> {
        self.attach(grid);
        let mut state = self.state.lock();
        let snapshot = grid.cluster().map(|cluster| state.snapshot(cluster)).unwrap_or_default();
        state.of_migrations.add(link, correlation, local_only, snapshot, grid.config().listeners_max)
    }

    /// Removes such a registration. Returns whether it existed.
    pub(crate) fn forget_migrations(&self, id: Uuid) -> bool {
        self.state.lock().of_migrations.remove(id)
    }

    /// Sends all clients the changes that they have not received yet.
    pub(crate) fn send_changes(&self, grid: &Grid) {
        let Some(cluster) = grid.cluster() else { return };
        let mut state = self.state.lock();
        let snapshot = state.snapshot(cluster);
        let view = View::new(snapshot.clone(), grid.member_uuid());
        state.of_losses.send(grid.member_uuid(), &view.snapshot().losses);
        state.listening.retain_mut(|listening| {
            let Some(link) = listening.link.upgrade() else { return false };
            let snapshot = view.snapshot();
            if snapshot.members_version > listening.members_version {
                let event = add_cluster_view_listener::MembersViewEvent {
                    version: snapshot.members_version,
                    member_infos: view.members(),
                };
                link.outbox.append(|out| event.encode(listening.correlation, -1, out));
                listening.members_version = snapshot.members_version;
            }
            if snapshot.leaders_version > listening.leaders_version {
                let event = add_cluster_view_listener::PartitionsViewEvent {
                    version: snapshot.leaders_version,
                    partitions: view.partitions(),
                };
                link.outbox.append(|out| event.encode(listening.correlation, -1, out));
                listening.leaders_version = snapshot.leaders_version;
            }
            true
        });
        // Clients know the new leaders by then.
        state.of_migrations.send(grid.member_uuid(), &snapshot, grid.now());
    }
}

impl State {
    fn snapshot(&mut self, cluster: &Arc<dyn Cluster>) -> Arc<ClusterSnapshot> {
        let view = cluster.view();
        if !self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &view)) {
            self.snapshot = Arc::new(merged(&self.snapshot, &view));
            self.seen = Some(view);
        }
        self.snapshot.clone()
    }
}

/// Merges the current view into the information sent before.
fn merged(snapshot: &ClusterSnapshot, view: &ClusterView) -> ClusterSnapshot {
    let mut snapshot = snapshot.clone();
    if view.members_version >= snapshot.members_version {
        snapshot.members.clone_from(&view.members);
        snapshot.members_version = view.members_version;
    }
    if view.leaders_version >= snapshot.leaders_version {
        let before = |at: usize| snapshot.leaders.get(at).copied().flatten();
        snapshot.leaders = view.leaders.iter().enumerate().map(|(at, leader)| leader.or_else(|| before(at))).collect();
        snapshot.leaders_version = view.leaders_version;
    }
    if !view.losses.is_empty() {
        snapshot.losses.resize(view.losses.len(), None);
        for (last, loss) in snapshot.losses.iter_mut().zip(&view.losses) {
            let epoch = |loss: &Option<PartitionLoss>| loss.map_or(0, |loss| loss.epoch);
            if epoch(loss) > epoch(last) {
                *last = *loss;
            }
        }
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_neither_go_back_nor_forget_leaders() {
        let [a, b] = [1, 2].map(Uuid::from_u128);
        let view = |leaders: [Option<Uuid>; 2], leaders_version| ClusterView {
            leaders: leaders.to_vec(),
            leaders_version,
            members_version: 1,
            ..ClusterView::default()
        };
        let snapshot = merged(&ClusterSnapshot::default(), &view([Some(a), None], 1));
        assert_eq!(snapshot.leaders, [Some(a), None]);
        let snapshot = merged(&snapshot, &view([None, Some(b)], 3));
        assert_eq!((snapshot.leaders.as_slice(), snapshot.leaders_version), ([Some(a), Some(b)].as_slice(), 3));
        let snapshot = merged(&snapshot, &view([Some(b), Some(b)], 2));
        assert_eq!((snapshot.leaders.as_slice(), snapshot.leaders_version), ([Some(a), Some(b)].as_slice(), 3));
    }
}
