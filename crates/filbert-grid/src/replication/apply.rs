//! The applying side: an entry of a log, on every member that holds the group.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{
    Change, CodecError, Command, Decoder, Encoder, EventKind, Layout, LayoutSource, LogCommand, MapId, Millis, Reply,
};

use super::awaited::{Answers, Awaited, told};
use super::leading::{propose_evictions, propose_evictions_elsewhere, propose_expiry, propose_waiter};
use super::{GroupId, Submissions, SubmitError, WhenLocked};
use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::eviction::may_grow;
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::tap::Tap;
use crate::waiters::Waiter;

/// Some commands of an entry, and the answers that go with them where they are applied by who took them.
#[derive(Debug)]
pub struct Part<'e> {
    /// As [`Encoder`] writes them.
    pub commands: &'e [u8],
    /// One for each command; `None` where nobody here asked.
    pub answers: Option<Answers>,
}

/// What this member does beside applying an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// It leads the group, and proposes what follows: changes that waited for a key, entries that have to go.
    pub leads: bool,
    /// Listeners and near caches hear of the entry's changes from it. Whoever has led until a moment ago may have to tell still.
    pub tells: bool,
}

impl Role {
    /// That of a member that does all of it.
    pub const LEADER: Role = Role { leads: true, tells: true };
    /// That of a member that follows.
    pub const FOLLOWER: Role = Role { leads: false, tells: false };
}

/// Why an entry cannot be applied. Nothing of it was: a member that meets it must not go on to the next entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Its bytes are no commands.
    #[error("cannot read the commands of an entry: {0}")]
    Unreadable(#[from] CodecError),
    /// It is of a partition that there is not.
    #[error("a command is of partition {0}, which this member does not have")]
    NoPartition(PartitionId),
}

/// One command of an entry, and where it stands in it.
struct Item<'e> {
    partition: PartitionId,
    command: LogCommand<'e>,
    part: usize,
    place: usize,
}

impl Grid {
    /// Applies the commands of one entry, all at the time `stamp`, each partition locked once. Answers go to those who await
    /// them; what else is done with it, the member's role says.
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
        // Partitions know nothing of each other, and within each, the order of the log stays.
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
                    applying.apply(&mut state, &item.command, Awaited::Nothing);
                    continue;
                };
                let awaited = answers.take(item.place).unwrap_or(Awaited::Nothing);
                applying.apply(&mut state, &item.command, awaited);
                answers.landed(item.place);
            }
            let crowded = applying.make_room(&mut state);
            // Under the lock: whoever looks for those who wait finds them here or on their way.
            applying.next.send_holding(Some((partition, &mut *state)));
            drop(state);
            for map in crowded {
                propose_evictions_elsewhere(shared, &map, partition);
            }
        }
        Ok(())
    }

    /// What has to go ahead of commands so that no read is forgotten, see [`filbert_store::Partition::touches_for`]: as commands, in
    /// the same form; `None` if there is nothing. Who leads asks before it proposes an entry at the time `stamp`.
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
                // A key that is in the store is short enough.
                let _fits = touches.push(partition, &Command { map, change, ..command }.into());
            });
        }
        Ok((!touches.is_empty()).then(|| touches.take()))
    }
}

/// The commands of an entry for one partition, while they are applied.
struct Applying<'a> {
    shared: &'a Arc<Shared>,
    stamp: Millis,
    role: Role,
    cell: &'a Cell,
    partition: PartitionId,
    /// What follows from them.
    next: Submissions,
    /// The map that the last command was about.
    map: Option<Arc<MapCore>>,
    grown: Vec<Grown>,
}

/// A map that may be beyond its limit, and the key whose arrival made it so.
struct Grown {
    map: Arc<MapCore>,
    spared: Option<Box<[u8]>>,
}

/// What is to be done once a reply was told, which may borrow from the partition.
enum After {
    Nothing,
    Park { waiter: Waiter, free_at: Option<Millis> },
    WaitOn { waiter: Box<Waiter>, free_at: Option<Millis> },
    Passed { key: Box<[u8]> },
}

