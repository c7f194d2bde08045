//! The memory balance of each thread, and of the process: the bytes that it has allocated, minus
//! the bytes that it has freed.
//!
//! A caller that runs work on a thread reads the balance before and after it: the difference is the
//! memory that the work still holds. A thread adds its balance to that of the process in steps. The
//! module knows neither statements nor limits. It must not allocate itself.
//!
//! A program tells here how its allocator releases memory of a thread ([`set_release`]), requests
//! that threads do so ([`request_release`]), and tells whether it serves one member alone
//! ([`dedicate_process`]).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};

/// The change of a thread's balance, in bytes, from which on it is added to that of the process.
const STEP_BYTES: usize = 64 << 10;

/// The balance of the process, without the last changes of each thread.
static TOTAL: AtomicIsize = AtomicIsize::new(0);

/// Whether the process serves one member alone.
static IS_DEDICATED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The balance of this thread. Constant, and without a destructor: the allocator reads it also
    /// while a thread begins and ends.
    static BALANCE: Cell<isize> = const { Cell::new(0) };
    /// The part of the balance that the process knows.
    static ADDED: Cell<isize> = const { Cell::new(0) };
    /// Adds the rest when the thread ends. Its first use registers the destructor, which allocates
    /// nothing on Linux and macOS.
    static LAST: AddsTheRest = const { AddsTheRest };
    /// The last request for which this thread has released memory.
    static ANSWERED: Cell<u64> = const { Cell::new(0) };
}

struct AddsTheRest;

impl Drop for AddsTheRest {
    fn drop(&mut self) {
        add(BALANCE.get());
    }
}

/// Adds a thread's balance to that of the process.
#[cold]
fn add(balance: isize) {
    TOTAL.fetch_add(balance.wrapping_sub(ADDED.replace(balance)), Ordering::Relaxed);
}

/// How a thread releases memory that it has allocated and others have freed.
static RELEASE: OnceLock<fn()> = OnceLock::new();

/// Sets how the allocator of the program releases memory of the calling thread. The first call
/// counts.
pub fn set_release(release: fn()) {
    let _first = RELEASE.set(release);
}

/// Whether the program has told how memory is released.
pub fn has_release() -> bool {
    RELEASE.get().is_some()
}

/// Releases memory that the calling thread has allocated and other threads have freed. Allocators
/// may keep it until the thread is active again. Does nothing without [`set_release`].
pub fn release_memory_of_thread() {
    if let Some(release) = RELEASE.get() {
        release();
    }
}

