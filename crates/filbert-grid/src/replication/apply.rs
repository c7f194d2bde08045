//! The application of a log entry, on every member that holds the group.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{
    Change, CodecError, Command, Decoder, Encoder, EventKind, Layout, LayoutSource, LogCommand, MapId, Millis, Reply,
};

use super::Submissions;
use super::leading::{propose_evictions, propose_evictions_elsewhere, propose_expiry, propose_waiter};
use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::eviction::may_need_eviction;
use crate::grid::Grid;
use crate::groups::{GroupId, SubmitError};
use crate::map_core::MapCore;
use crate::replicator::{Answers, PendingAnswer, WhenLocked};
use crate::shared::Shared;
use crate::tap::{Freed, Tap};
use crate::waiters::Waiter;

/// Some commands of an entry, with their pending answers if they are applied on the member that
/// submitted them.
#[derive(Debug)]
pub struct Part<'e> {
    /// The commands, encoded by [`Encoder`].
    pub commands: &'e [u8],
    /// One answer for each command; `None` if no caller on this member waits.
    pub answers: Option<Answers>,
}

/// The tasks of this member beside applying an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// It leads the group, and proposes subsequent commands: changes that waited for a key, and
    /// evictions.
    pub leads: bool,
    /// It notifies listeners and near caches of the entry's changes. A former leader may still have
    /// to notify them after it has lost the lead.
    pub notifies: bool,
}

impl Role {
    /// The role of a leader that has all tasks.
    pub const LEADER: Role = Role { leads: true, notifies: true };
    /// The role of a follower.
    pub const FOLLOWER: Role = Role { leads: false, notifies: false };
}

/// Why an entry cannot be applied. Nothing of it was applied. The member must not continue with the
/// next entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The bytes are not encoded commands.
    #[error("cannot read the commands of an entry: {0}")]
    Unreadable(#[from] CodecError),
    /// A command is for a partition that does not exist.
    #[error("a command is of partition {0}, which this member does not have")]
    NoPartition(PartitionId),
}

/// One command of an entry, with its position.
struct Item<'e> {
    partition: PartitionId,
    command: LogCommand<'e>,
    part: usize,
    place: usize,
}

impl Grid {
    /// Applies the commands of one entry, all at the time `stamp`. Each partition is locked once.
    /// Answers the callers, and performs the other tasks of the member's role.
    ///
    /// # Errors
    /// See [`ApplyError`].
    pub fn apply_batch(&self, stamp: Millis, role: Role, parts: &mut [Part<'_>]) -> Result<(), ApplyError> {
        let shared = &self.shared;
        let mut items = Vec::new();
        for (part, Part { commands, .. }) in parts.iter().enumerate() {
            for (place, command) in Decoder::new(commands)?.enumerate() {
                let (partition, command) = command?;
                shared.cell(partition).ok_or(ApplyError::NoPartition(partition))?;
                items.push(Item { partition, command, part, place });
            }
        }
        // Partitions are independent of each other. Within a partition, the order of the log stays.
        if !items.is_sorted_by_key(|item| item.partition) {
            items.sort_by_key(|item| item.partition);
        }
        for run in items.chunk_by(|one, next| one.partition == next.partition) {
            let Some((partition, cell)) =
                run.first().and_then(|item| Some((item.partition, shared.cell(item.partition)?)))
            else {
                continue;
            };
            let next = Submissions::new(shared);
            let mut applying = Applying { shared, stamp, role, cell, partition, next, map: None, grown: Vec::new() };
            let mut state = cell.lock();
            for item in run {
                let answers = parts.get_mut(item.part).and_then(|part| part.answers.as_mut());
                let Some(answers) = answers else {
                    applying.apply(&mut state, &item.command, PendingAnswer::Nothing);
                    continue;
                };
                let answer = answers.take(item.place).unwrap_or(PendingAnswer::Nothing);
                applying.apply(&mut state, &item.command, answer);
                shared.memory.maps.fetch_sub(answers.bytes_of(item.place), Ordering::Relaxed);
                answers.completed(item.place);
            }
            let crowded = applying.make_room(&mut state);
            // Under the lock: code that looks for waiters finds each of them either parked or
            // proposed.
            applying.next.send_holding(Some((partition, &mut *state)));
            drop(state);
            for map in crowded {
                propose_evictions_elsewhere(shared, &map, partition);
            }
        }
        Ok(())
    }

    /// The touches that must precede commands so that no read is lost, see
    /// [`filbert_store::Partition::touches_for`]. Returns encoded commands; `None` if there are
    /// none. The leader calls this before it proposes an entry with the time `stamp`.
    ///
    /// # Errors
    /// See [`ApplyError`].
    pub fn touches_for(&self, commands: &[u8], stamp: Millis) -> Result<Option<Vec<u8>>, ApplyError> {
        let mut touches = Encoder::default();
        for command in Decoder::new(commands)? {
            let (partition, LogCommand::Change(command)) = command? else { continue };
            let cell = self.shared.cell(partition).ok_or(ApplyError::NoPartition(partition))?;
            let command = Command { now: stamp, ..command };
            cell.lock().partition.touches_for(&command, &mut |map, key, read_at| {
                let change = Change::Touch { key, read_at };
                // A stored key never exceeds the maximum length.
                let _fits = touches.push(partition, &Command { map, change, ..command }.into());
            });
        }
        Ok((!touches.is_empty()).then(|| touches.take()))
    }
}

/// The commands of an entry for one partition, during their application.
struct Applying<'a> {
    shared: &'a Arc<Shared>,
    stamp: Millis,
    role: Role,
    cell: &'a Cell,
    partition: PartitionId,
    /// The subsequent commands.
    next: Submissions,
    /// The map of the last command.
    map: Option<Arc<MapCore>>,
    grown: Vec<Grown>,
}

