//! The allocator of the program, and how it returns memory to the operating system.

use filbert_grid::allocation::Counting;

/// Chosen by measurement (`cargo run --release -p filbert-store --example memory`, and
/// `memory_mimalloc`). Each of a million entries of 12 + 112 bytes has an overhead of 50 bytes
/// instead of 60. The memory of a cleared map returns to the operating system, which did not happen
/// before. The limit of a statement is on the memory that it has allocated, which this allocator
/// counts.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds: freed memory returns to the operating
/// system at once. By default mimalloc keeps it for a second and until the next call of a thread
/// that shares it, so that the memory of one statement is still there when the next ones allocate
/// theirs: eight statements of 300 MiB, one after the other, held 1.1 GiB. Gets and sets cost the
/// same, statements up to 5 % more.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// `mi_option_arena_reserve` of `mimalloc.h`, in KiB.
const ARENA_RESERVE: libmimalloc_sys::mi_option_t = 23;

/// The part of the address space that mimalloc takes at a time, in KiB. By default it is 1 GiB, of
/// which there are few where the address space is limited (`ulimit -v`).
const ARENA_RESERVE_KIB: std::ffi::c_long = 64 << 10;

/// Sets the allocator's options. The crate does not name them.
pub(crate) fn set_options() {
    set_option("MIMALLOC_PURGE_DELAY", PURGE_DELAY, 0);
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
