//! Locks on table names. Statements that write rows of a table share its name; a statement that
//! changes the meaning of the name holds it exclusively.
//!
//! ```text
//!  INSERT, UPDATE, DELETE, COPY, CREATE INDEX   share(t): together with other writers
//!  CREATE, ALTER, DROP, TRUNCATE, COMMENT       alone(t): after earlier writers, before later ones
//!  CREATE VIEW v AS .. FROM t                   alone(v), share(t)
//! ```
//!
//! A statement resolves a name after it holds it, not before: the name then keeps its meaning for
//! as long as it is held. Readers hold nothing. The number of gates is fixed, and the hash of a
//! name selects its gate, so names from outside take no memory. Two tables of one gate wait for
//! each other now and then.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use filbert_grid::query::{SqlError, SqlErrorCode};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// The number of gates. It is high enough that two tables in use at once seldom share a gate.
const GATES: usize = 256;
/// How long a statement waits for a name that others hold.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The gates of all names.
pub(crate) struct Gates(Box<[Gate]>);

#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    /// Wakes waiting threads.
    freed: Condvar,
    /// Wakes waiting tasks.
    notify: Notify,
}

#[derive(Default)]
struct State {
    shared: usize,
    alone: bool,
    /// The number of statements that wait for exclusive access. New shared access waits behind
    /// them.
    wanted: usize,
}

/// Shared access to a name, together with other writers of rows.
pub(crate) struct Shared<'g>(&'g Gate);

/// Exclusive access to names, and shared access to others.
pub(crate) struct Alone<'g> {
    gates: Vec<&'g Gate>,
    shared: Vec<Shared<'g>>,
}

/// A registration as one that waits for exclusive access.
struct Wanted<'g>(&'g Gate);

impl Default for Gates {
    fn default() -> Self {
        Gates((0..GATES).map(|_| Gate::default()).collect())
    }
}

impl Gates {
    fn number_of(&self, name: &str) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        usize::try_from(hash % GATES as u64).unwrap_or_default()
    }

    fn of(&self, name: &str) -> Result<&Gate, SqlError> {
        self.0.get(self.number_of(name)).ok_or_else(|| busy(name))
    }

    /// Shares a name if no wait is needed.
    #[inline]
    pub(crate) fn try_share(&self, name: &str) -> Option<Shared<'_>> {
        self.of(name).ok()?.try_share()
    }

    /// Shares a name.
    ///
    /// # Errors
    /// Others hold it exclusively for too long.
    pub(crate) async fn share(&self, name: &str) -> Result<Shared<'_>, SqlError> {
        let gate = self.of(name)?;
        gate.wait(Gate::try_share).await.ok_or_else(|| busy(name))
    }

    /// Shares a name; blocks this thread.
    ///
    /// # Errors
    /// Like [`Gates::share`].
    pub(crate) fn share_blocking(&self, name: &str) -> Result<Shared<'_>, SqlError> {
        let gate = self.of(name)?;
        let deadline = Instant::now() + WAIT_MAX;
        let mut state = gate.state.lock();
        while state.alone || state.wanted > 0 {
            if gate.freed.wait_until(&mut state, deadline).timed_out() {
                return Err(busy(name));
            }
        }
        state.shared += 1;
        Ok(Shared(gate))
    }

    /// Locks all names of a statement exclusively.
    ///
    /// # Errors
    /// Others hold one of them for too long.
    pub(crate) async fn alone(&self, names: &[&str]) -> Result<Alone<'_>, SqlError> {
        self.alone_sharing(names, &[]).await
    }

    /// Locks names of a statement exclusively, and shares others.
    ///
    /// # Errors
    /// Others hold one of them for too long.
    pub(crate) async fn alone_sharing(&self, names: &[&str], shared: &[&str]) -> Result<Alone<'_>, SqlError> {
        // All statements lock in the same order, which prevents deadlocks. A gate of both kinds of
        // names is locked exclusively.
        let exclusive = names.iter().map(|name| (self.number_of(name), false, *name));
        let mut gates: Vec<(usize, bool, &str)> = exclusive.collect();
        gates.extend(shared.iter().map(|name| (self.number_of(name), true, *name)));
        gates.sort_unstable();
        gates.dedup_by_key(|(number, ..)| *number);
        let mut alone = Alone { gates: Vec::new(), shared: Vec::new() };
        for (_, is_shared, name) in gates {
            let gate = self.of(name)?;
            if is_shared {
                alone.shared.push(gate.wait(Gate::try_share).await.ok_or_else(|| busy(name))?);
                continue;
            }
            let wanted = Wanted::new(gate);
            gate.wait(Gate::try_alone).await.ok_or_else(|| busy(name))?;
            alone.gates.push(gate);
            drop(wanted);
        }
        Ok(alone)
    }
}

