//! Tests of the query engine that measure the memory or the processor time of the whole process.
//! They run one at a time, in a separate program.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bounded;
#[path = "../suite/common/mod.rs"]
mod common;
mod ended;
mod greedy_functions;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use filbert_grid::allocation::Counting;

/// The same allocator as in the program. Another allocator may keep more freed memory, which would
/// change the measurements.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// Waits until no other test of this program runs. Other tests wait until the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    // A panic of another test does not matter here.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A figure of this process's memory in MiB: `VmRSS`, the resident memory, or `VmHWM`, its peak.
fn memory_mib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let figure = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    figure.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}
