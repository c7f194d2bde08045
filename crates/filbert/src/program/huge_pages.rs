//! Huge pages: the operating system hands out memory in pages of 2 MiB instead of 4 KiB.
//!
//! mimalloc asks for them. A part of 64 KiB that is freed and used again then comes back with the
//! 2 MiB around it. The memory that queries free on other threads lies scattered, and so a member
//! held many times of what it used, see `docs/decisions/0033-no-huge-pages.md`.

/// Has the process get no huge pages from now on.
#[cfg(target_os = "linux")]
pub(crate) fn disable() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::warn!("huge pages cannot be disabled, and memory may grow beyond its limit: {error}");
    }
}

/// Other systems have no such pages.
#[cfg(not(target_os = "linux"))]
pub(crate) fn disable() {}
