//! Locks of departed clients. The leader of a partition releases them when no member has a
//! connection of the client.
//!
//! The member that a client was connected to may be the member that died, and a lock moves with its
//! partition to leaders that never knew the client. Therefore each leader checks the owners of its
//! locks, and asks all members about the owners that are not connected here. While a member does
//! not answer, a client may be connected to it, or on its way to another member: no lock is
//! released until that member has been silent for so long that its clients have connected
//! elsewhere.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_grid::Grid;
use filbert_links::{Channel, Links};
use uuid::Uuid;

use crate::messages::{Halves, Request, read};
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// The interval between two checks. A client has departed if no member knows it at two consecutive
/// checks: a client that changes its member has this time to reconnect.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// A member that has been silent for this time is not asked: stock clients try other members at
/// least every 30 seconds.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// The maximum number of lock owners in one request. Other owners are asked about once these have
/// departed.
const OWNERS_PER_REQUEST_MAX: usize = 10_000;

/// Releases the locks of departed clients in the partitions that this member leads.
pub(crate) struct Departed {
    pub(crate) member: MemberId,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) links: Arc<Links>,
    pub(crate) views: Arc<Views>,
    pub(crate) grid: Weak<Grid>,
}

impl Departed {
    /// Runs until the future or the grid is dropped.
    pub(crate) async fn run(self) {
        let mut unknown = BTreeSet::new();
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            let Some(grid) = self.grid.upgrade() else { return };
            let mut owners = grid.lock_owners_elsewhere();
            drop(grid);
            let state = self.registry_client.registry().state();
            // Statements of members own locks as well. Members are not clients.
            state.members().for_each(|(_, facts)| _ = owners.remove(&facts.uuid));
            let before = std::mem::take(&mut unknown);
            if owners.is_empty() {
                continue;
            }
            let owners: Vec<Uuid> = owners.into_iter().take(OWNERS_PER_REQUEST_MAX).collect();
            let Some(connected) = self.connected_elsewhere(&owners).await else { continue };
            unknown = owners.into_iter().filter(|owner| !connected.contains(owner)).collect();
            let departed: BTreeSet<Uuid> = unknown.intersection(&before).copied().collect();
            if let (false, Some(grid)) = (departed.is_empty(), self.grid.upgrade()) {
                tracing::debug!("locks of {} clients that have gone are given back", departed.len());
                grid.release_locks(&departed);
            }
        }
    }

    /// Returns the clients that are connected to other members. `None` if a member does not answer.
    async fn connected_elsewhere(&self, clients: &[Uuid]) -> Option<BTreeSet<Uuid>> {
        let state = self.registry_client.registry().state();
        let request = Request::Connected(clients.iter().map(Uuid::as_u64_pair).collect()).write();
        let may_answer = |id: &MemberId| *id != self.member && self.views.silent_for(*id) < SILENT_MAX;
        let others = state.members().map(|(id, _)| id).filter(may_answer);
        let answers: Vec<_> = others.map(|id| self.links.call(id, Channel::Requests, request.clone())).collect();
        let mut connected = BTreeSet::new();
        for answer in answers {
            let answer = tokio::time::timeout(CHECKED_EVERY, answer).await.ok()?.ok()?;
            let known: Vec<Halves> = read(&answer).ok()?;
            connected.extend(known.into_iter().map(|(high, low)| Uuid::from_u64_pair(high, low)));
        }
        Some(connected)
    }
}

/// Returns the clients that have a connection to this member.
pub(crate) fn connected_here(grid: &Grid, clients: &[Halves]) -> Vec<Halves> {
    let is_connected = |(high, low): &Halves| grid.clients().is_connected(Uuid::from_u64_pair(*high, *low));
    clients.iter().copied().filter(is_connected).collect()
}