/// A map that may exceed its limit, and the key that was just written.
struct Grown {
    map: Arc<MapCore>,
    spared: Option<Box<[u8]>>,
}

/// The steps after the delivery of a reply, which may borrow from the partition.
enum After {
    Nothing,
    Park {
        waiter: Waiter,
        free_at: Option<Millis>,
    },
    WaitOn {
        waiter: Box<Waiter>,
        free_at: Option<Millis>,
    },
    /// A waiter was answered. `begins_turn` = it was notified that its key is free.
    Passed {
        key: Box<[u8]>,
        begins_turn: bool,
    },
}

impl Applying<'_> {
    fn apply(&mut self, state: &mut CellState, command: &LogCommand<'_>, answer: PendingAnswer) {
        match command {
            LogCommand::Change(command) => {
                // The leader's stamp is the time of all commands of an entry.
                let command = Command { now: self.stamp, ..*command };
                match command.change {
                    Change::Expire { .. } | Change::ReleaseLocks { .. } => self.apply_to_all(state, &command, answer),
                    _ => match self.map_of(command.map) {
                        Some(map) => self.apply_to(state, &map, &command, answer),
                        None => self.apply_to_none(state, &command.into(), answer),
                    },
                }
            }
            command => self.apply_to_none(state, command, answer),
        }
    }

    fn map_of(&mut self, id: MapId) -> Option<Arc<MapCore>> {
        if self.map.as_ref().is_none_or(|map| map.id != id) {
            self.map = self.shared.map_by_id(id);
        }
        self.map.clone()
    }

    /// Applies a change of an existing map.
    fn apply_to(&mut self, state: &mut CellState, map: &Arc<MapCore>, command: &Command<'_>, answer: PendingAnswer) {
        let (shared, Role { leads, notifies }) = (self.shared, self.role);
        map.adopt_from_log(shared, &mut state.partition);
        let mut tap = Tap::of_log(shared, self.cell, Some(map), notifies);
        let group = shared.group_of(self.partition);
        let mut evicted = None;
        let after = shared.follow(state, map, &mut tap, |partition, tap| {
            let reply = partition.apply(command, tap);
            match answer {
                PendingAnswer::Evicted { weight, .. } => {
                    evicted = Some(weight);
                    After::Nothing
                }
                answer => deliver_reply(shared, leads.then_some(()).ok_or(group), map, command, answer, reply),
            }
        });
        let freed = tap.into_freed();
        if let Some(weight) = evicted {
            map.evicting.fetch_sub(weight, Ordering::AcqRel);
            state.evicting.retain(|evicting| *evicting != map.id);
        }
        map.note_deadlines(shared, self.cell, &command.change, command.now);
        self.follow_up(state, map, after);
        let emptied = match command.change {
            Change::Clear => Some(EventKind::Cleared),
            Change::EvictAll => Some(EventKind::EvictedAll),
            _ => None,
        };
        if let Some(kind) = emptied
            && map.listeners.any_to_notify(notifies)
        {
            map.listeners.partition_emptied(kind, self.partition, notifies);
        }
        if !leads {
            return;
        }
        if map.evicts && (evicted.is_some() || may_need_eviction(&command.change)) {
            self.grown.retain(|grown| grown.map.id != map.id);
            self.grown.push(Grown { map: map.clone(), spared: command.change.key().map(Box::from) });
        }
        self.propose_freed(state, freed);
    }

    fn follow_up(&mut self, state: &mut CellState, map: &Arc<MapCore>, after: After) {
        match after {
            After::Nothing => {}
            After::Park { waiter, free_at } => self.shared.park(map, self.cell, state, waiter, free_at),
            After::WaitOn { waiter, free_at } => {
                let key: Box<[u8]> = waiter.change.borrow().key().unwrap_or_default().into();
                if state.waiters.is_closed() {
                    state.waiters.end_proposal(map.id, &key);
                    let error = self.shared.led_elsewhere(state);
                    return self.shared.answer(*waiter, Err(error));
                }
                self.cell.due_by(waiter.deadline.min(free_at.unwrap_or(Millis::MAX)));
                state.waiters.come_back(map.id, &key, *waiter);
                // If the key is not locked, a claim blocks the waiter, and the waiters behind it
                // too.
                if state.partition.is_locked(map.id, &key, self.stamp) {
                    self.propose_waiter(state, map, &key);
                }
            }
            After::Passed { key, begins_turn } => {
                state.waiters.end_proposal(map.id, &key);
                if begins_turn {
                    self.shared.begin_turn(map, self.cell, state, &key);
                }
                self.propose_waiter(state, map, &key);
            }
        }
    }

    fn propose_waiter(&mut self, state: &mut CellState, map: &Arc<MapCore>, key: &[u8]) {
        propose_waiter(self.shared, self.cell, self.partition, state, map, key, &mut self.next);
    }

    /// Proposes the waiters of released keys.
    fn propose_freed(&mut self, state: &mut CellState, freed: Freed) {
        for (map, key) in freed {
            let Some(map) = self.map_of(map) else { continue };
            let keys = key.map_or_else(|| state.waiters.keys_of(map.id), |key| vec![key]);
            for key in keys {
                state.waiters.end_turn(map.id, &key);
                self.propose_waiter(state, &map, &key);
            }
        }
    }

    /// Applies a change of all maps of the partition.
    fn apply_to_all(&mut self, state: &mut CellState, command: &Command<'_>, answer: PendingAnswer) {
        let tap = Tap::of_log(self.shared, self.cell, None, self.role.notifies);
        let (_, freed) = self
            .shared
            .follow_all(state, tap, |partition, tap| matches!(partition.apply(command, tap), Reply::Count(_)));
        let due = state.partition.next_expiry();
        let more = due.is_some_and(|due| due <= self.stamp);
        if self.role.leads {
            self.propose_freed(state, freed);
        }
        match due {
            Some(_) if more && matches!(answer, PendingAnswer::Swept) => {
                propose_expiry(self.shared, self.partition, state, &mut self.next);
            }
            Some(due) => self.shared.due_by(self.cell, due),
            None => {}
        }
    }

    /// Applies the creation and destruction of maps, and changes of a map that no longer exists.
    fn apply_to_none(&mut self, state: &mut CellState, command: &LogCommand<'_>, answer: PendingAnswer) {
        let before = state.partition.bytes();
        let mut tap = Tap::of_log(self.shared, self.cell, None, false);
        let reply = state.partition.apply_logged(command, &MemberLayouts(self.shared), &mut tap).into_owned();
        match command {
            LogCommand::CreateMap { map, .. } => self.created(state, *map),
            LogCommand::DestroyMap { map } => self.map_of(*map).inspect(|map| map.set_created(self.partition, false)),
            LogCommand::Change(_) | LogCommand::SetLayout { .. } => None,
        };
        self.shared.account(before, state.partition.bytes());
        let is_change = matches!(command, LogCommand::Change(_));
        match answer {
            PendingAnswer::Reply { map, reply: callback, .. } => {
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                callback(if is_change { Err(map.destroyed_error()) } else { answer_of(&map, reply) });
            }
            // The claims have gone with the map.
            PendingAnswer::Released { .. } => {}
            answer => {
                let error = match &answer {
                    PendingAnswer::Waiter { map, .. } | PendingAnswer::Evicted { map, .. } => map.destroyed_error(),
                    _ => GridError::NotActive,
                };
                answer.fail(self.shared, self.partition, &error, Some(state));
            }
        }
    }

    /// Records that the log has created a map. A change that was under way when the map was dropped
    /// creates the map anew if it comes behind the destruction in the log: the leader destroys that
    /// one too.
    fn created(&mut self, state: &mut CellState, map: MapId) -> Option<Arc<MapCore>> {
        if self.role.leads && self.shared.replication.as_ref().is_some_and(|logs| !logs.replicator.knows_map(map)) {
            self.next.push_own(self.partition, &LogCommand::DestroyMap { map }, PendingAnswer::Nothing, state);
        }
        let map = self.map_of(map)?;
        map.adopt_from_log(self.shared, &mut state.partition);
        Some(map)
    }

    /// Proposes evictions. Returns the maps that still exceed their limits after the evictions of
    /// this partition.
    fn make_room(&mut self, state: &mut CellState) -> Vec<Arc<MapCore>> {
        let mut crowded = Vec::new();
        for Grown { map, spared } in std::mem::take(&mut self.grown) {
            let spared = spared.as_deref();
            if !propose_evictions(self.shared, &map, self.partition, state, spared, &mut self.next) {
                crowded.push(map);
            }
        }
        crowded
    }
}

