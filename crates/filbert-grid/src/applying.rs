//! Changes under a cell's lock: checks the memory limit, applies the change, updates the accounts,
//! notifies listeners, and then runs the changes that waited for released keys. This module must
//! not know the origin of a change, nor whether a log has decided it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_store::{Caller, Change, Command, Expiry, MapId, Millis, Partition, PutMode, Reply};

use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::eviction;
use crate::groups::SubmitError;
use crate::map_core::{MapCore, RECORD_OVERHEAD_BYTES};
use crate::shared::{Shared, reserve};
use crate::tap::{Freed, Tap};
use crate::waiters::Waiter;

impl Shared {
    /// Applies a change of one map, notifies its listeners, and runs the changes that waited for
    /// the keys that it released. `reply` is called with the answer before any of these runs.
    #[inline]
    pub(crate) fn apply<R>(
        &self,
        cell: &Cell,
        state: &mut CellState,
        map: &MapCore,
        command: &Command<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> R {
        let mut tap = Tap::new(self, cell, Some(map));
        let result = self.follow(state, map, &mut tap, |partition, tap| reply(partition.lead(command, tap)));
        let freed = tap.into_freed();
        if !freed.is_empty() {
            self.run_freed(cell, state, freed);
        }
        result
    }

    /// Changes one map of a partition, and updates the memory accounts. The tap then has the
    /// released keys.
    #[inline(always)]
    pub(crate) fn follow<'t, R>(
        &self,
        state: &mut CellState,
        map: &MapCore,
        tap: &mut Tap<'t>,
        change: impl FnOnce(&mut Partition, &mut Tap<'t>) -> R,
    ) -> R {
        let before = state.partition.bytes();
        let result = change(&mut state.partition, tap);
        let after = state.partition.bytes();
        if before != after {
            self.account(before, after);
            map.account(before, after);
        }
        result
    }

    /// Applies a change of all maps of a partition.
    pub(crate) fn apply_to_all(&self, cell: &Cell, state: &mut CellState, now: Millis, change: Change<'_>) {
        let command = Command { map: MapId(0), now, caller: self.own_caller(), change };
        let tap = Tap::new(self, cell, None);
        let ((), freed) = self.follow_all(state, tap, |partition, tap| drop(partition.lead(&command, tap)));
        self.run_freed(cell, state, freed);
    }

    /// Changes all maps of a partition, and updates the memory accounts.
    pub(crate) fn follow_all<'t, R>(
        &self,
        state: &mut CellState,
        mut tap: Tap<'t>,
        change: impl FnOnce(&mut Partition, &mut Tap<'t>) -> R,
    ) -> (R, Freed) {
        let before = state.partition.bytes();
        let counted: Vec<_> = {
            let maps = self.maps.read();
            let counts_bytes = |map: &&Arc<MapCore>| map.config.eviction.max_size_policy.counts_bytes();
            maps.evicting.iter().filter(counts_bytes).cloned().collect()
        };
        let of_map = |state: &CellState, map: &MapCore| state.partition.statistics(map.id).bytes_owned;
        let counted: Vec<_> = counted.into_iter().map(|map| (of_map(state, &map), map)).collect();
        let result = change(&mut state.partition, &mut tap);
        let freed = tap.into_freed();
        self.account(before, state.partition.bytes());
        for (before, map) in counted {
            map.account(before, of_map(state, &map));
        }
        (result, freed)
    }

    /// Runs the changes that wait for released keys.
    pub(crate) fn run_freed(&self, cell: &Cell, state: &mut CellState, freed: Freed) {
        let mut keys = freed;
        while let Some((map, key)) = keys.pop() {
            let Some(key) = key else {
                // A claim was released, so any key of the map may be free: all its waiters are
                // checked.
                keys.extend(state.waiters.keys_of(map).into_iter().map(|key| (map, Some(key))));
                continue;
            };
            state.waiters.end_turn(map, &key);
            while let Some(waiter) = self.next_to_run(state, map, &key) {
                let Some(core) = self.map_by_id(map) else {
                    // The destroying thread answers the waiters of a destroyed map.
                    state.waiters.push_front(map, &key, waiter);
                    break;
                };
                match self.run_waiter(cell, state, &core, waiter) {
                    Ok(more) => keys.extend(more),
                    Err(waiter) => {
                        state.waiters.push_front(map, &key, *waiter);
                        break;
                    }
                }
            }
        }
    }

    fn next_to_run(&self, state: &mut CellState, map: MapId, key: &[u8]) -> Option<Waiter> {
        let now = self.now();
        let owner = state.partition.lock_state(map, key, now).map(|lock| lock.owner);
        state.waiters.next(map, key, owner, now)
    }

    /// Applies a parked change and answers it. Returns the waiter if its key is locked again.
    fn run_waiter(
        &self,
        cell: &Cell,
        state: &mut CellState,
        map: &MapCore,
        waiter: Waiter,
    ) -> Result<Freed, Box<Waiter>> {
        let now = self.now();
        if waiter.is_late(now) {
            // The sweep has not removed the waiter yet. Its caller may have given up, and must not
            // get a lock then.
            self.answer(waiter, Err(GridError::LockTimeout { map: map.name.clone() }));
            return Ok(Vec::new());
        }
        let before = state.partition.bytes();
        let command = Command { map: map.id, now, caller: waiter.caller, change: waiter.change.borrow() };
        if let Err(error) = map.check_memory(self, &state.partition, &command) {
            self.answer(waiter, Err(error));
            return Ok(Vec::new());
        }
        let mut tap = Tap::new(self, cell, Some(map));
        let reply = match state.partition.lead(&command, &mut tap) {
            Reply::Locked { .. } => return Err(Box::new(waiter)),
            Reply::Refused(error) => Err(map.refusal(error)),
            reply => Ok(reply),
        };
        self.release_waiter(&waiter);
        (waiter.reply)(reply);
        let freed = tap.into_freed();
        let change = waiter.change.borrow();
        if let Change::Await { key } = change {
            self.begin_turn(map, cell, state, key);
        }
        map.note_locks(self, &change, waiter.caller);
        map.note_deadlines(self, cell, &change, now);
        let after = state.partition.bytes();
        self.account(before, after);
        map.account(before, after);
        if map.evicts
            && eviction::may_need_eviction(&change)
            && !eviction::make_room_here(self, map, cell, state, change.key())
        {
            // Other partitions must evict. This partition's lock is held, so the sweep does it.
            self.due_by(cell, now);
        }
        Ok(freed)
    }

    /// Begins the turn of a statement that was notified that a key is free: the waiters behind it
    /// let it claim the key.
    pub(crate) fn begin_turn(&self, map: &MapCore, cell: &Cell, state: &mut CellState, key: &[u8]) {
        if let Some(ends) = state.waiters.begin_turn(map.id, key, self.now()) {
            self.due_by(cell, ends);
        }
    }

    /// Answers every parked change of the member with an error, because the member shuts down.
    pub(crate) fn dismiss_all(&self) {
        for cell in &self.cells {
            let mut state = cell.lock();
            for (_, waiter) in state.waiters.take_all() {
                self.answer(waiter, Err(GridError::NotActive));
            }
        }
    }

    /// Answers the waiters with a passed deadline.
    pub(crate) fn answer_late(&self, state: &mut CellState, now: Millis) {
        for (map, waiter) in state.waiters.take_late(now) {
            let name = self.map_by_id(map).map_or_else(String::new, |map| map.name.clone());
            self.answer(waiter, Err(GridError::LockTimeout { map: name }));
        }
    }

    /// Parks a change until its key is released. Answers it if another member leads the partition
    /// meanwhile: nobody would release the key here.
    pub(crate) fn park(
        &self,
        map: &MapCore,
        cell: &Cell,
        state: &mut CellState,
        waiter: Waiter,
        free_at: Option<Millis>,
    ) {
        let reserved = if state.waiters.is_closed() { Err(self.led_elsewhere(state)) } else { Ok(()) };
        if let Err(error) = reserved.and_then(|()| self.reserve_waiter(&waiter)) {
            (waiter.reply)(Err(error));
            return;
        }
        self.clients.mark_may_hold_locks(waiter.caller.client);
        let due = waiter.deadline.min(free_at.unwrap_or(Millis::MAX));
        let key: Box<[u8]> = waiter.change.key().unwrap_or_default().into();
        state.waiters.push_back(map.id, &key, waiter);
        self.due_by(cell, due);
    }

    /// The error of a change that cannot wait, because this member does not lead the partition any
    /// more.
    pub(crate) fn led_elsewhere(&self, state: &CellState) -> GridError {
        let group = self.group_of(state.partition.id());
        SubmitError::NotLeader { group, hint: "another member leads it now".to_owned() }.into()
    }

    /// Reserves a place and memory for one more waiter.
    pub(crate) fn reserve_waiter(&self, waiter: &Waiter) -> Result<(), GridError> {
        let needed = waiter.bytes();
        if let Some((used, max)) = self.memory.lacks_room_for_maps(needed) {
            return Err(GridError::OutOfMemory { needed, used, max });
        }
        reserve(&self.waiters, self.config.lock_waiters_max, "changes waiting for locked keys", "lock_waiters_max")?;
        self.memory.maps.fetch_add(needed, Ordering::Relaxed);
        Ok(())
    }
}

impl MapCore {
    /// Adds the map's bytes outside its partitions to the memory accounts, or subtracts them.
    /// Repeated calls have no effect.
    pub(crate) fn account_map_bytes(&self, shared: &Shared, is_there: bool) {
        if self.is_counted.swap(is_there, Ordering::AcqRel) != is_there {
            let (before, after) = if is_there { (0, self.own_bytes()) } else { (self.own_bytes(), 0) };
            shared.account(before, after);
            self.account(before, after);
        }
    }

