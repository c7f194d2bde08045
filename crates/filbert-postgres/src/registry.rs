//! The open sessions of a door: their number, and the cancellation of their statements from other
//! connections.

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

/// The running statement of a session, as other connections see it.
#[derive(Default)]
pub(crate) struct Slot {
    running: Mutex<Option<Running>>,
    /// Whether the running statement must end. Cleared when the next statement begins.
    cancelled: AtomicBool,
    /// Whether the door has cancelled the statement because the member stops.
    stopped: AtomicBool,
    busy: AtomicBool,
    notify: Notify,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("busy", &self.busy).field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}

impl Slot {
    /// A statement begins. Earlier cancel requests do not apply to it.
    pub(crate) fn begin(&self) {
        self.cancelled.store(false, Ordering::Release);
        self.busy.store(true, Ordering::Release);
    }

    /// Stores the handle that cancels the statement.
    pub(crate) fn set_running(&self, running: Running) {
        *self.running.lock() = Some(running.clone());
        // A cancel request may have arrived between the start of the statement and now.
        if self.is_cancelled() {
            running.cancel();
        }
    }

    /// The statement has ended.
    pub(crate) fn end(&self) {
        self.busy.store(false, Ordering::Release);
        *self.running.lock() = None;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Cancels the statement, if one runs, because the member stops.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.cancel();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Waits until the statement is cancelled.
    pub(crate) async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.notify.notified().await;
        }
    }

    /// Cancels the statement, if one runs.
    pub(crate) fn cancel(&self) {
        if !self.busy.load(Ordering::Acquire) {
            return;
        }
        self.cancelled.store(true, Ordering::Release);
        self.notify.notify_one();
        let running = self.running.lock().clone();
        // Outside of the lock: the end of the statement may call back into this slot.
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

/// The open sessions of a door.
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

/// The registration of a session. Dropping it ends the registration, and cancels the session's
/// running statement.
#[derive(Debug)]
pub(crate) struct SessionRegistration {
    registry: Arc<Registry>,
    pub(crate) process: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) slot: Arc<Slot>,
}

impl Registry {
    /// The number of open sessions.
    pub(crate) fn open(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// The number of sessions that were ever opened.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Registers a session. Returns `None` if there are `sessions_max` already. The key has 32
    /// bytes with `long_key`, otherwise 4.
    pub(crate) fn register(self: &Arc<Self>, sessions_max: usize, long_key: bool) -> Option<SessionRegistration> {
        let mut state = self.state.lock();
        if state.entries.len() >= sessions_max {
            return None;
        }
        // As hard to guess as the key, which has only 32 bits in older versions of the protocol.
        // Positive, as process IDs are.
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
        Some(SessionRegistration { registry: self.clone(), process, key, slot })
    }

    /// Cancels the running statement of a session if the key is right. Returns whether it is.
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

    /// Cancels all running statements, because the member stops.
    pub(crate) fn stop_all(&self) {
        let slots: Vec<_> = self.state.lock().entries.values().map(|entry| entry.slot.clone()).collect();
        slots.iter().for_each(|slot| slot.stop());
    }
}

impl Drop for SessionRegistration {
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
    fn only_the_right_key_cancels_a_running_statement() {
        let registry = Arc::new(Registry::default());
        let registration = registry.register(10, false).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let running = || {
            let count = count.clone();
            Running::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })
        };
        registry.cancel(registration.process, &registration.key);
        registration.slot.begin();
        assert!(!registration.slot.is_cancelled());
        registration.slot.set_running(running());
        assert!(!registry.cancel(registration.process, &[0; 4]));
        assert!(!registry.cancel(registration.process ^ 1, &registration.key));
        assert!(!registry.cancel(registration.process, &registration.key[..3]));
        assert_eq!(count.load(Ordering::Relaxed), 0);
        registry.cancel(registration.process, &registration.key);
        assert_eq!((count.load(Ordering::Relaxed), registration.slot.is_cancelled()), (1, true));
        registration.slot.end();
        registration.slot.begin();
        registry.cancel(registration.process, &registration.key);
        registration.slot.set_running(running());
        assert_eq!(count.load(Ordering::Relaxed), 2, "asked for before it was known how");
    }

    #[test]
    fn processes_are_no_easier_to_guess_than_keys() {
        let registry = Arc::new(Registry::default());
        let registrations: Vec<_> = (0..64).map(|_| registry.register(100, false).unwrap()).collect();
        let mut processes: Vec<i32> = registrations.iter().map(|registration| registration.process).collect();
        processes.sort_unstable();
        assert!(processes.iter().all(|process| *process > 0));
        // Both halves of the number range occur, and no two numbers are consecutive.
        assert!(processes[0] < i32::MAX / 2 && processes[63] > i32::MAX / 2);
        assert!(processes.windows(2).all(|pair| pair[1] - pair[0] > 1));
    }

    #[test]
    fn a_registration_ends_with_its_session() {
        let registry = Arc::new(Registry::default());
        let registration = registry.register(1, true).unwrap();
        assert_eq!(registration.key.len(), 32);
        assert!(registry.register(1, true).is_none());
        drop(registration);
        assert!(registry.register(1, true).is_some());
        assert_eq!((registry.open(), registry.total()), (0, 2));
    }
}
