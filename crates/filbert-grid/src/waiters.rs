//! Changes that wait for a locked key of one partition, in the order in which they came.

use std::collections::{HashMap, VecDeque};

use filbert_store::{Caller, Change, MapId, Millis, OwnedChange, Reply};
use uuid::Uuid;

use crate::GridError;

/// What to do with the answer to a parked change. Called exactly once, under the partition's lock, on whichever thread
/// frees the key: it must neither block nor call back into the grid.
pub type ParkedReply = Box<dyn FnOnce(Result<Reply<'_>, GridError>) + Send>;

/// A change that waits.
pub(crate) struct Waiter {
    pub(crate) caller: Caller,
    pub(crate) change: OwnedChange,
    /// When to give up; `Millis::MAX` = never.
    pub(crate) deadline: Millis,
    pub(crate) reply: ParkedReply,
}

impl Waiter {
    /// Whether its time is over.
    pub(crate) fn is_late(&self, now: Millis) -> bool {
        self.deadline <= now && self.deadline != Millis::MAX
    }

    /// Bytes of memory that the change takes while it waits.
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

/// Those who wait for one key.
#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// Whose change is on its way through a log, of one who waited: the queue stays until it is back, and so do those behind it.
    proposed: Option<Caller>,
}

impl Queue {
    fn is_over(&self) -> bool {
        self.waiters.is_empty() && self.proposed.is_none()
    }
}

type Queues = HashMap<Box<[u8]>, Queue>;

/// The queues of one partition.
#[derive(Default)]
pub(crate) struct Waiters {
    /// By map, then by key, so that a queue is found by a borrowed key. No map and no queue is kept empty.
    by_map: HashMap<MapId, Queues>,
    /// No waiter's deadline is before this; `None` when nobody waits with a deadline.
    deadline_min: Option<Millis>,
}

impl Waiters {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_map.is_empty()
    }

    /// Whether anyone waits for the key, or has waited and is on its way.
    pub(crate) fn any_for(&self, map: MapId, key: &[u8]) -> bool {
        self.by_map.get(&map).is_some_and(|queues| queues.contains_key(key))
    }

    /// The keys of a map that someone waits for.
    pub(crate) fn keys_of(&self, map: MapId) -> Vec<Box<[u8]>> {
        self.by_map.get(&map).map_or_else(Vec::new, |queues| queues.keys().cloned().collect())
    }

    pub(crate) fn push_back(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.note_deadline(waiter.deadline);
        self.queue(map, key).waiters.push_back(waiter);
    }

    /// Puts a change back that was taken out and still has to wait.
    pub(crate) fn push_front(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.note_deadline(waiter.deadline);
        self.queue(map, key).waiters.push_front(waiter);
    }

    /// As [`Waiters::next`], unless one who has waited is on its way through a log.
    pub(crate) fn next_to_propose(&mut self, map: MapId, key: &[u8], owner: Option<Caller>) -> Option<Waiter> {
        let queue = self.by_map.get(&map)?.get(key)?;
        if queue.proposed.is_some() { None } else { self.next(map, key, owner) }
    }

    /// Notes that a change of this caller, who waited, is on its way through a log.
    pub(crate) fn set_proposed(&mut self, map: MapId, key: &[u8], caller: Caller) {
        self.queue(map, key).proposed = Some(caller);
    }

    /// Whether a change of this caller, who waited, is on its way through a log.
    pub(crate) fn is_proposed_by(&self, map: MapId, key: &[u8], caller: Caller) -> bool {
        self.by_map.get(&map).and_then(|queues| queues.get(key)).is_some_and(|queue| queue.proposed == Some(caller))
    }

    /// Puts one back that was on its way and still has to wait.
    pub(crate) fn come_back(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.push_front(map, key, waiter);
        self.end_proposal(map, key);
    }

    /// Notes that the one on its way is answered.
    pub(crate) fn end_proposal(&mut self, map: MapId, key: &[u8]) {
        self.edit(map, key, |queue| queue.proposed = None);
    }

    /// Takes out all who wait for a key.
    pub(crate) fn take_queue(&mut self, map: MapId, key: &[u8]) -> VecDeque<Waiter> {
        self.edit(map, key, std::mem::take).map_or_else(VecDeque::new, |queue| queue.waiters)
    }

    /// Changes a queue if there is one, and removes it if it is over then.
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

    /// Takes out who has waited longest for a key; of one that is locked, who has waited longest of its owner's changes. These wait for nobody: a client
    /// sends a request again when it has lost a connection, and then two of them wait for the same lock.
    pub(crate) fn next(&mut self, map: MapId, key: &[u8], owner: Option<Caller>) -> Option<Waiter> {
        self.edit(map, key, |queue| match owner {
            None => queue.waiters.pop_front(),
            Some(owner) => {
                let place = queue.waiters.iter().position(|waiter| waiter.caller == owner)?;
                queue.waiters.remove(place)
            }
        })?
    }

    /// A moment that no waiter's deadline is before, if any waiter has one.
    pub(crate) fn first_deadline(&self) -> Option<Millis> {
        self.deadline_min
    }

    /// Takes out those whose deadline is not after `now`, each with its map. Looks at nobody while none can be late. Who waits for a key that
    /// its own change is about to lock is not late: told of no lock, it would have one all the same.
    pub(crate) fn take_late(&mut self, now: Millis) -> Vec<(MapId, Waiter)> {
        if self.deadline_min.is_none_or(|min| min > now) {
            return Vec::new();
        }
        let late = self.take_where(|_, proposed, waiter| waiter.is_late(now) && proposed != Some(waiter.caller));
        let deadlines = self.by_map.values().flat_map(HashMap::values).flat_map(|queue| &queue.waiters);
        let deadlines = deadlines.map(|waiter| waiter.deadline);
        self.deadline_min = deadlines.filter(|deadline| *deadline != Millis::MAX).min();
        late
    }

    /// Takes out those of one client.
    pub(crate) fn take_client(&mut self, client: Uuid) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, _, waiter| waiter.caller.client == client)
    }

    /// Takes out those of one map.
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
                // Everyone goes round once: those who stay keep their order.
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
