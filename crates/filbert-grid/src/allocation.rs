//! The memory balance of each thread: the bytes that it has allocated, minus the bytes that it has
//! freed.
//!
//! A caller that runs work on a thread reads the balance before and after it: the difference is the
//! memory that the work still holds. The module knows neither statements nor limits. It must not
//! allocate itself.
//!
//! A program tells here how its allocator releases memory of a thread ([`set_release`]).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    /// The balance of this thread. Constant, and without a destructor: the allocator reads it also
    /// while a thread begins and ends.
    static BALANCE: Cell<isize> = const { Cell::new(0) };
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

/// The balance of the calling thread, in bytes: negative if it has freed more memory than it has
/// allocated. Always 0 in a program with an allocator that is not [`Counting`].
#[inline]
pub fn balance() -> isize {
    BALANCE.get()
}

/// An allocator that counts the bytes that each thread allocates and frees, by the requested sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting<A>(pub A);

#[inline]
fn count(bytes: isize) {
    BALANCE.set(BALANCE.get().wrapping_add(bytes));
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