/// Delivers the reply, unless its change has to wait.
fn deliver_reply(
    shared: &Shared,
    leads: Result<(), GroupId>,
    map: &Arc<MapCore>,
    command: &Command<'_>,
    answer: PendingAnswer,
    reply: Reply<'_>,
) -> After {
    match answer {
        PendingAnswer::Reply { when_locked, reply: callback, .. } => {
            map.in_flight.fetch_sub(1, Ordering::AcqRel);
            if let (Change::Clear | Change::EvictAll, Reply::Held(_)) = (&command.change, &reply) {
                // A statement has claimed all keys.
                callback(Err(map.held_error()));
                return After::Nothing;
            }
            let (Reply::Locked { free_at }, WhenLocked::Wait(deadline)) = (&reply, when_locked) else {
                callback(answer_of(map, reply));
                return After::Nothing;
            };
            if let Err(group) = leads {
                callback(Err(lost_lead_error(group)));
                return After::Nothing;
            }
            let (caller, change) = (command.caller, command.change.to_owned());
            let deadline = deadline.unwrap_or(Millis::MAX);
            After::Park { waiter: Waiter { caller, change, deadline, reply: callback }, free_at: *free_at }
        }
        PendingAnswer::Waiter { waiter, .. } => {
            map.in_flight.fetch_sub(1, Ordering::AcqRel);
            let key = waiter.change.key().unwrap_or_default().into();
            let begins_turn = matches!(waiter.change.borrow(), Change::Await { .. });
            match (reply, leads) {
                (Reply::Locked { free_at }, Ok(())) => return After::WaitOn { waiter, free_at },
                (Reply::Locked { .. }, Err(group)) => shared.answer(*waiter, Err(lost_lead_error(group))),
                (reply, _) => shared.answer(*waiter, answer_of(map, reply)),
            }
            After::Passed { key, begins_turn }
        }
        PendingAnswer::Evicted { .. }
        | PendingAnswer::Swept
        | PendingAnswer::Released { .. }
        | PendingAnswer::Nothing => After::Nothing,
    }
}

/// Converts the reply to a change into the answer for its caller. `Locked` is passed on.
fn answer_of<'p>(map: &MapCore, reply: Reply<'p>) -> Result<Reply<'p>, GridError> {
    match reply {
        Reply::Refused(error) => Err(map.refusal(error)),
        reply => Ok(reply),
    }
}

fn lost_lead_error(group: GroupId) -> GridError {
    SubmitError::NotLeader { group, hint: "it led until a moment ago".to_owned() }.into()
}

/// The layouts of this member, whatever their numbers in the log.
struct MemberLayouts<'s>(&'s Shared);

impl LayoutSource for MemberLayouts<'_> {
    fn layout(&self, map: MapId, _number: u64) -> Option<Arc<Layout>> {
        self.0.map_by_id(map)?.layouts.compiled()
    }
}
