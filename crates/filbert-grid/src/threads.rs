//! The CPU scheduling of threads: threads that answer clients run before threads that compute
//! queries.
//!
//! If all processors are busy, a client waits for a query for one of two reasons. Each has its
//! remedy ([decision 0014](../../../docs/decisions/0014-query-threads-take-turns.md)):
//! - A thread that wakes up waits until the time slice of the running thread has passed, some
//!   milliseconds, unless the waking thread has requested a shorter slice (`sched(7)`; since Linux
//!   6.12, earlier versions ignore the request). Both kinds of threads request their slices.
//! - A thread that was preempted by another waking thread may be scheduled after a query thread.
//!   The kernel ends the slice of a query thread at its next tick at the earliest. So query threads
//!   end their slices themselves: they yield every 0.1 ms ([`give_way`]), except for short work
//!   ([`keep_processor`]).
//!
//! Slices do not change the shares of CPU time; these follow niceness.
//!
//! The system may refuse a request, for example by the rules of a container. The thread then works
//! correctly, but delays others more.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// The slice of threads that answer clients, in nanoseconds. Long enough for some calls, and the
/// minimum that Linux accepts.
#[cfg(target_os = "linux")]
const ANSWERING_SLICE_NS: u64 = 100_000;
/// The slice of query threads, in nanoseconds. It is longer than the slice of any thread without a
/// request (at most some 3 ms), so that those run first too. It is not longer than that, because
/// another query thread may wait for a partition's lock that this thread holds.
#[cfg(target_os = "linux")]
const COMPUTING_SLICE_NS: u64 = 5_000_000;
/// The time after which a computing thread yields: the duration of a few calls, and a hundred times
/// the cost of a yield.
const TURN: Duration = Duration::from_micros(100);
/// The number of rows of a loop between two reads of the clock.
const ROWS_BETWEEN_LOOKS: usize = 64;
/// The niceness increment of threads that compute.
#[cfg(target_os = "linux")]
const COMPUTING_NICENESS: i32 = 10;

thread_local! {
    /// The start of the current turn of a thread that computes; `None` for all other threads.
    static TURN_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Marks the calling thread as one that answers clients: it runs soon after it wakes up, and
/// briefly.
pub fn answer_clients() {
    #[cfg(target_os = "linux")]
    linux::ask_for_slice(ANSWERING_SLICE_NS);
}

/// Marks the calling thread as one that computes: it runs after all threads that wake up to answer
/// clients, provided that its long loops call [`give_way`].
pub fn compute_behind_clients() {
    TURN_BEGAN.set(Some(Instant::now()));
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::nice(COMPUTING_NICENESS);
        linux::ask_for_slice(COMPUTING_SLICE_NS);
    }
}

/// Yields the processor if the calling thread computes and has run for 0.1 ms. Call it often, and
/// never while holding a lock. It costs one read of the clock. It has no effect on threads that
/// have not called [`compute_behind_clients`].
pub fn give_way() {
    let Some(began) = TURN_BEGAN.get() else { return };
    if began.elapsed() >= TURN {
        thread::yield_now();
        TURN_BEGAN.set(Some(Instant::now()));
    }
}

/// Runs work during which [`give_way`] has no effect: short work that others wait for. A yield costs
/// a thread the rest of its slice. If other threads compute without yields, it waits until the
/// kernel's next tick, some milliseconds.
pub fn keep_processor<T>(work: impl FnOnce() -> T) -> T {
    let _kept = Kept(TURN_BEGAN.take());
    work()
}

/// The suspended turn of a thread that keeps its processor. The turn continues when the value is
/// dropped, also after a panic.
struct Kept(Option<Instant>);

impl Drop for Kept {
    fn drop(&mut self) {
        TURN_BEGAN.set(self.0);
    }
}