    /// Refuses a change that would exceed the member's memory limit.
    #[inline]
    pub(crate) fn check_memory(
        &self,
        shared: &Shared,
        partition: &Partition,
        command: &Command<'_>,
    ) -> Result<(), GridError> {
        let (key, value) = match command.change {
            Change::Put { key, value, .. } | Change::ReplaceIfSame { key, value, .. } => (key, value),
            Change::Lock { key, .. } => (key, [].as_slice()),
            _ => return Ok(()),
        };
        let wanted = key.len().saturating_add(value.len()).saturating_add(RECORD_OVERHEAD_BYTES);
        if shared.memory.lacks_room_for_maps(wanted).is_none() {
            return Ok(());
        }
        // Close to the limit, the lookup is worth its cost: an update needs only the growth of the
        // value.
        let existing = partition.entry_view(self.id, key, command.now);
        match command.change {
            // These changes write nothing.
            Change::Put { mode: PutMode::IfAbsent, .. } if existing.is_some() => return Ok(()),
            Change::Put { mode: PutMode::Replace, .. } | Change::ReplaceIfSame { .. } if existing.is_none() => {
                return Ok(());
            }
            _ => {}
        }
        let needed = wanted.saturating_sub(existing.map_or(0, |view| view.key.len() + view.value.len()));
        let needed = if existing.is_some() { needed.saturating_sub(RECORD_OVERHEAD_BYTES) } else { needed };
        match shared.memory.lacks_room_for_maps(needed) {
            Some((used, max)) if needed > 0 => Err(GridError::OutOfMemory { needed, used, max }),
            _ => Ok(()),
        }
    }

