//! Changes of several keys of a map that are applied together or not at all.
//!
//! ```text
//!  make_together ─┬─ each partition: claim the keys, and check their values
//!                 │    key held by another caller: all claims are released; the caller waits
//!                 │    value not as expected: the claims stay; the caller computes new changes
//!                 └─ each partition: write, and release the claim; with logs, all claims after the
//!                    last write
//! ```
//!
//! Partitions are claimed in ascending order, and a caller never waits while it has claims, so two
//! such statements cannot deadlock. (Claims of all keys are an exception: they wait, and only one
//! of them continues, see `replication/replacing.rs`.) Between the first write and the last one,
//! readers may see some of the changes and not the others. Other writers wait. Without logs, a
//! failure can only occur before the first write. With logs, writes are repeated when a partition
//! changes its leader; a failure that lasts is reported as an unknown outcome.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Batch, Caller, Change, Command, Reply};

use crate::cell::{Cell, CellState};
use crate::claim_owners::ClaimOwner;
use crate::errors::GridError;
use crate::map::Map;
use crate::shared::Shared;
use crate::together::{CHANGES_PER_LOCK_MAX, NotMade, Together};
use crate::{eviction, threads};

/// The claims of a statement in one map. Released on drop.
#[derive(Debug)]
pub struct Claims<'m> {
    map: &'m Map,
    owner: ClaimOwner,
    partitions: Vec<PartitionId>,
}

impl<'m> Claims<'m> {
    /// The map.
    pub(crate) fn map(&self) -> &'m Map {
        self.map
    }

    /// The owner of the claims.
    pub(crate) fn owner(&self) -> Caller {
        self.owner.caller()
    }

    /// Records that the statement may have claims in a partition.
    pub(crate) fn note(&mut self, partition: PartitionId) {
        if !self.partitions.contains(&partition) {
            self.partitions.push(partition);
        }
    }

    /// Releases the claims. Later claims have another owner: a log may accept the release late, and
    /// it must not release them.
    pub fn give_back(&mut self) {
        let partitions = std::mem::take(&mut self.partitions);
        let owner = std::mem::replace(&mut self.owner, ClaimOwner::new(&self.map.shared)).caller();
        if self.map.is_replicated() {
            return self.map.unclaim_by_log(owner, partitions);
        }
        for partition in partitions {
            let Some(cell) = self.map.shared.cell(partition) else { continue };
            self.map.apply_together(cell, &mut cell.lock(), owner, Change::Unclaim, |_| ());
        }
    }

    /// Writes the claimed keys of a partition, and releases their claim.
    fn write(&self, partition: PartitionId, batch: &Batch) {
        let (shared, core) = (&*self.map.shared, &*self.map.core);
        let Some(cell) = shared.cell(partition) else { return };
        let mut parts = batch.parts(CHANGES_PER_LOCK_MAX).peekable();
        while let Some((_, part)) = parts.next() {
            threads::give_way();
            let mut state = cell.lock();
            self.map.apply_together(cell, &mut state, self.owner(), Change::WriteBatch { batch: part }, |_| ());
            if parts.peek().is_none() {
                self.map.apply_together(cell, &mut state, self.owner(), Change::Unclaim, |_| ());
            }
            core.note_deadlines(shared, cell, &Change::WriteBatch { batch: &[] }, shared.now());
            if core.evicts && !eviction::make_room_after_many(shared, core, cell, &mut state) {
                drop(state);
                eviction::make_room_elsewhere(shared, core, partition, None);
            }
        }
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.give_back();
        self.map.core.claiming.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Claims that outlive the reference to their map. Released on drop.
#[derive(Debug)]
pub(crate) struct DetachedClaims {
    map: Map,
    owner: Option<ClaimOwner>,
    partitions: Vec<PartitionId>,
}

impl Claims<'_> {
    /// Detaches the claims from the reference to their map. No claims are left here.
    pub(crate) fn detach(&mut self) -> DetachedClaims {
        let Map { core, shared } = self.map;
        core.claiming.fetch_add(1, Ordering::SeqCst);
        DetachedClaims {
            map: Map { core: core.clone(), shared: shared.clone() },
            owner: Some(std::mem::replace(&mut self.owner, ClaimOwner::new(shared))),
            partitions: std::mem::take(&mut self.partitions),
        }
    }
}

