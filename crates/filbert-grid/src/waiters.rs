//! Changes that wait for a locked key of one partition, in the order in which they came.

use std::collections::{HashMap, VecDeque};

use filbert_store::{Caller, MapId, Millis, OwnedChange, Reply};
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

type Key = (MapId, Box<[u8]>);

/// The queues of one partition.
#[derive(Default)]
pub(crate) struct Waiters {
    by_key: HashMap<Key, VecDeque<Waiter>>,
}

impl Waiters {
    pub(crate) fn push_back(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.by_key.entry((map, key.into())).or_default().push_back(waiter);
    }

    /// Puts a change back that was taken out and still has to wait.
    pub(crate) fn push_front(&mut self, map: MapId, key: &[u8], waiter: Waiter) {
        self.by_key.entry((map, key.into())).or_default().push_front(waiter);
    }

    pub(crate) fn pop_front(&mut self, map: MapId, key: &[u8]) -> Option<Waiter> {
        let key: Key = (map, key.into());
        let queue = self.by_key.get_mut(&key)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.by_key.remove(&key);
        }
        waiter
    }

    /// The earliest deadline of any waiter. Looks at all of them.
    pub(crate) fn first_deadline(&self) -> Option<Millis> {
        self.by_key.values().flatten().map(|waiter| waiter.deadline).filter(|deadline| *deadline != Millis::MAX).min()
    }

    /// Takes out those whose deadline is not after `now`, each with its map.
    pub(crate) fn take_late(&mut self, now: Millis) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, waiter| waiter.deadline <= now)
    }

    /// Takes out those of one client.
    pub(crate) fn take_client(&mut self, client: Uuid) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, waiter| waiter.caller.client == client)
    }

    /// Takes out those of one map.
    pub(crate) fn take_map(&mut self, map: MapId) -> Vec<(MapId, Waiter)> {
        self.take_where(|of, _| of == map)
    }

    pub(crate) fn take_all(&mut self) -> Vec<(MapId, Waiter)> {
        self.take_where(|_, _| true)
    }

    fn take_where(&mut self, wanted: impl Fn(MapId, &Waiter) -> bool) -> Vec<(MapId, Waiter)> {
        let mut taken = Vec::new();
        self.by_key.retain(|(map, _), queue| {
            let mut index = 0;
            while let Some(waiter) = queue.get(index) {
                if !wanted(*map, waiter) {
                    index += 1;
                } else if let Some(waiter) = queue.remove(index) {
                    taken.push((*map, waiter));
                }
            }
            !queue.is_empty()
        });
        taken
    }
}
