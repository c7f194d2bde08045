//! The allocator of the program, and how it returns memory to the operating system.

use std::io;
use std::thread;
use std::time::Duration;

use filbert_grid::allocation::{self, Counting};

/// Chosen by measurement (`cargo run --release -p filbert-store --example memory`, and
/// `memory_mimalloc`). Each of a million entries of 12 + 112 bytes has an overhead of 50 bytes
/// instead of 60. The memory of a cleared map returns to the operating system, which did not happen
/// before. The limit of a statement is on the memory that it has allocated, which this allocator
/// counts.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// `mi_option_purge_delay` of `mimalloc.h`. Freed memory returns to the operating system after the
/// delay, unless it is used again before.
///
/// Memory that returns at once must be mapped again for the next value: a statement with a literal
/// of 1 MB took 205 ms without a delay, and takes 46 ms with this one, a `GROUP BY` of 200,000
/// groups at best 11 and 8 ms. A delay of a second keeps too much: eight statements of 300 MiB, one
/// after the other, held 1.1 GiB.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// The delay in milliseconds.
const PURGE_DELAY_MS: std::ffi::c_long = 10;

/// `mi_option_arena_purge_mult` of `mimalloc.h`, the factor of the delay: 10 by default, 1 here.
const PURGE_FACTOR: libmimalloc_sys::mi_option_t = 24;

/// The time between two returns of memory to the operating system.
const PURGE_EVERY: Duration = Duration::from_millis(20);

/// The returns of memory between two looks at the memory that the allocator retains.
const PURGES_PER_LOOK: u32 = 10;

/// `mi_option_arena_reserve` of `mimalloc.h`, in KiB.
const ARENA_RESERVE: libmimalloc_sys::mi_option_t = 23;

/// The part of the address space that mimalloc takes at a time, in KiB. By default it is 1 GiB, of
/// which there are few where the address space is limited (`ulimit -v`).
const ARENA_RESERVE_KIB: std::ffi::c_long = 64 << 10;

/// Sets the allocator's options. The crate does not name them.
pub(crate) fn set_options() {
    set_option("MIMALLOC_PURGE_DELAY", PURGE_DELAY, PURGE_DELAY_MS);
    set_option("MIMALLOC_ARENA_PURGE_MULT", PURGE_FACTOR, 1);
    set_option("MIMALLOC_ARENA_RESERVE", ARENA_RESERVE, ARENA_RESERVE_KIB);
}

/// Sets an option, unless the environment variable does.
fn set_option(variable: &str, option: libmimalloc_sys::mi_option_t, value: std::ffi::c_long) {
    if std::env::var_os(variable).is_some() {
        return;
    }
    #[allow(unsafe_code, reason = "mimalloc's options have no safe interface")]
    // SAFETY: the option is one of mimalloc's. Options must not be set by several threads at a
    // time, and no other code sets any.
    unsafe {
        libmimalloc_sys::mi_option_set(option, value);
    }
}

/// Starts the thread that returns freed memory after the delay. Without it, mimalloc would return
/// the memory only when another thread frees some: a member without work would keep it.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn return_memory() -> io::Result<()> {
    allocation::dedicate_process();
    // The threads of queries release the memory that others have freed.
    allocation::set_release(|| collect(true));
    thread::Builder::new().name("filbert-memory".to_owned()).spawn(|| {
        let mut retention = Retention::default();
        loop {
            for _ in 0..PURGES_PER_LOOK {
                thread::sleep(PURGE_EVERY);
                collect(false);
            }
            if resident().is_some_and(|resident| retention.is_large(resident, allocation::total())) {
                allocation::request_release();
            }
        }
    })?;
    Ok(())
}

/// The memory of the process in RAM that belongs to no file, in bytes. `None` where the system does
/// not tell it.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().skip(1).map(str::parse::<usize>);
    let (all, of_files) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(all.saturating_sub(of_files).saturating_mul(rustix::param::page_size()))
}

/// The memory that the allocator retains: it is in RAM, and no value uses it. Threads are asked to
/// release it while there is much. Fragmented memory cannot be released; then they are asked more
/// and more rarely.
#[derive(Debug, Default)]
struct Retention {
    /// The looks that pass before the next request.
    left: u32,
    /// The looks that passed before the last one.
    pause: u32,
}

impl Retention {
    /// The retained bytes that are not much, in addition to an eighth of all values.
    const BYTES: usize = 48 << 20;

    /// The longest pause between two requests, in looks: a minute.
    const PAUSE_MAX: u32 = 300;

    /// Whether the allocator retains so much of `resident` bytes that threads should release
    /// memory, where values have `allocated` bytes.
    fn is_large(&mut self, resident: usize, allocated: usize) -> bool {
        if resident.saturating_sub(allocated) <= Retention::BYTES + allocated / 8 {
            *self = Retention::default();
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.left = self.pause;
        self.pause = (self.pause * 2 + 1).min(Retention::PAUSE_MAX);
        true
    }
}

/// Frees pages of the calling thread that no value uses, and returns memory to the operating
/// system: after the delay, or all of it at once. Only then mimalloc looks at pages that were full.
fn collect(all: bool) {
    #[allow(unsafe_code, reason = "mimalloc's functions have no safe interface")]
    // SAFETY: the function may be called by any thread at any time. It releases memory that no
    // value uses.
    unsafe {
        libmimalloc_sys::mi_collect(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn threads_are_asked_while_much_is_retained_and_more_rarely_in_vain() {
        let mut retention = Retention::default();
        assert!(!retention.is_large(100 * MIB, 60 * MIB));
        assert!(!retention.is_large(1_100 * MIB, 1_000 * MIB));
        let asked: Vec<usize> = (0..20).filter(|_| retention.is_large(200 * MIB, 60 * MIB)).collect();
        assert_eq!(asked, [0, 1, 3, 7, 15]);
        assert!((0..10_000).filter(|_| retention.is_large(200 * MIB, 60 * MIB)).count() < 40);
        assert!(!retention.is_large(100 * MIB, 60 * MIB));
        assert!(retention.is_large(200 * MIB, 60 * MIB), "it was released meanwhile");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_resident_memory() {
        assert!(resident().is_some_and(|resident| resident > MIB));
    }
}
