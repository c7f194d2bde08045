//! The sweep: scheduled background work of a member. It frees expired entries, ends leases, answers
//! waiters with passed deadlines, evicts from maps, and maintains summaries of indexes.

use std::sync::atomic::Ordering;

use filbert_store::{Change, Millis};

use crate::cell::Cell;
use crate::eviction;
use crate::grid::Grid;
use crate::replication::propose_evictions_by_sweep;

/// The interval between two checks of index summaries by the sweep, in milliseconds.
const UPKEEP_INTERVAL_MS: i64 = 500;

impl Grid {
    /// Runs one sweep. Returns the time of the next one.
    pub fn run_expiry(&self) -> Millis {
        let shared = &*self.shared;
        let now = shared.now();
        let config = &shared.config;
        shared.next_sweep_ms.store(now.plus(config.expiry_interval_ms_max).0, Ordering::Release);
        for (partition, cell) in shared.partitions() {
            if cell.due() <= now {
                match &shared.replication {
                    None => self.sweep(cell, now),
                    Some(replication) => self.sweep_by_log(replication, partition, cell, now),
                }
            }
        }
        let evicting = shared.maps.read().evicting.clone();
        for map in evicting {
            match shared.replication {
                None => eviction::make_room_by_sweep(shared, &map),
                Some(_) => propose_evictions_by_sweep(&self.shared, &map),
            }
        }
        self.shared.propose_retries();
        if shared.next_upkeep_ms.load(Ordering::Relaxed) <= now.0 {
            shared.next_upkeep_ms.store(now.plus(UPKEEP_INTERVAL_MS).0, Ordering::Relaxed);
            let maps: Vec<_> = shared.maps.read().by_id.values().cloned().collect();
            maps.iter().for_each(|map| shared.renew_signatures(map));
        }
        let next = shared.cells.iter().map(Cell::due).min().unwrap_or(Millis::MAX);
        let earliest = now.plus(config.expiry_interval_ms_min);
        let next = next.max(earliest).min(now.plus(config.expiry_interval_ms_max));
        // Work that became due during the sweep was recorded and announced by the recording thread.
        shared.next_sweep_ms.fetch_min(next.0, Ordering::AcqRel);
        next
    }

    fn sweep(&self, cell: &Cell, now: Millis) {
        let shared = &*self.shared;
        let limit = shared.config.expire_batch_max;
        loop {
            let mut state = cell.lock();
            cell.nothing_due();
            shared.apply_to_all(cell, &mut state, now, Change::Expire { limit });
            let ended = state.waiters.take_ended_turns(now).into_iter().map(|(map, key)| (map, Some(key)));
            shared.run_freed(cell, &mut state, ended.collect());
            shared.answer_late(&mut state, now);
            let expiry = state.partition.next_expiry();
            let deadline = state.waiters.first_deadline();
            cell.due_by(expiry.into_iter().chain(deadline).min().unwrap_or(Millis::MAX));
            if expiry.is_none_or(|expiry| expiry > now) {
                return;
            }
            // More entries have expired than one batch frees: other threads can acquire the lock in
            // between.
        }
    }

    /// Sets a callback for work that becomes due before the time that the last [`Grid::run_expiry`]
    /// returned. It receives the new time. It must neither block nor call back into the grid.
    pub fn on_due(&self, callback: impl Fn(Millis) + Send + Sync + 'static) {
        *self.shared.on_due.write() = Some(Box::new(callback));
    }
}