/// As [`give_way`], for a loop over rows: checks only every 64th row.
#[inline]
pub fn give_way_at(row: usize) {
    if row.is_multiple_of(ROWS_BETWEEN_LOOKS) {
        give_way();
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the two system calls have no safe wrapper in a well-kept crate")]
mod linux {
    use std::mem::size_of;

    use libc::{SCHED_BATCH, SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, c_int, c_long, sched_attr, syscall};

    /// Stands for the calling thread, in place of a thread id.
    const THIS_THREAD: c_long = 0;
    const NO_FLAGS: c_long = 0;

    /// The scheduling attributes of the calling thread.
    pub(super) fn attributes() -> Option<sched_attr> {
        let mut attributes = sched_attr {
            size: 0,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        let size = c_long::try_from(size_of::<sched_attr>()).ok()?;
        // SAFETY: the kernel writes at most `size` bytes, to a struct that lives until the call
        // returns.
        let failed = unsafe { syscall(SYS_sched_getattr, THIS_THREAD, &raw mut attributes, size, NO_FLAGS) };
        (failed == 0).then_some(attributes)
    }

    /// Requests a slice, and leaves all other attributes unchanged. A thread with a real-time
    /// policy keeps it.
    pub(super) fn ask_for_slice(nanoseconds: u64) {
        let Some(mut attributes) = attributes() else { return };
        let Ok(SCHED_OTHER | SCHED_BATCH) = c_int::try_from(attributes.sched_policy) else { return };
        attributes.sched_runtime = nanoseconds;
        // SAFETY: the kernel reads as many bytes as the struct's own `size` field says, which the
        // kernel set in the call above.
        let _refused = unsafe { syscall(SYS_sched_setattr, THIS_THREAD, &raw const attributes, NO_FLAGS) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;

    fn on_a_thread(wish: fn()) -> libc::sched_attr {
        std::thread::spawn(move || {
            wish();
            linux::attributes().unwrap()
        })
        .join()
        .unwrap()
    }

    /// Kernels before 6.12 report no slice.
    fn is_slice(reported: u64, requested: u64) -> bool {
        reported == 0 || reported == requested
    }

    #[test]
    fn threads_that_answer_keep_their_niceness() {
        let before = linux::attributes().unwrap();
        let answering = on_a_thread(answer_clients);
        assert_eq!((answering.sched_policy, answering.sched_nice), (before.sched_policy, before.sched_nice));
        assert!(is_slice(answering.sched_runtime, ANSWERING_SLICE_NS), "{} ns", answering.sched_runtime);
    }

    #[test]
    fn only_threads_that_compute_take_turns() {
        give_way();
        assert_eq!(TURN_BEGAN.get(), None);
        let turns = std::thread::spawn(|| {
            compute_behind_clients();
            let first = TURN_BEGAN.get().unwrap();
            while TURN_BEGAN.get() == Some(first) {
                give_way();
            }
            TURN_BEGAN.get().unwrap() - first
        });
        assert!(turns.join().unwrap() >= TURN);
    }

    #[test]
    fn a_thread_that_keeps_its_processor_takes_no_turns() {
        std::thread::spawn(|| {
            compute_behind_clients();
            let first = TURN_BEGAN.get().unwrap();
            let panicked = std::panic::catch_unwind(|| {
                keep_processor(|| {
                    let begun = Instant::now();
                    while begun.elapsed() < 2 * TURN {
                        give_way();
                    }
                    assert_eq!(TURN_BEGAN.get(), None);
                    panic!("its turn goes on");
                })
            });
            assert!(panicked.is_err());
            assert_eq!(TURN_BEGAN.get(), Some(first));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_that_compute_stand_back() {
        let before = linux::attributes().unwrap();
        let computing = on_a_thread(compute_behind_clients);
        assert_eq!(computing.sched_nice, (before.sched_nice + COMPUTING_NICENESS).min(19));
        assert!(is_slice(computing.sched_runtime, COMPUTING_SLICE_NS), "{} ns", computing.sched_runtime);
    }
}