    /// Records that a client may hold locks, so that they are released when it disconnects.
    #[inline]
    pub(crate) fn note_locks(&self, shared: &Shared, change: &Change<'_>, caller: Caller) {
        if matches!(change, Change::Lock { .. }) {
            shared.clients.mark_may_hold_locks(caller.client);
        }
    }

    /// Records the time of the next sweep of the cell, if the change may have set a deadline.
    #[inline]
    pub(crate) fn note_deadlines(&self, shared: &Shared, cell: &Cell, change: &Change<'_>, now: Millis) {
        let config = &self.config;
        let of = |given_ms: i64, default_seconds: u32| match given_ms {
            0 => i64::MAX,
            ms if ms > 0 => ms,
            _ if default_seconds > 0 => i64::from(default_seconds) * 1_000,
            _ => i64::MAX,
        };
        let of_expiry =
            |expiry: Expiry| of(expiry.ttl_ms, config.ttl_seconds).min(of(expiry.max_idle_ms, config.max_idle_seconds));
        let after_ms = match change {
            Change::Put { mode: PutMode::Metadata(metadata), .. } => {
                of_expiry(metadata.expiry).min(metadata.expires_ms.saturating_sub(now.0).max(0))
            }
            Change::Put { expiry, .. } => of_expiry(*expiry),
            Change::WriteBatch { .. } => of_expiry(Expiry::DEFAULT),
            Change::SetTtl { ttl_ms, .. } => of(*ttl_ms, config.ttl_seconds),
            Change::Lock { lease_ms: Some(lease_ms), .. } => *lease_ms,
            _ => i64::MAX,
        };
        let journal_ms = config.event_journal.map_or(0, |journal| i64::from(journal.ttl_seconds) * 1_000);
        let after_ms = if journal_ms > 0 { after_ms.min(journal_ms) } else { after_ms };
        if after_ms != i64::MAX {
            shared.due_by(cell, now.plus(after_ms));
        }
    }
}
