//! The changes of one partition that wait for locked keys, in order of arrival.

use std::collections::{HashMap, VecDeque};

use filbert_store::{Caller, Change, MapId, Millis, OwnedChange, Reply};
use uuid::Uuid;

use crate::errors::GridError;

/// The callback for the answer to a parked change. Called exactly once, under the partition's lock,
/// on the thread that releases the key. It must neither block nor call back into the grid.
pub type ParkedReply = Box<dyn FnOnce(Result<Reply<'_>, GridError>) + Send>;

/// A change that waits for its key.
pub(crate) struct Waiter {
    pub(crate) caller: Caller,
    pub(crate) change: OwnedChange,
    /// The deadline of the wait; `Millis::MAX` = none.
    pub(crate) deadline: Millis,
    pub(crate) reply: ParkedReply,
}

impl Waiter {
    /// Whether the deadline has passed.
    pub(crate) fn is_late(&self, now: Millis) -> bool {
        self.deadline <= now && self.deadline != Millis::MAX
    }

    /// The memory of the waiter, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_value = match self.change.borrow() {
            Change::Put { value, .. } => value.len(),
            Change::ReplaceIfSame { expected, value, .. } => expected.len().saturating_add(value.len()),
            Change::RemoveIfSame { expected, .. } => expected.len(),
            _ => 0,
        };
        size_of::<Waiter>().saturating_add(self.change.key().map_or(0, <[u8]>::len)).saturating_add(of_value)
    }
}

/// The time, in milliseconds, in which a statement may claim a key after the notification that the
/// key is free. If all waiting statements were notified at once, all but one would claim the key in
/// vain.
const TURN_MS: i64 = 50;

/// The waiters of one key.
#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// The end of the turn of a statement that was notified that the key is free. The waiters
    /// behind it wait until then, or until the key is released once more.
    turn_ends: Option<Millis>,
    /// The caller of the waiter whose change is proposed to the log, if there is one. The queue and
    /// the waiters behind it stay until the proposal ends.
    proposed: Option<Caller>,
}

impl Queue {
    fn is_over(&self) -> bool {
        self.waiters.is_empty() && self.proposed.is_none()
    }

    fn is_in_turn(&self, now: Millis) -> bool {
        self.turn_ends.is_some_and(|ends| ends > now)
    }
}

type Queues = HashMap<Box<[u8]>, Queue>;

/// The queues of one partition.
#[derive(Default)]
pub(crate) struct Waiters {
    /// By map, then by key, so that a borrowed key finds its queue. Empty maps and queues are
    /// removed.
    by_map: HashMap<MapId, Queues>,
    /// Whether no change may wait: this member has led the partition, and does not any more.
    is_closed: bool,
    /// A lower bound of all deadlines and of the ends of turns; `None` if there is none.
    deadline_min: Option<Millis>,
}

