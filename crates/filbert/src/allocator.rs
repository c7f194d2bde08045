//! The allocator of the program, and how it returns memory to the operating system.

use filbert_grid::allocation::Counting;

/// Chosen by measurement (`cargo run --release -p filbert-store --example memory`, and
/// `memory_mimalloc`). Each of a million entries of 12 + 112 bytes has an overhead of 50 bytes
/// instead of 60. The memory of a cleared map returns to the operating system, which did not happen
/// before. Statements are limited by what they allocate, which is counted.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds. The crate does not name it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Lets freed memory return to the operating system at once. By default mimalloc keeps it for a
/// second and until the next call of a thread that shares it, so that the memory of one statement
/// is still there when the next ones allocate theirs: eight statements of 300 MiB, one after the
/// other, held 1.1 GiB. Gets and sets cost the same, statements up to 5 % more.
///
/// The environment variable `MIMALLOC_PURGE_DELAY` takes precedence.
pub(crate) fn return_memory_at_once() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    #[allow(unsafe_code, reason = "mimalloc's options have no safe interface")]
    // SAFETY: the option is one of mimalloc's. Options must not be set by several threads at a
    // time, and no other code sets any.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, 0);
    }
}
