//! What the grid and its map handles share: the cells, the clock, the accounts, the tables of maps.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Caller, Change, Command, Declarations, EventKind, MapId, Millis, Partition, Reply};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::cell::{Cell, CellState};
use crate::clients::Clients;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::GridConfig;
use crate::errors::GridError;
use crate::eviction;
use crate::map_core::MapCore;
use crate::random::UuidSource;
use crate::replication::{Again, GroupId, Replication};
use crate::tap::{Freed, Tap};
use crate::waiters::Waiter;

/// The maps of a member, by name and by number.
#[derive(Default)]
pub(crate) struct MapTable {
    pub(crate) by_name: HashMap<String, Arc<MapCore>>,
    pub(crate) by_id: HashMap<MapId, Arc<MapCore>>,
    pub(crate) next_id: u32,
    /// Those among them that evict.
    pub(crate) evicting: Vec<Arc<MapCore>>,
}

/// Called when something falls due earlier than the last sweep announced.
pub(crate) type DueCallback = Box<dyn Fn(Millis) + Send + Sync>;

/// The member below its services.
pub(crate) struct Shared {
    pub(crate) config: GridConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) member: Uuid,
    pub(crate) cells: Box<[Cell]>,
    /// Never held while a partition's lock is waited for: who holds one of those may look here.
    pub(crate) maps: RwLock<MapTable>,
    /// Held while a map is made or destroyed, so that its partitions and its announcements follow one order.
    pub(crate) making: Mutex<()>,
    pub(crate) clients: Clients,
    pub(crate) uuids: UuidSource,
    pub(crate) active: AtomicBool,
    /// Bytes that the partitions own together, and those of parked changes.
    pub(crate) memory_bytes: AtomicUsize,
    pub(crate) waiters: AtomicUsize,
    /// By which the claims of statements are told apart.
    pub(crate) statements: AtomicI64,
    pub(crate) listeners: AtomicUsize,
    /// When the next sweep is announced for.
    pub(crate) next_sweep_ms: AtomicI64,
    pub(crate) on_due: RwLock<Option<DueCallback>>,
    /// What is declared of maps, which partitions have in common until they have entries.
    pub(crate) declarations: Arc<Declarations>,
    /// That of all partitions.
    pub(crate) hash_seed: u64,
    /// By which summaries of indexes spread their keys.
    pub(crate) signature_seed: u64,
    /// When the sweep looks after summaries of indexes again.
    pub(crate) next_upkeep_ms: AtomicI64,
    /// The logs that changes go through; `None` = they are made where they are asked for.
    pub(crate) replication: Option<Replication>,
    /// The cluster that the member is in, if it is in one.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    /// What the sweep proposes again.
    pub(crate) again: Mutex<Vec<Again>>,
}

impl Shared {
    #[inline]
    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The time at which a read of a partition happens.
    #[inline]
    pub(crate) fn read_time(&self, partition: PartitionId) -> Millis {
        match &self.replication {
            None => self.now(),
            Some(replication) => replication.read_time(partition),
        }
    }

    /// The cell of a partition, if there is such a partition.
    #[inline]
    pub(crate) fn cell(&self, partition: PartitionId) -> Option<&Cell> {
        self.cells.get(partition.0 as usize)
    }

    /// The cell of a partition that the caller has worked out for a key; that of the key, if there is no such partition.
    #[inline]
    pub(crate) fn cell_of(&self, partition: PartitionId, key: &[u8]) -> &Cell {
        self.cell(partition).unwrap_or_else(|| self.cell_of_key(key))
    }