impl Drop for DetachedClaims {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            drop(Claims { map: &self.map, owner, partitions: std::mem::take(&mut self.partitions) });
        }
    }
}

/// Memory of the member that is reserved for a pending write.
struct Reserved<'s>(&'s Shared, usize);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.memory.maps.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Map {
    /// The claims of a new statement, initially none.
    pub fn claims(&self) -> Claims<'_> {
        self.core.claiming.fetch_add(1, Ordering::SeqCst);
        Claims { map: self, owner: ClaimOwner::new(&self.shared), partitions: Vec::new() }
    }

    /// Applies all changes, or none of them. `claims` are the claims of the calling statement,
    /// possibly from an earlier attempt.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn make_together(&self, changes: &Together, claims: &mut Claims<'_>) -> Result<(), NotMade> {
        let made = self.try_together(changes, claims);
        if !matches!(made, Err(NotMade::Differ(_))) {
            claims.give_back();
        }
        made
    }

    fn try_together(&self, changes: &Together, claims: &mut Claims<'_>) -> Result<(), NotMade> {
        let (shared, core) = (&*self.shared, &*self.core);
        shared.check_active().map_err(NotMade::Error)?;
        // Checked after `claiming` was incremented, see `Grid::claiming_statements`.
        if shared.leaves.load(Ordering::SeqCst) {
            return Err(NotMade::Error(GridError::NotActive));
        }
        if self.is_destroyed() {
            return Err(NotMade::Error(core.destroyed_error()));
        }
        core.check_held().map_err(NotMade::Error)?;
        let _reserved = self.reserve(changes)?;
        let mut differing = Vec::new();
        let batches = changes.batches.iter().filter(|(_, batch)| !batch.is_empty());
        if self.is_replicated() {
            batches.clone().for_each(|(partition, _)| claims.note(*partition));
            self.claim_by_log(claims.owner(), batches.clone().map(|(id, batch)| (*id, batch)), &mut differing)?;
        } else {
            for (partition, batch) in batches.clone() {
                self.claim(*partition, batch, claims, &mut differing)?;
            }
        }
        if !differing.is_empty() {
            return Err(NotMade::Differ(differing));
        }
        if self.is_replicated() {
            return self.write_by_log(claims.owner(), batches.map(|(id, batch)| (*id, batch)));
        }
        batches.for_each(|(partition, batch)| claims.write(*partition, batch));
        // The claims of written partitions are already released.
        claims.partitions.retain(|partition| changes.batches.get(partition).is_none_or(Batch::is_empty));
        Ok(())
    }

    /// Reserves memory for the pending write.
    fn reserve(&self, changes: &Together) -> Result<Reserved<'_>, NotMade> {
        let (shared, needed) = (&*self.shared, changes.growth());
        shared.memory.maps.fetch_add(needed, Ordering::Relaxed);
        let reserved = Reserved(shared, needed);
        match shared.memory.lacks_room_for_maps(0) {
            Some((used, max)) if needed > 0 => {
                Err(NotMade::Error(GridError::OutOfMemory { needed, used: used.saturating_sub(needed), max }))
            }
            _ => Ok(reserved),
        }
    }

    /// Claims the keys of a batch, and adds those without the expected values to `differing`.
    fn claim(
        &self,
        partition: PartitionId,
        batch: &Batch,
        claims: &mut Claims<'_>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let Some(cell) = self.shared.cell(partition) else { return Ok(()) };
        claims.note(partition);
        for (from, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
            threads::give_way();
            let change = Change::Claim { batch: part };
            self.apply_together(cell, &mut cell.lock(), claims.owner(), change, |reply| {
                self.claimed(batch, from, reply, differing)
            })?;
        }
        Ok(())
    }

    fn apply_together<R>(
        &self,
        cell: &Cell,
        state: &mut CellState,
        owner: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> R {
        let (shared, core) = (&*self.shared, &*self.core);
        let command = Command { map: core.id, now: shared.now(), caller: owner, change };
        shared.apply(cell, state, core, &command, reply)
    }
}