/// The number of requests to release memory.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Requests that each thread which calls [`release_if_requested`] releases memory once.
pub fn request_release() {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// The number of requests so far.
pub fn release_requests() -> u64 {
    REQUESTS.load(Ordering::Relaxed)
}

/// Releases memory of the calling thread if that was requested since its last release. Otherwise
/// the call costs a comparison.
#[inline]
pub fn release_if_requested() {
    let requests = release_requests();
    if ANSWERED.replace(requests) != requests {
        release_memory_of_thread();
    }
}

/// The balance of the calling thread, in bytes: negative if it has freed more memory than it has
/// allocated. Always 0 in a program with an allocator that is not [`Counting`].
#[inline]
pub fn balance() -> isize {
    BALANCE.get()
}

/// The balance of all threads together, in bytes. It lacks at most [`STEP_BYTES`] of each thread.
/// Always 0 in a program with an allocator that is not [`Counting`].
pub fn total() -> usize {
    TOTAL.load(Ordering::Relaxed).try_into().unwrap_or(0)
}

/// Declares that the process serves one member alone, as the program does: all of its memory is
/// that of the member. An embedding program has memory of its own.
pub fn dedicate_process() {
    IS_DEDICATED.store(true, Ordering::Relaxed);
}

/// The balance of a process that serves one member alone, in bytes; 0 in any other process.
pub(crate) fn total_of_member() -> usize {
    if IS_DEDICATED.load(Ordering::Relaxed) { total() } else { 0 }
}

/// An allocator that counts the bytes that each thread allocates and frees, by the requested sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting<A>(pub A);

#[inline]
fn count(bytes: isize) {
    let balance = BALANCE.get().wrapping_add(bytes);
    BALANCE.set(balance);
    if balance.wrapping_sub(ADDED.get()).unsigned_abs() >= STEP_BYTES {
        add(balance);
        // The thread may be ending.
        let _registered = LAST.try_with(|_| ());
    }
}

/// The size of a layout, which is at most `isize::MAX`.
#[inline]
fn signed(bytes: usize) -> isize {
    bytes.cast_signed()
}

#[allow(unsafe_code, reason = "an allocator is an unsafe trait; every call goes to the allocator below")]
mod allocator {
    use super::{Counting, GlobalAlloc, Layout, count, signed};

    // SAFETY: each method has the contract of the method below, and calls it with the same
    // arguments. Counting neither allocates nor panics.
    unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller keeps the contract.
            let start = unsafe { self.0.alloc(layout) };
            if !start.is_null() {
                count(signed(layout.size()));
            }
            start
        }

        #[inline]
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller keeps the contract.
            let start = unsafe { self.0.alloc_zeroed(layout) };
            if !start.is_null() {
                count(signed(layout.size()));
            }
            start
        }

        #[inline]
        unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
            count(-signed(layout.size()));
            // SAFETY: the caller keeps the contract.
            unsafe { self.0.dealloc(start, layout) }
        }

        #[inline]
        unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
            // SAFETY: the caller keeps the contract.
            let moved = unsafe { self.0.realloc(start, layout, new_size) };
            if !moved.is_null() {
                count(signed(new_size).wrapping_sub(signed(layout.size())));
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        unsafe_code,
        clippy::unwrap_used,
        reason = "an allocator is called directly, and a test fails by panicking"
    )]

    use std::alloc::System;

    use super::*;

    #[test]
    fn the_balance_follows_each_call() {
        let (allocator, layout) = (Counting(System), Layout::from_size_align(1_000, 8).unwrap());
        let before = balance();
        // SAFETY: the layouts have a size, and each pointer is used with its own layout.
        unsafe {
            let first = allocator.alloc(layout);
            let zeroed = allocator.alloc_zeroed(layout);
            assert!(!first.is_null() && *zeroed == 0);
            assert_eq!(balance() - before, 2_000);
            first.write(7);
            let grown = allocator.realloc(first, layout, 5_000);
            assert_eq!((*grown, balance() - before), (7, 6_000));
            allocator.dealloc(grown, Layout::from_size_align(5_000, 8).unwrap());
            allocator.dealloc(zeroed, layout);
        }
        assert_eq!(balance(), before);
    }

    /// Many steps, but less than a member has for itself: accounts of other tests see the total.
    const LARGE_BYTES: usize = 4 << 20;

    #[test]
    fn the_process_knows_large_changes_at_once_and_the_rest_of_ended_threads() {
        let before = total();
        count(signed(LARGE_BYTES));
        assert!(total() >= before + LARGE_BYTES - STEP_BYTES);
        let ended = std::thread::spawn(|| {
            count(signed(LARGE_BYTES));
            count(-signed(LARGE_BYTES) + 1_000);
            BALANCE.get().wrapping_sub(ADDED.get())
        });
        assert!(ended.join().unwrap().unsigned_abs() < STEP_BYTES);
        count(-signed(LARGE_BYTES));
        assert!(total() < before + LARGE_BYTES / 2);
    }

    #[test]
    fn a_request_is_answered_once_by_each_thread() {
        thread_local! {
            static RELEASES: Cell<u32> = const { Cell::new(0) };
        }
        set_release(|| RELEASES.set(RELEASES.get() + 1));
        let answers = || {
            (0..3).for_each(|_| release_if_requested());
            RELEASES.take()
        };
        answers();
        assert_eq!(answers(), 0);
        request_release();
        request_release();
        assert_eq!((answers(), answers()), (1, 0));
        let of_other = std::thread::spawn(move || (answers(), answers()));
        assert_eq!(of_other.join().unwrap(), (1, 0));
    }

    #[test]
    fn each_thread_has_a_balance() {
        let (allocator, layout) = (Counting(System), Layout::from_size_align(1_000, 8).unwrap());
        let before = balance();
        // SAFETY: the layout has a size; the pointer is freed once, with its layout.
        let start = unsafe { allocator.alloc(layout) } as usize;
        let of_other = std::thread::spawn(move || {
            // SAFETY: as above; the thread that allocated it does not use it any more.
            unsafe { allocator.dealloc(start as *mut u8, layout) };
            balance()
        });
        assert_eq!(of_other.join().unwrap(), -1_000);
        assert_eq!(balance() - before, 1_000);
        count(-1_000);
    }
}
