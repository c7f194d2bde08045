//! Tests of the query engine that look at the memory or the processor time of the whole process.
//! They run one at a time, in a program of their own.
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

/// The program's allocator: what another one keeps for later is not what is measured here.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// Waits until no other test of this program runs, and keeps the others from running.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    // A test that failed has said so.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A figure of this process's memory in MiB: `VmRSS`, the resident memory, or `VmHWM`, the most of
/// it so far.
fn memory_mib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let figure = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    figure.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}
