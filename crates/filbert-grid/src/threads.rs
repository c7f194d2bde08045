//! How threads stand in line for the processor: those that answer clients before those that compute.
//!
//! Where every processor is taken, two things make a client wait for a query, and each has its remedy
//! ([decision 0014](../../../docs/decisions/0014-query-threads-take-turns.md)):
//! - A thread that wakes waits until the slice of the running one has passed, some milliseconds, unless the waking one asks
//!   for a shorter slice (`sched(7)`; since Linux 6.12, before which the wish is ignored). Both sides ask for theirs.
//! - A thread that was only interrupted, by another that woke, may come after a query thread, whose slice the kernel ends
//!   no sooner than with its next tick. So query threads end theirs: they yield every 0.1 ms ([`give_way`]).
//!
//! Shares of the processor are not changed by slices; they follow niceness.
//!
//! What is wished for may be refused, by a container's rules for instance. Then a thread is as good, only less polite.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for some calls, in nanoseconds; the least that Linux takes.
#[cfg(target_os = "linux")]
const ANSWERING_SLICE_NS: u64 = 100_000;
/// Longer than the slice of any thread that asks for none (at most some 3 ms), so that those come first too, and no longer:
/// another query thread may wait for it that holds a partition's lock. In nanoseconds.
#[cfg(target_os = "linux")]
const COMPUTING_SLICE_NS: u64 = 5_000_000;
/// How long a thread that computes goes on before it lets others by: a few calls' time, and a hundred times what it costs.
const TURN: Duration = Duration::from_micros(100);
/// Rows of a loop between two looks at the clock.
const ROWS_BETWEEN_LOOKS: usize = 64;
/// How much a thread that computes stands back where processors are scarce.
#[cfg(target_os = "linux")]
const COMPUTING_NICENESS: i32 = 10;

thread_local! {
    /// Since when a thread that computes has been at it; `None` for all others.
    static TURN_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The calling thread answers clients: it runs soon after it wakes, and briefly.
pub fn answer_clients() {
    #[cfg(target_os = "linux")]
    linux::ask_for_slice(ANSWERING_SLICE_NS);
}

/// The calling thread computes: it comes after all that wake to answer clients, if its long loops call [`give_way`].
pub fn compute_behind_clients() {
    TURN_BEGAN.set(Some(Instant::now()));
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::nice(COMPUTING_NICENESS);
        linux::ask_for_slice(COMPUTING_SLICE_NS);
    }
}

/// Lets others by, if the calling thread computes and has done so for 0.1 ms. To be called often, and never with a lock
/// held; it costs a look at the clock. Other threads than those of [`compute_behind_clients`] just go on.
pub fn give_way() {
    let Some(began) = TURN_BEGAN.get() else { return };
    if began.elapsed() >= TURN {
        thread::yield_now();
        TURN_BEGAN.set(Some(Instant::now()));
    }
}

/// As [`give_way`], in a loop over rows: it thinks of it only now and then.
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

    /// In the place of a thread's number: the one that calls.
    const THIS_THREAD: c_long = 0;
    const NO_FLAGS: c_long = 0;

    /// How the calling thread is scheduled.
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
        // SAFETY: the kernel writes no more than the size it is told, into numbers that live until the call has ended.
        let failed = unsafe { syscall(SYS_sched_getattr, THIS_THREAD, &raw mut attributes, size, NO_FLAGS) };
        (failed == 0).then_some(attributes)
    }

    /// Asks for a slice and leaves everything else as it is; a thread that was given a real-time policy keeps that.
    pub(super) fn ask_for_slice(nanoseconds: u64) {
        let Some(mut attributes) = attributes() else { return };
        let Ok(SCHED_OTHER | SCHED_BATCH) = c_int::try_from(attributes.sched_policy) else { return };
        attributes.sched_runtime = nanoseconds;
        // SAFETY: the kernel reads as much as the struct's own `size` says, which it filled in for the call above.
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

    /// Kernels before 6.12 tell none.
    fn is_slice(told: u64, wished: u64) -> bool {
        told == 0 || told == wished
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
    fn threads_that_compute_stand_back() {
        let before = linux::attributes().unwrap();
        let computing = on_a_thread(compute_behind_clients);
        assert_eq!(computing.sched_nice, (before.sched_nice + COMPUTING_NICENESS).min(19));
        assert!(is_slice(computing.sched_runtime, COMPUTING_SLICE_NS), "{} ns", computing.sched_runtime);
    }
}