    #[cold]
    #[allow(clippy::indexing_slicing, reason = "there are as many cells as partitions, and there is at least one")]
    fn cell_of_key(&self, key: &[u8]) -> &Cell {
        &self.cells[partition_of(key, self.config.partition_count).0 as usize]
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = (PartitionId, &Cell)> {
        (0u32..).map(PartitionId).zip(self.cells.iter())
    }

    /// The group of a partition; of all of them, if there are no logs.
    pub(crate) fn group_of(&self, partition: PartitionId) -> GroupId {
        self.replication.as_ref().map_or(GroupId(0), |replication| replication.group_of(partition))
    }

    #[inline]
    pub(crate) fn check_active(&self) -> Result<(), GridError> {
        if self.active.load(Ordering::Acquire) { Ok(()) } else { Err(GridError::NotActive) }
    }

    pub(crate) fn map_by_id(&self, id: MapId) -> Option<Arc<MapCore>> {
        self.maps.read().by_id.get(&id).cloned()
    }

    /// Takes the place of one more listener.
    pub(crate) fn reserve_listener(&self) -> Result<(), GridError> {
        reserve(&self.listeners, self.config.listeners_max, "listeners", "listeners_max")
    }

    /// Takes the place and the memory of one more waiter.
    pub(crate) fn reserve_waiter(&self, waiter: &Waiter) -> Result<(), GridError> {
        let needed = waiter.bytes();
        let (used, max) = (self.memory_bytes.load(Ordering::Relaxed), self.config.memory_bytes_max);
        if let Some(max) = max
            && used.saturating_add(needed) > max
        {
            return Err(GridError::OutOfMemory { needed, used, max });
        }
        reserve(&self.waiters, self.config.lock_waiters_max, "changes waiting for locked keys", "lock_waiters_max")?;
        self.memory_bytes.fetch_add(needed, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the account of bytes right after a partition changed.
    #[inline]
    pub(crate) fn account(&self, before: usize, after: usize) {
        // Wraps round for a shrinking partition, as the counter does.
        self.memory_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Notes when the sweep must come for a cell, and calls for it if it would come too late.
    pub(crate) fn due_by(&self, cell: &Cell, moment: Millis) {
        cell.due_by(moment);
        if moment.0 < self.next_sweep_ms.fetch_min(moment.0, Ordering::AcqRel)
            && let Some(callback) = &*self.on_due.read()
        {
            callback(moment);
        }
    }

    /// Applies a change that one map asked for, tells its listeners, and lets those run who waited for keys that it
    /// freed. `reply` sees the answer before any of them runs.
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

    /// Has one map of a partition changed, and keeps the accounts. The keys that came free are in the tap.
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
        let command = Command { map: MapId(0), now, caller: self.itself(), change };
        let tap = Tap::new(self, cell, None);
        let ((), freed) = self.follow_all(state, tap, |partition, tap| drop(partition.lead(&command, tap)));
        self.run_freed(cell, state, freed);
    }

    /// Has all maps of a partition changed, and keeps the accounts.
    pub(crate) fn follow_all<'t, R>(
        &self,
        state: &mut CellState,
        mut tap: Tap<'t>,
        change: impl FnOnce(&mut Partition, &mut Tap<'t>) -> R,
    ) -> (R, Freed) {
        let before = state.partition.bytes();
        let counted: Vec<_> = {
            let maps = self.maps.read();
            let counts_bytes = |map: &&Arc<MapCore>| eviction::counts_bytes(map.config.eviction.max_size_policy);
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

    /// The caller of what the member does by itself.
    pub(crate) fn itself(&self) -> Caller {
        Caller { client: self.member, thread: 0 }
    }

    /// Lets those run who wait for keys that are free now.
    pub(crate) fn run_freed(&self, cell: &Cell, state: &mut CellState, freed: Freed) {
        let mut keys = freed;
        while let Some((map, key)) = keys.pop() {
            let Some(key) = key else {
                // Some keys of the map are free of a claim: all who wait look again.
                keys.extend(state.waiters.keys_of(map).into_iter().map(|key| (map, Some(key))));
                continue;
            };
            while let Some(waiter) = self.next_to_run(state, map, &key) {
                let Some(core) = self.map_by_id(map) else {
                    // A destroyed map's waiters are answered by who destroys it.
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
        let owner = state.partition.lock_state(map, key, self.now()).map(|lock| lock.owner);
        state.waiters.next(map, key, owner)
    }

    /// Applies a parked change and answers it; gives it back if its key is locked again.
    fn run_waiter(
        &self,
        cell: &Cell,
        state: &mut CellState,
        map: &MapCore,
        waiter: Waiter,
    ) -> Result<Freed, Box<Waiter>> {
        let now = self.now();
        if waiter.is_late(now) {
            // The sweep has not come by yet; the caller may have given up already, and must not get a lock then.
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
        map.note_locks(self, &change, waiter.caller);
        map.note_deadlines(self, cell, &change, now);
        let after = state.partition.bytes();
        self.account(before, after);
        map.account(before, after);
        if map.evicts && eviction::may_grow(&change) && !eviction::make_room_here(self, map, cell, state, change.key())
        {
            // Other partitions must help, and this one's lock is held: the sweep sees to it.
            self.due_by(cell, now);
        }
        Ok(freed)
    }

    /// Answers every parked change of the member: it takes no more.
    pub(crate) fn dismiss_all(&self) {
        for cell in &self.cells {
            let mut state = cell.lock();
            for (_, waiter) in state.waiters.take_all() {
                self.answer(waiter, Err(GridError::NotActive));
            }
        }
    }

    /// Answers those who have waited too long.
    pub(crate) fn answer_late(&self, state: &mut CellState, now: Millis) {
        for (map, waiter) in state.waiters.take_late(now) {
            let name = self.map_by_id(map).map_or_else(String::new, |map| map.name.clone());
            self.answer(waiter, Err(GridError::LockTimeout { map: name }));
        }
    }

    /// Answers a parked change that was not applied.
    pub(crate) fn answer(&self, waiter: Waiter, answer: Result<Reply<'_>, GridError>) {
        self.release_waiter(&waiter);
        (waiter.reply)(answer);
    }

    /// Lets a change wait until its key is free.
    pub(crate) fn park(
        &self,
        map: &MapCore,
        cell: &Cell,
        state: &mut CellState,
        waiter: Waiter,
        free_at: Option<Millis>,
    ) {
        if let Err(error) = self.reserve_waiter(&waiter) {
            (waiter.reply)(Err(error));
            return;
        }
        self.clients.may_leave_traces(waiter.caller.client);
        let due = waiter.deadline.min(free_at.unwrap_or(Millis::MAX));
        let key: Box<[u8]> = waiter.change.key().unwrap_or_default().into();
        state.waiters.push_back(map.id, &key, waiter);
        self.due_by(cell, due);
    }

    fn release_waiter(&self, waiter: &Waiter) {
        self.waiters.fetch_sub(1, Ordering::AcqRel);
        self.memory_bytes.fetch_sub(waiter.bytes(), Ordering::Relaxed);
    }

    /// Tells what a change did to its map as a whole, once for the member.
    pub(crate) fn tell_whole_map(&self, map: &MapCore, kind: EventKind, affected: usize) {
        let event = crate::EntryEvent {
            kind,
            partition: None,
            key: None,
            value: None,
            old_value: None,
            member: self.member,
            affected,
        };
        map.listeners.deliver(&event, true);
    }
}

fn reserve(count: &AtomicUsize, limit: usize, what: &'static str, setting: &'static str) -> Result<(), GridError> {
    let grow = |count: usize| (count < limit).then_some(count + 1);
    match count.fetch_update(Ordering::AcqRel, Ordering::Acquire, grow) {
        Ok(_) => Ok(()),
        Err(_) => Err(GridError::LimitReached { what, setting, limit }),
    }
}
