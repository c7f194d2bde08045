//! The cluster as clients of this door are told of it, and the clients that want to hear of its changes.
//!
//! Versions never go back for anybody, and a partition without a leader is told as it was last known: a client that asks the
//! member that led it is sent on, while one that knows nobody would ask around.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use filbert_grid::{Cluster, ClusterView, Grid, GridError, MemberView, PartitionLoss};
use filbert_wire::{CorrelationId, Event, Uuid, table::client::add_cluster_view_listener};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::link::Link;
use crate::losses::{About, LossListeners};
use crate::migrations::MigrationListeners;
use crate::view::View;

/// Registrations up to which nobody looks for those of connections that are gone.
const KEPT_UNLOOKED_AT: usize = 64;

/// What is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) members: Vec<MemberView>,
    pub(crate) members_version: i32,
    /// By partition; `None` where no leader was ever known.
    pub(crate) leaders: Vec<Option<Uuid>>,
    pub(crate) leaders_version: i32,
    /// By partition, what it lost last; empty if none has lost anything.
    pub(crate) losses: Vec<Option<PartitionLoss>>,
}

/// A client that hears of changes, and what it has heard.
struct Listening {
    link: Weak<Link>,
    correlation: CorrelationId,
    members_version: i32,
    leaders_version: i32,
}

#[derive(Default)]
struct State {
    seen: Option<Arc<ClusterView>>,
    told: Arc<Told>,
    /// One for each connection at most.
    listening: Vec<Listening>,
    purge_at: usize,
    of_losses: LossListeners,
    of_migrations: MigrationListeners,
}

/// Set from the thread that changed the view.
#[derive(Default)]
struct Changed {
    count: AtomicU64,
    notify: Notify,
    /// Connections that wait for it.
    waiting: Mutex<Vec<Weak<Link>>>,
}

/// All of it, of one door.
#[derive(Default)]
pub(crate) struct Views {
    state: Mutex<State>,
    attached: AtomicBool,
    changed: Arc<Changed>,
}

impl Views {
    /// Hears of changes from now on, if there is a cluster.
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
        // What happened before is not told by anybody.
        self.changed.notify.notify_one();
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        self.changed.notify.notified().await;
    }

    /// Grows with every change.
    pub(crate) fn change_count(&self) -> u64 {
        self.changed.count.load(Ordering::SeqCst)
    }

    /// Wakes a connection at the next change, at once rather than with all others. The view is to be looked at after this.
    pub(crate) fn wake_at_change(&self, link: &Arc<Link>) {
        self.changed.waiting.lock().push(Arc::downgrade(link));
    }

    /// What clients are told now.
    pub(crate) fn told(&self, cluster: &Arc<dyn Cluster>) -> Arc<Told> {
        self.state.lock().told(cluster)
    }

    /// Tells a client of changes after those that it is told at its registration. A connection has one such registration.
    /// What it returns is to be told first.
    pub(crate) fn listen(&self, link: &Arc<Link>, correlation: CorrelationId, cluster: &Arc<dyn Cluster>) -> Arc<Told> {
        let mut state = self.state.lock();
        let told = state.told(cluster);
        if state.listening.len() >= state.purge_at.max(KEPT_UNLOOKED_AT) {
            state.listening.retain(|listening| listening.link.strong_count() > 0);
            state.purge_at = state.listening.len() * 2;
        }
        let (link, members_version, leaders_version) =
            (Arc::downgrade(link), told.members_version, told.leaders_version);
        let listening = Listening { link, correlation, members_version, leaders_version };
        match state.listening.iter_mut().find(|other| other.link.ptr_eq(&listening.link)) {
            Some(other) => *other = listening,
            None => state.listening.push(listening),
        }
        told
    }

    /// Tells a client of what partitions lose from now on: the registration's id.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn listen_to_losses(
        &self,
        link: &Arc<Link>,
        correlation: CorrelationId,
        about: About,
        local_only: bool,
        grid: &Grid,
    ) -> Result<Uuid, GridError> {
        self.attach(grid);
        let mut state = self.state.lock();
        let told = grid.cluster().map(|cluster| state.told(cluster)).unwrap_or_default();
        let limit = grid.config().listeners_max;
        state.of_losses.add(link, correlation, about, local_only, &told.losses, limit)
    }

    /// Removes such a registration; whether there was one.
    pub(crate) fn forget_losses(&self, id: Uuid) -> bool {
        self.state.lock().of_losses.remove(id)
    }

    /// Tells a client of migrations from now on: the registration's id.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn listen_to_migrations(
        &self,
        link: &Arc<Link>,
        correlation: CorrelationId,
        local_only: bool,
        grid: &Grid,
    ) -> Result<Uuid, GridError> {
        self.attach(grid);
        let mut state = self.state.lock();
        let told = grid.cluster().map(|cluster| state.told(cluster)).unwrap_or_default();
        state.of_migrations.add(link, correlation, local_only, told, grid.config().listeners_max)
    }

    /// Removes such a registration; whether there was one.
    pub(crate) fn forget_migrations(&self, id: Uuid) -> bool {
        self.state.lock().of_migrations.remove(id)
    }

    /// Tells everybody what they have not heard yet.
    pub(crate) fn tell(&self, grid: &Grid) {
        let Some(cluster) = grid.cluster() else { return };
        let mut state = self.state.lock();
        let told = state.told(cluster);
        let view = View::new(told.clone(), grid.member_uuid());
        state.of_losses.tell(grid.member_uuid(), &view.told().losses);
        state.listening.retain_mut(|listening| {
            let Some(link) = listening.link.upgrade() else { return false };
            let told = view.told();
            if told.members_version > listening.members_version {
                let event = add_cluster_view_listener::MembersViewEvent {
                    version: told.members_version,
                    member_infos: view.members(),
                };
                link.outbox.append(|out| event.encode(listening.correlation, -1, out));
                listening.members_version = told.members_version;
            }
            if told.leaders_version > listening.leaders_version {
                let event = add_cluster_view_listener::PartitionsViewEvent {
                    version: told.leaders_version,
                    partitions: view.partitions(),
                };
                link.outbox.append(|out| event.encode(listening.correlation, -1, out));
                listening.leaders_version = told.leaders_version;
            }
            true
        });
        // Clients know who leads by then.
        state.of_migrations.tell(grid.member_uuid(), &told, grid.now());
    }
}

