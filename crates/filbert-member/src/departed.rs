//! Locks of departed clients, and claims of ended statements. The leader of a partition releases
//! locks when no member has a connection of the client.
//!
//! The member that a client was connected to may be the member that died, and a lock moves with its
//! partition to leaders that never knew the client. Therefore each leader checks the owners of its
//! locks, and asks all members about the owners that are not connected here. While a member does
//! not answer, a client may be connected to it, or on its way to another member: no lock is
//! released until that member has been silent for so long that its clients have connected
//! elsewhere.
//!
//! Claims of statements are alike: their member may have left, and a claim may arrive behind its
//! release. Each leader asks the members of the owners of claims which of them run.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_grid::Grid;
use filbert_links::{Channel, Links};
use filbert_store::Caller;
use uuid::Uuid;

use crate::messages::{Halves, Request, read};
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// The interval between two checks. A client has departed if no member knows it at two consecutive
/// checks: a client that changes its member has this time to reconnect. The same holds for
/// statements: the release of their claims may be under way.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// A member that has been silent for this time is not asked: stock clients try other members at
/// least every 30 seconds.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// The maximum number of owners in one request. Other owners are asked about once these have
/// departed.
const OWNERS_PER_REQUEST_MAX: usize = 10_000;

/// Releases the locks of departed clients and the claims of ended statements in the partitions that
/// this member leads.
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
        let (mut unknown, mut ended) = (BTreeSet::new(), BTreeSet::new());
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            if self.grid.strong_count() == 0 {
                return;
            }
            unknown = self.check_locks(unknown).await.unwrap_or_default();
            ended = self.check_claims(ended).await.unwrap_or_default();
        }
    }

    /// Releases the locks of clients that no member knows, neither now nor at the check before.
    /// Returns the clients that no member knows now.
    async fn check_locks(&self, before: BTreeSet<Uuid>) -> Option<BTreeSet<Uuid>> {
        let mut owners = self.grid.upgrade()?.lock_owners_elsewhere();
        let state = self.registry_client.registry().state();
        // Statements of members own locks as well. Members are not clients.
        state.members().for_each(|(_, facts)| _ = owners.remove(&facts.uuid));
        if owners.is_empty() {
            return None;
        }
        let owners: Vec<Uuid> = owners.into_iter().take(OWNERS_PER_REQUEST_MAX).collect();
        let connected = self.connected_elsewhere(&owners).await?;
        let unknown: BTreeSet<Uuid> = owners.into_iter().filter(|owner| !connected.contains(owner)).collect();
        let departed: BTreeSet<Uuid> = unknown.intersection(&before).copied().collect();
        if !departed.is_empty() {
            tracing::debug!("locks of {} clients that have gone are given back", departed.len());
            self.grid.upgrade()?.release_locks(&departed);
        }
        Some(unknown)
    }

    /// Releases the claims of statements that do not run, neither now nor at the check before.
    /// Returns the owners of claims that do not run now.
    async fn check_claims(&self, before: BTreeSet<Caller>) -> Option<BTreeSet<Caller>> {
        let mut ended = self.grid.upgrade()?.claim_owners();
        let state = self.registry_client.registry().state();
        for (member, facts) in state.members() {
            let of_member = ended.iter().filter(|owner| owner.client == facts.uuid);
            let asked: BTreeSet<Caller> = of_member.take(OWNERS_PER_REQUEST_MAX).copied().collect();
            if asked.is_empty() {
                continue;
            }
            // A member that does not answer may run all of them.
            let running = self.running_at(member, asked.iter().map(|owner| owner.thread).collect()).await;
            let has_ended = |owner: &Caller| {
                asked.contains(owner) && running.as_ref().is_some_and(|running| !running.contains(&owner.thread))
            };
            ended.retain(|owner| owner.client != facts.uuid || has_ended(owner));
        }
        let released: BTreeSet<Caller> = ended.intersection(&before).copied().collect();
        if !released.is_empty() {
            tracing::debug!("claims of {} statements that have ended are given back", released.len());
            self.grid.upgrade()?.release_claims(&released);
        }
        Some(ended)
    }

    /// Returns which of these statements of a member run there. `None` if it does not answer.
    async fn running_at(&self, member: MemberId, threads: Vec<i64>) -> Option<BTreeSet<i64>> {
        if member == self.member {
            return Some(self.grid.upgrade()?.running_statements(&threads).into_iter().collect());
        }
        let call = self.links.call(member, Channel::Requests, Request::Running(threads).write());
        let answer = tokio::time::timeout(CHECKED_EVERY, call).await.ok()?.ok()?;
        Some(read::<Vec<i64>>(&answer).ok()?.into_iter().collect())
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
