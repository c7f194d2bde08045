//! Locks of clients that have gone: whoever leads a partition gives them back when no member has a connection of the client.
//!
//! The member that a client was connected to may be the one that died, and a lock moves with its partition to leaders that never knew the
//! client. Each leader therefore looks at the owners of the locks that it has, and asks all members about those that it does not know. While a
//! member does not answer, a client may be connected to it, or be on its way to another one: nothing is given back until that member has been
//! silent for so long that its clients have gone elsewhere.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_grid::Grid;
use filbert_links::{Channel, Links};
use uuid::Uuid;

use crate::asking::Asking;
use crate::service::{Request, read};
use crate::view::Views;

/// Between two looks. A client that was unknown to all members at two of them has gone: one that changes its member has this time for it.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// A member that has been silent for so long is not asked: stock clients try other members at least every 30 seconds.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// Owners of locks about which others are asked at once; the rest has its turn when these have gone.
const ASKED_MAX: usize = 10_000;

/// Looks after the locks that this member has as leader.
pub(crate) struct Departed {
    pub(crate) member: MemberId,
    pub(crate) asking: Arc<Asking>,
    pub(crate) links: Arc<Links>,
    pub(crate) views: Arc<Views>,
    pub(crate) grid: Weak<Grid>,
}

/// A client's UUID as two halves of a number, as it goes over the wire.
pub(crate) type Halves = (u64, u64);

impl Departed {
    /// Looks until the future is dropped, or the grid.
    pub(crate) async fn run(self) {
        let mut unknown = BTreeSet::new();
        loop {
            tokio::time::sleep(LOOKED_EVERY).await;
            let Some(grid) = self.grid.upgrade() else { return };
            let mut owners = grid.lock_owners_elsewhere();
            drop(grid);
            let state = self.asking.registry().state();
            // Members' own statements claim keys; they are not clients.
            state.members().for_each(|(_, facts)| _ = owners.remove(&facts.uuid));
            let before = std::mem::take(&mut unknown);
            if owners.is_empty() {
                continue;
            }
            let owners: Vec<Uuid> = owners.into_iter().take(ASKED_MAX).collect();
            let Some(connected) = self.connected_elsewhere(&owners).await else { continue };
            unknown = owners.into_iter().filter(|owner| !connected.contains(owner)).collect();
            let gone: BTreeSet<Uuid> = unknown.intersection(&before).copied().collect();
            if let (false, Some(grid)) = (gone.is_empty(), self.grid.upgrade()) {
                tracing::debug!("locks of {} clients that have gone are given back", gone.len());
                grid.release_locks(&gone);
            }
        }
    }

    /// Which of the clients other members know; `None` if one of them does not answer.
    async fn connected_elsewhere(&self, clients: &[Uuid]) -> Option<BTreeSet<Uuid>> {
        let state = self.asking.registry().state();
        let request = Request::Connected(clients.iter().map(Uuid::as_u64_pair).collect()).write();
        let may_answer = |id: &MemberId| *id != self.member && self.views.silent_for(*id) < SILENT_MAX;
        let others = state.members().map(|(id, _)| id).filter(may_answer);
        let asked: Vec<_> = others.map(|id| self.links.call(id, Channel::Requests, request.clone())).collect();
        let mut connected = BTreeSet::new();
        for answer in asked {
            let answer = tokio::time::timeout(LOOKED_EVERY, answer).await.ok()?.ok()?;
            let known: Vec<Halves> = read(&answer).ok()?;
            connected.extend(known.into_iter().map(|(high, low)| Uuid::from_u64_pair(high, low)));
        }
        Some(connected)
    }
}

/// Those of the clients that have a connection to this member.
pub(crate) fn connected_here(grid: &Grid, clients: &[Halves]) -> Vec<Halves> {
    let is_connected = |(high, low): &Halves| grid.clients().is_connected(Uuid::from_u64_pair(*high, *low));
    clients.iter().copied().filter(is_connected).collect()
}