impl State {
    fn told(&mut self, cluster: &Arc<dyn Cluster>) -> Arc<Told> {
        let view = cluster.view();
        if !self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &view)) {
            self.told = Arc::new(merged(&self.told, &view));
            self.seen = Some(view);
        }
        self.told.clone()
    }
}

/// What was told, with what is known now.
fn merged(told: &Told, view: &ClusterView) -> Told {
    let mut told = told.clone();
    if view.members_version >= told.members_version {
        told.members.clone_from(&view.members);
        told.members_version = view.members_version;
    }
    if view.leaders_version >= told.leaders_version {
        let before = |at: usize| told.leaders.get(at).copied().flatten();
        told.leaders = view.leaders.iter().enumerate().map(|(at, leader)| leader.or_else(|| before(at))).collect();
        told.leaders_version = view.leaders_version;
    }
    if !view.losses.is_empty() {
        told.losses.resize(view.losses.len(), None);
        for (told, loss) in told.losses.iter_mut().zip(&view.losses) {
            let epoch = |loss: &Option<PartitionLoss>| loss.map_or(0, |loss| loss.epoch);
            if epoch(loss) > epoch(told) {
                *told = *loss;
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_neither_goes_back_nor_forgets_leaders() {
        let [a, b] = [1, 2].map(Uuid::from_u128);
        let view = |leaders: [Option<Uuid>; 2], leaders_version| ClusterView {
            leaders: leaders.to_vec(),
            leaders_version,
            members_version: 1,
            ..ClusterView::default()
        };
        let told = merged(&Told::default(), &view([Some(a), None], 1));
        assert_eq!(told.leaders, [Some(a), None]);
        let told = merged(&told, &view([None, Some(b)], 3));
        assert_eq!((told.leaders.as_slice(), told.leaders_version), ([Some(a), Some(b)].as_slice(), 3));
        let told = merged(&told, &view([Some(b), Some(b)], 2));
        assert_eq!((told.leaders.as_slice(), told.leaders_version), ([Some(a), Some(b)].as_slice(), 3));
    }
}
