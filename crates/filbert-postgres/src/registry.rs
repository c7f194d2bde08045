//! The sessions of a door: how many there are, and how what they run is cancelled from another connection.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use filbert_grid::query::Running;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::sync::Notify;
use uuid::Uuid;

/// What a session runs at the moment, as other connections see it.
#[derive(Default)]
pub(crate) struct Slot {
    running: Mutex<Option<Running>>,
    /// Whether the statement that runs is to end. Cleared when the next one begins.
    cancelled: AtomicBool,
    busy: AtomicBool,
    notify: Notify,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("busy", &self.busy).field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}

impl Slot {
    /// A statement begins. What was asked before is not about it.
    pub(crate) fn begin(&self) {
        self.cancelled.store(false, Ordering::Release);
        self.busy.store(true, Ordering::Release);
    }

    /// Notes how the statement is cancelled.
    pub(crate) fn set_running(&self, running: Running) {
        *self.running.lock() = Some(running.clone());
        // It may have been asked for between the statement's begin and now.
        if self.is_cancelled() {
            running.cancel();
        }
    }

    /// The statement is over.
    pub(crate) fn end(&self) {
        self.busy.store(false, Ordering::Release);
        *self.running.lock() = None;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Waits until the statement is to end.
    pub(crate) async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.notify.notified().await;
        }
    }

    /// Ends the statement, if one runs.
    pub(crate) fn cancel(&self) {
        if !self.busy.load(Ordering::Acquire) {
            return;
        }
        self.cancelled.store(true, Ordering::Release);
        self.notify.notify_one();
        let running = self.running.lock().clone();
        // Outside of the lock: the statement's end may come back here.
        if let Some(running) = running {
            running.cancel();
        }
    }
}

struct Entry {
    key: Vec<u8>,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct State {
    entries: HashMap<i32, Entry>,
}

/// The sessions of a door.
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    total: AtomicU64,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("open", &self.open()).field("total", &self.total()).finish()
    }
}

/// A session's place; dropping it cancels what the session still runs and makes room for another one.
#[derive(Debug)]
pub(crate) struct Place {
    registry: Arc<Registry>,
    pub(crate) process: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) slot: Arc<Slot>,
}

impl Registry {
    /// Sessions that are open.
    pub(crate) fn open(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Sessions that there were ever.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes in a session, unless there are `sessions_max` already. Its key has 32 bytes if `long_key`, else 4.
    pub(crate) fn enter(self: &Arc<Self>, sessions_max: usize, long_key: bool) -> Option<Place> {
        let mut state = self.state.lock();
        if state.entries.len() >= sessions_max {
            return None;
        }
        // As hard to guess as the key, which has 32 bits where the protocol has no longer ones; positive, as processes' numbers are.
        let process = loop {
            let bytes = Uuid::new_v4().into_bytes();
            let process = bytes.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes) & i32::MAX);
            if process > 0 && !state.entries.contains_key(&process) {
                break process;
            }
        };
        let mut key = [*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat();
        if !long_key {
            key.truncate(4);
        }
        let slot = Arc::new(Slot::default());
        state.entries.insert(process, Entry { key: key.clone(), slot: slot.clone() });
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(Place { registry: self.clone(), process, key, slot })
    }

    /// Cancels what a session runs, if the key is the session's; whether it is.
    pub(crate) fn cancel(&self, process: i32, key: &[u8]) -> bool {
        let state = self.state.lock();
        let slot = state.entries.get(&process).filter(|entry| bool::from(entry.key.ct_eq(key)));
        let slot = slot.map(|entry| entry.slot.clone());
        drop(state);
        if let Some(slot) = &slot {
            slot.cancel();
        }
        slot.is_some()
    }

    /// Cancels whatever runs.
    pub(crate) fn cancel_all(&self) {
        let slots: Vec<_> = self.state.lock().entries.values().map(|entry| entry.slot.clone()).collect();
        slots.iter().for_each(|slot| slot.cancel());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.state.lock().entries.remove(&self.process);
        self.slot.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn only_the_right_key_cancels_and_only_what_runs() {
        let registry = Arc::new(Registry::default());
        let place = registry.enter(10, false).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let running = || {
            let count = count.clone();
            Running::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })
        };
        registry.cancel(place.process, &place.key);
        place.slot.begin();
        assert!(!place.slot.is_cancelled());
        place.slot.set_running(running());
        assert!(!registry.cancel(place.process, &[0; 4]));
        assert!(!registry.cancel(place.process ^ 1, &place.key));
        assert!(!registry.cancel(place.process, &place.key[..3]));
        assert_eq!(count.load(Ordering::Relaxed), 0);
        registry.cancel(place.process, &place.key);
        assert_eq!((count.load(Ordering::Relaxed), place.slot.is_cancelled()), (1, true));
        place.slot.end();
        place.slot.begin();
        registry.cancel(place.process, &place.key);
        place.slot.set_running(running());
        assert_eq!(count.load(Ordering::Relaxed), 2, "asked for before it was known how");
    }

    #[test]
    fn processes_are_no_easier_to_guess_than_keys() {
        let registry = Arc::new(Registry::default());
        let places: Vec<_> = (0..64).map(|_| registry.enter(100, false).unwrap()).collect();
        let mut processes: Vec<i32> = places.iter().map(|place| place.process).collect();
        processes.sort_unstable();
        assert!(processes.iter().all(|process| *process > 0));
        // Each half of the numbers has some, and no two follow each other.
        assert!(processes[0] < i32::MAX / 2 && processes[63] > i32::MAX / 2);
        assert!(processes.windows(2).all(|pair| pair[1] - pair[0] > 1));
    }

    #[test]
    fn a_place_is_given_back() {
        let registry = Arc::new(Registry::default());
        let place = registry.enter(1, true).unwrap();
        assert_eq!(place.key.len(), 32);
        assert!(registry.enter(1, true).is_none());
        drop(place);
        assert!(registry.enter(1, true).is_some());
        assert_eq!((registry.open(), registry.total()), (0, 2));
    }
}