impl Gate {
    #[inline]
    fn try_share(&self) -> Option<Shared<'_>> {
        let mut state = self.state.lock();
        if state.alone || state.wanted > 0 {
            return None;
        }
        state.shared += 1;
        Some(Shared(self))
    }

    fn try_alone(&self) -> Option<()> {
        let mut state = self.state.lock();
        if state.alone || state.shared > 0 {
            return None;
        }
        state.alone = true;
        Some(())
    }

    /// Tries until it succeeds; `None` = not in time.
    async fn wait<'g, T>(&'g self, attempt: impl Fn(&'g Gate) -> Option<T>) -> Option<T> {
        let deadline = tokio::time::Instant::now() + WAIT_MAX;
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            // From here on no wakeup is missed.
            notified.as_mut().enable();
            if let Some(had) = attempt(self) {
                return Some(had);
            }
            tokio::time::timeout_at(deadline, notified).await.ok()?;
        }
    }

    /// Changes the state. Wakes the waiting statements if `change` returns true.
    #[inline]
    fn free(&self, change: impl FnOnce(&mut State) -> bool) {
        let somebody_may_go_on = change(&mut self.state.lock());
        if somebody_may_go_on {
            self.freed.notify_all();
            self.notify.notify_waiters();
        }
    }
}

impl<'g> Wanted<'g> {
    fn new(gate: &'g Gate) -> Self {
        gate.state.lock().wanted += 1;
        Wanted(gate)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.free(|state| {
            state.wanted -= 1;
            true
        });
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.free(|state| {
            state.shared -= 1;
            state.shared == 0 && state.wanted > 0
        });
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        for gate in &self.gates {
            gate.free(|state| {
                state.alone = false;
                true
            });
        }
    }
}

fn busy(name: &str) -> SqlError {
    let text = format!(
        "could not obtain lock on relation {name:?} within {} s: a statement that changes it, or writes its rows, still runs",
        WAIT_MAX.as_secs()
    );
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn writers_share_a_name_and_a_change_of_it_has_it_alone() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        let (gates, inside) = (Arc::new(Gates::default()), Arc::new(AtomicI64::new(0)));
        let tasks: Vec<_> = (0..40)
            .map(|task| {
                let (gates, inside) = (gates.clone(), inside.clone());
                runtime.spawn(async move {
                    for round in 0..200 {
                        if (task + round) % 7 == 0 {
                            let names = if task % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
                            let _alone = match task % 3 {
                                // A name of both kinds is locked exclusively.
                                0 => gates.alone_sharing(&["a"], &names).await.unwrap(),
                                _ => gates.alone(&names).await.unwrap(),
                            };
                            assert_eq!(inside.swap(-1, Ordering::SeqCst), 0);
                            tokio::task::yield_now().await;
                            assert_eq!(inside.swap(0, Ordering::SeqCst), -1);
                        } else {
                            let _shared = gates.share("a").await.unwrap();
                            assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0);
                            tokio::task::yield_now().await;
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
            let waiting = gates.clone();
            let shared = gates.share("a").await.unwrap();
            // A waiter that gave up blocks nobody.
            let given_up = tokio::spawn(async move { waiting.alone(&["a"]).await.map(|_| ()) });
            while gates.try_share("a").is_some() {
                tokio::task::yield_now().await;
            }
            given_up.abort();
            let _ = given_up.await;
            assert!(gates.try_share("a").is_some());
            drop(shared);
            assert!(gates.share_blocking("a").is_ok());
        });
    }
}