impl Applying<'_> {
    fn apply(&mut self, state: &mut CellState, command: &LogCommand<'_>, awaited: Awaited) {
        match command {
            LogCommand::Change(command) => {
                // The leader's stamp is the time at which everything of an entry happens.
                let command = Command { now: self.stamp, ..*command };
                match command.change {
                    Change::Expire { .. } | Change::ReleaseLocks { .. } => self.apply_to_all(state, &command, awaited),
                    _ => match self.map_of(command.map) {
                        Some(map) => self.apply_to(state, &map, &command, awaited),
                        None => self.apply_to_none(state, &command.into(), awaited),
                    },
                }
            }
            command => self.apply_to_none(state, command, awaited),
        }
    }

    fn map_of(&mut self, id: MapId) -> Option<Arc<MapCore>> {
        if self.map.as_ref().is_none_or(|map| map.id != id) {
            self.map = self.shared.map_by_id(id);
        }
        self.map.clone()
    }

    /// Applies a change of a map that is in use.
    fn apply_to(&mut self, state: &mut CellState, map: &Arc<MapCore>, command: &Command<'_>, awaited: Awaited) {
        let (shared, Role { leads, tells }) = (self.shared, self.role);
        map.meet(shared, &mut state.partition);
        let mut tap = Tap::of_log(shared, self.cell, Some(map), tells);
        let group = shared.group_of(self.partition);
        let mut evicted = None;
        let after = shared.follow(state, map, &mut tap, |partition, tap| {
            let reply = partition.apply(command, tap);
            match awaited {
                Awaited::Evicted { weight, .. } => {
                    evicted = Some(weight);
                    After::Nothing
                }
                awaited => hand_over(shared, leads.then_some(()).ok_or(group), map, command, awaited, reply),
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
            && map.listeners.any_hears(tells)
        {
            map.listeners.partition_emptied(kind, self.partition, tells);
        }
        if !leads {
            return;
        }
        if map.evicts && (evicted.is_some() || may_grow(&command.change)) {
            self.grown.retain(|grown| grown.map.id != map.id);
            self.grown.push(Grown { map: map.clone(), spared: command.change.key().map(Box::from) });
        }
        self.let_go(state, freed);
    }

    fn follow_up(&mut self, state: &mut CellState, map: &Arc<MapCore>, after: After) {
        match after {
            After::Nothing => {}
            After::Park { waiter, free_at } => self.shared.park(map, self.cell, state, waiter, free_at),
            After::WaitOn { waiter, free_at } => {
                let key: Box<[u8]> = waiter.change.borrow().key().unwrap_or_default().into();
                self.cell.due_by(waiter.deadline.min(free_at.unwrap_or(Millis::MAX)));
                state.waiters.come_back(map.id, &key, *waiter);
                // Else it is held up by what is no lock, and those behind it are as well.
                if state.partition.is_locked(map.id, &key, self.stamp) {
                    self.propose_waiter(state, map, &key);
                }
            }
            After::Passed { key } => {
                state.waiters.end_proposal(map.id, &key);
                self.propose_waiter(state, map, &key);
            }
        }
    }

    fn propose_waiter(&mut self, state: &mut CellState, map: &Arc<MapCore>, key: &[u8]) {
        propose_waiter(self.shared, self.cell, self.partition, state, map, key, &mut self.next);
    }

    /// Lets those go who wait for keys that are free now.
    fn let_go(&mut self, state: &mut CellState, freed: crate::tap::Freed) {
        for (map, key) in freed {
            let Some(map) = self.map_of(map) else { continue };
            let keys = key.map_or_else(|| state.waiters.keys_of(map.id), |key| vec![key]);
            for key in keys {
                self.propose_waiter(state, &map, &key);
            }
        }
    }

    /// Applies a change of all maps.
    fn apply_to_all(&mut self, state: &mut CellState, command: &Command<'_>, awaited: Awaited) {
        let tap = Tap::of_log(self.shared, self.cell, None, self.role.tells);
        let (_, freed) = self
            .shared
            .follow_all(state, tap, |partition, tap| matches!(partition.apply(command, tap), Reply::Count(_)));
        let due = state.partition.next_expiry();
        let more = due.is_some_and(|due| due <= self.stamp);
        if self.role.leads {
            self.let_go(state, freed);
        }
        match due {
            Some(_) if more && matches!(awaited, Awaited::Swept) => {
                propose_expiry(self.shared, self.partition, state, &mut self.next);
            }
            Some(due) => self.shared.due_by(self.cell, due),
            None => {}
        }
    }

    /// Applies what makes and drops maps, and changes of a map that is no longer in use.
    fn apply_to_none(&mut self, state: &mut CellState, command: &LogCommand<'_>, awaited: Awaited) {
        let before = state.partition.bytes();
        let mut tap = Tap::of_log(self.shared, self.cell, None, false);
        let reply = state.partition.apply_logged(command, &MemberLayouts(self.shared), &mut tap).into_owned();
        match command {
            LogCommand::CreateMap { map, .. } => self.made(state, *map),
            LogCommand::DestroyMap { map } => self.map_of(*map).inspect(|map| map.note_made(self.partition, false)),
            LogCommand::Change(_) | LogCommand::SetLayout { .. } => None,
        };
        self.shared.account(before, state.partition.bytes());
        let is_change = matches!(command, LogCommand::Change(_));
        match awaited {
            Awaited::Reply { map, reply: tell, .. } => {
                map.in_flight.fetch_sub(1, Ordering::AcqRel);
                tell(if is_change { Err(map.destroyed_error()) } else { told(&map, reply) });
            }
            awaited => {
                let error = match &awaited {
                    Awaited::Waiter { map, .. } | Awaited::Evicted { map, .. } => map.destroyed_error(),
                    _ => GridError::NotActive,
                };
                awaited.fail(self.shared, self.partition, &error, Some(state));
            }
        }
    }

    /// The log has made a map.
    fn made(&mut self, state: &mut CellState, map: MapId) -> Option<Arc<MapCore>> {
        let map = self.map_of(map)?;
        map.meet(self.shared, &mut state.partition);
        Some(map)
    }

    /// Proposes what has to go; answers with the maps that this partition could not make enough room in.
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

/// Tells the reply, unless its change has to wait.
fn hand_over(
    shared: &Shared,
    leads: Result<(), GroupId>,
    map: &Arc<MapCore>,
    command: &Command<'_>,
    awaited: Awaited,
    reply: Reply<'_>,
) -> After {
    match awaited {
        Awaited::Reply { when_locked, reply: tell, .. } => {
            map.in_flight.fetch_sub(1, Ordering::AcqRel);
            let (Reply::Locked { free_at }, WhenLocked::Wait(deadline)) = (&reply, when_locked) else {
                tell(told(map, reply));
                return After::Nothing;
            };
            if let Err(group) = leads {
                tell(Err(led_until_now(group)));
                return After::Nothing;
            }
            let (caller, change) = (command.caller, command.change.to_owned());
            let deadline = deadline.unwrap_or(Millis::MAX);
            After::Park { waiter: Waiter { caller, change, deadline, reply: tell }, free_at: *free_at }
        }
        Awaited::Waiter { waiter, .. } => {
            map.in_flight.fetch_sub(1, Ordering::AcqRel);
            let key = waiter.change.key().unwrap_or_default().into();
            match (reply, leads) {
                (Reply::Locked { free_at }, Ok(())) => return After::WaitOn { waiter, free_at },
                (Reply::Locked { .. }, Err(group)) => shared.answer(*waiter, Err(led_until_now(group))),
                (reply, _) => shared.answer(*waiter, told(map, reply)),
            }
            After::Passed { key }
        }
        Awaited::Evicted { .. } | Awaited::Swept | Awaited::Taken { .. } | Awaited::Nothing => After::Nothing,
    }
}

fn led_until_now(group: GroupId) -> GridError {
    SubmitError::NotLeader { group, hint: "it led until a moment ago".to_owned() }.into()
}

/// The layouts that this member has, whatever their numbers in the log are.
struct MemberLayouts<'s>(&'s Shared);

impl LayoutSource for MemberLayouts<'_> {
    fn layout(&self, map: MapId, _number: u64) -> Option<Arc<Layout>> {
        self.0.map_by_id(map)?.layouts.compiled()
    }
}