impl Waiters {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_map.is_empty()
    }

    /// Whether no change may wait here.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Lets changes wait.
    pub(crate) fn open(&mut self) {
        self.is_closed = false;
    }

    /// Lets no change wait any more. Removes and returns the waiters, each with its map.
    pub(crate) fn close(&mut self) -> Vec<(MapId, Waiter)> {
        self.is_closed = true;
        self.take_all()
    }

    /// Whether there is a waiter for the key, or a waiter's change of the key is proposed.
    pub(crate) fn any_for(&self, map: MapId, key: &[u8]) -> bool {
        self.by_map.get(&map).is_some_and(|queues| queues.contains_key(key))
    }

    /// The keys of a map with waiters.
    pub(crate) fn keys_of(&self, map: MapId) -> Vec<Box<[u8]>> {
        self.by_map.get(&map).map_or_else(Vec::new, |queues| queues.keys().cloned().collect())
    }

    pub(crate) fn push_back(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.note_deadline(waiter.deadline);
        self.queue(map, key).waiters.push_back(waiter);
    }

    /// Puts a removed waiter back to the front, because it has to wait again.
    pub(crate) fn push_front(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.note_deadline(waiter.deadline);
        self.queue(map, key).waiters.push_front(waiter);
    }

    /// As [`Waiters::next`]. `None` while another waiter's change of the key is proposed.
    pub(crate) fn next_to_propose(
        &mut self,
        map: MapId,
        key: &[u8],
        owner: Option<Caller>,
        now: Millis,
    ) -> Option<Waiter> {
        let queue = self.by_map.get(&map)?.get(key)?;
        if queue.proposed.is_some() { None } else { self.next(map, key, owner, now) }
    }

    /// Begins the turn of a statement that is notified at `now` that a key is free, if others wait.
    /// Returns the end of the turn.
    pub(crate) fn begin_turn(&mut self, map: MapId, key: &[u8], now: Millis) -> Option<Millis> {
        let ends = now.plus(TURN_MS);
        self.edit(map, key, |queue| queue.turn_ends = Some(ends))?;
        self.note_deadline(ends);
        Some(ends)
    }

    /// Ends the turn of a statement, because the key was released.
    pub(crate) fn end_turn(&mut self, map: MapId, key: &[u8]) {
        self.edit(map, key, |queue| queue.turn_ends = None);
    }

    /// Whether a statement has its turn at a key.
    pub(crate) fn is_in_turn(&self, map: MapId, key: &[u8], now: Millis) -> bool {
        self.by_map.get(&map).and_then(|queues| queues.get(key)).is_some_and(|queue| queue.is_in_turn(now))
    }

    /// Ends the turns that have lasted long enough. Returns their keys, each with its map.
    pub(crate) fn take_ended_turns(&mut self, now: Millis) -> Vec<(MapId, Box<[u8]>)> {
        let mut ended = Vec::new();
        if self.deadline_min.is_some_and(|min| min <= now) {
            for (map, queues) in &mut self.by_map {
                for (key, queue) in queues.iter_mut() {
                    if queue.turn_ends.is_some_and(|ends| ends <= now) {
                        queue.turn_ends = None;
                        ended.push((*map, key.clone()));
                    }
                }
            }
        }
        ended
    }

    /// Records that the change of a waiter with this caller is proposed.
    pub(crate) fn set_proposed(&mut self, map: MapId, key: &[u8], caller: Caller) {
        self.queue(map, key).proposed = Some(caller);
    }

    /// Whether the change of a waiter with this caller is proposed.
    pub(crate) fn is_proposed_by(&self, map: MapId, key: &[u8], caller: Caller) -> bool {
        self.by_map.get(&map).and_then(|queues| queues.get(key)).is_some_and(|queue| queue.proposed == Some(caller))
    }

    /// Puts a proposed waiter back to the front, because it has to wait again. Ends the proposal.
    pub(crate) fn come_back(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.push_front(map, key, waiter);
        self.end_proposal(map, key);
    }

    /// Ends the proposal of a waiter, because its change was answered.
    pub(crate) fn end_proposal(&mut self, map: MapId, key: &[u8]) {
        self.edit(map, key, |queue| queue.proposed = None);
    }

    /// Removes and returns all waiters of a key.
    pub(crate) fn take_queue(&mut self, map: MapId, key: &[u8]) -> VecDeque<Waiter> {
        self.edit(map, key, std::mem::take).map_or_else(VecDeque::new, |queue| queue.waiters)
    }

    /// Edits a queue if it exists, and removes it if it is empty afterwards.
    fn edit<R>(&mut self, map: MapId, key: &[u8], change: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let queues = self.by_map.get_mut(&map)?;
        let queue = queues.get_mut(key)?;
        let result = change(queue);
        if queue.is_over() {
            queues.remove(key);
            if queues.is_empty() {
                self.by_map.remove(&map);
            }
        }
        Some(result)
    }

    fn queue(&mut self, map: MapId, key: &[u8]) -> &mut Queue {
        self.by_map.entry(map).or_default().entry(key.into()).or_default()
    }

    fn note_deadline(&mut self, deadline: Millis) {
        if deadline != Millis::MAX {
            self.deadline_min = Some(self.deadline_min.map_or(deadline, |min| min.min(deadline)));
        }
    }

    /// Removes and returns the first waiter of a key; `None` while a statement has its turn. If the
    /// key is locked, the first waiter of the lock's owner: the owner does not have to wait. A
    /// client that lost a connection sends its request again, and then two of its requests wait for
    /// the same lock.
    pub(crate) fn next(&mut self, map: MapId, key: &[u8], owner: Option<Caller>, now: Millis) -> Option<Waiter> {
        self.edit(map, key, |queue| match owner {
            None if queue.is_in_turn(now) => None,
            None => queue.waiters.pop_front(),
            Some(owner) => {
                let place = queue.waiters.iter().position(|waiter| waiter.caller == owner)?;
                queue.waiters.remove(place)
            }
        })?
    }

    /// A time that is not after any waiter's deadline nor the end of any turn, if there is one.
    pub(crate) fn first_deadline(&self) -> Option<Millis> {
        self.deadline_min
    }

    /// Removes and returns the waiters with a deadline at or before `now`, each with its map. Costs
    /// nothing if no deadline can have passed. A waiter does not time out while a change of its own
    /// caller is proposed for the key: the change may lock the key, and the caller would own a lock
    /// after a timeout.
    pub(crate) fn take_late(&mut self, now: Millis) -> Vec<(MapId, Waiter)> {
        if self.deadline_min.is_none_or(|min| min > now) {
            return Vec::new();
        }
        let late = self.take_where(|_, proposed, waiter| waiter.is_late(now) && proposed != Some(waiter.caller));
        let queues = self.by_map.values().flat_map(HashMap::values);
        let deadlines = queues.flat_map(|queue| {
            let of_waiters = queue.waiters.iter().map(|waiter| waiter.deadline);
            of_waiters.chain(queue.turn_ends)
        });
        self.deadline_min = deadlines.filter(|deadline| *deadline != Millis::MAX).min();
        late
    }

    /// Removes and returns the waiters of one client.
    pub(crate) fn take_client(&mut self, client: Uuid) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, _, waiter| waiter.caller.client == client)
    }

    /// Removes and returns the waiters of one map.
    pub(crate) fn take_map(&mut self, map: MapId) -> Vec<(MapId, Waiter)> {
        self.take_where(|of, _, _| of == map)
    }

    pub(crate) fn take_all(&mut self) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, _, _| true)
    }

    fn take_where(&mut self, wanted: impl Fn(MapId, Option<Caller>, &Waiter) -> bool) -> Vec<(MapId, Waiter)> {
        let mut taken = Vec::new();
        self.by_map.retain(|map, queues| {
            queues.retain(|_, queue| {
                // Each waiter is visited once. The remaining waiters keep their order.
                for _ in 0..queue.waiters.len() {
                    let Some(waiter) = queue.waiters.pop_front() else { break };
                    if wanted(*map, queue.proposed, &waiter) {
                        taken.push((*map, waiter));
                    } else {
                        queue.waiters.push_back(waiter);
                    }
                }
                !queue.is_over()
            });
            !queues.is_empty()
        });
        taken
    }
}
